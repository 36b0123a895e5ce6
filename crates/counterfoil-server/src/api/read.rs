//! Reading runs, attempts, claims, questions and transcripts.

use super::json;
use super::path::PathParts;
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
use counterfoil_engine::{Attempt, Question, RunReport, TranscriptError, TranscriptReader};
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
    text(site, run, attempt, reply, headers, TranscriptReader::reply).await
}

pub(super) async fn reply_prompt(
    State(site): State<Arc<Site>>,
    PathParts((run, attempt, reply)): PathParts<(String, String, usize)>,
    headers: HeaderMap,
) -> Response {
    text(site, run, attempt, reply, headers, TranscriptReader::prompt).await
}

/// The answer with a text, or with a range of its bytes. It is never shown as a page.
async fn text(
    site: Arc<Site>,
    run: String,
    attempt: String,
    number: usize,
    headers: HeaderMap,
    read: impl Fn(&TranscriptReader, &counterfoil_flow::Reply) -> Result<Vec<u8>, TranscriptError>
    + Send
    + 'static,
) -> Response {
    let made = site.blocking(move |site| {
        let (attempt, files) = find(site, &run, &attempt)?;
        let reply = number.checked_sub(1).and_then(|at| attempt.replies.get(at));
        let reply = reply.ok_or_else(|| {
            Problem::not_found(format!("the attempt has {} replies", attempt.replies.len()))
        })?;
        read(&files, reply)
            .map_err(|why| Problem::new(StatusCode::GONE, "transcript", why.to_string()))
    });
    match made.await {
        Ok(bytes) => plain(bytes, headers.get(header::RANGE)),
        Err(problem) => problem.into_answer(),
    }
}

/// The answer with a text, or with a range of its bytes.
pub(super) fn plain(mut bytes: Vec<u8>, range: Option<&HeaderValue>) -> Response {
    let total = bytes.len();
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    let ranges = (header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let Some(asked) = range.and_then(|range| range.to_str().ok()).and_then(parse_range) else {
        return ([kind, ranges], bytes).into_response();
    };
    let (from, to) = match asked {
        (Some(from), to) => (from, to.map_or(total, |to| to.saturating_add(1)).min(total)),
        (None, last) => (total.saturating_sub(last.unwrap_or(0)), total),
    };
    let content_range = |text: String| {
        (
            header::CONTENT_RANGE,
            HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("")),
        )
    };
    if from >= to {
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        return (status, [kind, content_range(format!("bytes */{total}"))]).into_response();
    }
    bytes.truncate(to);
    let part = bytes.split_off(from);
    let range = content_range(format!("bytes {from}-{}/{total}", to - 1));
    (StatusCode::PARTIAL_CONTENT, [kind, ranges, range], part).into_response()
}

/// The first and the last byte of a header `Range` with one range: `bytes=0-99`, `bytes=100-`,
/// `bytes=-50`. Others are ignored, as the standard allows.
fn parse_range(text: &str) -> Option<(Option<usize>, Option<usize>)> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        if text.is_empty() { Some(None) } else { text.trim().parse().ok().map(Some) }
    };
    match (number(from)?, number(to)?) {
        (None, None) => None,
        range => Some(range),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_read_and_others_are_ignored() {
        for (text, range) in [
            ("bytes=0-99", Some((Some(0), Some(99)))),
            ("bytes=100-", Some((Some(100), None))),
            ("bytes=-50", Some((None, Some(50)))),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("lines=1-2", None),
            ("bytes=0-1,3-4", None),
        ] {
            assert_eq!(parse_range(text), range, "{text}");
        }
    }

    #[test]
    fn a_range_is_a_part_and_one_outside_is_refused() {
        let status = |range: &'static str| {
            plain(b"0123456789".to_vec(), Some(&HeaderValue::from_static(range))).status()
        };
        assert_eq!(status("bytes=2-4"), StatusCode::PARTIAL_CONTENT);
        assert_eq!(status("bytes=2-400"), StatusCode::PARTIAL_CONTENT);
        assert_eq!(status("bytes=10-"), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(status("bytes=5-2"), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(status("nothing"), StatusCode::OK);
    }
}
