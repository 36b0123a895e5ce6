//! The fence lines of a text, found as its window grows: what a mended string needs to know to tell
//! a fence that ends its block from one inside it.

/// A line that starts with three or more backticks or tildes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FenceLine {
    /// Offset of the line's first byte.
    pub(crate) line: usize,
    /// Nothing but the fence stands on it, so it can close a block.
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
    /// Lines before this offset have been looked at.
    pos: usize,
}

impl FenceLines {
    /// Looks at the complete lines of the window, and at `eof` at the last one too.
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

    /// Where a string from `start` is cut by the end of the block it stands in, if it is: `end` is
    /// where it would close, or `None` if it never does.
    pub(crate) fn cut(&self, start: usize, end: Option<usize>) -> Option<usize> {
        /// Fence lines looked at inside one string.
        const MOST: usize = 64;
        let from = self.lines.partition_point(|fence| fence.line <= start);
        let mut inside = self.lines[from..]
            .iter()
            .take(MOST)
            .take_while(|fence| end.is_none_or(|end| fence.line < end));
        let mut open = 0_usize;
        while let Some(fence) = inside.next() {
            if !fence.bare {
                open += 1;
            } else if open > 0 {
                open -= 1;
            } else {
                // The end of our own block, unless the string goes on behind it and the fences
                // inside pair up.
                match (inside.next(), end) {
                    (Some(next), Some(_)) if next.bare => {}
                    (None, Some(_)) if end.is_some() => return None,
                    _ => return Some(fence.line),
                }
            }
        }
        None
    }

    /// Forgets lines before `offset`.
    pub(crate) fn forget_before(&mut self, offset: usize) {
        let gone = self.lines.partition_point(|fence| fence.line < offset);
        self.lines.drain(..gone);
    }
}
