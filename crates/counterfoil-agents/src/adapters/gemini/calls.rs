//! The tool calls in the events of Gemini CLI.

use super::parser::{Tag, ToolResult, ToolUse, main_argument};
use crate::adapters::call_events::{Call, CallEvent, CallOutcome, ended};
use crate::adapters::common::{Field, parse_event};

/// What an event tells of tool calls. None if it is no event of Gemini CLI.
pub(super) fn call_events(object: &[u8]) -> Option<Vec<CallEvent>> {
    let Tag { kind } = parse_event(object).ok()?;
    match kind.as_str() {
        "tool_use" => {
            let call: ToolUse = parse_event(object).ok()?;
            let id = call.id.get().map(String::as_str);
            let called = Call::new(id, &call.name, main_argument(&call.parameters));
            Some(vec![CallEvent::Called(called.at(call.timestamp.get()))])
        }
        "tool_result" => {
            let result: ToolResult = parse_event(object).ok()?;
            let outcome = match &result.error {
                Field::Absent => CallOutcome::Succeeded,
                Field::Known(error) if error.is_policy_violation() => CallOutcome::Denied,
                Field::Known(_) | Field::Mismatched(_) => CallOutcome::Failed,
            };
            let id = result.id.get().map(String::as_str).unwrap_or_default();
            Some(ended(id, outcome, result.timestamp.get()).into_iter().collect())
        }
        "init" | "message" | "error" | "result" => Some(Vec::new()),
        _ => None,
    }
}
