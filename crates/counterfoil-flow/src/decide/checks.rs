//! The project's checks: once before the first step of a run, and as a part of steps.

use super::enter::{Entry, protected_paths};
use super::{AttemptRequest, AttemptWork, Command, path_of};
use crate::event::PlannedChecks;
use crate::run_state::{Frame, RunState, join};
use crate::workflow::{State, Step, Workflow};
use serde::{Deserialize, Serialize};

/// The path of the checks before the first step.
const BASE: &str = "base";
/// The last part of the path of checks.
const CHECKS: &str = "checks";

/// Checks to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksWork {
    /// The names of the checks, in the order in which they run.
    pub names: Vec<String>,
    /// The checks as they were configured before the step. Without it, those that are configured
    /// now.
    pub planned: Option<PlannedChecks>,
    /// Whether the checks run before the first step of the run.
    #[serde(default)]
    pub base: bool,
    /// The workspace; the repository, if there is none.
    pub workspace: Option<String>,
    /// Globs of the paths that the agent of the step may write.
    #[serde(default)]
    pub writes: Option<Vec<String>>,
    /// Globs of the paths that nobody may write, in addition to those that are always protected.
    #[serde(default)]
    pub protect: Vec<String>,
}

/// Whether a state has checks that must be run before it is left.
pub(super) fn are_due(frame: &Frame, state: &State) -> bool {
    let planned = frame.planned_checks.as_ref();
    !state.checks.is_empty()
        && frame.checks.is_none()
        && planned.is_none_or(|planned| planned.has_any(&state.checks))
}

/// Starts the checks that follow a step.
pub(super) fn after_step(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
) -> Command {
    let mut path = path_of(workflow, run, id, frame);
    path.push(CHECKS.to_owned());
    let work = ChecksWork {
        names: state.checks.clone(),
        planned: frame.planned_checks.clone(),
        base: false,
        workspace: run.workspace_of(frame).map(str::to_owned),
        writes: written_by(workflow, state),
        // Where it cannot be rendered, the step that comes before the checks fails.
        protect: protected_paths(workflow, run).unwrap_or_default(),
    };
    start(run, id, frame, path, work)
}

/// Starts the checks before the first step, if the workflow has any and they have not been run.
pub(super) fn at_base(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
) -> Option<Command> {
    if frame.parent.is_some() || workflow.checks.is_empty() || run.base_checks.is_some() {
        return None;
    }
    let work = ChecksWork {
        names: workflow.checks.clone(),
        planned: None,
        base: true,
        workspace: None,
        writes: None,
        protect: protected_paths(workflow, run).unwrap_or_default(),
    };
    Some(start(run, id, frame, vec![BASE.to_owned(), CHECKS.to_owned()], work))
}

/// The globs of the paths that the agent of a state may write.
fn written_by(workflow: &Workflow, state: &State) -> Option<Vec<String>> {
    let Step::Agent(dispatch) = &state.kind else { return None };
    workflow.agents.get(&dispatch.agent)?.writes.clone()
}

fn start(run: &RunState, id: &str, frame: &Frame, path: Vec<String>, work: ChecksWork) -> Command {
    let name = join(&path);
    let n = run.visits.get(&name).copied().unwrap_or(0) + 1;
    let attempt = format!("{name}#{n}");
    Command::StartAttempt(Box::new(AttemptRequest {
        first: attempt.clone(),
        attempt,
        frame: id.to_owned(),
        path,
        n,
        not_before: None,
        bundle: run.bundle.clone(),
        machine: frame.machine.clone(),
        state: frame.state.clone(),
        work: AttemptWork::Checks(Box::new(work)),
    }))
}

impl Entry<'_> {
    /// Starts the checks of a state that has no other step, if they are due.
    pub(super) fn checks_alone(&self, state: &State) -> Option<Command> {
        are_due(self.frame, state)
            .then(|| after_step(self.workflow, self.run, self.id, self.frame, state))
    }
}
