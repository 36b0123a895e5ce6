//! An attempt: what its agent was asked, what it answered, what is wrong with that, what was verified
//! and what it changed.

mod calls;
mod repairs;
mod replies;

use super::diff::{self, DiffSection};
use super::run::now::{Moment, attempt_mark, attempt_reason, ended_at, is_at_work};
use super::{Rendered, Section, claims};
use crate::folders::RunPlace;
use crate::format::{self, Mark};
use crate::problem::Problem;
use crate::revalidation::RunContract;
use crate::site::Site;
use askama::Template;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{Attempt, RunReport};
use serde::Deserialize;
use std::sync::{Arc, PoisonError};

/// The query of an attempt's page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// The number of the reply that is shown, from 1; 0 for the last one.
    pub(super) reply: usize,
    /// The line of the reply that is marked. The text begins a little before it.
    pub(super) line: usize,
    /// The line at which the text begins, if it is not the marked one that is shown.
    pub(super) from: usize,
    /// The byte of the reply at which a text was found that is shown.
    pub(super) at: Option<usize>,
    /// A text to search in the reply.
    pub(super) find: String,
}

/// What an attempt is and how it ended.
#[derive(Template)]
#[template(path = "attempt-head.html")]
struct Head {
    run_address: String,
    workflow: String,
    title: String,
    n: u32,
    visit: u32,
    attempt: u32,
    agent: String,
    contract: String,
    mark: Mark,
    /// The number of claims that are refuted.
    refuted: usize,
    reason: String,
    started: Moment,
    /// Whether the time counts on.
    is_at_work: bool,
    took: String,
    cost: String,
    tokens: u64,
    /// What came of its repairs.
    repairs: Option<String>,
    before: Option<Link>,
    after: Option<Link>,
}

/// A link to another attempt.
struct Link {
    address: String,
    title: String,
}

/// What an attempt gave: its result and its checks.
#[derive(Template)]
#[template(path = "attempt-result.html")]
struct Outcome {
    result: String,
    checks: Vec<(String, String)>,
}

/// Finds an attempt by its id.
pub(crate) fn find<'r>(report: &'r RunReport, id: &str) -> Option<&'r Attempt> {
    let all = report.attempts.iter().chain(&report.commands);
    let mut all = all.filter(|attempt| format::attempt_id(&attempt.path, attempt.n) == id);
    all.next()
}

pub(super) fn render(
    site: &Arc<Site>,
    run: &str,
    id: &str,
    query: &Query,
) -> Result<Rendered, Problem> {
    let place = site.folders.find(run)?;
    let view = site.folders.view(&place)?;
    let (report, entries, run_state) = {
        let view = view.lock().unwrap_or_else(PoisonError::into_inner);
        (view.report()?, view.claims(), view.run_state().clone())
    };
    let attempt = find(&report, id)
        .ok_or_else(|| Problem::not_found(format!("run {} has no attempt {id}", place.run)))?;
    let own = entries.iter().filter(|entry| entry.path == attempt.path && entry.n == attempt.n);
    let workflow = place.engine.workflow(&run_state).ok();
    let contract = attempt
        .contract
        .as_deref()
        .and_then(|name| workflow.as_ref().and_then(|workflow| workflow.contract(name)));
    let changes = DiffSection::new(site, &place, &report, attempt, diff::ON_PAGE);
    let is_at_work = is_at_work(attempt, &report);
    let contract = contract.map(|contract| RunContract { contract, bundle: &run_state.bundle });
    let sections = vec![
        Section::new("attempt-head", &head(&place, &report, &entries, attempt))?,
        Section::new("attempt-claims", &claims::list(&place.run, own))?,
        Section::new("attempt-calls", &calls::calls(site, &place, &report, attempt))?,
        Section::new(
            "attempt-replies",
            &replies::replies((site, &place), (attempt, is_at_work), contract, query),
        )?,
        Section::new("attempt-result", &outcome(attempt))?,
        Section::new("attempt-diff", &changes)?,
    ];
    let title = format!("{} · {}", format::cell(id), format::cell(&report.workflow));
    Ok(Rendered { title, sections })
}

fn head(place: &RunPlace, report: &RunReport, entries: &[Entry], attempt: &Attempt) -> Head {
    let run_address = format!("/runs/{}", format::encode(&place.run));
    let mut all: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    all.sort_by_key(|attempt| attempt.started_at);
    let at = all.iter().position(|other| std::ptr::eq(*other, attempt)).unwrap_or(0);
    let link = |attempt: &&Attempt| {
        let id = format::attempt_id(&attempt.path, attempt.n);
        Link {
            address: format!("{run_address}/attempts/{}", format::encode(&id)),
            title: format::cell(&id),
        }
    };
    let end = ended_at(attempt, report);
    Head {
        before: at.checked_sub(1).and_then(|at| all.get(at)).map(link),
        after: all.get(at + 1).map(link),
        workflow: format::cell(&report.workflow),
        title: format::cell(&attempt.path.join(" / ")),
        n: attempt.n,
        visit: attempt.visit,
        attempt: attempt.attempt,
        agent: format::cell(attempt.agent.as_deref().unwrap_or_default()),
        contract: format::cell(attempt.contract.as_deref().unwrap_or_default()),
        mark: attempt_mark(attempt, report),
        refuted: attempt.refuted_among(entries),
        reason: format::text(&attempt_reason(attempt, report)),
        started: Moment::new(attempt.started_at),
        is_at_work: is_at_work(attempt, report),
        took: format::duration(u64::try_from(end - attempt.started_at).unwrap_or(0)),
        cost: format::cost(attempt.usage.cost_usd),
        tokens: attempt.usage.input_tokens + attempt.usage.output_tokens,
        repairs: format::repairs(attempt),
        run_address,
    }
}

fn outcome(attempt: &Attempt) -> Outcome {
    let checks = attempt.checks.iter().map(|(name, check)| {
        let check = serde_json::to_value(check).unwrap_or_default();
        (format::cell(name), format::pretty(&check))
    });
    Outcome {
        result: attempt.value.as_ref().map(format::pretty).unwrap_or_default(),
        checks: checks.collect(),
    }
}
