//! Diagrams of a workflow in three formats: Mermaid (which GitHub renders), dot (for Graphviz) and
//! SVG.
//!
//! All formats show the same diagram: a node for each state (agents are rounded, commands are
//! rectangles, questions hexagons, branches diamonds, sub-workflows and fan-outs have double sides,
//! ends are pills), an arrow for each transition with its guard and the limit it counts, and a
//! cluster for each sub-workflow.

mod diagram;
mod dot;
mod layout;
mod mermaid;
mod positions;
mod svg;

use crate::workflow::Workflow;
use diagram::Diagram;

/// The workflow as a Mermaid flowchart.
pub fn mermaid(workflow: &Workflow) -> String {
    mermaid::write(&Diagram::from_workflow(workflow))
}

/// The workflow in the dot language of Graphviz.
pub fn dot(workflow: &Workflow) -> String {
    dot::write(&Diagram::from_workflow(workflow))
}

/// The workflow as a self-contained SVG image, without scripts, fonts or other files.
pub fn svg(workflow: &Workflow) -> String {
    svg::write(&Diagram::from_workflow(workflow))
}
