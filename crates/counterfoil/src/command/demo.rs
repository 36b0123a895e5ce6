//! The command `counterfoil demo`: runs a pack offline in a new repository. The run is real; only
//! the agents are replaced by a script.

mod contracts;
mod plan;
mod repository;

use super::run::Reporting;
use super::serve::RunDashboard;
use crate::cli::{DemoArgs, RunFormat, StateLocation};
use crate::exit::Exit;
use crate::project::STATE_FOLDER;
use crate::render::{self, PROGRAM, shell_quote};
use crate::report::demo::DemoReport;
use crate::source::{self, Source};
use crate::{input, output, unpack};
use anyhow::{Context, Result, bail};
use counterfoil_agents::agent::Agent;
use counterfoil_agents::script_agent::ScriptAgent;
use counterfoil_contract::text::display_path;
use counterfoil_engine::{AgentAssignments, StartOptions};
use counterfoil_flow::{Budget, Workflow};
use plan::Plan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use plan::FILE;

/// The demo without a workflow.
const CONTRACTS: &str = "contracts";
/// The script of the agents in a pack.
const SCRIPT: &str = "demo/script.yaml";
/// The size limit of a script, and of all demo files of an ejected pack together.
const MAX_BYTES: usize = 16 << 20;
/// The least time before each reply with `--ui`. Scripted agents reply at once: the run would be over
/// before the browser shows its first page. The packs have up to twenty replies, so a run takes half a
/// minute.
const PAUSE: Duration = Duration::from_millis(1500);

pub(crate) fn run(args: &DemoArgs) -> Result<Exit> {
    if args.pack == CONTRACTS {
        if args.keep.is_some() || args.script.is_some() || args.dashboard.ui {
            bail!(
                "`demo contracts` does not run a workflow; --keep, --script and --ui are for packs"
            );
        }
        return contracts::run();
    }
    let pack = PackFiles::find(&args.pack)?;
    let plan = Plan::load(&pack)?;
    let script = match &args.script {
        None => pack.require(SCRIPT)?.to_owned(),
        Some(file) => {
            let (name, bytes) = input::read(file, MAX_BYTES)?;
            if bytes.len() > MAX_BYTES {
                bail!("{name} is larger than {MAX_BYTES} bytes");
            }
            bytes
        }
    };
    // Errors in the pack are found before a repository is created.
    let workflow = super::workflow::load(&pack.source, &[])?;
    let inputs = super::run::inputs(plan.task.clone(), &plan.input_texts(), &workflow)?;
    repository::require_git()?;

    let repo = repository::create_folder(&pack.name, args.keep.as_deref())?;
    let (files, changes) = (pack.files_below("demo/repo"), pack.files_below("demo/changes"));
    repository::initialize(&repo, &files, &changes)?;
    // The state folder is not part of the work tree, so the script is not part of the agents' work.
    // It is in the demo's own repository, so that removing that one leaves nothing.
    let state = repo.join(STATE_FOLDER);
    std::fs::create_dir_all(&state)
        .with_context(|| format!("cannot create {}", display_path(&state)))?;
    unpack::write_files(&state, &[("script.yaml", &script)])?;
    let script_path = state.join("script.yaml");

    let dashboard = RunDashboard::start(&args.dashboard, "demo", &state, Some(&repo))?;

    output::write_stderr(&render::demo::opening(
        &workflow.name,
        &workflow.summary,
        &plan.about,
        output::stderr_line_style(),
    ));
    let pause = if args.dashboard.ui { PAUSE } else { Duration::ZERO };
    let assignments = scripted_agents(&workflow, &script_path, pause)?;
    let home = pack.source.folder().into_iter().collect();
    let options = StartOptions {
        workflow,
        inputs,
        budget: Budget::default(),
        agents: assignments,
        repo: repo.clone(),
        workflow_folders: home,
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let program = shell_quote(&program());
    let location = StateLocation { repo: None, state: Some(state.clone()) };
    let reporting = Reporting {
        location: &location,
        format: RunFormat::Human,
        notify: None,
        story: !args.verbose,
        dashboard: dashboard.as_ref(),
        program: &program,
    };
    let report = super::run::start_run(&state, options, &reporting)
        .with_context(|| format!("the demo in {} failed", display_path(&repo)))?;

    let as_planned = report.outcome == plan.ends;
    let demo = DemoReport {
        program: &program,
        pack: &args.pack,
        repo: &repo,
        state: &state,
        script: &script_path,
        run: &report.run,
        outcome: &report.outcome,
        expected_outcome: &plan.ends,
        suggestions: &plan.look,
    };
    output::write_stderr_as_is(&render::demo::closing(&demo, output::stderr_line_style()));
    if let Some(dashboard) = &dashboard {
        dashboard.stay(&report.run)?;
    }
    Ok(if as_planned { Exit::Success } else { Exit::from_run(&report) })
}

/// Assigns the script to all agents, so that its replies are played in one order.
fn scripted_agents(
    workflow: &Workflow,
    script: &Path,
    pause: Duration,
) -> Result<AgentAssignments> {
    let spec = format!("script:{}", script.display());
    let agent: Arc<dyn Agent> = Arc::new(ScriptAgent::load(script, &[])?.with_pause(pause));
    let assign = |assigned: AgentAssignments, name| assigned.with(name, &spec, agent.clone());
    Ok(workflow.agents.keys().map(String::as_str).fold(AgentAssignments::new(), assign))
}

/// The path that this program was started with, so that printed commands work without an
/// installation and in every folder; otherwise its name.
fn program() -> String {
    let named = std::env::args_os().next().map(PathBuf::from);
    let path = named.filter(|path| path.components().count() > 1);
    let path = path.and_then(|path| std::path::absolute(path).ok());
    path.map_or_else(|| PROGRAM.to_owned(), |path| path.display().to_string())
}

/// The files of a pack, built in or ejected.
struct PackFiles {
    /// The name of the pack, usable in the name of a folder.
    name: String,
    /// The workflow of the pack.
    source: Source,
    /// A description of the location, for messages.
    location: String,
    /// The files by their paths in the pack.
    files: BTreeMap<String, Vec<u8>>,
}

impl PackFiles {
    /// Finds a built-in pack by its name, or an ejected one by its folder.
    fn find(name: &str) -> Result<Self> {
        if let Some(pack) = counterfoil_packs::pack(name) {
            let files = pack.files().into_iter();
            return Ok(Self {
                name: name.to_owned(),
                source: Source::find(Path::new(name))?,
                location: format!("the pack {name}"),
                files: files.map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).collect(),
            });
        }
        let folder = PathBuf::from(name);
        if !folder.is_dir() {
            return Err(source::unknown_pack(
                name,
                &[CONTRACTS],
                "pass a pack, `contracts`, or the folder of an ejected pack",
            ));
        }
        let path = folder.canonicalize().with_context(|| format!("cannot open {name}"))?;
        let folder_name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self {
            name: folder_name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .take(40)
                .collect(),
            source: Source::find(&folder.join("workflow.yaml"))?,
            location: format!("the folder {name}"),
            files: unpack::read_files(&folder.join("demo"), "demo", MAX_BYTES)?,
        })
    }

    /// The content of a required file.
    fn require(&self, path: &str) -> Result<&[u8]> {
        let found = self.files.get(path).map(Vec::as_slice);
        found.with_context(|| format!("{} has no demo: {path} is missing", self.location))
    }

    /// The files below a folder, with paths relative to it.
    fn files_below(&self, folder: &str) -> Vec<unpack::FileToWrite<'_>> {
        let folder = format!("{folder}/");
        let inside = |(path, bytes)| Some((str::strip_prefix(path, &folder)?, bytes));
        self.files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .filter_map(inside)
            .collect()
    }
}
