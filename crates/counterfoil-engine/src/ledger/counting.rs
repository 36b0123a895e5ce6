//! Which claims of a run count, and which are replaced by later ones.

use super::subject::{Subject, subject};
use super::{AttemptRecord, Ledger};
use counterfoil_contract::claim::Verdict;
use std::collections::BTreeMap;

/// What identifies a claim of a step: its name, and whether the engine makes it.
pub(super) type Id<'a> = (&'a str, bool);
/// A visit of a state: its path and the number of the visit.
pub(super) type Place<'a> = (&'a [String], usize);

impl AttemptRecord {
    pub(super) fn place(&self) -> Place<'_> {
        (&self.path, self.visit.id)
    }
}

impl Ledger {
    /// The last claim of each id in each visit, and the claim of a later visit that replaces it, if
    /// one does.
    pub(super) fn counted_claims(&self) -> BTreeMap<usize, Option<usize>> {
        let mut accepted: BTreeMap<Place<'_>, usize> = BTreeMap::new();
        for (index, work) in self.attempts.iter().enumerate().filter(|(_, work)| work.accepted) {
            accepted.insert(work.place(), index);
        }
        let mut last: BTreeMap<(&[String], Id<'_>), BTreeMap<usize, usize>> = BTreeMap::new();
        for (index, recorded) in self.recorded.iter().enumerate() {
            let Some(work) = self.attempts.get(recorded.attempt) else { continue };
            let succeeded_later =
                accepted.get(&work.place()).is_some_and(|good| *good > recorded.attempt);
            // Only the last verified reply of an attempt counts: claims that it does not repeat are
            // withdrawn. An attempt that ends without a result withdraws nothing.
            let withdrawn = recorded.reply < work.verified_reply;
            if withdrawn || (succeeded_later && !work.accepted) {
                continue;
            }
            let by_visit = last.entry((work.path.as_slice(), recorded.claim.id())).or_default();
            by_visit.insert(work.visit.id, index);
        }
        let mut counted = BTreeMap::new();
        for by_visit in last.into_values() {
            let mut later: Option<usize> = None;
            for index in by_visit.into_values().rev() {
                let replaced = later.filter(|later| self.replaces(*later, index));
                counted.insert(index, replaced);
                later = replaced.or(Some(index));
            }
        }
        counted
    }

    /// Whether a claim replaces one of an earlier visit: both are about the same thing, and the later
    /// one says more of it than that it cannot be checked.
    fn replaces(&self, later: usize, earlier: usize) -> bool {
        let (Some(later), Some(earlier)) = (self.recorded.get(later), self.recorded.get(earlier))
        else {
            return false;
        };
        let about_the_same = match (subject(&later.claim), subject(&earlier.claim)) {
            (Subject::Tree, Subject::Tree) => true,
            (Subject::Files(later), Subject::Files(earlier)) => later == earlier,
            _ => false,
        };
        let evades = later.claim.verdict == Verdict::Unverifiable;
        about_the_same && !(evades && earlier.claim.verdict == Verdict::Refuted)
    }

    /// The last reply of each visit whose claims were verified, as attempt and reply. `last` has it of
    /// an attempt; 0 if there is none.
    pub(super) fn final_replies(
        &self,
        last: impl Fn(&AttemptRecord) -> u32,
    ) -> BTreeMap<Place<'_>, (usize, u32)> {
        let attempts = self.attempts.iter().enumerate();
        let replies = attempts.map(|(index, work)| (work.place(), (index, last(work))));
        replies.filter(|(_, (_, reply))| *reply > 0).collect()
    }

    /// The last refuted claim of each id in each visit.
    pub(super) fn last_refuted(&self) -> BTreeMap<(Place<'_>, Id<'_>), usize> {
        let refuted = self
            .recorded
            .iter()
            .enumerate()
            .filter(|(_, recorded)| recorded.claim.verdict == Verdict::Refuted);
        let keyed = refuted.filter_map(|(index, recorded)| {
            let work = self.attempts.get(recorded.attempt)?;
            Some(((work.place(), recorded.claim.id()), index))
        });
        keyed.collect()
    }

    /// The verdict of each claim by its reply (attempt and number) and id. Refuted wins if a reply
    /// makes it twice.
    pub(super) fn verdicts_by_reply(&self) -> BTreeMap<((usize, u32), Id<'_>), Verdict> {
        let mut verdicts = BTreeMap::new();
        for recorded in &self.recorded {
            let key = ((recorded.attempt, recorded.reply), recorded.claim.id());
            let verdict = verdicts.entry(key).or_insert(recorded.claim.verdict);
            if recorded.claim.verdict == Verdict::Refuted {
                *verdict = Verdict::Refuted;
            }
        }
        verdicts
    }
}
