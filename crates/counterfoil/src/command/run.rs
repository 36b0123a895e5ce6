//! The commands `counterfoil run` and `counterfoil resume`.

mod drive;
mod given;

pub(crate) use drive::{Reporting, print_report};
pub(crate) use given::inputs;

use super::serve::RunDashboard;
use crate::cli::{ResumeArgs, RunArgs};
use crate::exit::Exit;
use crate::init::proposed_commands;
use crate::report::project_checks;
use crate::source::Source;
use crate::{input, output, person, project, redaction, render, state_folder, terminal};
use anyhow::{Context, Result, bail};
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_engine::config::Config;
use counterfoil_engine::{AgentAssignments, ResumeOptions, RunReport, StartOptions, unheld_limits};
use counterfoil_flow::{Budget, Changes, Workflow};
use counterfoil_process::contain::Launcher;
use drive::drive_and_report;
use given::{specs, task};
use serde_json::Map;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) fn run(args: &RunArgs) -> Result<Exit> {
    let repo = input::repository(args.location.repo.as_deref())?;
    if args.location.repo.is_none() {
        project::note_unread_config(&repo);
    }
    let state = match &args.location.state {
        Some(state) => state.clone(),
        None => state_folder::of_repository(&repo)?,
    };
    let source = Source::find(&args.workflow)?;
    let mut workflow = super::workflow::load(&source, &args.contracts)?;
    if args.strict_claims {
        workflow.require_claims();
    }
    if args.resume_last
        && let Some(run) = unfinished(&state, &workflow.name, args.strict_claims)?
    {
        person::require_outside_of_attempts("run --resume-last")?;
        let dashboard = RunDashboard::start(&args.dashboard, "run", &state, Some(&repo))?;
        let reporting = reporting_of(args, dashboard.as_ref());
        return resume_run(&reporting, &run, &args.agents, &Takeup::default());
    }
    let mut given = args.inputs.clone();
    given.extend(args.fail_on.iter().map(|severity| ("fail_on".to_owned(), severity.clone())));
    let inputs = inputs(task(args)?, &given, &workflow)?;
    let (named, rest) = specs(&args.agents)?;
    let config = Config::load(&repo, &repo)?;
    let checks: Vec<String> = config.verify.checks.keys().cloned().collect();
    let environment = agent_environment(config, &state);
    let agents = AgentAssignments::from_specs(
        &workflow,
        &named,
        rest.as_deref(),
        &environment,
        &BTreeMap::new(),
    )?;
    require_checks(&workflow, &source, &checks, &repo)?;
    let budget = args.budget.budget();
    if args.strict {
        require_held_limits(&workflow, &workflow.budget.with(&budget), &agents)?;
    }
    let home = source.folder().into_iter().chain(args.contracts.iter().cloned()).collect();
    let dashboard = RunDashboard::start(&args.dashboard, "run", &state, Some(&repo))?;
    let reporting = reporting_of(args, dashboard.as_ref());
    let options = StartOptions {
        workflow,
        inputs,
        budget,
        agents,
        repo,
        workflow_folders: home,
        launcher: environment.launcher,
    };
    let report = start_run(&state, options, &reporting)?;
    super::ask::ask_and_resume(&reporting, &report)
}

/// How and to whom a run is reported that `run` drives.
fn reporting_of<'a>(args: &'a RunArgs, dashboard: Option<&'a RunDashboard>) -> Reporting<'a> {
    Reporting {
        location: &args.location,
        format: args.format,
        notify: args.notify.as_deref(),
        story: false,
        dashboard,
        program: render::PROGRAM,
    }
}

/// Refuses a workflow that relies on a check which the project does not have, if a name is misspelt or
/// a claim would have to be verified by it. Other checks that are missing are noted.
fn require_checks(
    workflow: &Workflow,
    source: &Source,
    checks: &[String],
    repo: &Path,
) -> Result<()> {
    let configured = checks.iter().map(String::as_str).collect();
    let proposed = proposed_commands(repo);
    let problems = project_checks::problems(workflow, &configured, source.written_by(), &proposed);
    if !problems.misspelt.is_empty() {
        let style = output::stderr_style();
        let findings = counterfoil_flow::render(&problems.misspelt, &workflow.bundle.files, style);
        output::write_stderr(&terminal::trust(&findings));
        bail!("{} names a check that the project does not have", source.display_name());
    }
    if !problems.unverifiable.is_empty() {
        let lines = problems.unverifiable.iter().map(|why| format!("\n  - {why}"));
        bail!(
            "the run was not started, because a required claim could not be verified:{}",
            lines.collect::<String>()
        );
    }
    for warning in super::workflow::skipped_files(workflow).iter().chain(&problems.warnings) {
        output::write_message("warning", warning);
    }
    Ok(())
}

/// Refuses limits of cost and tokens that cannot be held.
fn require_held_limits(
    workflow: &Workflow,
    budget: &Budget,
    agents: &AgentAssignments,
) -> Result<()> {
    let unheld = unheld_limits(workflow, budget, agents);
    if unheld.is_empty() {
        return Ok(());
    }
    let lines = unheld.iter().map(|limit| format!("\n  - {limit}"));
    bail!("--strict refuses limits that cannot be held:{}", lines.collect::<String>())
}

/// Starts a run and drives it until it ends, waits or is stopped.
pub(crate) fn start_run(
    state: &Path,
    options: StartOptions,
    reporting: &Reporting<'_>,
) -> Result<RunReport> {
    let engine = state_folder::open(state)?;
    // It would look like somebody else's work in the folder, for which the agent is not to blame.
    if let Some(run) = engine.live_run_in(&options.repo)? {
        let why = format!("run {run} is at work in the same folder");
        person::require_outside_of_attempts("run")
            .with_context(|| format!("{why}; name another folder with --repo and --state"))?;
    }
    drive_and_report(&engine, None, reporting, |observer, stop| {
        engine.start(options, observer, stop)
    })
}

pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit> {
    person::require_outside_of_attempts("resume")?;
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let takeup = Takeup {
        budget: args.budget.budget(),
        limits: args.limits.iter().cloned().collect(),
        inputs: args.inputs.clone(),
        because: args.because.clone(),
        accept_config: args.accept_config,
    };
    let repo = args.location.repo.as_deref();
    let dashboard = RunDashboard::start(&args.dashboard, "resume", &state, repo)?;
    let reporting = Reporting {
        location: &args.location,
        format: args.format,
        notify: args.notify.as_deref(),
        story: false,
        dashboard: dashboard.as_ref(),
        program: render::PROGRAM,
    };
    resume_run(&reporting, &args.run, &args.agents, &takeup)
}

/// What changes when a run is taken up again.
#[derive(Default)]
pub(crate) struct Takeup {
    budget: Budget,
    limits: BTreeMap<String, u64>,
    inputs: Vec<(String, String)>,
    because: String,
    accept_config: bool,
}

/// Continues a run.
pub(crate) fn resume_run(
    reporting: &Reporting<'_>,
    run: &str,
    agents: &[String],
    takeup: &Takeup,
) -> Result<Exit> {
    let (named, rest) = specs(agents)?;
    let location = reporting.location;
    let state = &state_folder::of(location)?;
    let engine = state_folder::open(state)?;
    // Resolved once: `last` may be another run by the time the run is continued.
    let run = engine.journal().resolve(run)?;
    let recorded = engine.run_state(&run)?.repo;
    let repo = state_folder::repository_of_run(location, state, &recorded)?;
    let config = Config::load(&repo, &repo)?;
    // The run may be one of another project than that of the current folder.
    redaction::add_project(&config)?;
    let environment = agent_environment(config, state);
    let repo = Some(repo);
    // The types of inputs are those of the workflow that the run began with.
    let changed = if takeup.inputs.is_empty() {
        Map::new()
    } else {
        let run_state = engine.run_state(&run)?;
        inputs(None, &takeup.inputs, engine.workflow(&run_state)?.as_ref())?
    };
    let changes = Changes {
        budget: takeup.budget.clone(),
        limits: takeup.limits.clone(),
        inputs: changed,
        because: takeup.because.trim().to_owned(),
    };
    let by = person::current();
    let options = ResumeOptions {
        named,
        rest,
        environment,
        repo,
        by,
        accept_config: takeup.accept_config,
        changes,
    };
    let report = drive_and_report(&engine, Some(&run), reporting, |observer, stop| {
        engine.resume(&run, &options, observer, stop)
    })?;
    drop(engine);
    super::ask::ask_and_resume(reporting, &report)
}

/// The environment of agents in a project with a state folder.
pub(super) fn agent_environment(config: Config, state: &Path) -> AgentEnvironment {
    // If the path of this program is unknown, agents get no MCP server, and Landlock cannot be used;
    // everything else works.
    let executable = std::env::current_exe().ok();
    let launcher = Launcher::new(config.verify.contain, executable.clone(), Some(state));
    // Paths in counterfoil.toml begin at its folder.
    let folder = config.verify.source.as_deref().and_then(Path::parent).map(Path::to_owned);
    let mut environment = AgentEnvironment::from_process(config.agents, executable);
    environment.folder = folder.unwrap_or_default();
    environment.launcher = launcher;
    environment
}

/// The last run of a workflow, unless it has ended. One that does not require all claims is refused if
/// they have to be required.
fn unfinished(state: &Path, workflow: &str, strict_claims: bool) -> Result<Option<String>> {
    if !state.exists() {
        return Ok(None);
    }
    let engine = state_folder::open(state)?;
    let last = engine.journal().runs(None)?.into_iter().find(|run| run.workflow == workflow);
    let Some(last) = last else { return Ok(None) };
    let run_state = engine.run_state(&last.id)?;
    if run_state.ended.is_some() {
        return Ok(None);
    }
    if strict_claims && !engine.workflow(&run_state)?.bundle.require_claims {
        bail!(
            "run {0} was started without --strict-claims; continue it with `counterfoil resume {0}`, or end it \
             with `counterfoil cancel {0}`",
            last.id
        );
    }
    Ok(Some(last.id))
}
