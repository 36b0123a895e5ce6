//! Whole texts that pages show in part: the transcript of a reply, and what an attempt changed.

use super::path::PathParts;
use super::plain::{plain, streamed};
use crate::activity::growing;
use crate::folders::RunPlace;
use crate::pages::find_attempt;
use crate::problem::Problem;
use crate::site::Site;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use counterfoil_engine::{RunReport, TranscriptError, TranscriptReader, TranscriptText};
use std::sync::{Arc, PoisonError};

pub(super) async fn transcript(
    State(site): State<Arc<Site>>,
    PathParts((run, attempt, reply)): PathParts<(String, String, usize)>,
    headers: HeaderMap,
) -> Response {
    let opened = site.blocking(move |site| transcript_of(site, &run, &attempt, reply));
    match opened.await {
        Ok(text) => streamed(text, headers.get(header::RANGE)),
        Err(problem) => problem.into_answer(),
    }
}

pub(super) async fn diff(
    State(site): State<Arc<Site>>,
    PathParts((run, attempt)): PathParts<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let made = site.blocking(move |site| whole_diff(site, &run, &attempt));
    match made.await {
        Ok(bytes) => plain(bytes, headers.get(header::RANGE)),
        Err(problem) => problem.into_answer(),
    }
}

/// A run with its report.
fn report_of(site: &Site, run: &str) -> Result<(RunPlace, RunReport), Problem> {
    let place = site.folders.find(run)?;
    let view = site.folders.view(&place)?;
    let report = view.lock().unwrap_or_else(PoisonError::into_inner).report()?;
    Ok((place, report))
}

fn no_attempt(place: &RunPlace, id: &str) -> Problem {
    Problem::not_found(format!("run {} has no attempt {id}", place.run))
}

/// The events of a reply, as the agent wrote them. That of an attempt at work may be growing.
fn transcript_of(
    site: &Site,
    run: &str,
    id: &str,
    number: usize,
) -> Result<TranscriptText, Problem> {
    let (place, report) = report_of(site, run)?;
    let attempt = find_attempt(&report, id).ok_or_else(|| no_attempt(&place, id))?;
    let files = TranscriptReader::new(place.engine.journal().folder());
    let recorded = number.checked_sub(1).and_then(|at| attempt.replies.get(at));
    let is_growing = attempt.outcome.is_none() && number == attempt.replies.len() + 1;
    let opened = match recorded {
        Some(reply) => files.text(&reply.transcript, Some(&reply.sha256), &site.verified),
        None if is_growing => growing(&place, &report.attempts, attempt)
            .find()
            .ok_or(TranscriptError::NotKept)
            .and_then(|(reference, _)| files.text(&reference, None, &site.verified)),
        None => {
            let replies = attempt.replies.len();
            return Err(Problem::not_found(format!("the attempt has {replies} replies")));
        }
    };
    opened.map_err(|why| Problem::new(StatusCode::GONE, "transcript", why.to_string()))
}

/// What an attempt changed, as `patch` reads it.
fn whole_diff(site: &Site, run: &str, id: &str) -> Result<Vec<u8>, Problem> {
    let (place, report) = report_of(site, run)?;
    find_attempt(&report, id).ok_or_else(|| no_attempt(&place, id))?;
    let found = site.diffs.whole(&place, id);
    let found = found.map_err(|why| Problem::new(StatusCode::GONE, "diff", why))?;
    let diff = found
        .ok_or_else(|| Problem::not_found(format!("there is no record of what {id} changed")))?;
    let mut text = diff.unified();
    if diff.left_out > 0 {
        text.push_str(&format!("{} more files are left out\n", diff.left_out));
    }
    Ok(text.into_bytes())
}
