//! One text held to one contract: the scanners find candidates, tiers say which come first, and the last candidate of
//! the first tier that satisfies the contract wins. The same code serves a whole text and one that arrives in pieces.

use crate::code::Code;
use crate::contract::Contract;
use crate::edit::Edit;
use crate::extract::block::BlockScan;
use crate::extract::fence::FenceScan;
use crate::extract::mend_scan::{MendEvent, MendScan};
use crate::extract::scan::{Event, Shape, StrictScan, Think};
use crate::extract::tier::{Found, How, LOOK_AHEAD, Picked, Tier};
use crate::policy::{Framing, Policy};
use crate::report::{Report, Stage, Status, Violation, repairs};
use crate::source::{Origin, Source, Span};
use crate::validate::{Detail, Judgement, bare_violation};
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
/// Other candidates named in a report.
const MOST_NAMED: usize = 8;

#[derive(Debug)]
pub(crate) struct Session<'c> {
    contract: &'c Contract,
    policy: Policy,
    framing: Framing,
    /// Judge candidates as they come, because their text will be gone.
    eager: bool,
    strict: StrictScan,
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
        let whole =
            |picked: &Picked| self.framing != Framing::JsonOnly || (picked.found.end == self.last_ink + 1);
        let complete = self.tiers.iter().any(|tier| tier.best.as_ref().is_some_and(whole));
        if complete { crate::Progress::Complete } else { crate::Progress::Searching }
    }

    /// The first offset that is still needed.
    pub(crate) fn keep_from(&self) -> usize {
        let mut keep = self.strict.keep_from();
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
                    keep =
                        keep.min(self.tiers[tier].candidates.first().map_or(usize::MAX, |found| found.start));
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
            if let Some((found, index, rank)) = self.tiers[tier].waiting.take_if(|(found, ..)| ready(found)) {
                let judgement = found.judge(self.contract, &self.policy, source, Detail::Full);
                self.tiers[tier].resolve(Picked { index, found, rank, judgement, repairs: Vec::new() });
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
                    .trim_start_matches(|c: char| c.is_whitespace() || (block.quotes > 0 && c == '>'))
                    .len();
            let looks_like_json =
                content[blank..].starts_with(['{', '[']) || (block.tagged && !content.trim().is_empty());
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

    /// Applies what was noted of thinking up to an offset. What stands inside a block that is still open waits: the
    /// block began before it.
    fn think_up_to(&mut self, offset: usize) {
        while let Some((think, _)) = self.thoughts.pop_front_if(|(_, at)| *at <= offset) {
            self.tiers.iter_mut().for_each(|tier| tier.think(think));
        }
    }

    /// Notes where thinking begins and ends and, on the way, the last JSON that stands anywhere.
    fn note_thinking(&mut self, source: &Source<'_>, eof: bool) {
        self.strict.feed(source.bytes(), source.base(), eof);
        for event in self.strict.take_events() {
            match event {
                Event::Think(think, at) => {
                    self.thoughts.push_back((think, at));
                    match think {
                        Think::Open => self.thinking_from = Some(at),
                        Think::Close | Think::Orphan => {
                            let from = self.thinking_from.take().unwrap_or(0);
                            if self.elsewhere.take_if(|span| span.start >= from).is_some() {
                                self.tiers[STRICT].thoughts += 1;
                            }
                        }
                    }
                }
                Event::Candidate(found) if !found.nested && matches!(found.shape, Shape::Closed { .. }) => {
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
        let trimmed =
            if from == 0 { new.strip_prefix('\u{feff}').unwrap_or(new) } else { new }.trim_ascii_start();
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
            self.tiers[tier].best = Some(Picked { index, found: found.clone(), rank, judgement, repairs });
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
        let object =
            ty.object().is_some() || ty.alternatives().iter().any(|ty| matches!(ty, crate::Type::Map(_)));
        let plausible = match (object, ty.items().is_some()) {
            (true, false) => opener == "{",
            (false, true) => opener == "[",
            _ => true,
        };
        u8::from(self.is_kin(found, source)) * 4 + u8::from(plausible) * 2 + u8::from(!found.nested)
    }

    /// Whether a candidate has a field of the contract, so that it may have been meant as the result.
    fn is_kin(&self, found: &Found, source: &Source<'_>) -> bool {
        let Some(object) = self.contract.ty().object() else { return true };
        let text = source.slice(found.start, found.end);
        let known = |key: &str| object.fields.contains_key(key);
        match &found.how {
            How::Strict { .. } => match crate::json::parse(text, self.policy.max_depth, false) {
                Ok(parsed) => {
                    parsed.value.as_object().is_some_and(|members| members.keys().any(|key| known(key)))
                }
                Err(_) => true,
            },
            // The first key is enough to tell one from prose.
            How::Broken { .. } => text.split('"').nth(1).is_none_or(known),
            _ => true,
        }
    }

    /// Says what came of the text; `text` is the window at its end.
    pub(crate) fn conclude(&mut self, text: &str, origin: Origin) -> Report {
        let source = Source::window(text, origin);
        self.tiers.iter_mut().for_each(Tier::end);
        self.explain_waiting(&source, true);
        if let Some(report) = self.accept(&source) {
            return report;
        }
        if self.framing == Framing::JsonOnly
            && let Some(report) = self.not_alone(&source)
        {
            return report;
        }
        if let Some((tier, picked)) = self.explanation(&source) {
            return self.finish(tier, picked, &source);
        }
        self.absent()
    }

    /// The last candidate of the first tier that satisfies the contract.
    fn accept(&mut self, source: &Source<'_>) -> Option<Report> {
        for tier in 0..self.tiers.len() {
            if tier == MENDED
                && !self.eager
                && self.policy.repairs()
                && matches!(self.framing, Framing::AnyJson | Framing::JsonOnly)
            {
                let mut mend = MendScan::new(0);
                mend.feed(source.bytes(), source.base(), true);
                self.mended(&mut mend, source);
                self.tiers[MENDED].end();
                self.examined_elsewhere += mend.examined();
            }
            if self.framing == Framing::FencedJson && matches!(tier, MENDED | UNTAGGED_MENDED) {
                self.mend_fences(tier, source);
            }
            if let Some(picked) = self.pick(tier, source) {
                return Some(self.finish(tier, picked, source));
            }
        }
        self.scalar_candidate()
    }

    fn pick(&mut self, tier: usize, source: &Source<'_>) -> Option<Picked> {
        if self.eager && !(self.framing == Framing::FencedJson && matches!(tier, MENDED | UNTAGGED_MENDED)) {
            let best = self.tiers[tier].best.take()?;
            return self.stands_alone(&best.found).then_some(best);
        }
        let candidates = std::mem::take(&mut self.tiers[tier].candidates);
        let mut picked = None;
        for (index, found) in candidates.iter().enumerate().rev() {
            if found.is_broken() || !self.stands_alone(found) {
                continue;
            }
            let judgement = found.judge(self.contract, &self.policy, source, Detail::Probe);
            if judgement.is_accepted() {
                let repairs = repairs(found.edits(), source);
                picked = Some(Picked { index, found: found.clone(), rank: 0, judgement, repairs });
                break;
            }
        }
        self.tiers[tier].candidates = candidates;
        picked
    }

    /// Where nothing may stand around the result, whether that is so.
    fn stands_alone(&self, found: &Found) -> bool {
        self.framing != Framing::JsonOnly
            || (self.first_ink.is_some_and(|ink| ink.offset == found.start) && found.end == self.last_ink + 1)
    }

    /// Gives blocks that must be mended their edits, and drops those that cannot be.
    fn mend_fences(&mut self, tier: usize, source: &Source<'_>) {
        let mut mender = crate::extract::mend_scan::MendAt::default();
        let candidates = std::mem::take(&mut self.tiers[tier].candidates);
        for found in candidates {
            let attempt = mender.mend(source.bytes(), source.base(), found.start);
            let crate::extract::mend::Attempt::Done { end, edits } = attempt else { continue };
            let rest = if end < found.end { source.slice(end, found.end).trim() } else { "" };
            if rest.is_empty() && !edits.is_empty() {
                let span = self.eager.then(|| source.span(found.start, end));
                self.tiers[tier].candidates.push(Found { end, how: How::Mended(edits), span, ..found });
            }
        }
    }

    fn scalar_candidate(&mut self) -> Option<Report> {
        if !matches!(self.framing, Framing::AnyJson | Framing::JsonOnly)
            || !self.tiers.iter().all(|tier| tier.candidates.is_empty())
        {
            return None;
        }
        let text = match (&self.scalar, self.first_ink) {
            (Some(scalar), Some(_)) => scalar.trim_ascii_end().to_owned(),
            _ => return None,
        };
        let origin = self.first_ink?;
        let source = Source::window(&text, origin);
        let found = Found {
            start: origin.offset,
            end: source.end(),
            how: How::Strict { quoted: false },
            nested: false,
            span: None,
            behind: None,
            rank: None,
        };
        crate::json::parse(&text, 1, false).ok()?;
        let judgement = found.judge(self.contract, &self.policy, &source, Detail::Full);
        let mut provenance = self.contract.provenance();
        provenance.candidates = 1;
        provenance.chosen = 1;
        provenance.span = Some(source.span(found.start, found.end));
        Some(self.contract.report(judgement, provenance))
    }

    /// For a framing in which the result stands alone: a result is there, but other text is too.
    fn not_alone(&mut self, source: &Source<'_>) -> Option<Report> {
        let mut closed: Vec<Found> = [STRICT, MENDED]
            .iter()
            .flat_map(|tier| &self.tiers[*tier].candidates)
            .filter(|found| !found.nested && !found.is_broken())
            .cloned()
            .collect();
        closed.sort_by_key(|found| found.start);
        let first_ink = self.first_ink?;
        let last = closed.iter().rev().find(|found| self.rank(found, source) & 2 != 0)?.clone();
        if self.stands_alone(&last) {
            return None;
        }
        let first = closed.first()?;
        let several = closed.len() > 1 && first.start == first_ink.offset && last.end == self.last_ink + 1;
        let before = first_ink.offset < last.start;
        let around = before && last.end < self.last_ink + 1;
        let span = if several {
            last.span.unwrap_or_else(|| source.span(last.start, last.end))
        } else if before {
            Span { start: first_ink.offset, end: last.start, line: first_ink.line, column: first_ink.column }
        } else {
            let behind = last.behind.unwrap_or_else(|| source.span(last.end, last.end));
            Span { end: self.last_ink + 1, ..behind }
        };
        let (code, message) = if several {
            (Code::SeveralResults, "several JSON values stand where one must stand alone".to_owned())
        } else {
            (
                Code::TextAroundResult,
                format!(
                    "text stands {} the result, which must stand alone",
                    if around {
                        "around"
                    } else if before {
                        "before"
                    } else {
                        "behind"
                    }
                ),
            )
        };
        let mut violation = bare_violation(code, "", message);
        violation.span = Some(span);
        violation.expected = "one JSON value and nothing else".into();
        if several {
            violation.received = format!("{} values", closed.len());
            violation.hint = "send only one of them".into();
        } else {
            violation.received = format!("{} bytes of other text", span.end.saturating_sub(span.start));
            violation.hint = "send only the JSON: no fence, no sentence before or after it".into();
        }
        let judgement = Judgement::unreadable(Stage::Extraction, vec![violation]);
        let picked = Picked { index: 0, found: last, rank: 0, judgement, repairs: Vec::new() };
        let tier = if matches!(picked.found.how, How::Mended(_)) { MENDED } else { STRICT };
        Some(self.finish(tier, picked, source))
    }

    /// When none satisfies the contract: the last that looks like what was wanted, explained.
    fn explanation(&mut self, source: &Source<'_>) -> Option<(usize, Picked)> {
        let mut best: Option<(u8, usize, usize, usize)> = None;
        for (tier, content) in self.tiers.iter().enumerate() {
            let from_window = !self.eager
                || (self.framing == Framing::FencedJson && matches!(tier, MENDED | UNTAGGED_MENDED));
            if !from_window {
                if let Some(picked) = &content.explained {
                    let key = (picked.rank, picked.found.start, tier, picked.index);
                    best = best.max(Some(key));
                }
                continue;
            }
            for (index, found) in content.candidates.iter().enumerate() {
                best = best.max(Some((self.rank(found, source), found.start, tier, index)));
            }
        }
        let (rank, _, tier, index) = best?;
        if let Some(picked) = self.tiers[tier].explained.take() {
            return Some((tier, picked));
        }
        let found = self.tiers[tier].candidates.get(index)?.clone();
        let judgement = found.judge(self.contract, &self.policy, source, Detail::Full);
        let repairs = repairs(found.edits(), source);
        Some((tier, Picked { index, found, rank, judgement, repairs }))
    }

    /// The report about one candidate.
    fn finish(&mut self, tier: usize, picked: Picked, source: &Source<'_>) -> Report {
        let place = |found: &Found| found.span.unwrap_or_else(|| source.span(found.start, found.end));
        let mut lineup = self.lineup(tier);
        let chosen = lineup
            .iter()
            .position(|found| found.start == picked.found.start && found.end == picked.found.end);
        let mut provenance = self.contract.provenance();
        provenance.candidates = lineup.len().max(1);
        provenance.chosen = chosen.map_or(1, |index| index + 1);
        provenance.span = Some(place(&picked.found));
        let later_broken = lineup
            .iter()
            .skip(provenance.chosen)
            .rfind(|found| picked.judgement.is_accepted() && found.is_broken() && !found.nested)
            .map(&place);
        if let Some(chosen) = chosen {
            lineup.remove(chosen);
        }
        let from = lineup.len().saturating_sub(MOST_NAMED);
        provenance.passed_over = lineup[from..].iter().map(place).collect();
        provenance.repairs = picked.repairs;
        let mut judgement = picked.judgement;
        if let Some(span) = later_broken {
            let mut note = bare_violation(
                Code::LaterNeedsRepair,
                "",
                "behind the result stands something that looks like another one but is not strict JSON; it was passed over".into(),
            );
            note.span = Some(span);
            note.expected = "the result last".into();
            note.received = "text that would need repairs".into();
            note.hint = "if that was meant to be the result, ask for it again".into();
            judgement.warnings.push(note);
        }
        self.contract.report(judgement, provenance)
    }

    /// The candidates among which one was chosen, in the order of the text.
    fn lineup(&self, tier: usize) -> Vec<Found> {
        let mut all: Vec<Found> = match (self.framing, tier) {
            (Framing::OutputBlock, tier) => self.tiers[tier].candidates.clone(),
            (Framing::FencedJson, STRICT | UNTAGGED) => [&self.tiers[STRICT], &self.tiers[UNTAGGED]]
                .iter()
                .flat_map(|tier| tier.candidates.iter().cloned())
                .collect(),
            (_, STRICT) => self.tiers[STRICT].candidates.clone(),
            (framing, tier) => {
                let mended = &self.tiers[tier].candidates;
                let base: &[usize] =
                    if framing == Framing::FencedJson { &[STRICT, UNTAGGED] } else { &[STRICT] };
                let inside = |found: &Found| {
                    mended.iter().any(|other| other.start <= found.end && found.start <= other.end)
                };
                base.iter()
                    .flat_map(|tier| self.tiers[*tier].candidates.iter())
                    .filter(|found| !inside(found))
                    .chain(mended.iter())
                    .cloned()
                    .collect()
            }
        };
        all.sort_by_key(|found| (found.start, found.end));
        all
    }

    fn absent(&self) -> Report {
        let mut violation = bare_violation(Code::NoResult, "", String::new());
        violation.received = "text without a result".into();
        let mut status = Status::Absent;
        violation.expected = match self.framing {
            Framing::JsonOnly => "one JSON value and nothing else",
            Framing::FencedJson => "JSON in a fenced code block labelled json",
            Framing::AnyJson => "a JSON value",
            Framing::OutputBlock => "a block between ---OUTPUT--- and ---END---",
        }
        .into();
        violation.message = format!("no result was found: expected {}", violation.expected);
        violation.hint = "end the answer with the result the contract asks for".into();
        if self.first_ink.is_none() {
            violation.code = Code::EmptyText;
            violation.message = "the text is empty".into();
            violation.received = "nothing".into();
        } else if self.tiers.iter().any(|tier| tier.thoughts > 0) {
            violation.code = Code::OnlyThinking;
            violation.message = "the only result stands in a thinking section, which is not an answer".into();
            violation.hint = "repeat the result behind the thinking section".into();
        } else if let Some(span) = self.unclosed {
            violation.code = Code::BlockNotClosed;
            violation.message = "the output block has no ---END---".into();
            violation.span = Some(span);
            violation.received = "---OUTPUT--- without ---END---".into();
            violation.hint = "close the block with ---END--- on a line of its own".into();
            status = Status::Rejected;
        } else if let (Some(span), Framing::OutputBlock) = (self.elsewhere, self.framing) {
            violation.span = Some(span);
            violation.received = "JSON, but no block".into();
            violation.hint = "write key: value lines between ---OUTPUT--- and ---END---".into();
        } else if let Some(span) = self.elsewhere {
            violation.code = Code::NotFenced;
            violation.message = "JSON stands in the text, but not in a fenced code block".into();
            violation.span = Some(span);
            violation.received = "JSON outside any fence".into();
            violation.hint = "put the JSON between ```json and ```".into();
        }
        let mut report = self
            .contract
            .report(Judgement::unreadable(Stage::Extraction, vec![violation]), self.contract.provenance());
        report.status = status;
        report
    }

    pub(crate) fn too_large(&self, length: usize) -> Report {
        let mut violation = bare_violation(
            Code::TextTooLarge,
            "",
            format!("the text has {length} bytes; the limit is {}", self.policy.max_bytes),
        );
        violation.span = Some(Span { start: 0, end: length, line: 1, column: 1 });
        violation.expected = format!("at most {} bytes", self.policy.max_bytes);
        violation.received = format!("{length} bytes");
        violation.hint = "raise the limit, or have the agent say less".into();
        self.contract
            .report(Judgement::unreadable(Stage::Extraction, vec![violation]), self.contract.provenance())
    }
}

/// Bytes that are not text.
pub(crate) fn not_utf8(contract: &Contract, bytes: &[u8], valid: usize) -> Report {
    let text = std::str::from_utf8(&bytes[..valid]).unwrap_or_default();
    let source = Source::whole(text);
    let place = source.place(valid);
    let mut violation: Violation = bare_violation(Code::NotUtf8, "", "the text is not UTF-8".into());
    violation.span = Some(Span {
        start: valid,
        end: (valid + 1).min(bytes.len()),
        line: place.line,
        column: place.column,
    });
    violation.expected = "UTF-8 text".into();
    violation.received = format!("the byte 0x{:02x}", bytes.get(valid).copied().unwrap_or_default());
    violation.hint = "have the agent write UTF-8".into();
    contract.report(Judgement::unreadable(Stage::Extraction, vec![violation]), contract.provenance())
}

/// Edits of a candidate that has none.
pub(crate) const NO_EDITS: &[Edit] = &[];
