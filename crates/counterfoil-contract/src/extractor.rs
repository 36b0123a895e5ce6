//! Extracts the result from one text. Scanners find candidates; those that try to be the result are
//! attempts, and the last attempt decides. The same code serves a whole text and a text that
//! arrives in pieces.

mod candidate;
mod conclude;
mod cut_key;
mod decide;
mod examine;
mod items;
mod loose_block;
mod no_candidate;
mod outside;
mod quotation;
mod track;

pub(crate) use items::items_of_text;
pub(crate) use no_candidate::{not_utf8, only_quoted, report_beyond_limits, took_too_long};

use crate::contract::Contract;
use crate::edit::RepairKind;
use crate::extract::block::BlockScan;
use crate::extract::fence::{FenceScan, without_codes};
use crate::extract::prose::ThinkScan;
use crate::extract::repair_scan::{RepairEvent, RepairScan};
use crate::extract::strict_scan::{ScanEvent, Shape, StrictScan, ThinkMark};
use crate::policy::{Framing, Policy};
use crate::report::Report;
use crate::reporting::log_rejection;
use crate::shown::Shown;
use crate::source::{Position, Source, Span};
use crate::work::{self, MAX_CHECK_TIME};
use candidate::{Candidate, CandidateSource};
use loose_block::LooseBlock;
use outside::Outside;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use track::Track;

/// Strict JSON, fenced blocks, or output blocks with markers on lines of their own.
const MAIN: usize = 0;
/// Repaired JSON, or output blocks with markers anywhere.
const SECOND: usize = 1;

/// A text that is one scalar is a candidate up to this size.
const MAX_SCALAR_BYTES: usize = 1 << 20;

/// What is known of a text that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The last attempt, if there is one, does not satisfy the contract.
    Searching,
    /// The last attempt satisfies the contract. A later one may still replace it.
    Complete,
}

/// The contract of an extractor: borrowed, or shared with it.
#[derive(Clone, Debug)]
pub(crate) enum ContractRef<'c> {
    Borrowed(&'c Contract),
    Shared(Arc<Contract>),
}

impl Deref for ContractRef<'_> {
    type Target = Contract;

    fn deref(&self) -> &Contract {
        match self {
            Self::Borrowed(contract) => contract,
            Self::Shared(contract) => contract,
        }
    }
}

/// The extent of a value that looks like strict JSON.
#[derive(Clone, Copy, Debug)]
struct StrictValue {
    start: usize,
    /// Short, because there can be many of them; a longer value is not recorded.
    length: u32,
    /// There are Markdown quote markers inside.
    quoted: bool,
}

impl StrictValue {
    fn end(self) -> usize {
        self.start + self.length as usize
    }
}

#[derive(Debug)]
pub(crate) struct Extractor<'c> {
    contract: ContractRef<'c>,
    policy: Policy,
    framing: Framing,
    /// The bracket with which results begin, if there is only one.
    opener: Option<u8>,
    /// What the agent was shown. A candidate that repeats it is dropped.
    shown: Option<&'c Shown>,
    /// The number of candidates that were dropped because they repeat it.
    quotations: usize,
    /// Explain candidates as they are found, because their text is dropped later.
    eager: bool,
    strict: StrictScan,
    think: ThinkScan,
    repair_scan: Option<RepairScan>,
    fence: FenceScan,
    block: BlockScan,
    tracks: [Track; 2],
    /// The last value of the strict scan broke and is an attempt, so what is nested in it is none
    /// of its own.
    broken_attempt: bool,
    /// The extents of all values that look like strict JSON, also in thinking sections.
    strict_values: Vec<StrictValue>,
    /// The starts of those that cannot be parsed as such.
    unparsable: Vec<usize>,
    outside: Outside,
    /// The first and the last byte that is not whitespace.
    first_non_blank: Option<Position>,
    last_non_blank: usize,
    seen: usize,
    /// The beginning of a text that may be one scalar.
    scalar: Option<String>,
    /// Bounds of thinking sections that are not applied yet, with their offsets.
    thinking_marks: VecDeque<(ThinkMark, usize)>,
    unclosed: Option<Span>,
    /// Lines like those of a block, while no block has begun.
    loose: Option<LooseBlock>,
    examined_at_end: u64,
}

impl<'c> Extractor<'c> {
    pub(crate) fn new(contract: ContractRef<'c>, policy: &Policy) -> Self {
        let framing = contract.framing();
        let counts_items = examine::has_scalar_items(contract.ty());
        let doubts_empty = examine::may_be_empty(contract.ty());
        Self {
            framing,
            opener: examine::opener(contract.ty()),
            contract,
            shown: None,
            quotations: 0,
            eager: false,
            strict: StrictScan::new(0).counts_items(counts_items).doubts_empty(doubts_empty),
            think: ThinkScan::default(),
            repair_scan: None,
            fence: FenceScan::new(0),
            block: BlockScan::new(0),
            tracks: [Track::default(), Track::default()],
            broken_attempt: false,
            strict_values: Vec::new(),
            unparsable: Vec::new(),
            outside: Outside::default(),
            first_non_blank: None,
            last_non_blank: 0,
            seen: 0,
            scalar: None,
            thinking_marks: VecDeque::new(),
            unclosed: None,
            loose: (framing == Framing::OutputBlock).then(LooseBlock::default),
            examined_at_end: 0,
            policy: policy.clone(),
        }
    }

    /// Drops candidates that repeat what the agent was shown.
    pub(crate) fn without_quotations(mut self, shown: &'c Shown) -> Self {
        self.shown = Some(shown);
        self
    }

    pub(crate) fn eager(mut self) -> Self {
        self.eager = true;
        if self.policy.repairs() && self.is_bracketed() {
            let accept = self.policy.accepts_truncated();
            let counts_items = self.strict.counts_items;
            self.repair_scan =
                Some(RepairScan::new(0).accept_truncated(accept).counts_items(counts_items));
        }
        self
    }

    /// Whether the framing looks for JSON by its brackets.
    fn is_bracketed(&self) -> bool {
        matches!(self.framing, Framing::AnyJson | Framing::JsonOnly)
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.policy.max_bytes
    }

    pub(crate) fn log(&self, report: &Report) {
        log_rejection(&self.contract, report);
    }

    /// The number of bytes that the scanners read.
    pub(crate) fn examined(&self) -> u64 {
        self.strict.examined()
            + self.think.examined
            + self.fence.examined
            + self.block.examined
            + self.loose.as_ref().map_or(0, |loose| loose.examined)
            + self.repair_scan.as_ref().map_or(0, RepairScan::examined)
            + self.examined_at_end
    }

    pub(crate) fn check_whole(&mut self, text: &str) -> Report {
        if text.len() > self.policy.max_bytes {
            return self.too_large(text.len());
        }
        work::within(MAX_CHECK_TIME, || {
            self.feed(text, Position::START, true);
            let report = self.conclude(text, Position::START);
            if work::is_over() { took_too_long(&self.contract, text.len()) } else { report }
        })
    }

    /// Whether the last attempt satisfies the contract.
    pub(crate) fn progress(&self) -> Progress {
        let last = self.deciding_track().and_then(|track| self.tracks[track].state.last.as_ref());
        match last {
            Some(last) if last.is_valid() && self.ends_alone(&last.found) => Progress::Complete,
            _ => Progress::Searching,
        }
    }

    /// Whether the framing allows text after a candidate, or there is none so far.
    fn ends_alone(&self, found: &Candidate) -> bool {
        self.framing != Framing::JsonOnly || found.end == self.last_non_blank + 1
    }

    /// The first offset that is still needed.
    pub(crate) fn keep_from(&mut self) -> usize {
        let mut keep = self.strict.keep_from().min(self.block.keep_from());
        if !self.is_bracketed() {
            keep = keep.min(self.think.keep_from());
        }
        if self.framing == Framing::FencedJson {
            keep = keep.min(self.fence.keep_from());
        }
        if let Some(repair_scan) = &self.repair_scan {
            keep = keep.min(repair_scan.keep_from());
        }
        if let Some(loose) = &self.loose {
            keep = keep.min(loose.keep_from());
        }
        keep = keep.min(self.seen.saturating_sub(cut_key::TAIL_BYTES));
        self.tracks.iter_mut().map(Track::keep_from).fold(keep, usize::min)
    }

    /// Scans the new part of the window.
    pub(crate) fn feed(&mut self, text: &str, position: Position, eof: bool) {
        let source = Source::window(text, position);
        self.note_non_blank(&source);
        if self.framing == Framing::JsonOnly {
            self.strict.expected_start = self.first_non_blank.map(|position| position.offset);
        }
        match self.framing {
            Framing::AnyJson | Framing::JsonOnly => self.feed_json(&source, eof),
            Framing::FencedJson => self.feed_fences(&source, eof),
            Framing::OutputBlock => self.feed_blocks(&source, eof),
        }
        if self.eager {
            self.feed_outside(&source, eof);
        }
        self.explain(&source, eof);
    }

    fn feed_json(&mut self, source: &Source<'_>, eof: bool) {
        let keys = &self.contract.attempt_keys;
        let by_keys = keys.has_fields() && !keys.in_strings();
        loop {
            let keys = &self.contract.attempt_keys;
            let is_done =
                self.strict.feed(source.bytes(), source.base(), eof, &|key| keys.may_know(key));
            for event in self.strict.take_events() {
                self.note_scanned(event, by_keys, source);
            }
            if is_done || work::is_over() {
                break;
            }
        }
        if let Some(mut repair_scan) = self.repair_scan.take() {
            self.feed_repairs(&mut repair_scan, source, eof);
            self.repair_scan = Some(repair_scan);
        }
    }

    fn note_scanned(&mut self, event: ScanEvent, by_keys: bool, source: &Source<'_>) {
        match event {
            ScanEvent::Think(mark, at) => {
                self.tracks[MAIN].think(mark);
                self.outside.think(mark, at);
            }
            ScanEvent::Value(value) => {
                let (how, bare_key, unrelated, cut_off) = match value.shape {
                    Shape::Closed { quoted, wanted, .. } => {
                        if self.policy.repairs()
                            && let Ok(length) = u32::try_from(value.end - value.start)
                        {
                            let start = value.start;
                            self.strict_values.push(StrictValue { start, length, quoted });
                        }
                        (CandidateSource::Strict { quoted }, false, !wanted && by_keys, false)
                    }
                    Shape::Broken { bare_key, cut_off } => {
                        (CandidateSource::Broken { at: value.end }, bare_key, false, cut_off)
                    }
                };
                let mut found = Candidate::new(value.start, value.end, how);
                found.nested = value.nested;
                found.follows_json = value.follows_json;
                found.unrelated = unrelated;
                found.cut_off = cut_off;
                self.offer_scanned(found, bare_key, source);
            }
        }
    }

    /// Scans for values that can be repaired, and compares them with the contract as they are found.
    fn feed_repairs(&mut self, scan: &mut RepairScan, source: &Source<'_>, eof: bool) {
        loop {
            let is_done = scan.feed(source.bytes(), source.base(), eof, |at| self.strict_end(at));
            self.offer_repaired(scan, source);
            if is_done || work::is_over() {
                return;
            }
        }
    }

    fn offer_repaired(&mut self, repair_scan: &mut RepairScan, source: &Source<'_>) {
        for event in repair_scan.take_events() {
            match event {
                RepairEvent::Think(mark, _) => self.tracks[SECOND].think(mark),
                // Quote markers alone are no repair: the strict scan reads such values too.
                RepairEvent::Value(found)
                    if self.is_in_strict_value(found.start)
                        || found.edits.iter().all(|edit| edit.kind == RepairKind::QuotePrefix) => {}
                RepairEvent::Value(found) => {
                    let how = CandidateSource::Repaired(found.edits);
                    self.offer(SECOND, Candidate::new(found.start, found.end, how), source);
                }
                RepairEvent::Refused(found) if self.is_in_strict_value(found.start) => {}
                RepairEvent::Refused(found) => {
                    let how = CandidateSource::Refused(Box::new(found.refusal));
                    self.offer(SECOND, Candidate::new(found.start, found.end, how), source);
                }
            }
        }
    }

    /// Whether an offset is in strict JSON, which is never repaired.
    fn is_in_strict_value(&self, offset: usize) -> bool {
        self.strict_value_at(offset).is_some()
    }

    /// The end of the strict JSON that begins at an offset, if it has no quote markers inside.
    fn strict_end(&self, start: usize) -> Option<usize> {
        let value = self.strict_value_at(start)?;
        (value.start == start && !value.quoted).then(|| value.end())
    }

    /// The strict JSON around an offset.
    fn strict_value_at(&self, offset: usize) -> Option<StrictValue> {
        let after = self.strict_values.partition_point(|value| value.start <= offset);
        let value = self.strict_values[after.checked_sub(1)?];
        let is_strict =
            offset < value.end() && self.unparsable.binary_search(&value.start).is_err();
        is_strict.then_some(value)
    }

    fn feed_fences(&mut self, source: &Source<'_>, eof: bool) {
        self.fence.feed(source.bytes(), source.base(), eof);
        let blocks = self.fence.take_blocks();
        self.note_thinking(source, eof);
        for block in blocks {
            self.apply_thinking_up_to(block.start);
            let content = source.slice(block.start, block.end);
            let plain = without_codes(content.as_bytes());
            let content = &content[plain.clone()];
            let quoted = |c: char| c.is_whitespace() || (block.quotes > 0 && c == '>');
            let looks_like_json = content.trim_start_matches(quoted).starts_with(['{', '['])
                || (block.tagged && !content.trim().is_empty());
            if looks_like_json {
                let how = CandidateSource::Fence { quotes: block.quotes };
                let mut found =
                    Candidate::new(block.start + plain.start, block.start + plain.end, how);
                found.cut_off = block.cut_off;
                self.offer(MAIN, found, source);
            }
        }
        self.apply_thinking_up_to(if eof { usize::MAX } else { self.fence.keep_from() });
    }

    fn feed_blocks(&mut self, source: &Source<'_>, eof: bool) {
        self.block.feed(source.bytes(), source.base(), eof);
        let blocks = self.block.take_blocks();
        if !blocks.is_empty() || self.block.unfinished().is_some() {
            self.loose = None;
        } else if let Some(loose) = &mut self.loose {
            loose.feed(source, &self.contract.attempt_keys, eof);
        }
        self.note_thinking(source, eof);
        for block in blocks {
            self.apply_thinking_up_to(block.start);
            let track = if block.own_lines { MAIN } else { SECOND };
            let found = Candidate::new(block.start, block.end, CandidateSource::Block);
            self.offer(track, found, source);
        }
        self.apply_thinking_up_to(if eof { usize::MAX } else { self.block.keep_from() });
        if eof {
            let unfinished = self.block.unfinished();
            let unfinished = unfinished.filter(|at| !self.is_open_quotation(*at, source));
            self.unclosed = unfinished.map(|at| source.span(at, source.end()));
        }
    }

    /// Looks for attempts in other forms than the framing's.
    fn feed_outside(&mut self, source: &Source<'_>, eof: bool) {
        if self.framing != Framing::OutputBlock {
            let keys = &self.contract.attempt_keys;
            self.block.feed(source.bytes(), source.base(), eof);
            self.outside.add_blocks(&mut self.block, keys, self.shown, source, eof);
        }
        if !self.is_bracketed() {
            let keys = &self.contract.attempt_keys;
            loop {
                let is_done =
                    self.strict.feed(source.bytes(), source.base(), eof, &|key| keys.may_know(key));
                self.outside.add_json(&mut self.strict, &self.contract, self.shown, source);
                if is_done || work::is_over() {
                    break;
                }
            }
        }
    }

    /// Applies the bounds of thinking sections up to an offset. A bound inside of an open block
    /// waits, because the block began before it.
    fn apply_thinking_up_to(&mut self, offset: usize) {
        while let Some((think, _)) = self.thinking_marks.pop_front_if(|(_, at)| *at <= offset) {
            self.tracks.iter_mut().for_each(|track| track.think(think));
        }
    }

    /// Records the bounds of thinking sections.
    fn note_thinking(&mut self, source: &Source<'_>, eof: bool) {
        let marks = self.think.feed(source.bytes(), source.base(), eof);
        self.thinking_marks.extend(marks);
    }

    /// Records the first and the last byte that is not whitespace.
    fn note_non_blank(&mut self, source: &Source<'_>) {
        let new = source.slice(self.seen.max(source.base()), source.end());
        let from = source.end() - new.len();
        self.seen = source.end();
        // JSON whitespace, and a byte order mark at the start of the text.
        let trimmed = if from == 0 { new.strip_prefix('\u{feff}').unwrap_or(new) } else { new }
            .trim_ascii_start();
        let Some(first) = trimmed.chars().next() else {
            if let Some(scalar) = &mut self.scalar {
                scalar.push_str(new);
            }
            return;
        };
        let at = from + new.len() - trimmed.len();
        if self.first_non_blank.is_none() {
            self.first_non_blank = Some(source.position(at));
            if matches!(first, '"' | '-' | '0'..='9' | 't' | 'f' | 'n') {
                self.scalar = Some(String::new());
            }
        }
        self.last_non_blank = from + new.trim_ascii_end().len() - 1;
        if let Some(scalar) = &mut self.scalar {
            scalar.push_str(if scalar.is_empty() { trimmed } else { new });
            if scalar.len() > MAX_SCALAR_BYTES {
                self.scalar = None;
            }
        }
    }
}
