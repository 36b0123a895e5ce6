//! The record that Gemini CLI keeps of a chat: one line for each message, and one more when its tool
//! calls are done.

use crate::adapters::Server;
use crate::adapters::common::Field;
use crate::adapters::record::{
    RecordParser, RecordPlace, RecordedTokens, Requests, newest_entries,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most folders of projects, and chats in one, that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The file of a conversation, in the home overlay: `tmp/PROJECT/chats/session-TIME-START.jsonl`, where
/// `START` are the first characters of the id.
pub(super) fn files(place: &RecordPlace<'_>) -> Vec<PathBuf> {
    let start = place.conversation.get(..8).unwrap_or(place.conversation);
    let end = format!("-{start}.jsonl");
    newest_entries(&super::overlay_folder(place.scratch).join("tmp"), MAX_ENTRIES)
        .into_iter()
        .flat_map(|project| newest_entries(&project.join("chats"), MAX_ENTRIES))
        .filter(|file| file.to_str().is_some_and(|name| name.ends_with(&end)))
        .collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordLine {
    id: Field<String>,
    model: Field<String>,
    tokens: Field<Tokens>,
    #[serde(rename = "toolCalls")]
    tool_calls: Field<Vec<ToolCall>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input: u64,
    /// All tokens; those for reasoning and tools are only part of this number.
    total: u64,
    output: u64,
    cached: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolCall {
    name: Field<String>,
}

/// Reads that record.
#[derive(Default)]
pub(super) struct GeminiRecord {
    requests: Requests,
    calls_tools: bool,
}

impl RecordParser for GeminiRecord {
    fn on_line(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<RecordLine>(line) else { return };
        let (Some(id), Some(tokens)) = (line.id.known(), line.tokens.known()) else { return };
        self.calls_tools = line
            .tool_calls
            .known()
            .unwrap_or_default()
            .iter()
            .any(|call| call.name.get().is_some_and(|name| !name.ends_with(Server::TOOL)));
        let output = tokens.total.saturating_sub(tokens.input).max(tokens.output);
        let tokens =
            RecordedTokens { input: tokens.input, output, cached: tokens.cached, written: 0 };
        self.requests.insert(id, line.model.known().unwrap_or_default(), tokens);
    }

    fn used_by_model(&self) -> BTreeMap<String, RecordedTokens> {
        self.requests.by_model()
    }

    fn calls_tools(&self) -> bool {
        self.calls_tools
    }
}
