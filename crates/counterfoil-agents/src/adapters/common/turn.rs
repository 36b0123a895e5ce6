//! What a turn of an agent has said and called so far.

use crate::adapters::Server;
use std::collections::{HashSet, VecDeque};

/// The most bytes of messages that are kept.
const MAX_BYTES: usize = 16 << 20;
/// The most open calls that are remembered.
const MAX_OPEN_CALLS: usize = 1024;

/// The messages of a turn before its last one, and its open tool calls. A message before a call of a
/// tool that is not ours is forgotten: what it says was said before the work was done.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    messages: VecDeque<String>,
    bytes: usize,
    open: HashSet<String>,
}

impl Turn {
    /// A message is followed by another one.
    pub(crate) fn message(&mut self, text: String) {
        if text.trim().is_empty() {
            return;
        }
        self.bytes += text.len();
        self.messages.push_back(text);
        while self.bytes > MAX_BYTES {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// A tool is called. Returns whether it is one of others, so that the message before it does not
    /// count either.
    pub(crate) fn call(&mut self, tool: &str, id: Option<&str>) -> bool {
        if let Some(id) = id.filter(|_| self.open.len() < MAX_OPEN_CALLS) {
            self.open.insert(id.to_owned());
        }
        let is_foreign = !tool.ends_with(Server::TOOL);
        if is_foreign {
            self.forget();
        }
        is_foreign
    }

    /// A call has a result.
    pub(crate) fn result(&mut self, id: &str) {
        self.open.remove(id);
    }

    /// Whether a tool call has no result yet.
    pub(crate) fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    /// Forgets the messages.
    pub(crate) fn forget(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }

    /// The messages before the last one, in order.
    pub(crate) fn into_messages(self) -> Vec<String> {
        self.messages.into()
    }
}
