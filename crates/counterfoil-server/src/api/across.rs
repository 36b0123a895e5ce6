//! What is known over all runs: the health of agents, and the claims of each field.

use super::json;
use crate::counted::{By, Coverage};
use crate::pages::{claims_in, runs_with_claims};
use crate::problem::Problem;
use crate::query::parse_query;
use crate::site::Site;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use counterfoil_engine::ledger::{Dimension, Entry, GroupReport, Key, TrendReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The number of weeks of a trend.
const WEEKS: usize = 12;

/// The query of the figures.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HealthQuery {
    /// The properties by which the figures are grouped.
    by: By,
}

/// Figures over all runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HealthAnswer {
    /// How many runs the figures are about.
    coverage: Coverage,
    /// The properties by which they are grouped.
    by: Vec<Dimension>,
    /// The groups: the highest rate of refuted claims first, then the most claims.
    groups: Vec<TrendReport>,
}

pub(super) async fn health(State(site): State<Arc<Site>>, RawQuery(query): RawQuery) -> Response {
    let query: HealthQuery = match parse_query(query.as_deref()) {
        Ok(query) => query,
        Err(problem) => return problem.into_answer(),
    };
    let made = site.blocking(move |site| {
        let overview = site.counted.overview(&site.folders)?;
        let by = query.by.dimensions();
        let now = jiff::Timestamp::now().as_millisecond();
        let trends = overview.weeks.trends(by, now, WEEKS);
        Ok(HealthAnswer {
            coverage: overview.coverage,
            by: by.to_vec(),
            groups: trends.iter().map(|trend| trend.report(by)).collect(),
        })
    });
    json(made.await)
}

/// The query of the claims.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClaimsQuery {
    /// Only claims of this contract, as `id@version`. An empty one is none.
    contract: Option<String>,
    /// Only claims of this field.
    field: Option<String>,
    /// Whether runs with refuted claims come first.
    refuted_first: bool,
    /// The number of runs that are left out: `next` of the page before.
    from: usize,
}

/// Claims over all runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AllClaimsAnswer {
    /// How many runs the figures are about.
    coverage: Coverage,
    /// The figures of each field.
    fields: Vec<GroupReport>,
    /// The claims, those of the newest run first, at most 20 of a run. Empty if the query names
    /// neither a contract nor a field.
    claims: Vec<FoundClaim>,
    /// The value of `from` for the next page; null if this is the last one.
    next: Option<usize>,
    /// Whether the time was over before all runs of this page were read. Ask again for the rest.
    cut: bool,
}

/// A claim and its run.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundClaim {
    /// The id of the run.
    run: String,
    /// The name of its workflow.
    workflow: String,
    /// The name of its state folder.
    folder: String,
    /// The claim.
    #[serde(flatten)]
    entry: Entry,
}

pub(super) async fn claims(State(site): State<Arc<Site>>, RawQuery(query): RawQuery) -> Response {
    let query: ClaimsQuery = match parse_query(query.as_deref()) {
        Ok(query) => query,
        Err(problem) => return problem.into_answer(),
    };
    json(site.blocking(move |site| all_claims(site, query)).await)
}

fn all_claims(site: &Site, query: ClaimsQuery) -> Result<AllClaimsAnswer, Problem> {
    let ClaimsQuery { contract, field, refuted_first, from } = query;
    let key = Key { contract, field, ..Key::default() };
    let overview = site.counted.overview(&site.folders)?;
    let by = By::Field.dimensions();
    let groups = overview.weeks.tally(by).groups;
    let fields = groups
        .iter()
        .filter(|group| group.claims.claims > 0 && group.key.has(&key))
        .map(|group| group.report(by))
        .collect();
    let mut answer = AllClaimsAnswer {
        coverage: overview.coverage,
        fields,
        claims: Vec::new(),
        next: None,
        cut: false,
    };
    if key == Key::default() {
        return Ok(answer);
    }
    let runs = runs_with_claims(&overview, &key, refuted_first);
    let portion = site.counted.search(&runs, from, |run| claims_in(run, &key, refuted_first).0);
    (answer.next, answer.cut) = (portion.next, portion.is_cut);
    for (run, entries) in portion.found {
        answer.claims.extend(entries.into_iter().map(|entry| FoundClaim {
            run: run.run.clone(),
            workflow: run.workflow.clone(),
            folder: run.folder.clone(),
            entry,
        }));
    }
    Ok(answer)
}
