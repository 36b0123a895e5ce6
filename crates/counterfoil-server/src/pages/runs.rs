//! The list of runs.

use super::run::now::rests;
use super::{Rendered, Section};
use crate::format::{self, Mark};
use crate::listing::{self, Listed, Wanted};
use crate::problem::Problem;
use crate::progress::Steps;
use crate::site::Site;
use askama::Template;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::journal::{RunCounts, RunCursor, RunFilter, RunGroup, RunOrder, RunSort};
use counterfoil_engine::lists;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of runs on a page.
const PAGE: usize = 50;
/// A run may be stuck whose process has recorded nothing for so long, and whose agents wrote nothing.
const STALL_MS: i64 = 10 * 60 * 1000;

/// The query of the list. It is a part of the address, so that a list can be kept and shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    view: View,
    /// A text that the runs contain.
    q: String,
    /// The workflow of the runs; of all if it is empty.
    workflow: String,
    /// The state folder of the runs; of all if it is empty.
    folder: String,
    sort: Sort,
    /// The place after which the page begins.
    after: String,
}

/// A view of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum View {
    #[default]
    All,
    NeedsMe,
    Running,
    Failed,
    Refuted,
}

impl View {
    const EACH: [Self; 5] = [Self::NeedsMe, Self::Running, Self::Failed, Self::Refuted, Self::All];

    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NeedsMe => "needs-me",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Refuted => "refuted",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::NeedsMe => "Needs me",
            Self::Running => "Running",
            Self::Failed => "Failed",
            Self::Refuted => "Refuted",
        }
    }

    fn group(self) -> RunGroup {
        match self {
            Self::All | Self::Refuted => RunGroup::All,
            Self::NeedsMe => RunGroup::NeedsPerson,
            Self::Running => RunGroup::Running,
            Self::Failed => RunGroup::Failed,
        }
    }

    /// The number of runs, if it is known without reading all of them.
    fn count(self, counts: &RunCounts) -> Option<u64> {
        (self != Self::Refuted).then(|| counts.of(self.group()))
    }
}

/// The order of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sort {
    #[default]
    Newest,
    Oldest,
    Updated,
    Cost,
    Duration,
}

impl Sort {
    const EACH: [(Self, &'static str, &'static str); 5] = [
        (Self::Newest, "newest", "newest first"),
        (Self::Oldest, "oldest", "oldest first"),
        (Self::Updated, "updated", "last event first"),
        (Self::Cost, "cost", "highest cost first"),
        (Self::Duration, "duration", "longest first"),
    ];

    fn order(self) -> RunOrder {
        let by = match self {
            Self::Newest | Self::Oldest => RunSort::Newest,
            Self::Updated => RunSort::Updated,
            Self::Cost => RunSort::Cost,
            Self::Duration => RunSort::Duration,
        };
        RunOrder { by, ascending: self == Self::Oldest }
    }

    fn name(self) -> &'static str {
        Self::EACH.iter().find(|(sort, ..)| *sort == self).map_or("", |(_, name, _)| name)
    }
}

impl Query {
    /// The address of the list with other values.
    fn address(&self, view: View, after: &str) -> String {
        let mut pairs = Vec::new();
        if view != View::All {
            pairs.push(("view", view.name().to_owned()));
        }
        if !self.q.is_empty() {
            pairs.push(("q", self.q.clone()));
        }
        for (name, value) in [("workflow", &self.workflow), ("folder", &self.folder)] {
            if !value.is_empty() {
                pairs.push((name, value.clone()));
            }
        }
        if self.sort != Sort::Newest {
            pairs.push(("sort", self.sort.name().to_owned()));
        }
        if !after.is_empty() {
            pairs.push(("after", after.to_owned()));
        }
        let query = serde_urlencoded::to_string(pairs).unwrap_or_default();
        if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
    }
}

struct Tab {
    label: &'static str,
    address: String,
    is_current: bool,
    count: Option<u64>,
}

/// Something that runs can be filtered by.
struct Choice {
    /// Its exact name.
    value: String,
    label: String,
    is_current: bool,
}

/// The names to choose from, if there are several, or another one is chosen.
fn choices(names: impl IntoIterator<Item = String>, current: &str) -> Vec<Choice> {
    let mut names: BTreeSet<String> = names.into_iter().collect();
    if !current.is_empty() {
        names.insert(current.to_owned());
    } else if names.len() < 2 {
        return Vec::new();
    }
    let choice =
        |value: String| Choice { label: format::cell(&value), is_current: value == current, value };
    names.into_iter().map(choice).collect()
}

/// The views and the filter.
#[derive(Template)]
#[template(path = "runs-head.html")]
struct Head<'a> {
    tabs: Vec<Tab>,
    query: &'a Query,
    view: &'static str,
    /// The workflows and the state folders to choose from; empty if there is no choice.
    workflows: Vec<Choice>,
    folders: Vec<Choice>,
    sorts: Vec<(&'static str, &'static str, bool)>,
    /// The state folders that cannot be read, and why.
    unreadable: Vec<(String, String)>,
}

/// How far a run has come.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    /// In words: "3 of 7 states, 47 of 50 items".
    text: String,
    /// In percent, of a run that goes on or could.
    share: Option<u64>,
}

struct Row {
    address: String,
    task: String,
    workflow: String,
    folder: String,
    id: String,
    mark: Mark,
    cause: String,
    state: String,
    progress: Progress,
    reason: String,
    verdicts: Vec<(Mark, u64)>,
    claims: String,
    cost: String,
    tokens: u64,
    started_at: String,
    started: String,
    updated_at: String,
    updated: String,
    took: String,
    /// From when on the script counts; empty if the run does not work.
    worked_since: String,
    stall: Option<String>,
    /// Why the run does not go on until it is resumed; empty for others.
    rests: &'static str,
    /// Whether the server resumes it.
    can_resume: bool,
    damage: String,
}

/// The rows.
#[derive(Template)]
#[template(path = "runs-list.html")]
struct List {
    rows: Vec<Row>,
    next: Option<String>,
    first: Option<String>,
    several_folders: bool,
    /// Whether a run has a cost, so that there is a column of costs.
    has_cost: bool,
    /// Whether there are no runs at all.
    is_new: bool,
    /// The text that is searched; empty if none is.
    search: String,
    /// Whether only runs of a workflow or a state folder are listed.
    is_filtered: bool,
    /// The addresses of the list without the search, and of the search in all views.
    without_search: String,
    in_all_views: Option<String>,
    view: &'static str,
}

pub(super) fn render(site: &Arc<Site>, query: &Query) -> Result<Rendered, Problem> {
    let counts = listing::counts(site)?;
    let text = Some(query.q.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
    let wanted = Wanted {
        filter: RunFilter {
            group: query.view.group(),
            workflow: Some(&query.workflow).filter(|name| !name.is_empty()).cloned(),
            text,
            ..RunFilter::default()
        },
        refuted: query.view == View::Refuted,
        folder: query.folder.clone(),
        with_steps: true,
        order: query.sort.order(),
        limit: PAGE,
    };
    let after: Option<RunCursor> = match query.after.as_str() {
        "" => None,
        text => Some(
            text.parse()
                .map_err(|error| Problem::bad_request(format!("the page of the list: {error}")))?,
        ),
    };
    let page = listing::runs_page(site, &wanted, after)?;
    let several_folders = site.folders.are_several();
    let tabs = View::EACH.into_iter().map(|view| Tab {
        label: view.label(),
        address: query.address(view, ""),
        is_current: view == query.view,
        count: view.count(&counts),
    });
    let unreadable = site.folders.unreadable().into_iter();
    let head = Head {
        tabs: tabs.collect(),
        query,
        view: query.view.name(),
        workflows: choices(listing::workflows(site)?, &query.workflow),
        folders: choices(site.folders.names().map(str::to_owned), &query.folder),
        sorts: Sort::EACH.map(|(sort, name, label)| (name, label, sort == query.sort)).to_vec(),
        unreadable: unreadable
            .map(|(name, problem)| (format::cell(name), format::cell(problem.detail())))
            .collect(),
    };
    let now = jiff::Timestamp::now().as_millisecond();
    let rows: Vec<Row> = page.runs.iter().map(|run| row(site, run, now)).collect();
    let list = List {
        has_cost: rows.iter().any(|row| !row.cost.is_empty()),
        rows,
        next: page.next.map(|next| query.address(query.view, &next.to_string())),
        first: (!query.after.is_empty()).then(|| query.address(query.view, "")),
        several_folders,
        is_new: counts.all == 0,
        search: format::cell(&query.q),
        is_filtered: !query.workflow.is_empty() || !query.folder.is_empty(),
        without_search: Query { q: String::new(), ..query.clone() }.address(query.view, ""),
        in_all_views: (query.view != View::All).then(|| query.address(View::All, "")),
        view: query.view.label(),
    };
    let sections = vec![Section::new("runs-head", &head)?, Section::new("runs-list", &list)?];
    Ok(Rendered { title: "Runs".to_owned(), sections })
}

fn progress(steps: Steps, outcome: &str, iterations: u64) -> Progress {
    let Steps { entered, states, items } = steps;
    let mut parts = Vec::new();
    if states > 0 {
        let states_text = pluralize(states, "state");
        parts.push(format!("{entered} of {states_text}"));
    }
    if let Some((done, all)) = items {
        let items_text = pluralize(all, "item");
        parts.push(format!("{done} of {items_text}"));
    }
    if iterations > 1 {
        parts.push(format!("iteration {iterations}"));
    }
    let is_open = matches!(outcome, "running" | "waiting" | "answered" | "interrupted");
    let share = |part: usize, whole: usize| (100 * part / whole.max(1)).min(100) as u64;
    let share = match items {
        // What is done in a fan-out says more than that it was entered.
        Some((done, all)) if done < all => Some(share(done, all)),
        _ if states > 0 => Some(share(entered, states)),
        _ => None,
    };
    Progress { text: parts.join(", "), share: share.filter(|_| is_open) }
}

fn row(site: &Site, listed: &Listed, now: i64) -> Row {
    let Listed { folder, info, digest, steps, damage } = listed;
    let summary = &info.summary;
    let outcome = lists::outcome(info);
    let mut silent = now.saturating_sub(info.updated_at);
    if outcome == "running" && silent >= STALL_MS {
        let active = site.activity.of_run(&site.folders, &info.id, info.last_seq);
        silent = active.map_or(silent, |active| silent.min(now.saturating_sub(active)));
    }
    let is_stalled = outcome == "running" && silent >= STALL_MS;
    let quiet = u64::try_from(silent).unwrap_or(0);
    // One whose changes were undone cannot go on.
    let can_go_on = digest.after.undone_by.is_none() && !info.is_driven();
    let rests = if can_go_on { rests(outcome) } else { "" };
    let mut cause: Vec<&str> = summary.cause.as_deref().into_iter().collect();
    cause.extend(digest.after.words());
    Row {
        address: format!("/runs/{}", format::encode(&info.id)),
        task: format::cell(&digest.task),
        workflow: format::cell(&info.workflow),
        folder: format::cell(folder),
        id: info.id.chars().take(13).collect(),
        mark: format::run_outcome(outcome),
        cause: cause.join(", "),
        state: format::cell(&summary.state),
        progress: progress(steps.unwrap_or_default(), outcome, summary.iterations),
        reason: format::cell(&summary.reason),
        verdicts: format::verdicts(&digest.claims),
        claims: listing::claims_text(digest),
        cost: format::cost(summary.cost_usd),
        tokens: summary.input_tokens + summary.output_tokens,
        started_at: format::machine_time(info.created_at),
        started: format::time(info.created_at),
        updated_at: format::machine_time(info.updated_at),
        updated: format::time(info.updated_at),
        took: format::duration(summary.wall_ms),
        worked_since: format::worked_since(outcome == "running", info.updated_at, summary.wall_ms),
        stall: is_stalled.then(|| format::duration(quiet)),
        rests,
        can_resume: !rests.is_empty() && site.may_resume(),
        damage: format::cell(damage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_said_in_words_and_drawn_for_what_goes_on() {
        let steps = |entered, states, items| Steps { entered, states, items };
        for (steps, outcome, iterations, text, share) in [
            (steps(3, 7, None), "running", 1, "3 of 7 states", Some(42)),
            (steps(1, 1, None), "running", 0, "1 of 1 state", Some(100)),
            (steps(2, 4, Some((47, 50))), "waiting", 1, "2 of 4 states, 47 of 50 items", Some(94)),
            (steps(3, 4, Some((50, 50))), "running", 1, "3 of 4 states, 50 of 50 items", Some(75)),
            (steps(0, 0, None), "running", 4, "iteration 4", None),
            (steps(3, 7, None), "done", 2, "3 of 7 states, iteration 2", None),
            (steps(0, 0, None), "failed", 0, "", None),
        ] {
            let expected = Progress { text: text.to_owned(), share };
            assert_eq!(progress(steps, outcome, iterations), expected);
        }
    }
}
