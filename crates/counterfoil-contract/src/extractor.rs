//! Extracts the result from one text. Scanners find candidates, tiers order them by precedence, and
//! the last candidate of the first tier that satisfies the contract is the result. The same code
//! serves a whole text and a text that arrives in pieces.

mod candidate;
mod conclude;
mod no_candidate;

pub(crate) use no_candidate::{not_utf8, report_beyond_limits};

use crate::contract::Contract;
use crate::expr::Type;
use crate::extract::block::BlockScan;
use crate::extract::fence::FenceScan;
use crate::extract::prose::ThinkScan;
use crate::extract::repair_scan::{RepairEvent, RepairScan};
use crate::extract::strict_scan::{ScanEvent, Shape, StrictScan, ThinkMark};
use crate::policy::{Framing, Policy};
use crate::report::{Report, repairs};
use crate::reporting::log_rejection;
use crate::source::{Position, Source, Span};
use crate::validate::{Detail, ValidationOutcome};
use candidate::{Candidate, CandidateSource, LOOK_AHEAD, RankedCandidate, Tier};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

/// The tiers, in order of precedence.
const STRICT: usize = 0;
const REPAIRED: usize = 1;
const UNTAGGED: usize = 2;
const UNTAGGED_REPAIRED: usize = 3;
/// The tiers of output blocks: markers on lines of their own, and markers anywhere.
const OWN_LINES: usize = 0;
const ANYWHERE: usize = 1;

/// A text that is one scalar is a candidate up to this size.
const MAX_SCALAR_BYTES: usize = 1 << 20;

/// What is known of a text that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No result that satisfies the contract has been seen.
    Searching,
    /// A result that satisfies the contract has been seen. A later one may still replace it.
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

#[derive(Debug)]
pub(crate) struct Extractor<'c> {
    contract: ContractRef<'c>,
    policy: Policy,
    framing: Framing,
    /// Validate candidates as they are found, because their text is dropped later.
    eager: bool,
    strict: StrictScan,
    think: ThinkScan,
    repair_scan: Option<RepairScan>,
    fence: FenceScan,
    block: BlockScan,
    tiers: [Tier; 4],
    /// The first and the last byte that is not whitespace.
    first_non_blank: Option<Position>,
    last_non_blank: usize,
    seen: usize,
    /// The beginning of a text that may be one scalar.
    scalar: Option<String>,
    /// The last JSON that the framing does not allow, such as JSON outside of a fenced block.
    json_outside_framing: Option<Span>,
    thinking_from: Option<usize>,
    /// Bounds of thinking sections that are not applied yet, with their offsets.
    thinking_marks: VecDeque<(ThinkMark, usize)>,
    unclosed: Option<Span>,
    examined_at_end: u64,
}

impl<'c> Extractor<'c> {
    pub(crate) fn new(contract: ContractRef<'c>, policy: &Policy) -> Self {
        Self {
            framing: contract.framing(),
            contract,
            eager: false,
            strict: StrictScan::new(0),
            think: ThinkScan::default(),
            repair_scan: None,
            fence: FenceScan::new(0),
            block: BlockScan::new(0),
            tiers: [Tier::default(), Tier::default(), Tier::default(), Tier::default()],
            first_non_blank: None,
            last_non_blank: 0,
            seen: 0,
            scalar: None,
            json_outside_framing: None,
            thinking_from: None,
            thinking_marks: VecDeque::new(),
            unclosed: None,
            examined_at_end: 0,
            policy: policy.clone(),
        }
    }

    pub(crate) fn eager(mut self) -> Self {
        self.eager = true;
        if self.policy.repairs() && matches!(self.framing, Framing::AnyJson | Framing::JsonOnly) {
            self.repair_scan = Some(RepairScan::new(0));
        }
        self
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.policy.max_bytes
    }

    pub(crate) fn log(&self, report: &Report) {
        log_rejection(&self.contract, report);
    }

    /// The number of bytes that the scanners read.
    pub(crate) fn examined(&self) -> u64 {
        self.strict.examined
            + self.think.examined
            + self.fence.examined
            + self.block.examined
            + self.repair_scan.as_ref().map_or(0, RepairScan::examined)
            + self.examined_at_end
    }

    pub(crate) fn check_whole(&mut self, text: &str) -> Report {
        if text.len() > self.policy.max_bytes {
            return self.too_large(text.len());
        }
        self.feed(text, Position::START, true);
        self.conclude(text, Position::START)
    }

    /// Whether a result that satisfies the contract was found.
    pub(crate) fn progress(&self) -> Progress {
        let whole = |picked: &RankedCandidate| {
            self.framing != Framing::JsonOnly || (picked.found.end == self.last_non_blank + 1)
        };
        let complete = self.tiers.iter().any(|tier| tier.best.as_ref().is_some_and(whole));
        if complete { Progress::Complete } else { Progress::Searching }
    }

    /// The first offset that is still needed.
    pub(crate) fn keep_from(&self) -> usize {
        let bracketed = matches!(self.framing, Framing::AnyJson | Framing::JsonOnly);
        let mut keep =
            if bracketed || self.eager { self.strict.keep_from() } else { self.think.keep_from() };
        if !bracketed {
            keep = keep.min(self.think.keep_from());
        }
        if let Some(repair_scan) = &self.repair_scan {
            keep = keep.min(repair_scan.keep_from());
        }
        for tier in &self.tiers {
            keep = keep.min(tier.keep_from());
        }
        match self.framing {
            Framing::FencedJson => {
                keep = keep.min(self.fence.keep_from());
                // Blocks that need repairs also need the text after them.
                for tier in [REPAIRED, UNTAGGED_REPAIRED] {
                    keep = keep.min(
                        self.tiers[tier].candidates.first().map_or(usize::MAX, |found| found.start),
                    );
                }
            }
            Framing::OutputBlock => keep = keep.min(self.block.keep_from()),
            Framing::AnyJson | Framing::JsonOnly => {}
        }
        keep
    }

    /// Scans the new part of the window.
    pub(crate) fn feed(&mut self, text: &str, position: Position, eof: bool) {
        let source = Source::window(text, position);
        self.note_non_blank(&source);
        if self.framing == Framing::JsonOnly {
            self.strict.expected_start = self.first_non_blank.map(|position| position.offset);
        }
        self.find(&source, eof);
        self.explain_waiting(&source, eof);
    }

    /// Explains a broken candidate once the text after it has arrived.
    fn explain_waiting(&mut self, source: &Source<'_>, eof: bool) {
        for tier in 0..self.tiers.len() {
            let ready =
                |found: &Candidate| eof || found.end.saturating_add(LOOK_AHEAD) <= source.end();
            if let Some((found, index, rank)) =
                self.tiers[tier].waiting.take_if(|(found, ..)| ready(found))
            {
                let outcome = found.validate(&self.contract, &self.policy, source, Detail::Full);
                self.tiers[tier].resolve(RankedCandidate {
                    index,
                    found,
                    rank,
                    outcome,
                    repairs: Vec::new(),
                });
            }
        }
    }

    fn find(&mut self, source: &Source<'_>, eof: bool) {
        let (bytes, base) = (source.bytes(), source.base());
        match self.framing {
            Framing::AnyJson | Framing::JsonOnly => {
                self.strict.feed(bytes, base, eof);
                for event in self.strict.take_events() {
                    match event {
                        ScanEvent::Think(think, _) => self.tiers[STRICT].think(think),
                        ScanEvent::Value(candidate) => {
                            let how = match candidate.shape {
                                Shape::Closed { quoted, .. } => CandidateSource::Strict { quoted },
                                Shape::Broken { at } => CandidateSource::Broken { at },
                            };
                            let found = Candidate {
                                start: candidate.start,
                                end: candidate.end,
                                how,
                                nested: candidate.nested,
                                span: None,
                                behind: None,
                                rank: None,
                            };
                            self.offer(STRICT, found, source);
                        }
                    }
                }
                if let Some(mut repair_scan) = self.repair_scan.take() {
                    repair_scan.feed(bytes, base, eof);
                    self.offer_repaired(&mut repair_scan, source);
                    self.repair_scan = Some(repair_scan);
                }
            }
            Framing::FencedJson => self.feed_fences(source, eof),
            Framing::OutputBlock => self.feed_blocks(source, eof),
        }
    }

    fn offer_repaired(&mut self, repair_scan: &mut RepairScan, source: &Source<'_>) {
        for event in repair_scan.take_events() {
            match event {
                RepairEvent::Think(think, _) => self.tiers[REPAIRED].think(think),
                RepairEvent::Value(found) => {
                    let found = Candidate {
                        start: found.start,
                        end: found.end,
                        how: CandidateSource::Repaired(found.edits),
                        nested: false,
                        span: None,
                        behind: None,
                        rank: None,
                    };
                    self.offer(REPAIRED, found, source);
                }
            }
        }
    }

    fn feed_fences(&mut self, source: &Source<'_>, eof: bool) {
        let (bytes, base) = (source.bytes(), source.base());
        self.fence.feed(bytes, base, eof);
        let blocks = self.fence.take_blocks();
        self.note_thinking(source, eof);
        for block in blocks {
            self.apply_thinking_up_to(block.start);
            let content = source.slice(block.start, block.end);
            let blank = content.len()
                - content
                    .trim_start_matches(|c: char| {
                        c.is_whitespace() || (block.quotes > 0 && c == '>')
                    })
                    .len();
            let looks_like_json = content[blank..].starts_with(['{', '['])
                || (block.tagged && !content.trim().is_empty());
            if !looks_like_json {
                continue;
            }
            let found = |how| Candidate {
                start: block.start,
                end: block.end,
                how,
                nested: false,
                span: None,
                behind: None,
                rank: None,
            };
            let tier = if block.tagged { STRICT } else { UNTAGGED };
            let satisfied =
                self.offer(tier, found(CandidateSource::Fence { quotes: block.quotes }), source);
            if self.policy.repairs() && !satisfied {
                // Repaired at the end of the text, which a truncated string may reach.
                let to_repair = Candidate {
                    start: block.start + blank,
                    end: block.end,
                    how: CandidateSource::FenceToRepair,
                    nested: false,
                    span: None,
                    behind: None,
                    rank: None,
                };
                self.tiers[tier + 1].candidates.push(to_repair);
            }
        }
        self.apply_thinking_up_to(if eof { usize::MAX } else { self.fence.keep_from() });
    }

    fn feed_blocks(&mut self, source: &Source<'_>, eof: bool) {
        self.block.feed(source.bytes(), source.base(), eof);
        let blocks = self.block.take_blocks();
        self.note_thinking(source, eof);
        for block in blocks {
            self.apply_thinking_up_to(block.start);
            let tier = if block.own_lines { OWN_LINES } else { ANYWHERE };
            let found = Candidate {
                start: block.start,
                end: block.end,
                how: CandidateSource::Block,
                nested: false,
                span: None,
                behind: None,
                rank: None,
            };
            self.offer(tier, found, source);
        }
        self.apply_thinking_up_to(if eof { usize::MAX } else { self.block.keep_from() });
        if eof {
            self.unclosed = self.block.unfinished().map(|at| source.span(at, source.end()));
        }
    }

    /// Applies the bounds of thinking sections up to an offset. A bound inside of an open block
    /// waits, because the block began before it.
    fn apply_thinking_up_to(&mut self, offset: usize) {
        while let Some((think, _)) = self.thinking_marks.pop_front_if(|(_, at)| *at <= offset) {
            self.tiers.iter_mut().for_each(|tier| tier.think(think));
        }
    }

    /// Records the bounds of thinking sections and, while the text is available, JSON outside of the
    /// framing.
    fn note_thinking(&mut self, source: &Source<'_>, eof: bool) {
        self.thinking_marks.extend(self.think.feed(source.bytes(), source.base(), eof));
        if self.eager {
            self.note_json_outside_framing(source, eof);
        }
    }

    /// Records the last JSON outside of the framing and of thinking sections.
    fn note_json_outside_framing(&mut self, source: &Source<'_>, eof: bool) {
        self.strict.feed(source.bytes(), source.base(), eof);
        for event in self.strict.take_events() {
            match event {
                ScanEvent::Think(ThinkMark::Open, at) => self.thinking_from = Some(at),
                ScanEvent::Think(ThinkMark::Close | ThinkMark::Orphan, _) => {
                    let from = self.thinking_from.take().unwrap_or(0);
                    if self.json_outside_framing.take_if(|span| span.start >= from).is_some() {
                        self.tiers[STRICT].inside_thinking += 1;
                    }
                }
                ScanEvent::Value(found)
                    if !found.nested && matches!(found.shape, Shape::Closed { .. }) =>
                {
                    let wanted = self.contract.ty().object().is_some();
                    if !wanted || source.slice(found.start, found.start + 1) == "{" {
                        self.json_outside_framing = Some(source.span(found.start, found.end));
                    }
                }
                ScanEvent::Value(_) => {}
            }
        }
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

    /// Adds a candidate; true if it was validated and satisfies the contract.
    fn offer(&mut self, tier: usize, mut found: Candidate, source: &Source<'_>) -> bool {
        if !self.eager {
            self.tiers[tier].candidates.push(found);
            return false;
        }
        found.span = Some(source.span(found.start, found.end));
        if self.framing == Framing::JsonOnly {
            found.behind = Some(source.span(found.end, found.end));
        }
        let rank = self.rank(&found, source);
        found.rank = Some(rank);
        let probe = if found.is_broken() {
            None
        } else {
            Some(found.validate(&self.contract, &self.policy, source, Detail::Probe))
        };
        let accepted = probe.as_ref().is_some_and(ValidationOutcome::is_accepted);
        let index = self.tiers[tier].candidates.len();
        if let Some(outcome) = probe.filter(|_| accepted) {
            let repairs = repairs(found.edits(), source);
            self.tiers[tier].best =
                Some(RankedCandidate { index, found: found.clone(), rank, outcome, repairs });
        } else if self.tiers[tier].outranks(rank) {
            self.tiers[tier].waiting = None;
            if let CandidateSource::Broken { .. } = found.how {
                self.tiers[tier].waiting = Some((found.clone(), index, rank));
                self.tiers[tier].candidates.push(found);
                return false;
            }
            let outcome = found.validate(&self.contract, &self.policy, source, Detail::Full);
            let repairs = repairs(found.edits(), source);
            self.tiers[tier].explained =
                Some(RankedCandidate { index, found: found.clone(), rank, outcome, repairs });
        }
        self.tiers[tier].candidates.push(found.without_edits());
        accepted
    }

    /// How plausible a candidate is as the result, to choose the one to explain.
    fn rank(&self, found: &Candidate, source: &Source<'_>) -> u8 {
        if let Some(rank) = found.rank {
            return rank;
        }
        if matches!(found.how, CandidateSource::Fence { .. } | CandidateSource::Block) {
            return 7;
        }
        let opener = source.slice(found.start, found.start + 1);
        let ty = self.contract.ty();
        let object =
            ty.object().is_some() || ty.alternatives().iter().any(|ty| matches!(ty, Type::Map(_)));
        let plausible = match (object, ty.items().is_some()) {
            (true, false) => opener == "{",
            (false, true) => opener == "[",
            _ => true,
        };
        u8::from(self.has_known_field(found, source)) * 4
            + u8::from(plausible) * 2
            + u8::from(!found.nested)
    }

    /// Whether a candidate has a field of the contract, so that it is probably meant as the result.
    fn has_known_field(&self, found: &Candidate, source: &Source<'_>) -> bool {
        let Some(object) = self.contract.ty().object() else { return true };
        let text = source.slice(found.start, found.end);
        let known = |key: &str| object.fields.contains_key(key);
        match &found.how {
            CandidateSource::Strict { .. } => {
                match crate::json::parse(text, self.policy.max_depth, false) {
                    Ok(parsed) => parsed
                        .value
                        .as_object()
                        .is_some_and(|members| members.keys().any(|key| known(key))),
                    Err(_) => true,
                }
            }
            // The first key distinguishes it from prose.
            CandidateSource::Broken { .. } => text.split('"').nth(1).is_none_or(known),
            _ => true,
        }
    }
}
