//! What to do next: a pure function from a checked workflow and what is known of a run to commands.
//!
//! No clock, no I/O, no randomness. Every command that changes the run is an event to be recorded;
//! the others are work for an engine, which records what came of it. For each frame that waits for
//! a decision there is at most one command, in the order of the frames' names.

mod builtin;
mod enter;
mod transitions;
mod workspace;

pub use builtin::{ChangesWork, CommitWork, ReadWork};
pub use workspace::{WorkspaceOp, WorkspaceOpKind};

use crate::event::{Cause, DOES_WITHOUT, Event, Outcome};
use crate::fan_out::Next;
use crate::problem::Problem;
use crate::run_state::{Frame, Phase, RunState, SAME_AGAIN, Stopping, Workspace, split};
use crate::scope::EvalScope;
use crate::step_rule::BoundRule;
use crate::workflow::{
    Access, Body, Bounds, Dispatch, End, FailureKind, State, Step, Target, Transition, Workflow,
};
use counterfoil_contract::{ClaimPolicy, Contract, HeldClaim};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What an engine is to do.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Made and taken apart at once, never kept in numbers.
pub enum Command {
    /// Record this.
    Record(Event),
    /// Record that an attempt starts, then run it.
    StartAttempt(Box<AttemptRequest>),
    /// See whether files are there, and record what is missing.
    CheckFiles(FileCheck),
    /// See to a workspace, and record what came of it.
    Workspace(WorkspaceOp),
    /// Stop this attempt, and record how it ended.
    StopAttempt {
        /// Which.
        attempt: String,
    },
}

/// Files that must exist before a step can start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCheck {
    /// The frame that needs them.
    pub frame: String,
    /// The workspace they should be in; the repository, if there is none.
    pub workspace: Option<String>,
    /// Paths in it.
    pub paths: Vec<String>,
    /// Not before this time.
    pub not_before: Option<i64>,
}

/// An attempt to start.
#[derive(Clone, Debug)]
pub struct AttemptRequest {
    /// Its id.
    pub attempt: String,
    /// The frame it works for.
    pub frame: String,
    /// State, or state, item key, inner state.
    pub path: Vec<String>,
    /// Which attempt of this path, from 1.
    pub n: u32,
    /// Not before this time.
    pub not_before: Option<i64>,
    /// The hash of the bundle that has the workflow and the contracts.
    pub bundle: String,
    /// The machine that the frame runs; the main machine has the empty name.
    pub machine: String,
    /// The state of that machine.
    pub state: String,
    /// What to do.
    pub work: AttemptWork,
}

impl AttemptRequest {
    /// The event that records it.
    pub fn event(&self) -> Event {
        let agent = match &self.work {
            AttemptWork::Agent(work) => Some(work.agent.clone()),
            _ => None,
        };
        let contract = match &self.work {
            AttemptWork::Agent(work) => Some(&work.contract),
            AttemptWork::Command(work) => work.output.as_ref(),
            AttemptWork::Read(work) => work.contract.as_ref(),
            AttemptWork::Changes(_) | AttemptWork::Commit(_) => None,
        };
        Event::AttemptStarted {
            attempt: self.attempt.clone(),
            frame: self.frame.clone(),
            path: self.path.clone(),
            agent,
            n: self.n,
            contract: contract.map(|contract| contract.reference().to_owned()),
            builtin: self.work.builtin(),
        }
    }
}

/// What an attempt does.
#[derive(Clone, Debug)]
pub enum AttemptWork {
    /// An agent works.
    Agent(Box<AgentWork>),
    /// A command runs.
    Command(Box<CommandWork>),
    /// A file is read.
    Read(Box<ReadWork>),
    /// What changed is looked at.
    Changes(Box<ChangesWork>),
    /// Something is committed.
    Commit(Box<CommitWork>),
}

impl AttemptWork {
    /// The workspace it is done in; the repository, if there is none.
    pub fn workspace(&self) -> Option<&str> {
        match self {
            Self::Agent(work) => work.workspace.as_deref(),
            Self::Command(work) => work.workspace.as_deref(),
            Self::Read(work) => work.workspace.as_deref(),
            Self::Changes(work) => work.workspace.as_deref(),
            Self::Commit(work) => work.workspace.as_deref(),
        }
    }
}

/// An agent's work.
#[derive(Clone, Debug)]
pub struct AgentWork {
    /// Who.
    pub agent: String,
    /// What it is asked, with what it must hand back.
    pub prompt: String,
    /// What it must hand back.
    pub contract: Arc<Contract>,
    /// What it may do to the workspace.
    pub access: Access,
    /// The workspace it works in; the repository, if there is none.
    pub workspace: Option<String>,
    /// The claims that its result is held to; none of them is ignored.
    pub claims: Vec<HeldClaim>,
    /// What its result must satisfy beside its contract.
    pub rules: Vec<BoundRule>,
    /// Where it may write, as globs; anywhere, if there is no list.
    pub writes: Option<Vec<String>>,
    /// Where it may not, as globs, beside what is never written.
    pub protect: Vec<String>,
    /// What follows when it wrote what it may not; nothing is looked at if that is ignored.
    pub protected: ClaimPolicy,
    /// What follows when it removed, skipped or emptied tests.
    pub tests: ClaimPolicy,
    /// How long, and how often the result is asked for again.
    pub bounds: Bounds,
}

/// A command's work.
#[derive(Clone, Debug)]
pub struct CommandWork {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What it reads.
    pub input: String,
    /// What its output must satisfy.
    pub output: Option<Arc<Contract>>,
    /// The workspace it runs in; the repository, if there is none.
    pub workspace: Option<String>,
    /// Where it runs, in the workspace.
    pub cwd: Option<String>,
    /// How long it may take.
    pub timeout_ms: u64,
}

/// The first wait after trouble of this kind.
fn first_wait_ms(failure: FailureKind) -> u64 {
    match failure {
        FailureKind::Transport => 1_000,
        FailureKind::Limit => 30_000,
        _ => 0,
    }
}

/// Waits double up to this.
const MAX_WAIT_MS: u64 = 60 * 60 * 1000;
/// A limit is not waited for longer than this at once.
const MAX_RESET_MS: i64 = 24 * 60 * 60 * 1000;

/// What to do next.
pub fn decide(workflow: &Workflow, run: &RunState) -> Vec<Command> {
    if run.ended.is_some() || run.seq == 0 {
        return Vec::new();
    }
    if let Some(stopping) = &run.stopping {
        return winding_down(run, stopping);
    }
    if run.stopped.is_some() {
        return run
            .attempts
            .keys()
            .map(|attempt| Command::StopAttempt { attempt: attempt.clone() })
            .collect();
    }
    if run.frames.is_empty() {
        return vec![Command::Record(enter::first(workflow, run))];
    }
    let mut commands = Vec::new();
    for id in &run.ready {
        let Some(frame) = run.frames.get(id) else { continue };
        let command = match one(workflow, run, id, frame) {
            Ok(command) => command.and_then(|command| workspace::gate(run, id, frame, command)),
            Err(reason) => Some(Command::Record(Event::StepFailed { frame: id.clone(), reason })),
        };
        if matches!(command, Some(Command::StartAttempt(_)))
            && let Some(what) = used_up(run)
        {
            return vec![Command::Record(Event::BudgetReached { what })];
        }
        commands.extend(command);
    }
    commands.extend(workspace::left(run));
    commands
}

/// Ending from outside: everything in flight is stopped first, and what was done in workspaces is
/// put aside.
fn winding_down(run: &RunState, stopping: &Stopping) -> Vec<Command> {
    if !run.attempts.is_empty() {
        return run
            .attempts
            .keys()
            .map(|attempt| Command::StopAttempt { attempt: attempt.clone() })
            .collect();
    }
    let drops = workspace::all(run);
    if !drops.is_empty() {
        return drops;
    }
    let (outcome, reason) = match stopping {
        Stopping::Budget(what) => (Outcome::Budget, what.clone()),
        Stopping::Cancel(by) => (Outcome::Cancelled, format!("cancelled by {by}")),
        Stopping::Artifact(why) => (Outcome::Blocked, why.clone()),
    };
    let reason = workspace::kept(run, &reason);
    vec![Command::Record(Event::RunEnded { outcome, cause: None, reason, state: run.place() })]
}

/// The budget that is used up, in words.
pub(crate) fn used_up(run: &RunState) -> Option<String> {
    let (budget, usage) = (&run.budget, &run.usage);
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    if let Some(most) = budget.tokens.filter(|most| tokens >= *most) {
        return Some(format!("{tokens} of {most} tokens are used"));
    }
    if let Some(most) = budget.cost_usd.filter(|most| usage.cost_usd >= *most) {
        return Some(format!("{:.4} of {most:.4} USD are spent", usage.cost_usd));
    }
    if let Some(most) = budget.time_ms.filter(|most| usage.wall_ms >= *most) {
        return Some(format!("{} of {most} ms are used", usage.wall_ms));
    }
    if let Some(most) = budget.iterations.filter(|most| run.iterations > *most) {
        return Some(format!("iteration {} would be more than {most}", run.iterations));
    }
    budget
        .attempts
        .filter(|most| run.started >= *most)
        .map(|most| format!("{} of {most} attempts were started", run.started))
}

/// The command for one frame; the error is a fault of the values that nothing answers.
fn one(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
) -> Result<Option<Command>, String> {
    let Some(machine) = workflow.machine(&frame.machine) else {
        return Err(format!("the workflow has no sub-workflow '{}'", frame.machine));
    };
    let Some(state) = machine.states.get(&frame.state) else {
        return Err(format!("the workflow has no state '{}'", frame.state));
    };
    let item_agent = item_agent(workflow, run, frame);
    match &frame.phase {
        Phase::Entered { not_before, context } => {
            if let Some(command) = workspace::before(workflow, run, id, frame, state) {
                return Ok(Some(command));
            }
            let at =
                enter::At { workflow, run, id, frame, not_before: *not_before, context: *context };
            match item_agent {
                Some(dispatch) => at.dispatch(dispatch, state).map(Some),
                None => at.enter(state).map(Some),
            }
        }
        Phase::Resulted(value) if item_agent.is_some() => {
            Ok(Some(end(id, frame, End::Done, None, String::new(), Some(value.clone()))))
        }
        Phase::Resulted(value) => {
            transitions::next(workflow, run, id, frame, state, value).map(Some)
        }
        Phase::Failed(problem) => failed_step(workflow, run, id, frame, state, problem).map(Some),
        Phase::Broken(reason) => Ok(Some(end(id, frame, End::Failed, None, reason.clone(), None))),
        Phase::Fanned(fan) => Ok(match fan.next() {
            Next::Start(at) => {
                Some(Command::Record(enter::item(workflow, run, id, frame, state, &fan.items[at])?))
            }
            Next::Join => Some(Command::Record(Event::FannedIn { frame: id.to_owned() })),
            Next::Wait => None,
        }),
        Phase::Asking => {
            let open =
                run.questions.iter().filter(|(_, one)| one.frame == id && one.answer.is_none());
            let questions: Vec<String> = open.map(|(id, _)| id.clone()).collect();
            Ok(Some(Command::Record(Event::QuestionsCancelled { frame: id.to_owned(), questions })))
        }
        Phase::Running { .. } | Phase::Called => Ok(None),
    }
}

/// The agent that a frame runs, if it is an item that does nothing else. Its parent says so: an
/// item that runs a sub-workflow can be in a fan-out of its own.
fn item_agent<'w>(workflow: &'w Workflow, run: &RunState, frame: &Frame) -> Option<&'w Dispatch> {
    frame.item.as_ref()?;
    let parent = run.frames.get(frame.parent.as_ref()?)?;
    match &workflow.machine(&parent.machine)?.states.get(&parent.state)?.kind {
        Step::Each(each) => match &each.body {
            Body::Agent(dispatch) => Some(dispatch),
            Body::Machine { .. } => None,
        },
        _ => None,
    }
}

/// The end of a frame; of the run, if it is the first.
fn end(
    id: &str,
    frame: &Frame,
    outcome: End,
    cause: Option<Cause>,
    reason: String,
    value: Option<Value>,
) -> Command {
    Command::Record(if frame.parent.is_none() {
        Event::RunEnded { outcome: outcome.into(), cause, reason, state: frame.state.clone() }
    } else {
        Event::FrameEnded { frame: id.to_owned(), outcome, cause, reason, value, conflict: false }
    })
}

fn failed_step(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
    problem: &Problem,
) -> Result<Command, String> {
    let item_agent = item_agent(workflow, run, frame);
    let only_ends = frame.workspace.as_ref().is_some_and(Workspace::ends_its_frame);
    let dispatch = item_agent.or(match &state.kind {
        Step::Agent(dispatch) => Some(dispatch),
        _ => None,
    });
    if let Some(dispatch) = dispatch.filter(|_| !only_ends)
        && let Some(retry) = retry(run, id, frame, dispatch, problem)
    {
        return Ok(Command::Record(retry));
    }
    let on = state.on.get(&problem.failure).or_else(|| state.on.get(&FailureKind::Any));
    let on = on.filter(|_| item_agent.is_none() && !only_ends);
    let streak = frame.requests.get(&format!("{}!", frame.state));
    // A way on that counts nothing does without the result: nobody waits for it to become right.
    let goes_round = run.decide < DOES_WITHOUT
        || on.is_none_or(|transition| counts(workflow, frame, transition));
    // Only an agent can do better; what the engine reads or runs is as it is.
    let goes_round = goes_round && (dispatch.is_some() || run.decide < DOES_WITHOUT);
    if let Some(streak) = streak.filter(|streak| goes_round && streak.times >= SAME_AGAIN) {
        let what = match problem.failure {
            FailureKind::Contract => Some("the result was wrong"),
            FailureKind::Claim => Some("the result did not agree with what was observed"),
            _ => None,
        };
        if let Some(what) = what {
            let reason = format!("{what} in the same way {} times in a row", streak.times);
            return Ok(end(id, frame, End::Exhausted, Some(Cause::NoProgress), reason, None));
        }
    }
    if let Some(transition) = on {
        return transitions::on(workflow, run, id, frame, state, transition, problem);
    }
    let outcome = match problem.failure {
        FailureKind::Blocked => End::Blocked,
        FailureKind::Exhausted => End::Exhausted,
        _ => End::Failed,
    };
    let cause = problem.cause.or(Cause::of(problem.failure));
    let mut ended = end(id, frame, outcome, cause, problem.reason.clone(), None);
    if let Command::Record(Event::FrameEnded { conflict, .. }) = &mut ended {
        // The frame around it is told so if the whole of this one was to be folded back.
        let whole = item_agent.is_some() || only_ends;
        *conflict = problem.failure == FailureKind::Conflict && whole;
    }
    Ok(ended)
}

/// Whether a transition counts a limit, itself or by the state it leads to.
fn counts(workflow: &Workflow, frame: &Frame, transition: &Transition) -> bool {
    let states = workflow.machine(&frame.machine).map(|machine| &machine.states);
    let counted = |name: &String| {
        states.and_then(|states| states.get(name)).is_some_and(|state| state.counts.is_some())
    };
    transition.counts.is_some()
        || match &transition.go {
            Target::State(name) => counted(name),
            Target::Computed(_, names) => names.iter().any(counted),
        }
}

fn retry(
    run: &RunState,
    id: &str,
    frame: &Frame,
    dispatch: &Dispatch,
    problem: &Problem,
) -> Option<Event> {
    let most = dispatch.bounds.retries.get(&problem.failure).copied().unwrap_or(0);
    let done = frame.tries.get(&problem.failure).copied().unwrap_or(0);
    if done >= most {
        return None;
    }
    let backs_off = run.agents.get(&dispatch.agent).is_none_or(|player| player.backs_off);
    let after_ms = match problem.reset_at {
        _ if !backs_off => 0,
        Some(reset) => {
            u64::try_from(reset.saturating_sub(run.last_at).clamp(0, MAX_RESET_MS)).unwrap_or(0)
        }
        None => {
            let first = first_wait_ms(problem.failure);
            first.saturating_mul(1 << done.min(20)).min(MAX_WAIT_MS)
        }
    };
    let not_before = run.last_at.saturating_add(i64::try_from(after_ms).unwrap_or(i64::MAX));
    Some(Event::RetryPlanned {
        frame: id.to_owned(),
        failure: problem.failure,
        retry: done + 1,
        after_ms,
        not_before,
    })
}

/// The path of a step: the frame's, and its state unless the frame is an item that runs an agent.
fn path_of(workflow: &Workflow, run: &RunState, id: &str, frame: &Frame) -> Vec<String> {
    let mut path = split(id);
    if item_agent(workflow, run, frame).is_none() {
        path.push(frame.state.clone());
    }
    path
}

/// What a frame can see: an item that runs an agent sees what its parent does, and the item.
fn eval_scope<'a>(
    workflow: &'a Workflow,
    run: &'a RunState,
    frame: &'a Frame,
    state: &'a State,
) -> Result<EvalScope<'a>, String> {
    let lost = || "a frame has lost its parent".to_owned();
    if item_agent(workflow, run, frame).is_none() {
        return EvalScope::new(workflow, run, frame).ok_or_else(lost);
    }
    let parent =
        frame.parent.as_ref().and_then(|parent| run.frames.get(parent)).ok_or_else(lost)?;
    let scope = EvalScope::new(workflow, run, parent).ok_or_else(lost)?;
    let Step::Each(each) = &state.kind else { return Ok(scope) };
    Ok(match frame.inputs.get(&each.listing.bind) {
        Some(item) => scope.with(&each.listing.bind, item, &each.listing.item),
        None => scope,
    })
}

/// What a machine begins with.
fn beginning(
    machine: &crate::workflow::Machine,
    given: &Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let inputs = machine.inputs.iter().map(|(name, input)| {
        let value =
            given.get(name).cloned().or_else(|| input.default.clone()).unwrap_or(Value::Null);
        (name.clone(), value)
    });
    let variables =
        machine.variables.iter().map(|(name, variable)| (name.clone(), variable.initial.clone()));
    (inputs.collect(), variables.collect())
}
