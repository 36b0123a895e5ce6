//! One turn of a run: facts in, events to record and work to do out. Every engine turns a run by
//! this function, live, in a replay and in a simulation; what differs is who keeps the events and
//! who does the work.

use crate::artifact::{Rendering, rendered_by};
use crate::decide::{Command, Errand, Look, Start, decide, used_up};
use crate::event::Event;
use crate::fold::{Fold, Phase};
use crate::workflow::Workflow;

/// A turn that needs more steps than this is a fault of ours: the checker bounds every cycle.
const MOST_STEPS: usize = 100_000;

/// What a turn asks of its engine: record the events in one transaction, then do the work.
#[derive(Debug, Default)]
pub struct Turn {
    /// What to record, with its time.
    pub events: Vec<(Event, i64)>,
    /// What to start.
    pub starts: Vec<Start>,
    /// What to look for.
    pub looks: Vec<Look>,
    /// What to do about workspaces; handed out each turn until its fact is told.
    pub errands: Vec<Errand>,
    /// What to stop.
    pub stops: Vec<String>,
    /// When to turn again if nothing happens before.
    pub wake_at: Option<i64>,
    /// The artifacts that belong to single events, as they stood right behind each.
    pub rendered: Vec<Rendering>,
}

impl Turn {
    /// Whether a transition was taken or the run ended: artifacts are rendered then.
    pub fn moved(&self) -> bool {
        self.events.iter().any(|(event, _)| {
            matches!(
                event,
                Event::Moved(_)
                    | Event::FrameOpened { .. }
                    | Event::FrameEnded { .. }
                    | Event::Asked { .. }
                    | Event::Answered { .. }
                    | Event::RunEnded { .. }
            )
        })
    }
}

/// Takes facts and decides until only waiting is left. Facts that no longer concern the run (an
/// attempt that was fenced, a question that is not open, files that nobody waits for, a workspace
/// that is gone) are dropped.
pub fn turn(workflow: &Workflow, fold: &mut Fold, facts: Vec<Event>, now: i64) -> Turn {
    let mut turn = Turn::default();
    for fact in facts {
        if concerns(fold, &fact) {
            turn.record(workflow, fold, fact, now);
        }
    }
    for _ in 0..MOST_STEPS {
        let mut quiet = true;
        (turn.looks, turn.errands, turn.stops) = (Vec::new(), Vec::new(), Vec::new());
        turn.wake_at = None;
        for command in decide(workflow, fold) {
            match command {
                Command::Record(event) => {
                    turn.record(workflow, fold, event, now);
                    quiet = false;
                }
                Command::Start(start) => match start.not_before.filter(|time| *time > now) {
                    Some(time) => turn.wakes(time),
                    None => {
                        quiet = false;
                        // Deciding saw the budget before any of these starts; each of them spends
                        // from it.
                        if let Some(what) = used_up(fold) {
                            turn.record(workflow, fold, Event::BudgetReached { what }, now);
                            break;
                        }
                        turn.record(workflow, fold, start.event(), now);
                        turn.starts.push(*start);
                    }
                },
                Command::Look(look) => match look.not_before.filter(|time| *time > now) {
                    Some(time) => turn.wakes(time),
                    None => turn.looks.push(look),
                },
                Command::Workspace(errand) => turn.errands.push(errand),
                Command::Stop { attempt } => turn.stops.push(attempt),
            }
        }
        if quiet {
            break;
        }
    }
    turn
}

impl Turn {
    /// Turns again at this time, if not before.
    fn wakes(&mut self, time: i64) {
        self.wake_at = Some(self.wake_at.map_or(time, |known| known.min(time)));
    }

    fn record(&mut self, workflow: &Workflow, fold: &mut Fold, event: Event, now: i64) {
        // The journal's times never go back, whatever the clock does.
        let at = now.max(fold.last_at);
        fold.apply(&event, at);
        self.rendered.extend(rendered_by(workflow, fold, &event));
        self.events.push((event, at));
    }
}

/// Whether a fact still concerns the run.
fn concerns(fold: &Fold, fact: &Event) -> bool {
    if fold.ended.is_some() {
        return false;
    }
    match fact {
        Event::AttemptEnded(ended) => fold.attempts.contains_key(&ended.attempt),
        Event::RepairAsked { attempt, .. } | Event::AttemptLost { attempt, .. } => {
            fold.attempts.contains_key(attempt)
        }
        Event::Answered { question, answer, .. } => fold.check_answer(question, answer).is_ok(),
        // One that comes late must not trouble a step that is at work.
        Event::ContextChecked { frame, .. } => fold
            .frames
            .get(frame)
            .is_some_and(|frame| matches!(frame.phase, Phase::Entered { context: false, .. })),
        Event::WorkspaceOpened { .. }
        | Event::WorkspaceFailed { .. }
        | Event::WorkspaceFolded { .. }
        | Event::WorkspaceDropped { .. } => fold.awaits(fact),
        Event::RunStarted(_) => fold.seq == 0,
        Event::RunStopped { .. } => fold.stopped.is_none(),
        _ => true,
    }
}
