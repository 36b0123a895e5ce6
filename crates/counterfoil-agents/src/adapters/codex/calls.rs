//! The tool calls in the events of Codex.

use super::tools::{Command, Edit, Search, ServerCall};
use crate::adapters::call_events::{Call, CallEvent, CallOutcome, ended};
use crate::adapters::common::parse_event;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Event<T> {
    #[serde(rename = "type")]
    kind: String,
    item: Option<T>,
}

/// What all items have.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    status: String,
    error: Option<serde::de::IgnoredAny>,
}

/// What an event tells of tool calls. None if it is no event of Codex.
pub(super) fn call_events(object: &[u8]) -> Option<Vec<CallEvent>> {
    let Event { kind, item } = parse_event::<Event<Item>>(object).ok()?;
    match (kind.as_str(), item) {
        // A further process counts its items from the beginning.
        ("thread.started", _) => Some(vec![CallEvent::IdsBeginAnew]),
        ("item.started" | "item.updated" | "item.completed", Some(item)) => {
            let Some(call) = call(&item, object) else { return Some(Vec::new()) };
            let is_done = kind == "item.completed";
            let end = is_done.then(|| ended(&item.id, outcome(&item), None)).flatten();
            Some([CallEvent::Called(call)].into_iter().chain(end).collect())
        }
        ("turn.started" | "turn.completed" | "turn.failed", _) => Some(Vec::new()),
        _ => None,
    }
}

fn call(item: &Item, object: &[u8]) -> Option<Call> {
    let (tool, target) = match item.kind.as_str() {
        "command_execution" => ("command".to_owned(), Some(read::<Command>(object)?.line())),
        "file_change" => ("edit".to_owned(), read::<Edit>(object)?.target()),
        "mcp_tool_call" => (read::<ServerCall>(object)?.name(), None),
        "web_search" => ("search".to_owned(), read::<Search>(object)?.target()),
        _ => return None,
    };
    Some(Call::new(Some(&item.id), &tool, target.as_deref()))
}

fn read<T: DeserializeOwned>(object: &[u8]) -> Option<T> {
    parse_event::<Event<T>>(object).ok()?.item
}

fn outcome(item: &Item) -> CallOutcome {
    match item.status.as_str() {
        "declined" => CallOutcome::Denied,
        "failed" => CallOutcome::Failed,
        _ if item.error.is_some() => CallOutcome::Failed,
        _ => CallOutcome::Succeeded,
    }
}
