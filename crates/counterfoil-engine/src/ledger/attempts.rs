//! The attempts of a run as statistics count them: by whom, with how many violations, at what cost.

use super::stats::{Key, MAX_CODES};
use super::{Entry, Ledger, program_name};
use counterfoil_flow::{AssignedAgent, AttemptOutcome, Event, Reply, Usage};
use std::collections::BTreeMap;

/// An attempt of an agent with what statistics count of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedAttempt {
    /// The path of the state: its name, or state, item key and inner state.
    pub path: Vec<String>,
    /// The number of the attempt at this path, from 1.
    pub n: u32,
    /// When it started, in milliseconds since 1970.
    pub started_at: i64,
    /// All its properties but the field, which is one of its claims.
    pub key: Key,
    /// The outcome; none if it is at work or was lost.
    pub outcome: Option<AttemptOutcome>,
    /// Whether its process ended before it did.
    pub is_lost: bool,
    /// Complete replies.
    pub replies: u64,
    /// Replies without a result, or with one that does not satisfy its contract.
    pub violations: u64,
    /// Requested repairs.
    pub repairs: u64,
    /// The number of violations by code.
    pub codes: BTreeMap<String, u64>,
    /// What it cost in US dollars, as far as its program tells it.
    pub cost_usd: f64,
    /// Its tokens.
    pub tokens: u64,
}

/// The attempts and claims of agents in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedRun {
    /// The attempts, in the order in which they started.
    pub attempts: Vec<CountedAttempt>,
    /// The claims, in the order in which they were verified, with those that are not reported.
    pub claims: Vec<Entry>,
}

impl CountedRun {
    /// The claims of an attempt.
    pub fn claims_of<'r>(
        &'r self,
        attempt: &'r CountedAttempt,
    ) -> impl Iterator<Item = &'r Entry> + 'r {
        self.claims.iter().filter(|entry| entry.n == attempt.n && entry.path == attempt.path)
    }
}

/// Collects the attempts and claims of one run from its events.
#[derive(Debug, Default)]
pub struct RunCounter {
    assigned: BTreeMap<String, AssignedAgent>,
    ledger: Ledger,
    attempts: Vec<CountedAttempt>,
    /// The attempts in flight, by their number in `attempts`.
    open: BTreeMap<String, usize>,
}

impl RunCounter {
    /// Adds the next event. Those of [`Ledger::KINDS`] are needed.
    pub fn on_event(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunStarted(started) => self.assigned.clone_from(&started.agents),
            Event::RunResumed(resumed) => self.assigned.extend(resumed.agents.clone()),
            Event::RunReopened(reopened) => self.assigned.extend(reopened.agents.clone()),
            Event::AttemptStarted { attempt, agent: Some(agent), contract, path, n, .. } => {
                let program = self.assigned.get(agent);
                let key = key(agent, contract.as_deref(), program);
                self.open.insert(attempt.clone(), self.attempts.len());
                self.attempts.push(CountedAttempt {
                    path: path.clone(),
                    n: *n,
                    started_at: at,
                    key,
                    ..CountedAttempt::default()
                });
            }
            Event::RepairAsked { attempt, reply, usage, .. } => {
                let open = self.open.get(attempt).copied();
                if let Some(counted) = open.and_then(|at| self.attempts.get_mut(at)) {
                    counted.repairs += 1;
                    counted.reply(reply);
                    counted.spend(usage);
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some(counted) = self.take(&ended.attempt) {
                    counted.outcome = Some(ended.outcome);
                    counted.spend(&ended.usage);
                    if let Some(reply) = &ended.reply {
                        counted.reply(reply);
                    }
                }
            }
            Event::AttemptLost { attempt, usage, .. } => {
                if let Some(counted) = self.take(attempt) {
                    counted.is_lost = true;
                    counted.spend(usage);
                }
            }
            _ => {}
        }
        self.ledger.on_event(event, at);
    }

    /// The attempts and claims so far. Claims of commands belong to no agent.
    pub fn finish(self) -> CountedRun {
        CountedRun { claims: self.claims(), attempts: self.attempts }
    }

    /// The same, if further events follow.
    pub fn counted(&self) -> CountedRun {
        CountedRun { claims: self.claims(), attempts: self.attempts.clone() }
    }

    fn claims(&self) -> Vec<Entry> {
        let mut claims = self.ledger.all_entries();
        claims.retain(|entry| entry.agent.is_some());
        claims
    }

    /// An attempt that is not in flight any more.
    fn take(&mut self, attempt: &str) -> Option<&mut CountedAttempt> {
        let at = self.open.remove(attempt)?;
        self.attempts.get_mut(at)
    }
}

impl CountedAttempt {
    fn reply(&mut self, reply: &Reply) {
        let violates = match reply.status.as_str() {
            // A refuted reply satisfies its contract; only its claims do not hold.
            "accepted" | "refuted" => false,
            "rejected" | "absent" => true,
            _ => return,
        };
        self.replies += 1;
        if !violates {
            return;
        }
        self.violations += 1;
        for code in &reply.codes {
            if self.codes.len() < MAX_CODES || self.codes.contains_key(code) {
                *self.codes.entry(code.clone()).or_default() += 1;
            }
        }
    }

    fn spend(&mut self, usage: &Usage) {
        // An amount that no number can hold is read as the largest one.
        if usage.cost_usd.is_finite() && usage.cost_usd < f64::MAX {
            self.cost_usd += usage.cost_usd;
        }
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
    }
}

/// All properties of an attempt. Those that are not known are empty.
fn key(agent: &str, contract: Option<&str>, program: Option<&AssignedAgent>) -> Key {
    let known = |part: Option<&String>| Some(part.cloned().unwrap_or_default());
    Key {
        contract: Some(contract.unwrap_or_default().to_owned()),
        field: None,
        agent: Some(agent.to_owned()),
        player: Some(program.map(|program| program_name(&program.spec)).unwrap_or_default()),
        model: known(program.and_then(|program| program.model.as_ref())),
        version: known(program.and_then(|program| program.version.as_ref())),
    }
}

/// All properties of a claim.
pub(super) fn key_of(entry: &Entry) -> Key {
    let known = |part: &Option<String>| Some(part.clone().unwrap_or_default());
    Key {
        contract: known(&entry.contract),
        field: Some(entry.field().to_owned()),
        agent: known(&entry.agent),
        player: known(&entry.player),
        model: known(&entry.model),
        version: known(&entry.version),
    }
}
