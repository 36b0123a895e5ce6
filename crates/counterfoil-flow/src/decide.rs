//! Decides what to do next: a pure function from a checked workflow and the state of a run to
//! commands.
//!
//! It uses no clock, no I/O and no random numbers. Every command that changes the run is an event
//! to record; the others are work for a driver, which reports the results. Each frame that needs a
//! decision gets at most one command, in the order of frame ids.

mod builtin;
mod checks;
mod enter;
mod observed;
mod retry;
mod transitions;
mod work;
mod workspace;

pub use builtin::{ChangesWork, CommitWork, ReadWork};
pub use checks::ChecksWork;
pub use work::{
    AgentWork, AttemptRequest, AttemptWork, CommandWork, EarlierAttempt, FileCheck, QuotedValue,
};
pub use workspace::{WorkspaceOp, WorkspaceOpKind};

use crate::amount::{dollars, duration};
use crate::event::{CONTINUES_WITHOUT_RESULT, Cause, Event, Outcome};
use crate::fan_out::Next;
use crate::problem::Problem;
use crate::run_state::{Frame, MAX_REPEATS, Phase, RunState, Stopping, Workspace, split};
use crate::scope::EvalScope;
use crate::workflow::{
    Body, BudgetPart, Dispatch, End, FailureKind, Limit, Machine, State, Step, Target, Transition,
    Workflow,
};
use serde_json::{Map, Value};

/// A command to the driver.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Short-lived and never stored in bulk.
pub enum Command {
    /// Record this event.
    Record(Event),
    /// Record that an attempt starts, then run it.
    StartAttempt(Box<AttemptRequest>),
    /// Check whether files exist, and record the missing ones.
    CheckFiles(FileCheck),
    /// Perform a workspace operation, and record the result.
    Workspace(WorkspaceOp),
    /// Stop this attempt, and record how it ended.
    StopAttempt {
        /// The id of the attempt.
        attempt: String,
    },
}

/// Decides what to do next.
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
        return vec![Command::Record(enter::open_main(workflow, run))];
    }
    let mut commands = Vec::new();
    for id in &run.ready {
        let Some(frame) = run.frames.get(id) else { continue };
        let command = match command_for_frame(workflow, run, id, frame) {
            Ok(command) => {
                command.and_then(|command| workspace::settle_workspace(run, id, frame, command))
            }
            Err(reason) => Some(Command::Record(Event::StepFailed { frame: id.clone(), reason })),
        };
        if matches!(&command, Some(Command::StartAttempt(start)) if start.work.is_budgeted())
            && let Some(what) = used_up(run)
        {
            return vec![Command::Record(Event::BudgetReached { what })];
        }
        commands.extend(command);
    }
    commands.extend(workspace::discard_abandoned(run));
    commands
}

/// Ends a run for a reason outside of the workflow: stops the attempts in flight, then discards the
/// workspaces and keeps their work as patches.
fn winding_down(run: &RunState, stopping: &Stopping) -> Vec<Command> {
    if !run.attempts.is_empty() {
        return run
            .attempts
            .keys()
            .map(|attempt| Command::StopAttempt { attempt: attempt.clone() })
            .collect();
    }
    let drops = workspace::discard_all(run);
    if !drops.is_empty() {
        return drops;
    }
    let (outcome, reason) = match stopping {
        Stopping::Budget(what) => (Outcome::Budget, what.clone()),
        // The same in runs of every version: the event that is recorded has the reason, and nothing
        // is decided by it.
        Stopping::Cancel(by) if run.interrupted => {
            (Outcome::Cancelled, format!("interrupted, and then cancelled by {by}"))
        }
        Stopping::Cancel(by) => (Outcome::Cancelled, format!("cancelled by {by}")),
        Stopping::Artifact(why) => (Outcome::Blocked, why.clone()),
    };
    let reason = workspace::with_patches(run, &reason);
    vec![Command::Record(Event::RunEnded {
        outcome,
        cause: None,
        reason,
        state: run.current_state(),
        exit: None,
    })]
}

/// The budget that is used up, as text.
pub(crate) fn used_up(run: &RunState) -> Option<String> {
    used_up_part(run).map(|(_, what)| what)
}

/// The part of the budget that is used up, and the same as text.
pub fn used_up_part(run: &RunState) -> Option<(BudgetPart, String)> {
    let (budget, usage) = (&run.budget, &run.usage);
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    if let Some(most) = budget.tokens.filter(|most| tokens >= *most) {
        return Some((BudgetPart::Tokens, format!("{tokens} of {most} tokens are used")));
    }
    if let Some(most) = budget.cost_usd.filter(|most| usage.cost_usd >= *most) {
        let what = format!("{} of {} are spent", dollars(usage.cost_usd), dollars(most));
        return Some((BudgetPart::Cost, what));
    }
    if let Some(most) = budget.time_ms.filter(|most| usage.wall_ms >= *most) {
        return Some((BudgetPart::Time, {
            format!("{} of {} are used", duration(usage.wall_ms), duration(most))
        }));
    }
    if let Some(most) = budget.iterations.filter(|most| run.iterations > *most) {
        let what = format!("iteration {} would be more than {most}", run.iterations);
        return Some((BudgetPart::Iterations, what));
    }
    let most = budget.attempts.filter(|most| run.started >= *most)?;
    Some((BudgetPart::Attempts, format!("{} of {most} attempts were started", run.started)))
}

/// The maximum of a limit, and the maximum over all its keys. A person may have changed it.
fn maxima(
    run: &RunState,
    machine: &Machine,
    name: &str,
    limit: &Limit,
    scope: &EvalScope<'_>,
) -> Result<(u64, u64), String> {
    match run.limits.get(&limit_key(&machine.name, name)) {
        Some(max) => Ok((*max, limit.total.max(*max))),
        None => Ok((scope.term(&limit.max)?.as_u64().unwrap_or(0), limit.total)),
    }
}

/// The name of a limit among the limits of all machines.
pub(crate) fn limit_key(machine: &str, limit: &str) -> String {
    if machine.is_empty() { limit.to_owned() } else { format!("{machine}.{limit}") }
}

/// The command for one frame. An error is a failure of the step that no transition handles.
fn command_for_frame(
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
    if run.waits_for_workspace(frame) {
        // Its own is opened here; that of a parent frame is awaited.
        return Ok(workspace::open_planned(id, frame));
    }
    match &frame.phase {
        Phase::Entered { not_before, context } => {
            if let Some(command) = checks::at_base(workflow, run, id, frame) {
                return Ok(Some(command));
            }
            if let Some(command) = workspace::open_if_needed(workflow, run, id, frame, state) {
                return Ok(Some(command));
            }
            let at = enter::Entry {
                workflow,
                run,
                id,
                frame,
                not_before: *not_before,
                context: *context,
            };
            match item_agent {
                Some(dispatch) => at.dispatch(dispatch, state).map(Some),
                None => at.enter(state).map(Some),
            }
        }
        Phase::Resulted(value) if item_agent.is_some() => {
            Ok(Some(end(id, frame, End::Done, None, String::new(), Some(value.clone()))))
        }
        Phase::Resulted(_) if checks::are_due(frame, state) => {
            Ok(Some(checks::after_step(workflow, run, id, frame, state)))
        }
        Phase::Resulted(value) => {
            transitions::next(workflow, run, id, frame, state, value).map(Some)
        }
        Phase::Failed(problem) => failed_step(workflow, run, id, frame, state, problem).map(Some),
        Phase::Broken(reason) => Ok(Some(end(id, frame, End::Failed, None, reason.clone(), None))),
        Phase::Fanned(fan) => Ok(match fan.next() {
            Next::Start(at) => Some(Command::Record(enter::open_item(
                workflow,
                run,
                id,
                frame,
                state,
                &fan.items[at],
            )?)),
            Next::Join => Some(Command::Record(Event::FannedIn { frame: id.to_owned() })),
            Next::Wait => None,
        }),
        Phase::Asking => {
            let open =
                run.questions.iter().filter(|(_, one)| one.frame == id && one.answer.is_none());
            let questions: Vec<String> = open.map(|(id, _)| id.clone()).collect();
            Ok(Some(Command::Record(Event::QuestionsCancelled { frame: id.to_owned(), questions })))
        }
        Phase::Running { .. } | Phase::Checking { .. } | Phase::Called => Ok(None),
    }
}

/// The agent that a frame runs, if it is an item of a fan-out over an agent. This depends on the
/// parent: an item that runs a sub-workflow can itself be in a fan-out state.
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

/// Ends a frame, or the run if it is the main frame.
fn end(
    id: &str,
    frame: &Frame,
    outcome: End,
    cause: Option<Cause>,
    reason: String,
    value: Option<Value>,
) -> Command {
    Command::Record(if frame.parent.is_none() {
        let state = frame.state.clone();
        Event::RunEnded { outcome: outcome.into(), cause, reason, state, exit: None }
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
        && let Some(retry) = retry::planned(run, id, frame, dispatch, problem)
    {
        return Ok(Command::Record(retry));
    }
    let on = state.on.get(&problem.failure).or_else(|| state.on.get(&FailureKind::Any));
    let on = on.filter(|_| item_agent.is_none() && !only_ends);
    let streak = frame.requests.get(&format!("{}!", frame.state));
    // A transition that counts no limit continues without the result; no retry of it is expected.
    let is_loop = run.decide < CONTINUES_WITHOUT_RESULT
        || on.is_none_or(|transition| counts(workflow, frame, transition));
    // Only an agent can correct its result; built-in steps and commands cannot.
    let is_loop = is_loop && (dispatch.is_some() || run.decide < CONTINUES_WITHOUT_RESULT);
    if let Some(streak) = streak.filter(|streak| is_loop && streak.times >= MAX_REPEATS) {
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
        return transitions::on_failure(workflow, run, id, frame, state, transition, problem);
    }
    let outcome = match problem.failure {
        FailureKind::Blocked => End::Blocked,
        FailureKind::Exhausted => End::Exhausted,
        _ => End::Failed,
    };
    let cause = problem.cause.or(Cause::from_failure(problem.failure));
    let mut ended = end(id, frame, outcome, cause, problem.reason.clone(), None);
    if let Command::Record(Event::FrameEnded { conflict, .. }) = &mut ended {
        // The parent frame handles the conflict if this whole frame was to be merged.
        let whole = item_agent.is_some() || only_ends;
        *conflict = problem.failure == FailureKind::Conflict && whole;
    }
    Ok(ended)
}

/// Whether a transition counts a limit, itself or through its target state.
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

/// The path of a step: the path of the frame, and its state unless the frame is an item that runs
/// an agent.
fn path_of(workflow: &Workflow, run: &RunState, id: &str, frame: &Frame) -> Vec<String> {
    let mut path = split(id);
    if item_agent(workflow, run, frame).is_none() {
        path.push(frame.state.clone());
    }
    path
}

/// The values that a frame can read. An item that runs an agent reads those of its parent, and the
/// item.
fn eval_scope<'a>(
    workflow: &'a Workflow,
    run: &'a RunState,
    frame: &'a Frame,
    state: &'a State,
) -> Result<EvalScope<'a>, String> {
    let no_parent = || "the frame has no parent".to_owned();
    if item_agent(workflow, run, frame).is_none() {
        return EvalScope::new(workflow, run, frame).ok_or_else(no_parent);
    }
    let parent =
        frame.parent.as_ref().and_then(|parent| run.frames.get(parent)).ok_or_else(no_parent)?;
    let scope = EvalScope::new(workflow, run, parent).ok_or_else(no_parent)?;
    let Step::Each(each) = &state.kind else { return Ok(scope) };
    Ok(match frame.inputs.get(&each.listing.bind) {
        Some(item) => scope.with(&each.listing.bind, item, &each.listing.item),
        None => scope,
    })
}

/// The inputs and variables that a machine starts with.
fn initial_values(
    machine: &Machine,
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
