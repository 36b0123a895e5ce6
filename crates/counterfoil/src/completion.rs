//! Completion in shells: the names of packs, contracts, agent programs, codes, runs and states, read
//! when Tab is pressed.

use crate::cli::{self, StateLocation};
use crate::{project, shell, state_folder};
use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use counterfoil_agents::adapters::adapters;
use counterfoil_contract::Code;
use counterfoil_contract::text::{display_path, is_unsafe};
use counterfoil_engine::{Engine, RunReport};
use counterfoil_flow::Code as WorkflowCode;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The variable by which a shell asks for candidates.
pub(crate) const VARIABLE: &str = "COUNTERFOIL_COMPLETE";

/// The most runs that are offered.
const MAX_RUNS: usize = 50;

/// How the specs of agents begin that are not the name of a program.
const SPEC_KINDS: [&str; 3] = ["acp:", "command:", "script:"];

/// The command line with the candidates for its arguments.
pub(crate) fn command() -> Command {
    let mut command = cli::command();
    for name in ["resume", "cancel", "show", "answer", "undo", "export", "receipt"] {
        command = with_candidates(command, &[name], "run", runs);
    }
    command = with_candidates(command, &["show"], "step", steps);
    command = with_candidates(command, &["undo"], "workspace", steps);
    command = with_candidates(command, &["answer"], "question", questions);
    for path in
        [&["run"][..], &["workflow", "graph"], &["demo"], &["pack", "show"], &["pack", "eject"]]
    {
        for argument in ["workflow", "pack"] {
            command = with_candidates(command, path, argument, packs);
        }
    }
    command = with_candidates(command, &["verify"], "contract", built_in_contracts);
    for path in [
        &["check"][..],
        &["contract", "show"],
        &["contract", "schema"],
        &["contract", "prompt"],
        &["contract", "repair"],
    ] {
        for argument in ["contract", "id"] {
            command = with_candidates(command, path, argument, contracts);
        }
    }
    command = with_completer(command, &["contract", "lint"], "paths", paths_and_own_contracts);
    for name in ["run", "resume"] {
        command = with_completer(command, &[name], "agents", agent_specs);
    }
    command = with_candidates(command, &["replay"], "agent", agent_programs);
    with_candidates(command, &["explain"], "code", codes)
}

/// Adds candidates to an argument of a command, if the command has such an argument.
fn with_candidates(
    command: Command,
    path: &[&str],
    argument: &str,
    candidates: fn() -> Vec<CompletionCandidate>,
) -> Command {
    let add = |each: Arg| each.add(ArgValueCandidates::new(candidates));
    with_changed(command, path, argument, &add)
}

/// The same with candidates that depend on what is typed.
fn with_completer(
    command: Command,
    path: &[&str],
    argument: &str,
    completer: fn(&OsStr) -> Vec<CompletionCandidate>,
) -> Command {
    let add = |each: Arg| each.add(ArgValueCompleter::new(completer));
    with_changed(command, path, argument, &add)
}

/// Changes an argument of a command, if the command has it.
fn with_changed(
    command: Command,
    path: &[&str],
    argument: &str,
    change: &dyn Fn(Arg) -> Arg,
) -> Command {
    let Some((first, rest)) = path.split_first() else {
        // A changed argument becomes the last one, so all of them are taken in their order.
        let ids: Vec<clap::Id> =
            command.get_arguments().map(|each| each.get_id().clone()).collect();
        return ids.into_iter().fold(command, |command, id| {
            let is_meant = id == argument;
            command.mut_arg(id, |each| if is_meant { change(each) } else { each })
        });
    };
    command.mut_subcommand(first, |inner| with_changed(inner, rest, argument, change))
}

fn packs() -> Vec<CompletionCandidate> {
    counterfoil_packs::packs().iter().map(|pack| CompletionCandidate::new(pack.name())).collect()
}

fn built_in_contracts() -> Vec<CompletionCandidate> {
    built_in_ids().into_iter().map(CompletionCandidate::new).collect()
}

fn built_in_ids() -> BTreeSet<String> {
    let registry = counterfoil_packs::registry();
    registry.iter().map(|entry| entry.definition().contract.clone()).collect()
}

fn contracts() -> Vec<CompletionCandidate> {
    let known = built_in_ids();
    let own = own_contracts().into_iter().filter(|(id, _)| !known.contains(id)).map(own_contract);
    built_in_contracts().into_iter().chain(own).collect()
}

/// The ids of the contracts of the project around the current folder, each with its file. Shells
/// insert a candidate as it is, so an id that they would not take for one word is left out.
fn own_contracts() -> BTreeMap<String, String> {
    let files = project::own_contracts(&[], project::current_config_folder().as_deref());
    let files = files.unwrap_or_default();
    let ids = files.iter().filter_map(|file| Some((file.id()?, display_path(&file.path))));
    ids.filter(|(id, _)| shell::quote(id) == *id).collect()
}

fn own_contract((id, file): (String, String)) -> CompletionCandidate {
    CompletionCandidate::new(id).help(Some(file.into()))
}

/// The paths of files and folders, as for every argument that is a path, and the contracts of the
/// project. A name that a terminal would obey is left out.
fn paths_and_own_contracts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut paths = PathCompleter::any().complete(typed);
    paths.retain(|path| {
        !path.get_value().to_string_lossy().contains(|c: char| c.is_control() || is_unsafe(c))
    });
    let typed = typed.to_string_lossy();
    let own = own_contracts().into_iter().filter(|(id, _)| id.starts_with(&*typed));
    paths.into_iter().chain(own.map(own_contract)).collect()
}

/// The programs that an adapter knows.
fn agent_programs() -> Vec<CompletionCandidate> {
    adapters().iter().map(|adapter| CompletionCandidate::new(adapter.name())).collect()
}

/// What an agent can be: a program, or a kind of spec. It may follow the name of an agent and `=`.
fn agent_specs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    // What follows a colon is of the program.
    let agent = typed.split_once('=').map(|(agent, _)| agent).filter(|agent| !agent.contains(':'));
    let prefix = agent.map(|agent| format!("{agent}=")).unwrap_or_default();
    let specs = adapters().iter().map(|adapter| adapter.name()).chain(SPEC_KINDS);
    let specs = specs.map(|spec| format!("{prefix}{spec}")).filter(|spec| spec.starts_with(typed));
    specs.map(CompletionCandidate::new).collect()
}

/// The codes that `explain` has pages for.
fn codes() -> Vec<CompletionCandidate> {
    let contracts = Code::ALL.iter().map(|code| (code.as_str(), code.title()));
    let workflows = WorkflowCode::ALL.iter().map(|code| (code.as_str(), code.title()));
    let candidate = |(code, title): (&'static str, &'static str)| {
        CompletionCandidate::new(code).help(Some(title.into()))
    };
    contracts.chain(workflows).map(candidate).collect()
}

/// What is typed of a command about a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    /// The run; none if it is not typed yet.
    run: Option<String>,
    repo: Option<PathBuf>,
    state: Option<PathBuf>,
}

impl Typed {
    /// From the words of this process. A shell passes what is typed after `--`.
    fn of_process() -> Self {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        Self::of(&words.skip_while(|word| word != "--").skip(1).collect::<Vec<_>>())
    }

    /// From the words that are typed, which begin with the program.
    fn of(words: &[String]) -> Self {
        let mut typed = Self::default();
        let command = cli::command();
        let Some(command) = words.get(1).and_then(|name| command.find_subcommand(name)) else {
            return typed;
        };
        let mut words = words[2..].iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else {
                if !word.starts_with('-') {
                    typed.run.get_or_insert_with(|| word.clone());
                }
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            let takes_value =
                |arg: &&Arg| arg.get_long() == Some(name) && arg.get_action().takes_values();
            let has_value = command.get_arguments().any(|arg| takes_value(&arg));
            let value = if has_value { value.or_else(|| words.next().cloned()) } else { None };
            match name {
                "repo" => typed.repo = value.map(PathBuf::from),
                "state" => typed.state = value.map(PathBuf::from),
                _ => {}
            }
        }
        typed
    }
}

/// The runs of the repository that is typed, or of the one around the current folder. Errors give no
/// candidates.
fn engine(typed: &Typed) -> Option<Engine> {
    let location = StateLocation { repo: typed.repo.clone(), state: typed.state.clone() };
    let state = state_folder::of(&location).ok()?;
    state_folder::has_runs(&state).ok().filter(|has| *has)?;
    state_folder::open_to_read(&state).ok()
}

fn runs() -> Vec<CompletionCandidate> {
    let engine = engine(&Typed::of_process());
    let runs = engine.and_then(|engine| engine.journal().runs(Some(MAX_RUNS)).ok());
    let runs = runs.unwrap_or_default().into_iter().map(|run| {
        let outcome = run.summary.outcome.unwrap_or_else(|| "not ended".to_owned());
        let help = format!("{}, {outcome}", run.workflow);
        CompletionCandidate::new(run.id).help(Some(help.into()))
    });
    std::iter::once(CompletionCandidate::new("last")).chain(runs).collect()
}

/// The report of the run that is typed.
fn report() -> Option<RunReport> {
    let typed = Typed::of_process();
    let engine = engine(&typed)?;
    let run = engine.journal().resolve(typed.run.as_deref().unwrap_or("last")).ok()?;
    engine.report(&run).ok()
}

/// The steps of the run.
fn steps() -> Vec<CompletionCandidate> {
    let Some(report) = report() else { return Vec::new() };
    let attempts = report.attempts.iter().chain(&report.commands);
    let paths: BTreeSet<String> = attempts.map(|attempt| attempt.path.join("/")).collect();
    paths.into_iter().map(CompletionCandidate::new).collect()
}

/// The open questions of the run.
fn questions() -> Vec<CompletionCandidate> {
    let questions = report().map(|report| report.questions).unwrap_or_default();
    questions.into_iter().map(|question| CompletionCandidate::new(question.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(candidates: &[CompletionCandidate]) -> Vec<&str> {
        candidates.iter().map(|candidate| candidate.get_value().to_str().unwrap()).collect()
    }

    #[test]
    fn an_agent_is_a_program_for_all_or_for_one_by_its_name() {
        for (typed, expected) in [
            ("c", &["claude", "codex", "command:"] as &[&str]),
            ("reviewer=c", &["reviewer=claude", "reviewer=codex", "reviewer=command:"]),
            ("reviewer=x", &[]),
            ("command:A=c", &[]),
        ] {
            assert_eq!(values(&agent_specs(OsStr::new(typed))), expected, "{typed}");
        }
        assert_eq!(agent_specs(OsStr::new("")).len(), adapters().len() + SPEC_KINDS.len());
    }

    #[test]
    fn the_run_and_its_place_are_those_that_are_typed() {
        let typed = |line: &str| Typed::of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let run = |run: Option<&str>| Typed { run: run.map(str::to_owned), ..Typed::default() };
        for (line, expected) in [
            ("counterfoil show 0a1 im", run(Some("0a1"))),
            ("counterfoil show --format json 0a1 im", run(Some("0a1"))),
            ("counterfoil show --claims 0a1 im", run(Some("0a1"))),
            ("counterfoil show -", run(None)),
            ("counterfoil nothing 0a1", run(None)),
            ("counterfoil", run(None)),
        ] {
            assert_eq!(typed(line), expected, "{line}");
        }
        let elsewhere = typed("counterfoil undo --repo ../a --state=s 0a1 im");
        assert_eq!(elsewhere.repo, Some(PathBuf::from("../a")));
        assert_eq!(elsewhere.state, Some(PathBuf::from("s")));
        assert_eq!(elsewhere.run.as_deref(), Some("0a1"));
    }

    #[test]
    fn every_code_is_offered_with_its_title() {
        let codes = codes();
        assert_eq!(codes.len(), Code::ALL.len() + WorkflowCode::ALL.len());
        assert!(codes.iter().all(|code| code.get_help().is_some()));
    }
}
