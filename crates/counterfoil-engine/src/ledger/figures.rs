//! Sums of figures by group, which can be added up: those of single runs to those of a week, those of
//! weeks to those of all runs.

use super::attempts::{CountedRun, key_of};
use super::stats::{ClaimFigures, Dimension, Group, Key, ReplyFigures, Tally};
use std::collections::BTreeMap;

/// The maximum number of groups, to bound memory. All further groups are combined.
const MAX_GROUPS: usize = 10_000;
/// The name of the combined group.
const OTHERS: &str = "(others)";
/// All properties.
const ALL: [Dimension; 6] = [
    Dimension::Contract,
    Dimension::Field,
    Dimension::Agent,
    Dimension::Player,
    Dimension::Model,
    Dimension::Version,
];

/// Figures about attempts and claims by group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The number of runs.
    pub runs: u64,
    replies: BTreeMap<Key, ReplyFigures>,
    claims: BTreeMap<Key, ClaimFigures>,
}

impl Figures {
    /// The figures of a run by all properties, so that they can be grouped by any of them later.
    pub fn of_run(run: &CountedRun) -> Self {
        let mut figures = Self { runs: 1, ..Self::default() };
        figures.add_run(run, &ALL);
        figures
    }

    /// Adds the attempts and claims of a run, grouped by these properties. The run itself is not
    /// counted.
    pub(super) fn add_run(&mut self, run: &CountedRun, by: &[Dimension]) {
        for attempt in &run.attempts {
            figures_of(&mut self.replies, &attempt.key.grouped(by)).add_attempt(attempt);
        }
        for entry in &run.claims {
            figures_of(&mut self.claims, &key_of(entry).grouped(by))
                .add_claim(entry.claim.verdict, entry.corrected);
        }
    }

    /// Adds the figures of other runs.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for (key, replies) in &other.replies {
            figures_of(&mut self.replies, key).add(replies);
        }
        for (key, claims) in &other.claims {
            figures_of(&mut self.claims, key).add(claims);
        }
    }

    /// The same figures in larger groups.
    #[must_use]
    pub fn grouped(&self, by: &[Dimension]) -> Self {
        let mut figures = Self { runs: self.runs, ..Self::default() };
        for (key, replies) in &self.replies {
            figures_of(&mut figures.replies, &key.grouped(by)).add(replies);
        }
        for (key, claims) in &self.claims {
            figures_of(&mut figures.claims, &key.grouped(by)).add(claims);
        }
        figures
    }

    /// The figures of the group with exactly this key.
    pub fn group(&self, key: &Key) -> Group {
        Group {
            replies: self.replies.get(&key.without_field()).cloned().unwrap_or_default(),
            claims: self.claims.get(key).copied().unwrap_or_default(),
            key: key.clone(),
        }
    }

    /// The figures of all groups that have the properties of a key. Attempts are taken whatever
    /// fields they claim.
    pub fn of(&self, wanted: &Key) -> Group {
        let mut sum = Group {
            key: wanted.clone(),
            replies: ReplyFigures::default(),
            claims: ClaimFigures::default(),
        };
        let whose = wanted.without_field();
        for (_, replies) in self.replies.iter().filter(|(key, _)| key.has(&whose)) {
            sum.replies.add(replies);
        }
        for (_, claims) in self.claims.iter().filter(|(key, _)| key.has(wanted)) {
            sum.claims.add(claims);
        }
        sum
    }

    /// The groups of figures that are grouped by these properties.
    pub fn tally(&self, by: &[Dimension]) -> Tally {
        let mut groups: Vec<Group> = Vec::with_capacity(self.claims.len());
        let mut without_claims: BTreeMap<&Key, &ReplyFigures> = self.replies.iter().collect();
        for (key, claims) in &self.claims {
            let whose = key.without_field();
            without_claims.remove(&whose);
            let replies = self.replies.get(&whose).cloned().unwrap_or_default();
            groups.push(Group { key: key.clone(), replies, claims: *claims });
        }
        // Groups without claims still have replies.
        let by_field = by.contains(&Dimension::Field);
        groups.extend(without_claims.into_iter().map(|(key, replies)| Group {
            key: Key { field: by_field.then(String::new), ..key.clone() },
            replies: replies.clone(),
            claims: ClaimFigures::default(),
        }));
        groups.sort_by(|a, b| {
            // Groups without a rate come last.
            let rate = |group: &Group| group.claims.refutation_rate().unwrap_or(-1.0);
            rate(b)
                .total_cmp(&rate(a))
                .then(b.claims.claims.cmp(&a.claims.claims))
                .then(b.replies.attempts.cmp(&a.replies.attempts))
                .then_with(|| a.key.cmp(&b.key))
        });
        Tally { runs: self.runs, groups }
    }
}

/// The figures of a key, or of the combined group if there are too many groups.
fn figures_of<'a, F: Default>(figures: &'a mut BTreeMap<Key, F>, key: &Key) -> &'a mut F {
    if figures.len() < MAX_GROUPS || figures.contains_key(key) {
        return figures.entry(key.clone()).or_default();
    }
    let other = |part: &Option<String>| part.as_ref().map(|_| OTHERS.to_owned());
    let others = Key {
        contract: other(&key.contract),
        field: other(&key.field),
        agent: other(&key.agent),
        player: other(&key.player),
        model: other(&key.model),
        version: other(&key.version),
    };
    figures.entry(others).or_default()
}
