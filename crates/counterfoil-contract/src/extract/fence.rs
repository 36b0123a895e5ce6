//! Scans for fenced code blocks by `CommonMark`'s rules: backtick and tilde fences of any length from three,
//! closed by one at least as long, indented up to three spaces, in list items and quotes. Inside a
//! block labelled `markdown` the fences of an inner document count too. Resumable, line by line.

use super::fence_lines::fence_run;
use std::collections::VecDeque;

/// The content of a block that may be the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the block is labelled as JSON; otherwise it has no label.
    pub(crate) tagged: bool,
    /// The number of quote markers on its lines.
    pub(crate) quotes: u8,
    /// Whether the text ends in it.
    pub(crate) cut_off: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Json,
    None,
    Markdown,
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    mark: u8,
    run: usize,
    indent: usize,
    quotes: u8,
    label: Label,
    content: usize,
}

/// Blocks nested deeper than this in Markdown blocks are ignored.
const MAX_NESTED_FENCES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct FenceScan {
    pos: usize,
    open: Vec<Open>,
    /// The columns at which the content of the enclosing list items begins.
    lists: Vec<usize>,
    blocks: Vec<Block>,
    /// The last blocks that are labelled as something else.
    others: VecDeque<OtherBlock>,
    pub(crate) examined: u64,
}

/// A block that is labelled as something else than JSON.
#[derive(Clone, Debug)]
struct OtherBlock {
    start: usize,
    /// None while it is open.
    end: Option<usize>,
    label: String,
}

/// Other blocks that are remembered, and the length of their labels.
const MAX_OTHERS: usize = 64;
const MAX_LABEL_CHARS: usize = 40;

/// The markers and whitespace before the content of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    quotes: u8,
    /// The width of the whitespace and list markers before the content, in columns.
    indent: usize,
    /// Index of the content.
    at: usize,
    marker: Option<usize>,
}

impl FenceScan {
    pub(crate) fn new(start: usize) -> Self {
        Self { pos: start, ..Self::default() }
    }

    /// The first offset that must stay in the window.
    pub(crate) fn keep_from(&self) -> usize {
        self.open
            .iter()
            .find(|open| matches!(open.label, Label::Json | Label::None))
            .map_or(self.pos, |open| open.content)
    }

    /// Takes the blocks found since the last call, in the order they closed.
    pub(crate) fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.blocks)
    }

    /// The label of the block that an offset is in, if the block is labelled as something else than
    /// JSON.
    pub(crate) fn label_at(&self, offset: usize) -> Option<&str> {
        let inside =
            |block: &&OtherBlock| block.start <= offset && block.end.is_none_or(|end| offset < end);
        self.others.iter().rev().find(inside).map(|block| block.label.as_str())
    }

    /// Reads the complete lines of the window, and at `eof` the last one too.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: usize, eof: bool) {
        while let Some(rest) = bytes.get(self.pos - base..).filter(|rest| !rest.is_empty()) {
            let length = match memchr::memchr(b'\n', rest) {
                Some(newline) => newline + 1,
                None if eof => rest.len(),
                None => break,
            };
            self.line(&rest[..length]);
            self.pos += length;
        }
        if eof {
            while let Some(open) = self.open.pop() {
                self.emit(open, self.pos, true);
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.examined += line.len() as u64;
        // The end of a quote closes the blocks inside of it.
        while let Some(open) = self.open.last().copied() {
            if open.quotes == 0 || head(line, true).quotes >= open.quotes {
                break;
            }
            self.open.pop();
            self.emit(open, self.pos, false);
        }
        match self.open.last().copied() {
            Some(open) => self.inside(line, open),
            None => self.outside(line),
        }
    }

    fn inside(&mut self, line: &[u8], open: Open) {
        // Most lines of a block cannot be fences.
        let first = line.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        if !matches!(first, Some(b'`' | b'~' | b'>' | 0x1b)) {
            return;
        }
        let head = head(line, true);
        let Some((mark, run)) = fence_run(&line[head.at..]) else { return };
        let bare = is_blank(&line[head.at + run..]);
        if bare && mark == open.mark && run >= open.run && head.indent <= open.indent + 3 {
            self.open.pop();
            self.emit(open, self.pos, false);
        } else if open.label == Label::Markdown && self.open.len() < MAX_NESTED_FENCES {
            self.begin(line, head, mark, run);
        }
    }

    fn outside(&mut self, line: &[u8]) {
        let head = head(line, false);
        let blank = is_blank(&line[head.at..]);
        if !blank {
            let before = head.marker.unwrap_or(head.indent);
            self.lists.retain(|content| *content <= before);
        }
        let allowed = self.lists.last().copied().unwrap_or(0) + 3;
        if head.marker.is_some() {
            self.lists.push(head.indent);
        } else if head.indent > allowed {
            return; // An indented code block, not a fence.
        }
        if let Some((mark, run)) = fence_run(&line[head.at..]) {
            self.begin(line, head, mark, run);
        }
    }

    fn begin(&mut self, line: &[u8], head: Head, mark: u8, run: usize) {
        let info = line[head.at + run..].trim_ascii();
        // CommonMark: the label of a backtick fence holds no backtick, else it is inline code.
        if mark == b'`' && info.contains(&b'`') {
            return;
        }
        let info = strip_ansi_tail(info);
        let word =
            info.split(|byte| matches!(byte, b' ' | b'\t' | b'{' | b',')).next().unwrap_or(&[]);
        let is =
            |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
        let label = if word.is_empty() {
            Label::None
        } else if is(&["json", "jsonc"]) {
            Label::Json
        } else if is(&["markdown", "md"]) {
            Label::Markdown
        } else {
            Label::Other
        };
        let content = self.pos + line.len();
        if matches!(label, Label::Other | Label::Markdown) {
            let label = String::from_utf8_lossy(word).chars().take(MAX_LABEL_CHARS).collect();
            if self.others.len() == MAX_OTHERS {
                self.others.pop_front();
            }
            self.others.push_back(OtherBlock { start: content, end: None, label });
        }
        self.open.push(Open {
            mark,
            run,
            indent: head.indent,
            quotes: head.quotes,
            label,
            content,
        });
    }

    fn emit(&mut self, open: Open, end: usize, cut_off: bool) {
        if matches!(open.label, Label::Json | Label::None) {
            self.blocks.push(Block {
                start: open.content.min(end),
                end,
                tagged: open.label == Label::Json,
                quotes: open.quotes,
                cut_off,
            });
        } else if let Some(block) =
            self.others.iter_mut().rev().find(|block| block.start == open.content)
        {
            block.end = Some(end);
        }
    }
}

fn is_blank(rest: &[u8]) -> bool {
    if rest.first().is_some_and(u8::is_ascii_graphic) {
        return false;
    }
    strip_ansi_tail(rest.trim_ascii()).is_empty()
}

/// Removes colour codes from the end of a line.
fn strip_ansi_tail(mut text: &[u8]) -> &[u8] {
    while let Some(escape) = memchr::memrchr(0x1b, text) {
        let code = &text[escape..];
        let plain = code.len() > 2
            && code[1] == b'['
            && code[code.len() - 1].is_ascii_alphabetic()
            && code[2..code.len() - 1].iter().all(|byte| matches!(byte, b'0'..=b'9' | b';'));
        if !plain {
            break;
        }
        text = text[..escape].trim_ascii_end();
    }
    text
}

/// The part of a block's content without a byte order mark and colour codes before and after it.
pub(crate) fn without_codes(content: &[u8]) -> std::ops::Range<usize> {
    let (mut start, mut at) = (0, 0);
    while let Some(byte) = content.get(at) {
        let code = match byte {
            0x1b => ansi_length(&content[at..]),
            0xef if content[at..].starts_with("\u{feff}".as_bytes()) => Some(3),
            _ => None,
        };
        match code {
            Some(length) => {
                at += length;
                start = at;
            }
            None if byte.is_ascii_whitespace() => at += 1,
            None => break,
        }
    }
    let trimmed = content[start..].trim_ascii_end();
    let plain = strip_ansi_tail(trimmed);
    let end = if plain.len() < trimmed.len() { start + plain.len() } else { content.len() };
    start..end
}

/// Reads quote markers, list markers (outside of a block) and whitespace at the start of a line.
fn head(line: &[u8], in_block: bool) -> Head {
    let mut head = Head::default();
    let mut at = 0;
    let mut column = 0;
    if line.starts_with("\u{feff}".as_bytes()) {
        at = 3;
    }
    loop {
        match line.get(at) {
            Some(b' ') => {
                at += 1;
                column += 1;
            }
            Some(b'\t') => {
                at += 1;
                column += 4 - column % 4;
            }
            Some(b'>') if head.marker.is_none() || !in_block => {
                head.quotes = head.quotes.saturating_add(1);
                at += 1;
                // The space after a marker belongs to it, and indentation counts from there.
                if line.get(at) == Some(&b' ') {
                    at += 1;
                }
                column = 0;
            }
            Some(0x1b) => match ansi_length(&line[at..]) {
                Some(length) => at += length,
                None => break,
            },
            Some(b'-' | b'*' | b'+')
                if !in_block && matches!(line.get(at + 1), Some(b' ' | b'\t')) =>
            {
                head.marker.get_or_insert(column);
                at += 1;
                column += 1;
            }
            Some(b'0'..=b'9') if !in_block => {
                let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let close = matches!(line.get(at + digits), Some(b'.' | b')'));
                if digits > 9 || !close || !matches!(line.get(at + digits + 1), Some(b' ' | b'\t'))
                {
                    break;
                }
                head.marker.get_or_insert(column);
                at += digits + 1;
                column += digits + 1;
            }
            _ => break,
        }
    }
    head.indent = column;
    head.at = at;
    head
}

fn ansi_length(rest: &[u8]) -> Option<usize> {
    if rest.get(1) != Some(&b'[') {
        return None;
    }
    let length = rest[2..].iter().take(16).position(u8::is_ascii_alphabetic)?;
    Some(length + 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(text: &str) -> Vec<(&str, bool)> {
        let mut scan = FenceScan::new(0);
        scan.feed(text.as_bytes(), 0, true);
        scan.take_blocks()
            .into_iter()
            .map(|block| (&text[block.start..block.end], block.tagged))
            .collect()
    }

    #[test]
    fn fences_by_commonmark() {
        assert_eq!(blocks("```json\n1\n```\n"), [("1\n", true)]);
        assert_eq!(blocks("~~~~JSON\n1\n~~~\n2\n~~~~~\n"), [("1\n~~~\n2\n", true)]);
        assert_eq!(blocks("```\n1\n```"), [("1\n", false)]);
        assert_eq!(blocks("   ```jsonc title=\"x\"\n1\n   ```"), [("1\n", true)]);
        assert_eq!(blocks("    ```json\n1\n    ```"), []);
        assert_eq!(blocks("- ```json\n  1\n  ```"), [("  1\n", true)]);
        assert_eq!(blocks("1. Result:\n\n   ```json\n   1\n   ```"), [("   1\n", true)]);
        assert_eq!(blocks("> ```json\n> 1\n> ```"), [("> 1\n", true)]);
        assert_eq!(blocks("> ```json\n> 1\nno quote"), [("> 1\n", true)]);
        assert_eq!(blocks("```json\n1"), [("1", true)]);
        assert_eq!(blocks("```python\n1\n```\n```json\n2\n```"), [("2\n", true)]);
    }

    #[test]
    fn a_closing_fence_never_opens_one() {
        assert_eq!(blocks("```sh\nls\n```\n{\"a\": 1}\n"), []);
    }

    #[test]
    fn markdown_blocks_hold_documents() {
        assert_eq!(blocks("````markdown\n```json\n1\n```\n````"), [("1\n", true)]);
        assert_eq!(blocks("```md\n```json\n1\n```\n```"), [("1\n", true)]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(text in "[`~>\\- jsonmd1\n]{0,60}", cut in 1usize..7) {
            let mut whole = FenceScan::new(0);
            whole.feed(text.as_bytes(), 0, true);
            let mut parts = FenceScan::new(0);
            let mut at = 0;
            while at < text.len() {
                at = (at + cut).min(text.len());
                let keep = parts.keep_from();
                parts.feed(&text.as_bytes()[keep..at], keep, false);
            }
            let keep = parts.keep_from();
            parts.feed(&text.as_bytes()[keep..], keep, true);
            prop_assert_eq!(whole.take_blocks(), parts.take_blocks());
        }
    }
}
