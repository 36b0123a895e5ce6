//! The end of the extraction: which candidate is accepted, which is explained, and the report.

use super::candidate::{Candidate, CandidateSource, RankedCandidate, Tier};
use super::{Extractor, REPAIRED, STRICT, UNTAGGED, UNTAGGED_REPAIRED, no_candidate};
use crate::code::Code;
use crate::extract::repair::Attempt;
use crate::extract::repair_scan::{BlockRepairer, RepairScan};
use crate::policy::Framing;
use crate::report::{Report, Stage, repairs};
use crate::reporting::{build_report, empty_provenance};
use crate::source::{Position, Source, Span};
use crate::validate::{Detail, ValidationOutcome, bare_violation};

/// The number of other candidates that a report names.
const MAX_PASSED_OVER: usize = 8;

impl Extractor<'_> {
    /// The report about the text; `text` is the window at its end.
    pub(crate) fn conclude(&mut self, text: &str, position: Position) -> Report {
        let source = Source::window(text, position);
        self.tiers.iter_mut().for_each(Tier::end);
        self.explain_waiting(&source, true);
        if let Some(report) = self.accept(&source) {
            return report;
        }
        if self.framing == Framing::JsonOnly
            && let Some(report) = self.report_not_alone(&source)
        {
            return report;
        }
        if let Some((tier, picked)) = self.explanation(&source) {
            return self.finish(tier, picked, &source);
        }
        if !self.eager && matches!(self.framing, Framing::FencedJson | Framing::OutputBlock) {
            self.note_json_outside_framing(&source, true);
        }
        self.absent()
    }

    /// The last candidate of the first tier that satisfies the contract.
    fn accept(&mut self, source: &Source<'_>) -> Option<Report> {
        for tier in 0..self.tiers.len() {
            if tier == REPAIRED
                && !self.eager
                && self.policy.repairs()
                && matches!(self.framing, Framing::AnyJson | Framing::JsonOnly)
            {
                let mut repair_scan = RepairScan::new(0);
                repair_scan.feed(source.bytes(), source.base(), true);
                self.offer_repaired(&mut repair_scan, source);
                self.tiers[REPAIRED].end();
                self.examined_at_end += repair_scan.examined();
            }
            if self.framing == Framing::FencedJson && matches!(tier, REPAIRED | UNTAGGED_REPAIRED) {
                self.repair_fences(tier, source);
            }
            if let Some(picked) = self.pick(tier, source) {
                return Some(self.finish(tier, picked, source));
            }
        }
        self.scalar_candidate()
    }

    fn pick(&mut self, tier: usize, source: &Source<'_>) -> Option<RankedCandidate> {
        if self.eager
            && !(self.framing == Framing::FencedJson
                && matches!(tier, REPAIRED | UNTAGGED_REPAIRED))
        {
            let best = self.tiers[tier].best.take()?;
            return self.is_alone(&best.found).then_some(best);
        }
        let candidates = std::mem::take(&mut self.tiers[tier].candidates);
        let mut picked = None;
        for (index, found) in candidates.iter().enumerate().rev() {
            if found.is_broken() || !self.is_alone(found) {
                continue;
            }
            let outcome = found.validate(&self.contract, &self.policy, source, Detail::Probe);
            if outcome.is_accepted() {
                let repairs = repairs(found.edits(), source);
                picked = Some(RankedCandidate {
                    index,
                    found: found.clone(),
                    rank: 0,
                    outcome,
                    repairs,
                });
                break;
            }
        }
        self.tiers[tier].candidates = candidates;
        picked
    }

    /// Whether the framing allows text around the result, or there is none.
    fn is_alone(&self, found: &Candidate) -> bool {
        self.framing != Framing::JsonOnly
            || (self.first_non_blank.is_some_and(|position| position.offset == found.start)
                && found.end == self.last_non_blank + 1)
    }

    /// Repairs the fenced blocks that need it, and drops those that cannot be repaired.
    fn repair_fences(&mut self, tier: usize, source: &Source<'_>) {
        let mut repairer = BlockRepairer::default();
        let candidates = std::mem::take(&mut self.tiers[tier].candidates);
        for found in candidates {
            let attempt = repairer.repair(source.bytes(), source.base(), found.start);
            let Attempt::Done { end, edits } = attempt else { continue };
            let rest = if end < found.end { source.slice(end, found.end).trim() } else { "" };
            if rest.is_empty() && !edits.is_empty() {
                let span = self.eager.then(|| source.span(found.start, end));
                self.tiers[tier].candidates.push(Candidate {
                    end,
                    how: CandidateSource::Repaired(edits),
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
        let text = match (&self.scalar, self.first_non_blank) {
            (Some(scalar), Some(_)) => scalar.trim_ascii_end().to_owned(),
            _ => return None,
        };
        let position = self.first_non_blank?;
        let source = Source::window(&text, position);
        let found = Candidate {
            start: position.offset,
            end: source.end(),
            how: CandidateSource::Strict { quoted: false },
            nested: false,
            span: None,
            behind: None,
            rank: None,
        };
        crate::json::parse(&text, 1, false).ok()?;
        let outcome = found.validate(&self.contract, &self.policy, &source, Detail::Full);
        let mut provenance = empty_provenance(&self.contract);
        provenance.candidates = 1;
        provenance.chosen = Some(0);
        provenance.span = Some(source.span(found.start, found.end));
        Some(build_report(&self.contract, outcome, provenance))
    }

    /// The report about a result that must be alone but has other text around it.
    fn report_not_alone(&mut self, source: &Source<'_>) -> Option<Report> {
        let mut closed: Vec<Candidate> = [STRICT, REPAIRED]
            .iter()
            .flat_map(|tier| &self.tiers[*tier].candidates)
            .filter(|found| !found.nested && !found.is_broken())
            .cloned()
            .collect();
        closed.sort_by_key(|found| found.start);
        let first_non_blank = self.first_non_blank?;
        let last = closed.iter().rev().find(|found| self.rank(found, source) & 2 != 0)?.clone();
        if self.is_alone(&last) {
            return None;
        }
        let first = closed.first()?;
        let several = closed.len() > 1
            && first.start == first_non_blank.offset
            && last.end == self.last_non_blank + 1;
        let before = first_non_blank.offset < last.start;
        let around = before && last.end < self.last_non_blank + 1;
        let span = if several {
            last.span.unwrap_or_else(|| source.span(last.start, last.end))
        } else if before {
            Span {
                start: first_non_blank.offset,
                end: last.start,
                line: first_non_blank.line,
                column: first_non_blank.column,
            }
        } else {
            let behind = last.behind.unwrap_or_else(|| source.span(last.end, last.end));
            Span { end: self.last_non_blank + 1, ..behind }
        };
        let (code, message) = if several {
            (
                Code::SeveralResults,
                "there are several JSON values where only one is allowed".to_owned(),
            )
        } else {
            (
                Code::TextAroundResult,
                format!(
                    "there is text {} the result, which must be alone",
                    if around {
                        "around"
                    } else if before {
                        "before"
                    } else {
                        "after"
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
        let outcome = ValidationOutcome::unreadable(Stage::Extraction, vec![violation]);
        let picked =
            RankedCandidate { index: 0, found: last, rank: 0, outcome, repairs: Vec::new() };
        let tier = if matches!(picked.found.how, CandidateSource::Repaired(_)) {
            REPAIRED
        } else {
            STRICT
        };
        Some(self.finish(tier, picked, source))
    }

    /// The candidate to explain when none satisfies the contract: the last of the highest rank.
    fn explanation(&mut self, source: &Source<'_>) -> Option<(usize, RankedCandidate)> {
        let mut best: Option<(u8, usize, usize, usize)> = None;
        for (tier, content) in self.tiers.iter().enumerate() {
            let from_window = !self.eager
                || (self.framing == Framing::FencedJson
                    && matches!(tier, REPAIRED | UNTAGGED_REPAIRED));
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
        let outcome = found.validate(&self.contract, &self.policy, source, Detail::Full);
        let repairs = repairs(found.edits(), source);
        Some((tier, RankedCandidate { index, found, rank, outcome, repairs }))
    }

    /// The report about one candidate.
    fn finish(&mut self, tier: usize, picked: RankedCandidate, source: &Source<'_>) -> Report {
        let candidates_compared = self.candidates_compared(tier);
        let chosen = candidates_compared
            .iter()
            .position(|found| found.start == picked.found.start && found.end == picked.found.end);
        let mut provenance = empty_provenance(&self.contract);
        provenance.candidates = candidates_compared.len().max(1);
        provenance.chosen = Some(chosen.unwrap_or(0));
        let later_broken = candidates_compared
            .iter()
            .skip(chosen.map_or(0, |index| index + 1))
            .rfind(|found| picked.outcome.is_accepted() && found.is_broken() && !found.nested)
            .map(|found| found.span.unwrap_or_else(|| source.span(found.start, found.end)));
        // The spans of the last others and of the chosen one, in one pass.
        let others = candidates_compared
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != chosen)
            .map(|(_, found)| *found);
        let mut named: Vec<&Candidate> = others.rev().take(MAX_PASSED_OVER).collect();
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
        let mut outcome = picked.outcome;
        if let Some(span) = later_broken {
            outcome.warnings.push(no_candidate::later_broken(span));
        }
        build_report(&self.contract, outcome, provenance)
    }

    /// The candidates among which one was chosen, in the order of the text.
    fn candidates_compared(&self, tier: usize) -> Vec<&Candidate> {
        let of = |tiers: &[usize]| -> Vec<&Candidate> {
            tiers.iter().flat_map(|tier| &self.tiers[*tier].candidates).collect()
        };
        let mut all = match (self.framing, tier) {
            (Framing::OutputBlock, tier) => of(&[tier]),
            (Framing::FencedJson, STRICT | UNTAGGED) => of(&[STRICT, UNTAGGED]),
            (_, STRICT) => of(&[STRICT]),
            (framing, tier) => {
                let repaired = &self.tiers[tier].candidates;
                // Repaired values are sorted and do not overlap. A value inside of one is not a
                // candidate of its own.
                let covered = |found: &Candidate| {
                    let next = repaired.partition_point(|other| other.end < found.start);
                    repaired.get(next).is_some_and(|other| other.start <= found.end)
                };
                let mut rest = of(if framing == Framing::FencedJson {
                    &[STRICT, UNTAGGED]
                } else {
                    &[STRICT]
                });
                rest.retain(|found| !covered(found));
                rest.extend(repaired);
                rest
            }
        };
        all.sort_by_key(|found| (found.start, found.end));
        all
    }
}
