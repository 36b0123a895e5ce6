//! Small mistakes in workflows that are right: each shipped workflow is changed in every place
//! where a mistake of a kind can be made, in several ways, and the checker must refuse every change
//! that means something else.
//!
//! The suite tries every fifth mutant. `ALL_MUTANTS=1` tries all of them.
//!
//! A kind with a rule under which a mutant may pass says so ([`Claim::Open`]); all others must be
//! refused without exception.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod claims;
mod sites;

use crate::shipped::{self, Example};
use counterfoil_contract::Registry;
use counterfoil_flow::check;
use serde_json::Value;
use sites::{Claim, Mutant};
use std::collections::BTreeMap;

/// How the mutants of a kind fared.
#[derive(Default)]
struct Tally {
    tried: usize,
    refused: usize,
    /// Passed, and a rule says why that is right.
    valid: usize,
}

fn tree(example: &Example) -> Value {
    serde_saphyr::from_str(&example.files[&example.workflow]).unwrap()
}

fn is_refused(example: &Example, mutant: &Mutant, registry: &Registry) -> bool {
    let mut files = example.files.clone();
    files.insert(mutant.file.clone(), mutant.text.clone());
    check(&example.workflow, &files, registry).is_err()
}

#[test]
fn changes_of_meaning_are_refused() {
    let registry = counterfoil_packs::registry();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut missed = Vec::new();
    let step = if std::env::var_os("ALL_MUTANTS").is_some() { 1 } else { 5 };
    for example in shipped::examples() {
        let mutants = sites::mutants(&example, &tree(&example));
        let made = mutants.len();
        println!("{}: {made} mutants", example.name);
        assert!(made >= 100, "only {made} mutants of {}", example.name);
        for mutant in mutants.into_iter().step_by(step) {
            let tally = tallies.entry(mutant.kind).or_default();
            tally.tried += 1;
            if is_refused(&example, &mutant, &registry) {
                tally.refused += 1;
            } else if let Claim::Open(_) = mutant.claim {
                tally.valid += 1;
            } else {
                missed.push(format!("{}: {} ({})", example.name, mutant.what, mutant.kind));
            }
        }
    }
    for (kind, tally) in &tallies {
        println!(
            "{kind}: {} mutants, {} refused, {} valid by a rule",
            tally.tried, tally.refused, tally.valid
        );
    }
    let sum = |part: fn(&Tally) -> usize| tallies.values().map(part).sum::<usize>();
    println!(
        "in all {} mutants, {} refused, {} valid by a rule, {} missed",
        sum(|tally| tally.tried),
        sum(|tally| tally.refused),
        sum(|tally| tally.valid),
        missed.len()
    );
    missed.truncate(40);
    assert!(missed.is_empty(), "these pass and should not:\n{}", missed.join("\n"));
}

#[test]
fn the_tree_itself_passes() {
    let registry = counterfoil_packs::registry();
    for example in shipped::examples() {
        let same = Mutant {
            kind: "none",
            what: String::new(),
            claim: Claim::Refused,
            file: example.workflow.clone(),
            text: tree(&example).to_string(),
        };
        assert!(!is_refused(&example, &same, &registry), "{}", example.name);
    }
}
