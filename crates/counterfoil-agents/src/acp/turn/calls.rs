//! The tool calls of a prompt, as far as they are told.

use super::super::incoming::ToolCall;
use super::super::permission;
use std::collections::HashMap;

/// The most tool calls that are remembered.
const MAX_CALLS: usize = 4096;
/// The longest id of one that is remembered.
const MAX_ID_BYTES: usize = 1 << 10;

/// The tool calls of a prompt.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: HashMap<String, ToolCall>,
}

impl Calls {
    /// Whether an update gives a call a title that it did not have.
    pub(super) fn names(&self, newer: &ToolCall) -> bool {
        let known = newer.tool_call_id.as_ref().and_then(|id| self.known.get(id));
        newer.title.is_some() && known.is_none_or(|known| known.title != newer.title)
    }

    /// Adds what is told of a call. Returns all that is known of it, and whether it makes outdated what
    /// the agent said before: a call that is not ours does, when it begins and when it ends.
    pub(super) fn update(&mut self, newer: ToolCall) -> (ToolCall, bool) {
        let id = newer.tool_call_id.clone().filter(|id| id.len() <= MAX_ID_BYTES);
        let known = id.as_ref().and_then(|id| self.known.remove(id));
        let is_new = known.is_none();
        let mut call = known.unwrap_or_default();
        let was_open = !is_done(&call);
        call.update(newer);
        let outdates = !permission::is_ours(&call) && (is_new || was_open && is_done(&call));
        if let Some(id) = id.filter(|_| self.known.len() < MAX_CALLS) {
            // What it shows may be long, and is not needed again.
            let content = call.content.take();
            self.known.insert(id, call.clone());
            call.content = content;
        }
        (call, outdates)
    }
}

impl Calls {
    /// The number of calls so far, and one that runs, if one does.
    pub(super) fn progress(&self) -> (u64, Option<&ToolCall>) {
        (self.known.len() as u64, self.known.values().find(|call| !is_done(call)))
    }
}

fn is_done(call: &ToolCall) -> bool {
    matches!(call.status.as_deref(), Some("completed" | "failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> ToolCall {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_call_outdates_what_was_said_when_it_begins_and_when_it_ends() {
        let mut calls = Calls::default();
        let mut outdates = |text| calls.update(call(text)).1;
        assert!(outdates(r#"{"toolCallId":"a","title":"test","kind":"execute"}"#));
        assert!(!outdates(r#"{"toolCallId":"a","status":"in_progress"}"#));
        assert!(outdates(r#"{"toolCallId":"a","status":"completed"}"#));
        assert!(!outdates(r#"{"toolCallId":"a","status":"completed"}"#));
        assert!(outdates(r#"{"title":"without an id"}"#));
        assert!(!outdates(r#"{"toolCallId":"b","title":"counterfoil_submit_result"}"#));
        assert!(!outdates(r#"{"toolCallId":"b","status":"completed"}"#));
    }

    #[test]
    fn the_memory_for_calls_is_bounded() {
        let mut calls = Calls::default();
        for n in 0..10_000 {
            calls.update(call(&format!(r#"{{"toolCallId":"{n}","title":"x"}}"#)));
        }
        calls.update(ToolCall { tool_call_id: Some("x".repeat(5000)), ..ToolCall::default() });
        assert_eq!(calls.known.len(), MAX_CALLS);
    }
}
