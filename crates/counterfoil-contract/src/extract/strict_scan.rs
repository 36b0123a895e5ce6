//! The strict scanner: finds the extent of every JSON object and list in prose, in one linear pass.
//!
//! It parses from an opening bracket with a stack. When that fails at some byte, every bracket that
//! is still open fails there too, so none of them is tried again; the values that closed before
//! remain candidates. The scan continues at the failing byte or, if the failure is in a string or
//! right after one, just after that string's opening quote, because quotes in prose may not pair
//! up. A strict string ends at the end of its line at the latest, and a quote that can begin a
//! string never follows a backslash, so every byte is read a bounded number of times.
//!
//! A value after a break may still be meant as a part of what broke, as the inner object of
//! `{'a': {"b": 1}}` is. It is reported as nested if it stands where a value of an object or a list
//! does, in the same paragraph.
//!
//! It is resumable: `feed` may be called with a longer (or moved) window and continues where it
//! stopped.

use super::break_extent::{
    MAX_LOOK_AHEAD, OddItem, OddKey, Placeholders, is_odd_key_start, odd_item_extent,
    odd_key_extent,
};
use super::prose::{self, ProseEvent};

/// A value that may be the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScannedValue {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) shape: Shape,
    /// Whether it is, or seems to be, inside of a value that broke.
    pub(crate) nested: bool,
    /// Whether JSON stands right before it.
    pub(crate) follows_json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Brackets match; `height` is the depth of nesting, `quoted` whether there are Markdown quote
    /// markers inside, `wanted` whether a key inside may be a wanted one, or an object has no key.
    Closed { height: usize, quoted: bool, wanted: bool },
    /// It began like JSON and broke at its end; `bare_key` if that is so only because its first key
    /// has no quotes, `cut_off` if the text ends in it.
    Broken { bare_key: bool, cut_off: bool },
}

/// Whether a key, as it stands between its quotes, may be one that is looked for.
pub(crate) type WantedKey<'k> = &'k dyn Fn(&[u8]) -> bool;

/// The bounds of thinking sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkMark {
    Open,
    Close,
    /// A closing tag without an opening tag: everything before it was thinking.
    Orphan,
}

/// What a scanner reports, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanEvent {
    Value(ScannedValue),
    /// A thinking section begins or ends at the offset.
    Think(ThinkMark, usize),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    object: bool,
    start: usize,
    /// The number of closed values that were pending when it opened.
    mark: usize,
    /// The greatest height among its closed children.
    inner: usize,
    /// Whether it has a complete member, so that it is worth explaining when it breaks.
    looks_real: bool,
    /// Whether it, or what is around it or inside, has a key that may be a wanted one.
    wanted: bool,
}

/// A frame below many others. Where it began is forgotten.
#[derive(Clone, Copy, Debug)]
struct BuriedFrame {
    object: bool,
    looks_real: bool,
    wanted: bool,
}

/// The start of a frame that was buried.
const BURIED: usize = usize::MAX;

impl From<Frame> for BuriedFrame {
    fn from(frame: Frame) -> Self {
        Self { object: frame.object, looks_real: frame.looks_real, wanted: frame.wanted }
    }
}

impl BuriedFrame {
    fn unburied(self, mark: usize) -> Frame {
        let Self { object, looks_real, wanted } = self;
        Frame { object, start: BURIED, mark, inner: 0, looks_real, wanted }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Prose,
    Value,
    ValueOrClose,
    KeyOrClose,
    Key,
    Colon,
    After,
    /// Inside a string that opened at the offset.
    Str {
        start: usize,
        key: bool,
    },
    /// Inside a number or a literal that began at the offset.
    Token {
        start: usize,
    },
    /// What is open is not JSON from the offset on.
    Failing {
        at: usize,
    },
}

/// The scan pauses when it has so many events, so that they need little memory.
const MAX_EVENTS: usize = 4096;

/// The most frames and the most closed values that are kept in full. What is buried below that many
/// others is no candidate of its own when everything breaks.
const MAX_KEPT: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct StrictScan {
    pos: usize,
    state: State,
    stack: Vec<Frame>,
    /// The frames between the root and the others, in short, if there are many.
    buried: Vec<BuriedFrame>,
    pending: Vec<ScannedValue>,
    /// The opening quote of the string that ended right before, with only whitespace in between.
    last_string: Option<usize>,
    thinking: bool,
    /// The number of Markdown quote markers before the current root; none until one is met.
    quote_depth: Option<u8>,
    /// The number of quote markers that the current line may still have; none before the first
    /// line end inside of the root.
    quote_left: Option<u8>,
    quoted: bool,
    events: Vec<ScanEvent>,
    /// A value broke, and its paragraph has not ended.
    after_break: bool,
    /// The current root stands where a member of the value that broke would.
    root_nested: bool,
    /// JSON stands right before the current root.
    root_follows: bool,
    /// The bracket of the current root selects a part of something.
    root_selects: bool,
    /// The bracket of the current root stands inside of a line.
    root_inline: bool,
    /// The end of the last value that closed and does not select.
    closed_at: usize,
    /// Whether a bracket began something that is not JSON.
    pub(crate) has_failed: bool,
    /// The bracket at this offset is reported as a candidate even if it breaks at once.
    pub(crate) expected_start: Option<usize>,
    /// A list is reported when it breaks after its first item, not only after its first comma: the
    /// result is a list of scalars.
    pub(crate) counts_items: bool,
    /// Empty brackets count only at the beginning of a line, and no check box does: nothing else tells
    /// them from prose, and they would be a result.
    doubts_empty: bool,
    /// A line ended after the last number or literal.
    line_ended: bool,
    placeholders: Placeholders,
    /// The number of bytes read so far, without those ahead of a break.
    examined: u64,
}

impl StrictScan {
    pub(crate) fn new(start: usize) -> Self {
        Self {
            pos: start,
            state: State::Prose,
            stack: Vec::new(),
            buried: Vec::new(),
            pending: Vec::new(),
            last_string: None,
            thinking: false,
            quote_depth: None,
            quote_left: None,
            quoted: false,
            events: Vec::new(),
            after_break: false,
            root_nested: false,
            root_follows: false,
            root_selects: false,
            root_inline: false,
            closed_at: 0,
            has_failed: false,
            expected_start: None,
            counts_items: false,
            doubts_empty: false,
            line_ended: false,
            placeholders: Placeholders::default(),
            examined: 0,
        }
    }

    /// A list is reported when it breaks after its first item: the result is a list of scalars.
    pub(crate) fn counts_items(mut self, counts: bool) -> Self {
        self.counts_items = counts;
        self
    }

    /// Empty brackets inside of a line are no candidate: an empty value may be a result.
    pub(crate) fn doubts_empty(mut self, doubts: bool) -> Self {
        self.doubts_empty = doubts;
        self
    }

    /// The number of bytes read so far.
    pub(crate) fn examined(&self) -> u64 {
        self.examined + self.placeholders.examined
    }

    /// The first offset that must stay in the window.
    pub(crate) fn keep_from(&self) -> usize {
        self.stack.first().map_or(self.pos, |root| root.start).saturating_sub(prose::LOOK_BACK)
    }

    /// Takes the events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<ScanEvent> {
        std::mem::take(&mut self.events)
    }

    /// Scans the new part of `bytes`, whose first byte has offset `base`; at `eof` to the end. False
    /// if there are many events: take them, and call it again.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        base: usize,
        eof: bool,
        wanted: WantedKey<'_>,
    ) -> bool {
        let end = base + bytes.len();
        loop {
            if self.events.len() >= MAX_EVENTS {
                return false;
            }
            if self.state == State::Prose {
                let event = prose::next(bytes, base, self.pos, self.thinking, eof);
                let (ProseEvent::Opener(to)
                | ProseEvent::End(to)
                | ProseEvent::ThinkOpen(to)
                | ProseEvent::ThinkClose(to)
                | ProseEvent::ThinkOrphan(to)) = event;
                if self.after_break && prose::ends_paragraph(bytes, base, self.pos, to) {
                    self.after_break = false;
                }
                match event {
                    ProseEvent::Opener(at) => {
                        self.examined += (at + 1 - self.pos) as u64;
                        // A brace before another bracket begins no object, and prose is full of
                        // them.
                        let hopeless = bytes[at - base] == b'{'
                            && matches!(bytes.get(at + 1 - base), Some(b'{' | b'['));
                        if hopeless && self.expected_start != Some(at) {
                            self.has_failed = true;
                            self.pos = at + 1;
                            continue;
                        }
                        self.root_nested =
                            self.after_break && prose::is_member_position(bytes, base, at);
                        self.root_follows = prose::follows_json(bytes, base, at);
                        self.root_selects =
                            at != self.closed_at && prose::is_selecting(&bytes[..at - base]);
                        self.root_inline =
                            self.doubts_empty && prose::is_inline(&bytes[..at - base], base == 0);
                        self.quote_depth = None;
                        self.quote_left = None;
                        self.quoted = false;
                        self.pos = at;
                        self.open(bytes[at - base] == b'{');
                    }
                    ProseEvent::End(at) => {
                        self.examined += (at - self.pos) as u64;
                        self.pos = at;
                        return true;
                    }
                    ProseEvent::ThinkOpen(at) => self.think(ThinkMark::Open, at + prose::OPEN_TAG),
                    ProseEvent::ThinkClose(at) => self.think(ThinkMark::Close, at),
                    ProseEvent::ThinkOrphan(at) => self.think(ThinkMark::Orphan, at),
                }
                continue;
            }
            if let State::Str { start, key } = self.state {
                if !self.string(bytes, base, start, key, eof) {
                    return true;
                }
                if key && self.state == State::Colon {
                    self.note_key(&bytes[start + 1 - base..self.pos - 1 - base], wanted);
                }
                continue;
            }
            if let State::Failing { at } = self.state {
                let extent = if self.looks_real() {
                    self.placeholders.extent(bytes, base, at, eof)
                } else {
                    Some(0)
                };
                let Some(extent) = extent else { return true };
                let root = self.stack.first().map_or(at, |root| root.start + 1);
                let resume = self.last_string.map_or(at.max(root), |quote| quote + 1);
                let cut_off = eof && at + extent == end && extent < MAX_LOOK_AHEAD;
                let shape = Shape::Broken { bare_key: false, cut_off };
                self.fail_with(shape, at + extent, resume);
                continue;
            }
            if let State::Token { start } = self.state {
                if !self.token(bytes, base, start, eof) {
                    return true;
                }
                continue;
            }
            if self.pos >= end {
                if !eof {
                    return true;
                }
                self.note_item(None);
                self.fail(self.pos);
                continue;
            }
            let Some(byte) = self.skip_blanks(bytes, base) else { continue };
            if self.state == State::KeyOrClose && is_odd_key_start(byte) {
                if !self.odd_keys(&bytes[self.pos - base..], eof) {
                    return true;
                }
                continue;
            }
            if matches!(byte, b'\'' | 0xe2)
                && self.counts_items
                && matches!(self.state, State::Value | State::ValueOrClose)
            {
                if !self.odd_item(&bytes[self.pos - base..], eof) {
                    return true;
                }
                continue;
            }
            if byte == b'>' && self.quote_left.is_some() && self.quote_depth.is_none() {
                let root = self.stack.first().map_or(self.pos, |root| root.start);
                self.quote_depth = Some(prose::quote_depth(bytes, base, root - base));
                self.quote_left = self.quote_depth;
            }
            self.step(byte);
        }
    }

    /// An object whose first key is not in double quotes is not JSON. If that looks like a key, the
    /// object is reported with the keys that can be read. False if the window ended first.
    fn odd_keys(&mut self, window: &[u8], eof: bool) -> bool {
        let at = self.pos;
        match odd_key_extent(window, eof) {
            OddKey::Unknown => return false,
            OddKey::No => {
                self.examined += 1;
                self.fail(at);
            }
            OddKey::Yes { value, end } => {
                self.examined += end as u64;
                if let Some(frame) = self.stack.last_mut() {
                    frame.looks_real = true;
                }
                let bare_key = window[0] != b'\'' && window[0] != 0xe2 && self.stack.len() == 1;
                let cut_off = eof && end == window.len() && end < MAX_LOOK_AHEAD;
                let shape = Shape::Broken { bare_key, cut_off };
                self.fail_with(shape, at + end, at + value);
            }
        }
        true
    }

    /// A list whose next item is in other quotes is not JSON. If that is its first item, the list is
    /// reported up to the quote. False if the window ended first.
    fn odd_item(&mut self, window: &[u8], eof: bool) -> bool {
        let at = self.pos;
        let item = odd_item_extent(window, eof);
        let OddItem::Known { quote, seen } = item else { return false };
        self.examined += seen as u64;
        let was_real = self.looks_real();
        if quote > 0 {
            self.note_list();
        }
        if was_real || !self.looks_real() {
            self.fail(at);
        } else {
            let cut_off = eof && quote == window.len();
            self.fail_with(Shape::Broken { bare_key: false, cut_off }, at + quote, at);
        }
        true
    }

    fn think(&mut self, think: ThinkMark, to: usize) {
        self.thinking = think == ThinkMark::Open;
        self.events.push(ScanEvent::Think(think, to));
        self.examined += (to - self.pos) as u64;
        self.pos = to;
    }

    /// Skips blanks between tokens, and returns the byte after them.
    fn skip_blanks(&mut self, bytes: &[u8], base: usize) -> Option<u8> {
        let rest = &bytes[self.pos - base..];
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let blanks = rest.iter().position(|byte| !is_blank(byte)).unwrap_or(rest.len());
        if blanks > 0 && rest[..blanks].contains(&b'\n') {
            self.quote_left = Some(self.quote_depth.unwrap_or(0));
            self.line_ended = true;
        }
        self.examined += blanks as u64;
        self.pos += blanks;
        rest.get(blanks).copied()
    }

    /// One byte between tokens that is no blank.
    fn step(&mut self, byte: u8) {
        self.examined += 1;
        match byte {
            b'>' if self.quote_left.is_some_and(|left| left > 0) => {
                self.quote_left = self.quote_left.map(|left| left - 1);
                self.quoted = true;
                self.pos += 1;
            }
            _ => self.token_start(byte),
        }
    }

    fn token_start(&mut self, byte: u8) {
        match (self.state, byte) {
            (State::KeyOrClose, b'}') | (State::ValueOrClose, b']') => self.close(),
            (State::KeyOrClose | State::Key, b'"') => self.begin_string(true),
            (State::Value | State::ValueOrClose, b'"') => self.begin_string(false),
            (State::Value | State::ValueOrClose, b'{' | b'[') => self.open(byte == b'{'),
            (State::Value | State::ValueOrClose, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.last_string = None;
                self.state = State::Token { start: self.pos };
            }
            (State::Colon, b':') => {
                if let Some(frame) = self.stack.last_mut() {
                    frame.looks_real = true;
                }
                self.last_string = None;
                self.state = State::Value;
                self.pos += 1;
            }
            (State::After, b',') => {
                let object = self.stack.last_mut().is_some_and(|frame| {
                    frame.looks_real = true;
                    frame.object
                });
                self.last_string = None;
                self.state = if object { State::Key } else { State::Value };
                self.pos += 1;
            }
            (State::After, b'}' | b']')
                if self.stack.last().is_some_and(|frame| frame.object == (byte == b'}')) =>
            {
                self.close();
            }
            _ => {
                self.note_item(Some(byte));
                self.fail(self.pos);
            }
        }
    }

    fn begin_string(&mut self, key: bool) {
        if !key {
            self.note_list();
        }
        self.state = State::Str { start: self.pos, key };
        self.pos += 1;
    }

    /// Notes that the list that breaks before a byte, or at the end of the text, has an item. A number
    /// or word in brackets is common in prose and in logs, so what follows must be JSON, or the line
    /// must end.
    fn note_item(&mut self, next: Option<u8>) {
        let has_item = match (self.state, next) {
            (State::After, Some(b'"' | b'{' | b'}' | b'[' | b'0'..=b'9') | None) => true,
            (State::After, _) => self.line_ended,
            _ => false,
        };
        if has_item {
            self.note_list();
        }
    }

    /// Notes that the innermost list has an item, if that counts.
    fn note_list(&mut self) {
        if self.counts_items
            && !self.root_selects
            && let Some(frame) = self.stack.last_mut().filter(|frame| !frame.object)
        {
            frame.looks_real = true;
        }
    }

    fn note_key(&mut self, key: &[u8], wanted: WantedKey<'_>) {
        if let Some(frame) = self.stack.last_mut().filter(|frame| !frame.wanted) {
            frame.wanted = wanted(key);
        }
    }

    /// Continues in a string; false if the window ended first.
    fn string(&mut self, bytes: &[u8], base: usize, start: usize, key: bool, eof: bool) -> bool {
        let from = self.pos - base;
        let Some(found) = memchr::memchr3(b'"', b'\\', b'\n', bytes.get(from..).unwrap_or(&[]))
        else {
            self.examined += (bytes.len().max(from) - from) as u64;
            // An escape may reach beyond the window.
            self.pos = self.pos.max(base + bytes.len());
            if eof {
                self.pos = base + bytes.len();
                self.last_string = Some(start);
                self.fail(self.pos);
            }
            return eof;
        };
        self.examined += found as u64 + 1;
        let at = self.pos + found;
        match bytes[at - base] {
            b'"' => {
                self.pos = at + 1;
                self.last_string = Some(start);
                self.state = if key { State::Colon } else { State::After };
            }
            b'\\' => self.pos = at + 2,
            _ => {
                self.last_string = Some(start);
                self.fail(at);
            }
        }
        true
    }

    /// Continues in a number or literal; false if the window ended first.
    fn token(&mut self, bytes: &[u8], base: usize, start: usize, eof: bool) -> bool {
        let rest = &bytes[self.pos - base..];
        let length = rest.iter().position(
            |byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.'),
        );
        self.examined += length.unwrap_or(rest.len()) as u64;
        self.pos += length.unwrap_or(rest.len());
        if length.is_none() && !eof {
            return false;
        }
        let token = &bytes[start - base..self.pos - base];
        let good = match token.first() {
            Some(b't') => token == b"true",
            Some(b'f') => token == b"false",
            Some(b'n') => token == b"null",
            _ => token
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.')),
        };
        if good {
            self.line_ended = false;
            self.state = State::After;
        } else {
            if length.is_none()
                && [b"true".as_slice(), b"false", b"null"]
                    .iter()
                    .any(|literal| literal.starts_with(token))
            {
                // The text ends in it.
                self.note_list();
            }
            self.fail(start);
        }
        true
    }

    fn open(&mut self, object: bool) {
        if self.stack.len() > 2 * MAX_KEPT {
            self.buried.extend(self.stack.drain(1..=MAX_KEPT).map(BuriedFrame::from));
        }
        self.stack.push(Frame {
            object,
            start: self.pos,
            mark: self.pending.len(),
            inner: 0,
            looks_real: false,
            wanted: self.stack.last().is_some_and(|parent| parent.wanted),
        });
        self.last_string = None;
        self.state = if object { State::KeyOrClose } else { State::ValueOrClose };
        self.pos += 1;
    }

    fn close(&mut self) {
        let is_empty = matches!(self.state, State::ValueOrClose | State::KeyOrClose);
        self.pos += 1;
        self.last_string = None;
        let Some(frame) = self.stack.pop() else { return };
        if self.stack.len() == 1 && !self.buried.is_empty() {
            let from = self.buried.len().saturating_sub(MAX_KEPT);
            let mark = self.pending.len();
            self.stack.extend(self.buried.drain(from..).map(|buried| buried.unburied(mark)));
        }
        self.pending.truncate(frame.mark);
        let height = frame.inner + 1;
        let is_empty_object = frame.object && !frame.looks_real;
        let wanted = frame.wanted || is_empty_object;
        let candidate = ScannedValue {
            start: frame.start,
            end: self.pos,
            shape: Shape::Closed { height, quoted: self.quoted, wanted },
            nested: self.stack.is_empty() && self.root_nested,
            follows_json: self.root_follows,
        };
        if let Some(parent) = self.stack.last_mut() {
            parent.inner = parent.inner.max(height);
            parent.looks_real = true;
            parent.wanted |= wanted;
            if frame.start != BURIED {
                self.pending.push(candidate);
            }
            self.forget_pending();
            self.state = State::After;
        } else {
            let is_box = !frame.object && self.pos - frame.start == 3;
            let is_doubted = self.doubts_empty
                && is_empty
                && (self.root_inline || is_box)
                && self.expected_start != Some(frame.start);
            // An index in prose is no list of scalars.
            let is_index = !frame.object && self.counts_items && self.root_selects;
            if !is_doubted && !is_index {
                self.events.push(ScanEvent::Value(candidate));
            }
            if !self.root_selects {
                self.closed_at = self.pos;
            }
            self.after_break &= self.root_nested;
            self.state = State::Prose;
        }
    }

    /// Forgets the first of many values that are closed inside of what is open.
    fn forget_pending(&mut self) {
        if self.pending.len() > 2 * MAX_KEPT {
            self.pending.drain(..MAX_KEPT);
            for frame in &mut self.stack {
                frame.mark = frame.mark.saturating_sub(MAX_KEPT);
            }
        }
    }

    /// Whether what is open is reported if it breaks.
    fn looks_real(&self) -> bool {
        self.stack.iter().any(|frame| frame.looks_real)
            || self.buried.iter().any(|frame| frame.looks_real)
            || self.stack.first().is_some_and(|root| self.expected_start == Some(root.start))
    }

    /// Everything open fails at `at`.
    fn fail(&mut self, at: usize) {
        self.state = State::Failing { at };
    }

    /// Everything open fails in one way, and ends at `end`; the scan continues at `resume`.
    fn fail_with(&mut self, shape: Shape, end: usize, resume: usize) {
        self.has_failed = true;
        self.last_string = None;
        let root = self.stack.first().copied();
        if let Some(broken) = root.filter(|_| self.looks_real()) {
            self.events.push(ScanEvent::Value(ScannedValue {
                start: broken.start,
                end,
                shape,
                nested: self.root_nested,
                follows_json: self.root_follows,
            }));
            self.events.extend(
                self.pending
                    .drain(..)
                    .map(|inner| ScanEvent::Value(ScannedValue { nested: true, ..inner })),
            );
            self.after_break = true;
        } else {
            self.events.extend(self.pending.drain(..).map(ScanEvent::Value));
        }
        self.stack.clear();
        self.buried.clear();
        self.pos = resume;
        self.state = State::Prose;
    }
}

/// All candidates of a text.
#[cfg(test)]
pub(crate) fn scan(text: &str) -> Vec<ScannedValue> {
    let mut scan = StrictScan::new(0);
    let mut events = Vec::new();
    let mut is_done = false;
    while !is_done {
        is_done = scan.feed(text.as_bytes(), 0, true, &|_| false);
        events.extend(scan.take_events());
    }
    events
        .into_iter()
        .filter_map(|event| match event {
            ScanEvent::Value(candidate) => Some(candidate),
            ScanEvent::Think(..) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
