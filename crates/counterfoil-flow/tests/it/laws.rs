//! The laws of running: a workflow that passes the checker never fails on its wiring, ends or waits
//! for somebody, keeps its limits, and is the sum of its events wherever the sum begins.
//!
//! `CASES=20000 cargo test -p counterfoil-flow --test it laws::` plays more; `SEED=n` plays one and
//! prints it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod dice;
mod expressions;
mod generate;
mod play;

use crate::shipped;
use counterfoil_flow::{Event, RunState, Workflow, check};
use dice::Dice;
use play::Played;
use std::collections::BTreeMap;

/// What a case came to.
enum Came {
    /// The checker refused it, for these codes.
    AnswerError(Vec<&'static str>),
    Ran {
        events: usize,
        faults: usize,
        outcome: String,
    },
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn what_passes_runs_to_its_end_and_is_the_sum_of_its_events() {
    let (first, count) = match number("SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("CASES").unwrap_or(300)),
    };
    let begin = std::time::Instant::now();
    let (mut refused, mut codes, mut outcomes) = (0, BTreeMap::new(), BTreeMap::new());
    let (mut events, mut faults, mut broken) = (0, 0, Vec::new());
    for seed in first..first + count {
        match case(seed) {
            Ok(Came::AnswerError(found)) => {
                refused += 1;
                for code in found {
                    *codes.entry(code).or_insert(0) += 1;
                }
            }
            Ok(Came::Ran { events: more, faults: wrong, outcome }) => {
                events += more;
                faults += wrong;
                *outcomes.entry(outcome).or_insert(0) += 1;
            }
            Err(why) => broken.push(format!("SEED={seed}: {why}")),
        }
    }
    println!("{count} workflows, {refused} refused {codes:?}");
    println!("{events} events, {faults} data faults, ends {outcomes:?}, {:?}", begin.elapsed());
    broken.truncate(10);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(
        count == 1 || refused * 2 < count,
        "{refused} of {count} are refused: the laws are hardly tried"
    );
}

#[test]
fn what_is_shipped_runs_to_its_end_too() {
    for example in shipped::examples() {
        let workflow =
            check(&example.workflow, &example.files, &counterfoil_packs::registry()).unwrap();
        let mut outcomes = BTreeMap::new();
        for seed in 0..40 {
            match plays(&workflow, &mut Dice::new(seed)) {
                Ok(Came::Ran { outcome, .. }) => *outcomes.entry(outcome).or_insert(0) += 1,
                Ok(Came::AnswerError(_)) => {}
                Err(why) => panic!("{} with seed {seed}: {why}", example.name),
            }
        }
        println!("{}: {outcomes:?}", example.name);
        // One whose guards wait for verdicts on claims is done only by a chance that never comes
        // here; the binary plays it.
        let waits = example.files[&example.workflow].contains("when: claims.");
        assert!(
            waits || outcomes.contains_key("done"),
            "{} is never done: {outcomes:?}",
            example.name
        );
    }
}

fn case(seed: u64) -> Result<Came, String> {
    let mut dice = Dice::new(seed);
    let made = generate::workflow(&mut dice);
    if number("SEED").is_some() {
        let value: serde_json::Value = serde_json::from_str(&made.files["made.yaml"]).unwrap();
        println!("{}", serde_json::to_string_pretty(&value).unwrap());
    }
    let workflow = match check("made.yaml", &made.files, &made.registry) {
        Ok(workflow) => workflow,
        Err(rejected) => {
            if number("SEED").is_some() {
                println!("{rejected}");
            }
            return Ok(Came::AnswerError(
                rejected.findings.iter().map(|one| one.code.as_str()).collect(),
            ));
        }
    };
    plays(&workflow, &mut dice)
}

/// Plays a workflow that passed and holds it to the laws.
fn plays(workflow: &Workflow, dice: &mut Dice) -> Result<Came, String> {
    let played = play::play(workflow, dice)?;
    for reason in &played.faults {
        if !is_of_the_data(reason) {
            return Err(format!("a step failed on its wiring: {reason}"));
        }
    }
    is_the_sum_of_its_events(&played, dice)?;
    let outcome = played.run.ended.as_ref().map_or("waits", |ending| ending.outcome.name());
    Ok(Came::Ran {
        events: played.events.len(),
        faults: played.faults.len(),
        outcome: outcome.to_owned(),
    })
}

/// Whether a step failed on what the values were: no checker can know these.
fn is_of_the_data(reason: &str) -> bool {
    const FAULTS: [&str; 3] = ["by zero", "past the end of a list", "overflow"];
    FAULTS.iter().any(|fault| reason.contains(fault))
}

fn as_text(run: &RunState) -> String {
    serde_json::to_string(run).unwrap()
}

fn is_the_sum_of_its_events(played: &Played, dice: &mut Dice) -> Result<(), String> {
    // What is read back from the journal is what was written.
    let mut events: Vec<(Event, i64)> = Vec::with_capacity(played.events.len());
    for (event, at) in &played.events {
        let text = serde_json::to_string(event).unwrap();
        let back: Event =
            serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?;
        if back != *event {
            return Err(format!("an event is not what it was: {text}"));
        }
        events.push((back, *at));
    }
    let whole = as_text(&played.run);
    let from = dice.below(events.len().max(1));
    let mut run = RunState::default();
    let mut snapshot = None;
    for (n, (event, at)) in events.iter().enumerate() {
        if n == from {
            snapshot = Some(as_text(&run));
        }
        run.apply(event, *at);
    }
    if as_text(&run) != whole {
        return Err("the events add up to something else".to_owned());
    }
    let mut taken_up: RunState =
        serde_json::from_str(&snapshot.unwrap_or_default()).map_err(|error| error.to_string())?;
    for (event, at) in &events[from..] {
        taken_up.apply(event, *at);
    }
    if as_text(&taken_up) == whole {
        Ok(())
    } else {
        Err(format!("from event {from} on, the events add up to something else"))
    }
}
