//! A compiled expression: checked once, evaluated many times.

use super::check::{Checked, ExprProblem, check};
use super::eval::{run, to_cel, to_json};
use super::lower::ExprCode;
use super::path::Path;
use super::scope::{Facts, Proof, Scope};
use super::types::Type;
use cel::common::ast::IdedExpr;
use serde_json::Value;

/// A type-checked expression. Evaluating it over values of the types it was compiled against can
/// fail only because of the data (a division by zero, an index out of bounds), never because of a
/// type error.
#[derive(Debug)]
pub struct Expression {
    source: String,
    ty: Type,
    reads: Vec<String>,
    /// The parts of each variable that must be converted for evaluation.
    variable_reads: Vec<VariableRead>,
    when_true: Facts,
    when_false: Facts,
    code: ExprCode,
}

/// A variable that an expression reads: as a whole (`None`), or only some of its fields.
#[derive(Debug)]
struct VariableRead {
    variable: String,
    fields: Option<Vec<String>>,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct EvaluationError {
    /// What prevents the evaluation.
    pub reason: String,
}

impl Expression {
    /// Parses an expression and checks it against the types of its variables.
    ///
    /// # Errors
    ///
    /// All problems that were found, with their positions in the source.
    pub fn compile(source: &str, scope: &Scope) -> Result<Self, Vec<ExprProblem>> {
        let Checked { ty, paths, if_true, if_false, code, .. } = check(source, scope)?;
        let mut reads: Vec<String> = Vec::new();
        for path in &paths {
            let mut shown = Path { root: path.root.clone(), steps: Vec::new() };
            shown.steps.extend(path.steps.iter().take(path.fields().count()).cloned());
            let shown = shown.to_string();
            if !reads.contains(&shown) {
                reads.push(shown);
            }
        }
        Ok(Self {
            source: source.to_owned(),
            ty,
            reads,
            variable_reads: variable_reads(&paths),
            when_true: if_true,
            when_false: if_false,
            code,
        })
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The type of its value.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The paths it reads, in source order: `result.checks` for a field, `fix_info` for a variable
    /// as a whole.
    pub fn reads(&self) -> &[String] {
        &self.reads
    }

    /// Evaluates the expression. Only the parts of the variables that it reads are converted.
    ///
    /// # Errors
    ///
    /// A variable has no value, or the data prevents an evaluation.
    pub fn evaluate(&self, variables: &[(&str, &Value, &Type)]) -> Result<Value, EvaluationError> {
        let mut converted = Vec::with_capacity(self.variable_reads.len());
        for read in &self.variable_reads {
            let Some((name, value, ty)) =
                variables.iter().find(|(name, ..)| *name == read.variable)
            else {
                return Err(EvaluationError {
                    reason: format!("`{}` has no value", read.variable),
                });
            };
            converted.push((*name, to_cel(value, ty, read.fields.as_deref())));
        }
        run(self.code.expr(), converted)
            .and_then(|value| to_json(&value))
            .map_err(|reason| EvaluationError { reason })
    }

    /// Evaluates the expression as a condition.
    ///
    /// # Errors
    ///
    /// The evaluation fails or does not yield a boolean.
    pub fn test(&self, variables: &[(&str, &Value, &Type)]) -> Result<bool, EvaluationError> {
        match self.evaluate(variables)? {
            Value::Bool(truth) => Ok(truth),
            other => {
                let reason = format!("gave {} where a boolean is needed", kind(&other));
                Err(EvaluationError { reason })
            }
        }
    }

    pub(super) fn ast(&self) -> &IdedExpr {
        self.code.source_expr()
    }
}

impl Proof for Expression {
    fn when_true(&self) -> &Facts {
        &self.when_true
    }

    fn when_false(&self) -> &Facts {
        &self.when_false
    }
}

fn variable_reads(paths: &[Path]) -> Vec<VariableRead> {
    let mut variable_reads: Vec<VariableRead> = Vec::new();
    for path in paths {
        let field = path.fields().next().map(str::to_owned);
        let at = match variable_reads.iter().position(|read| read.variable == path.root) {
            Some(at) => at,
            None => {
                variable_reads
                    .push(VariableRead { variable: path.root.clone(), fields: Some(Vec::new()) });
                variable_reads.len() - 1
            }
        };
        match (&mut variable_reads[at].fields, field) {
            (Some(fields), Some(field)) if !fields.contains(&field) => fields.push(field),
            (Some(_), None) => variable_reads[at].fields = None,
            _ => {}
        }
    }
    variable_reads
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
