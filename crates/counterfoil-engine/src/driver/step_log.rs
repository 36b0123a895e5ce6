//! Logs every event of a run: which step of which run, by whom, and what it used. The log holds no
//! text that an agent or a command wrote: names, numbers and outcomes only.

use crate::journal::Journal;
use counterfoil_flow::{Event, RunState, Usage};
use std::collections::HashMap;
use std::ops::ControlFlow;
use tracing::{Level, Span};

/// The target of the log.
const TARGET: &str = "counterfoil::run";

/// What is known of the steps of a run, so that each event can be logged with it.
#[derive(Debug, Default)]
pub(super) struct StepLog {
    /// The visits of states, by frame and state.
    visits: HashMap<(String, String), Visits>,
    /// The attempts that have not ended.
    attempts: HashMap<String, Step>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Visits {
    /// How often the state was entered.
    number: u64,
    /// The attempts of the last visit.
    attempts: u64,
}

/// An attempt at a step.
#[derive(Clone, Debug, Default)]
struct Step {
    state: String,
    visit: u64,
    attempt: u64,
    agent: Option<String>,
}

impl StepLog {
    /// The log of a run that may have events already. Without a reader of the log, nothing is read.
    pub(super) fn new(journal: &Journal, run_state: &RunState) -> Self {
        let mut log = Self::default();
        tracing::info!(
            target: TARGET, run = %run_state.run, workflow = %run_state.workflow,
            event = "run-attached", events = run_state.seq, "this process drives the run",
        );
        if is_followed() && run_state.seq > 0 {
            // An event that cannot be read is reported where it is needed.
            let _ = journal.visit(&run_state.run, 1, |stored| {
                if let Ok(event) = serde_json::from_slice(&stored.body) {
                    log.follow(&event);
                }
                ControlFlow::Continue(())
            });
        }
        log
    }

    /// Logs an event that was recorded. `run_state` is the state after it.
    pub(super) fn on_event(&mut self, event: &Event, run_state: &RunState) {
        if is_followed() {
            self.follow(event);
        }
        if tracing::enabled!(target: TARGET, Level::INFO) {
            self.write(event, run_state);
        }
        if let Event::AttemptEnded(_) | Event::AttemptLost { .. } = event {
            attempt_of(event).map(|attempt| self.attempts.remove(attempt));
        }
    }

    /// The span of an attempt: what is logged while it runs belongs to it. It has the highest level,
    /// so that every level of the log has it.
    pub(super) fn span(&self, attempt: &str, run_state: &RunState) -> Span {
        let step = self.attempts.get(attempt).cloned().unwrap_or_default();
        let agent = step.agent.as_deref();
        let (program, model) = program(agent, run_state);
        tracing::error_span!(
            target: TARGET, "attempt", run = %run_state.run, state = %step.state, visit = step.visit,
            attempt = step.attempt, agent, program, model,
        )
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::FrameOpened { frame, state, .. } => self.enter(frame, state),
            Event::TransitionTaken(taken) => self.enter(&taken.frame, &taken.to),
            Event::AttemptStarted { attempt, frame, path, agent, .. } => {
                let state = path.last().cloned().unwrap_or_default();
                let visits = self.visits.entry((frame.clone(), state)).or_default();
                visits.attempts += 1;
                let (visit, number) = (visits.number, visits.attempts);
                let step =
                    Step { state: path.join("/"), visit, attempt: number, agent: agent.clone() };
                self.attempts.insert(attempt.clone(), step);
            }
            _ => {}
        }
    }

    fn enter(&mut self, frame: &str, state: &str) {
        let visits = self.visits.entry((frame.to_owned(), state.to_owned())).or_default();
        *visits = Visits { number: visits.number + 1, attempts: 0 };
    }

    fn write(&self, event: &Event, run_state: &RunState) {
        let step = attempt_of(event).and_then(|attempt| self.attempts.get(attempt));
        let state = match event {
            Event::TransitionTaken(taken) => Some(taken.from.as_str()),
            Event::FrameOpened { state, .. } | Event::RunEnded { state, .. } => {
                Some(state.as_str())
            }
            _ => step.map(|step| step.state.as_str()),
        };
        let agent = step.and_then(|step| step.agent.as_deref());
        let (program, model) = program(agent, run_state);
        let used = used(event, run_state);
        tracing::info!(
            target: TARGET,
            run = %run_state.run,
            workflow = %run_state.workflow,
            event = event.kind(),
            state,
            to = to(event),
            visit = step.map(|step| step.visit),
            attempt = step.map(|step| step.attempt),
            agent,
            program,
            model,
            outcome = outcome(event),
            input_tokens = used.map(|used| used.input_tokens),
            output_tokens = used.map(|used| used.output_tokens),
            cost_usd = used.map(|used| used.cost_usd),
            wall_ms = used.map(|used| used.wall_ms),
            "{}", event.kind().replace('-', " "),
        );
    }
}

/// Whether somebody reads a log in which the spans of attempts may appear.
fn is_followed() -> bool {
    tracing::enabled!(target: TARGET, Level::ERROR)
}

/// The attempt that an event is about.
fn attempt_of(event: &Event) -> Option<&str> {
    match event {
        Event::AttemptStarted { attempt, .. }
        | Event::RepairAsked { attempt, .. }
        | Event::ConversationOpened { attempt, .. }
        | Event::AttemptLost { attempt, .. } => Some(attempt),
        Event::AttemptEnded(ended) => Some(&ended.attempt),
        _ => None,
    }
}

/// The program of an agent, and its model as far as it is known.
fn program<'r>(agent: Option<&str>, run_state: &'r RunState) -> (Option<String>, Option<&'r str>) {
    let assigned = agent.and_then(|agent| run_state.agents.get(agent));
    let program = assigned.map(|assigned| crate::ledger::program_name(&assigned.spec));
    (program, assigned.and_then(|assigned| assigned.model.as_deref()))
}

fn to(event: &Event) -> Option<&str> {
    match event {
        Event::TransitionTaken(taken) => Some(&taken.to),
        _ => None,
    }
}

fn outcome(event: &Event) -> Option<&'static str> {
    match event {
        Event::AttemptEnded(ended) => Some(ended.outcome.name()),
        Event::RunEnded { outcome, .. } => Some(outcome.name()),
        _ => None,
    }
}

/// What an attempt used, or the whole run at its end.
fn used(event: &Event, run_state: &RunState) -> Option<Usage> {
    match event {
        Event::RepairAsked { usage, .. } | Event::AttemptLost { usage, .. } => Some(*usage),
        Event::AttemptEnded(ended) => Some(ended.usage),
        Event::RunEnded { .. } => Some(run_state.usage),
        _ => None,
    }
}
