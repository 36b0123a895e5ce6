//! The values that expressions and templates of a frame can read.

use crate::event::CheckReport;
use crate::run_state::{Frame, RunState};
use crate::template::Template;
use crate::value::excerpt;
use crate::variable_types::check_variable;
use crate::workflow::{Machine, Term, Workflow};
use counterfoil_contract::expr::{Expression, Type};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The values of a frame, with their types.
pub(crate) struct EvalScope<'a> {
    pub(crate) machine: &'a Machine,
    workflow: &'a Workflow,
    run: &'a RunState,
    frame: &'a Frame,
    /// Computed on first use: most expressions do not read them.
    run_value: OnceCell<Value>,
    counts_value: OnceCell<Value>,
    /// Additional values: a result, a problem, an item.
    extra: Vec<(&'a str, &'a Value, &'a Type)>,
}

impl<'a> EvalScope<'a> {
    pub(crate) fn new(workflow: &'a Workflow, run: &'a RunState, frame: &'a Frame) -> Option<Self> {
        let machine = workflow.machine(&frame.machine)?;
        Some(Self {
            machine,
            workflow,
            run,
            frame,
            run_value: OnceCell::new(),
            counts_value: OnceCell::new(),
            extra: Vec::new(),
        })
    }

    pub(crate) fn with(mut self, name: &'a str, value: &'a Value, ty: &'a Type) -> Self {
        self.extra.push((name, value, ty));
        self
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        if let Some((_, value, _)) = self.extra.iter().find(|(extra, _, _)| *extra == name) {
            return Some(value);
        }
        match name {
            "run" => {
                Some(self.run_value.get_or_init(|| run_value(self.workflow, self.run, self.frame)))
            }
            "counts" => {
                Some(self.counts_value.get_or_init(|| counts_value(self.machine, self.frame)))
            }
            _ => self.frame.variables.get(name).or_else(|| self.frame.inputs.get(name)),
        }
    }

    fn variables(&self, expression: &Expression) -> Vec<(&str, &Value, &Type)> {
        let mut variables: Vec<(&str, &Value, &Type)> = Vec::new();
        for read in expression.reads() {
            let root = read.split('.').next().unwrap_or_default();
            if variables.iter().any(|(name, _, _)| *name == root) {
                continue;
            }
            if let Some((name, value, ty)) = self.extra.iter().find(|(name, _, _)| *name == root) {
                variables.push((name, value, ty));
            } else if let (Some((name, ty)), Some(value)) =
                (self.machine.types.get_key_value(root), self.value(root))
            {
                variables.push((name, value, ty));
            }
        }
        variables
    }

    /// The values that an expression reads, for a later evaluation.
    pub(crate) fn known(&self, expression: &Expression) -> Vec<(String, Value, Type)> {
        let variables = self.variables(expression).into_iter();
        variables.map(|(name, value, ty)| (name.to_owned(), value.clone(), ty.clone())).collect()
    }

    pub(crate) fn evaluate(&self, expression: &Expression) -> Result<Value, String> {
        expression
            .evaluate(&self.variables(expression))
            .map_err(|why| self.failed(expression, &why.reason))
    }

    pub(crate) fn test(&self, expression: &Expression) -> Result<bool, String> {
        expression
            .test(&self.variables(expression))
            .map_err(|why| self.failed(expression, &why.reason))
    }

    fn failed(&self, expression: &Expression, why: &str) -> String {
        let mut saw = Map::new();
        self.saw(expression, &mut saw);
        let saw: Vec<String> =
            saw.iter().map(|(path, value)| format!("{path} = {}", excerpt(value))).collect();
        let saw = if saw.is_empty() { String::new() } else { format!(" ({})", saw.join(", ")) };
        format!("`{}` could not be evaluated: {why}{saw}", expression.source())
    }

    pub(crate) fn term(&self, term: &Term) -> Result<Value, String> {
        match term {
            Term::Literal(value) => Ok(value.clone()),
            Term::Computed(expression) => self.evaluate(expression),
        }
    }

    /// Collects the values that an expression reads, by path; long values are truncated.
    pub(crate) fn saw(&self, expression: &Expression, saw: &mut Map<String, Value>) {
        const MAX_LENGTH: usize = 200;
        for read in expression.reads() {
            let mut parts = read.split('.');
            let Some(root) = parts.next().and_then(|root| self.value(root)) else { continue };
            let value = parts.try_fold(root, |value, part| value.get(part)).unwrap_or(&Value::Null);
            // The fields of an object are listed on their own.
            if value.is_object() {
                continue;
            }
            let text = value.to_string();
            let shown =
                if text.len() > MAX_LENGTH { Value::String(excerpt(value)) } else { value.clone() };
            saw.insert(read.clone(), shown);
        }
    }

    pub(crate) fn render(
        &self,
        template: &Template,
        more: &BTreeMap<String, Value>,
    ) -> Result<String, String> {
        let variables = template
            .reads()
            .into_iter()
            .filter_map(|name| {
                let value = more.get(&name).or_else(|| self.value(&name))?.clone();
                Some((name, value))
            })
            .collect();
        template.render(&variables).map_err(|error| error.to_string())
    }
}

/// The value of `counts` for a frame: the counter of each limit.
fn counts_value(machine: &Machine, frame: &Frame) -> Value {
    let plain = machine.limits.iter().filter(|(_, limit)| limit.per.is_none());
    let counts = plain
        .map(|(name, _)| (name.clone(), frame.counters.get(name).copied().unwrap_or(0).into()));
    Value::Object(counts.collect())
}

/// The value of `run` for a frame.
fn run_value(workflow: &Workflow, run: &RunState, frame: &Frame) -> Value {
    let started = timestamp(run.started_at);
    let mut value = json!({
        "id": run.run,
        "workflow": run.workflow,
        "date": started.get(..10).unwrap_or_default(),
        "started": started,
        "iteration": run.iterations,
        "state": frame.state,
        "now": timestamp(run.last_at),
        "base": run.base.as_deref().unwrap_or_default(),
        "changed": frame.changed,
        "rejected": frame.rejected,
        "base_checks": checks_value(&workflow.checks, run.base_checks.as_ref()),
    });
    if let (Some(fields), Some(changed)) = (value.as_object_mut(), &frame.step_changed) {
        fields.insert("step_changed".into(), json!(changed));
    }
    value
}

/// The outcomes of checks for expressions and templates. A check without an outcome is not
/// configured.
pub(crate) fn checks_value(
    names: &[String],
    reports: Option<&BTreeMap<String, CheckReport>>,
) -> Value {
    let none = CheckReport::default();
    let value = |name: &String| {
        let report = reports.and_then(|reports| reports.get(name)).unwrap_or(&none);
        (check_variable(name), check_value(report))
    };
    Value::Object(names.iter().map(value).collect())
}

fn check_value(report: &CheckReport) -> Value {
    let mut value = json!({
        "status": report.status.name(),
        "command": report.command,
        "reason": report.reason,
        "output": report.output,
    });
    if let Some(fields) = value.as_object_mut() {
        let counts = [
            ("exit_code", report.exit_code.map(Value::from)),
            ("total", report.total.map(Value::from)),
            ("passed", report.passed.map(Value::from)),
            ("failed", report.failed.map(Value::from)),
            ("skipped", report.skipped.map(Value::from)),
        ];
        let known = |(name, count): (&str, Option<Value>)| Some((name.to_owned(), count?));
        fields.extend(counts.into_iter().filter_map(known));
    }
    value
}

/// Formats a time as RFC 3339.
pub(crate) fn timestamp(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default()
}
