//! Panics of Rust that are caught and not passed on.

use super::super::parse::{Language, children, node_bytes};
use super::{Handling, Reader};
use memchr::memmem;
use std::collections::HashMap;
use tree_sitter::Node;

/// The maximum length of code that is searched for what passes a panic on.
const MAX_LENGTH: usize = 5_000;

/// The maximum length of all code of a test that is searched for what reads a result.
pub(super) const MAX_SEARCHED: usize = 8 << 20;

/// Words by which code after a caught panic may fail the test.
const FAILS: [&[u8]; 8] =
    [b"panic", b"unwind", b"assert", b"unreachable", b"unwrap", b"expect", b"abort", b"?"];

/// What a result is asked for, after its name.
const FAILED: [&[u8]; 2] = [b".is_err()", b".join().is_err()"];

impl<'s> Reader<'_, 's> {
    /// Whether nothing reads the result of code that may have panicked, but for whether it did: no
    /// use after the statement that keeps it.
    pub(super) fn is_kept_in_vain(&self, statement: Node<'_>, name: &str) -> bool {
        let from = statement.end_byte();
        let end = statement.parent().map_or(from, |block| block.byte_range().end);
        let rest = self.text.get(from..end).unwrap_or_default();
        let within = &rest[..rest.len().min(self.searchable.get())];
        let mut reached = within.len();
        let is_in_vain = memmem::find_iter(within, name.as_bytes()).all(|at| {
            let (before, after) = (&rest[..at], &rest[at + name.len()..]);
            let is_in_vain = is_word(before.last())
                || is_word(after.first())
                || after.starts_with(b".join().ok();")
                || (after.starts_with(b".join();") && is_dropped(before))
                || FAILED.iter().any(|asked| {
                    after.strip_prefix(*asked).is_some_and(|after| {
                        self.may_search(2 * MAX_LENGTH) && !passes_on(before, after)
                    })
                });
            reached = if is_in_vain { reached } else { at };
            is_in_vain
        });
        self.may_search(reached) && is_in_vain && within.len() == rest.len()
    }

    /// Takes from what may be searched. Many results that are kept in a long test would be quadratic.
    fn may_search(&self, length: usize) -> bool {
        let left = self.searchable.get().checked_sub(length);
        self.searchable.set(left.unwrap_or_default());
        left.is_some()
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
            && !may_fail(rest)
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
        let end = code.iter().position(|byte| !is_word(Some(byte))).unwrap_or(code.len());
        let (name, rest) = code.split_at(end);
        caught.contains_key(name) && FAILED.iter().any(|asked| rest.starts_with(asked))
    }
}

fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Whether code may fail the test. A `return` without a value does not.
fn may_fail(code: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(code, word).is_some();
    let returns = |at: usize| {
        let value = code[at + b"return".len()..].trim_ascii_start();
        !value.is_empty() && !value.starts_with(b";") && !value.starts_with(b"}")
    };
    FAILS.iter().any(|word| has(word)) || memmem::find_iter(code, b"return").any(returns)
}

/// Whether a statement that asks whether code panicked fails the test if it did, or keeps the answer
/// for one that does. `before` and `after` are around the question.
fn passes_on(before: &[u8], after: &[u8]) -> bool {
    let before = &before[before.len().saturating_sub(MAX_LENGTH)..];
    let after = &after[..after.len().min(MAX_LENGTH)];
    let start = before.iter().rposition(|byte| b";{}".contains(byte)).map_or(0, |at| at + 1);
    let head = before[start..].trim_ascii();
    let has_word = |text: &[u8], word: &[u8]| {
        memmem::find_iter(text, word).any(|at| {
            let is_inside = at.checked_sub(1).is_some_and(|at| is_word(text.get(at)));
            !is_inside && !is_word(text.get(at + word.len()))
        })
    };
    let part = head.rsplit(|byte| b"(, \n\t".contains(byte)).find(|part| !part.is_empty());
    let end = after.iter().position(|byte| b",);{".contains(byte)).unwrap_or(after.len());
    let is_compared = |with: &[u8]| memmem::find(&after[..end], with).is_some();
    let is_negated = part.is_some_and(|part| part.starts_with(b"!"))
        != (is_compared(b"== false") || is_compared(b"!= true"));
    let is_in = |text: &[u8]| memmem::find(head, text).is_some();
    if is_in(b"assert_eq!") || is_in(b"assert_ne!") {
        let end = after.iter().position(|byte| *byte == b';').unwrap_or(after.len());
        let says = |word: &[u8]| has_word(head, word) || has_word(&after[..end], word);
        // What is compared with something else is read.
        return match (says(b"true"), says(b"false")) {
            (is_true, is_false) if is_true != is_false => {
                (is_true == is_negated) == is_in(b"assert_eq!")
            }
            _ => true,
        };
    }
    if is_in(b"assert!") {
        return is_negated;
    }
    let (first, rest) = block(after);
    if has_word(head, b"if") || has_word(head, b"while") {
        let second = rest.trim_ascii_start().strip_prefix(b"else");
        let second = second.map_or(b"".as_slice(), |rest| block(rest).0);
        let (failed, passed) = if is_negated { (second, first) } else { (first, second) };
        // What comes later may fail, too, if only what passed ends here.
        return may_fail(failed) || counts(failed) || (is_negated && !may_fail(passed));
    }
    let is_kept = head.ends_with(b"=") && !head.starts_with(b"let _")
        || is_in(b".push(")
        || has_word(head, b"return");
    let end = after.iter().position(|byte| b";{".contains(byte)).unwrap_or(after.len());
    is_kept || is_negated || may_fail(&after[..end]) || may_fail(first)
}

/// Whether code counts failures: a harness of the project looks at their number later.
fn counts(code: &[u8]) -> bool {
    memmem::find(code, b"+=").is_some() || memmem::find(code, b".push(").is_some()
}

/// The first block in code, and what is after it.
fn block(code: &[u8]) -> (&[u8], &[u8]) {
    let mut depth = 0_usize;
    for (at, byte) in code.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return (&code[..at], &code[at + 1..]),
            b'}' => depth -= 1,
            // A statement without a block.
            b';' if depth == 0 => return (b"", b""),
            _ => {}
        }
    }
    (code, b"")
}

/// Whether the value of an expression after this text is dropped.
fn is_dropped(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    before.ends_with(b"let _ =") || before.last().is_none_or(|byte| b";{}".contains(byte))
}
