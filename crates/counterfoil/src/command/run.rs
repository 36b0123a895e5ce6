//! `counterfoil run` and `counterfoil resume`

use crate::cli::{Place, ResumeArgs, RunArgs, RunFormat};
use crate::exit::Exit;
use crate::source::Source;
use crate::watch::{self, Lines};
use crate::{input, output, tell};
use anyhow::{Context, Result, bail};
use counterfoil_agents::agent::Equipment;
use counterfoil_engine::config::Config;
use counterfoil_engine::{Cast, Engine, Launch, Recast, Report, Watcher};
use counterfoil_flow::{Budget, Workflow, value};
use counterfoil_process::Stop;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch as channel;

/// The largest task read from a file.
const LARGEST_TASK: usize = 4 << 20;

pub(crate) fn run(args: &RunArgs) -> Result<Exit> {
    let repo = input::repository(args.place.repo.as_deref())?;
    let state = match &args.place.state {
        Some(state) => state.clone(),
        None => repo.join(".counterfoil"),
    };
    let source = Source::named(&args.workflow)?;
    let workflow = super::workflow::load(&source, &args.contracts)?;
    if args.resume_last
        && let Some(run) = unfinished(&state, &workflow.name)?
    {
        return drive_on(&args.place, &run, &args.agents, args.format);
    }
    let inputs = inputs(task(args)?, &args.inputs, &workflow)?;
    let (named, rest) = specs(&args.agents)?;
    let equipment = equipment(&repo)?;
    let cast = Cast::from_specs(&workflow, &named, rest.as_deref(), &equipment, &[])?;
    let budget = Budget {
        tokens: args.max_tokens,
        cost_usd: args.max_cost,
        time_ms: args.max_time,
        ..Budget::default()
    };
    let home = source.home().into_iter().chain(args.contracts.iter().cloned()).collect();
    let launch = Launch { workflow, inputs, budget, cast, repo, home };
    let report = begin(&state, launch, &args.place, args.format)?;
    Ok(Exit::of(&report))
}

/// Starts a run and drives it as far as it goes.
pub(crate) fn begin(
    state: &Path,
    launch: Launch,
    place: &Place,
    format: RunFormat,
) -> Result<Report> {
    let engine = Engine::open(state)?;
    driven(&engine, place, format, |watcher, stop| engine.start(launch, watcher, stop))
}

pub(crate) fn resume(args: &ResumeArgs) -> Result<Exit> {
    let state = input::state(&args.place)?;
    super::runs::expect_runs(&state)?;
    drive_on(&args.place, &args.run, &args.agents, args.format)
}

/// Goes on with a run.
pub(crate) fn drive_on(
    place: &Place,
    run: &str,
    agents: &[String],
    format: RunFormat,
) -> Result<Exit> {
    let (named, rest) = specs(agents)?;
    let state = &input::state(place)?;
    let engine = Engine::open(state)?;
    // A repository that was moved took its runs along; one whose runs are kept elsewhere is where
    // it was.
    let repo = match (&place.repo, &place.state) {
        (None, Some(_)) => None,
        (named, _) => Some(input::repository(named.as_deref())?),
    };
    let equipment = match &repo {
        Some(repo) => equipment(repo)?,
        None => equipment(Path::new(&engine.fold(&engine.journal().resolve(run)?)?.repo))?,
    };
    let recast = Recast { named, rest, equipment, repo };
    let report =
        driven(&engine, place, format, |watcher, stop| engine.resume(run, &recast, watcher, stop))?;
    Ok(Exit::of(&report))
}

/// What agents are equipped with in a repository.
pub(crate) fn equipment(repo: &Path) -> Result<Equipment> {
    let config = Config::load(repo, repo)?;
    // Without our own program the tool that takes results is not attached; all else works.
    Ok(Equipment::of_this_process(config.agents, std::env::current_exe().ok()))
}

/// The last run of a workflow, if it has not ended.
fn unfinished(state: &Path, workflow: &str) -> Result<Option<String>> {
    if !state.exists() {
        return Ok(None);
    }
    let engine = Engine::open(state)?;
    let last = engine.journal().runs(None)?.into_iter().find(|run| run.workflow == workflow);
    let Some(last) = last else { return Ok(None) };
    let fold = engine.fold(&last.id)?;
    Ok(fold.ended.is_none().then_some(last.id))
}

/// The task: the text itself, or what stands in a file.
fn task(args: &RunArgs) -> Result<Option<String>> {
    let Some(task) = &args.task else { return Ok(None) };
    let Some(file) = task.strip_prefix('@') else { return Ok(Some(task.clone())) };
    let (name, bytes) = input::read(Path::new(file), LARGEST_TASK)?;
    if bytes.len() > LARGEST_TASK {
        bail!("{name} has more than {LARGEST_TASK} bytes; a task is a text that an agent reads");
    }
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    Ok(Some(text))
}

/// What a run is given: the task, and words for other inputs.
pub(crate) fn inputs(
    task: Option<String>,
    words: &[(String, String)],
    workflow: &Workflow,
) -> Result<Map<String, Value>> {
    let mut inputs = Map::new();
    inputs.extend(task.map(|task| ("task".to_owned(), Value::String(task))));
    for (name, word) in words {
        let value = match workflow.main.inputs.get(name) {
            Some(input) => value::parse_argument(word, &input.ty)
                .map_err(|why| anyhow::anyhow!("input '{name}': {why}"))?,
            // The engine says which inputs there are.
            None => Value::String(word.clone()),
        };
        inputs.insert(name.clone(), value);
    }
    Ok(inputs)
}

/// `NAME=SPEC` for one agent, `SPEC` for the rest.
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
                    bail!("two agents play '{name}'; keep one --agent {name}=…");
                }
            }
            None => {
                if rest.replace(absolute(agent)).is_some() {
                    bail!("two agents play the rest; name the agents: --agent NAME=SPEC");
                }
            }
        }
    }
    Ok((named, rest))
}

/// A script is found again from another folder when the run is resumed.
fn absolute(spec: &str) -> String {
    match spec.strip_prefix("script:") {
        Some(file) => match std::path::absolute(file) {
            Ok(path) if !file.is_empty() => format!("script:{}", path.display()),
            _ => spec.to_owned(),
        },
        None => spec.to_owned(),
    }
}

/// Drives a run while somebody may watch and signals may come, then reports.
fn driven<F, R>(engine: &Engine, place: &Place, format: RunFormat, work: F) -> Result<Report>
where
    F: FnOnce(Arc<dyn Watcher>, channel::Receiver<Stop>) -> R,
    R: Future<Output = Result<Report, counterfoil_engine::Error>>,
{
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let lines: Arc<dyn Lines> =
        if format == RunFormat::Human { watch::on_stderr() } else { watch::remarks() };
    let (sender, stop) = channel::channel(Stop::No);
    let report = runtime.block_on(async {
        let told = lines.clone();
        let signals = tokio::spawn(async move {
            if let Err(error) = listen(&sender, &*told).await {
                told.line(&format!("signals cannot be heard: {error}"));
                // Without a sender the receiver would never see another stop; keep it.
                std::future::pending::<()>().await;
            }
        });
        let report = work(lines.watcher(), stop).await;
        signals.abort();
        report
    });
    // A file that somebody else holds open must not keep us.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    lines.close();
    let report = report?;
    match format {
        RunFormat::Human => {
            let claims = engine.ledger(&report.run)?.entries();
            output::words(&tell::ending(
                &report,
                &claims,
                engine.journal().folder(),
                &place.words(),
            ));
        }
        RunFormat::Json => output::data(&(serde_json::to_string_pretty(&report)? + "\n"))?,
        RunFormat::Junit => output::data(&output::junit::of_run(&report))?,
    }
    Ok(report)
}

/// The first signal stops gracefully, the second at once.
async fn listen(sender: &channel::Sender<Stop>, told: &dyn Lines) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    for stop in [Stop::Gently, Stop::AtOnce] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        told.line(match stop {
            Stop::Gently => "stopping: agents are asked to end; once more ends them at once",
            _ => "stopping at once",
        });
        let _ = sender.send(stop);
    }
    std::future::pending().await
}
