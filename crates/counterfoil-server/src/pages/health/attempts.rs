//! The attempts behind a figure.

use super::super::run::now::Moment;
use super::super::{Rendered, Section};
use crate::counted::{Coverage, RunFigures};
use crate::format::{self, Mark};
use crate::problem::Problem;
use crate::site::Site;
use askama::Template;
use counterfoil_contract::claim::Verdict;
use counterfoil_engine::ledger::{CountedAttempt, CountedRun, Entry, Key};
use counterfoil_flow::AttemptOutcome;
use serde::Deserialize;
use std::sync::Arc;

/// The most attempts of one run. Its page has all.
const MAX_OF_RUN: usize = 20;
/// The most codes and claims that a row names.
const MAX_NAMED: usize = 4;

/// Which attempts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// All.
    #[default]
    All,
    /// Those with a refuted claim.
    Refuted,
    /// Those with a reply that violates its contract.
    Violations,
    /// Those whose result was accepted.
    Accepted,
}

impl What {
    const EACH: [Self; 4] = [Self::All, Self::Refuted, Self::Violations, Self::Accepted];

    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Refuted => "refuted",
            Self::Violations => "violations",
            Self::Accepted => "accepted",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::All => "All attempts",
            Self::Refuted => "Refuted claims",
            Self::Violations => "Violations",
            Self::Accepted => "Accepted",
        }
    }
}

/// The query of the page: the properties of the attempts. An empty one is one that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    contract: Option<String>,
    field: Option<String>,
    agent: Option<String>,
    player: Option<String>,
    model: Option<String>,
    version: Option<String>,
    what: What,
    /// The number of runs before the page.
    from: usize,
}

impl Query {
    fn key(&self) -> Key {
        let Self { contract, field, agent, player, model, version, .. } = self.clone();
        Key { contract, field, agent, player, model, version }
    }
}

/// The properties of a key with their names.
fn parts(key: &Key) -> Vec<(&'static str, &str)> {
    let all = [
        ("contract", &key.contract),
        ("field", &key.field),
        ("agent", &key.agent),
        ("player", &key.player),
        ("model", &key.model),
        ("version", &key.version),
    ];
    all.into_iter().filter_map(|(name, part)| Some((name, part.as_deref()?))).collect()
}

/// The address of the attempts behind a figure.
pub(super) fn address(key: &Key, what: What) -> String {
    address_from(key, what, 0)
}

fn address_from(key: &Key, what: What, from: usize) -> String {
    let mut pairs = parts(key);
    if what != What::All {
        pairs.push(("what", what.name()));
    }
    let from_text = from.to_string();
    if from > 0 {
        pairs.push(("from", from_text.as_str()));
    }
    let query = serde_urlencoded::to_string(pairs).unwrap_or_default();
    format!("/health/attempts?{query}")
}

/// The attempts.
#[derive(Template)]
#[template(path = "health-attempts.html")]
struct Attempts {
    coverage: Coverage,
    parts: Vec<(&'static str, String)>,
    tabs: Vec<(&'static str, String, bool)>,
    rows: Vec<Row>,
    runs: usize,
    is_cut: bool,
    unreadable: usize,
    first: Option<String>,
    next: Option<String>,
}

/// An attempt, or the number of those that are left out.
struct Row {
    address: String,
    title: String,
    run_address: String,
    workflow: String,
    run: String,
    agent: String,
    mark: Mark,
    violations: u64,
    replies: u64,
    codes: String,
    refuted: String,
    claims: usize,
    cost: String,
    at: Moment,
    /// The attempts of the run that are not shown.
    more: usize,
}

/// What is shown of a run.
struct Found {
    attempts: Vec<(CountedAttempt, Vec<Entry>)>,
    more: usize,
}

pub(crate) fn render(site: &Arc<Site>, query: &Query) -> Result<Rendered, Problem> {
    let overview = site.counted.overview(&site.folders)?;
    let key = query.key();
    let matching: Vec<Arc<RunFigures>> =
        overview.runs.iter().filter(|run| has(run, &key, query.what)).cloned().collect();
    let portion = site.counted.search(&matching, query.from, |run| find(run, &key, query.what));
    let rows = portion.found.iter().flat_map(|(run, found)| {
        let last = found.attempts.len().saturating_sub(1);
        found.attempts.iter().enumerate().map(move |(at, (attempt, claims))| Row {
            more: if at == last { found.more } else { 0 },
            ..row(run, attempt, claims)
        })
    });
    let tabs =
        What::EACH.map(|what| (what.label(), address(&key, what), what == query.what)).to_vec();
    let page = Attempts {
        coverage: overview.coverage,
        parts: parts(&key)
            .into_iter()
            .map(|(name, part)| {
                (name, if part.is_empty() { "not known".to_owned() } else { format::cell(part) })
            })
            .collect(),
        tabs,
        rows: rows.collect(),
        runs: matching.len(),
        is_cut: portion.is_cut,
        unreadable: portion.unreadable,
        first: (query.from > 0).then(|| address(&key, query.what)),
        next: portion.next.map(|next| address_from(&key, query.what, next)),
    };
    let section = Section::new("health-attempts", &page)?;
    Ok(Rendered { title: "Attempts".to_owned(), sections: vec![section] })
}

/// Whether a run may have such attempts, by its figures.
fn has(run: &RunFigures, key: &Key, what: What) -> bool {
    let group = run.figures.of(key);
    let names_field = key.field.as_deref().is_some_and(|field| !field.is_empty());
    if names_field && group.claims.claims == 0 {
        return false;
    }
    match what {
        What::All => group.replies.attempts > 0,
        What::Refuted => group.claims.refuted > 0,
        What::Violations => group.replies.violations > 0,
        What::Accepted => group.replies.accepted > 0,
    }
}

/// The attempts of a run with these properties, the last ones first, and their claims.
fn find(run: &CountedRun, key: &Key, what: What) -> Found {
    let whose = key.without_field();
    let field = key.field.as_deref();
    let of_key = run.attempts.iter().rev().filter(|attempt| attempt.key.has(&whose));
    let mut found = Found { attempts: Vec::new(), more: 0 };
    for attempt in of_key {
        let is_wanted = |entry: &&Entry| field.is_none_or(|field| field == entry.field());
        let claims: Vec<&Entry> = run.claims_of(attempt).filter(is_wanted).collect();
        let claims_field = match field {
            None => true,
            // The attempts that claimed nothing.
            Some("") => run.claims_of(attempt).next().is_none(),
            Some(_) => !claims.is_empty(),
        };
        let is_shown = match what {
            What::All => true,
            What::Refuted => claims.iter().any(|entry| is_refuted(entry)),
            What::Violations => attempt.violations > 0,
            What::Accepted => attempt.outcome == Some(AttemptOutcome::Accepted),
        };
        if !claims_field || !is_shown {
            continue;
        }
        if found.attempts.len() < MAX_OF_RUN {
            let claims = claims.into_iter().cloned().collect();
            found.attempts.push((attempt.clone(), claims));
        } else {
            found.more += 1;
        }
    }
    found
}

fn is_refuted(entry: &Entry) -> bool {
    entry.claim.verdict == Verdict::Refuted
}

fn row(run: &RunFigures, attempt: &CountedAttempt, claims: &[Entry]) -> Row {
    let run_address = format!("/runs/{}", format::encode(&run.run));
    let id = format::attempt_id(&attempt.path, attempt.n);
    let codes = attempt.codes.keys().take(MAX_NAMED).cloned().collect::<Vec<_>>();
    let mut refuted: Vec<&str> =
        claims.iter().filter(|entry| is_refuted(entry)).map(Entry::field).collect();
    refuted.sort_unstable();
    refuted.dedup();
    let refuted: Vec<String> = refuted.into_iter().take(MAX_NAMED).map(format::cell).collect();
    let mark = if attempt.is_lost {
        format::run_outcome("interrupted")
    } else {
        format::attempt_outcome(attempt.outcome.map(AttemptOutcome::name))
    };
    Row {
        address: format!("{run_address}/attempts/{}", format::encode(&id)),
        title: format::cell(&id),
        workflow: format::cell(&run.workflow),
        run: run.run.chars().take(13).collect(),
        agent: format::cell(attempt.key.agent.as_deref().unwrap_or_default()),
        mark,
        violations: attempt.violations,
        replies: attempt.replies,
        codes: format::cell(&codes.join(", ")),
        refuted: refuted.join(", "),
        claims: claims.len(),
        cost: format::cost(attempt.cost_usd),
        at: Moment::new(attempt.started_at),
        more: 0,
        run_address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_what_is_not_known_from_what_is_not_asked_for() {
        let key =
            Key { agent: Some("a&b".to_owned()), model: Some(String::new()), ..Key::default() };
        let text = address_from(&key, What::Refuted, 40);
        assert_eq!(text, "/health/attempts?agent=a%26b&model=&what=refuted&from=40");
        let (_, query) = text.split_once('?').unwrap();
        let query: Query = serde_urlencoded::from_str(query).unwrap();
        assert_eq!((query.key(), query.what, query.from), (key, What::Refuted, 40));
    }
}
