//! Drawings of a workflow, for people: as Mermaid for a page on GitHub, as dot for Graphviz, as SVG
//! for everybody else.
//!
//! All three show the same picture: a shape for each state (agents are rounded, commands plain,
//! questions hexagons, branches diamonds, sub-workflows and fan-outs have double sides, ends are
//! pills), an arrow for each way on with its guard and the limit it counts, and a frame for each
//! sub-workflow.

mod dot;
mod layers;
mod mermaid;
mod picture;
mod rows;
mod svg;

use crate::workflow::Workflow;
use picture::Picture;

/// The workflow as a Mermaid flowchart, as GitHub shows it in a fence named `mermaid`.
pub fn mermaid(workflow: &Workflow) -> String {
    mermaid::write(&Picture::of(workflow))
}

/// The workflow in the language of Graphviz, with a cluster for each sub-workflow.
pub fn dot(workflow: &Workflow) -> String {
    dot::write(&Picture::of(workflow))
}

/// The workflow as an SVG image that needs nothing beside it: no script, no font, no other file.
pub fn svg(workflow: &Workflow) -> String {
    svg::write(&Picture::of(workflow))
}
