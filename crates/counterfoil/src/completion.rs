//! Completion in shells: the names of packs, contracts, runs and states, read when Tab is pressed.

use crate::cli::{self, StateLocation};
use crate::state_folder;
use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use counterfoil_engine::Engine;
use std::collections::BTreeSet;

/// The variable by which a shell asks for candidates.
pub(crate) const VARIABLE: &str = "COUNTERFOIL_COMPLETE";

/// The most runs that are offered.
const MAX_RUNS: usize = 50;

/// The command line with the candidates for its arguments.
pub(crate) fn command() -> Command {
    let mut command = cli::command();
    for name in ["resume", "cancel", "show", "answer", "undo", "export"] {
        command = with_candidates(command, &[name], "run", runs);
    }
    command = with_candidates(command, &["show"], "step", steps);
    command = with_candidates(command, &["answer"], "question", questions);
    for path in
        [&["run"][..], &["workflow", "graph"], &["demo"], &["pack", "show"], &["pack", "eject"]]
    {
        for argument in ["workflow", "pack"] {
            command = with_candidates(command, path, argument, packs);
        }
    }
    for path in [
        &["check"][..],
        &["verify"],
        &["contract", "show"],
        &["contract", "schema"],
        &["contract", "prompt"],
        &["contract", "repair"],
    ] {
        for argument in ["contract", "id"] {
            command = with_candidates(command, path, argument, contracts);
        }
    }
    command
}

/// Adds candidates to an argument of a command, if the command has such an argument.
fn with_candidates(
    command: Command,
    path: &[&str],
    argument: &str,
    candidates: fn() -> Vec<CompletionCandidate>,
) -> Command {
    let Some((first, rest)) = path.split_first() else {
        // A changed argument becomes the last one, so all of them are taken in their order.
        let ids: Vec<clap::Id> =
            command.get_arguments().map(|each| each.get_id().clone()).collect();
        return ids.into_iter().fold(command, |command, id| {
            let is_meant = id == argument;
            command.mut_arg(id, |each| {
                if is_meant { each.add(ArgValueCandidates::new(candidates)) } else { each }
            })
        });
    };
    command.mut_subcommand(first, |inner| with_candidates(inner, rest, argument, candidates))
}

fn packs() -> Vec<CompletionCandidate> {
    counterfoil_packs::packs().iter().map(|pack| CompletionCandidate::new(pack.name())).collect()
}

fn contracts() -> Vec<CompletionCandidate> {
    let registry = counterfoil_packs::registry();
    let ids: BTreeSet<String> =
        registry.iter().map(|entry| entry.definition().contract.clone()).collect();
    ids.into_iter().map(CompletionCandidate::new).collect()
}

/// The runs of the repository around the current folder. Errors give no candidates.
fn engine() -> Option<Engine> {
    let location = StateLocation { repo: None, state: None };
    let state = state_folder::of(&location).ok()?;
    state_folder::has_runs(&state).ok().filter(|has| *has)?;
    state_folder::open_to_read(&state).ok()
}

fn runs() -> Vec<CompletionCandidate> {
    let runs = engine().and_then(|engine| engine.journal().runs(Some(MAX_RUNS)).ok());
    let runs = runs.unwrap_or_default().into_iter().map(|run| {
        let outcome = run.summary.outcome.unwrap_or_else(|| "not ended".to_owned());
        let help = format!("{}, {outcome}", run.workflow);
        CompletionCandidate::new(run.id).help(Some(help.into()))
    });
    std::iter::once(CompletionCandidate::new("last")).chain(runs).collect()
}

/// The steps of the last run.
fn steps() -> Vec<CompletionCandidate> {
    let report = engine().and_then(|engine| engine.report("last").ok());
    let Some(report) = report else { return Vec::new() };
    let attempts = report.attempts.iter().chain(&report.commands);
    let paths: BTreeSet<String> = attempts.map(|attempt| attempt.path.join("/")).collect();
    paths.into_iter().map(CompletionCandidate::new).collect()
}

/// The open questions of the last run.
fn questions() -> Vec<CompletionCandidate> {
    let report = engine().and_then(|engine| engine.report("last").ok());
    let questions = report.map(|report| report.questions).unwrap_or_default();
    questions.into_iter().map(|question| CompletionCandidate::new(question.id)).collect()
}
