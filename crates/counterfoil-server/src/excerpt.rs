//! The part of a text around a place in it: what a person looks at first, however long the text is.

/// The lines before and after a place.
const CONTEXT_LINES: usize = 3;
/// The longest part of a line that is shown on each side of a mark, in bytes.
const MAX_SIDE: usize = 240;
/// The longest mark that is shown as a whole, in bytes.
const MAX_MARK: usize = 2000;
/// The longest part of a line that a row of a list shows on each side of a place, in bytes.
const MAX_ROW_SIDE: usize = 80;

/// A part of a text, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The lines.
    pub(crate) lines: Vec<Line>,
}

/// A line of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its number in the text, from 1.
    pub(crate) number: usize,
    /// Its parts in order.
    pub(crate) parts: Vec<Part>,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether it belongs to the place.
    pub(crate) is_marked: bool,
    /// The text, as it is.
    pub(crate) text: String,
}

/// The lines around the bytes from `start` to `end`. Places outside of the text are moved into it.
/// Invalid UTF-8 is replaced.
pub(crate) fn around(text: &[u8], start: usize, end: usize) -> Excerpt {
    let start = start.min(text.len());
    let end = end.clamp(start, text.len());
    // A mark that is too long is cut in its middle by what is shown of its first and last bytes.
    let shown_end = end.min(start + MAX_MARK);
    let from = line_start(text, start, CONTEXT_LINES);
    let to = line_end(text, shown_end, CONTEXT_LINES);
    let mut number = 1 + count_lines(&text[..from]);
    let mut lines = Vec::new();
    let mut at = from;
    loop {
        let line_to = line_feed(text, at).map_or(to, |found| found.min(to));
        lines.push(Line { number, parts: parts(text, at, line_to, start, shown_end, end) });
        if line_to >= to {
            return Excerpt { lines };
        }
        at = line_to + 1;
        number += 1;
    }
}

/// The lines from a number on, without a mark.
pub(crate) fn lines_from(text: &[u8], first: usize, count: usize) -> Excerpt {
    let mut lines = Vec::new();
    let all = text.split(|byte| *byte == b'\n').enumerate();
    for (at, line) in all.skip(first.saturating_sub(1)).take(count) {
        let cut = line.len() > 2 * MAX_SIDE;
        let mut shown = lossy(line.get(..line.len().min(2 * MAX_SIDE)).unwrap_or_default());
        if cut {
            shown.push('…');
        }
        lines.push(Line { number: at + 1, parts: vec![Part { is_marked: false, text: shown }] });
    }
    Excerpt { lines }
}

/// The line around the bytes from `start` to `end`, which are marked: as much of it as fits into a row.
pub(crate) fn row_around(text: &[u8], start: usize, end: usize) -> Vec<Part> {
    let end = end.min(text.len());
    let start = start.min(end);
    let line = memchr::memrchr(b'\n', &text[..start]).map_or(0, |at| at + 1);
    let mut from = start.saturating_sub(MAX_ROW_SIDE).max(line);
    while from < start && is_inside_char(text[from]) {
        from += 1;
    }
    let line_to = line_feed(text, end).unwrap_or(text.len());
    let mut to = line_to.min(end + MAX_ROW_SIDE);
    while to > end && to < text.len() && is_inside_char(text[to]) {
        to -= 1;
    }
    let before = format!("{}{}", if from > line { "…" } else { "" }, lossy(&text[from..start]));
    let after = format!("{}{}", lossy(&text[end..to]), if to < line_to { "…" } else { "" });
    let part = |is_marked, text| Part { is_marked, text };
    vec![part(false, before), part(true, lossy(&text[start..end])), part(false, after)]
}

/// The parts of the line from `from` to `to`.
fn parts(
    text: &[u8],
    from: usize,
    to: usize,
    start: usize,
    shown_end: usize,
    end: usize,
) -> Vec<Part> {
    let (marked_from, marked_to) = (start.clamp(from, to), shown_end.clamp(from, to));
    let is_in_line = start <= to && shown_end >= from;
    let mut parts = Vec::new();
    let mut add = |is_marked: bool, text: String| {
        if !text.is_empty() {
            parts.push(Part { is_marked, text });
        }
    };
    if !is_in_line {
        add(false, shortened_end(text, from, to));
        return parts;
    }
    add(false, shortened_start(text, from, marked_from));
    let mut marked = lossy(&text[marked_from..marked_to]);
    if shown_end < end && marked_to == shown_end {
        marked.push('…');
    } else if start == end && start >= from && start <= to {
        // There is nothing to mark at an empty place, so a sign is shown.
        marked.push('▏');
    }
    add(true, marked);
    add(false, shortened_end(text, marked_to, to));
    parts
}

/// The bytes of a line before a mark, from the end as much as is shown.
fn shortened_start(text: &[u8], from: usize, to: usize) -> String {
    if to - from <= MAX_SIDE {
        return lossy(&text[from..to]);
    }
    let mut at = to - MAX_SIDE;
    while at < to && is_inside_char(text[at]) {
        at += 1;
    }
    format!("…{}", lossy(&text[at..to]))
}

/// The bytes of a line after a mark, as much as is shown.
fn shortened_end(text: &[u8], from: usize, to: usize) -> String {
    if to - from <= MAX_SIDE {
        return lossy(&text[from..to]);
    }
    let mut at = from + MAX_SIDE;
    while at > from && is_inside_char(text[at]) {
        at -= 1;
    }
    format!("{}…", lossy(&text[from..at]))
}

fn is_inside_char(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The next line feed.
fn line_feed(text: &[u8], from: usize) -> Option<usize> {
    memchr::memchr(b'\n', text.get(from..)?).map(|at| from + at)
}

fn count_lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// The beginning of the line that is some lines above a place.
fn line_start(text: &[u8], place: usize, above: usize) -> usize {
    memchr::memrchr_iter(b'\n', &text[..place]).nth(above).map_or(0, |at| at + 1)
}

/// The end of the line that is some lines below a place.
fn line_end(text: &[u8], place: usize, below: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[place..]).nth(below).map_or(text.len(), |at| place + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(excerpt: &Excerpt) -> Vec<String> {
        let line = |line: &Line| {
            let parts = line.parts.iter().map(|part| {
                if part.is_marked { format!("[{}]", part.text) } else { part.text.clone() }
            });
            format!("{} {}", line.number, parts.collect::<String>())
        };
        excerpt.lines.iter().map(line).collect()
    }

    #[test]
    fn the_place_is_marked_with_lines_around_it() {
        let text = (1..=9).map(|n| format!("line {n}\n")).collect::<String>();
        let start = text.find("e 5").unwrap();
        let expected =
            ["2 line 2", "3 line 3", "4 line 4", "5 lin[e 5]", "6 line 6", "7 line 7", "8 line 8"];
        assert_eq!(shown(&around(text.as_bytes(), start, start + 3)), expected);
    }

    #[test]
    fn a_place_over_several_lines_marks_each_of_them() {
        assert_eq!(shown(&around(b"ab\ncd\nef", 1, 7)), ["1 a[b]", "2 [cd]", "3 [e]f"]);
    }

    #[test]
    fn an_empty_place_has_a_sign_and_a_place_outside_is_moved() {
        assert_eq!(shown(&around(b"ab", 1, 1)), ["1 a[▏]b"]);
        assert_eq!(shown(&around(b"ab", 9, 12)), ["1 ab[▏]"]);
        assert_eq!(shown(&around(b"", 0, 0)), ["1 [▏]"]);
    }

    #[test]
    fn long_lines_and_long_places_are_cut_at_whole_characters() {
        let line = format!("{}X{}", "ä".repeat(5000), "ö".repeat(5000));
        let at = line.find('X').unwrap();
        let excerpt = around(line.as_bytes(), at, at + 1);
        let all: String = excerpt.lines[0].parts.iter().map(|part| part.text.as_str()).collect();
        assert!(all.len() < 3 * MAX_SIDE, "{}", all.len());
        assert!(!all.contains('\u{fffd}'), "{all}");
        let excerpt = around("y".repeat(1_000_000).as_bytes(), 10, 900_000);
        let all: usize = excerpt.lines[0].parts.iter().map(|part| part.text.len()).sum();
        assert!(all < MAX_MARK + 3 * MAX_SIDE, "{all}");
    }

    #[test]
    fn a_row_has_what_is_around_a_place_in_its_line() {
        let row = |text: &str, start, end| {
            row_around(text.as_bytes(), start, end).into_iter().map(|part| part.text).collect()
        };
        let parts: Vec<String> = row("one\ntwo three\nfour", 4, 7);
        assert_eq!(parts, ["", "two", " three"]);
        let text = format!("{}needle{}", "ä".repeat(200), "ö".repeat(200));
        let at = text.find("needle").unwrap();
        let parts: Vec<String> = row(&text, at, at + 6);
        assert_eq!(parts[1], "needle");
        assert!(parts[0].starts_with("…ä") && parts[2].ends_with("ö…"), "{parts:?}");
        assert!(!parts.concat().contains('\u{fffd}') && parts.concat().len() < 300, "{parts:?}");
        let parts: Vec<String> = row("ab", 9, 12);
        assert_eq!(parts, ["ab", "", ""]);
    }

    #[test]
    fn every_place_of_every_text_has_an_excerpt() {
        let text = "a\n\nüb\u{1F600}\r\n{\"x\": [1,\n2]}\n".as_bytes();
        for start in 0..=text.len() + 1 {
            for end in start..=text.len() + 1 {
                assert!(!around(text, start, end).lines.is_empty());
                assert_eq!(row_around(text, start, end).len(), 3);
            }
        }
    }
}
