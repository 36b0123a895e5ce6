//! The line that shows a result: a template over `result`.

use minijinja::{Environment, UndefinedBehavior, Value as Data, context};
use serde_json::Value;
use std::collections::BTreeMap;

/// A compiled display template.
#[derive(Debug)]
pub(crate) struct Display {
    environment: Environment<'static>,
}

const NAME: &str = "display";
/// A template may execute this many instructions: enough for a line, too few for an endless loop.
const MAX_INSTRUCTIONS: u64 = 10_000;
/// Longer lines are truncated.
const MAX_LINE_CHARS: usize = 200;

impl Display {
    pub(crate) fn compile(template: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_fuel(Some(MAX_INSTRUCTIONS));
        environment
            .add_template_owned(NAME, template.to_owned())
            .map_err(|error| error.to_string())?;
        Ok(Self { environment })
    }

    /// Renders a result. If the template fails, the line says so.
    pub(crate) fn render(&self, value: &Value) -> String {
        self.try_render(value).unwrap_or_else(|error| format!("(display failed: {error})"))
    }

    pub(crate) fn try_render(&self, value: &Value) -> Result<String, String> {
        let template = self.environment.get_template(NAME).map_err(|error| error.to_string())?;
        let line = template
            .render(context! { result => data(value) })
            .map_err(|error| error.to_string())?;
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(if line.chars().count() > MAX_LINE_CHARS {
            line.chars().take(MAX_LINE_CHARS - 1).chain(['…']).collect()
        } else {
            line
        })
    }
}

/// A JSON value for the template engine. Its numbers lose the exact digits that JSON keeps.
fn data(value: &Value) -> Data {
    match value {
        Value::Null => Data::from(()),
        Value::Bool(flag) => Data::from(*flag),
        Value::String(text) => Data::from(text.as_str()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Data::from(int),
            (None, Some(float)) => Data::from(float),
            (None, None) => Data::from(number.to_string()),
        },
        Value::Array(items) => Data::from(items.iter().map(data).collect::<Vec<_>>()),
        Value::Object(members) => Data::from(
            members
                .iter()
                .map(|(key, value)| (key.clone(), data(value)))
                .collect::<BTreeMap<String, Data>>(),
        ),
    }
}
