//! The claims of a run: what was claimed, what was observed, and by what evidence it was decided.

use super::run::now::Moment;
use super::{Rendered, Section};
use crate::format::{self, Mark};
use crate::problem::Problem;
use crate::site::Site;
use askama::Template;
use counterfoil_contract::claim::Verdict;
use counterfoil_engine::event_text::evidence;
use counterfoil_engine::ledger::{Entry, totals};
use serde::Deserialize;
use std::sync::{Arc, PoisonError};

/// The query of the claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// A text that the claims contain.
    q: String,
}

/// A claim with its evidence.
pub(super) struct Claim {
    /// The id of its element, for permanent links.
    pub(super) id: String,
    /// The permanent link.
    pub(super) link: String,
    pub(super) address: String,
    pub(super) mark: Mark,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) visit: u32,
    pub(super) reply: u32,
    pub(super) at: Moment,
    pub(super) claimed: String,
    pub(super) observed: String,
    pub(super) reason: String,
    pub(super) since: String,
    pub(super) policy: String,
    pub(super) evidence: Vec<Piece>,
    pub(super) is_old: bool,
}

/// A piece of evidence.
pub(super) struct Piece {
    pub(super) kind: String,
    pub(super) text: String,
}

/// The claims of a run or of an attempt.
#[derive(Template)]
#[template(path = "claims.html")]
pub(super) struct Claims {
    claims: Vec<Claim>,
    run_address: String,
    /// The workflow and the id of the run.
    run_name: String,
    q: String,
    /// The claims that count, as the page of the run says, and those that a later claim replaced.
    total: usize,
    replaced: usize,
    is_page: bool,
}

pub(super) fn render(site: &Arc<Site>, run: &str, query: &Query) -> Result<Rendered, Problem> {
    let place = site.folders.find(run)?;
    let view = site.folders.view(&place)?;
    let view = view.lock().unwrap_or_else(PoisonError::into_inner);
    let entries = view.claims();
    let wanted: Vec<&Entry> = entries.iter().filter(|entry| contains(entry, &query.q)).collect();
    let mut claims = list(&place.run, wanted);
    claims.q.clone_from(&query.q);
    claims.total = usize::try_from(totals(&entries).made).unwrap_or(usize::MAX);
    claims.replaced = entries.len().saturating_sub(claims.total);
    claims.run_name = format::cell(&format!("{} {}", view.run_state().workflow, place.run));
    claims.is_page = true;
    let title = format!("Claims · {}", format::cell(&view.run_state().workflow));
    Ok(Rendered { title, sections: vec![Section::new("claims-of-run", &claims)?] })
}

/// Whether a claim contains a text, in whatever case.
fn contains(entry: &Entry, text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let claim = &entry.claim;
    let values = [claim.claimed.to_string(), claim.observed.to_string()];
    let texts = [&claim.claim, &claim.reason, &entry.since].into_iter();
    let texts = texts.chain(&entry.path).chain(&entry.agent).chain(&values);
    let evidence = evidence(claim, &entry.since);
    let evidence = evidence.iter().map(|(_, line)| line);
    text.is_empty() || texts.chain(evidence).any(|part| part.to_lowercase().contains(&text))
}

/// The claims as a list: refuted ones first, then those that could not be verified.
pub(super) fn list<'e>(run: &str, entries: impl IntoIterator<Item = &'e Entry>) -> Claims {
    let run_address = format!("/runs/{}", format::encode(run));
    let mut entries: Vec<&Entry> = entries.into_iter().collect();
    entries.sort_by_key(|entry| rank(entry));
    let claims: Vec<Claim> = entries.into_iter().map(|entry| claim(&run_address, entry)).collect();
    Claims {
        total: claims.len(),
        replaced: 0,
        claims,
        run_address,
        run_name: String::new(),
        q: String::new(),
        is_page: false,
    }
}

/// The claims of a run that its totals count, the first `max` of them in the order of [`list`], and the
/// number of the others. Their ids are theirs on a page with several runs.
pub(super) fn beside(run: &str, entries: &[Entry], max: usize) -> (Vec<Claim>, usize) {
    let counted = entries.iter().filter(|entry| !entry.superseded || entry.corrected);
    let mut claims = list(run, counted).claims;
    let more = claims.len().saturating_sub(max);
    claims.truncate(max);
    for claim in &mut claims {
        claim.link = format!("{}#{}", claim.address, claim.id);
        claim.id = format!("{}-{}", claim.id, format::encode(run));
    }
    (claims, more)
}

/// What a person has to see first is least: what is refuted, then what was.
fn rank(entry: &Entry) -> u8 {
    match entry.standing {
        Verdict::Refuted if entry.superseded || entry.corrected => 1,
        Verdict::Refuted => 0,
        _ if entry.superseded => 5,
        Verdict::Unverifiable => 2,
        Verdict::Stale => 3,
        Verdict::Verified => 4,
    }
}

/// The id of the element of a claim on the pages of its run and of its attempt.
pub(super) fn element_of(entry: &Entry) -> String {
    let Entry { claim, path, n, reply, .. } = entry;
    // A claim of the contract has no dot in its name.
    let own = if claim.is_own() { ".own" } else { "" };
    let id = format!("{}.{reply}.{}{own}", format::attempt_id(path, *n), claim.claim);
    format!("claim-{}", format::encode(&id))
}

fn claim(run: &str, entry: &Entry) -> Claim {
    let Entry { claim, path, n, reply, .. } = entry;
    let attempt = format::attempt_id(path, *n);
    let shown = |value: &serde_json::Value| {
        if value.is_null() { String::new() } else { format::pretty(value) }
    };
    let mark = if entry.corrected { format::CORRECTED } else { format::verdict(entry.standing) };
    let id = element_of(entry);
    Claim {
        link: format!("#{id}"),
        id,
        address: format!("{run}/attempts/{}", format::encode(&attempt)),
        mark,
        name: format::cell(&claim.claim),
        path: format::cell(&path.join(" / ")),
        agent: format::cell(entry.agent.as_deref().unwrap_or_default()),
        visit: entry.visit,
        reply: *reply,
        at: Moment::new(entry.at),
        claimed: shown(&claim.claimed),
        observed: shown(&claim.observed),
        reason: format::text(&claim.reason),
        since: format::text(&entry.since),
        policy: format!("{:?}", claim.policy).to_lowercase(),
        evidence: evidence(claim, &entry.since)
            .into_iter()
            .map(|(kind, line)| Piece { kind: format::cell(kind), text: format::text(&line) })
            .collect(),
        is_old: entry.superseded,
    }
}
