//! Runs of random workflows in a simulated world, each struck by blows at random points, with
//! everything that must hold checked after every append. No clock, no process, no file: a seed says
//! all.
//!
//! `SIM_SEEDS=50000` runs more, `SIM_SEED=42` runs one again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod audit;
mod contracts;
mod deeds;
mod dice;
mod driver;
mod fans;
mod found;
mod journal;
mod limits;
mod run;
mod shapes;
mod spaces;
mod world;

use counterfoil_contract::Registry;
use counterfoil_flow::Event;
use dice::Dice;
use journal::Journal;
use run::{Blow, Run, Tally};
use shapes::Made;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many seeds an ordinary test runs.
const SEEDS: u64 = 2000;

/// What all runs together came to.
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
    blows: BTreeMap<String, u64>,
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
        for (name, times) in tally.blows {
            *self.blows.entry(name).or_default() += times;
        }
        for (name, times) in tally.kinds {
            *self.kinds.entry(name).or_default() += times;
        }
    }
}

#[test]
fn runs_survive_whatever_strikes_them() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let registry = contracts::registry();
    let examples = shapes::examples(&registry);
    let mut sum = Sum::default();
    let (one, seeds) = (number("SIM_SEED"), number("SIM_SEEDS").unwrap_or(SEEDS));
    let range = one.map_or(0..seeds, |seed| seed..seed + 1);
    for seed in range {
        sum.seeds += 1;
        let tried =
            catch_unwind(AssertUnwindSafe(|| try_seed(seed, &registry, &examples, &mut sum)));
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
    println!("outcomes: {:?}\nblows: {:?}\nevents: {:?}", sum.outcomes, sum.blows, sum.kinds);
    if one.is_none() && seeds >= SEEDS {
        nothing_is_missing(&sum);
    }
}

/// A simulation that never meets something proves nothing about it.
fn nothing_is_missing(sum: &Sum) {
    for outcome in ["done", "blocked", "failed", "cancelled", "exhausted", "budget", "waiting"] {
        assert!(sum.outcomes.contains_key(outcome), "no run was {outcome}");
    }
    for stage in ["waiting", "told", "turned", "appended", "started-some"] {
        for blow in ["crash", "takeover"] {
            let name = format!("{blow} {stage}");
            assert!(sum.blows.contains_key(&name), "no {name} fell");
        }
    }
    for blow in ["stop", "cancel", "artifact", "crash hung"] {
        assert!(sum.blows.contains_key(blow), "no {blow} fell");
    }
    assert_eq!(sum.kinds.len(), 28, "some kinds of events never happened: {:?}", sum.kinds.keys());
    assert!(sum.fenced > 0, "nobody was fenced");
    assert!(sum.refused * 50 <= sum.seeds, "the checker refused {} workflows", sum.refused);
}

/// Runs a workflow in peace, then again with blows at points that it passed.
fn try_seed(
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
        format!("{why}\n{}\n{}", story(&journal), made.text)
    };
    let peace = Run::new(made, seed, Vec::new()).go().map_err(failed)?;
    let points = peace.points;
    sum.add(peace);
    let mut blows = Vec::new();
    for _ in 0..dice.weigh(&[(6, 1), (3, 2), (1, 4)]) {
        let blow = dice.weigh(&[
            (10, Blow::Crash),
            (6, Blow::Takeover),
            (2, Blow::Stop),
            (1, Blow::Cancel),
            (1, Blow::Artifact),
        ]);
        blows.push((dice.between(1, points), blow));
    }
    sum.add(Run::new(made, seed, blows).go().map_err(failed)?);
    Ok(())
}

/// The last events of a journal, for whoever looks for what went wrong.
fn story(journal: &Journal) -> String {
    let last = journal.rows.len().saturating_sub(40);
    let lines = journal.rows[last..].iter().map(|row| {
        let text = String::from_utf8_lossy(&row.body);
        let text: String = text.chars().take(220).collect();
        format!("{:>5} {} {text}", row.seq, row.at)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What the journal promises is what the simulation rests on.
#[test]
fn an_append_under_an_old_lease_changes_nothing() {
    let mut journal = Journal::default();
    let old = journal.take();
    let new = journal.take();
    journal.post(Event::CancelRequested { by: "somebody".to_owned() });
    let events = [(Event::RunResumed { by: "old".to_owned(), agents: BTreeMap::new() }, 1)];
    let batch = || journal::Batch { events: &events, snapshot: Some(Vec::new()), consumed: &[1] };
    assert!(journal.append(old, batch()).is_err());
    assert!(journal.rows.is_empty() && journal.snapshot.is_none() && journal.inbox.len() == 1);
    assert!(journal.append(new, batch()).is_ok());
    assert!(journal.rows.len() == 1 && journal.snapshot.is_some() && journal.inbox.is_empty());
}
