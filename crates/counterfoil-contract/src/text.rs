//! Small helpers for text that people read: counts, lists, paths, control characters.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use std::path::Path;
use std::time::Duration;

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

/// The first `limit` items, separated by commas, and the number of the others: `a, b and 3 more`. A
/// single item more is shown, because its name says more than its number.
pub fn join_limited<I>(items: I, limit: usize) -> String
where
    I: IntoIterator,
    I::Item: Display,
{
    let mut items = items.into_iter();
    let mut line = String::new();
    let mut add = |item: I::Item| {
        let separator = if line.is_empty() { "" } else { ", " };
        let _ = write!(line, "{separator}{item}");
    };
    items.by_ref().take(limit).for_each(&mut add);
    let Some(next) = items.next() else { return line };
    let rest = 1 + items.count();
    if rest == 1 {
        add(next);
    } else {
        let separator = if line.is_empty() { "" } else { " and " };
        let _ = write!(line, "{separator}{rest} more");
    }
    line
}

/// Values on one line, separated by commas, each as a [`listed_value`].
pub fn list_values(values: &[String]) -> String {
    values.iter().map(|value| listed_value(value)).collect::<Vec<_>>().join(", ")
}

/// A value as it stands between others on a line: in quotes, as in JSON, if a reader could not see
/// where it ends, as `a, b` or the empty text.
pub fn listed_value(value: &str) -> Cow<'_, str> {
    let separates = |c: char| c.is_whitespace() || ",;|[]\"'`".contains(c);
    if value.is_empty() || value.contains(separates) {
        return Cow::Owned(serde_json::Value::from(value).to_string());
    }
    Cow::Borrowed(value)
}

/// The first `limit` characters of a text, with an ellipsis if it is longer.
pub fn truncate(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A duration with the units that matter: `12 ms`, `3 s`, `3.4 s`, `2 min 5 s`, `1 h 40 min`.
pub fn duration(time: Duration) -> String {
    let ms = time.as_millis();
    let (minutes, seconds, tenths) = (ms / 60_000, ms / 1000 % 60, ms / 100 % 10);
    match (minutes, seconds, tenths) {
        (0, 0, _) => format!("{ms} ms"),
        (0, _, 0) => format!("{seconds} s"),
        (0, ..) => format!("{seconds}.{tenths} s"),
        (1..60, 0, _) => format!("{minutes} min"),
        (1..60, ..) => format!("{minutes} min {seconds} s"),
        _ if minutes % 60 == 0 => format!("{} h", minutes / 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// A path on one line: bytes that are not UTF-8 are replaced, unsafe characters are escaped, and
/// the empty path is `.`.
pub fn display_path(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    escape_control(&path.to_string_lossy())
}

/// A text on one line, with every unsafe character escaped: [`neutralize`] for [`Form::Line`].
pub fn escape_control(text: &str) -> String {
    neutralize(text, Form::Line).into_owned()
}

/// A message that may quote names and have further lines of its own, which are indented: every other
/// line feed is escaped, as it is part of a name.
pub fn escape_names(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for (index, line) in message.trim_end().split('\n').enumerate() {
        out.push_str(match index {
            0 => "",
            _ if line.starts_with("  ") => "\n",
            _ => "\\n",
        });
        out.push_str(&escape_control(line));
    }
    out
}

/// A message of several lines as [`escape_names`] keeps it: all lines but the first are indented.
pub fn indent_further(message: &str) -> String {
    message.trim_end().replace('\n', "\n  ")
}

/// What a text is part of, which decides how [`neutralize`] writes an unsafe character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text of several lines: `\u{1b}`. Line feeds, tabs, and carriage returns at the end of a line
    /// stay.
    Text,
    /// Text on one line: `\u{1b}`, `\n`, `\t`.
    Line,
    /// A serialized JSON document: `\u001b`, so that it has the same value. Whatever stands between
    /// its strings stays.
    Json,
    /// A serialized XML document: `&#x9b;`, so that it has the same value. What XML cannot contain
    /// at all is written as in text.
    Xml,
}

/// Escapes every character by which a text could change what a terminal or a viewer shows of it:
/// see [`is_unsafe`]. Everything that the program prints goes through this function, so that what
/// agents, files and file names contain is shown rather than obeyed.
///
/// Backslashes stay as they are. So the function changes nothing if it is applied again, and a text
/// that contains `\u{1b}` in letters looks like an escaped one.
pub fn neutralize(text: &str, form: Form) -> Cow<'_, str> {
    let Some(first) = text.find(|character| is_affected(character, form)) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    let mut characters = text[first..].chars().peekable();
    while let Some(character) = characters.next() {
        let ends_line = character == '\r' && form != Form::Line && characters.peek() == Some(&'\n');
        if !is_affected(character, form) || ends_line {
            out.push(character);
            continue;
        }
        match form {
            Form::Json => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            Form::Xml if character >= '\u{7f}' => {
                let _ = write!(out, "&#x{:x};", u32::from(character));
            }
            Form::Text | Form::Line | Form::Xml => out.extend(character.escape_default()),
        }
    }
    Cow::Owned(out)
}

fn is_affected(character: char, form: Form) -> bool {
    is_unsafe(character) || (form == Form::Line && matches!(character, '\n' | '\t'))
}

/// Whether a character could change what is shown of the text around it:
///
/// - control characters (C0, DEL, C1), except line feed and tab;
/// - characters that change the direction of the text, and other invisible controls of its layout;
/// - separators of lines and paragraphs;
/// - tag characters, which are invisible and can spell out any ASCII text.
pub fn is_unsafe(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
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
        assert_eq!(join_limited(["a", "b", "c"], 2), "a, b, c");
        assert_eq!(join_limited(["a", "b"], 0), "2 more");
    }

    #[test]
    fn listed_values_show_where_they_end() {
        let values = ["low", "a/b-c_d:1", "as it is", "a,b", "", "kim's", "say \"x\"", "a\nb"];
        let shown = r#"low, a/b-c_d:1, "as it is", "a,b", "", "kim's", "say \"x\"", "a\nb""#;
        assert_eq!(list_values(&values.map(str::to_owned)), shown);
    }

    #[test]
    fn a_duration_has_the_units_that_matter() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_099, "1 s"),
            (1_100, "1.1 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (3_660_000, "1 h 1 min"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn a_path_stays_on_its_line() {
        let path = Path::new("a b\n\u{1b}[2Jc\u{202e}é");
        assert_eq!(display_path(path), "a b\\n\\u{1b}[2Jc\\u{202e}é");
        assert_eq!(display_path(Path::new("")), ".");
    }

    #[test]
    fn only_indented_lines_of_a_message_stay() {
        let message = "a.yaml does not load\n  C0404 at x\ny: no\n      a\n      ^\n";
        let shown = "a.yaml does not load\n  C0404 at x\\ny: no\n      a\n      ^";
        assert_eq!(escape_names(message), shown);
        assert_eq!(escape_names("`x\n::error::y`"), "`x\\n::error::y`");
        let of_a_parser = indent_further("error at line 1\n  |\n1 | x\nduplicate key\n");
        assert_eq!(of_a_parser, "error at line 1\n    |\n  1 | x\n  duplicate key");
        assert_eq!(escape_names(&of_a_parser), of_a_parser);
    }

    #[test]
    fn unsafe_characters_are_escaped_in_the_form_of_the_text() {
        // The character, in text and on a line, in JSON, in XML.
        let rows = [
            ('\0', r"\u{0}", r"\u0000", r"\u{0}"),
            ('\u{7}', r"\u{7}", r"\u0007", r"\u{7}"),
            ('\u{b}', r"\u{b}", r"\u000b", r"\u{b}"),
            ('\r', r"\r", r"\u000d", r"\r"),
            ('\u{1b}', r"\u{1b}", r"\u001b", r"\u{1b}"),
            ('\u{7f}', r"\u{7f}", r"\u007f", "&#x7f;"),
            ('\u{80}', r"\u{80}", r"\u0080", "&#x80;"),
            ('\u{85}', r"\u{85}", r"\u0085", "&#x85;"),
            ('\u{9b}', r"\u{9b}", r"\u009b", "&#x9b;"),
            ('\u{9f}', r"\u{9f}", r"\u009f", "&#x9f;"),
            ('\u{61c}', r"\u{61c}", r"\u061c", "&#x61c;"),
            ('\u{200e}', r"\u{200e}", r"\u200e", "&#x200e;"),
            ('\u{200f}', r"\u{200f}", r"\u200f", "&#x200f;"),
            ('\u{2028}', r"\u{2028}", r"\u2028", "&#x2028;"),
            ('\u{2029}', r"\u{2029}", r"\u2029", "&#x2029;"),
            ('\u{202a}', r"\u{202a}", r"\u202a", "&#x202a;"),
            ('\u{202e}', r"\u{202e}", r"\u202e", "&#x202e;"),
            ('\u{2066}', r"\u{2066}", r"\u2066", "&#x2066;"),
            ('\u{2069}', r"\u{2069}", r"\u2069", "&#x2069;"),
            ('\u{e0000}', r"\u{e0000}", r"\udb40\udc00", "&#xe0000;"),
            ('\u{e0041}', r"\u{e0041}", r"\udb40\udc41", "&#xe0041;"),
            ('\u{e007f}', r"\u{e007f}", r"\udb40\udc7f", "&#xe007f;"),
        ];
        for (character, text, json, xml) in rows {
            let forms =
                [(Form::Text, text), (Form::Line, text), (Form::Json, json), (Form::Xml, xml)];
            for (form, escaped) in forms {
                let around = format!("é{character}x");
                assert_eq!(neutralize(&around, form), format!("é{escaped}x"), "{form:?}");
            }
        }
    }

    #[test]
    fn other_characters_stay_and_nothing_is_escaped_twice() {
        let text = "a\tb\r\nc \\u{1b} é 👩\u{200d}👧 \u{a0}\u{ad}\u{feff}\n";
        for form in [Form::Text, Form::Json, Form::Xml] {
            assert_eq!(neutralize(text, form), text, "{form:?}");
        }
        assert_eq!(neutralize("a\tb\r\nc", Form::Line), r"a\tb\r\nc");
        let once = neutralize("\u{1b}[2J\u{202e}\u{e0041}", Form::Text).into_owned();
        assert_eq!(neutralize(&once, Form::Text), once);
    }

    #[test]
    fn json_keeps_its_value() {
        let all: String = ('\0'..='\u{e01ff}').filter(|c| is_unsafe(*c)).collect();
        let value = serde_json::json!({ &all: [&all, "\n\t"] });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = neutralize(&text, Form::Json);
        assert!(!safe.contains(is_unsafe));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
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
