//! A run: what happens now, the workflow as a diagram, every attempt on a line of time, and its events.

mod again;
pub(super) mod events;
mod graph;
pub(super) mod now;
mod timeline;

use super::{Rendered, Section};
use crate::problem::Problem;
use crate::site::Site;
use crate::summaries::task_in;
use serde::Deserialize;
use std::sync::{Arc, PoisonError};

/// The query of a run's page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Which attempts.
    pub(super) show: Show,
    /// Whether times without an attempt are shortened.
    pub(super) idle: Idle,
    /// The page of the attempts, from 1; 0 for the last one.
    pub(super) page: usize,
}

/// Which attempts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Show {
    #[default]
    All,
    Failed,
}

/// Whether times without an attempt are shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Idle {
    #[default]
    Short,
    Full,
}

pub(super) fn render(site: &Arc<Site>, run: &str, query: &Query) -> Result<Rendered, Problem> {
    let place = site.folders.find(run)?;
    let view = site.folders.view(&place)?;
    let view = view.lock().unwrap_or_else(PoisonError::into_inner);
    // Neither the attempts nor the events are copied: there may be many.
    let (run_state, report, claims) = (view.run_state(), view.outline()?, view.claims());
    let attempts = view.attempts();
    let workflow = place.engine.workflow(run_state).ok();
    let task = task_in(&run_state.inputs);
    let folder = if site.folders.are_several() { place.folder.as_str() } else { "" };
    let mut sections = vec![Section::new(
        "run-now",
        &now::banner(
            (site.as_ref(), &place, view.seq()),
            run_state,
            (&report, attempts, view.answers()),
            &claims,
            (folder, &task, workflow.as_deref()),
        ),
    )?];
    let timeline =
        timeline::timeline(&place.run, &report, (attempts, &claims, view.waits()), query);
    sections.push(Section::new("run-timeline", &timeline)?);
    if let Some(workflow) = &workflow {
        sections.push(graph::section(&place, workflow, &view, &report)?);
    }
    let title = format!("{} · {}", crate::format::cell(&report.workflow), report.outcome);
    Ok(Rendered { title, sections })
}
