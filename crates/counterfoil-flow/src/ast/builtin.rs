//! Parses the states that the engine performs itself: `read`, `changes` and `commit`.

use super::reader::{Reader, has_unknown};
use super::state::ROUTING_KEYS;
use super::{ChangesStep, CommitStep, ReadStep, StateKind};
use crate::finding::Code;
use crate::yaml_tree::{Kind, Node};

impl<'n> Reader<'n> {
    pub(super) fn read_step(&mut self, node: &'n Node, what: &str) -> StateKind<'n> {
        let entries = self.known_entries(node, what, &[&["read", "contract"], ROUTING_KEYS]);
        let contract = self.get_string(&entries, "contract");
        match self.get_string(&entries, "read") {
            Some(path) => StateKind::Read(ReadStep { path, contract }),
            None => StateKind::Invalid,
        }
    }

    pub(super) fn changes_step(&mut self, node: &'n Node, what: &str) -> StateKind<'n> {
        let entries = self.known_entries(node, what, &[&["changes"], ROUTING_KEYS]);
        let Some(inner) = Self::get(&entries, "changes") else { return StateKind::Invalid };
        let entries = self.known_entries(inner, "`changes`", &[&["since", "split"]]);
        StateKind::Changes(ChangesStep {
            since: Self::get(&entries, "since"),
            split: Self::get(&entries, "split"),
        })
    }

    pub(super) fn commit_step(&mut self, node: &'n Node, what: &str) -> StateKind<'n> {
        const KEYS: &[&[&str]] = &[&["message", "paths"]];
        let outer = self.known_entries(node, what, &[&["commit", "timeout"], ROUTING_KEYS]);
        let Some(inner) = Self::get(&outer, "commit") else { return StateKind::Invalid };
        let entries = self.known_entries(inner, "`commit`", KEYS);
        if Self::get(&entries, "message").is_none()
            && !has_unknown(&entries, KEYS)
            && matches!(inner.kind, Kind::Map(_) | Kind::Null)
        {
            let hint = "write commit: { message: \"feat: …\" }";
            self.report(Code::MissingKey, inner, "the commit has no message", hint);
        }
        match self.get_string(&entries, "message") {
            Some(message) => StateKind::Commit(CommitStep {
                message,
                paths: Self::get(&entries, "paths"),
                timeout: Self::get(&outer, "timeout"),
            }),
            None => StateKind::Invalid,
        }
    }
}
