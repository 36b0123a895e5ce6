//! The commands `counterfoil run` and `counterfoil resume`.

use crate::cli::{ResumeArgs, RunArgs, RunFormat, StateLocation};
use crate::exit::Exit;
use crate::notify::Notifier;
use crate::progress::{self, ProgressSink};
use crate::report::project_checks;
use crate::source::Source;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Telemetry;
use crate::{input, output, person, project, render, state_folder, terminal};
use anyhow::{Context, Result, bail};
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_engine::config::Config;
use counterfoil_engine::{
    AgentAssignments, Engine, Observers, ResumeOptions, RunObserver, RunReport, StartOptions,
    unheld_limits,
};
use counterfoil_flow::{Budget, Changes, Workflow, value};
use counterfoil_process::StopRequest;
use counterfoil_process::contain::Launcher;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as channel;

/// How long the process may take to end after the second signal.
const LONGEST_STOP: Duration = Duration::from_secs(10);
/// The rows of a story.
const STORY_LINES: usize = 10;
/// The size limit of a task that is read from a file.
const MAX_TASK_BYTES: usize = 4 << 20;

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
    let reporting = Reporting {
        location: &args.location,
        format: args.format,
        notify: args.notify.as_deref(),
        story: false,
    };
    if args.resume_last
        && let Some(run) = unfinished(&state, &workflow.name, args.strict_claims)?
    {
        person::require_outside_of_attempts("run --resume-last")?;
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
    require_checks(&workflow, &source, &checks)?;
    let budget = args.budget.budget();
    if args.strict {
        require_held_limits(&workflow, &workflow.budget.with(&budget), &agents)?;
    }
    let home = source.folder().into_iter().chain(args.contracts.iter().cloned()).collect();
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

/// Refuses a workflow that relies on a check which the project does not have, if a name is misspelt or
/// a claim would have to be verified by it. Other checks that are missing are noted.
fn require_checks(workflow: &Workflow, source: &Source, checks: &[String]) -> Result<()> {
    let configured = checks.iter().map(String::as_str).collect();
    let problems = project_checks::problems(workflow, &configured, source.written_by());
    if !problems.misspelt.is_empty() {
        let style = output::stderr_style();
        let findings = counterfoil_flow::render(&problems.misspelt, &workflow.bundle.files, style);
        output::write_stderr(&terminal::trust(&findings));
        bail!("{} names a check that the project does not have", source.display_name());
    }
    if !problems.unverifiable.is_empty() {
        let lines = problems.unverifiable.iter().map(|why| format!("\n- {why}"));
        bail!("a claim could not be verified in this run:{}", lines.collect::<String>());
    }
    for warning in super::workflow::skipped_files(workflow).iter().chain(&problems.warnings) {
        output::write_stderr(&format!("warning: {warning}\n"));
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
    let lines = unheld.iter().map(|limit| format!("\n- {limit}"));
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
    let reporting = Reporting {
        location: &args.location,
        format: args.format,
        notify: args.notify.as_deref(),
        story: false,
    };
    resume_run(&reporting, &args.run, &args.agents, &takeup)
}

/// How and to whom a run is reported.
pub(crate) struct Reporting<'a> {
    pub(crate) location: &'a StateLocation,
    pub(crate) format: RunFormat,
    /// The program that is told of questions, stalls and the end.
    pub(crate) notify: Option<&'a str>,
    /// Whether only the lines that matter are printed, when it is over.
    pub(crate) story: bool,
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
    let recorded = engine.run_state(&engine.journal().resolve(run)?)?.repo;
    let repo = state_folder::repository_of_run(location, state, &recorded)?;
    let environment = agent_environment(Config::load(&repo, &repo)?, state);
    let repo = Some(repo);
    // The types of inputs are those of the workflow that the run began with.
    let changed = if takeup.inputs.is_empty() {
        Map::new()
    } else {
        let run_state = engine.run_state(&engine.journal().resolve(run)?)?;
        inputs(None, &takeup.inputs, &engine.workflow(&run_state)?)?
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
    let report = drive_and_report(&engine, Some(run), reporting, |observer, stop| {
        engine.resume(run, &options, observer, stop)
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

/// The task: the text itself, or the content of a file for `@FILE`.
fn task(args: &RunArgs) -> Result<Option<String>> {
    let Some(task) = &args.task else { return Ok(None) };
    let Some(file) = task.strip_prefix('@') else { return Ok(Some(task.clone())) };
    let (name, bytes) = input::read(Path::new(file), MAX_TASK_BYTES)?;
    if bytes.len() > MAX_TASK_BYTES {
        bail!("the task file {name} is larger than {MAX_TASK_BYTES} bytes");
    }
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    Ok(Some(text))
}

/// The inputs of a run: the task, and the values of other inputs as given on the command line.
pub(crate) fn inputs(
    task: Option<String>,
    values: &[(String, String)],
    workflow: &Workflow,
) -> Result<Map<String, Value>> {
    let mut inputs = Map::new();
    inputs.extend(task.map(|task| ("task".to_owned(), Value::String(task))));
    for (name, text) in values {
        let value = match workflow.main.inputs.get(name) {
            Some(input) => value::parse_argument(text, &input.ty)
                .map_err(|why| anyhow::anyhow!("input '{name}': {why}"))?,
            // The engine reports an unknown input.
            None => Value::String(text.clone()),
        };
        inputs.insert(name.clone(), value);
    }
    Ok(inputs)
}

/// Parses `--agent`: `NAME=SPEC` for one agent, `SPEC` for all others.
fn specs(agents: &[String]) -> Result<(BTreeMap<String, String>, Option<String>)> {
    let mut named = BTreeMap::new();
    let mut rest = None;
    for agent in agents {
        let one = agent.split_once('=').filter(|(name, _)| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'))
        });
        match one {
            Some((name, spec)) => {
                if named.insert(name.to_owned(), absolute(spec)).is_some() {
                    bail!("--agent {name}=… is given twice; keep one");
                }
            }
            None => {
                if rest.replace(absolute(agent)).is_some() {
                    bail!("--agent SPEC is given twice; use --agent NAME=SPEC for single agents");
                }
            }
        }
    }
    Ok((named, rest))
}

/// A spec with the absolute path of its script or program, if it is a path: paths on the command line
/// begin at the current folder, and the run can be resumed from another one.
fn absolute(spec: &str) -> String {
    let is_relative = |path: &str| path.contains('/') && !path.starts_with('/');
    match spec.split_once(':') {
        Some(("script", file)) => match std::path::absolute(file) {
            Ok(path) if !file.is_empty() => format!("script:{}", path.display()),
            _ => spec.to_owned(),
        },
        Some((kind @ ("acp" | "command"), line)) => {
            let Some(mut argv) = shlex::split(line) else { return spec.to_owned() };
            let program = argv.first().filter(|program| is_relative(program));
            let Some(path) = program.and_then(|program| std::path::absolute(program).ok()) else {
                return spec.to_owned();
            };
            argv[0] = path.display().to_string();
            match shlex::try_join(argv.iter().map(String::as_str)) {
                Ok(line) => format!("{kind}:{line}"),
                Err(_) => spec.to_owned(),
            }
        }
        _ => spec.to_owned(),
    }
}

/// What is said if the collector of spans cannot be reached.
#[cfg(feature = "opentelemetry")]
fn spans_are_lost(problem: &str) -> String {
    format!(
        "warning: the spans of this run were not sent to the OpenTelemetry collector: {problem}"
    )
}

/// Drives a run with progress output and signal handling, then prints the report. `resumed` is a run
/// that another process began.
fn drive_and_report<F, R>(
    engine: &Engine,
    resumed: Option<&str>,
    reporting: &Reporting<'_>,
    drive: F,
) -> Result<RunReport>
where
    F: FnOnce(Arc<dyn RunObserver>, channel::Receiver<StopRequest>) -> R,
    R: Future<Output = Result<RunReport, counterfoil_engine::Error>>,
{
    counterfoil_process::start_watchdog();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let progress: Arc<dyn ProgressSink> =
        if reporting.format == RunFormat::Human && !reporting.story {
            progress::to_stderr()
        } else {
            progress::warnings_only()
        };
    if let Some(run) = resumed {
        let run = engine.journal().resolve(run)?;
        engine.each_event_of(&run, &["frame-opened", "moved", "attempt-started"], |event, _| {
            progress.on_past_event(&event);
        })?;
    }
    let mut observers = vec![progress.observer()];
    let notifier = reporting.notify.map(Notifier::new);
    observers.extend(notifier.clone().map(|notifier| notifier as Arc<dyn RunObserver>));
    #[cfg(feature = "opentelemetry")]
    let telemetry =
        Telemetry::start(reporting.location.repo.as_deref()).unwrap_or_else(|problem| {
            progress.line(&spans_are_lost(&problem));
            None
        });
    #[cfg(feature = "opentelemetry")]
    observers.extend(telemetry.clone().map(|telemetry| telemetry as Arc<dyn RunObserver>));
    let (sender, stop) = channel::channel(StopRequest::None);
    let report = runtime.block_on(async {
        let notices = progress.clone();
        let signals = tokio::spawn(async move {
            if let Err(error) = forward_signals(&sender, &*notices).await {
                notices.line(&format!("cannot handle signals: {error}"));
                // The sender must outlive the run.
                std::future::pending::<()>().await;
            }
        });
        let report = drive(Arc::new(Observers(observers)), stop).await;
        signals.abort();
        report
    });
    // Do not wait for blocking reads of files that other processes hold open.
    runtime.shutdown_timeout(Duration::from_secs(1));
    #[cfg(feature = "opentelemetry")]
    if let Some(problem) = telemetry.and_then(|telemetry| telemetry.finish()) {
        progress.line(&spans_are_lost(&problem));
    }
    progress.close();
    let unended = counterfoil_process::could_not_be_ended();
    if !unended.is_empty() {
        output::write_stderr(&render::unended_processes(&unended));
    }
    if let Some(notifier) = notifier {
        let problem = match &report {
            Ok(report) => notifier.end(&report.outcome, &report.reason),
            Err(error) => notifier.end("error", &error.to_string()),
        };
        if let Some(problem) = problem {
            output::write_stderr(&format!("warning: the command of --notify: {problem}\n"));
        }
    }
    let report = report?;
    let claims = engine.ledger(&report.run)?.entries();
    match reporting.format {
        RunFormat::Human => {
            let ending = render::Ending {
                report: &report,
                entries: &claims,
                state: engine.journal().folder(),
                flags: &render::location_flags(&state_folder::lasting(
                    reporting.location,
                    engine.journal().folder(),
                )),
                style: output::stderr_line_style(),
                more: "",
            };
            if super::ask::asks(reporting, &report) {
                // The questions follow.
            } else if reporting.story {
                output::write_stderr(&story(engine, &ending)?);
            } else {
                output::write_stderr(&format!("\n{}", ending.render()));
            }
        }
        RunFormat::Json => output::write_json(&report)?,
        RunFormat::Junit => output::write_xml(&render::junit::run(&report, &claims)?)?,
        RunFormat::Github => output::write_stdout(&render::github::run(&report))?,
    }
    Ok(report)
}

/// The lines of a run that matter, and its end.
fn story(engine: &Engine, ending: &render::Ending<'_>) -> Result<String> {
    let run = &ending.report.run;
    let run_state = engine.run_state(run)?;
    let workflow = engine.workflow(&run_state).ok().map(Arc::new);
    let mut overview = render::Overview::new(workflow, ending.style);
    engine.each_event(run, 1, |event, at| overview.on_event(&event, at, &run_state))?;
    Ok(overview.story(ending, STORY_LINES))
}

/// Forwards signals to the driver: the first stops gracefully, the second immediately. If the terminal
/// is closed or nobody reads the output any more, nobody watches the agents: that stops it as well.
async fn forward_signals(
    sender: &channel::Sender<StopRequest>,
    notices: &dyn ProgressSink,
) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    for stop in [StopRequest::Graceful, StopRequest::Immediate] {
        // A closed terminal is told more than once.
        let is_first = stop == StopRequest::Graceful;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv(), if is_first => {}
            () = output::closed(), if is_first => {}
        }
        notices.line(match stop {
            StopRequest::Graceful => {
                "stopping: waiting for agents to end; interrupt again to stop immediately"
            }
            _ => "stopping immediately",
        });
        let _ = sender.send(stop);
    }
    // Whatever it is doing, the second signal ends it. The journal has all that was done.
    tokio::time::sleep(LONGEST_STOP).await;
    notices.line("stopped in the middle of an operation; `counterfoil resume` goes on");
    notices.close();
    std::process::exit(Exit::Cancelled.code().into());
}
