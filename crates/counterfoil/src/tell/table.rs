//! Tables that fit where they are read: columns as wide as what stands in them, and where that is
//! too wide, words go on below.

use super::clean;
use counterfoil_contract::diagnostic::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    /// Whether it may be made narrower.
    gives: bool,
    /// Whether it holds numbers.
    right: bool,
}

impl Column {
    /// Words that go on below where there is no room.
    pub(crate) fn words(title: &'static str) -> Self {
        Self { title, gives: true, right: false }
    }

    /// A word that stays whole.
    pub(crate) fn word(title: &'static str) -> Self {
        Self { title, gives: false, right: false }
    }

    /// A number.
    pub(crate) fn number(title: &'static str) -> Self {
        Self { title, gives: false, right: true }
    }
}

/// What stands in a place of the table. Line breaks begin a new line; other control characters do
/// not get through.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Green,
    Red,
    Yellow,
    Dim,
}

impl Color {
    /// A text in this colour, where there are any.
    pub(crate) fn paint(self, text: &str, style: Style) -> String {
        if !style.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match self {
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Dim => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) enum Row {
    /// What the rows below belong to.
    Head(String),
    /// One cell for each column.
    Cells(Vec<Cell>),
}

/// Lines that a cell may take; what is longer can be had as JSON.
const MOST_LINES: usize = 8;
/// Columns are not made narrower than this.
const NARROWEST: usize = 8;
const GAP: usize = 2;

/// A table with its titles.
pub(crate) fn render(columns: &[Column], rows: &[Row], indent: usize, style: Style) -> String {
    let widths = widths(columns, rows, style.width.saturating_sub(indent));
    let titles = columns.iter().map(|column| Cell::from(column.title)).collect::<Vec<_>>();
    let mut text = String::new();
    let mut titled = false;
    for row in rows {
        if let Row::Head(head) = row {
            let gap = if titled { "\n" } else { "" };
            text.push_str(&format!("{gap}{}\n", clean(head)));
        }
        if !titled {
            text.push_str(&line(columns, &titles, &widths, indent, style));
            titled = true;
        }
        if let Row::Cells(cells) = row {
            text.push_str(&line(columns, cells, &widths, indent, style));
        }
    }
    text
}

/// How wide each column is: as it would be, or, of those that give, an equal share of what is left.
fn widths(columns: &[Column], rows: &[Row], room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.width()).collect();
    for row in rows {
        let Row::Cells(cells) = row else { continue };
        for (width, cell) in widths.iter_mut().zip(cells) {
            let widest = cell.text.lines().map(|line| clean(line).width()).max().unwrap_or(0);
            *width = (*width).max(widest);
        }
    }
    let gaps = GAP * columns.len().saturating_sub(1);
    let fixed: usize =
        columns.iter().zip(&widths).filter(|(column, _)| !column.gives).map(|(_, w)| w).sum();
    let mut left = room.saturating_sub(gaps + fixed);
    let mut giving: Vec<usize> = (0..columns.len()).filter(|index| columns[*index].gives).collect();
    giving.sort_by_key(|index| widths[*index]);
    for (place, index) in giving.iter().enumerate() {
        // The narrow ones first: what they do not need is there for the others.
        let share = (left / (giving.len() - place)).max(NARROWEST);
        widths[*index] = widths[*index].min(share);
        left = left.saturating_sub(widths[*index]);
    }
    widths
}

fn line(
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
        // What a line ends with would be invisible; it is written only when something follows.
        let mut behind = 0;
        for (index, (lines, width)) in wrapped.iter().zip(widths).enumerate() {
            let part = lines.get(row).map(String::as_str).unwrap_or_default();
            let space = width.saturating_sub(part.width());
            let right = columns.get(index).is_some_and(|column| column.right);
            if part.is_empty() {
                behind += width + GAP;
                continue;
            }
            let (before, after) = if right { (space, 0) } else { (0, space) };
            line.push_str(&" ".repeat(behind + before));
            match cells.get(index).and_then(|cell| cell.color) {
                Some(color) => line.push_str(&color.paint(part, style)),
                None => line.push_str(part),
            }
            behind = after + GAP;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A text in lines of at most this width, broken between words where it can be.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut used = 0;
        for word in clean(paragraph).split(' ') {
            let long = word.width();
            if used > 0 && used + 1 + long <= width {
                line.push(' ');
                line.push_str(word);
                used += 1 + long;
                continue;
            }
            if used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            for character in word.chars() {
                let wide = character.width().unwrap_or(0);
                if used + wide > width && used > 0 {
                    // The parts of a path or a name stay whole where they can.
                    let end =
                        line.rfind(['/', '_', '-', '.', ',', ':']).map_or(line.len(), |at| at + 1);
                    let rest = line.split_off(end);
                    lines.push(std::mem::replace(&mut line, rest));
                    used = line.width();
                }
                line.push(character);
                used += wide;
            }
            if lines.len() > MOST_LINES {
                break;
            }
        }
        lines.push(line);
        if lines.len() > MOST_LINES {
            lines.truncate(MOST_LINES);
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
    fn words_are_wrapped_and_long_ones_broken() {
        for (text, width, lines) in [
            ("", 5, vec![]),
            ("one two three", 7, vec!["one two", "three"]),
            ("one two three", 100, vec!["one two three"]),
            ("src/very/long/path.rs", 8, vec!["src/", "very/", "long/", "path.rs"]),
            ("files_changed", 9, vec!["files_", "changed"]),
            ("abcdefghij", 4, vec!["abcd", "efgh", "ij"]),
            ("a\nb c", 3, vec!["a", "b c"]),
            ("日本語 x", 4, vec!["日本", "語 x"]),
            ("x\u{1b}[31my\tz", 20, vec!["x [31my z"]),
            ("ab", 0, vec!["a", "b"]),
        ] {
            assert_eq!(wrap(text, width), lines, "{text:?} in {width}");
        }
    }

    #[test]
    fn a_long_cell_is_cut_and_says_so() {
        let lines = wrap(&"word ".repeat(10_000), 10);
        assert_eq!(lines.len(), MOST_LINES);
        assert!(
            lines.last().is_some_and(|last| last.ends_with('…') && last.width() <= 10),
            "{lines:?}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_room_there_is() {
        let columns = [
            Column::word("NAME"),
            Column::words("SAID"),
            Column::number("N"),
            Column::words("WHY"),
        ];
        let rows = [
            Row::Head("first".to_owned()),
            Row::Cells(vec![
                "a".into(),
                "one two three four five six".into(),
                "7".into(),
                "x".into(),
            ]),
            Row::Head("second".to_owned()),
            Row::Cells(vec![
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
            colored.replace("\x1b[31m", "").replace("\x1b[0m", ""),
            text,
            "colour moves nothing"
        );
        assert_ne!(colored, text);
    }
}
