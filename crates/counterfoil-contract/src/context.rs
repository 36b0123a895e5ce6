//! What is known of the attempt whose result is read, besides the text.

#[cfg(feature = "rules")]
use crate::expr::{Field, ObjectType, Type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
#[cfg(feature = "rules")]
use serde_json::{Map, Value};
#[cfg(feature = "rules")]
use std::sync::Arc;

/// What is known of the attempt whose result is read. What is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Context {
    /// The absolute paths of the workspace's folder: one, or several if it has several names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<String>,
    /// The run's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The workflow's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The state of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The key of the item that the step works on, in a step for each of several items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The attempt's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// When the attempt began, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When the reply was complete, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Milliseconds from the one to the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

#[cfg(feature = "rules")]
impl Context {
    /// What is known, as the variable `run` of expressions.
    pub(crate) fn run_value(&self) -> Value {
        let texts = [
            ("id", self.run.as_ref()),
            ("workflow", self.workflow.as_ref()),
            ("step", self.step.as_ref()),
            ("task", self.task.as_ref()),
            ("attempt", self.attempt.as_ref()),
            ("started", self.started.as_ref()),
            ("ended", self.ended.as_ref()),
            ("workspace", self.workspace.first()),
        ];
        let known =
            texts.into_iter().filter_map(|(name, text)| Some((name, text?.as_str().into())));
        let duration = self.duration_ms.map(|duration| ("duration_ms", duration.into()));
        let members = known.chain(duration).map(|(name, value)| (name.to_owned(), value));
        Value::Object(members.collect::<Map<String, Value>>())
    }
}

/// The type of the variable `run`. Everything is there when an attempt has ended, except for `task`,
/// which only a step for each of several items has.
#[cfg(feature = "rules")]
pub(crate) fn run_type() -> Type {
    let names = [
        "id",
        "workflow",
        "step",
        "task",
        "attempt",
        "started",
        "ended",
        "duration_ms",
        "workspace",
    ];
    let fields = names.into_iter().enumerate().map(|(position, name)| {
        let ty = if name == "duration_ms" { Type::Int } else { Type::text() };
        let field = Field {
            ty,
            required: true,
            default: None,
            placeholder: None,
            description: None,
            position,
        };
        (name.to_owned(), field)
    });
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}
