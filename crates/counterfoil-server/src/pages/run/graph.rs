//! The workflow of a run as a diagram and as a table.

use super::now::outcome_name;
use crate::folders::RunPlace;
use crate::format::encode;
use crate::pages::{Change, Section, filled, filters};
use crate::problem::Problem;
use askama::Template;
use counterfoil_engine::{RunReport, RunView};
use counterfoil_flow::Workflow;
use counterfoil_flow::graph::{Mark, MarkStatus, Marks, StateRow, live_svg, states_table};

/// The diagram and its table.
#[derive(Template)]
#[template(path = "run-graph.html")]
struct Graph {
    svg: String,
    states: String,
}

/// The table.
#[derive(Template)]
#[template(path = "run-states.html")]
struct States {
    rows: Vec<StateRow>,
}

/// The section with both. The drawing is replaced as a whole: what is inserted into a drawing one by
/// one is no part of it for browsers.
pub(super) fn section(
    place: &RunPlace,
    workflow: &Workflow,
    view: &RunView,
    report: &RunReport,
) -> Result<Section, Problem> {
    let states = view.states().into_iter().map(|(key, state)| {
        let run = encode(&place.run);
        let mark = Mark {
            visits: state.visits,
            status: state.status.map(|status| as_driven(status, report)),
            note: state.items.map(|(done, all)| format!("{done}/{all}")),
            href: state
                .last_attempt
                .map(|attempt| format!("/runs/{run}/attempts/{}", encode(&attempt))),
        };
        (key, mark)
    });
    let marks = Marks { states: states.collect() };
    let states = filled(&States { rows: states_table(workflow, &marks) })?;
    let svg = live_svg(workflow, &marks, "graph");
    let changes = vec![
        Change::new("#run-graph .graph", "innerHTML", svg.clone()),
        Change::new("#graph-table", "innerMorph", states.clone()),
    ];
    Ok(Section::new("run-graph", &Graph { svg, states })?.with_changes(changes))
}

/// What a state is to a run of which it is known whether a process drives it: only then is it at work.
fn as_driven(status: MarkStatus, report: &RunReport) -> MarkStatus {
    match (status, outcome_name(report)) {
        (MarkStatus::Current, "interrupted") => MarkStatus::Interrupted,
        (MarkStatus::Current, "answered") => MarkStatus::Answered,
        _ => status,
    }
}
