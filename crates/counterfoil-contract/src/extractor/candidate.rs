//! Candidates for the result: how each is parsed and validated.

use crate::contract::Contract;
use crate::edit::{Edit, NO_EDITS};
use crate::extract::doubt::Refusal;
use crate::json::{self, Fault, ParseFault};
use crate::policy::Policy;
use crate::read;
use crate::report::{Stage, Violation};
use crate::source::{Source, Span};
use crate::validate::{Detail, ParsedValue, ValidationOutcome, validate};

/// Where a candidate comes from, and so how it is parsed.
#[derive(Clone, Debug)]
pub(crate) enum CandidateSource {
    /// Strict JSON, possibly with Markdown quote markers inside.
    Strict { quoted: bool },
    /// JSON after the edits are applied.
    Repaired(Vec<Edit>),
    /// It could be repaired, but is not.
    Refused(Box<Refusal>),
    /// It began like JSON and broke at the offset.
    Broken { at: usize },
    /// The content of a fenced block.
    Fence { quotes: u8 },
    /// The content of a fenced block that needs repairs.
    FenceToRepair,
    /// The content of an output block.
    Block,
}

impl CandidateSource {
    /// Whether it is not repaired because the text cuts it off.
    pub(crate) fn is_refused_as_cut_off(&self) -> bool {
        matches!(self, Self::Refused(refusal) if matches!(**refusal, Refusal::Truncated { .. }))
    }

    /// Whether it may have been given up before an offset, although nothing closes it.
    pub(crate) fn may_end_before(&self, offset: usize) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.may_end_before(offset))
    }
}

/// A part of the text that may be the result.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) how: CandidateSource,
    /// It is inside of a value that broke.
    pub(crate) nested: bool,
    /// JSON stands right before it.
    pub(crate) follows_json: bool,
    /// It is known to have no key that names a field of the contract.
    pub(crate) unrelated: bool,
    /// The text ends in it, so that nobody knows what it would have become.
    pub(crate) cut_off: bool,
    /// It begins as the results of the contract do.
    pub(crate) plausible: bool,
    /// Its places, recorded if its text may be dropped before the report. There can be many
    /// candidates, and few are reported.
    places: Option<Box<Places>>,
}

/// The places of a candidate.
#[derive(Clone, Copy, Debug)]
struct Places {
    span: Span,
    /// The empty span right after it.
    behind: Option<Span>,
}

/// Bytes after a break that are read to explain it.
pub(crate) const LOOK_AHEAD: usize = 64;

impl Candidate {
    pub(crate) fn new(start: usize, end: usize, how: CandidateSource) -> Self {
        let cut_off = how.is_refused_as_cut_off();
        Self {
            start,
            end,
            how,
            nested: false,
            follows_json: false,
            unrelated: false,
            cut_off,
            plausible: true,
            places: None,
        }
    }

    /// The same with its places recorded.
    pub(crate) fn at(mut self, span: Span, behind: Option<Span>) -> Self {
        self.places = Some(Box::new(Places { span, behind }));
        self
    }

    /// Its span, if it was recorded.
    pub(crate) fn span(&self) -> Option<Span> {
        self.places.as_ref().map(|places| places.span)
    }

    /// The empty span right after it, if it was recorded.
    pub(crate) fn behind(&self) -> Option<Span> {
        self.places.as_ref()?.behind
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(
            self.how,
            CandidateSource::Broken { .. }
                | CandidateSource::FenceToRepair
                | CandidateSource::Refused(_)
        )
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

    /// Parses the candidate.
    pub(crate) fn read<'t>(
        &self,
        contract: &Contract,
        policy: &Policy,
        source: &Source<'t>,
        detail: Detail,
    ) -> Result<ParsedValue<'t>, Option<Box<Violation>>> {
        match &self.how {
            CandidateSource::Block => {
                Ok(read::block(contract, source, self.start, self.end, policy))
            }
            CandidateSource::Strict { quoted: false } => {
                read::json(source, self.start, self.end, NO_EDITS, policy, detail)
            }
            CandidateSource::Strict { quoted: true } => {
                let depth = read::quote_depth_at(source, self.start);
                read::quoted_json(source, (self.start, self.end), depth, false, policy, detail)
            }
            CandidateSource::Repaired(edits) => {
                read::json(source, self.start, self.end, edits, policy, detail)
            }
            CandidateSource::Fence { quotes } => {
                let content = self.content(source);
                if *quotes == 0 {
                    return read::json(source, content.0, content.1, NO_EDITS, policy, detail);
                }
                read::quoted_json(source, content, *quotes, true, policy, detail)
            }
            CandidateSource::Refused(refusal) => {
                Err(Some(Box::new(read::refusal_violation(source, refusal, self.end, policy))))
            }
            CandidateSource::Broken { at } => Err(Some(Box::new(self.broken(*at, source, policy)))),
            CandidateSource::FenceToRepair => {
                Err(Some(Box::new(self.broken(self.end, source, policy))))
            }
        }
    }

    /// Parses and validates the candidate.
    pub(crate) fn validate(
        &self,
        contract: &Contract,
        policy: &Policy,
        source: &Source<'_>,
        detail: Detail,
    ) -> ValidationOutcome {
        match self.read(contract, policy, source, detail) {
            Ok(reading) => validate(contract, policy, reading, source, detail),
            Err(violation) => ValidationOutcome::unreadable(
                Stage::Parse,
                violation.into_iter().map(|violation| *violation).collect(),
            ),
        }
    }

    /// The content of a fenced block without the blanks around it, as JSON knows them.
    fn content(&self, source: &Source<'_>) -> (usize, usize) {
        const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
        let text = source.slice(self.start, self.end);
        let lead = text.len() - text.trim_start_matches(BLANKS).len();
        let tail = text.len() - text.trim_end_matches(BLANKS).len();
        if lead == text.len() {
            (self.start, self.start)
        } else {
            (self.start + lead, self.end - tail)
        }
    }

    /// Why it broke: the error of the strict parser on the text up to there and a little further.
    fn broken(&self, at: usize, source: &Source<'_>, policy: &Policy) -> Violation {
        let end = source.end().min(at.saturating_add(LOOK_AHEAD));
        let text = source.slice(self.start, end);
        let fault = match json::parse(text, policy.limits()) {
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
