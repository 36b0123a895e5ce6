//! Repairs as edits of the text: each says which bytes are replaced by what. Applying the recorded
//! edits to the raw text gives the strict JSON that was parsed, so every repair can be reproduced.

use crate::work;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use strum::IntoStaticStr;

/// The kind of a repair in a text that a strict parser cannot read.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum RepairKind {
    /// A comma before a closing bracket was removed.
    TrailingComma,
    /// A comma between two elements was inserted.
    MissingComma,
    /// One of two commas in a row between members of an object was removed.
    ExtraComma,
    /// Single quotes became double quotes.
    SingleQuotes,
    /// Typographic quotes became double quotes.
    SmartQuotes,
    /// Triple quotes became double quotes.
    TripleQuotes,
    /// A key without quotes was quoted.
    BareKey,
    /// A word without quotes was quoted.
    BareValue,
    /// A comment was removed.
    Comment,
    /// `True`, `False` or `None` became its JSON form.
    PythonLiteral,
    /// A line break inside a string was escaped.
    RawNewline,
    /// A control character inside a string was escaped.
    RawControl,
    /// A quote inside a string was escaped.
    UnescapedQuote,
    /// A backslash that begins no JSON escape was escaped.
    BadEscape,
    /// A closing bracket was inserted.
    MissingCloser,
    /// A string that the text cut off was closed.
    TruncatedString,
    /// A terminal colour code between tokens was removed.
    AnsiCode,
    /// The `>` of a Markdown quote was removed. Part of the framing, not a repair of the JSON.
    QuotePrefix,
}

impl RepairKind {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One replacement in the raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What kind of repair this is part of.
    pub kind: RepairKind,
    /// The first byte replaced, as an offset of the whole text.
    pub start: usize,
    /// The end of the bytes replaced (exclusive); equal to `start` for an insertion.
    pub end: usize,
    /// The text that replaces them.
    pub replacement: Cow<'static, str>,
}

/// The edits of a text that needs none.
pub(crate) const NO_EDITS: &[Edit] = &[];

/// Sorts edits by position and drops those behind the end of the candidate, which a truncated value
/// can leave. Insertions at one position keep their order.
pub(crate) fn sort_edits(edits: &mut Vec<Edit>, end: usize) {
    edits.retain(|edit| edit.end <= end);
    edits.sort_by_key(|edit| (edit.start, edit.end));
}

/// Applies edits, sorted by position and not overlapping, to `text`, whose first byte has offset
/// `base`.
pub fn apply(text: &str, base: usize, edits: &[Edit]) -> String {
    work::count_text(text.len());
    work::count(edits.len());
    let mut out = String::with_capacity(text.len() + edits.len() * 2);
    let mut at = 0;
    for edit in edits {
        let start = (edit.start - base).max(at);
        out.push_str(text.get(at..start).unwrap_or(""));
        out.push_str(&edit.replacement);
        at = (edit.end - base).max(start);
    }
    out.push_str(text.get(at..).unwrap_or(""));
    out
}

/// Maps offsets of an edited text back to offsets of the raw text.
#[derive(Clone, Debug)]
pub(crate) struct OffsetMap {
    /// Pieces in order: where the piece starts in the edited text, where in the raw text, and
    /// whether the piece was replaced (its inner offsets have no counterpart).
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    edited: usize,
    raw: usize,
    raw_end: usize,
    replaced: bool,
}

impl OffsetMap {
    /// The map of a text that was not edited.
    pub(crate) fn identity(base: usize) -> Self {
        Self { pieces: vec![Piece { edited: 0, raw: base, raw_end: usize::MAX, replaced: false }] }
    }

    /// The map of [`apply`] for the same arguments.
    pub(crate) fn from_edits(base: usize, edits: &[Edit]) -> Self {
        let mut pieces = Vec::with_capacity(edits.len() * 2 + 1);
        let (mut edited, mut raw) = (0, base);
        for edit in edits {
            let start = edit.start.max(raw);
            if start > raw {
                pieces.push(Piece { edited, raw, raw_end: start, replaced: false });
                edited += start - raw;
            }
            let end = edit.end.max(start);
            pieces.push(Piece { edited, raw: start, raw_end: end, replaced: true });
            edited += edit.replacement.len();
            raw = end;
        }
        pieces.push(Piece { edited, raw, raw_end: usize::MAX, replaced: false });
        Self { pieces }
    }

    /// The raw range of an edited range.
    pub(crate) fn range(&self, start: usize, end: usize) -> (usize, usize) {
        let raw_start = self.start(start);
        (raw_start, self.end(end).max(raw_start))
    }

    fn start(&self, at: usize) -> usize {
        // The last piece that begins at or before `at` and is not an empty one that ends there.
        let index = self.pieces.partition_point(|piece| piece.edited <= at).saturating_sub(1);
        let piece = self.pieces[index];
        if !piece.replaced {
            return piece.raw + (at - piece.edited);
        }
        piece.raw
    }

    fn end(&self, at: usize) -> usize {
        // The first piece that reaches `at`.
        let index = self.pieces.partition_point(|piece| piece.edited < at).saturating_sub(1);
        let piece = self.pieces[index];
        if piece.replaced {
            piece.raw_end
        } else {
            (piece.raw + (at - piece.edited)).min(piece.raw_end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, replacement: &'static str) -> Edit {
        Edit { kind: RepairKind::Comment, start, end, replacement: replacement.into() }
    }

    #[test]
    fn applied_edits_map_back_to_their_places() {
        // raw, from offset 10: {'a': 1,}
        let edits = [edit(11, 12, "\""), edit(13, 14, "\""), edit(17, 18, "")];
        assert_eq!(apply("{'a': 1,}", 10, &edits), r#"{"a": 1}"#);
        let map = OffsetMap::from_edits(10, &edits);
        assert_eq!(map.range(0, 8), (10, 19), "the object");
        assert_eq!(map.range(1, 4), (11, 14), "the key with its quotes");
        assert_eq!(map.range(6, 7), (16, 17), "the number");
    }

    #[test]
    fn an_inserted_closer_ends_where_the_text_ends() {
        let edits = [edit(4, 4, "\""), edit(4, 4, "]")];
        assert_eq!(apply("[\"ab", 0, &edits), "[\"ab\"]");
        let map = OffsetMap::from_edits(0, &edits);
        assert_eq!(map.range(0, 6), (0, 4));
        assert_eq!(map.range(1, 5), (1, 4));
    }
}
