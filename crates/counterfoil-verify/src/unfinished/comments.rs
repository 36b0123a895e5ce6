//! Comments that put work off.

use super::{File, Unfinished, UnfinishedKind};
use tree_sitter::Node;

/// Marks, as whole words in this spelling.
const MARKS: [&str; 2] = ["TODO", "FIXME"];
/// Marks in any case, at the beginning of a comment and before a colon.
const LABELS: [&str; 3] = ["todo", "fixme", "stub"];
/// What follows the word where it names something: a list of things to do.
const THINGS: [&str; 30] = [
    "app",
    "apps",
    "are",
    "card",
    "cards",
    "component",
    "count",
    "entries",
    "entry",
    "form",
    "has",
    "id",
    "ids",
    "is",
    "item",
    "items",
    "list",
    "lists",
    "manager",
    "model",
    "mvc",
    "object",
    "page",
    "service",
    "state",
    "store",
    "text",
    "title",
    "type",
    "view",
];
/// Phrases in any case.
const PHRASES: [&str; 8] = [
    "for now",
    "not implemented yet",
    "not yet implemented",
    "placeholder implementation",
    "in a real implementation",
    "would be implemented",
    "left as an exercise",
    "implement this later",
];

/// The comment, if it puts work off.
pub(super) fn read(node: Node<'_>, file: &File<'_>) -> Option<Unfinished> {
    puts_off(file.text_of(node)).then(|| file.place(UnfinishedKind::Comment, node, ""))
}

fn puts_off(comment: &str) -> bool {
    let has_mark = MARKS.iter().any(|mark| has_word(comment, mark));
    if has_mark {
        return true;
    }
    let lower = comment.to_lowercase();
    // A phrase may continue on the next line.
    let words: Vec<&str> = lower
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let text = words.join(" ");
    let start = lower.trim_start_matches(|character: char| !character.is_alphanumeric());
    let has_label = LABELS
        .iter()
        .any(|label| start.strip_prefix(label).is_some_and(|rest| rest.starts_with([':', '('])));
    let is_alone = ["todo", "fixme"].iter().any(|mark| {
        start.strip_prefix(mark).is_some_and(|rest| {
            let next = rest.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
            !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
                && !next.is_some_and(|next| THINGS.contains(&next))
        })
    });
    has_label || is_alone || PHRASES.iter().any(|phrase| has_word(&text, phrase))
}

/// Whether a text has these words, and not as a part of other words.
fn has_word(text: &str, words: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(words).any(|(at, found)| {
        !text[..at].ends_with(is_part) && !text[at + found.len()..].starts_with(is_part)
    })
}
