//! States in which the engine does something itself: reads a file, looks at what changed, commits.

use super::read::Reader;
use super::state::FLOW_KEYS;
use super::{ChangesDraft, CommitDraft, KindDraft, ReadDraft};
use crate::finding::Code;
use crate::tree::{Kind, Node};

impl<'n> Reader<'n> {
    pub(super) fn read(&mut self, node: &'n Node, what: &str) -> KindDraft<'n> {
        let entries = self.known(node, what, &[&["read", "contract"], FLOW_KEYS]);
        let contract = self.pick_name(&entries, "contract");
        match self.pick_name(&entries, "read") {
            Some(path) => KindDraft::Read(ReadDraft { path, contract }),
            None => KindDraft::Unclear,
        }
    }

    pub(super) fn changes(&mut self, node: &'n Node, what: &str) -> KindDraft<'n> {
        let entries = self.known(node, what, &[&["changes"], FLOW_KEYS]);
        let Some(inner) = Self::pick(&entries, "changes") else { return KindDraft::Unclear };
        let entries = self.known(inner, "`changes`", &[&["since", "split"]]);
        KindDraft::Changes(ChangesDraft {
            since: Self::pick(&entries, "since"),
            split: Self::pick(&entries, "split"),
        })
    }

    pub(super) fn commit(&mut self, node: &'n Node, what: &str) -> KindDraft<'n> {
        let outer = self.known(node, what, &[&["commit", "timeout"], FLOW_KEYS]);
        let Some(inner) = Self::pick(&outer, "commit") else { return KindDraft::Unclear };
        let entries = self.known(inner, "`commit`", &[&["message", "paths"]]);
        if Self::pick(&entries, "message").is_none()
            && matches!(inner.kind, Kind::Map(_) | Kind::Null)
        {
            let hint = "write commit: { message: \"feat: …\" }";
            self.report(Code::MissingKey, inner, "the commit has no message", hint);
        }
        match self.pick_name(&entries, "message") {
            Some(message) => KindDraft::Commit(CommitDraft {
                message,
                paths: Self::pick(&entries, "paths"),
                timeout: Self::pick(&outer, "timeout"),
            }),
            None => KindDraft::Unclear,
        }
    }
}
