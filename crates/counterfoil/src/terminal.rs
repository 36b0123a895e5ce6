//! What reaches a terminal: text in which everything is escaped that a terminal would obey, except the
//! colours that this program adds itself.
//!
//! Renderers put colours between pieces of text that come from anywhere, so the finished text no
//! longer says which escape sequence is whose. Therefore renderers write a mark instead of the escape
//! character. The mark is drawn at random when the process starts, so that no text can contain it.
//! The last step before output ([`finish`]) escapes the whole text and turns marks into escape
//! characters.

use anstyle::{AnsiColor, Style};
use counterfoil_contract::text::{Form, neutralize};
use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// The character that begins an escape sequence.
const ESCAPE: char = '\u{1b}';

/// What a renderer writes in place of the escape character of a colour.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("\u{fdd0}{:016x}{:016x}\u{fdd1}", random(), random())
    })
}

/// Marks the escape sequences of a text as ours. Only for text whose other parts were escaped before
/// the colours were added.
pub(crate) fn trust(text: &str) -> String {
    text.replace(ESCAPE, mark())
}

/// The text to write: everything unsafe is escaped, and marked colours are escape sequences.
pub(crate) fn finish(text: &str) -> Cow<'_, str> {
    if !text.contains(mark()) {
        return neutralize(text, Form::Text);
    }
    let mut pieces = text.split(mark());
    let mut out = neutralize(pieces.next().unwrap_or_default(), Form::Text).into_owned();
    for piece in pieces {
        out.push(ESCAPE);
        out.push_str(&neutralize(piece, Form::Text));
    }
    Cow::Owned(out)
}

/// A finished message with the label in colour with which it begins, such as `error`.
pub(crate) fn with_label(text: Cow<'_, str>) -> Cow<'_, str> {
    let label = text.split_once(':').and_then(|(label, _)| Some((label, label_style(label)?)));
    let Some((label, style)) = label else { return text };
    let rest = &text[label.len()..];
    Cow::Owned(format!("{}{label}{}{rest}", style.render(), style.render_reset()))
}

fn label_style(label: &str) -> Option<Style> {
    let color = match label {
        "error" => AnsiColor::Red,
        "warning" => AnsiColor::Yellow,
        "note" => AnsiColor::Cyan,
        _ => return None,
    };
    Some(color.on_default().bold())
}

/// Finished text in which no line is a workflow command of GitHub Actions: `::` at the beginning of a
/// line, or `##[` anywhere. The runner obeys them on stdout and on stderr.
pub(crate) fn without_commands(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_command = |line: &str| line.trim_start().starts_with("::");
    if !text.contains("##[") && !text.split(['\n', '\r']).any(is_command) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive(['\n', '\r']) {
        let words = line.trim_start();
        out.push_str(&line[..line.len() - words.len()]);
        if words.starts_with("::") {
            out.push('\\');
        }
        out.push_str(&words.replace("##[", "#\\#["));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_a_command_for_the_runner() {
        let text = "a ::b\n  ::error::x\r\n::stop-commands::y\n see ##[add-mask]z\n";
        let shown = "a ::b\n  \\::error::x\r\n\\::stop-commands::y\n see #\\#[add-mask]z\n";
        assert_eq!(without_commands(text.into()), shown);
        assert!(matches!(without_commands("a: b\n".into()), Cow::Borrowed(_)));
    }

    #[test]
    fn only_the_label_of_a_message_is_coloured() {
        for (text, shown) in [
            ("error: no a: b\n", "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: no a: b\n"),
            ("warning: x\nerror: y\n", "\u{1b}[1m\u{1b}[33mwarning\u{1b}[0m: x\nerror: y\n"),
            ("note:  x\n", "\u{1b}[1m\u{1b}[36mnote\u{1b}[0m:  x\n"),
        ] {
            assert_eq!(with_label(text.into()), shown);
        }
        for other in ["errors: 2\n", "an error: x\n", "error\n", "counterfoil: error: x\n", ""] {
            assert!(matches!(with_label(other.into()), Cow::Borrowed(text) if text == other));
        }
    }

    #[test]
    fn only_marked_colours_are_kept() {
        let text = format!("{0}[31ma\u{1b}[8mb{0}[0m\u{202e}\n", mark());
        assert_eq!(finish(&text), "\u{1b}[31ma\\u{1b}[8mb\u{1b}[0m\\u{202e}\n");
        assert_eq!(finish("\u{1b}[31mx\u{9b}2J"), "\\u{1b}[31mx\\u{9b}2J");
        assert_eq!(finish(&trust("\u{1b}[1mx\u{1b}[0m")), "\u{1b}[1mx\u{1b}[0m");
    }
}
