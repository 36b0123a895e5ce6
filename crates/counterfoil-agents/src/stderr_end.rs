//! The end of what a program writes to standard error.

/// The last bytes of standard error, up to a limit.
#[derive(Debug)]
pub(crate) struct StderrEnd {
    pub(crate) bytes: Vec<u8>,
    most: usize,
}

impl StderrEnd {
    /// Keeps at most so many bytes.
    pub(crate) fn of(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let over = self.bytes.len().saturating_sub(self.most);
        self.bytes.drain(..over);
    }
}
