//! Stretches of blanks and comments between two tokens. Values that seem to begin inside of the string
//! before a stretch, or inside of its comments, all end up in it, so it is read once and passed over
//! afterwards.

use std::collections::HashMap;

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

/// A shorter stretch costs little to read again.
const MIN_BYTES: usize = 16;

/// Stretches of blanks and comments. All offsets are those of the whole text.
#[derive(Debug, Default)]
pub(crate) struct BlankRuns {
    /// By their begin, with the number of quote markers on each line.
    runs: HashMap<usize, (u8, usize, RunEnd)>,
    /// The last stretch that has several lines, or a long one.
    last: LastLines,
    /// Never passes anything over, to compare with.
    #[cfg(test)]
    pub(crate) is_off: bool,
}

#[derive(Debug, Default)]
struct LastLines {
    quote_depth: u8,
    /// Where its lines begin, in order.
    lines: Vec<usize>,
    end: Option<(usize, RunEnd)>,
}

impl BlankRuns {
    /// Remembers a stretch. The list gets other memory for its lines.
    pub(crate) fn remember(
        &mut self,
        start: usize,
        lines: &mut Vec<usize>,
        quote_depth: u8,
        end: usize,
        how: RunEnd,
    ) {
        let is_long = end - start >= MIN_BYTES;
        if is_long {
            self.runs.insert(start, (quote_depth, end, how));
        }
        if lines.len() > 1 || (is_long && !lines.is_empty()) {
            std::mem::swap(&mut self.last.lines, lines);
            self.last.quote_depth = quote_depth;
            self.last.end = Some((end, how));
        }
    }

    /// Where the stretch ends that begins here.
    pub(crate) fn end_from(&self, start: usize, quote_depth: u8) -> Option<(usize, RunEnd)> {
        #[cfg(test)]
        if self.is_off {
            return None;
        }
        let (depth, end, how) = self.runs.get(&start)?;
        (*depth == quote_depth).then_some((*end, *how))
    }

    /// Where the stretch ends that contains the line which begins here.
    pub(crate) fn end_from_line(&self, line: usize, quote_depth: u8) -> Option<(usize, RunEnd)> {
        #[cfg(test)]
        if self.is_off {
            return None;
        }
        let end = self.last.end.filter(|_| self.last.quote_depth == quote_depth)?;
        self.last.lines.binary_search(&line).is_ok().then_some(end)
    }
}
