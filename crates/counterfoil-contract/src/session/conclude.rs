//! The end of a session: which candidate is accepted, which is explained, and how that is reported.

use super::{MENDED, STRICT, Session, UNTAGGED, UNTAGGED_MENDED, words};
use crate::code::Code;
use crate::extract::mend::Attempt;
use crate::extract::mend_scan::{MendAt, MendScan};
use crate::extract::tier::{Found, How, Picked, Tier};
use crate::policy::Framing;
use crate::report::{Report, Stage, repairs};
use crate::source::{Origin, Source, Span};
use crate::validate::{Detail, Judgement, bare_violation};

/// Other candidates named in a report.
const MOST_NAMED: usize = 8;

impl Session<'_> {
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
        if !self.eager && matches!(self.framing, Framing::FencedJson | Framing::OutputBlock) {
            self.note_elsewhere(&source, true);
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
        if self.eager
            && !(self.framing == Framing::FencedJson && matches!(tier, MENDED | UNTAGGED_MENDED))
        {
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
            || (self.first_ink.is_some_and(|ink| ink.offset == found.start)
                && found.end == self.last_ink + 1)
    }

    /// Gives blocks that must be mended their edits, and drops those that cannot be.
    fn mend_fences(&mut self, tier: usize, source: &Source<'_>) {
        let mut mender = MendAt::default();
        let candidates = std::mem::take(&mut self.tiers[tier].candidates);
        for found in candidates {
            let attempt = mender.mend(source.bytes(), source.base(), found.start);
            let Attempt::Done { end, edits } = attempt else { continue };
            let rest = if end < found.end { source.slice(end, found.end).trim() } else { "" };
            if rest.is_empty() && !edits.is_empty() {
                let span = self.eager.then(|| source.span(found.start, end));
                self.tiers[tier].candidates.push(Found {
                    end,
                    how: How::Mended(edits),
                    span,
                    ..found
                });
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
        provenance.chosen = Some(0);
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
        let several =
            closed.len() > 1 && first.start == first_ink.offset && last.end == self.last_ink + 1;
        let before = first_ink.offset < last.start;
        let around = before && last.end < self.last_ink + 1;
        let span = if several {
            last.span.unwrap_or_else(|| source.span(last.start, last.end))
        } else if before {
            Span {
                start: first_ink.offset,
                end: last.start,
                line: first_ink.line,
                column: first_ink.column,
            }
        } else {
            let behind = last.behind.unwrap_or_else(|| source.span(last.end, last.end));
            Span { end: self.last_ink + 1, ..behind }
        };
        let (code, message) = if several {
            (
                Code::SeveralResults,
                "several JSON values stand where one must stand alone".to_owned(),
            )
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
            violation.received =
                format!("{} bytes of other text", span.end.saturating_sub(span.start));
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
                || (self.framing == Framing::FencedJson
                    && matches!(tier, MENDED | UNTAGGED_MENDED));
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
        let lineup = self.lineup(tier);
        let chosen = lineup
            .iter()
            .position(|found| found.start == picked.found.start && found.end == picked.found.end);
        let mut provenance = self.contract.provenance();
        provenance.candidates = lineup.len().max(1);
        provenance.chosen = Some(chosen.unwrap_or(0));
        let later_broken = lineup
            .iter()
            .skip(chosen.map_or(0, |index| index + 1))
            .rfind(|found| picked.judgement.is_accepted() && found.is_broken() && !found.nested)
            .map(|found| found.span.unwrap_or_else(|| source.span(found.start, found.end)));
        // The last others and the chosen one, placed in one pass.
        let others = lineup
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != chosen)
            .map(|(_, found)| *found);
        let mut named: Vec<&Found> = others.rev().take(MOST_NAMED).collect();
        named.push(&picked.found);
        named.sort_by_key(|found| (found.start, found.end));
        let mut cursor = source.cursor();
        for found in named {
            let span = found.span.unwrap_or_else(|| cursor.span(found.start, found.end));
            if found.start == picked.found.start && found.end == picked.found.end {
                provenance.span = Some(span);
            } else {
                provenance.passed_over.push(span);
            }
        }
        provenance.repairs = picked.repairs;
        let mut judgement = picked.judgement;
        if let Some(span) = later_broken {
            judgement.warnings.push(words::later_broken(span));
        }
        self.contract.report(judgement, provenance)
    }

    /// The candidates among which one was chosen, in the order of the text.
    fn lineup(&self, tier: usize) -> Vec<&Found> {
        let of = |tiers: &[usize]| -> Vec<&Found> {
            tiers.iter().flat_map(|tier| &self.tiers[*tier].candidates).collect()
        };
        let mut all = match (self.framing, tier) {
            (Framing::OutputBlock, tier) => of(&[tier]),
            (Framing::FencedJson, STRICT | UNTAGGED) => of(&[STRICT, UNTAGGED]),
            (_, STRICT) => of(&[STRICT]),
            (framing, tier) => {
                let mended = &self.tiers[tier].candidates;
                // Mended values stand in order and apart; what one of them covers is no candidate
                // of its own.
                let covered = |found: &Found| {
                    let next = mended.partition_point(|other| other.end < found.start);
                    mended.get(next).is_some_and(|other| other.start <= found.end)
                };
                let mut rest = of(if framing == Framing::FencedJson {
                    &[STRICT, UNTAGGED]
                } else {
                    &[STRICT]
                });
                rest.retain(|found| !covered(found));
                rest.extend(mended);
                rest
            }
        };
        all.sort_by_key(|found| (found.start, found.end));
        all
    }
}
