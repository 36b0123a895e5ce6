//! Repairs one value that is nearly JSON: finds the edits that make it JSON.
//!
//! It never builds a value. The edits are applied to the text and the strict parser reads the
//! result, so a repair is exactly what the provenance says. The scan starts at an opening bracket,
//! with a stack and a bounded look-ahead. When it fails, every open bracket fails with it, as in
//! the strict scanner.

mod blanks;
mod scalars;
mod words;

use super::closing_quote::{Closers, NeedMoreText, Quote, Window};
use super::doubt::{self, Ambiguity, Doubt, DoubtKind, Refusal};
use super::fence_lines::FenceLines;
use super::prose;
use super::string_edits::{Text, text_edits};
use crate::edit::{Edit, RepairKind, sort_edits};

/// Bytes at the start of a line that are read to find quote markers and fences.
const LINE_HEAD: usize = 64;

/// The most edits of one value, and the most strings that are looked into for edits.
pub(crate) const MAX_EDITS: usize = 1_000_000;

/// The most brackets that are open at once. What is deeper is no JSON that anyone reads.
const MAX_OPEN: usize = 1 << 17;

/// The most values inside of one that is not JSON which are tried on their own, the last ones.
const MAX_INNER: usize = 1 << 16;

/// The outcome of a repair from one opening bracket.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// A value up to `end`, if the edits are applied.
    Done { end: usize, edits: Vec<Edit> },
    /// A value up to `end` that is not repaired. The edits are those of the first reading; none if
    /// that has no end.
    Refused { end: usize, edits: Vec<Edit>, refusal: Refusal },
    /// Not JSON; continue at `resume`. `inner` holds the starts of values that closed inside.
    Failed { at: usize, resume: usize, inner: Vec<usize> },
    /// The window ended first.
    More,
}

enum Stop {
    More,
    Fail(usize),
    /// The text, or the block around the value, ends here, inside the value.
    Cut(usize),
    /// There is a doubt that leaves open how the value goes on from here.
    Doubt(usize),
}

impl From<NeedMoreText> for Stop {
    fn from(_: NeedMoreText) -> Self {
        Self::More
    }
}

#[derive(Debug)]
struct Frame {
    object: bool,
    start: usize,
    /// The comma right before the current position, if there is one.
    comma: Option<usize>,
    empty: bool,
    /// Whether its last item is a word without quotes.
    bare: bool,
    mark: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a key or the closing brace.
    Key,
    Colon,
    /// Before a value (or, in a list, its end).
    Value,
    After,
}

enum Blank {
    /// A token begins here.
    Token(usize),
    /// The text, or the block around the value, ends here.
    End(usize),
}

/// Buffers that attempts reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    stack: Vec<Frame>,
    edits: Vec<Edit>,
    texts: Vec<Text>,
    closed: Vec<usize>,
    /// Where the lines of the current blanks begin.
    lines: Vec<usize>,
    /// Where blanks begin that were passed over.
    skipped: Vec<usize>,
}

pub(crate) struct Repairer<'w> {
    pub(crate) window: Window<'w>,
    pub(crate) closers: &'w mut Closers,
    pub(crate) fences: &'w FenceLines,
    scratch: &'w mut Scratch,
    last_string: Option<usize>,
    quote_depth: u8,
    /// The end of the last token (exclusive).
    last_end: usize,
    /// Whether the last token was a number or a word, which a truncation may have shortened.
    open_ended: bool,
    /// The start of the last token, if it is a scalar.
    last_scalar: Option<usize>,
    /// Whether the value is more than an opening bracket in prose.
    begun: bool,
    /// Whether a key has double quotes.
    quoted_key: bool,
    /// The last word without quotes that was taken as a value.
    last_bare: Option<usize>,
    /// The first doubt in the order of the scan.
    doubt: Option<Doubt>,
    /// How many stretches of blanks were passed over when it was noted.
    skipped_before_doubt: usize,
    /// Where the first line of a string ends that nothing closes.
    cut_at: Option<usize>,
    /// There are more edits than the limit.
    too_many: bool,
    /// Whether what is open at the end of the text is closed.
    accept_truncated: bool,
    /// Whether a list counts as begun from its first string on.
    counts_items: bool,
    pub(crate) examined: u64,
}

impl<'w> Repairer<'w> {
    pub(crate) fn new(
        window: Window<'w>,
        closers: &'w mut Closers,
        fences: &'w FenceLines,
        scratch: &'w mut Scratch,
    ) -> Self {
        scratch.stack.clear();
        scratch.edits.clear();
        scratch.texts.clear();
        scratch.closed.clear();
        scratch.skipped.clear();
        Self {
            window,
            closers,
            fences,
            scratch,
            last_string: None,
            quote_depth: 0,
            last_end: 0,
            open_ended: false,
            last_scalar: None,
            begun: false,
            quoted_key: false,
            last_bare: None,
            doubt: None,
            skipped_before_doubt: 0,
            cut_at: None,
            too_many: false,
            accept_truncated: false,
            counts_items: false,
            examined: 0,
        }
    }

    /// Closes what is open at the end of the text.
    pub(crate) fn accept_truncated(mut self, accept: bool) -> Self {
        self.accept_truncated = accept;
        self
    }

    /// A list counts as begun from its first string on, not only from its first comma on.
    pub(crate) fn counts_items(mut self, counts: bool) -> Self {
        self.counts_items = counts;
        self
    }

    /// Tries the bracket at offset `start`.
    pub(crate) fn attempt(mut self, start: usize) -> (Attempt, u64) {
        let base = self.window.base;
        let from = start - base;
        self.quote_depth = prose::quote_depth(self.window.bytes, base, from);
        let found = self.value_from(from).and_then(|end| {
            let edits = self.all_edits(end);
            self.check_end(from, end, &edits)?;
            Ok((end, edits))
        });
        let attempt = match found {
            Ok((end, _)) if self.too_many => Attempt::Refused {
                end: base + end,
                edits: Vec::new(),
                refusal: Refusal::TooMany { at: start },
            },
            Ok((end, edits)) => match self.doubt {
                None => Attempt::Done { end: base + end, edits },
                Some(doubt) => self.refused(doubt, base + end, edits),
            },
            Err(Stop::More) => Attempt::More,
            Err(Stop::Doubt(at)) => {
                // Doubts about its strings are nearer to the cause than those of the scan.
                self.read_skipped();
                let last = self.doubt.take();
                self.all_edits(at);
                match self.doubt.or(last) {
                    None => Attempt::Failed { at: base + at, resume: base + at, inner: Vec::new() },
                    Some(doubt) => self.refused(doubt, base + at, Vec::new()),
                }
            }
            Err(Stop::Cut(at)) => Attempt::Refused {
                end: base + at,
                edits: Vec::new(),
                refusal: Refusal::Truncated { at: base + at },
            },
            Err(Stop::Fail(at)) => {
                let resume = self.last_string.map_or(at.max(from + 1), |quote| quote + 1);
                let closed = &self.scratch.closed;
                let last = &closed[closed.len().saturating_sub(MAX_INNER)..];
                let inner = last.iter().map(|start| base + start).collect();
                Attempt::Failed { at: base + at, resume: base + resume, inner }
            }
        };
        (attempt, self.examined)
    }

    /// A value with a doubt. The text in doubt is quoted, so it must be there as a whole.
    fn refused(&self, doubt: Doubt, end: usize, edits: Vec<Edit>) -> Attempt {
        let Window { bytes, base, eof } = self.window;
        if !eof && doubt.end >= bytes.len() {
            return Attempt::More;
        }
        let cut_at = self.cut_at.map(|at| base + at);
        let refusal = Refusal::Ambiguous(Ambiguity { cut_at, ..doubt.ambiguity(bytes, base) });
        Attempt::Refused { end, edits, refusal }
    }

    /// The edits of the value up to `end`. Doubts about its strings are noted.
    fn all_edits(&mut self, end: usize) -> Vec<Edit> {
        let (bytes, base) = (self.window.bytes, self.window.base);
        self.read_skipped();
        if self.scratch.edits.len() > MAX_EDITS {
            self.too_many = true;
            self.scratch.edits.clear();
        }
        // Edits of strings come first: a truncated string is closed before its brackets.
        let mut edits = Vec::new();
        let texts = std::mem::take(&mut self.scratch.texts);
        for text in &texts {
            self.examined += (text.end - text.start) as u64;
            let before = edits.len();
            let escape = text_edits(text, bytes, base, &mut edits);
            if edits.len() > MAX_EDITS {
                self.too_many = true;
                edits.clear();
                break;
            }
            if let Some(mid) = escape {
                self.doubt(DoubtKind::Escape, text.start, mid, text.end);
            }
            let quotes = edits.len() > before || text.quote != Quote::Double;
            if quotes && let Some(mid) = doubt::inner_quote(text, bytes) {
                self.doubt(DoubtKind::Quote, text.start, mid, text.end);
            }
        }
        if let Some(only) = doubt::lone_escape(&edits, bytes, base) {
            let (start, end) = (only.start - base, only.end - base);
            self.doubt(DoubtKind::Escape, start, end, (end + 1).min(bytes.len()));
        }
        let style = doubt::quote_style(&texts, bytes);
        self.doubt = self.doubt.or(style);
        self.scratch.texts = texts;
        edits.append(&mut self.scratch.edits);
        sort_edits(&mut edits, base + end);
        edits
    }

    fn doubt(&mut self, kind: DoubtKind, start: usize, mid: usize, end: usize) {
        if self.doubt.is_none() {
            self.doubt = Some(Doubt { kind, start, mid, end });
            self.skipped_before_doubt = self.scratch.skipped.len();
        }
    }

    /// Notes a doubt if the last bracket may not belong there, because the value seems to go on.
    fn check_end(&mut self, from: usize, end: usize, edits: &[Edit]) -> Result<(), Stop> {
        use RepairKind::{BareValue, Comment, ExtraComma, MissingComma, TrailingComma};
        if edits.is_empty() {
            return Ok(());
        }
        let text = |quote| self.scratch.texts.iter().any(|text| text.quote == quote);
        let mixed = text(Quote::Double)
            && [Quote::Single, Quote::SmartDouble, Quote::SmartSingle].into_iter().any(text);
        let tokens = edits.iter().any(|edit| {
            matches!(edit.kind, BareValue | Comment | ExtraComma | MissingComma | TrailingComma)
        });
        let object = self.window.bytes[from] == b'{';
        if self.window.half_string(end, mixed)? || (tokens && self.window.goes_on(end, object)?) {
            let limit = (end + LINE_HEAD).min(self.window.bytes.len());
            self.doubt(DoubtKind::End, end - 1, end, limit);
        }
        Ok(())
    }

    fn value_from(&mut self, from: usize) -> Result<usize, Stop> {
        let mut at = from;
        let mut state = self.open(at);
        at += 1;
        loop {
            match self.blanks(at)? {
                Blank::Token(next) => at = next,
                Blank::End(end) => return self.finish(state, end),
            }
            let Some(byte) = self.window.get(at)? else { return self.finish(state, at) };
            self.examined += 1;
            if self.scratch.texts.len() + self.scratch.edits.len() > MAX_EDITS {
                self.too_many = true;
                self.scratch.texts.clear();
                self.scratch.edits.clear();
            }
            let in_object = self.scratch.stack.last().is_some_and(|frame| frame.object);
            match (state, byte) {
                // A key without a value.
                (State::Value, b'}' | b']') if in_object => return Err(Stop::Fail(at)),
                (State::Key | State::Value | State::After, b'}' | b']') => {
                    if let Some(end) = self.close(at, byte == b'}')? {
                        return Ok(end);
                    }
                    at += 1;
                    state = State::After;
                }
                (State::Key, b',') => {
                    let Some(comma) = self.scratch.stack.last().and_then(|frame| frame.comma)
                    else {
                        return Err(Stop::Fail(at));
                    };
                    if self.window.bytes[comma - 1].is_ascii_digit() {
                        // The first comma may have been a digit.
                        let start = self.last_scalar.unwrap_or(comma - 1);
                        self.doubt(DoubtKind::Digit, start, comma, at + 1);
                    }
                    self.edit(RepairKind::ExtraComma, at, at + 1, "");
                    at += 1;
                }
                (State::Key, _) => {
                    at = self.key(at)?;
                    state = State::Colon;
                }
                (State::Colon, b':') => {
                    self.last_string = None;
                    self.begun = true;
                    at += 1;
                    state = State::Value;
                }
                (State::Colon, _) => return Err(Stop::Fail(at)),
                (State::Value, b'{' | b'[') if self.scratch.stack.len() >= MAX_OPEN => {
                    return Err(Stop::Fail(at));
                }
                (State::Value, b'{' | b'[') => {
                    state = self.open(at);
                    at += 1;
                }
                (State::Value, _) => {
                    at = self.scalar(at)?;
                    state = State::After;
                }
                (State::After, b',') => {
                    self.last_string = None;
                    state = self.comma(at);
                    at += 1;
                }
                (State::After, _) => state = self.missing_comma(at, byte)?,
            }
        }
    }

    fn edit(&mut self, kind: RepairKind, start: usize, end: usize, replacement: &'static str) {
        let base = self.window.base;
        self.scratch.edits.push(Edit {
            kind,
            start: base + start,
            end: base + end,
            replacement: replacement.into(),
        });
    }

    fn open(&mut self, at: usize) -> State {
        let object = self.window.bytes[at] == b'{';
        if let Some(parent) = self.scratch.stack.last_mut() {
            parent.comma = None;
        }
        self.scratch.stack.push(Frame {
            object,
            start: at,
            comma: None,
            empty: true,
            bare: false,
            mark: self.scratch.closed.len(),
        });
        self.last_string = None;
        self.last_scalar = None;
        self.open_ended = false;
        self.last_end = at + 1;
        if object { State::Key } else { State::Value }
    }

    /// A closing bracket; the end of the value if it was the last. One of the other kind leaves open
    /// which bracket is missing, and where.
    fn close(&mut self, at: usize, object: bool) -> Result<Option<usize>, Stop> {
        let Some(frame) = self.scratch.stack.pop() else { return Err(Stop::Fail(at)) };
        if frame.object != object {
            let start = frame.start;
            self.scratch.stack.push(frame);
            if !self.begun {
                return Err(Stop::Fail(at));
            }
            self.doubt(DoubtKind::Closer, start, at, at + 1);
            return Err(Stop::Doubt(at + 1));
        }
        if let Some(comma) = frame.comma {
            self.edit(RepairKind::TrailingComma, comma, comma + 1, "");
        }
        self.scratch.closed.truncate(frame.mark);
        self.scratch.closed.push(frame.start);
        self.last_string = None;
        // An empty list or object is little more than a token.
        self.last_scalar = frame.empty.then_some(frame.start);
        self.open_ended = false;
        self.last_end = at + 1;
        match self.scratch.stack.last_mut() {
            None => Ok(Some(at + 1)),
            Some(parent) => {
                parent.comma = None;
                parent.empty = false;
                parent.bare = false;
                Ok(None)
            }
        }
    }

    fn comma(&mut self, at: usize) -> State {
        self.open_ended = false;
        match self.scratch.stack.last_mut() {
            Some(frame) => {
                self.begun = true;
                frame.comma = Some(at);
                if frame.object { State::Key } else { State::Value }
            }
            None => State::After,
        }
    }

    /// Inserts a comma where the next element begins without one.
    fn missing_comma(&mut self, at: usize, byte: u8) -> Result<State, Stop> {
        let object = self.scratch.stack.last().is_some_and(|frame| frame.object);
        let good = if object {
            self.window.key_ahead(at)?
        } else {
            matches!(byte, b'"' | b'\'' | b'{' | b'[' | b'-' | b'0'..=b'9' | 0xe2)
                || matches!(byte, b't' | b'f' | b'n' | b'T' | b'F' | b'N')
        };
        // Text right after the last token belongs to that token.
        if !good || at == self.last_end {
            return Err(Stop::Fail(at));
        }
        if !object && (self.last_scalar.is_some() || !self.window.filled(at)?) {
            // Two items, or one and a stray token.
            let start = self.last_scalar.unwrap_or(self.last_end - 1);
            let limit = (at + LINE_HEAD).min(self.window.bytes.len());
            let line = memchr::memchr(b'\n', &self.window.bytes[at..limit]);
            self.doubt(DoubtKind::Comma, start, at, line.map_or(limit, |length| at + length));
        }
        if self.open_ended && self.last_scalar.is_some_and(|start| self.last_end - start > 1) {
            // The last digit may have been the comma.
            let start = self.last_scalar.unwrap_or(at);
            self.doubt(DoubtKind::Digit, start, self.last_end, self.last_end);
        }
        self.edit(RepairKind::MissingComma, self.last_end, self.last_end, ",");
        self.last_string = None;
        Ok(if object { State::Key } else { State::Value })
    }

    /// Closes what is open at the end of the text or block, if that is allowed and only closing marks
    /// are missing.
    fn finish(&mut self, state: State, met: usize) -> Result<usize, Stop> {
        if !self.begun {
            return Err(Stop::Fail(met));
        }
        let end = self.last_end;
        let (object, empty) =
            self.scratch.stack.last().map_or((false, true), |frame| (frame.object, frame.empty));
        // A number or word may be truncated, a key may lack its value, an empty bracket its content,
        // a list the item after its comma: none of these can be guessed.
        let lost = match state {
            State::Colon | State::Value => true,
            State::Key => object && empty,
            State::After => self.open_ended,
        };
        if lost || !self.accept_truncated {
            return Err(Stop::Cut(met));
        }
        while let Some(frame) = self.scratch.stack.pop() {
            if let Some(comma) = frame.comma {
                self.edit(RepairKind::TrailingComma, comma, comma + 1, "");
            }
            self.edit(RepairKind::MissingCloser, end, end, if frame.object { "}" } else { "]" });
        }
        Ok(end)
    }
}
