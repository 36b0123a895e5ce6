//! The diagram as a table, for readers who do not see it.

use super::diagram::{ArrowKind, Diagram, machines, single_line, states};
use super::marks::{Mark, MarkStatus, Marks};
use crate::workflow::{Step, Workflow};

/// A state, as a row of a table. The names are those of the file; escape them for the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// The name of the machine; empty for the main one.
    pub machine: String,
    /// The name of the state.
    pub state: String,
    /// Whether the machine starts here.
    pub first: bool,
    /// The kind of step: `agent`, `command`, `read`, `changes`, `commit`, `question`, `fan-out`,
    /// `order`, `sub-workflow`, `branch` or `end`.
    pub kind: &'static str,
    /// The agent, also that of a fan-out.
    pub agent: Option<String>,
    /// What the diagram tells below the name of the state, such as a command or a limit.
    pub details: Vec<String>,
    /// The states that it may lead to.
    pub targets: Vec<StateTarget>,
    /// What it is to the run now.
    pub status: Option<MarkStatus>,
    /// How often the run entered it.
    pub visits: u32,
    /// The note of its mark, on one line.
    pub note: Option<String>,
    /// The address of its mark, if it is safe as a link.
    pub href: Option<String>,
}

/// A state that another one may lead to: an arrow of the diagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateTarget {
    /// The name of the state, in the same machine.
    pub state: String,
    /// The label of the arrow: a line for each transition that has a guard, a failure or a limit.
    pub labels: Vec<String>,
    /// Whether failures of the step lead there.
    pub failure: bool,
}

/// The rows of all states, in the order of the diagram.
pub(super) fn rows(workflow: &Workflow, diagram: &Diagram, marks: &Marks) -> Vec<StateRow> {
    let mut rows = Vec::new();
    for (machine, cluster) in machines(workflow).zip(&diagram.clusters) {
        let mut targets: Vec<Vec<StateTarget>> = vec![Vec::new(); cluster.nodes.len()];
        for arrow in &cluster.arrows {
            targets[arrow.from].push(StateTarget {
                state: cluster.nodes[arrow.to].state.clone(),
                labels: arrow.lines.clone(),
                failure: arrow.kind == ArrowKind::Failure,
            });
        }
        // The first node is the start marker.
        let nodes = cluster.nodes.iter().zip(targets).skip(1);
        for ((name, state), (node, targets)) in states(machine).into_iter().zip(nodes) {
            let mark = marks.of(&machine.name, name);
            rows.push(StateRow {
                machine: machine.name.clone(),
                state: name.to_owned(),
                first: machine.start == name,
                kind: kind(&state.kind),
                agent: agent(&state.kind),
                details: node.lines.iter().skip(1).cloned().collect(),
                targets,
                status: mark.and_then(|mark| mark.status),
                visits: mark.map_or(0, |mark| mark.visits),
                note: mark
                    .and_then(|mark| mark.note.as_deref())
                    .map(single_line)
                    .filter(|note| !note.is_empty()),
                href: mark.and_then(Mark::link).map(str::to_owned),
            });
        }
    }
    rows
}

fn kind(step: &Step) -> &'static str {
    match step {
        Step::Agent(_) => "agent",
        Step::Command(_) => "command",
        Step::Read(_) => "read",
        Step::Changes(_) => "changes",
        Step::Commit(_) => "commit",
        Step::Ask(_) => "question",
        Step::Each(_) => "fan-out",
        Step::Order(_) => "order",
        Step::Call { .. } => "sub-workflow",
        Step::Route => "branch",
        Step::End { .. } => "end",
    }
}

fn agent(step: &Step) -> Option<String> {
    step.dispatch().map(|dispatch| dispatch.agent.clone())
}
