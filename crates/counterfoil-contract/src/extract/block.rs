//! Scans for `---OUTPUT---` … `---END---` blocks. Resumable, line by line.

const OPEN: &[u8] = b"---OUTPUT---";
const CLOSE: &[u8] = b"---END---";

/// The content of a complete block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputBlock {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether both markers are alone on their lines.
    pub(crate) own_lines: bool,
}

#[derive(Debug, Default)]
pub(crate) struct BlockScan {
    pos: usize,
    /// The start of the open block's content, by markers on lines of their own.
    open: Option<usize>,
    /// The start of the open block's content, by markers anywhere.
    open_anywhere: Option<usize>,
    blocks: Vec<OutputBlock>,
    pub(crate) examined: u64,
}

impl BlockScan {
    pub(crate) fn new(start: usize) -> Self {
        Self { pos: start, ..Self::default() }
    }

    /// The first offset that must stay in the window.
    pub(crate) fn keep_from(&self) -> usize {
        [self.open, self.open_anywhere]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.pos)
            .min(self.pos)
    }

    /// Skips the text up to an offset.
    pub(crate) fn skip_to(&mut self, offset: usize) {
        self.pos = self.pos.max(offset);
    }

    /// The start of the content of an unfinished block.
    pub(crate) fn unfinished(&self) -> Option<usize> {
        self.open.or(self.open_anywhere)
    }

    /// Takes the complete blocks found since the last call.
    pub(crate) fn take_blocks(&mut self) -> Vec<OutputBlock> {
        std::mem::take(&mut self.blocks)
    }

    /// Reads the complete lines of the window, and at `eof` the last one too.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: usize, eof: bool) {
        loop {
            let Some(rest) = bytes.get(self.pos - base..).filter(|rest| !rest.is_empty()) else {
                return;
            };
            let length = match memchr::memchr(b'\n', rest) {
                Some(newline) => newline + 1,
                None if eof => rest.len(),
                None => return,
            };
            self.line(&rest[..length]);
            self.pos += length;
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.examined += line.len() as u64;
        if memchr::memmem::find(line, b"---").is_none() {
            return;
        }
        self.examined += line.len() as u64;
        match bare(line) {
            OPEN => self.open = Some(self.pos + line.len()),
            CLOSE => {
                if let Some(start) = self.open.take() {
                    self.blocks.push(OutputBlock { start, end: self.pos, own_lines: true });
                }
            }
            _ => {}
        }
        self.anywhere(line);
    }

    fn anywhere(&mut self, line: &[u8]) {
        let mut at = 0;
        while let Some(found) = memchr::memmem::find(&line[at..], b"---") {
            at += found;
            if line[at..].starts_with(OPEN) {
                at += OPEN.len();
                self.open_anywhere = Some(self.pos + at);
            } else if line[at..].starts_with(CLOSE) {
                if let Some(start) = self.open_anywhere.take() {
                    self.blocks.push(OutputBlock { start, end: self.pos + at, own_lines: false });
                }
                at += CLOSE.len();
            } else {
                at += 1;
            }
        }
    }
}

/// A line without whitespace and colour codes around its text.
pub(crate) fn bare(line: &[u8]) -> &[u8] {
    let mut text = line.trim_ascii();
    while text.starts_with(b"\x1b[") {
        let Some(end) = text[2..].iter().position(u8::is_ascii_alphabetic) else { break };
        text = text[end + 3..].trim_ascii_start();
    }
    if let Some(escape) = memchr::memchr(0x1b, text) {
        text = text[..escape].trim_ascii_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<(&str, bool)> {
        let mut scan = BlockScan::new(0);
        scan.feed(text.as_bytes(), 0, true);
        scan.take_blocks()
            .into_iter()
            .map(|block| (&text[block.start..block.end], block.own_lines))
            .collect()
    }

    #[test]
    fn markers_alone_and_anywhere() {
        assert_eq!(blocks("x\n---OUTPUT---\na: 1\n---END---\n")[0], ("a: 1\n", true));
        assert_eq!(blocks("x ---OUTPUT--- a: 1 ---END---"), [(" a: 1 ", false)]);
        assert_eq!(blocks("---END---\n---OUTPUT---\nx"), []);
        let nested = "---OUTPUT---\nold\n---OUTPUT---\nnew\n---END---\n---END---";
        assert!(blocks(nested).iter().all(|(content, _)| content.trim() == "new"));
        assert_eq!(
            blocks("\u{1b}[32m---OUTPUT---\u{1b}[0m\r\na: 1\r\n---END---\r\n")[0],
            ("a: 1\r\n", true)
        );
    }
}
