//! Candidates of one standing, and what became of them.

use super::scan::Think;
use crate::contract::Contract;
use crate::edit::Edit;
use crate::json::{self, Fault, ParseFault};
use crate::policy::Policy;
use crate::read;
use crate::report::{Repair, Stage};
use crate::session::NO_EDITS;
use crate::source::{Source, Span};
use crate::validate::{Detail, Judgement, judge};

/// How a candidate is read.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// Strict JSON; Markdown quote markers may stand inside.
    Strict { quoted: bool },
    /// JSON once the edits are made.
    Mended(Vec<Edit>),
    /// It began like JSON and broke.
    Broken { at: usize },
    /// The content of a fenced block.
    Fence { quotes: u8 },
    /// The content of a fenced block, still to be mended.
    FenceMended,
    /// The content of an output block.
    Block,
}

/// A candidate.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) how: How,
    /// It stands inside something that broke.
    pub(crate) nested: bool,
    /// Its place, if its text may be gone when somebody asks.
    pub(crate) span: Option<Span>,
    /// The place right behind it, likewise.
    pub(crate) behind: Option<Span>,
    /// How much it looks like what was wanted, likewise.
    pub(crate) rank: Option<u8>,
}

/// What stands behind a break tells what it is.
pub(crate) const LOOK_AHEAD: usize = 64;

/// A candidate that was judged.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    pub(crate) index: usize,
    pub(crate) found: Found,
    pub(crate) rank: u8,
    pub(crate) judgement: Judgement,
    pub(crate) repairs: Vec<Repair>,
}

impl Found {
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.how, How::Broken { .. } | How::FenceMended)
    }

    pub(crate) fn edits(&self) -> &[Edit] {
        match &self.how {
            How::Mended(edits) => edits,
            _ => NO_EDITS,
        }
    }

    /// The same, for the record only.
    pub(crate) fn without_edits(mut self) -> Self {
        if let How::Mended(edits) = &mut self.how {
            *edits = Vec::new();
        }
        self
    }

    /// Reads it and holds it to the contract.
    pub(crate) fn judge(
        &self,
        contract: &Contract,
        policy: &Policy,
        source: &Source<'_>,
        detail: Detail,
    ) -> Judgement {
        let reading = match &self.how {
            How::Block => Ok(read::block(contract, source, self.start, self.end, policy)),
            How::Strict { quoted: false } => {
                read::json(source, self.start, self.end, NO_EDITS, policy, detail)
            }
            How::Strict { quoted: true } => {
                let depth = read::depth_at(source, self.start);
                let edits = read::quote_edits(source, self.start, self.end, depth);
                read::json(source, self.start, self.end, &edits, policy, detail)
            }
            How::Mended(edits) => read::json(source, self.start, self.end, edits, policy, detail),
            How::Fence { quotes } => {
                let (start, end) = self.content(source);
                let mut edits = read::quote_edits(source, self.start, self.end, *quotes);
                if *quotes > 0 {
                    // The first line of the content has its marker too.
                    edits.splice(
                        0..0,
                        read::quote_edits_of_line(source, self.start, self.end, *quotes),
                    );
                }
                edits.retain(|edit| edit.start >= start && edit.end <= end);
                read::json(source, start, end, &edits, policy, detail)
            }
            How::Broken { at } => Err(Some(Box::new(self.broken(*at, source, policy)))),
            How::FenceMended => Err(Some(Box::new(self.broken(self.end, source, policy)))),
        };
        match reading {
            Ok(reading) => judge(contract, policy, reading, source, detail),
            Err(violation) => Judgement::unreadable(
                Stage::Parse,
                violation.into_iter().map(|violation| *violation).collect(),
            ),
        }
    }

    /// A fenced block without the blanks around its content.
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

    /// Why it broke: what the strict parser says of the text up to there and a little further.
    fn broken(&self, at: usize, source: &Source<'_>, policy: &Policy) -> crate::report::Violation {
        let end = source.end().min(at.saturating_add(LOOK_AHEAD));
        let text = source.slice(self.start, end);
        let fault = match json::parse(text, policy.max_depth, false) {
            Err(fault) => ParseFault { at: self.start + fault.at, ..fault },
            Ok(_) => ParseFault { fault: Fault::Truncated, at },
        };
        // Cut off by our window, not by the text.
        let cut_by_us = fault.fault == Fault::Truncated && end < source.end();
        let fault = if cut_by_us {
            ParseFault { fault: Fault::Syntax("it does not go on as JSON".into()), at }
        } else {
            fault
        };
        read::unreadable(source, &fault, end, policy)
    }
}

/// Candidates of one standing.
#[derive(Debug, Default)]
pub(crate) struct Tier {
    pub(crate) candidates: Vec<Found>,
    pub(crate) best: Option<Picked>,
    pub(crate) explained: Option<Picked>,
    /// One to be explained when the text behind it is there, with its index and rank.
    pub(crate) waiting: Option<(Found, usize, u8)>,
    /// How many candidates stood in thinking sections.
    pub(crate) thoughts: usize,
    /// How things stood when the thinking began.
    before: Option<Box<Before>>,
}

/// How a tier stood.
#[derive(Clone, Debug)]
struct Before {
    length: usize,
    best: Option<Picked>,
    explained: Option<Picked>,
    waiting: Option<(Found, usize, u8)>,
}

impl Tier {
    /// Whether a candidate of this rank, coming last, is the one to explain.
    pub(crate) fn outranks(&self, rank: u8) -> bool {
        let explained = self.explained.as_ref().map(|picked| picked.rank);
        let waiting = self.waiting.as_ref().map(|(.., rank)| *rank);
        explained.max(waiting).is_none_or(|other| other <= rank)
    }

    /// The first offset that must stay in the window for what waits, now or before the thinking.
    pub(crate) fn keep_from(&self) -> usize {
        let now = self.waiting.as_ref();
        let before = self.before.as_ref().and_then(|before| before.waiting.as_ref());
        now.into_iter().chain(before).map(|(found, ..)| found.start).min().unwrap_or(usize::MAX)
    }

    /// What was waiting is explained; also for how things stood before the thinking, if it was
    /// waiting then.
    pub(crate) fn resolve(&mut self, picked: Picked) {
        if let Some(before) = &mut self.before
            && before.waiting.take_if(|(found, ..)| found.start == picked.found.start).is_some()
        {
            before.explained = Some(picked.clone());
        }
        self.explained = Some(picked);
    }

    /// Thinking that never ended is thinking to the end.
    pub(crate) fn end(&mut self) {
        self.think(Think::Close);
    }

    /// What is thought is not said.
    pub(crate) fn think(&mut self, think: Think) {
        match think {
            Think::Open => {
                self.before = Some(Box::new(Before {
                    length: self.candidates.len(),
                    best: self.best.clone(),
                    explained: self.explained.clone(),
                    waiting: self.waiting.clone(),
                }));
            }
            Think::Close => {
                if let Some(before) = self.before.take() {
                    self.thoughts += self.candidates.len().saturating_sub(before.length);
                    self.candidates.truncate(before.length);
                    self.best = before.best;
                    self.explained = before.explained;
                    self.waiting = before.waiting;
                }
            }
            Think::Orphan => {
                self.thoughts += self.candidates.len();
                self.candidates.clear();
                self.best = None;
                self.explained = None;
                self.waiting = None;
            }
        }
    }
}
