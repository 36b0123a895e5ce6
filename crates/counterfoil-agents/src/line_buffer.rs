//! Splits streamed output into lines of bounded length.

/// The longest line that is parsed. A longer one is skipped; the transcript still contains it.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// Assembles lines from chunks of output.
#[derive(Debug, Default)]
pub struct LineBuffer {
    partial: Vec<u8>,
    /// Whether the current line is too long.
    over: bool,
    /// How many lines were too long.
    pub too_long: usize,
}

impl LineBuffer {
    /// Adds a chunk and passes each complete line, without its line ending, to `each`.
    pub fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            if self.partial.is_empty() && !self.over {
                each(strip_carriage_return(&chunk[..at]));
            } else {
                self.add(&chunk[..at]);
                self.flush(&mut each);
            }
            chunk = &chunk[at + 1..];
        }
        self.add(chunk);
    }

    /// Passes a last line without a line ending to `each`.
    pub fn end(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.partial.is_empty() || self.over {
            self.flush(&mut each);
        }
    }

    fn add(&mut self, chunk: &[u8]) {
        if self.over {
            return;
        }
        if self.partial.len() + chunk.len() > MAX_LINE_BYTES {
            self.over = true;
            self.partial = Vec::new();
            return;
        }
        self.partial.extend_from_slice(chunk);
    }

    fn flush(&mut self, each: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.over) {
            self.too_long += 1;
        } else {
            each(strip_carriage_return(&self.partial));
        }
        // Release the memory of a long line.
        if self.partial.capacity() > 1 << 20 {
            self.partial = Vec::new();
        } else {
            self.partial.clear();
        }
    }
}

fn strip_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> (Vec<String>, usize) {
        let (mut lines, mut found) = (LineBuffer::default(), Vec::new());
        let mut keep = |line: &[u8]| found.push(String::from_utf8_lossy(line).into_owned());
        for chunk in chunks {
            lines.push(chunk, &mut keep);
        }
        lines.end(&mut keep);
        (found, lines.too_long)
    }

    #[test]
    fn lines_come_whole_from_any_pieces() {
        assert_eq!(
            lines(&[b"a\nb", b"c\r\n", b"", b"\n", b"d"]),
            (["a", "bc", "", "d"].map(str::to_owned).to_vec(), 0)
        );
    }

    #[test]
    fn a_line_without_an_end_to_it_is_passed_over_and_the_next_is_read() {
        let chunk = vec![b'x'; 1 << 20];
        let mut chunks: Vec<&[u8]> = vec![&chunk; 65];
        chunks.push(b"\nnext\n");
        assert_eq!(lines(&chunks), (vec!["next".to_owned()], 1));
    }
}
