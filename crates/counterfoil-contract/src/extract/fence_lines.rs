//! The fence lines of a text, found as its window grows. The repair of a string needs them to
//! distinguish a fence that ends the block from one inside the string.

/// A line that starts with three or more backticks or tildes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FenceLine {
    /// Offset of the line's first byte.
    pub(crate) line: usize,
    /// Whether the line has nothing but the fence, so that it can close a block.
    pub(crate) bare: bool,
}

/// Length of the run of one fence character at the head of `rest`, if at least three.
pub(crate) fn fence_run(rest: &[u8]) -> Option<(u8, usize)> {
    let mark = *rest.first()?;
    if !matches!(mark, b'`' | b'~') {
        return None;
    }
    let length = rest.iter().take_while(|byte| **byte == mark).count();
    (length >= 3).then_some((mark, length))
}

#[derive(Debug, Default)]
pub(crate) struct FenceLines {
    lines: Vec<FenceLine>,
    /// Lines before this offset were scanned.
    pos: usize,
}

impl FenceLines {
    /// Scans the complete lines of the window, and at `eof` the last one too.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: usize, eof: bool) {
        self.pos = self.pos.max(base);
        loop {
            let from = self.pos - base;
            let Some(rest) = bytes.get(from..) else { return };
            if rest.is_empty() {
                return;
            }
            let length = match memchr::memchr(b'\n', rest) {
                Some(newline) => newline + 1,
                None if eof => rest.len(),
                None => return,
            };
            let line = &rest[..length];
            let blank = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'>')).count();
            if let Some((_, run)) = fence_run(&line[blank..]) {
                let tail = &line[blank + run..];
                let bare = tail.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
                self.lines.push(FenceLine { line: self.pos, bare });
            }
            self.pos += length;
        }
    }

    /// The offset at which the end of its block cuts a string that starts at `start`, if it does.
    /// `end` is where the string would close, or `None` if it never does.
    pub(crate) fn cut(&self, start: usize, end: Option<usize>) -> Option<usize> {
        /// The number of fence lines examined inside one string.
        const MAX_FENCE_LINES: usize = 64;
        let from = self.lines.partition_point(|fence| fence.line <= start);
        let mut inside = self.lines[from..]
            .iter()
            .take(MAX_FENCE_LINES)
            .take_while(|fence| end.is_none_or(|end| fence.line < end));
        let mut open = 0_usize;
        while let Some(fence) = inside.next() {
            if !fence.bare {
                open += 1;
            } else if open > 0 {
                open -= 1;
            } else {
                // The end of the block that holds the string, unless the string continues after
                // it and the fences inside pair up.
                match (inside.next(), end) {
                    (Some(next), Some(_)) if next.bare => {}
                    (None, Some(_)) if end.is_some() => return None,
                    _ => return Some(fence.line),
                }
            }
        }
        None
    }

    /// Drops the lines before `offset`.
    pub(crate) fn forget_before(&mut self, offset: usize) {
        let gone = self.lines.partition_point(|fence| fence.line < offset);
        self.lines.drain(..gone);
    }
}
