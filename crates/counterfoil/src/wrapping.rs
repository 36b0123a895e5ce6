//! Wraps messages for people at the width of their terminal, so that no word is cut by its edge.

use std::borrow::Cow;
use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// Messages as they fit a terminal: lines that are too long continue below, indented. What is in
/// backquotes stays in one piece, and a line that is a command is left as it is, so that both can be
/// copied. A line with colours is left as it is, too: the code that coloured it has wrapped it.
pub(crate) fn messages(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| message(line, "  ", width)).collect()
}

/// A line of a message. What follows it is indented further than the line.
fn message(line: &str, hanging: &str, width: usize) -> String {
    let content = line.trim_end();
    if content.width() <= width || content.contains('\u{1b}') || is_command(content) {
        return line.to_owned();
    }
    let words = content.trim_start();
    let indentation = &content[..content.len() - words.len()];
    let further = format!("{indentation}{hanging}");
    let options = between_words(width).initial_indent(indentation).subsequent_indent(&further);
    textwrap::fill(words, options) + &line[content.len()..]
}

/// Markdown with every paragraph and every item of a list on one line, so that it can be wrapped at
/// another width.
pub(crate) fn unwrapped(text: &str) -> String {
    let mut out = String::new();
    let (mut in_fence, mut continues) = (false, false);
    for line in text.lines() {
        let words = line.trim_start();
        let is_fence = words.starts_with("```");
        in_fence ^= is_fence;
        let is_code = in_fence || is_fence;
        let is_prose = !is_code && !words.is_empty() && !words.starts_with(['#', '|', '>']);
        if continues && is_prose && !is_item(words) {
            // The line feed.
            out.pop();
            out.push(' ');
            out.push_str(words);
        } else {
            out.push_str(line);
        }
        out.push('\n');
        continues = is_prose;
    }
    out
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = after_number.len() < line.len() && after_number.starts_with(". ");
    is_numbered || line.starts_with("- ") || line.starts_with("* ")
}

/// A page of text or Markdown as it fits a terminal: as [`messages`], but fenced blocks stay as they
/// are, and paragraphs continue below without an indentation.
pub(crate) fn page(text: &str, width: usize) -> String {
    let mut in_fence = false;
    let wrapped = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        if in_fence || is_fence {
            return line.to_owned();
        }
        let is_paragraph = !line.starts_with(' ') && !is_item(line);
        message(line, if is_paragraph { "" } else { "  " }, width)
    };
    text.split_inclusive('\n').map(wrapped).collect()
}

/// A message that begins at a column of its line: lines that are too long, and those that follow,
/// continue below it at the same column. What is in backquotes stays in one piece. A word for which
/// there is room only before the column begins there, so that the edge does not cut it.
pub(crate) fn at_column(column: usize, text: &str, width: usize) -> String {
    let room = width.saturating_sub(column).max(1);
    let wrapped = |line: &str| {
        if line.width() <= room { vec![line.to_owned()] } else { pieces(line, room) }
    };
    let mut out = String::new();
    for (index, piece) in text.split('\n').flat_map(wrapped).enumerate() {
        if index > 0 {
            let left = width.checked_sub(piece.width()).map_or(column, |left| left.min(column));
            out.push('\n');
            out.push_str(&" ".repeat(left));
        }
        out.push_str(&piece);
    }
    out
}

/// A line in pieces of a width.
fn pieces(line: &str, width: usize) -> Vec<String> {
    textwrap::wrap(line, between_words(width)).into_iter().map(Cow::into_owned).collect()
}

/// Messages are broken between words, but not in backquotes.
fn between_words<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::Custom(words_and_code))
        .word_splitter(WordSplitter::NoHyphenation)
}

/// Whether a line is a command, alone or after a label ("details: counterfoil show …").
fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    let is_label = |c: char| c.is_ascii_lowercase() || matches!(c, ' ' | '-');
    let command = match line.split_once(": ") {
        Some((label, rest)) if label.chars().all(is_label) => rest.trim_start(),
        _ => line,
    };
    let program = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next(),
        None => command.split(' ').next(),
    };
    let program = program.unwrap_or_default();
    matches!(program.rsplit('/').next(), Some("counterfoil" | "git")) && program != line
}

/// The words of a text. What is in backquotes is one.
fn words_and_code(text: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut words = Vec::new();
    let (mut start, mut in_code, mut was_blank) = (0, false, false);
    for (at, c) in text.char_indices() {
        if was_blank && c != ' ' && !in_code {
            words.push(Word::from(&text[start..at]));
            start = at;
        }
        in_code ^= c == '`';
        was_blank = c == ' ';
    }
    words.push(Word::from(&text[start..]));
    Box::new(words.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_wrapped_between_words_but_not_in_what_can_be_copied() {
        for (text, expected) in [
            ("short\n", "short\n"),
            (
                "note: the check is not configured; `counterfoil init` adds it\n",
                "note: the check is not\n  configured;\n  `counterfoil init` adds it\n",
            ),
            ("  one more line that is indented\n", "  one more line that is\n    indented\n"),
            (
                "Write these changes to all of them? [y/N] ",
                "Write these changes to all of\n  them? [y/N] ",
            ),
            (
                "details: counterfoil show 01a1f0ee --state /tmp/a\n  git -C /tmp/a/b/c/d restore -p x y\n",
                "details: counterfoil show 01a1f0ee --state /tmp/a\n  git -C /tmp/a/b/c/d restore -p x y\n",
            ),
            (
                "details: '/my tools/counterfoil' show 01a1f0ee\n",
                "details: '/my tools/counterfoil' show 01a1f0ee\n",
            ),
            (
                "try:   counterfoil run flow.yaml --task TEXT\n",
                "try:   counterfoil run flow.yaml --task TEXT\n",
            ),
            (
                "  full output: /a/path/that/is/longer/than/a/line\n",
                "  full output:\n    /a/path/that/is/longer/than/a/line\n",
            ),
            ("  /a/path/that/is/longer/than/a/line\n", "  /a/path/that/is/longer/than/a/line\n"),
            ("a `never closed\n", "a `never closed\n"),
        ] {
            assert_eq!(messages(text, 30), expected);
        }
        let coloured = format!("\u{1b}[31m{}\u{1b}[0m\n", "word ".repeat(20));
        assert_eq!(messages(&coloured, 30), coloured);
    }

    #[test]
    fn the_code_of_a_page_is_not_wrapped() {
        let page = page(
            "A sentence that is too long for it.\n```\na line that is too long for it, too\n```\n",
            20,
        );
        let expected =
            "A sentence that is\ntoo long for it.\n```\na line that is too long for it, too\n```\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn paragraphs_of_a_page_are_filled_anew() {
        let text = "# A title\n\nOne two three\nfour five.\n- an item that\n  goes on\n- another\n\n```\na\nb\n```\n";
        let one_line = "# A title\n\nOne two three four five.\n- an item that goes on\n- another\n\n```\na\nb\n```\n";
        assert_eq!(unwrapped(text), one_line);
        let filled = "# A title\n\nOne two three four\nfive.\n- an item that\n  goes on\n- another\n\n```\na\nb\n```\n";
        assert_eq!(page(one_line, 18), filled);
    }

    #[test]
    fn a_message_continues_at_the_column_where_it_begins() {
        for (text, expected) in [
            ("short", "short"),
            ("one\ntwo", "one\n       two"),
            (
                "warn: `counterfoil init` adds it to the file",
                "warn:\n       `counterfoil init` adds\n       it to the file",
            ),
            ("sha256 0123456789abcdef0123456789", "sha256\n    0123456789abcdef0123456789"),
            (
                "sha256 0123456789abcdef0123456789abcdef",
                "sha256\n       0123456789abcdef0123456789abcdef",
            ),
        ] {
            assert_eq!(at_column(7, text, 30), expected);
        }
        let long = "word ".repeat(100) + "end";
        assert_eq!(at_column(7, &long, usize::MAX), long);
    }
}
