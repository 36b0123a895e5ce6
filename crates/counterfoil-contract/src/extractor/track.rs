//! The candidates that one scanner finds, and the last attempt among them.

use super::candidate::{Candidate, CandidateSource, LOOK_AHEAD};
use crate::attempt::Likeness;
use crate::capped::Capped;
use crate::extract::strict_scan::ThinkMark;
use crate::report::Repair;
use crate::validate::ValidationOutcome;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// A candidate that was compared with the contract.
#[derive(Clone, Debug)]
pub(crate) struct Examined {
    pub(crate) found: Candidate,
    pub(crate) likeness: Likeness,
    /// It looked like strict JSON but cannot be parsed as such.
    pub(crate) is_unparsable: bool,
    /// None until it is explained, which needs the text after it.
    pub(crate) outcome: Option<ValidationOutcome>,
    pub(crate) repairs: Capped<Repair>,
}

impl Examined {
    pub(crate) fn is_valid(&self) -> bool {
        self.outcome.as_ref().is_some_and(ValidationOutcome::is_accepted)
    }

    /// Its value, if it is known.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.outcome.as_ref().map(|outcome| &outcome.value)
    }

    /// Whether the text that explains it has arrived; `end` is the end of the text so far.
    pub(crate) fn can_be_explained(&self, end: usize, eof: bool) -> bool {
        match self.found.how {
            CandidateSource::FenceToRepair => false,
            CandidateSource::Broken { .. } => {
                eof || self.found.end.saturating_add(LOOK_AHEAD) <= end
            }
            _ => true,
        }
    }
}

/// How well a candidate would explain why no result was found.
fn rank(found: &Candidate, likeness: Likeness) -> u8 {
    if matches!(
        found.how,
        CandidateSource::Fence { .. } | CandidateSource::FenceToRepair | CandidateSource::Block
    ) {
        return 7;
    }
    u8::from(likeness != Likeness::Unrelated) * 4
        + u8::from(found.plausible) * 2
        + u8::from(!found.nested)
}

/// The most candidates of a scanner that are remembered; of the others only their number.
const MAX_REMEMBERED: usize = 1 << 16;

/// The candidates of one scanner, in the order of the text: the last ones, and how many came before.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    forgotten: usize,
    last: VecDeque<Candidate>,
}

impl Candidates {
    pub(crate) fn push(&mut self, found: Candidate) {
        if self.last.len() >= MAX_REMEMBERED {
            self.last.pop_front();
            self.forgotten += 1;
        }
        self.last.push_back(found);
    }

    /// Those that are remembered.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Candidate> {
        self.last.iter()
    }

    /// The number of those that are not.
    pub(crate) fn forgotten(&self) -> usize {
        self.forgotten
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.forgotten + self.last.len()
    }

    /// The candidate at an index, counted from the first; the next one that is remembered otherwise.
    fn get(&self, index: usize) -> Option<&Candidate> {
        self.last.get(index.saturating_sub(self.forgotten))
    }

    /// The first one that is remembered and for which `is_before` does not hold.
    pub(crate) fn first_not(
        &self,
        is_before: impl FnMut(&Candidate) -> bool,
    ) -> Option<&Candidate> {
        self.last.get(self.last.partition_point(is_before))
    }

    fn truncate(&mut self, length: usize) {
        self.last.truncate(length.saturating_sub(self.forgotten));
        self.forgotten = self.forgotten.min(length);
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// What is known of the candidates so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackState {
    /// The last attempt.
    pub(crate) last: Option<Arc<Examined>>,
    /// The last valid attempt before the last attempt, with its value.
    pub(crate) earlier: Option<Arc<Examined>>,
    /// The last valid attempt whose value differs from that of the next valid one.
    pub(crate) differing: Option<Arc<Examined>>,
    /// The candidate that explains best why there is no result, if nothing is an attempt.
    pub(crate) fallback: Option<Arc<Examined>>,
}

/// The candidates of one scanner, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Track {
    pub(crate) candidates: Candidates,
    pub(crate) state: TrackState,
    /// The number of candidates inside of thinking sections.
    pub(crate) inside_thinking: usize,
    /// The last attempt in a thinking section that never ends.
    pub(crate) unclosed_thinking: Option<Candidate>,
    /// The number of candidates and the state when the open thinking section began.
    before: Option<Box<(usize, TrackState)>>,
}

impl Track {
    /// Adds an attempt, which is now the last one.
    pub(crate) fn add_attempt(&mut self, examined: Examined) {
        let state = &mut self.state;
        let before = state.last.replace(Arc::new(examined)).filter(|last| last.is_valid());
        if let Some(before) = before {
            if let Some(earlier) = state.earlier.take()
                && earlier.value() != before.value()
            {
                state.differing = Some(earlier);
            }
            state.earlier = Some(before);
        }
    }

    /// Adds a candidate that is no attempt. There are many in a text, so this is cheap.
    pub(crate) fn add_unrelated(&mut self, found: Candidate, likeness: Likeness) {
        if self.wants_fallback(&found, likeness) {
            let (found, outcome, repairs) = (found.clone(), None, Capped::default());
            let fallback = Examined { found, likeness, is_unparsable: false, outcome, repairs };
            self.state.fallback = Some(Arc::new(fallback));
        }
        self.candidates.push(found);
    }

    /// Whether a candidate that is not an attempt would be the one to explain.
    pub(crate) fn wants_fallback(&self, found: &Candidate, likeness: Likeness) -> bool {
        self.state.last.is_none()
            && self.fallback_rank().is_none_or(|(fallback, _)| fallback <= rank(found, likeness))
    }

    /// The rank and the place of the fallback.
    pub(crate) fn fallback_rank(&self) -> Option<(u8, usize)> {
        let fallback = self.state.fallback.as_ref()?;
        Some((rank(&fallback.found, fallback.likeness), fallback.found.start))
    }

    /// The candidates without an explanation, also those from before the thinking section.
    pub(crate) fn unexplained(&mut self) -> impl Iterator<Item = &mut Examined> {
        let before = self.before.as_mut().map(|before| &mut before.1);
        std::iter::once(&mut self.state)
            .chain(before)
            .flat_map(|state| state.last.iter_mut().chain(state.fallback.iter_mut()))
            .filter(|examined| examined.outcome.is_none())
            .map(Arc::make_mut)
    }

    /// The first offset that the window must keep for candidates without an explanation.
    pub(crate) fn keep_from(&mut self) -> usize {
        self.unexplained().map(|examined| examined.found.start).min().unwrap_or(usize::MAX)
    }

    /// Ends the text. Attempts in a thinking section that is still open are not results.
    pub(crate) fn end(&mut self) {
        if let Some(before) = &self.before {
            let section = self.candidates.get(before.0).map_or(usize::MAX, |first| first.start);
            let last = self.state.last.as_ref().filter(|last| last.found.start >= section);
            self.unclosed_thinking = last.map(|last| last.found.clone().without_edits());
            self.think(ThinkMark::Close);
        }
    }

    /// Applies a bound of a thinking section. Candidates inside of one do not count.
    pub(crate) fn think(&mut self, think: ThinkMark) {
        match think {
            ThinkMark::Open => {
                self.before = Some(Box::new((self.candidates.len(), self.state.clone())));
            }
            ThinkMark::Close => {
                if let Some(before) = self.before.take() {
                    let (length, state) = *before;
                    self.inside_thinking += self.candidates.len().saturating_sub(length);
                    self.candidates.truncate(length);
                    self.state = state;
                }
            }
            ThinkMark::Orphan => {
                self.inside_thinking += self.candidates.len();
                self.candidates.clear();
                self.state = TrackState::default();
            }
        }
    }
}
