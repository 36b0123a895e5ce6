//! What resuming a run needs: its lease and state, the facts about lost attempts, pending artifacts
//! and the assigned agents.

use super::{Engine, ResumeOptions};
use crate::artifacts::{self, PendingArtifacts};
use crate::clock::wall;
use crate::driver::no_room;
use crate::error::Error;
use crate::journal::{self, Lease};
use crate::run_inputs::check_inputs;
use counterfoil_agents::agent::Agent;
use counterfoil_agents::assignment::AgentAssignments;
use counterfoil_flow::{
    AssignedAgent, Changes, DECIDE, DecidedBy, Event, History, LostWork, Request, Resumed,
    RunState, Usage, Workflow, artifact_paths, named_limits, resume_facts,
};
use counterfoil_process::sweep;
use counterfoil_worker::{
    RUN_CHECK_MARKER, SCRATCH, add_output_files, files_before_step, output_files,
    put_files_forward, scratch_folder,
};
use counterfoil_workspace::git::recent_writes;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

impl Engine {
    /// Writes the final artifacts of a run that has ended, in case a crash prevented it. If there
    /// is a newer run, its artifacts are not overwritten.
    pub(super) fn republish_final_artifacts(&self, run: &str) -> Result<bool, Error> {
        if self.journal.resolve("last")? != run {
            return Ok(false);
        }
        let run_state = self.run_state(run)?;
        let workflow = self.workflow(&run_state)?;
        let pending = self.pending_artifacts(&workflow, &run_state)?;
        let published = artifacts::publish_final(&workflow, &run_state, pending);
        published.map_err(|error| no_room(Path::new(&run_state.repo), error))
    }

    /// Acquires the lease of a run that has not ended, and loads its state.
    pub(super) fn acquire(&self, run: &str) -> Result<(Lease, RunState), Error> {
        let (lease, run_state) = self.acquire_open_or_ended(run)?;
        match &run_state.ended {
            Some(ended) => {
                let outcome = ended.outcome.name().to_owned();
                lease.release()?;
                Err(Error::NotOpen { run: run.to_owned(), outcome })
            }
            None => Ok((lease, run_state)),
        }
    }

    /// Acquires the lease of a run and loads its state from the latest snapshot and the events
    /// after it.
    pub(super) fn acquire_open_or_ended(&self, run: &str) -> Result<(Lease, RunState), Error> {
        let (lease, acquired) = self.journal.acquire(run)?;
        let loaded = self.load(run, acquired);
        match loaded {
            Ok(run_state) => Ok((lease, run_state)),
            Err(error) => {
                lease.release()?;
                Err(error)
            }
        }
    }

    fn load(&self, run: &str, acquired: journal::AcquiredRun) -> Result<RunState, Error> {
        let mut from = 1;
        let mut run_state = RunState::default();
        // A snapshot that this version cannot read is ignored: the events have the same content.
        if let Some(snapshot) = acquired.snapshot
            && let Ok(read) = serde_json::from_slice::<RunState>(&snapshot.body)
        {
            (run_state, from) = (read, snapshot.seq + 1);
        }
        let mut newer = None;
        self.each_event(run, from, |event, at| {
            if let Event::RunStarted(started) = &event
                && started.decide > DECIDE
            {
                newer = Some(started.decide);
            }
            run_state.apply(&event, at);
        })?;
        if let Some(found) = newer {
            return Err(Error::Newer { run: run.to_owned(), found });
        }
        Ok(run_state)
    }

    /// Marks files in the repository that this program writes for people, such as a receipt. They do
    /// not count as changes when the run is resumed. A process that drives it does not learn of them.
    ///
    /// # Errors
    ///
    /// The list of these files cannot be written.
    pub fn add_output_files(
        &self,
        run: &str,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> std::io::Result<()> {
        add_output_files(self.journal.folder(), run, paths)
    }

    /// The fact with which a run that ended is reopened.
    pub(super) fn reopening(
        &self,
        workflow: &Workflow,
        run_state: &RunState,
        agents: BTreeMap<String, AssignedAgent>,
        changes: Changes,
        by: &DecidedBy,
    ) -> Result<Event, Error> {
        let mut history = History::default();
        self.each_event(&run_state.run, 1, |event, at| history.on_event(workflow, &event, at))?;
        let request = Request { by: by.clone(), changes, agents };
        let now = wall().max(run_state.last_at);
        history
            .reopen(workflow, &request, now)
            .map_err(|why| Error::Reopen { run: run_state.run.clone(), why })
    }

    /// The facts with which a run is resumed. Attempts in flight are lost, and their processes are
    /// killed. Files that were put back for a check of theirs are put forward.
    pub(super) fn resume_events(
        &self,
        workflow: &Workflow,
        run_state: &RunState,
        repo: &Path,
        agents: &AgentAssignments,
        mut resumed: Resumed,
    ) -> Result<Vec<Event>, Error> {
        if resumed.by.is_empty() {
            resumed.by = format!("process {}", std::process::id());
        }
        let mut began: BTreeMap<String, (i64, String)> = BTreeMap::new();
        if !run_state.attempts.is_empty() {
            self.each_event_of(&run_state.run, &["attempt-started"], |event, at| {
                if let Event::AttemptStarted { attempt, agent: Some(agent), .. } = event {
                    began.insert(attempt, (at, agent));
                }
            })?;
        }
        for attempt in run_state.attempts.keys() {
            let marker = format!("{}/{attempt}", run_state.run);
            sweep(&marker);
            sweep(&format!("{marker}{RUN_CHECK_MARKER}"));
        }
        // A patch of a worktree and the list of changed files are to have the work of the agent.
        let (state, run) = (self.journal.folder(), &run_state.run);
        let workspaces = self.workspaces(repo);
        let worktrees = run_state.workspaces().map(|(id, _)| workspaces.folder(run, id));
        put_files_forward(state, run, worktrees.chain([repo.to_owned()]));
        let published = artifact_paths(workflow, run_state);
        let for_people = output_files(state, run);
        let real = repo.canonicalize().unwrap_or_else(|_| repo.to_owned());
        let facts = resume_facts(run_state, resumed, |attempt, frame| {
            // Changes in a worktree of its own are isolated and need no report.
            let since = began.get(attempt).filter(|_| !run_state.has_own_workspace(frame));
            let first = run_state.frames.get(frame).and_then(|frame| frame.first.as_ref());
            let before = || files_before_step(state, run, &first?.attempt, repo);
            let mut changed = since
                .map(|(since, _)| recent_writes::written_since(repo, *since, before))
                .unwrap_or_default();
            changed
                .retain(|path| !published.contains(path) && !for_people.contains(&real.join(path)));
            let agent = began.get(attempt).and_then(|(_, agent)| agents.get(agent));
            let usage = agent.map(|agent| self.lost_usage(run_state, attempt, frame, &*agent));
            LostWork { changed, usage: usage.unwrap_or_default() }
        });
        // The attempts that used it are gone.
        let _ = std::fs::remove_dir_all(state.join(SCRATCH).join(run));
        Ok(facts)
    }

    /// What a lost attempt used that no event counts, by the record that its program kept.
    fn lost_usage(
        &self,
        run_state: &RunState,
        attempt: &str,
        frame: &str,
        agent: &dyn Agent,
    ) -> Usage {
        let past = run_state.frames.get(frame).and_then(|frame| frame.conversation.as_ref());
        let Some(past) = past else { return Usage::default() };
        let scratch = scratch_folder(self.journal.folder(), &run_state.run, attempt);
        let Some(used) = agent.recorded_usage(&past.id, &scratch) else { return Usage::default() };
        Usage {
            input_tokens: used.input_tokens.saturating_sub(past.usage.input_tokens),
            output_tokens: used.output_tokens.saturating_sub(past.usage.output_tokens),
            cost_usd: (used.cost_usd - past.usage.cost_usd).max(0.0),
            wall_ms: 0,
        }
    }

    /// The artifacts of the last turn, which a crash may have left unwritten.
    pub(super) fn pending_artifacts(
        &self,
        workflow: &Workflow,
        run_state: &RunState,
    ) -> Result<PendingArtifacts, Error> {
        let (mut pending, mut state_then) = (PendingArtifacts::default(), RunState::default());
        let in_machines = workflow.machines.values().any(|machine| !machine.artifacts.is_empty());
        let per_event =
            in_machines || workflow.main.artifacts.iter().any(|artifact| artifact.append);
        // Artifacts of the whole run only need to know whether the last turn changed something.
        // Artifacts of single events need the state right after each event.
        let from = if per_event {
            1
        } else {
            run_state.seq.saturating_sub(PendingArtifacts::LOOKBACK).max(1)
        };
        if !per_event && workflow.main.artifacts.is_empty() {
            return Ok(pending);
        }
        self.each_event(&run_state.run, from, |event, at| {
            state_then.apply(&event, at);
            pending.on_event(workflow, &state_then, &event, at, run_state.last_at);
        })?;
        Ok(pending)
    }

    /// The programs assigned to the agents of a run that is resumed: those of before, with the
    /// changes in the options. A script continues after the replies that it has already given.
    pub(super) fn reassign_agents(
        &self,
        workflow: &Workflow,
        run_state: &RunState,
        options: &ResumeOptions,
    ) -> Result<AgentAssignments, Error> {
        let mut named: BTreeMap<String, String> = run_state
            .agents
            .iter()
            .map(|(name, assigned)| (name.clone(), assigned.spec.clone()))
            .collect();
        for (name, spec) in &mut named {
            if let Some(new) = options.named.get(name).or(options.rest.as_ref()) {
                spec.clone_from(new);
            }
        }
        let mut scripts = PlayedScripts::default();
        if named.values().any(|spec| script(spec).is_some()) {
            self.each_event(&run_state.run, 1, |event, _| scripts.on_event(event))?;
        }
        let PlayedScripts { specs, played, answered, .. } = scripts;
        let played: BTreeMap<String, Vec<u32>> = named
            .values()
            .filter_map(|spec| Some((spec.clone(), played.get(script(spec)?)?.clone())))
            .collect();
        let environment = &options.environment;
        let agents = AgentAssignments::from_specs(workflow, &named, None, environment, &played)?;
        // The answers of another script say nothing about this one.
        let same = specs
            .values()
            .filter_map(|spec| script(spec))
            .eq(named.values().filter_map(|spec| script(spec)));
        for (question, answer) in answered.into_iter().filter(|_| same) {
            // Earlier answers of the script were refused.
            while agents.answer(&question).is_some_and(|refused| refused != answer) {}
        }
        Ok(agents)
    }
}

/// The name of the script that a spec assigns. A script may have been moved with its folder.
fn script(spec: &str) -> Option<&OsStr> {
    Path::new(spec.strip_prefix("script:")?).file_name()
}

/// Which replies and answers of its scripts a run has used.
#[derive(Debug, Default)]
struct PlayedScripts {
    /// What is assigned to each agent.
    specs: BTreeMap<String, String>,
    /// The script that plays each attempt.
    attempts: BTreeMap<String, OsString>,
    /// The replies by their script.
    played: BTreeMap<OsString, Vec<u32>>,
    /// The questions that the scripts answered, with the answers.
    answered: Vec<(String, String)>,
}

impl PlayedScripts {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::RunStarted(started) => self.assign(started.agents),
            Event::RunResumed(resumed) => self.assign(resumed.agents),
            Event::RunReopened(reopened) => self.assign(reopened.agents),
            Event::AttemptStarted { attempt, agent: Some(agent), .. } => {
                if let Some(script) = self.specs.get(&agent).and_then(|spec| script(spec)) {
                    self.attempts.insert(attempt, script.to_owned());
                }
            }
            Event::RepairAsked { attempt, reply, .. } => self.play(&attempt, reply.played),
            Event::AttemptEnded(ended) => {
                self.play(&ended.attempt, ended.reply.and_then(|reply| reply.played));
            }
            Event::Answered { question, answer, by, from: None } if by == "script" => {
                self.answered.push((question, answer));
            }
            _ => {}
        }
    }

    fn assign(&mut self, agents: BTreeMap<String, AssignedAgent>) {
        for (name, AssignedAgent { spec, .. }) in agents {
            let before = self.specs.insert(name, spec.clone());
            if before.is_some_and(|before| script(&before) != script(&spec)) {
                self.answered.clear();
            }
        }
    }

    fn play(&mut self, attempt: &str, reply: Option<u32>) {
        if let (Some(reply), Some(script)) = (reply, self.attempts.get(attempt)) {
            self.played.entry(script.clone()).or_default().push(reply);
        }
    }
}

/// What changes, if the workflow has these inputs and limits.
pub(super) fn checked_changes(workflow: &Workflow, changes: &Changes) -> Result<Changes, Error> {
    check_inputs(workflow, &changes.inputs)?;
    let limits = named_limits(workflow, &changes.limits).map_err(Error::Limits)?;
    Ok(Changes { limits, ..changes.clone() })
}
