//! Small helpers for text that people read: counts, lists, paths, control characters.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use std::path::Path;

/// A count with its noun: `1 file`, `2 files`, `0 processes`.
///
/// The plural adds `es` to a noun that ends with `s`, and `s` to any other.
pub fn pluralize(count: usize, noun: &str) -> String {
    let ending = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// The first `limit` items, separated by commas, and the number of the others: `a, b and 3 more`.
pub fn join_limited<I>(items: I, limit: usize) -> String
where
    I: IntoIterator,
    I::Item: Display,
{
    let mut items = items.into_iter();
    let mut line = String::new();
    for (index, item) in items.by_ref().take(limit).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(line, "{separator}{item}");
    }
    let rest = items.count();
    if rest > 0 {
        let separator = if line.is_empty() { "" } else { " and " };
        let _ = write!(line, "{separator}{rest} more");
    }
    line
}

/// The first `limit` characters of a text, with an ellipsis if it is longer.
pub fn truncate(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A path on one line: bytes that are not UTF-8 are replaced, control characters are escaped, and
/// the empty path is `.`.
pub fn display_path(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    escape_control(&path.to_string_lossy())
}

/// A text with every character escaped that a terminal would obey: control characters, line and
/// paragraph separators, and characters that change the direction of the text.
pub fn escape_control(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_control(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Whether [`escape_control`] escapes a character.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// A noun with its indefinite article: `a string`, `an integer`. `null` takes none.
pub fn article(noun: &str) -> String {
    match noun.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {noun}"),
        _ if noun == "null" || noun.starts_with("null ") => noun.to_owned(),
        _ => format!("a {noun}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_plural() {
        let counts = [(1, "file"), (0, "file"), (2, "process"), (1, "process")];
        let texts = counts.map(|(count, noun)| pluralize(count, noun));
        assert_eq!(texts, ["1 file", "0 files", "2 processes", "1 process"]);
    }

    #[test]
    fn long_lists_are_cut_and_the_rest_is_counted() {
        assert_eq!(join_limited(Vec::<u8>::new(), 3), "");
        assert_eq!(join_limited([1, 2, 3], 3), "1, 2, 3");
        assert_eq!(join_limited(["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(join_limited(["a", "b"], 0), "2 more");
    }

    #[test]
    fn a_path_stays_on_its_line() {
        let path = Path::new("a b\n\u{1b}[2Jc\u{202e}é");
        assert_eq!(display_path(path), "a b\\n\\u{1b}[2Jc\\u{202e}é");
        assert_eq!(display_path(Path::new("")), ".");
    }

    #[test]
    fn truncation_counts_characters() {
        assert_eq!(truncate("äöü", 3), "äöü");
        assert_eq!(truncate("äöü", 2), "äö…");
    }

    #[test]
    fn articles_follow_the_sound() {
        let nouns = ["integer", "string", "null", "null or a string", "object"];
        let texts = nouns.map(article);
        assert_eq!(texts, ["an integer", "a string", "null", "null or a string", "an object"]);
    }
}
