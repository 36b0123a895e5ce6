//! The tool calls in the events of Claude Code.

use super::events::{Block, DeniedEvent, EventType, MessageEvent};
use super::parser::main_argument;
use crate::adapters::call_events::{Call, CallEvent, CallOutcome, ended};
use crate::adapters::common::{Field, parse_event};

/// What an event tells of tool calls. None if it is no event of Claude Code.
pub(super) fn call_events(object: &[u8]) -> Option<Vec<CallEvent>> {
    let kind: EventType = parse_event(object).ok()?;
    match (kind.kind.get()?.as_str(), kind.subtype.get().map(String::as_str)) {
        ("system", Some("permission_denied")) => {
            let denied: DeniedEvent = parse_event(object).ok()?;
            let id = denied.tool_use_id.known().unwrap_or_default();
            Some(ended(&id, CallOutcome::Denied, None).into_iter().collect())
        }
        ("assistant" | "user", _) => {
            let event: MessageEvent = parse_event(object).ok()?;
            let time = event.timestamp.get();
            let blocks = event.message.known()?.content.known().unwrap_or_default();
            let blocks = blocks.into_iter().filter_map(Field::known);
            Some(blocks.filter_map(|block| block_event(&block, time)).collect())
        }
        ("system" | "result" | "rate_limit_event" | "stream_event", _) => Some(Vec::new()),
        _ => None,
    }
}

fn block_event(block: &Block, time: Option<&String>) -> Option<CallEvent> {
    match block.kind.get()?.as_str() {
        "tool_use" => {
            let id = block.id.get().map(String::as_str);
            let call = Call::new(id, block.name.get()?, main_argument(&block.input));
            Some(CallEvent::Called(call.at(time)))
        }
        "tool_result" => {
            let is_error = block.is_error.get() == Some(&true);
            let outcome = if is_error { CallOutcome::Failed } else { CallOutcome::Succeeded };
            ended(block.tool_use_id.get()?, outcome, time)
        }
        _ => None,
    }
}
