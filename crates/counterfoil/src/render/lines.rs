//! Lines for people: wrapped between words at the width of the terminal, and coloured by the mark with
//! which they begin.

use super::color::Color;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::escape_control;
use textwrap::{Options, WordSeparator, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// How much of a line its colour covers.
enum Painted {
    /// Its mark.
    Mark(Color),
    /// All of it.
    Line(Color),
    Nothing,
}

fn painted(mark: Option<char>) -> Painted {
    match mark {
        Some('✓') => Painted::Mark(Color::Green),
        Some('✗') => Painted::Line(Color::Red),
        Some('↺' | '○') => Painted::Mark(Color::Yellow),
        Some('?' | '!') => Painted::Mark(Color::Cyan),
        Some('→' | '⇠') => Painted::Mark(Color::Dim),
        Some('·') => Painted::Line(Color::Dim),
        _ => Painted::Nothing,
    }
}

/// A line of text after a prefix, such as the clock or an indentation. What does not fit the width
/// continues below the text. Words, paths and hashes are never broken.
pub(crate) fn line(prefix: &str, text: &str, style: Style) -> String {
    let text = escape_control(text);
    let mut characters = text.chars();
    let mark = characters.next().filter(|mark| !mark.is_alphanumeric());
    let mark = mark.filter(|_| characters.next() == Some(' '));
    let paint = painted(mark);
    let hanging = prefix.width() + if mark.is_some() { 2 } else { 0 };
    let mut out = String::new();
    for (index, part) in wrap_words(&text, hanging, prefix.width(), style.width).enumerate() {
        if index > 0 {
            out.push('\n');
            out.push_str(&" ".repeat(hanging));
        } else {
            out.push_str(&Color::Dim.paint(prefix.trim_end(), style));
            out.push_str(&prefix[prefix.trim_end().len()..]);
        }
        out.push_str(&match (&paint, mark) {
            (Painted::Line(color), _) => color.paint(&part, style),
            (Painted::Mark(color), Some(mark)) if index == 0 => {
                color.paint(&mark.to_string(), style) + &part[mark.len_utf8()..]
            }
            _ => part,
        });
    }
    out
}

/// Several lines with the same prefix; each ends with a line break.
pub(crate) fn lines(prefix: &str, text: &str, style: Style) -> String {
    text.lines().map(|each| line(prefix, each, style) + "\n").collect()
}

/// The text in pieces that fit: the first beside a prefix, the others beside the hanging indentation.
fn wrap_words(
    text: &str,
    hanging: usize,
    prefix: usize,
    width: usize,
) -> impl Iterator<Item = String> {
    let further = " ".repeat(hanging - prefix);
    let options = Options::new(width.saturating_sub(prefix).max(1))
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .subsequent_indent(&further);
    let pieces: Vec<String> = textwrap::wrap(text, options)
        .into_iter()
        .enumerate()
        .map(|(index, piece)| match index {
            0 => piece.into_owned(),
            _ => piece.trim_start().to_owned(),
        })
        .collect();
    pieces.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Style = Style { color: false, unicode: true, width: 30 };

    #[test]
    fn lines_are_wrapped_between_words_and_continue_below_their_text() {
        for (prefix, text, expected) in [
            ("0:00:01 ", "✓ one two", "0:00:01 ✓ one two"),
            (
                "0:00:01 ",
                "✗ one two three four five",
                "0:00:01 ✗ one two three four\n          five",
            ),
            (
                "  ",
                "no mark but more than thirty columns",
                "  no mark but more than thirty\n  columns",
            ),
            // A path or a hash is one word.
            (
                "",
                "✓ in src/a/very/long/path/that/does-not/fit.rs now",
                "✓ in\n  src/a/very/long/path/that/does-not/fit.rs\n  now",
            ),
            // A word of one letter is no mark.
            ("", "A word, and more than thirty columns", "A word, and more than thirty\ncolumns"),
            ("", "", ""),
        ] {
            assert_eq!(line(prefix, text, NARROW), expected, "{text}");
        }
        let unlimited = Style { width: usize::MAX, ..NARROW };
        let long = "word ".repeat(100) + "end";
        assert_eq!(line("  ", &long, unlimited), format!("  {long}"));
    }

    #[test]
    fn the_mark_decides_the_colour_and_what_a_text_contains_does_not() {
        let style = Style { color: true, ..NARROW };
        let shown = |text: &str| crate::terminal::finish(&line("", text, style)).into_owned();
        assert_eq!(shown("✓ good"), "\u{1b}[32m✓\u{1b}[0m good");
        assert_eq!(shown("✗ bad"), "\u{1b}[31m✗ bad\u{1b}[0m");
        assert_eq!(shown("↺ again"), "\u{1b}[33m↺\u{1b}[0m again");
        assert_eq!(shown("plain ✗"), "plain ✗");
        assert_eq!(shown("a\u{1b}[32m\n✓ b"), "a\\u{1b}[32m\\n✓ b");
        // The colour begins and ends on each line.
        let long = shown("✗ one two three four five six seven");
        assert_eq!(long.matches("\u{1b}[31m").count(), 2, "{long:?}");
    }
}
