//! Small words for what people read: paths, counts, lists that are cut.

use std::path::Path;

/// A path as text in one line: what is no text is replaced, what would move the cursor is escaped.
pub(crate) fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

/// A text in one line, with whatever would move the cursor escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// `1 test`, `2 tests`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// The first of them, with commas; then how many more there are.
pub(crate) fn listed<T>(items: &[T], most: usize, mut word: impl FnMut(&T) -> String) -> String {
    let mut line = items.iter().take(most).map(&mut word).collect::<Vec<_>>().join(", ");
    if items.len() > most {
        line.push_str(&format!(" and {} more", items.len() - most));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_line() {
        assert_eq!(shown(Path::new("a b\n\u{1b}[2Jc\u{202e}é")), "a b\\n\\u{1b}[2Jc\\u{202e}é");
    }

    #[test]
    fn lists_are_cut_and_say_so() {
        let words = |n: usize| listed(&(0..n).collect::<Vec<_>>(), 3, ToString::to_string);
        assert_eq!(words(0), "");
        assert_eq!(words(3), "0, 1, 2");
        assert_eq!(words(5), "0, 1, 2 and 2 more");
        assert_eq!(
            (counted(1, "file"), counted(0, "file")),
            ("1 file".to_owned(), "0 files".to_owned())
        );
    }
}
