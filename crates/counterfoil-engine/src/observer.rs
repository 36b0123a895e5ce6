//! Observers: what is told of a run while it is driven.

use counterfoil_agents::agent::AgentProgress;
use counterfoil_flow::{Event, RunState, Workflow};
use std::sync::Arc;

/// Observes a run while it is driven.
pub trait RunObserver: Send + Sync {
    /// Called once, before the run is driven.
    fn on_run_attached(&self, workflow: &Arc<Workflow>) {
        let _ = workflow;
    }
    /// An event was recorded. `run_state` is the state after all events of the same turn.
    fn on_event(&self, event: &Event, at: i64, run_state: &RunState);
    /// An attempt reported activity.
    fn on_activity(&self, attempt: &str, line: &str);
    /// An agent gave a sign of life; this is how far it is.
    fn on_agent_progress(&self, attempt: &str, progress: &AgentProgress) {
        let _ = (attempt, progress);
    }
    /// A notice for the user that is not an event of the run.
    fn on_notice(&self, line: &str) {
        let _ = line;
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopObserver;

impl RunObserver for NoopObserver {
    fn on_event(&self, _: &Event, _: i64, _: &RunState) {}
    fn on_activity(&self, _: &str, _: &str) {}
}

/// Several observers, each of which is told everything, one after the other.
#[derive(Clone)]
pub struct Observers(pub Vec<Arc<dyn RunObserver>>);

impl RunObserver for Observers {
    fn on_run_attached(&self, workflow: &Arc<Workflow>) {
        self.0.iter().for_each(|observer| observer.on_run_attached(workflow));
    }

    fn on_event(&self, event: &Event, at: i64, run_state: &RunState) {
        self.0.iter().for_each(|observer| observer.on_event(event, at, run_state));
    }

    fn on_activity(&self, attempt: &str, line: &str) {
        self.0.iter().for_each(|observer| observer.on_activity(attempt, line));
    }

    fn on_agent_progress(&self, attempt: &str, progress: &AgentProgress) {
        self.0.iter().for_each(|observer| observer.on_agent_progress(attempt, progress));
    }

    fn on_notice(&self, line: &str) {
        self.0.iter().for_each(|observer| observer.on_notice(line));
    }
}
