//! The record that Claude Code keeps: one line for each part of a message, with the usage of the
//! message. Subagents have files of their own beside it.

use super::events::{Block, Usage};
use super::parser::STRUCTURED;
use crate::adapters::Server;
use crate::adapters::common::Field;
use crate::adapters::record::{
    RecordParser, RecordPlace, RecordedTokens, Requests, folder_of, newest_entries,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most folders of projects, and the most files of subagents, that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The files of a conversation.
pub(super) fn files(place: &RecordPlace<'_>) -> Vec<PathBuf> {
    let Some(folder) = folder_of(place.env, "CLAUDE_CONFIG_DIR", ".claude") else {
        return Vec::new();
    };
    let id = place.conversation;
    let mut files = Vec::new();
    for project in newest_entries(&folder.join("projects"), MAX_ENTRIES) {
        let main = project.join(format!("{id}.jsonl"));
        if main.is_file() {
            files.push(main);
            files.extend(newest_entries(&project.join(id).join("subagents"), MAX_ENTRIES));
        }
    }
    files
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordLine {
    #[serde(rename = "isSidechain")]
    is_sidechain: Field<bool>,
    message: Field<RecordedMessage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordedMessage {
    id: Field<String>,
    model: Field<String>,
    usage: Field<Usage>,
    content: Field<Vec<Field<Block>>>,
}

/// Reads that record.
#[derive(Default)]
pub(super) struct ClaudeRecord {
    requests: Requests,
    /// The last message of the main agent, and whether it calls tools.
    last: Option<(String, bool)>,
}

impl RecordParser for ClaudeRecord {
    fn on_line(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<RecordLine>(line) else { return };
        let Some(message) = line.message.known() else { return };
        let (Some(id), Some(used)) = (message.id.known(), message.usage.known()) else { return };
        let calls = message.content.known().unwrap_or_default().iter().any(|block| {
            block.get().is_some_and(|block| {
                block.kind.get().is_some_and(|kind| kind == "tool_use")
                    && block
                        .name
                        .get()
                        .is_some_and(|name| name != STRUCTURED && !name.ends_with(Server::TOOL))
            })
        });
        if line.is_sidechain.known() != Some(true) {
            let before = self.last.take().filter(|(last, _)| *last == id);
            self.last = Some((id.clone(), calls || before.is_some_and(|(_, calls)| calls)));
        }
        let model = message.model.known().unwrap_or_default();
        self.requests.insert(id, model, used.recorded());
    }

    fn used_by_model(&self) -> BTreeMap<String, RecordedTokens> {
        self.requests.by_model()
    }

    fn calls_tools(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, calls)| *calls)
    }
}
