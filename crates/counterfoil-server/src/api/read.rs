//! Reading runs, attempts, claims, questions and transcripts.

use super::json;
use super::path::PathParts;
use super::plain::streamed;
use crate::listing::{self, Wanted};
use crate::pages::find_attempt;
use crate::problem::Problem;
use crate::query::parse_query;
use crate::site::Site;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use counterfoil_engine::journal::{RunCursor, RunFilter, RunGroup, RunOrder, RunSort};
use counterfoil_engine::ledger::Totals;
use counterfoil_engine::lists::{ClaimList, OpenQuestions, RunListItem};
use counterfoil_engine::{
    Attempt, Question, RunReport, TranscriptError, TranscriptReader, TranscriptText, VerifiedTexts,
};
use counterfoil_flow::Reply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError};

/// The most runs of a page.
const MAX_PAGE: usize = 200;
/// The runs of a page, if the request does not say it.
const DEFAULT_PAGE: usize = 50;
/// The longest place of a page that is read.
const MAX_PLACE: usize = 1000;

/// The query of the list of runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunsQuery {
    /// A group: `all`, `needs-answer`, `needs-person`, `running`, `interrupted` or `failed`.
    group: Option<String>,
    /// A text that is part of the task or another input, the id, the workflow, the state or the reason.
    q: Option<String>,
    /// The name of the workflow.
    workflow: Option<String>,
    /// Only runs with a claim that is or was refuted.
    refuted: bool,
    /// The order: `newest`, `updated`, `cost` or `duration`.
    sort: Option<String>,
    /// Whether the lowest is first.
    ascending: bool,
    /// The place `next` of the page before.
    after: Option<String>,
    /// The number of runs, at most 200.
    limit: Option<usize>,
}

/// A page of runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunsPage {
    /// The runs, in order. There can be fewer than asked for, although there is a next page.
    runs: Vec<ListedRun>,
    /// The value of `after` for the next page; null if this is the last one.
    next: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedRun {
    /// The run.
    #[serde(flatten)]
    run: RunListItem,
    /// The name of its state folder.
    folder: String,
    /// What it is for; empty if its inputs do not say it.
    task: String,
    /// The number of its claims by verdict.
    claims: Totals,
    /// What was wrong when its events were read; empty if nothing was.
    #[serde(skip_serializing_if = "String::is_empty")]
    damage: String,
}

pub(super) async fn runs(State(site): State<Arc<Site>>, RawQuery(query): RawQuery) -> Response {
    let query: RunsQuery = match parse_query(query.as_deref()) {
        Ok(query) => query,
        Err(problem) => return problem.into_answer(),
    };
    json(site.blocking(move |site| page(site, &query)).await)
}

fn page(site: &Site, query: &RunsQuery) -> Result<RunsPage, Problem> {
    let unknown = |what: &str, name: &str, known: Vec<&str>| {
        Problem::bad_request(format!("{what} '{name}' is none of {}", known.join(", ")))
    };
    let group = match query.group.as_deref() {
        None => RunGroup::All,
        Some(name) => RunGroup::named(name).ok_or_else(|| {
            unknown("the group", name, RunGroup::EACH.map(RunGroup::name).to_vec())
        })?,
    };
    let by = match query.sort.as_deref() {
        None => RunSort::Newest,
        Some(name) => RunSort::named(name)
            .ok_or_else(|| unknown("the order", name, RunSort::EACH.map(RunSort::name).to_vec()))?,
    };
    let after: Option<RunCursor> = match query.after.as_deref() {
        None | Some("") => None,
        Some(text) if text.len() > MAX_PLACE => {
            return Err(Problem::bad_request("`after` is too long"));
        }
        Some(text) => {
            Some(text.parse().map_err(|error| Problem::bad_request(format!("`after`: {error}")))?)
        }
    };
    let order = RunOrder { by, ascending: query.ascending };
    let wanted = Wanted {
        filter: RunFilter {
            group,
            workflow: query.workflow.clone(),
            text: query.q.clone().filter(|text| !text.is_empty()),
            ..RunFilter::default()
        },
        refuted: query.refuted,
        folder: String::new(),
        with_steps: false,
        order,
        limit: query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE),
    };
    let page = listing::runs_page(site, &wanted, after)?;
    let runs = page.runs.into_iter().map(|listed| ListedRun {
        run: RunListItem::new(&listed.info, &listed.digest.after),
        folder: listed.folder,
        task: listed.digest.task,
        claims: listed.digest.claims,
        damage: listed.damage,
    });
    Ok(RunsPage { runs: runs.collect(), next: page.next.map(|next| next.to_string()) })
}

/// The report of a run, with what is needed to act on it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunAnswer {
    /// The report.
    #[serde(flatten)]
    report: RunReport,
    /// The number of its last event.
    seq: u64,
    /// Whether a process drives it.
    driven: bool,
}

pub(super) async fn run(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
) -> Response {
    let made = site.blocking(move |site| {
        let view = site.folders.view(&site.folders.find(&run)?)?;
        let view = view.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(RunAnswer { report: view.report()?, seq: view.seq(), driven: view.is_driven()? })
    });
    json(made.await)
}

pub(super) async fn claims(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
) -> Response {
    let made = site.blocking(move |site| {
        let place = site.folders.find(&run)?;
        let view = site.folders.view(&place)?;
        let view = view.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ClaimList::new(&place.run, view.claims()))
    });
    json(made.await)
}

/// The open questions of a run, each with what an answer has to name.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct QuestionsAnswer {
    /// The run's id.
    run: String,
    /// The questions.
    questions: Vec<AskedQuestion>,
}

/// An open question.
#[derive(Debug, Serialize, JsonSchema)]
struct AskedQuestion {
    /// The question.
    #[serde(flatten)]
    question: Question,
    /// The value of `If-Match` of an answer to it.
    etag: String,
}

pub(super) async fn questions(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
) -> Response {
    let made = site.blocking(move |site| {
        let place = site.folders.find(&run)?;
        let report = site.folders.view(&place)?;
        let report = report.lock().unwrap_or_else(PoisonError::into_inner).report()?;
        let open = OpenQuestions::of(&report).map_or_else(Vec::new, |open| open.questions);
        let questions = open.into_iter().map(|question| AskedQuestion {
            etag: format!("\"{}\"", question.digest(&place.run)),
            question,
        });
        Ok(QuestionsAnswer { questions: questions.collect(), run: place.run })
    });
    json(made.await)
}

pub(super) async fn attempt(
    State(site): State<Arc<Site>>,
    PathParts((run, attempt)): PathParts<(String, String)>,
) -> Response {
    let made = site.blocking(move |site| find(site, &run, &attempt).map(|(attempt, _)| attempt));
    json(made.await)
}

/// An attempt, and the reader of its transcripts.
fn find(site: &Site, run: &str, id: &str) -> Result<(Attempt, TranscriptReader), Problem> {
    let place = site.folders.find(run)?;
    let view = site.folders.view(&place)?;
    let report = view.lock().unwrap_or_else(PoisonError::into_inner).report()?;
    let attempt = find_attempt(&report, id)
        .ok_or_else(|| Problem::not_found(format!("run {} has no attempt {id}", place.run)))?;
    Ok((attempt.clone(), TranscriptReader::new(place.engine.journal().folder())))
}

pub(super) async fn reply_text(
    State(site): State<Arc<Site>>,
    PathParts((run, attempt, reply)): PathParts<(String, String, usize)>,
    headers: HeaderMap,
) -> Response {
    text(site, run, attempt, reply, headers, TranscriptReader::reply_text).await
}

pub(super) async fn reply_prompt(
    State(site): State<Arc<Site>>,
    PathParts((run, attempt, reply)): PathParts<(String, String, usize)>,
    headers: HeaderMap,
) -> Response {
    text(site, run, attempt, reply, headers, TranscriptReader::prompt_text).await
}

/// The answer with a text, or with a range of its bytes. It is never shown as a page.
async fn text(
    site: Arc<Site>,
    run: String,
    attempt: String,
    number: usize,
    headers: HeaderMap,
    open: impl Fn(&TranscriptReader, &Reply, &VerifiedTexts) -> Result<TranscriptText, TranscriptError>
    + Send
    + 'static,
) -> Response {
    let made = site.blocking(move |site| {
        let (attempt, files) = find(site, &run, &attempt)?;
        let reply = number.checked_sub(1).and_then(|at| attempt.replies.get(at));
        let reply = reply.ok_or_else(|| {
            Problem::not_found(format!("the attempt has {} replies", attempt.replies.len()))
        })?;
        open(&files, reply, &site.verified)
            .map_err(|why| Problem::new(StatusCode::GONE, "transcript", why.to_string()))
    });
    match made.await {
        Ok(text) => streamed(text, headers.get(header::RANGE)),
        Err(problem) => problem.into_answer(),
    }
}

/// The workflow with its contracts, as the run keeps them. The report of the run has its hash.
pub(super) async fn bundle(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
) -> Response {
    let made = site.blocking(move |site| {
        let place = site.folders.find(&run)?;
        let journal = place.engine.journal();
        Ok(journal.bundle(&journal.run(&place.run)?.bundle)?)
    });
    match made.await {
        Ok(bytes) => {
            let kind = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, kind)], bytes).into_response()
        }
        Err(problem) => problem.into_answer(),
    }
}
