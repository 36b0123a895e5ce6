//! Lines from pieces of output, of bounded length.

/// A longer line is not read; it is in the transcript all the same.
pub const LONGEST: usize = 64 << 20;

/// Puts lines together.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// The line that is coming is longer than any that is read.
    over: bool,
    /// How many lines were too long.
    pub too_long: usize,
}

impl Lines {
    /// Takes a piece and hands on the lines that are whole, without their ends.
    pub fn push(&mut self, mut piece: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(at) = memchr::memchr(b'\n', piece) {
            if self.begun.is_empty() && !self.over {
                each(without_return(&piece[..at]));
            } else {
                self.add(&piece[..at]);
                self.flush(&mut each);
            }
            piece = &piece[at + 1..];
        }
        self.add(piece);
    }

    /// Hands on a last line that has no end.
    pub fn end(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() || self.over {
            self.flush(&mut each);
        }
    }

    fn add(&mut self, piece: &[u8]) {
        if self.over {
            return;
        }
        if self.begun.len() + piece.len() > LONGEST {
            self.over = true;
            self.begun = Vec::new();
            return;
        }
        self.begun.extend_from_slice(piece);
    }

    fn flush(&mut self, each: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.over) {
            self.too_long += 1;
        } else {
            each(without_return(&self.begun));
        }
        // A long line does not keep its room.
        if self.begun.capacity() > 1 << 20 { self.begun = Vec::new() } else { self.begun.clear() }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> (Vec<String>, usize) {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let mut keep = |line: &[u8]| found.push(String::from_utf8_lossy(line).into_owned());
        for piece in pieces {
            lines.push(piece, &mut keep);
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
        let piece = vec![b'x'; 1 << 20];
        let mut pieces: Vec<&[u8]> = vec![&piece; 65];
        pieces.push(b"\nnext\n");
        assert_eq!(lines(&pieces), (vec!["next".to_owned()], 1));
    }
}
