//! One text held to one contract: the scanners find candidates, tiers say which come first, and the
//! last candidate of the first tier that satisfies the contract wins. The same code serves a whole
//! text and one that arrives in pieces.

mod conclude;
mod words;

pub(crate) use words::{beyond, not_utf8};

use crate::contract::Contract;
use crate::edit::Edit;
use crate::extract::block::BlockScan;
use crate::extract::fence::FenceScan;
use crate::extract::mend_scan::{MendEvent, MendScan};
use crate::extract::prose::ThinkScan;
use crate::extract::scan::{Event, Shape, StrictScan, Think};
use crate::extract::tier::{Found, How, LOOK_AHEAD, Picked, Tier};
use crate::policy::{Framing, Policy};
use crate::report::{Report, repairs};
use crate::source::{Origin, Source, Span};
use crate::validate::{Detail, Judgement};
use std::collections::VecDeque;

/// Tiers, the first to be served first.
const STRICT: usize = 0;
const MENDED: usize = 1;
const UNTAGGED: usize = 2;
const UNTAGGED_MENDED: usize = 3;
/// For output blocks: markers on lines of their own, and anywhere.
const OWN_LINES: usize = 0;
const ANYWHERE: usize = 1;

/// A scalar that is the whole text counts up to this size.
const LARGEST_SCALAR: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Session<'c> {
    contract: &'c Contract,
    policy: Policy,
    framing: Framing,
    /// Judge candidates as they come, because their text will be gone.
    eager: bool,
    strict: StrictScan,
    think: ThinkScan,
    mend: Option<MendScan>,
    fence: FenceScan,
    block: BlockScan,
    tiers: [Tier; 4],
    /// The first and last byte that is not blank.
    first_ink: Option<Origin>,
    last_ink: usize,
    seen: usize,
    /// The beginning of a text that may be one scalar.
    scalar: Option<String>,
    /// JSON where it does not count, for a framing that looks elsewhere.
    elsewhere: Option<Span>,
    thinking_from: Option<usize>,
    /// Bounds of thinking not applied yet, with their offsets.
    thoughts: VecDeque<(Think, usize)>,
    unclosed: Option<Span>,
    examined_elsewhere: u64,
}

impl<'c> Session<'c> {
    pub(crate) fn new(contract: &'c Contract, policy: &Policy) -> Self {
        Self {
            contract,
            framing: contract.framing(),
            eager: false,
            strict: StrictScan::new(0),
            think: ThinkScan::default(),
            mend: None,
            fence: FenceScan::new(0),
            block: BlockScan::new(0),
            tiers: [Tier::default(), Tier::default(), Tier::default(), Tier::default()],
            first_ink: None,
            last_ink: 0,
            seen: 0,
            scalar: None,
            elsewhere: None,
            thinking_from: None,
            thoughts: VecDeque::new(),
            unclosed: None,
            examined_elsewhere: 0,
            policy: policy.clone(),
        }
    }

    pub(crate) fn eager(mut self) -> Self {
        self.eager = true;
        if self.policy.repairs() && matches!(self.framing, Framing::AnyJson | Framing::JsonOnly) {
            self.mend = Some(MendScan::new(0));
        }
        self
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.policy.max_bytes
    }

    pub(crate) fn log(&self, report: &Report) {
        self.contract.log(report);
    }

    /// Bytes looked at while finding candidates.
    pub(crate) fn examined(&self) -> u64 {
        self.strict.examined
            + self.think.examined
            + self.fence.examined
            + self.block.examined
            + self.mend.as_ref().map_or(0, MendScan::examined)
            + self.examined_elsewhere
    }

    pub(crate) fn whole(&mut self, text: &str) -> Report {
        if text.len() > self.policy.max_bytes {
            return self.too_large(text.len());
        }
        self.feed(text, Origin::START, true);
        self.conclude(text, Origin::START)
    }

    /// Whether a result that satisfies the contract is there.
    pub(crate) fn progress(&self) -> crate::Progress {
        let whole = |picked: &Picked| {
            self.framing != Framing::JsonOnly || (picked.found.end == self.last_ink + 1)
        };
        let complete = self.tiers.iter().any(|tier| tier.best.as_ref().is_some_and(whole));
        if complete { crate::Progress::Complete } else { crate::Progress::Searching }
    }

    /// The first offset that is still needed.
    pub(crate) fn keep_from(&self) -> usize {
        let bracketed = matches!(self.framing, Framing::AnyJson | Framing::JsonOnly);
        let mut keep =
            if bracketed || self.eager { self.strict.keep_from() } else { self.think.keep_from() };
        if !bracketed {
            keep = keep.min(self.think.keep_from());
        }
        if let Some(mend) = &self.mend {
            keep = keep.min(mend.keep_from());
        }
        for tier in &self.tiers {
            keep = keep.min(tier.keep_from());
        }
        match self.framing {
            Framing::FencedJson => {
                keep = keep.min(self.fence.keep_from());
                // Blocks that have to be mended need what stands behind them.
                for tier in [MENDED, UNTAGGED_MENDED] {
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

    /// Reads on in the window.
    pub(crate) fn feed(&mut self, text: &str, origin: Origin, eof: bool) {
        let source = Source::window(text, origin);
        self.ink(&source);
        if self.framing == Framing::JsonOnly {
            self.strict.meant = self.first_ink.map(|ink| ink.offset);
        }
        self.find(&source, eof);
        self.explain_waiting(&source, eof);
    }

    /// Explains what broke, once the text behind it is there.
    fn explain_waiting(&mut self, source: &Source<'_>, eof: bool) {
        for tier in 0..self.tiers.len() {
            let ready = |found: &Found| eof || found.end.saturating_add(LOOK_AHEAD) <= source.end();
            if let Some((found, index, rank)) =
                self.tiers[tier].waiting.take_if(|(found, ..)| ready(found))
            {
                let judgement = found.judge(self.contract, &self.policy, source, Detail::Full);
                self.tiers[tier].resolve(Picked {
                    index,
                    found,
                    rank,
                    judgement,
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
                        Event::Think(think, _) => self.tiers[STRICT].think(think),
                        Event::Candidate(candidate) => {
                            let how = match candidate.shape {
                                Shape::Closed { quoted, .. } => How::Strict { quoted },
                                Shape::Broken { at } => How::Broken { at },
                            };
                            let found = Found {
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
                if let Some(mut mend) = self.mend.take() {
                    mend.feed(bytes, base, eof);
                    self.mended(&mut mend, source);
                    self.mend = Some(mend);
                }
            }
            Framing::FencedJson => self.feed_fences(source, eof),
            Framing::OutputBlock => self.feed_blocks(source, eof),
        }
    }

    fn mended(&mut self, mend: &mut MendScan, source: &Source<'_>) {
        for event in mend.take_events() {
            match event {
                MendEvent::Think(think, _) => self.tiers[MENDED].think(think),
                MendEvent::Mended(found) => {
                    let found = Found {
                        start: found.start,
                        end: found.end,
                        how: How::Mended(found.edits),
                        nested: false,
                        span: None,
                        behind: None,
                        rank: None,
                    };
                    self.offer(MENDED, found, source);
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
            self.think_up_to(block.start);
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
            let found = |how| Found {
                start: block.start,
                end: block.end,
                how,
                nested: false,
                span: None,
                behind: None,
                rank: None,
            };
            let tier = if block.tagged { STRICT } else { UNTAGGED };
            let satisfied = self.offer(tier, found(How::Fence { quotes: block.quotes }), source);
            if self.policy.repairs() && !satisfied {
                // Mended at the end, when all that a cut-off string could run into is there.
                let mended = Found {
                    start: block.start + blank,
                    end: block.end,
                    how: How::FenceMended,
                    nested: false,
                    span: None,
                    behind: None,
                    rank: None,
                };
                self.tiers[tier + 1].candidates.push(mended);
            }
        }
        self.think_up_to(if eof { usize::MAX } else { self.fence.keep_from() });
    }

    fn feed_blocks(&mut self, source: &Source<'_>, eof: bool) {
        self.block.feed(source.bytes(), source.base(), eof);
        let blocks = self.block.take_blocks();
        self.note_thinking(source, eof);
        for block in blocks {
            self.think_up_to(block.start);
            let tier = if block.own_lines { OWN_LINES } else { ANYWHERE };
            let found = Found {
                start: block.start,
                end: block.end,
                how: How::Block,
                nested: false,
                span: None,
                behind: None,
                rank: None,
            };
            self.offer(tier, found, source);
        }
        self.think_up_to(if eof { usize::MAX } else { self.block.keep_from() });
        if eof {
            self.unclosed = self.block.unfinished().map(|at| source.span(at, source.end()));
        }
    }

    /// Applies what was noted of thinking up to an offset. What stands inside a block that is still
    /// open waits: the block began before it.
    fn think_up_to(&mut self, offset: usize) {
        while let Some((think, _)) = self.thoughts.pop_front_if(|(_, at)| *at <= offset) {
            self.tiers.iter_mut().for_each(|tier| tier.think(think));
        }
    }

    /// Notes where thinking begins and ends and, while the text is at hand, JSON where it does not
    /// count.
    fn note_thinking(&mut self, source: &Source<'_>, eof: bool) {
        self.thoughts.extend(self.think.feed(source.bytes(), source.base(), eof));
        if self.eager {
            self.note_elsewhere(source, eof);
        }
    }

    /// Notes the last JSON that stands anywhere but in a thinking section.
    fn note_elsewhere(&mut self, source: &Source<'_>, eof: bool) {
        self.strict.feed(source.bytes(), source.base(), eof);
        for event in self.strict.take_events() {
            match event {
                Event::Think(Think::Open, at) => self.thinking_from = Some(at),
                Event::Think(Think::Close | Think::Orphan, _) => {
                    let from = self.thinking_from.take().unwrap_or(0);
                    if self.elsewhere.take_if(|span| span.start >= from).is_some() {
                        self.tiers[STRICT].thoughts += 1;
                    }
                }
                Event::Candidate(found)
                    if !found.nested && matches!(found.shape, Shape::Closed { .. }) =>
                {
                    let wanted = self.contract.ty().object().is_some();
                    if !wanted || source.slice(found.start, found.start + 1) == "{" {
                        self.elsewhere = Some(source.span(found.start, found.end));
                    }
                }
                Event::Candidate(_) => {}
            }
        }
    }

    /// Notes the first and last byte that is not blank.
    fn ink(&mut self, source: &Source<'_>) {
        let new = source.slice(self.seen.max(source.base()), source.end());
        let from = source.end() - new.len();
        self.seen = source.end();
        // The blanks of JSON, and a byte order mark where one belongs.
        let trimmed = if from == 0 { new.strip_prefix('\u{feff}').unwrap_or(new) } else { new }
            .trim_ascii_start();
        let Some(first) = trimmed.chars().next() else {
            if let Some(scalar) = &mut self.scalar {
                scalar.push_str(new);
            }
            return;
        };
        let at = from + new.len() - trimmed.len();
        if self.first_ink.is_none() {
            self.first_ink = Some(source.place(at));
            if matches!(first, '"' | '-' | '0'..='9' | 't' | 'f' | 'n') {
                self.scalar = Some(String::new());
            }
        }
        self.last_ink = from + new.trim_ascii_end().len() - 1;
        if let Some(scalar) = &mut self.scalar {
            scalar.push_str(if scalar.is_empty() { trimmed } else { new });
            if scalar.len() > LARGEST_SCALAR {
                self.scalar = None;
            }
        }
    }

    /// Takes a candidate; true if it was judged and satisfies the contract.
    fn offer(&mut self, tier: usize, mut found: Found, source: &Source<'_>) -> bool {
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
            Some(found.judge(self.contract, &self.policy, source, Detail::Probe))
        };
        let accepted = probe.as_ref().is_some_and(Judgement::is_accepted);
        let index = self.tiers[tier].candidates.len();
        if let Some(judgement) = probe.filter(|_| accepted) {
            let repairs = repairs(found.edits(), source);
            self.tiers[tier].best =
                Some(Picked { index, found: found.clone(), rank, judgement, repairs });
        } else if self.tiers[tier].outranks(rank) {
            self.tiers[tier].waiting = None;
            if let How::Broken { .. } = found.how {
                self.tiers[tier].waiting = Some((found.clone(), index, rank));
                self.tiers[tier].candidates.push(found);
                return false;
            }
            let judgement = found.judge(self.contract, &self.policy, source, Detail::Full);
            let repairs = repairs(found.edits(), source);
            self.tiers[tier].explained =
                Some(Picked { index, found: found.clone(), rank, judgement, repairs });
        }
        self.tiers[tier].candidates.push(found.without_edits());
        accepted
    }

    /// How much a candidate looks like what was wanted, when none is.
    fn rank(&self, found: &Found, source: &Source<'_>) -> u8 {
        if let Some(rank) = found.rank {
            return rank;
        }
        if matches!(found.how, How::Fence { .. } | How::Block) {
            return 7;
        }
        let opener = source.slice(found.start, found.start + 1);
        let ty = self.contract.ty();
        let object = ty.object().is_some()
            || ty.alternatives().iter().any(|ty| matches!(ty, crate::Type::Map(_)));
        let plausible = match (object, ty.items().is_some()) {
            (true, false) => opener == "{",
            (false, true) => opener == "[",
            _ => true,
        };
        u8::from(self.is_kin(found, source)) * 4 + u8::from(plausible) * 2 + u8::from(!found.nested)
    }

    /// Whether a candidate has a field of the contract, so that it may have been meant as the
    /// result.
    fn is_kin(&self, found: &Found, source: &Source<'_>) -> bool {
        let Some(object) = self.contract.ty().object() else { return true };
        let text = source.slice(found.start, found.end);
        let known = |key: &str| object.fields.contains_key(key);
        match &found.how {
            How::Strict { .. } => match crate::json::parse(text, self.policy.max_depth, false) {
                Ok(parsed) => parsed
                    .value
                    .as_object()
                    .is_some_and(|members| members.keys().any(|key| known(key))),
                Err(_) => true,
            },
            // The first key is enough to tell one from prose.
            How::Broken { .. } => text.split('"').nth(1).is_none_or(known),
            _ => true,
        }
    }
}

/// Edits of a candidate that has none.
pub(crate) const NO_EDITS: &[Edit] = &[];
