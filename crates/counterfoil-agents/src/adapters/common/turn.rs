//! What a turn of an agent has said and called so far.

use crate::adapters::Server;
use std::collections::VecDeque;

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
    /// The open calls: their ids and tools.
    open: Vec<(String, String)>,
    calls: u64,
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
        let is_known = |id: &str| self.open.iter().any(|(known, _)| known == id);
        if let Some(id) = id.filter(|id| self.open.len() < MAX_OPEN_CALLS && !is_known(id)) {
            self.open.push((id.to_owned(), tool.to_owned()));
            self.calls += 1;
        }
        let is_foreign = !tool.ends_with(Server::TOOL);
        if is_foreign {
            self.forget();
        }
        is_foreign
    }

    /// A call has a result.
    pub(crate) fn result(&mut self, id: &str) {
        self.open.retain(|(open, _)| open != id);
    }

    /// The number of calls so far, and the tool that runs, if one does.
    pub(crate) fn progress(&self) -> (u64, Option<&str>) {
        (self.calls, self.open.last().map(|(_, tool)| tool.as_str()))
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
