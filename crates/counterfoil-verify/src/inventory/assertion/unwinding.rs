//! Panics of Rust that are caught and not passed on.

use super::super::parse::{Language, children, node_bytes};
use super::{Handling, Reader};
use memchr::memmem;
use std::collections::HashMap;
use tree_sitter::Node;

/// The maximum length of code that is searched for what passes a panic on.
const MAX_LENGTH: usize = 5_000;

/// Words by which code after a caught panic may fail the test.
const FAILS: [&[u8]; 8] =
    [b"panic", b"unwind", b"assert", b"unreachable", b"unwrap", b"expect", b"return", b"?"];

impl<'s> Reader<'_, 's> {
    /// Whether nothing reads the result of code that may have panicked, but for whether it did: no
    /// use after the statement that keeps it.
    pub(super) fn is_kept_in_vain(&self, statement: Node<'_>, name: &str) -> bool {
        let from = statement.end_byte();
        let end = statement.parent().map_or(from, |block| block.byte_range().end);
        let rest = self.text.get(from..end).unwrap_or_default();
        let is_word = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        memmem::find_iter(rest, name.as_bytes()).all(|at| {
            let (before, after) = (&rest[..at], &rest[at + name.len()..]);
            is_word(before.last())
                || is_word(after.first())
                || after.starts_with(b".is_err()")
                || after.starts_with(b".join().is_err()")
                || after.starts_with(b".join().ok();")
                || (after.starts_with(b".join();") && is_dropped(before))
        })
    }

    /// Whether a branch depends on a panic and does not pass it on: `if catch_unwind(…).is_err() {}`.
    pub(in super::super) fn discards_in_condition(&self, node: Node<'_>) -> bool {
        if self.language != Language::Rust {
            return false;
        }
        let head = node.child_by_field_name("condition").or(node.child_by_field_name("value"));
        let Some(head) = head else { return false };
        let code = node_bytes(head, self.text);
        let rest = self.text.get(head.end_byte()..node.end_byte()).unwrap_or_default();
        code.len() < MAX_LENGTH
            && rest.len() < MAX_LENGTH
            && memmem::find(code, b"catch_unwind").is_some()
            && !FAILS.iter().any(|word| memmem::find(rest, word).is_some())
    }

    /// Whether an assertion says that code with an assertion panicked: `assert!(result.is_err())`.
    pub(in super::super) fn asserts_failure(
        &self,
        invocation: Node<'_>,
        caught: &HashMap<&'s [u8], Handling>,
    ) -> bool {
        if caught.is_empty() || self.language != Language::Rust {
            return false;
        }
        let tree = children(invocation).into_iter().find(|child| child.kind() == "token_tree");
        let Some(tree) = tree else { return false };
        let code = node_bytes(tree, self.text).get(1..).unwrap_or_default().trim_ascii_start();
        caught
            .keys()
            .any(|name| code.strip_prefix(*name).is_some_and(|rest| rest.starts_with(b".is_err()")))
    }
}

/// Whether the value of an expression after this text is dropped.
fn is_dropped(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    before.ends_with(b"let _ =") || before.last().is_none_or(|byte| b";{}".contains(byte))
}
