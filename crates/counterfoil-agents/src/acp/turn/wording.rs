//! What updates say, in words of one line.

use super::super::incoming::{Plan, ToolCall};
use crate::adapters::common::activity_line;
use serde_json::Value;

/// A tool call in words.
pub(super) fn title(call: &ToolCall) -> String {
    let words = call.title.as_ref().or(call.name.as_ref());
    words.and_then(|words| activity_line(words)).unwrap_or_else(|| "a tool call".to_owned())
}

/// The entry of a plan that is worked on.
pub(super) fn plan_line(plan: &Plan) -> Option<String> {
    let entries = plan.entries.as_ref()?;
    let at = |status: &str| {
        entries.iter().find(|entry| entry.status.as_deref() == Some(status))?.content.as_deref()
    };
    activity_line(&format!("plan: {}", at("in_progress").or_else(|| at("pending"))?))
}

/// How the program says that its turn goes, beside the protocol: `_meta.codex.threadStatus.type`.
pub(super) fn thread_status(meta: &Value) -> Option<&str> {
    let vendors = meta.as_object()?.values();
    vendors.into_iter().find_map(|vendor| vendor.get("threadStatus")?.get("type")?.as_str())
}
