//! Which attempt decides: the last one, by its place in the text.

use super::candidate::Candidate;
use super::outside::{OutsideAttempt, is_block_attempt};
use super::track::{Examined, Track};
use super::{Extractor, MAIN, SECOND, cut_key};
use crate::policy::Framing;
use crate::source::{Source, Span};

/// The last attempt of a text.
pub(super) enum LastAttempt {
    /// The last attempt of a track.
    Eligible(usize),
    /// An attempt in another form than the framing's.
    Outside(OutsideAttempt),
    /// An attempt in a thinking section that never ends.
    Thinking(Candidate),
    /// An output block that does not end.
    Unclosed(Span),
    /// JSON that the end of the text cuts off in its first key.
    CutKey(Span),
}

impl Extractor<'_> {
    /// The last attempt, eligible or not.
    pub(super) fn last_attempt(&self, source: &Source<'_>) -> Option<LastAttempt> {
        let eligible = self.deciding_track().and_then(|track| {
            let last = self.tracks[track].state.last.as_ref()?;
            Some((last.found.start, LastAttempt::Eligible(track)))
        });
        // What is cut off may reach over an attempt that has nothing to do with it.
        let lasts = || self.tracks.iter().filter_map(|track| track.state.last.as_ref());
        let is_part = |start| {
            lasts().any(|last| {
                (last.found.start..last.found.end).contains(&start)
                    && !last.found.how.may_end_before(start)
            })
        };
        let outside = self.outside.last(is_part).map(|one| (one.start, LastAttempt::Outside(one)));
        let thinking = self
            .tracks
            .iter()
            .filter_map(|track| track.unclosed_thinking.clone())
            .max_by_key(|found| found.start)
            .map(|found| (found.start, LastAttempt::Thinking(found)));
        let unclosed = self
            .unclosed
            .filter(|span| {
                let (keys, content) =
                    (&self.contract.attempt_keys, source.slice(span.start, span.end));
                is_block_attempt(keys, content) || cut_key::is_block_cut(content, keys)
            })
            .map(|span| (span.start, LastAttempt::Unclosed(span)));
        // What is cut off inside of an attempt or a quotation is a part of it.
        let cut_key = cut_key::json_start(source, &self.contract.attempt_keys, self.opener)
            .filter(|start| {
                let inside = |from: usize, to: usize| (from..to).contains(start);
                *start >= self.outside.quoted_up_to
                    && !lasts().any(|last| inside(last.found.start, last.found.end))
                    && !self.outside.attempts.iter().any(|one| inside(one.start, one.end))
                    && !self.unclosed.is_some_and(|span| inside(span.start, span.end))
            })
            .map(|start| (start, LastAttempt::CutKey(source.span(start, source.end()))));
        let all = [eligible, outside, thinking, unclosed, cut_key];
        all.into_iter().flatten().max_by_key(|(start, _)| *start).map(|(_, last)| last)
    }

    /// The track whose last attempt is later in the text. Of two readings of one place, the one
    /// that reads more of it decides; of the same, the strict one if it is valid.
    pub(super) fn deciding_track(&self) -> Option<usize> {
        let last = |track: usize| self.tracks[track].state.last.as_ref();
        let (main, second) = match (last(MAIN), last(SECOND)) {
            (Some(main), Some(second)) => (main, second),
            (Some(_), None) => return Some(MAIN),
            (None, Some(_)) => return Some(SECOND),
            (None, None) => return None,
        };
        let is_second = if !overlap(&main.found, &second.found) {
            second.found.start > main.found.start
        } else if self.framing == Framing::OutputBlock {
            false
        } else if main.found.start == second.found.start {
            !main.is_valid()
        } else {
            // What is cut off may reach over a result that has nothing to do with it. Where a quote
            // is left out instead, JSON stands before what seems to be the result.
            let (how, is_part) = (&second.found.how, main.found.nested || main.found.follows_json);
            let is_apart =
                how.may_end_before(main.found.start) && (how.is_refused_as_cut_off() || !is_part);
            second.found.start < main.found.start && !is_apart
        };
        Some(if is_second { SECOND } else { MAIN })
    }

    /// A valid attempt elsewhere whose value differs from the one that decides.
    pub(super) fn differing(&self, chosen: &Examined) -> Option<Candidate> {
        let value = &chosen.outcome.as_ref()?.value;
        let elsewhere = |found: &&Candidate| !overlap(found, &chosen.found);
        let of_track = |track: &Track| {
            let last = track.state.last.iter().filter_map(|last| {
                let outcome = last.outcome.as_ref().filter(|outcome| outcome.is_accepted())?;
                Some((&outcome.value, &last.found))
            });
            let earlier = track.state.earlier.iter();
            let earlier = earlier.filter_map(|one| Some((one.value()?, &one.found)));
            last.chain(earlier)
                .filter(|(other, _)| *other != value)
                .map(|(_, found)| found)
                .chain(track.state.differing.iter().map(|one| &one.found))
                .find(elsewhere)
                .cloned()
        };
        self.tracks.iter().filter_map(of_track).max_by_key(|found| found.start)
    }
}

/// Whether two candidates are about the same place.
pub(super) fn overlap(one: &Candidate, other: &Candidate) -> bool {
    one.start < other.end && other.start < one.end
}
