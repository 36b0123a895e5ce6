//! Lists: tables whose last columns stand below their row if there is no room beside it.

use super::lines;
use super::table::{self, Cell, Column, GAP, Row};
use counterfoil_contract::diagnostic::Style;
use unicode_width::UnicodeWidthStr;

/// The indentation of what stands below its row.
const INDENT: &str = "    ";
/// The smallest width of the last column beside the others, if its texts do not fit.
const MIN_BESIDE: usize = 24;
/// The most lines that a text of the last column takes beside the others.
const MAX_LINES: usize = 3;

/// A list with a text for each column of each row. The first `needed` columns are always in the
/// table. Without a limit of the width, each row is one line, so that `grep` finds whole rows.
pub(super) fn list(
    columns: &[Column],
    rows: &[Vec<String>],
    needed: usize,
    style: Style,
) -> String {
    let style = Style { color: false, ..style };
    let others = columns.len().saturating_sub(1);
    let unwrapped: Vec<Column> = columns.iter().copied().map(Column::unwrapped).collect();
    let fits = |count: usize| natural_width(&unwrapped, rows, count) <= style.width;
    if fits(columns.len()) {
        return table::render(&unwrapped, &cells(rows, columns.len()), 0, style);
    }
    let beside = style.width.saturating_sub(natural_width(&unwrapped, rows, others) + GAP);
    let is_short = |text: &String| table::wrap(text, beside).len() <= MAX_LINES;
    if beside >= MIN_BESIDE && rows.iter().filter_map(|row| row.get(others)).all(is_short) {
        let columns = [&unwrapped[..others], &columns[others..]].concat();
        return table::render(&columns, &cells(rows, columns.len()), 0, style);
    }
    let count = (needed..columns.len()).rev().find(|count| fits(*count)).unwrap_or(needed);
    let (mut text, entries) = table::parts(&columns[..count], &cells(rows, count), 0, style);
    for (entry, row) in entries.iter().zip(rows) {
        text += entry;
        let below: Vec<&str> =
            row[count..].iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        text += &lines::lines(INDENT, &below.join("; "), style);
    }
    text
}

/// The first cells of each row.
fn cells(rows: &[Vec<String>], count: usize) -> Vec<Row> {
    let row = |row: &Vec<String>| {
        Row(row[..count].iter().map(|text| Cell::from(text.as_str())).collect())
    };
    rows.iter().map(row).collect()
}

/// The width of the first columns if nothing is wrapped.
fn natural_width(columns: &[Column], rows: &[Vec<String>], count: usize) -> usize {
    let unlimited = Style { color: false, unicode: true, width: usize::MAX };
    let text = table::render(&columns[..count], &cells(rows, count), 0, unlimited);
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize, reason: &str) -> String {
        let columns = [Column::fixed("RUN"), Column::wrapping("STATE"), Column::wrapping("REASON")];
        let rows = [["01a1f0ee", "work", reason], ["01a1f0ef", "done", ""]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        list(&columns, &rows, 1, Style { color: false, unicode: true, width })
    }

    #[test]
    fn the_last_column_is_beside_the_others_or_below_them() {
        let short = "may not write";
        let whole = "RUN       STATE  REASON\n01a1f0ee  work   may not write\n01a1f0ef  done\n";
        assert_eq!(shown(usize::MAX, short), whole);
        assert_eq!(shown(30, short), whole);
        assert_eq!(
            shown(29, short),
            "RUN       STATE\n01a1f0ee  work\n    may not write\n01a1f0ef  done\n"
        );
        assert_eq!(
            shown(16, short),
            "RUN       STATE\n01a1f0ee  work\n    may not\n    write\n01a1f0ef  done\n"
        );
        // What has no room at all stands below, too.
        assert_eq!(
            shown(14, short),
            "RUN\n01a1f0ee\n    work; may\n    not write\n01a1f0ef\n    done\n"
        );
        let long = "the agent may not write files outside of its folder";
        assert_eq!(
            shown(45, long),
            "RUN       STATE  REASON\n01a1f0ee  work   the agent may not write\n                 \
             files outside of its folder\n01a1f0ef  done\n"
        );
        // What would be cut or too tall there stands below as a whole.
        let text = "word ".repeat(60) + "end";
        let words = |text: &str| text.split_whitespace().filter(|word| *word == "word").count();
        assert_eq!(words(&shown(45, &text)), 60);
        assert_eq!(shown(usize::MAX, &text).lines().count(), 3);
    }
}
