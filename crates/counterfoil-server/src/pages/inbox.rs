//! The open questions of all runs, with what a person needs to answer them.

use super::format;
use super::run::now::Moment;
use super::{Rendered, Section};
use crate::pages::filters;
use crate::problem::Problem;
use crate::site::Site;
use crate::summaries::task_in;
use askama::Template;
use counterfoil_engine::journal::{RunFilter, RunGroup, RunOrder};
use counterfoil_engine::{Question, RunReport};
use counterfoil_flow::ChangedFiles;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// The number of runs whose questions are shown.
const MAX_RUNS: usize = 100;

/// The questions.
#[derive(Template)]
#[template(path = "inbox.html")]
struct Inbox {
    runs: Vec<Asking>,
    has_more: bool,
}

/// A run with open questions.
struct Asking {
    id: String,
    address: String,
    workflow: String,
    task: String,
    since: Moment,
    claims: Vec<(format::Mark, u64)>,
    changed: Vec<String>,
    more_changed: u64,
    questions: Vec<Form>,
    damage: String,
}

/// A question with the form of its answer.
pub(super) struct Form {
    /// The id of the element.
    pub(super) element: String,
    /// Where the answer is sent.
    pub(super) action: String,
    /// What the answer is for: it is refused if the question is another one by then.
    pub(super) digest: String,
    pub(super) text: String,
    pub(super) choices: Vec<String>,
    pub(super) pattern: String,
    pub(super) optional: bool,
}

/// The most files that are named.
const MAX_FILES: usize = 12;

pub(super) fn render(site: &Arc<Site>) -> Result<Rendered, Problem> {
    let filter = RunFilter { group: RunGroup::NeedsAnswer, ..RunFilter::default() };
    let (mut runs, mut has_more) = (Vec::new(), false);
    for (_, engine) in site.folders.engines()? {
        let page = engine.journal().runs_page(&filter, RunOrder::default(), None, MAX_RUNS)?;
        has_more |= page.next.is_some();
        for info in page.runs {
            runs.push(asking(site, &info.id, info.updated_at));
        }
    }
    let count: usize = runs.iter().map(|run| run.questions.len()).sum();
    let title = if count == 0 { "Inbox".to_owned() } else { format!("Inbox ({count})") };
    let section = Section::new("inbox", &Inbox { runs, has_more })?;
    Ok(Rendered { title, sections: vec![section] })
}

/// The questions of a run. One that cannot be read hides no other.
fn asking(site: &Site, run: &str, updated_at: i64) -> Asking {
    let read = || -> Result<Asking, Problem> {
        let place = site.folders.find(run)?;
        let view = site.folders.view(&place)?;
        let view = view.lock().unwrap_or_else(PoisonError::into_inner);
        let report = view.report()?;
        let totals = report.claims.clone().unwrap_or_default();
        let (changed, more_changed) = changed_files(&report);
        Ok(Asking {
            workflow: format::cell(&report.workflow),
            task: format::cell(&task_in(&view.run_state().inputs)),
            claims: format::verdicts(&totals),
            changed,
            more_changed,
            questions: forms(&place.run, &report.questions),
            ..empty(run, updated_at)
        })
    };
    read().unwrap_or_else(|problem| Asking {
        damage: format::text(problem.detail()),
        ..empty(run, updated_at)
    })
}

fn empty(run: &str, updated_at: i64) -> Asking {
    Asking {
        id: run.chars().take(13).collect(),
        address: format!("/runs/{}", format::encode(run)),
        workflow: String::new(),
        task: String::new(),
        since: Moment::new(updated_at),
        claims: Vec::new(),
        changed: Vec::new(),
        more_changed: 0,
        questions: Vec::new(),
        damage: String::new(),
    }
}

/// The forms for open questions.
pub(super) fn forms(run: &str, questions: &[Question]) -> Vec<Form> {
    let form = |question: &Question| Form {
        element: format!("question-{}", format::encode(&format!("{run}.{}", question.id))),
        action: format!(
            "/api/v1/runs/{}/questions/{}/answer",
            format::encode(run),
            format::encode(&question.id)
        ),
        digest: question.digest(run),
        text: format::text(&question.question),
        choices: question.choices.clone(),
        pattern: format::text(question.pattern.as_deref().unwrap_or_default()),
        optional: question.optional,
    };
    questions.iter().map(form).collect()
}

/// The files that the attempts of a run changed: some of them, and the number of the others.
fn changed_files(report: &RunReport) -> (Vec<String>, u64) {
    let (mut files, mut unnamed) = (BTreeSet::new(), 0);
    for changed in report.attempts.iter().chain(&report.commands).filter_map(|a| a.changed.as_ref())
    {
        let ChangedFiles { added, modified, deleted, renamed, total, .. } = changed;
        let renamed = renamed.iter().map(|(_, new)| new);
        let named: Vec<&String> =
            added.iter().chain(modified).chain(deleted).chain(renamed).collect();
        unnamed += total.saturating_sub(named.len() as u64);
        files.extend(named);
    }
    let hidden = files.len().saturating_sub(MAX_FILES) as u64 + unnamed;
    (files.into_iter().take(MAX_FILES).map(|file| format::cell(file)).collect(), hidden)
}
