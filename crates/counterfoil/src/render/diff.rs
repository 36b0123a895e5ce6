//! Changed files as a unified diff.

use super::color::Color;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::escape_control;
use counterfoil_workspace::workspaces::ChangedContent;
use similar::TextDiff;
use std::fmt::Write;
use std::time::Duration;

/// After this time, what is left of a file is shown as replaced.
const PATIENCE: Duration = Duration::from_secs(2);

/// The differences between the contents of each file, as `patch` reads them.
pub(crate) fn unified(changes: &[ChangedContent], style: Style) -> String {
    changes.iter().map(|change| file(change, style)).collect()
}

fn file(change: &ChangedContent, style: Style) -> String {
    // A line break in a name would begin a line of its own.
    let path = escape_control(&change.path);
    let name = |side: &str, bytes: &Option<Vec<u8>>| match bytes {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let (old, new) = (name("a", &change.before), name("b", &change.after));
    let texts = [&change.before, &change.after].map(|bytes| text(bytes.as_deref().unwrap_or(b"")));
    let [Some(before), Some(after)] = texts else {
        return format!("Binary files {old} and {new} differ\n");
    };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let unified = diff.unified_diff().header(&old, &new).to_string();
    if unified.is_empty() {
        // Only the mode or the kind of the file is another.
        return format!("--- {old}\n+++ {new}\n");
    }
    let mut out = String::new();
    for line in unified.split_inclusive('\n') {
        let (line, end) = line.split_at(line.trim_end_matches('\n').len());
        let color = match line.as_bytes().first() {
            Some(b'+') => Some(Color::Green),
            Some(b'-') => Some(Color::Red),
            Some(b'@') => Some(Color::Cyan),
            _ => None,
        };
        let painted = color.map_or_else(|| line.to_owned(), |color| color.paint(line, style));
        let _ = write!(out, "{painted}{end}");
    }
    out
}

/// The bytes as text, unless they are not.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
        let change = ChangedContent {
            path: "src/a.rs".to_owned(),
            before: before.map(<[u8]>::to_vec),
            after: after.map(<[u8]>::to_vec),
        };
        unified(&[change], Style::default())
    }

    #[test]
    fn created_changed_deleted_and_binary_files() {
        assert_eq!(
            change(Some(b"one\ntwo\n"), Some(b"one\nthree\n")),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
        );
        assert_eq!(
            change(None, Some(b"one\n")),
            "--- /dev/null\n+++ b/src/a.rs\n@@ -0,0 +1 @@\n+one\n"
        );
        assert_eq!(
            change(Some(b"one\n"), None),
            "--- a/src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
        );
        assert_eq!(
            change(Some(b"\xff\0"), Some(b"one\n")),
            "Binary files a/src/a.rs and b/src/a.rs differ\n"
        );
        assert_eq!(change(Some(b"one"), Some(b"one")), "--- a/src/a.rs\n+++ b/src/a.rs\n");
    }
}
