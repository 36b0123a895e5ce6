//! Changed files as a unified diff.

use super::color::Color;
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::{DiffBody, FileDiff, FilesDiff};

/// The differences between the contents of each file, as `patch` reads them.
pub(crate) fn unified(diff: &FilesDiff, style: Style) -> String {
    diff.files.iter().map(|file| painted(file, style)).collect()
}

fn painted(file: &FileDiff, style: Style) -> String {
    let unified = file.unified();
    // Without lines that differ, there is nothing to tell apart by colours.
    if !matches!(&file.body, DiffBody::Text { hunks, .. } if !hunks.is_empty()) {
        return unified;
    }
    let paint = |line: &str| {
        let (line, end) = line.split_at(line.trim_end_matches('\n').len());
        let color = match line.as_bytes().first() {
            Some(b'+') => Some(Color::Green),
            Some(b'-') => Some(Color::Red),
            Some(b'@') => Some(Color::Cyan),
            _ => None,
        };
        color.map_or_else(|| line.to_owned(), |color| color.paint(line, style)) + end
    };
    unified.split_inclusive('\n').map(paint).collect()
}
