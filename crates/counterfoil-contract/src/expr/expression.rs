//! An expression that was checked once and is evaluated many times.

use super::check::{Checked, ExprProblem, check};
use super::eval::{run, to_cel, to_json};
use super::lower::Code;
use super::path::Path;
use super::scope::{Facts, Proof, Scope};
use super::types::Type;
use cel::common::ast::IdedExpr;
use serde_json::Value;

/// An expression that holds together: evaluating it over values of the types it was compiled
/// against can only fail on what the values are (a division by zero, an index past the end), never
/// on how it is wired.
#[derive(Debug)]
pub struct Expression {
    source: String,
    ty: Type,
    reads: Vec<String>,
    /// What to convert of each variable it reads.
    needs: Vec<Need>,
    when_true: Facts,
    when_false: Facts,
    code: Code,
}

/// A variable that is read: whole, or some of its fields.
#[derive(Debug)]
struct Need {
    variable: String,
    fields: Option<Vec<String>>,
}

impl Expression {
    /// Parses an expression and checks it against the types of its variables; all problems at once.
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
            needs: needs(&paths),
            when_true: if_true,
            when_false: if_false,
            code,
        })
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The type of its value.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The places it reads, such as `result.checks`, or `fix_info` for a variable as a whole, in
    /// the order they stand.
    pub fn reads(&self) -> &[String] {
        &self.reads
    }

    /// Its value for values of the variables; if there is none, why, in words.
    ///
    /// Of the variables only what the expression reads is looked at.
    pub fn evaluate(&self, variables: &[(&str, &Value, &Type)]) -> Result<Value, String> {
        let mut converted = Vec::with_capacity(self.needs.len());
        for need in &self.needs {
            let Some((name, value, ty)) =
                variables.iter().find(|(name, ..)| *name == need.variable)
            else {
                return Err(format!("`{}` has no value", need.variable));
            };
            converted.push((*name, to_cel(value, ty, need.fields.as_deref())));
        }
        to_json(&run(self.code.expr(), converted)?)
    }

    /// Whether it is true for values of the variables; if it has no value or is no boolean, why, in
    /// words.
    pub fn test(&self, variables: &[(&str, &Value, &Type)]) -> Result<bool, String> {
        match self.evaluate(variables)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(format!("gave {} where a boolean is needed", kind(&other))),
        }
    }

    pub(super) fn ast(&self) -> &IdedExpr {
        self.code.written()
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

fn needs(paths: &[Path]) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for path in paths {
        let field = path.fields().next().map(str::to_owned);
        let at = match needs.iter().position(|need| need.variable == path.root) {
            Some(at) => at,
            None => {
                needs.push(Need { variable: path.root.clone(), fields: Some(Vec::new()) });
                needs.len() - 1
            }
        };
        match (&mut needs[at].fields, field) {
            (Some(fields), Some(field)) if !fields.contains(&field) => fields.push(field),
            (Some(_), None) => needs[at].fields = None,
            _ => {}
        }
    }
    needs
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
