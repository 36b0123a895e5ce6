//! Simulates runs of random workflows. Faults are injected at random points, and all invariants are
//! checked after every append. There is no clock, process or file: a seed determines everything.
//!
//! `SIM_SEEDS=50000` runs more seeds, `SIM_SEED=42` repeats one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod audit;
mod builtin;
mod checks;
mod contracts;
mod core;
mod driver;
mod fan_out;
mod found;
mod journal;
mod limits;
mod run;
mod shapes;
mod workspaces;
mod world;

use self::core::{DriverCore, SnapshotCore};
use crate::dice::Dice;
use crate::memory_driver::core::MemoryRun;
use counterfoil_contract::Registry;
use counterfoil_flow::{Event, Resumed};
use journal::Journal;
use run::{Fault, Run, Tally};
use shapes::Made;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many seeds the test runs.
const SEEDS: u64 = 250;
/// How many seeds the test of the in-memory driver runs.
const MEMORY_SEEDS: u64 = 100;

/// The figures of all runs.
#[derive(Default)]
struct Sum {
    seeds: u64,
    runs: u64,
    refused: u64,
    events: u64,
    points: u64,
    completions: u64,
    fenced: u64,
    outcomes: BTreeMap<&'static str, u64>,
    faults: BTreeMap<String, u64>,
    kinds: BTreeMap<&'static str, u64>,
}

impl Sum {
    fn add(&mut self, tally: Tally) {
        self.runs += 1;
        self.events += tally.events;
        self.points += tally.points;
        self.completions += tally.completions;
        self.fenced += tally.fenced;
        *self.outcomes.entry(tally.outcome).or_default() += 1;
        for (name, times) in tally.faults {
            *self.faults.entry(name).or_default() += times;
        }
        for (name, times) in tally.kinds {
            *self.kinds.entry(name).or_default() += times;
        }
    }
}

#[test]
fn runs_survive_whatever_strikes_them() {
    simulate::<SnapshotCore>(SEEDS);
}

/// The in-memory driver, which replays all events and uses only public items, passes the same
/// suite.
#[test]
fn runs_of_the_in_memory_driver_survive_whatever_strikes_them() {
    simulate::<MemoryRun>(MEMORY_SEEDS);
}

/// Runs the workflows of all seeds with a driver.
fn simulate<C: DriverCore>(default_seeds: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let registry = contracts::registry();
    let examples = shapes::examples(&registry);
    let mut sum = Sum::default();
    let (one, seeds) = (number("SIM_SEED"), number("SIM_SEEDS").unwrap_or(default_seeds));
    let range = one.map_or(0..seeds, |seed| seed..seed + 1);
    for seed in range {
        sum.seeds += 1;
        let tried =
            catch_unwind(AssertUnwindSafe(|| try_seed::<C>(seed, &registry, &examples, &mut sum)));
        let why = match tried {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "it panicked (see above)".to_owned(),
        };
        panic!("SIM_SEED={seed} fails: {why}");
    }
    println!(
        "{} seeds, {} runs ({} workflows refused), {} events, {} attempts completed, {} points, {} fenced",
        sum.seeds, sum.runs, sum.refused, sum.events, sum.completions, sum.points, sum.fenced
    );
    println!("outcomes: {:?}\nblows: {:?}\nevents: {:?}", sum.outcomes, sum.faults, sum.kinds);
    if one.is_none() && seeds >= SEEDS {
        nothing_is_missing(&sum);
    }
}

/// Checks that every outcome, fault and kind of event occurred.
fn nothing_is_missing(sum: &Sum) {
    for outcome in ["done", "blocked", "failed", "cancelled", "exhausted", "budget", "waiting"] {
        assert!(sum.outcomes.contains_key(outcome), "no run was {outcome}");
    }
    for stage in ["waiting", "told", "turned", "appended", "started-some"] {
        for fault in ["crash", "takeover"] {
            let name = format!("{fault} {stage}");
            assert!(sum.faults.contains_key(&name), "no {name} fell");
        }
    }
    for fault in ["stop", "cancel", "artifact", "crash hung"] {
        assert!(sum.faults.contains_key(fault), "no {fault} fell");
    }
    assert_eq!(sum.kinds.len(), 29, "some kinds of events never happened: {:?}", sum.kinds.keys());
    for outcome in ["blocked", "failed", "exhausted", "budget"] {
        let name = format!("reopened {outcome}");
        assert!(sum.faults.contains_key(&name), "no run was {name}");
    }
    assert!(sum.fenced > 0, "nobody was fenced");
    assert!(sum.refused * 50 <= sum.seeds, "the checker refused {} workflows", sum.refused);
}

/// Runs a workflow without faults, then again with faults at random points of that run.
fn try_seed<C: DriverCore>(
    seed: u64,
    registry: &Registry,
    examples: &[Made],
    sum: &mut Sum,
) -> Result<(), String> {
    let mut dice = Dice::new(!seed);
    let random;
    let made = if dice.percent(5) {
        dice.pick(examples)
    } else {
        random = match shapes::random(&mut dice, registry) {
            Ok(made) => made,
            Err(why) => {
                sum.refused += 1;
                return if sum.refused > 20 + sum.seeds / 50 { Err(why) } else { Ok(()) };
            }
        };
        &random
    };
    let failed = |what: Box<(String, Journal)>| {
        let (why, journal) = *what;
        format!("{why}\n{}\n{}", last_events(&journal), made.text)
    };
    let undisturbed = Run::<C>::new(made, seed, Vec::new()).go().map_err(failed)?;
    let points = undisturbed.points;
    sum.add(undisturbed);
    let mut faults = Vec::new();
    for _ in 0..dice.weigh(&[(6, 1), (3, 2), (1, 4)]) {
        let fault = dice.weigh(&[
            (10, Fault::Crash),
            (6, Fault::Takeover),
            (2, Fault::Stop),
            (1, Fault::Cancel),
            (1, Fault::Artifact),
        ]);
        faults.push((dice.between(1, points), fault));
    }
    sum.add(Run::<C>::new(made, seed, faults).go().map_err(failed)?);
    Ok(())
}

/// The last events of a journal, to debug a failure.
fn last_events(journal: &Journal) -> String {
    let last = journal.rows.len().saturating_sub(40);
    let lines = journal.rows[last..].iter().map(|row| {
        let text = String::from_utf8_lossy(&row.body);
        let text: String = text.chars().take(220).collect();
        format!("{:>5} {} {text}", row.seq, row.at)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The simulation depends on this guarantee of the journal.
#[test]
fn an_append_under_an_old_lease_changes_nothing() {
    let mut journal = Journal::default();
    let old = journal.acquire();
    let new = journal.acquire();
    journal.send_message(Event::CancelRequested { by: "somebody".to_owned(), from: None });
    let events =
        [(Event::RunResumed(Box::new(Resumed { by: "old".to_owned(), ..Resumed::default() })), 1)];
    let batch = || journal::Batch { events: &events, snapshot: Some(Vec::new()), consumed: &[1] };
    assert!(journal.append(old, batch()).is_err());
    assert!(journal.rows.is_empty() && journal.snapshot.is_none() && journal.inbox.len() == 1);
    assert!(journal.append(new, batch()).is_ok());
    assert!(journal.rows.len() == 1 && journal.snapshot.is_some() && journal.inbox.is_empty());
}
