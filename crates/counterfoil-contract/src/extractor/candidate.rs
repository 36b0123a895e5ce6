//! Candidates for the result, and the tiers that hold them.

use crate::contract::Contract;
use crate::edit::{Edit, NO_EDITS};
use crate::extract::strict_scan::ThinkMark;
use crate::json::{self, Fault, ParseFault};
use crate::policy::Policy;
use crate::read;
use crate::report::{Repair, Stage};
use crate::source::{Source, Span};
use crate::validate::{Detail, ValidationOutcome, validate};

/// Where a candidate comes from, and so how it is parsed.
#[derive(Clone, Debug)]
pub(crate) enum CandidateSource {
    /// Strict JSON, possibly with Markdown quote markers inside.
    Strict { quoted: bool },
    /// JSON after the edits are applied.
    Repaired(Vec<Edit>),
    /// It began like JSON and broke at the offset.
    Broken { at: usize },
    /// The content of a fenced block.
    Fence { quotes: u8 },
    /// The content of a fenced block that needs repairs.
    FenceToRepair,
    /// The content of an output block.
    Block,
}

/// A part of the text that may be the result.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) how: CandidateSource,
    /// It is inside of a value that broke.
    pub(crate) nested: bool,
    /// Its span, recorded if its text may be dropped before the report.
    pub(crate) span: Option<Span>,
    /// The empty span right after it, recorded likewise.
    pub(crate) behind: Option<Span>,
    /// How plausible it is as the result, recorded likewise.
    pub(crate) rank: Option<u8>,
}

/// Bytes after a break that are read to explain it.
pub(crate) const LOOK_AHEAD: usize = 64;

/// A candidate that was validated.
#[derive(Clone, Debug)]
pub(crate) struct RankedCandidate {
    pub(crate) index: usize,
    pub(crate) found: Candidate,
    pub(crate) rank: u8,
    pub(crate) outcome: ValidationOutcome,
    pub(crate) repairs: Vec<Repair>,
}

impl Candidate {
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.how, CandidateSource::Broken { .. } | CandidateSource::FenceToRepair)
    }

    pub(crate) fn edits(&self) -> &[Edit] {
        match &self.how {
            CandidateSource::Repaired(edits) => edits,
            _ => NO_EDITS,
        }
    }

    /// The same candidate without its edits.
    pub(crate) fn without_edits(mut self) -> Self {
        if let CandidateSource::Repaired(edits) = &mut self.how {
            *edits = Vec::new();
        }
        self
    }

    /// Parses and validates the candidate.
    pub(crate) fn validate(
        &self,
        contract: &Contract,
        policy: &Policy,
        source: &Source<'_>,
        detail: Detail,
    ) -> ValidationOutcome {
        let reading = match &self.how {
            CandidateSource::Block => {
                Ok(read::block(contract, source, self.start, self.end, policy))
            }
            CandidateSource::Strict { quoted: false } => {
                read::json(source, self.start, self.end, NO_EDITS, policy, detail)
            }
            CandidateSource::Strict { quoted: true } => {
                let depth = read::quote_depth_at(source, self.start);
                let edits = read::quote_edits(source, self.start, self.end, depth);
                read::json(source, self.start, self.end, &edits, policy, detail)
            }
            CandidateSource::Repaired(edits) => {
                read::json(source, self.start, self.end, edits, policy, detail)
            }
            CandidateSource::Fence { quotes } => {
                let (start, end) = self.content(source);
                let mut edits = read::quote_edits(source, self.start, self.end, *quotes);
                if *quotes > 0 {
                    // The first line of the content has a marker too.
                    edits.splice(
                        0..0,
                        read::quote_edits_on_line(source, self.start, self.end, *quotes),
                    );
                }
                edits.retain(|edit| edit.start >= start && edit.end <= end);
                read::json(source, start, end, &edits, policy, detail)
            }
            CandidateSource::Broken { at } => Err(Some(Box::new(self.broken(*at, source, policy)))),
            CandidateSource::FenceToRepair => {
                Err(Some(Box::new(self.broken(self.end, source, policy))))
            }
        };
        match reading {
            Ok(reading) => validate(contract, policy, reading, source, detail),
            Err(violation) => ValidationOutcome::unreadable(
                Stage::Parse,
                violation.into_iter().map(|violation| *violation).collect(),
            ),
        }
    }

    /// The content of a fenced block without the whitespace around it.
    fn content(&self, source: &Source<'_>) -> (usize, usize) {
        let text = source.slice(self.start, self.end);
        let lead = text.len() - text.trim_start().len();
        let tail = text.len() - text.trim_end().len();
        if lead == text.len() {
            (self.start, self.start)
        } else {
            (self.start + lead, self.end - tail)
        }
    }

    /// Why it broke: the error of the strict parser on the text up to there and a little further.
    fn broken(&self, at: usize, source: &Source<'_>, policy: &Policy) -> crate::report::Violation {
        let end = source.end().min(at.saturating_add(LOOK_AHEAD));
        let text = source.slice(self.start, end);
        let fault = match json::parse(text, policy.max_depth, false) {
            Err(fault) => ParseFault { at: self.start + fault.at, ..fault },
            Ok(_) => ParseFault { fault: Fault::Truncated, at },
        };
        // Truncated by the window, not by the text.
        let cut_by_us = fault.fault == Fault::Truncated && end < source.end();
        let fault = if cut_by_us {
            ParseFault { fault: Fault::Syntax("it does not go on as JSON".into()), at }
        } else {
            fault
        };
        read::syntax_violation(source, &fault, end, policy)
    }
}

/// Candidates of one precedence.
#[derive(Debug, Default)]
pub(crate) struct Tier {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) best: Option<RankedCandidate>,
    pub(crate) explained: Option<RankedCandidate>,
    /// A candidate to explain once the text after it has arrived, with its index and rank.
    pub(crate) waiting: Option<(Candidate, usize, u8)>,
    /// The number of candidates inside of thinking sections.
    pub(crate) inside_thinking: usize,
    /// The state of the tier when the open thinking section began.
    before: Option<Box<Before>>,
}

/// The state of a tier before a thinking section.
#[derive(Clone, Debug)]
struct Before {
    length: usize,
    best: Option<RankedCandidate>,
    explained: Option<RankedCandidate>,
    waiting: Option<(Candidate, usize, u8)>,
}

impl Tier {
    /// Whether a new candidate of this rank replaces the one to explain.
    pub(crate) fn outranks(&self, rank: u8) -> bool {
        let explained = self.explained.as_ref().map(|picked| picked.rank);
        let waiting = self.waiting.as_ref().map(|(.., rank)| *rank);
        explained.max(waiting).is_none_or(|other| other <= rank)
    }

    /// The first offset that the window must keep for the candidate that waits.
    pub(crate) fn keep_from(&self) -> usize {
        let now = self.waiting.as_ref();
        let before = self.before.as_ref().and_then(|before| before.waiting.as_ref());
        now.into_iter().chain(before).map(|(found, ..)| found.start).min().unwrap_or(usize::MAX)
    }

    /// Records the explanation of the candidate that waited, also in the state before the thinking
    /// section if it waited then.
    pub(crate) fn resolve(&mut self, picked: RankedCandidate) {
        if let Some(before) = &mut self.before
            && before.waiting.take_if(|(found, ..)| found.start == picked.found.start).is_some()
        {
            before.explained = Some(picked.clone());
        }
        self.explained = Some(picked);
    }

    /// Ends the text. A thinking section that is still open ends with it.
    pub(crate) fn end(&mut self) {
        self.think(ThinkMark::Close);
    }

    /// Applies a bound of a thinking section. Candidates inside of one do not count.
    pub(crate) fn think(&mut self, think: ThinkMark) {
        match think {
            ThinkMark::Open => {
                self.before = Some(Box::new(Before {
                    length: self.candidates.len(),
                    best: self.best.clone(),
                    explained: self.explained.clone(),
                    waiting: self.waiting.clone(),
                }));
            }
            ThinkMark::Close => {
                if let Some(before) = self.before.take() {
                    self.inside_thinking += self.candidates.len().saturating_sub(before.length);
                    self.candidates.truncate(before.length);
                    self.best = before.best;
                    self.explained = before.explained;
                    self.waiting = before.waiting;
                }
            }
            ThinkMark::Orphan => {
                self.inside_thinking += self.candidates.len();
                self.candidates.clear();
                self.best = None;
                self.explained = None;
                self.waiting = None;
            }
        }
    }
}
