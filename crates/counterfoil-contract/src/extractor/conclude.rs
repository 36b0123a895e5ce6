//! The end of the extraction: what the last attempt says, and the report about it.

use super::candidate::{Candidate, CandidateSource};
use super::decide::{LastAttempt, overlap};
use super::track::{Examined, Track};
use super::{Extractor, MAIN, SECOND, no_candidate};
use crate::attempt::Likeness;
use crate::capped::Capped;
use crate::code::Code;
use crate::extract::repair::Attempt;
use crate::extract::repair_scan::{BlockRepairer, RepairScan};
use crate::policy::{Framing, Limits, Several};
use crate::read;
use crate::report::{Report, Stage, Violation};
use crate::reporting::{build_report, empty_provenance};
use crate::source::{Position, Source, Span};
use crate::text::pluralize;
use crate::validate::{Detail, ValidationOutcome, bare_violation};
use std::sync::Arc;

/// The number of other candidates that a report names.
const MAX_PASSED_OVER: usize = 8;

impl Extractor<'_> {
    /// The report about the text; `text` is the window at its end.
    pub(crate) fn conclude(&mut self, text: &str, position: Position) -> Report {
        let source = Source::window(text, position);
        if !self.eager {
            self.repair_whole(&source);
        }
        self.tracks.iter_mut().for_each(Track::end);
        if !self.eager {
            self.search_outside(&source);
        }
        match self.last_attempt(&source) {
            Some(LastAttempt::Eligible(track)) => {
                let Some(last) = self.tracks[track].state.last.take() else {
                    return self.absent(&source);
                };
                self.report_attempt(Arc::unwrap_or_clone(last), &source)
            }
            Some(LastAttempt::Outside(attempt)) => {
                let found = Candidate::new(attempt.start, attempt.end, CandidateSource::Block);
                let found = match attempt.span {
                    Some(span) => found.at(span, None),
                    None => found,
                };
                let violation = self.wrong_form(&attempt);
                self.finish(unreadable(found, violation), &source)
            }
            Some(LastAttempt::Thinking(found)) => {
                let span = found.span().unwrap_or_else(|| source.span(found.start, found.end));
                self.finish(unreadable(found, no_candidate::unclosed_thinking(span)), &source)
            }
            Some(LastAttempt::Unclosed(span)) => self.report_unclosed(span, &source),
            Some(LastAttempt::CutKey(span)) => {
                let how = CandidateSource::Broken { at: span.end };
                let found = Candidate::new(span.start, span.end, how).at(span, None);
                self.finish(unreadable(found, no_candidate::cut_key(span)), &source)
            }
            None => self.without_attempt(&source),
        }
    }

    /// Looks for values that can be repaired, if something in the whole text is not strict JSON.
    fn repair_whole(&mut self, source: &Source<'_>) {
        let strict = !self.strict.has_failed
            && self.unparsable.is_empty()
            && self.tracks[MAIN].state.last.is_some();
        if self.is_bracketed() && self.policy.repairs() && !strict {
            let accept = self.policy.accepts_truncated();
            let mut repair_scan =
                RepairScan::new(0).accept_truncated(accept).counts_items(self.strict.counts_items);
            self.feed_repairs(&mut repair_scan, source, true);
            self.examined_at_end += repair_scan.examined();
        }
    }

    /// Looks for attempts in other forms in the whole text.
    fn search_outside(&mut self, source: &Source<'_>) {
        if self.framing != Framing::OutputBlock
            && memchr::memmem::find(source.bytes(), b"---OUTPUT---").is_none()
        {
            self.block.skip_to(source.end());
        }
        self.feed_outside(source, true);
    }

    /// The report about an attempt that is eligible.
    fn report_attempt(&mut self, mut last: Examined, source: &Source<'_>) -> Report {
        if self.framing == Framing::JsonOnly
            && let Some(report) = self.report_not_alone(source)
        {
            return report;
        }
        if matches!(last.found.how, CandidateSource::FenceToRepair) {
            self.repair_fence(&mut last, source);
        }
        if last.outcome.is_none() {
            self.explain_one(&mut last, source);
        }
        if last.is_valid()
            && let Some(other) = self.differing(&last)
        {
            let span = other.span().unwrap_or_else(|| source.span(other.start, other.end));
            if self.policy.several == Several::Ask {
                let found = last.found.clone();
                return self.finish(unreadable(found, no_candidate::differing(span)), source);
            }
            if let Some(outcome) = &mut last.outcome {
                outcome.warnings.push(|| no_candidate::differing_note(span));
            }
        }
        self.finish(last, source)
    }

    /// The report about a text without an attempt.
    fn without_attempt(&mut self, source: &Source<'_>) -> Report {
        if let Some(report) = self.scalar_candidate() {
            return report;
        }
        if self.framing == Framing::JsonOnly
            && let Some(report) = self.report_not_alone(source)
        {
            return report;
        }
        let best = [MAIN, SECOND]
            .into_iter()
            .filter_map(|track| self.tracks[track].fallback_rank().map(|rank| (rank, track)))
            .max();
        let fallback = best.and_then(|(_, track)| self.tracks[track].state.fallback.take());
        match fallback {
            Some(fallback) => {
                let mut fallback = Arc::unwrap_or_clone(fallback);
                if fallback.outcome.is_none() {
                    self.explain_one(&mut fallback, source);
                }
                self.finish(fallback, source)
            }
            None => self.absent(source),
        }
    }

    /// Whether the framing allows text around the result, or there is none.
    fn is_alone(&self, found: &Candidate) -> bool {
        self.framing != Framing::JsonOnly
            || (self.first_non_blank.is_some_and(|position| position.offset == found.start)
                && found.end == self.last_non_blank + 1)
    }

    /// Repairs a fenced block, if it can be repaired.
    fn repair_fence(&self, last: &mut Examined, source: &Source<'_>) {
        let found = &mut last.found;
        let content = source.slice(found.start, found.end);
        let blank = content.len() - content.trim_start_matches([' ', '\t', '\r', '\n', '>']).len();
        let start = found.start + blank;
        let mut repairer = BlockRepairer::new(self.policy.accepts_truncated())
            .counts_items(self.strict.counts_items);
        let (end, edits) = match repairer.repair(source.bytes(), source.base(), start) {
            Attempt::Done { end, edits } => (end, edits),
            Attempt::Refused { end, refusal, .. } => {
                let how = CandidateSource::Refused(Box::new(refusal));
                *found = self.replacement(Candidate::new(start, end, how), source);
                return;
            }
            Attempt::Failed { .. } | Attempt::More => return,
        };
        let rest = if end < found.end { source.slice(end, found.end).trim() } else { "" };
        if rest.is_empty() && !edits.is_empty() {
            let how = CandidateSource::Repaired(edits);
            *found = self.replacement(Candidate::new(start, end, how), source);
        }
    }

    /// A candidate in place of another one, with its place if the text may be dropped.
    fn replacement(&self, found: Candidate, source: &Source<'_>) -> Candidate {
        if !self.eager {
            return found;
        }
        let span = source.span(found.start, found.end);
        found.at(span, None)
    }

    /// The report about an output block that does not end, with what can be read of it.
    fn report_unclosed(&mut self, span: Span, source: &Source<'_>) -> Report {
        let found = Candidate::new(span.start, span.end, CandidateSource::Block).at(span, None);
        let mut examined = unreadable(found, no_candidate::block_not_closed(span));
        if let Some(outcome) = &mut examined.outcome {
            outcome.salvaged =
                read::block_cut_off(&self.contract, source, span.start, span.end, &self.policy);
        }
        self.finish(examined, source)
    }

    fn scalar_candidate(&mut self) -> Option<Report> {
        if !self.is_bracketed() || !self.tracks.iter().all(|track| track.candidates.is_empty()) {
            return None;
        }
        let text = match (&self.scalar, self.first_non_blank) {
            (Some(scalar), Some(_)) => scalar.trim_ascii_end().to_owned(),
            _ => return None,
        };
        let position = self.first_non_blank?;
        let source = Source::window(&text, position);
        let how = CandidateSource::Strict { quoted: false };
        let found = Candidate::new(position.offset, source.end(), how);
        crate::json::parse(&text, Limits::of_depth(1)).ok()?;
        let outcome = found.validate(&self.contract, &self.policy, &source, Detail::Full);
        let mut provenance = empty_provenance(&self.contract);
        provenance.candidates = 1;
        provenance.chosen = Some(0);
        provenance.span = Some(source.span(found.start, found.end));
        Some(build_report(&self.contract, outcome, provenance))
    }

    /// The report about a result that must be alone but has other text around it.
    fn report_not_alone(&mut self, source: &Source<'_>) -> Option<Report> {
        let mut closed: Vec<Candidate> = self
            .tracks
            .iter()
            .flat_map(|track| track.candidates.iter())
            .filter(|found| !found.nested && !found.is_broken())
            .cloned()
            .collect();
        closed.sort_by_key(|found| found.start);
        let first_non_blank = self.first_non_blank?;
        let last = closed.iter().rev().find(|found| found.plausible)?.clone();
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
            last.span().unwrap_or_else(|| source.span(last.start, last.end))
        } else if before {
            Span {
                start: first_non_blank.offset,
                end: last.start,
                line: first_non_blank.line,
                column: first_non_blank.column,
            }
        } else {
            let behind = last.behind().unwrap_or_else(|| source.span(last.end, last.end));
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
            let bytes = pluralize(span.end.saturating_sub(span.start), "byte");
            violation.received = format!("{bytes} of other text");
            violation.hint = "send only the JSON: no fence, no sentence before or after it".into();
        }
        Some(self.finish(unreadable(last, violation), source))
    }

    /// The report about one candidate.
    fn finish(&mut self, picked: Examined, source: &Source<'_>) -> Report {
        let others = self.others(&picked.found);
        let forgotten: usize = self.tracks.iter().map(|track| track.candidates.forgotten()).sum();
        let chosen = others.partition_point(|found| found.start < picked.found.start);
        let mut provenance = empty_provenance(&self.contract);
        provenance.candidates = forgotten + others.len() + 1;
        provenance.chosen = Some(forgotten + chosen);
        // The spans of the last others and of the chosen one, in one pass.
        let mut named: Vec<&Candidate> = others.into_iter().rev().take(MAX_PASSED_OVER).collect();
        named.push(&picked.found);
        named.sort_by_key(|found| (found.start, found.end));
        let mut cursor = source.cursor(named.first().map_or(source.base(), |found| found.start));
        for found in named {
            let span = found.span().unwrap_or_else(|| cursor.span(found.start, found.end));
            if std::ptr::eq(found, &raw const picked.found) {
                provenance.span = Some(span);
            } else {
                provenance.passed_over.push(span);
            }
        }
        let repairs_left_out;
        (provenance.repairs, repairs_left_out) = picked.repairs.into_parts();
        let mut report =
            build_report(&self.contract, picked.outcome.unwrap_or_default(), provenance);
        report.left_out.repairs = repairs_left_out;
        report
    }

    /// The candidates at other places than the chosen one, in the order of the text.
    fn others(&self, chosen: &Candidate) -> Vec<&Candidate> {
        let repaired = &self.tracks[SECOND].candidates;
        // Repaired values are sorted and do not overlap. A value inside of one is not a candidate
        // of its own.
        let covered = |found: &Candidate| {
            let next = repaired.first_not(|other| other.end < found.start);
            next.is_some_and(|other| other.start <= found.end)
        };
        let mut others: Vec<&Candidate> = match self.framing {
            Framing::OutputBlock => {
                let main = &self.tracks[MAIN].candidates;
                let alone = |found: &&Candidate| {
                    let next = main.first_not(|other| other.end < found.start);
                    next.is_none_or(|other| other.start >= found.end)
                };
                main.iter().chain(repaired.iter().filter(alone)).collect()
            }
            _ => {
                let main = self.tracks[MAIN].candidates.iter().filter(|found| !covered(found));
                main.chain(repaired.iter()).collect()
            }
        };
        others.retain(|found| !overlap(found, chosen));
        if !repaired.is_empty() {
            others.sort_by_key(|found| (found.start, found.end));
        }
        others
    }
}

/// A candidate that is rejected as a whole.
fn unreadable(found: Candidate, violation: Violation) -> Examined {
    let outcome = ValidationOutcome::unreadable(Stage::Extraction, vec![violation]);
    Examined {
        found,
        likeness: Likeness::Attempt,
        is_unparsable: false,
        outcome: Some(outcome),
        repairs: Capped::default(),
    }
}
