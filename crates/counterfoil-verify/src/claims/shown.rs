//! How paths and lists are shown: long ones cut, with what was left out counted; nothing that a
//! terminal would obey.

use serde_json::Value;
use std::path::Path;

/// Items of a list that stand in a report.
pub(super) const MOST: usize = 50;
/// Items that stand in a sentence.
const FEW: usize = 10;
/// Characters of one item.
const LONGEST: usize = 240;

/// A list, cut.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> Value {
    let mut items = items.into_iter();
    let mut shown: Vec<Value> = items.by_ref().take(MOST).map(Value::String).collect();
    let left = items.count();
    if left > 0 {
        shown.push(format!("… and {left} more").into());
    }
    Value::Array(shown)
}

/// A list in a sentence, cut.
pub(super) fn few<S: AsRef<str>>(items: &[S]) -> String {
    let mut text =
        items.iter().take(FEW).map(|item| plain(item.as_ref())).collect::<Vec<_>>().join(", ");
    if items.len() > FEW {
        text.push_str(&format!(" and {} more", items.len() - FEW));
    }
    text
}

/// A path as text.
pub(super) fn path(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { plain(&path.to_string_lossy()) }
}

/// A text without what a terminal or a table would trip over: control characters are escaped, and a
/// blank at either end is made visible by quotes.
pub(super) fn plain(text: &str) -> String {
    let odd = text.is_empty()
        || text.trim() != text
        || text.chars().any(|c| c.is_control() || is_bidi(c));
    let cut = cut(text, LONGEST);
    if !odd {
        return cut;
    }
    let escaped: String = cut
        .chars()
        .map(|c| {
            if c.is_control() || is_bidi(c) {
                c.escape_default().to_string()
            } else {
                c.to_string()
            }
        })
        .collect();
    format!("\"{escaped}\"")
}

/// Characters that turn the direction of what follows, and so what a reader sees.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a long text.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A time in seconds.
pub(super) fn seconds(time: std::time::Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// A number of things: `1 file`, `2 files`, `2 processes`.
pub(super) fn number(count: usize, one: &str) -> String {
    let ending = match (count, one.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_and_what_is_left_out_is_counted() {
        let shown = list((0..53).map(|n| n.to_string()));
        assert_eq!(shown.as_array().unwrap().len(), 51);
        assert_eq!(shown[50], "… and 3 more");
        assert_eq!(few(&["a"; 12]), format!("{} and 2 more", ["a"; 10].join(", ")));
    }

    #[test]
    fn a_terminal_obeys_nothing_that_is_shown() {
        assert_eq!(plain("a\u{1b}[31m\nb"), "\"a\\u{1b}[31m\\nb\"");
        assert_eq!(plain("a\u{202e}cod.exe"), "\"a\\u{202e}cod.exe\"");
        assert_eq!(plain(" a"), "\" a\"");
        assert_eq!(plain("naïve name.rs"), "naïve name.rs");
        assert_eq!(plain(&"é".repeat(300)).chars().count(), LONGEST + 1);
    }
}
