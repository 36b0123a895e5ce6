//! The record that Codex keeps, its rollout file: one line for each item of the conversation, and one
//! with all tokens so far before each further request.

use super::config_files;
use crate::adapters::Server;
use crate::adapters::common::Field;
use crate::adapters::record::{RecordParser, RecordPlace, RecordedTokens, newest_entries};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// The most folders of days in which a conversation is looked for.
const MAX_DAYS: usize = 400;

/// The most open calls that are remembered.
const MAX_OPEN: usize = 1024;

/// The file of a conversation: `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`.
pub(super) fn files(place: &RecordPlace<'_>) -> Vec<PathBuf> {
    let Some(folder) = config_files::folder(place.env) else { return Vec::new() };
    let end = format!("-{}.jsonl", place.conversation);
    let inside = |folder: PathBuf| newest_entries(&folder, usize::MAX);
    let days = inside(folder.join("sessions")).into_iter().flat_map(inside).flat_map(inside);
    days.take(MAX_DAYS)
        .flat_map(inside)
        .find(|file| file.to_str().is_some_and(|name| name.ends_with(&end)))
        .into_iter()
        .collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordLine {
    payload: Field<Payload>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    #[serde(rename = "type")]
    kind: Field<String>,
    name: Field<String>,
    call_id: Field<String>,
    /// The model of the turns from here on.
    model: Field<String>,
    info: Field<TokenInfo>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenInfo {
    total_token_usage: Field<Total>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Total {
    /// Includes tokens from a cache.
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    /// Includes tokens for reasoning.
    output_tokens: u64,
}

/// Reads that record.
#[derive(Default)]
pub(super) struct CodexRecord {
    /// All tokens so far.
    total: RecordedTokens,
    by_model: BTreeMap<String, RecordedTokens>,
    model: String,
    calls_tools: bool,
    /// Its events tell of a call only when the one before has ended.
    open: HashSet<String>,
    /// The last call that submits a result.
    submission: Option<String>,
    /// Whether that call has its result. It is written after all calls of the same answer.
    is_submitted: bool,
}

impl RecordParser for CodexRecord {
    fn on_line(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<RecordLine>(line) else { return };
        let Some(payload) = line.payload.known() else { return };
        if let Some(model) = payload.model.get() {
            self.model.clone_from(model);
        }
        match payload.kind.get().map(String::as_str) {
            Some("function_call_output" | "custom_tool_call_output") => {
                if let Some(id) = payload.call_id.get() {
                    self.open.remove(id);
                    self.is_submitted |= self.submission.as_ref() == Some(id);
                }
            }
            Some("function_call" | "custom_tool_call") => {
                if let Some(id) = payload.call_id.get().filter(|_| self.open.len() < MAX_OPEN) {
                    self.open.insert(id.clone());
                }
                let submits = payload.name.get().is_some_and(|name| name == Server::TOOL);
                self.calls_tools = !submits;
                if submits {
                    self.submission = payload.call_id.get().cloned();
                    self.is_submitted = false;
                }
            }
            Some("local_shell_call" | "tool_search_call" | "web_search_call") => {
                self.calls_tools = true;
            }
            // The next prompt, or what the model says.
            Some("message") => {
                self.calls_tools = false;
                self.is_submitted = false;
            }
            Some("token_count") => {
                let total = payload.info.known().and_then(|info| info.total_token_usage.known());
                if let Some(total) = total {
                    let total = RecordedTokens {
                        input: total.input_tokens,
                        output: total.output_tokens,
                        cached: total.cached_input_tokens,
                        written: total.cache_write_input_tokens,
                    };
                    let used = self.by_model.entry(self.model.clone()).or_default();
                    *used = used.plus(total.since(self.total));
                    self.total = total;
                }
            }
            _ => {}
        }
    }

    fn used_by_model(&self) -> BTreeMap<String, RecordedTokens> {
        self.by_model.clone()
    }

    fn calls_tools(&self) -> bool {
        self.calls_tools
    }

    fn has_open_calls(&self) -> bool {
        !self.open.is_empty() || !self.is_submitted
    }
}
