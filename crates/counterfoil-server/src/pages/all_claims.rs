//! The same claim in all runs: which fields are claimed, and what became of one of them.

use super::health::share;
use super::run::now::Moment;
use super::{Rendered, Section, claims};
use crate::counted::{By, Coverage, Overview, RunFigures};
use crate::format::{self, Mark};
use crate::problem::Problem;
use crate::site::Site;
use askama::Template;
use counterfoil_contract::claim::Verdict;
use counterfoil_engine::event_text::evidence;
use counterfoil_engine::ledger::{ClaimFigures, CountedRun, Entry, Key};
use serde::Deserialize;
use std::sync::Arc;

/// The most fields that the page lists. The API has all.
const MAX_FIELDS: usize = 500;
/// The most entries of one run. Its page has all.
const MAX_OF_RUN: usize = 20;
/// The most pieces of evidence of a claim. The page of its attempt has all.
const MAX_EVIDENCE: usize = 3;

/// The query of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// The contract, as `id@version`.
    contract: Option<String>,
    /// The field that makes the claim.
    field: Option<String>,
    order: Order,
    /// The number of runs before the page.
    from: usize,
}

/// The order of the claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    #[default]
    Newest,
    Refuted,
}

/// The fields.
#[derive(Template)]
#[template(path = "all-claims.html")]
struct Fields {
    coverage: Coverage,
    fields: Vec<Field>,
    more: usize,
}

struct Field {
    contract: String,
    field: String,
    address: String,
    refuted_address: String,
    claims: u64,
    verdicts: Vec<(Mark, u64)>,
    share: String,
    of: u64,
}

/// The claims of a field.
#[derive(Template)]
#[template(path = "claim-entries.html")]
struct Entries {
    coverage: Coverage,
    contract: String,
    field: String,
    newest: String,
    refuted: String,
    is_refuted_first: bool,
    claims: u64,
    verdicts: Vec<(Mark, u64)>,
    entries: Vec<ClaimRow>,
    runs: usize,
    is_cut: bool,
    unreadable: usize,
    first: Option<String>,
    next: Option<String>,
}

/// A claim.
struct ClaimRow {
    address: String,
    title: String,
    run_address: String,
    workflow: String,
    run: String,
    agent: String,
    mark: Mark,
    claimed: String,
    observed: String,
    reason: String,
    /// The evidence, if the claim is refuted.
    evidence: Vec<String>,
    at: Moment,
    /// The claims of the run that are not shown.
    more: usize,
}

pub(super) fn render(site: &Arc<Site>, query: &Query) -> Result<Rendered, Problem> {
    let overview = site.counted.overview(&site.folders)?;
    match (&query.contract, &query.field) {
        (None, None) => list(&overview),
        (contract, field) => {
            let key = Key { contract: contract.clone(), field: field.clone(), ..Key::default() };
            entries(site, &overview, &key, query)
        }
    }
}

fn list(overview: &Overview) -> Result<Rendered, Problem> {
    let groups = overview.weeks.tally(By::Field.dimensions()).groups;
    let claimed: Vec<_> = groups.iter().filter(|group| group.claims.claims > 0).collect();
    let fields = claimed.iter().take(MAX_FIELDS).map(|group| {
        let claims = &group.claims;
        let of = claims.verified + claims.refuted;
        Field {
            contract: name(group.key.contract.as_deref(), "(no contract)"),
            field: name(group.key.field.as_deref(), "(no field)"),
            address: address(&group.key, Order::Newest, 0),
            refuted_address: address(&group.key, Order::Refuted, 0),
            claims: claims.claims,
            verdicts: verdicts(claims),
            share: share(claims.refuted, of),
            of,
        }
    });
    let page = Fields {
        coverage: overview.coverage,
        fields: fields.collect(),
        more: claimed.len().saturating_sub(MAX_FIELDS),
    };
    let section = Section::new("all-claims", &page)?;
    Ok(Rendered { title: "Claims".to_owned(), sections: vec![section] })
}

fn entries(
    site: &Arc<Site>,
    overview: &Overview,
    key: &Key,
    query: &Query,
) -> Result<Rendered, Problem> {
    let is_refuted_first = query.order == Order::Refuted;
    let runs = matching(overview, key, is_refuted_first);
    let portion = site.counted.search(&runs, query.from, |run| find(run, key, is_refuted_first));
    let mut shown: Vec<(bool, ClaimRow)> = Vec::new();
    for (run, (found, more)) in &portion.found {
        let last = found.len().saturating_sub(1);
        shown.extend(found.iter().enumerate().map(|(at, entry)| {
            let is_refuted = entry.claim.verdict == Verdict::Refuted;
            let more = if at == last { *more } else { 0 };
            (is_refuted, ClaimRow { more, ..claim_row(run, entry) })
        }));
    }
    if is_refuted_first {
        shown.sort_by_key(|(is_refuted, _)| !is_refuted);
    }
    let claims = overview.runs.iter().fold(ClaimFigures::default(), |mut sum, run| {
        let own = run.figures.of(key).claims;
        sum.claims += own.claims;
        sum.verified += own.verified;
        sum.refuted += own.refuted;
        sum.stale += own.stale;
        sum.unverifiable += own.unverifiable;
        sum
    });
    let page = Entries {
        coverage: overview.coverage,
        contract: name(key.contract.as_deref(), "(no contract)"),
        field: name(key.field.as_deref(), "(all fields)"),
        newest: address(key, Order::Newest, 0),
        refuted: address(key, Order::Refuted, 0),
        is_refuted_first,
        claims: claims.claims,
        verdicts: verdicts(&claims),
        entries: shown.into_iter().map(|(_, row)| row).collect(),
        runs: runs.len(),
        is_cut: portion.is_cut,
        unreadable: portion.unreadable,
        first: (query.from > 0).then(|| address(key, query.order, 0)),
        next: portion.next.map(|next| address(key, query.order, next)),
    };
    let title = format!("Claims · {}", page.field);
    Ok(Rendered { title, sections: vec![Section::new("claim-entries", &page)?] })
}

/// The runs with such claims, the newest first.
pub(crate) fn matching(
    overview: &Overview,
    key: &Key,
    is_refuted_first: bool,
) -> Vec<Arc<RunFigures>> {
    let counted = overview.runs.iter().map(|run| (run.figures.of(key).claims, run));
    let mut found: Vec<(bool, &Arc<RunFigures>)> = counted
        .filter(|(claims, _)| claims.claims > 0)
        .map(|(claims, run)| (claims.refuted > 0, run))
        .collect();
    if is_refuted_first {
        found.sort_by_key(|(has_refuted, _)| !has_refuted);
    }
    found.into_iter().map(|(_, run)| Arc::clone(run)).collect()
}

/// The claims of a run, the newest first, and the number of those that are left out.
pub(crate) fn find(run: &CountedRun, key: &Key, is_refuted_first: bool) -> (Vec<Entry>, usize) {
    let has = |wanted: &Option<String>, own: &str| wanted.as_deref().is_none_or(|it| it == own);
    let mut found: Vec<&Entry> = run
        .claims
        .iter()
        .rev()
        .filter(|entry| has(&key.contract, entry.contract.as_deref().unwrap_or_default()))
        .filter(|entry| has(&key.field, entry.field()))
        .collect();
    if is_refuted_first {
        found.sort_by_key(|entry| entry.claim.verdict != Verdict::Refuted);
    }
    let more = found.len().saturating_sub(MAX_OF_RUN);
    (found.into_iter().take(MAX_OF_RUN).cloned().collect(), more)
}

fn name(part: Option<&str>, unknown: &str) -> String {
    match part {
        None | Some("") => unknown.to_owned(),
        Some(name) => format::cell(name),
    }
}

/// The number of claims by their original verdicts, without those that none has.
fn verdicts(claims: &ClaimFigures) -> Vec<(Mark, u64)> {
    let counts = [
        (Verdict::Refuted, claims.refuted),
        (Verdict::Unverifiable, claims.unverifiable),
        (Verdict::Stale, claims.stale),
        (Verdict::Verified, claims.verified),
    ];
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(verdict, count)| (format::verdict(verdict), count)).collect()
}

fn address(key: &Key, order: Order, from: usize) -> String {
    let from_text = from.to_string();
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for (name, part) in [("contract", &key.contract), ("field", &key.field)] {
        if let Some(part) = part {
            pairs.push((name, part.as_str()));
        }
    }
    if order == Order::Refuted {
        pairs.push(("order", "refuted"));
    }
    if from > 0 {
        pairs.push(("from", from_text.as_str()));
    }
    format!("/claims?{}", serde_urlencoded::to_string(pairs).unwrap_or_default())
}

fn claim_row(run: &RunFigures, entry: &Entry) -> ClaimRow {
    let run_address = format!("/runs/{}", format::encode(&run.run));
    let id = format::attempt_id(&entry.path, entry.n);
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => format::cell(text),
        value => format::cell(&value.to_string()),
    };
    let is_refuted = entry.claim.verdict == Verdict::Refuted;
    let pieces = evidence(&entry.claim, &entry.since).into_iter().filter(|_| is_refuted);
    ClaimRow {
        address: format!(
            "{run_address}/attempts/{}#{}",
            format::encode(&id),
            claims::element_of(entry)
        ),
        title: format::cell(&id),
        workflow: format::cell(&run.workflow),
        run: run.run.chars().take(13).collect(),
        agent: format::cell(entry.agent.as_deref().unwrap_or_default()),
        mark: if entry.corrected {
            format::CORRECTED
        } else {
            format::verdict(entry.claim.verdict)
        },
        claimed: shown(&entry.claim.claimed),
        observed: shown(&entry.claim.observed),
        reason: format::cell(&entry.claim.reason),
        evidence: pieces.take(MAX_EVIDENCE).map(|(_, line)| format::text(&line)).collect(),
        at: Moment::new(entry.at),
        more: 0,
        run_address,
    }
}
