//! The tool calls in the messages of the protocol.

use super::incoming::{Message, ToolCall, Update, session_of};
use crate::adapters::call_events::{Call, CallEvent, CallOutcome, ended};
use agent_client_protocol_schema::v1::CLIENT_METHOD_NAMES;

/// What a message tells of tool calls. None if it is no message of the protocol. Those of subagents,
/// which have sessions of their own, count as well.
pub(crate) fn call_events(object: &[u8]) -> Option<Vec<CallEvent>> {
    let text = String::from_utf8_lossy(object);
    let (method, params) = match Message::parse(&text)? {
        Message::Notification { method, params } => (method, params),
        Message::Request { .. } => return Some(Vec::new()),
        Message::Answer { .. } => return None,
    };
    if method != CLIENT_METHOD_NAMES.session_update {
        return Some(Vec::new());
    }
    let session = session_of(params);
    match Update::parse(params, session.as_deref()) {
        Some((Update::Call(call), _)) => Some(events(&call)),
        _ => Some(Vec::new()),
    }
}

fn events(call: &ToolCall) -> Vec<CallEvent> {
    let id = call.tool_call_id.as_deref();
    let tool = call.name.as_ref().or(call.title.as_ref());
    let place = call.locations.iter().flatten().find_map(|place| place.path.as_deref());
    let file = call.raw_input.as_ref().and_then(|input| input.file_path.as_deref());
    let target = call.title.as_deref().filter(|_| call.name.is_some()).or(place).or(file);
    let called = Call::new(id, tool.map_or("", String::as_str), target);
    let outcome = match call.status.as_deref() {
        Some("completed") => Some(CallOutcome::Succeeded),
        Some("failed") => Some(CallOutcome::Failed),
        _ => None,
    };
    let end = id.zip(outcome).and_then(|(id, outcome)| ended(id, outcome, None));
    [CallEvent::Called(called)].into_iter().chain(end).collect()
}
