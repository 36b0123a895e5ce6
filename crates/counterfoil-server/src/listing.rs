//! Pages of the runs of all state folders, in one order.

use crate::problem::Problem;
use crate::progress::Steps;
use crate::site::Site;
use crate::summaries::RunDigest;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::Engine;
use counterfoil_engine::journal::{RunCounts, RunCursor, RunFilter, RunInfo, RunOrder};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long one request looks for runs with refuted claims. The next one goes on where it stopped.
const MAX_SEARCH: Duration = Duration::from_millis(300);

/// A run of the list, with what is read from its events.
pub(crate) struct Listed {
    /// The name of its state folder.
    pub(crate) folder: String,
    /// What the journal keeps for lists.
    pub(crate) info: RunInfo,
    /// Its task and claims.
    pub(crate) digest: RunDigest,
    /// How far it has come; none if nobody wants to know, or it cannot be read.
    pub(crate) steps: Option<Steps>,
    /// What was wrong when its events were read; empty if nothing was.
    pub(crate) damage: String,
}

/// A page of runs.
pub(crate) struct RunsPage {
    /// The runs, in order.
    pub(crate) runs: Vec<Listed>,
    /// Where the next page begins.
    pub(crate) next: Option<RunCursor>,
}

/// Which runs are listed.
pub(crate) struct Wanted {
    /// What the journals can tell.
    pub(crate) filter: RunFilter,
    /// Only runs with a refuted claim, corrected or not.
    pub(crate) refuted: bool,
    /// Only runs of the state folder with this name; of all if it is empty.
    pub(crate) folder: String,
    /// Whether it is wanted how far they have come.
    pub(crate) with_steps: bool,
    /// The order.
    pub(crate) order: RunOrder,
    /// The number of runs on a page.
    pub(crate) limit: usize,
}

/// The page of runs after a place.
pub(crate) fn runs_page(
    site: &Site,
    wanted: &Wanted,
    after: Option<RunCursor>,
) -> Result<RunsPage, Problem> {
    let engines = site.folders.engines()?;
    let started = Instant::now();
    let mut page = RunsPage { runs: Vec::new(), next: after };
    loop {
        let found = merged(&engines, wanted, page.next.as_ref())?;
        page.next = found.next;
        let mut runs = found.runs.into_iter().peekable();
        while let Some((folder, engine, info)) = runs.next() {
            let place = RunCursor::at(wanted.order, &info);
            let (digest, damage) = match site.summaries.of(engine, &info) {
                Ok(digest) => (digest, String::new()),
                // One run that cannot be read hides no other.
                Err(problem) => (RunDigest::default(), problem.detail().to_owned()),
            };
            let claims = &digest.claims;
            if wanted.refuted && claims.refuted + claims.corrected == 0 {
                continue;
            }
            let steps = wanted.with_steps.then(|| site.progress.of(engine, &info).ok()).flatten();
            page.runs.push(Listed { folder: folder.to_owned(), info, digest, steps, damage });
            if page.runs.len() == wanted.limit {
                // What was read and not looked at begins the next page.
                let has_more = page.next.is_some() || runs.peek().is_some();
                page.next = has_more.then_some(place);
                return Ok(page);
            }
        }
        let is_enough = !wanted.refuted || started.elapsed() >= MAX_SEARCH;
        if page.next.is_none() || is_enough {
            return Ok(page);
        }
    }
}

/// The runs of all folders after a place, before anything is read of them.
struct Merged<'e> {
    runs: Vec<(&'e str, &'e Engine, RunInfo)>,
    next: Option<RunCursor>,
}

/// Merges the next pages of all folders. A place belongs to an order and not to a folder.
fn merged<'e>(
    engines: &'e [(&str, Engine)],
    wanted: &Wanted,
    after: Option<&RunCursor>,
) -> Result<Merged<'e>, Problem> {
    let mut all: Vec<(RunCursor, &'e str, &'e Engine, RunInfo)> = Vec::new();
    // Behind the first of the places where a folder stopped, others may be missing.
    let mut end: Option<RunCursor> = None;
    let chosen =
        engines.iter().filter(|(name, _)| wanted.folder.is_empty() || *name == wanted.folder);
    for (name, engine) in chosen {
        let page = engine.journal().runs_page(&wanted.filter, wanted.order, after, wanted.limit)?;
        if let Some(next) = page.next
            && end.as_ref().is_none_or(|end| next.is_before(end))
        {
            end = Some(next);
        }
        let placed = |info| (RunCursor::at(wanted.order, &info), *name, engine, info);
        all.extend(page.runs.into_iter().map(placed));
    }
    all.sort_by(|(one, ..), (other, ..)| one.compare(other));
    if let Some(end) = &end {
        all.retain(|(place, ..)| !end.is_before(place));
    }
    if all.len() > wanted.limit {
        all.truncate(wanted.limit);
        end = all.last().map(|(place, ..)| place.clone());
    }
    let runs = all.into_iter().map(|(_, name, engine, info)| (name, engine, info)).collect();
    Ok(Merged { runs, next: end })
}

/// The number of runs in each view, over all folders.
pub(crate) fn counts(site: &Site) -> Result<RunCounts, Problem> {
    let mut sum = RunCounts::default();
    for (_, engine) in site.folders.engines()? {
        let RunCounts { all, needs_answer, needs_person, running, interrupted, failed } =
            engine.journal().run_counts()?;
        sum.all += all;
        sum.needs_answer += needs_answer;
        sum.needs_person += needs_person;
        sum.running += running;
        sum.interrupted += interrupted;
        sum.failed += failed;
    }
    Ok(sum)
}

/// The names of the workflows of all runs.
pub(crate) fn workflows(site: &Site) -> Result<BTreeSet<String>, Problem> {
    let mut names = BTreeSet::new();
    for (_, engine) in site.folders.engines()? {
        names.extend(engine.journal().workflow_names()?);
    }
    Ok(names)
}

/// What is known of the claims of a run, in a few words: "5 made, 3 verified, 1 refuted".
pub(crate) fn claims_text(digest: &RunDigest) -> String {
    let claims = &digest.claims;
    if claims.made == 0 {
        return String::new();
    }
    let parts = [
        (claims.verified, "verified"),
        (claims.refuted, "refuted"),
        (claims.corrected, "refuted earlier and corrected"),
        (claims.stale, "stale"),
        (claims.unverifiable, "not verifiable"),
    ];
    let named = parts.iter().filter(|(count, _)| *count > 0);
    let named: Vec<String> = named.map(|(count, word)| format!("{count} {word}")).collect();
    let made = usize::try_from(claims.made).unwrap_or(usize::MAX);
    format!("{}: {}", pluralize(made, "claim"), named.join(", "))
}
