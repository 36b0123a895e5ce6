//! One turn of a run: it takes facts and returns events to record and work to do. Every driver uses
//! this function, live and in a simulation. Drivers differ in how they store events and do the
//! work.

use crate::artifact::{Rendering, rendered_by};
use crate::decide::{AttemptRequest, Command, FileCheck, WorkspaceOp, decide, used_up};
use crate::event::{Event, Resumed, Usage};
use crate::run_state::{Phase, RunState};
use crate::workflow::Workflow;
use serde::Serialize;

/// The checker bounds every cycle, so a turn with more steps than this is a bug.
const MAX_STEPS: usize = 100_000;

/// The result of a turn. The driver records the events in one transaction, then does the work.
#[derive(Debug, Default, Serialize)]
pub struct Turn {
    /// The events to record, with their times in milliseconds since 1970.
    pub events: Vec<(Event, i64)>,
    /// The attempts to start.
    pub attempts: Vec<AttemptRequest>,
    /// The files to check.
    pub file_checks: Vec<FileCheck>,
    /// The workspace operations to do. Each is returned in every turn until its result is known.
    pub workspace_ops: Vec<WorkspaceOp>,
    /// The ids of the attempts to stop.
    pub stops: Vec<String>,
    /// The time of the next turn if no fact arrives earlier: a start time, or the deadline of the
    /// time budget.
    pub wake_at: Option<i64>,
    /// The artifacts of single events, rendered right after each event.
    pub rendered: Vec<Rendering>,
}

impl Turn {
    /// Whether an event of this turn requires the artifacts to be rendered.
    pub fn renders_artifacts(&self) -> bool {
        self.events.iter().any(|(event, _)| {
            matches!(
                event,
                Event::TransitionTaken(_)
                    | Event::FrameOpened { .. }
                    | Event::FrameEnded { .. }
                    | Event::Asked { .. }
                    | Event::Answered { .. }
                    | Event::RunReopened(_)
                    | Event::RunEnded { .. }
            )
        })
    }
}

/// Applies facts and decides until the run can only wait. Facts that no longer apply are ignored:
/// an attempt or a workspace that was replaced, a question that is not open, files that no step
/// waits for. A time budget that is used up at `now` ends the run.
pub fn turn(workflow: &Workflow, run: &mut RunState, facts: Vec<Event>, now: i64) -> Turn {
    let mut turn = Turn::default();
    for fact in facts {
        if applies(run, &fact) {
            turn.record(workflow, run, fact, now);
        }
    }
    for _ in 0..MAX_STEPS {
        let mut quiet = true;
        (turn.file_checks, turn.workspace_ops, turn.stops) = (Vec::new(), Vec::new(), Vec::new());
        turn.wake_at = None;
        for command in decide(workflow, run) {
            match command {
                Command::Record(event) => {
                    turn.record(workflow, run, event, now);
                    quiet = false;
                }
                Command::StartAttempt(start) => match start.not_before.filter(|time| *time > now) {
                    Some(time) => turn.wakes(time),
                    None => {
                        quiet = false;
                        // `decide` checked the budget before any of these attempts; each of them
                        // spends from it.
                        let spent = if start.work.is_budgeted() { used_up(run) } else { None };
                        if let Some(what) = spent.or_else(|| time_used_up(run, now)) {
                            turn.record(workflow, run, Event::BudgetReached { what }, now);
                            break;
                        }
                        turn.record(workflow, run, start.event(), now);
                        turn.attempts.push(*start);
                    }
                },
                Command::CheckFiles(look) => match look.not_before.filter(|time| *time > now) {
                    Some(time) => turn.wakes(time),
                    None => turn.file_checks.push(look),
                },
                Command::Workspace(op) => turn.workspace_ops.push(op),
                Command::StopAttempt { attempt } => turn.stops.push(attempt),
            }
        }
        if quiet {
            if let Some(what) = time_used_up(run, now) {
                turn.record(workflow, run, Event::BudgetReached { what }, now);
                continue;
            }
            if let Some(deadline) = run.deadline() {
                turn.wakes(deadline);
            }
            break;
        }
    }
    turn
}

/// Says that the time budget of the run is used up, if it is at this time.
fn time_used_up(run: &RunState, now: i64) -> Option<String> {
    let max = run.budget.time_ms?;
    let is_over = run.deadline().is_some_and(|deadline| deadline <= now);
    is_over.then(|| format!("the time budget of {} is used up", crate::amount::duration(max)))
}

/// What an attempt left behind whose process ended.
#[derive(Clone, Debug, Default)]
pub struct LostWork {
    /// The files that it wrote.
    pub changed: Vec<String>,
    /// What it used that no event counts.
    pub usage: Usage,
}

/// The facts with which a process continues a run: it was resumed, and every attempt in flight is
/// lost. `left` tells what a lost attempt left behind, given its id and its frame.
pub fn resume_facts(
    run: &RunState,
    resumed: Resumed,
    mut left: impl FnMut(&str, &str) -> LostWork,
) -> Vec<Event> {
    let lost = run.attempts.iter().map(|(attempt, frame)| {
        let LostWork { changed, usage } = left(attempt, frame);
        Event::AttemptLost { attempt: attempt.clone(), usage, changed }
    });
    std::iter::once(Event::RunResumed(Box::new(resumed))).chain(lost).collect()
}

impl Turn {
    /// Schedules the next turn for this time at the latest.
    fn wakes(&mut self, time: i64) {
        self.wake_at = Some(self.wake_at.map_or(time, |known| known.min(time)));
    }

    fn record(&mut self, workflow: &Workflow, run: &mut RunState, event: Event, now: i64) {
        // Recorded times never decrease, even if the clock goes back.
        let at = now.max(run.last_at);
        run.apply(&event, at);
        self.rendered.extend(rendered_by(workflow, run, &event));
        self.events.push((event, at));
    }
}

/// Whether a fact still applies to the run.
fn applies(run: &RunState, fact: &Event) -> bool {
    if run.ended.is_some() {
        // What was undone is not there to continue with.
        return matches!(fact, Event::RunReopened(_)) && run.undone.is_empty();
    }
    match fact {
        // Somebody else was faster.
        Event::RunReopened(_) => false,
        // The files of a run that goes on stay.
        Event::RunUndone(_) => false,
        Event::AttemptEnded(ended) => run.attempts.contains_key(&ended.attempt),
        Event::RepairAsked { attempt, .. }
        | Event::ConversationOpened { attempt, .. }
        | Event::AttemptLost { attempt, .. } => run.attempts.contains_key(attempt),
        Event::Answered { question, answer, .. } => run.check_answer(question, answer).is_ok(),
        // A late fact must not affect a step that is already running.
        Event::ContextChecked { frame, .. } => run
            .frames
            .get(frame)
            .is_some_and(|frame| matches!(frame.phase, Phase::Entered { context: false, .. })),
        Event::WorkspaceOpened { .. }
        | Event::WorkspaceFailed { .. }
        | Event::WorkspaceMerged { .. }
        | Event::WorkspaceDropped { .. } => run.expects_workspace_fact(fact),
        Event::RunStarted(_) => run.seq == 0,
        Event::RunStopped { .. } => run.stopped.is_none(),
        // No time counts in a run that rests.
        Event::TimeSkipped { .. } => !run.is_resting(),
        _ => true,
    }
}
