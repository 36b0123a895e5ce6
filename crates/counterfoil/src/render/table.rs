//! Tables that fit the terminal: a column is as wide as its content or, if there is not enough room,
//! its text is wrapped.
//!
//! Written by hand because `comfy-table` wraps at one delimiter character only and splits longer
//! words anywhere: it would break paths, names and hashes in the middle.

use super::color::Color;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::escape_control;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    /// Whether its text may be wrapped.
    wraps: bool,
    /// Whether it is aligned to the right.
    right: bool,
}

impl Column {
    /// Text that is wrapped if there is not enough room.
    pub(crate) fn wrapping(title: &'static str) -> Self {
        Self { title, wraps: true, right: false }
    }

    /// Text that is never wrapped.
    pub(crate) fn fixed(title: &'static str) -> Self {
        Self { title, wraps: false, right: false }
    }

    /// Numbers, aligned to the right.
    pub(crate) fn number(title: &'static str) -> Self {
        Self { title, wraps: false, right: true }
    }

    /// The column, never wrapped.
    pub(super) fn unwrapped(self) -> Self {
        Self { wraps: false, ..self }
    }
}

/// A cell of a table. Line breaks begin a new line; other unsafe characters are escaped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    color: Option<Color>,
}

impl Cell {
    pub(crate) fn colored(text: impl Into<String>, color: Color) -> Self {
        Self { text: text.into(), color: Some(color) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), color: None }
    }
}

/// A row of a table: one cell for each column.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

/// The number of lines in a cell. Longer text is cut; the JSON output has all of it.
const MAX_LINES: usize = 8;
/// The smallest width of a wrapped column.
const MIN_WIDTH: usize = 8;
/// The number of spaces between columns.
pub(super) const GAP: usize = 2;

/// A table. The titles of the columns come first, unless all of them are empty.
pub(crate) fn render(columns: &[Column], rows: &[Row], indent: usize, style: Style) -> String {
    let (titles, rows) = parts(columns, rows, indent, style);
    titles + &rows.concat()
}

/// The same in parts: the titles, and the lines of each row.
pub(super) fn parts(
    columns: &[Column],
    rows: &[Row],
    indent: usize,
    style: Style,
) -> (String, Vec<String>) {
    let widths = widths(columns, rows, style.width.saturating_sub(indent));
    let row_lines = |cells: &[Cell]| row_lines(columns, cells, &widths, indent, style);
    let titles: Vec<Cell> = columns.iter().map(|column| Cell::from(column.title)).collect();
    let has_titles = columns.iter().any(|column| !column.title.is_empty());
    let titles = if has_titles { row_lines(&titles) } else { String::new() };
    (titles, rows.iter().map(|Row(cells)| row_lines(cells)).collect())
}

/// The width of each column: that of its content or, for wrapped columns, at most an equal share
/// of the remaining width.
fn widths(columns: &[Column], rows: &[Row], available: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.width()).collect();
    for Row(cells) in rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            let widest = cell.text.lines().map(|line| printable(line).width()).max().unwrap_or(0);
            *width = (*width).max(widest);
        }
    }
    let gaps = GAP * columns.len().saturating_sub(1);
    let fixed: usize =
        columns.iter().zip(&widths).filter(|(column, _)| !column.wraps).map(|(_, w)| w).sum();
    let mut remaining = available.saturating_sub(gaps + fixed);
    let mut wrapped: Vec<usize> =
        (0..columns.len()).filter(|index| columns[*index].wraps).collect();
    wrapped.sort_by_key(|index| widths[*index]);
    for (position, index) in wrapped.iter().enumerate() {
        // The narrow ones first: the width that they do not need goes to the others.
        let share = (remaining / (wrapped.len() - position)).max(MIN_WIDTH);
        widths[*index] = widths[*index].min(share);
        remaining = remaining.saturating_sub(widths[*index]);
    }
    widths
}

/// A row as lines of text.
fn row_lines(
    columns: &[Column],
    cells: &[Cell],
    widths: &[usize],
    indent: usize,
    style: Style,
) -> String {
    let wrapped: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrap(&cell.text, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..height {
        let mut line = " ".repeat(indent);
        // Spaces are written only before text, so that no line ends with them.
        let mut pending_spaces = 0;
        for (index, (lines, width)) in wrapped.iter().zip(widths).enumerate() {
            let part = lines.get(row).map(String::as_str).unwrap_or_default();
            let padding = width.saturating_sub(part.width());
            let right = columns.get(index).is_some_and(|column| column.right);
            if part.is_empty() {
                pending_spaces += width + GAP;
                continue;
            }
            let (before, after) = if right { (padding, 0) } else { (0, padding) };
            line.push_str(&" ".repeat(pending_spaces + before));
            match cells.get(index).and_then(|cell| cell.color) {
                Some(color) => line.push_str(&color.paint(part, style)),
                None => line.push_str(part),
            }
            pending_spaces = after + GAP;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A line with its tabs as spaces and unsafe characters escaped: as wide as it will be shown.
fn printable(line: &str) -> String {
    escape_control(&line.replace('\t', " "))
}

/// A text in lines of at most `width` columns, broken between words if possible.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut used = 0;
        for word in printable(paragraph).split(' ') {
            let word_width = word.width();
            if used > 0 && used + 1 + word_width <= width {
                line.push(' ');
                line.push_str(word);
                used += 1 + word_width;
                continue;
            }
            if used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            for character in word.chars() {
                let character_width = character.width().unwrap_or(0);
                if used + character_width > width && used > 0 {
                    // The parts of a path or a name are kept whole if possible.
                    let end =
                        line.rfind(['/', '_', '-', '.', ',', ':']).map_or(line.len(), |at| at + 1);
                    let rest = line.split_off(end);
                    lines.push(std::mem::replace(&mut line, rest));
                    used = line.width();
                }
                line.push(character);
                used += character_width;
            }
            if lines.len() > MAX_LINES {
                break;
            }
        }
        lines.push(line);
        if lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES);
            if let Some(last) = lines.last_mut() {
                while last.width() >= width && last.pop().is_some() {}
                last.push('…');
            }
            break;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { color: false, unicode: true, width: 40 };

    #[test]
    fn text_is_wrapped_and_long_words_are_broken() {
        for (text, width, lines) in [
            ("", 5, vec![]),
            ("one two three", 7, vec!["one two", "three"]),
            ("one two three", 100, vec!["one two three"]),
            ("src/very/long/path.rs", 8, vec!["src/", "very/", "long/", "path.rs"]),
            ("files_changed", 9, vec!["files_", "changed"]),
            ("abcdefghij", 4, vec!["abcd", "efgh", "ij"]),
            ("a\nb c", 3, vec!["a", "b c"]),
            ("日本語 x", 4, vec!["日本", "語 x"]),
            ("x\u{1b}[31my\tz", 20, vec![r"x\u{1b}[31my z"]),
            ("ab", 0, vec!["a", "b"]),
        ] {
            assert_eq!(wrap(text, width), lines, "{text:?} in {width}");
        }
    }

    #[test]
    fn a_long_cell_ends_with_an_ellipsis() {
        let lines = wrap(&"word ".repeat(10_000), 10);
        assert_eq!(lines.len(), MAX_LINES);
        assert!(
            lines.last().is_some_and(|last| last.ends_with('…') && last.width() <= 10),
            "{lines:?}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let columns = [
            Column::fixed("NAME"),
            Column::wrapping("SAID"),
            Column::number("N"),
            Column::wrapping("WHY"),
        ];
        let rows = [
            Row(vec!["a".into(), "one two three four five six".into(), "7".into(), "x".into()]),
            Row(vec![
                Cell::colored("b", Color::Red),
                "".into(),
                "12".into(),
                "nothing is as it was said to be".into(),
            ]),
        ];
        let text = render(&columns, &rows, 2, PLAIN);
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        insta::assert_snapshot!(text);
        let colored = render(&columns, &rows, 2, Style { color: true, ..PLAIN });
        assert_eq!(
            crate::terminal::finish(&colored).replace("\x1b[31m", "").replace("\x1b[0m", ""),
            text,
            "colour does not change the layout"
        );
        assert_ne!(colored, text);
    }
}
