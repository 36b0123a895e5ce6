//! Diagrams of a workflow in three formats: Mermaid (which GitHub renders), dot (for Graphviz) and
//! SVG, as an image of its own or as a part of a page that shows a run.
//!
//! All formats show the same diagram: a node for each state (agents are rounded, commands are
//! rectangles, questions hexagons, branches diamonds, sub-workflows and fan-outs have double sides,
//! ends are pills), an arrow for each transition with its guard and the limit it counts, and a
//! cluster for each sub-workflow.

mod diagram;
mod dot;
mod draw;
mod layout;
mod live;
mod marks;
mod mermaid;
mod positions;
mod svg;
mod table;

pub use marks::{Mark, MarkStatus, Marks};
pub use table::{StateRow, StateTarget};

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

/// The workflow as an SVG element of a page, with the marks of a run.
///
/// The element has no styles and no script, so that a page with the policy `default-src 'self'` can
/// contain it; the stylesheet of the page colours its classes, which begin with `cf-`. Every
/// identifier begins with the prefix and a hyphen: two diagrams of a page need different prefixes.
/// Characters of the prefix other than ASCII letters, digits, `-` and `_` become `_`.
pub fn live_svg(workflow: &Workflow, marks: &Marks, prefix: &str) -> String {
    live::write(&Diagram::from_workflow(workflow), marks, prefix)
}

/// The states of a workflow with the marks of a run: what [`live_svg`] shows, as the rows of a
/// table. The main machine is first, then the sub-workflows; states are in the order of the file.
pub fn states_table(workflow: &Workflow, marks: &Marks) -> Vec<StateRow> {
    table::rows(workflow, &Diagram::from_workflow(workflow), marks)
}
