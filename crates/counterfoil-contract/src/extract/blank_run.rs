//! The last stretch of lines with blanks and comments between two tokens. Values that seem to begin
//! inside of its comments all end up in it, so it is read once and passed over afterwards.

/// How such a stretch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// A token begins.
    Token,
    /// The text, or the block around the value, ends.
    End,
    /// No value can go on like this.
    Fail,
}

/// A stretch of lines with blanks and comments. All offsets are those of the whole text.
#[derive(Debug, Default)]
pub(crate) struct BlankRun {
    /// The quote markers on each line.
    quote_depth: u8,
    /// Where its lines begin, in order.
    lines: Vec<usize>,
    end: Option<(usize, RunEnd)>,
    /// Never passes anything over, to compare with.
    #[cfg(test)]
    pub(crate) is_off: bool,
}

impl BlankRun {
    /// Remembers a stretch instead of the last one. The list gets the memory of the old one.
    pub(crate) fn remember(
        &mut self,
        lines: &mut Vec<usize>,
        quote_depth: u8,
        end: usize,
        how: RunEnd,
    ) {
        std::mem::swap(&mut self.lines, lines);
        self.quote_depth = quote_depth;
        self.end = Some((end, how));
    }

    /// Where the stretch ends that contains the line which begins here.
    pub(crate) fn end_from(&self, line: usize, quote_depth: u8) -> Option<(usize, RunEnd)> {
        #[cfg(test)]
        if self.is_off {
            return None;
        }
        let end = self.end.filter(|_| self.quote_depth == quote_depth)?;
        self.lines.binary_search(&line).is_ok().then_some(end)
    }
}
