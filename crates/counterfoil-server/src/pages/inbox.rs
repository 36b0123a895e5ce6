//! The open questions of all runs, with what a person needs to answer them, and the runs that go on
//! when they are resumed, because their questions were answered.

use super::claims::{self, Claim};
use super::run::now::{self, Answered, Moment};
use super::{Rendered, Section};
use crate::commands;
use crate::folders::RunPlace;
use crate::format;
use crate::pages::filters;
use crate::problem::Problem;
use crate::site::Site;
use crate::summaries::task_in;
use askama::Template;
use counterfoil_engine::journal::{RunFilter, RunGroup, RunInfo, RunOrder};
use counterfoil_engine::{Attempt, Question, RunReport};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// The number of runs whose questions are shown.
const MAX_RUNS: usize = 100;

/// The questions.
#[derive(Template)]
#[template(path = "inbox.html")]
struct Inbox {
    runs: Vec<Arc<Asking>>,
    has_more: bool,
}

/// A run with open questions.
struct Asking {
    id: String,
    address: String,
    workflow: String,
    task: String,
    since: Moment,
    /// Why the run does not go on by itself, whatever is answered; empty if it does.
    rests: &'static str,
    /// What was answered last, of a run that rests since.
    answered: Option<Answered>,
    /// Whether the server resumes it; only where no answer is needed any more.
    can_resume: bool,
    /// What to type to resume it, where the server does not do it; empty otherwise.
    resume: String,
    verdicts: Vec<(format::Mark, u64)>,
    claims: Vec<Claim>,
    more_claims: usize,
    changes: Vec<Changes>,
    more_changes: usize,
    questions: Vec<Form>,
    damage: String,
}

/// What an attempt changed. The difference is loaded when it is opened.
struct Changes {
    id: String,
    title: String,
    /// The number of files.
    total: u64,
    /// The page of the attempt.
    address: String,
    /// The part of a page with the difference.
    fragment: String,
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
    /// Whether the server takes answers.
    pub(super) is_taken: bool,
    /// What to type where it does not, or where the script of the page does not work.
    pub(super) commands: Vec<String>,
}

/// The most claims that are shown beside a question.
const MAX_CLAIMS: usize = 8;
/// The most attempts whose changes are shown beside a question.
const MAX_ATTEMPTS: usize = 4;

pub(super) fn render(site: &Arc<Site>) -> Result<Rendered, Problem> {
    // One that was answered may still have questions, for which it does not wait.
    let asking_runs =
        RunFilter { group: RunGroup::NeedsPerson, questions: true, ..RunFilter::default() };
    let answered_runs = RunFilter {
        group: RunGroup::NeedsPerson,
        outcomes: vec!["answered".to_owned()],
        ..RunFilter::default()
    };
    let (mut runs, mut answered, mut has_more) = (Vec::new(), Vec::new(), false);
    let mut shown = HashMap::new();
    for (_, engine) in site.folders.engines()? {
        let read = |filter| engine.journal().runs_page(filter, RunOrder::default(), None, MAX_RUNS);
        let mut show = |info: &RunInfo| {
            let key = (engine.journal().folder().to_owned(), info.id.clone());
            let moved = (info.last_seq, info.outcome().to_owned(), info.is_driven());
            let known = site.inbox.find::<Asking>(&key, &moved);
            let asking = known.unwrap_or_else(|| Arc::new(asking(site, &info.id, info.updated_at)));
            // What could not be read is tried again.
            if asking.damage.is_empty() {
                shown.insert(key, (moved, Arc::clone(&asking)));
            }
            asking
        };
        let page = read(&asking_runs)?;
        has_more |= page.next.is_some();
        runs.extend(page.runs.iter().map(&mut show));
        let page = read(&answered_runs)?;
        has_more |= page.next.is_some();
        let without_questions = page.runs.iter().filter(|info| info.summary.questions == 0);
        answered.extend(without_questions.map(&mut show));
    }
    site.inbox.replace(shown);
    runs.append(&mut answered);
    let count: usize = runs.iter().map(|run| run.questions.len()).sum();
    let title = if count == 0 { "Inbox".to_owned() } else { format!("Inbox ({count})") };
    let section = Section::new("inbox", &Inbox { runs, has_more })?;
    Ok(Rendered { title, sections: vec![section] })
}

/// The questions of a run, and whether it is to be resumed. One that cannot be read hides no other.
fn asking(site: &Site, run: &str, updated_at: i64) -> Asking {
    let read = || -> Result<Asking, Problem> {
        let place = site.folders.find(run)?;
        let view = site.folders.view(&place)?;
        let view = view.lock().unwrap_or_else(PoisonError::into_inner);
        let report = view.report()?;
        let totals = report.claims.clone().unwrap_or_default();
        let (claims, more_claims) = claims::beside(&place.run, &view.claims(), MAX_CLAIMS);
        let (changes, more_changes) = changes(&place.run, &report);
        let rests = now::rests_of(&report);
        // A process that ended may have left a question that has to be answered first.
        let is_to_resume =
            !rests.is_empty() && report.questions.iter().all(|question| question.optional);
        let answered = view.answers().last().filter(|_| report.outcome == "answered");
        let command = (is_to_resume && !site.may_resume()).then(|| commands::resume(&place));
        Ok(Asking {
            workflow: format::cell(&report.workflow),
            task: format::cell(&task_in(&view.run_state().inputs)),
            rests,
            answered: answered.map(now::answered),
            can_resume: is_to_resume && site.may_resume(),
            resume: command.unwrap_or_default(),
            verdicts: format::verdicts(&totals),
            claims,
            more_claims,
            changes,
            more_changes,
            questions: forms(site, &place, &report.questions),
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
        rests: "",
        answered: None,
        can_resume: false,
        resume: String::new(),
        verdicts: Vec::new(),
        claims: Vec::new(),
        more_claims: 0,
        changes: Vec::new(),
        more_changes: 0,
        questions: Vec::new(),
        damage: String::new(),
    }
}

/// The forms for open questions.
pub(super) fn forms(site: &Site, place: &RunPlace, questions: &[Question]) -> Vec<Form> {
    let run = place.run.as_str();
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
        is_taken: site.may_change(),
        commands: commands::answers(place, &question.id, &question.choices),
    };
    questions.iter().map(form).collect()
}

/// What the last attempts of a run that changed files changed, and the number of the others.
fn changes(run: &str, report: &RunReport) -> (Vec<Changes>, usize) {
    let all = report.attempts.iter().chain(&report.commands);
    let total = |attempt: &Attempt| attempt.changed.as_ref().map_or(0, |changed| changed.total);
    let mut with_changes: Vec<&Attempt> = all.filter(|attempt| total(attempt) > 0).collect();
    with_changes.sort_by_key(|attempt| std::cmp::Reverse(attempt.ended_at));
    let hidden = with_changes.len().saturating_sub(MAX_ATTEMPTS);
    let run = format::encode(run);
    let shown = with_changes.into_iter().take(MAX_ATTEMPTS).map(|attempt| {
        let id = format::attempt_id(&attempt.path, attempt.n);
        let place = format!("runs/{run}/attempts/{}", format::encode(&id));
        Changes {
            id: format!("changes-{run}.{}", format::encode(&id)),
            title: format::cell(&id),
            total: total(attempt),
            address: format!("/{place}#diff"),
            fragment: format!("/fragments/{place}/diff"),
        }
    });
    (shown.collect(), hidden)
}
