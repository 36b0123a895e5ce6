//! How well agents do over all runs: how often their results violate a contract and their claims are
//! refuted, at what cost, and whether it gets better.

pub(super) mod attempts;

use super::{Rendered, Section};
use crate::counted::{By, Coverage};
use crate::format;
use crate::problem::Problem;
use crate::site::Site;
use askama::Template;
use attempts::What;
use counterfoil_engine::ledger::{ClaimFigures, Key, ReplyFigures, Trend, Week};
use serde::Deserialize;
use std::sync::Arc;

/// The number of weeks of a trend.
const WEEKS: usize = 12;
/// The most rows of the table. The API has all.
const MAX_ROWS: usize = 200;
/// The most codes that a row names.
const MAX_CODES: usize = 3;
/// The width of the bar of a week with the space behind it, and the height of a rate of 100 %.
const BAR_WIDTH: usize = 7;
const BAR_HEIGHT: f64 = 20.0;

/// The query of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// The properties by which the figures are grouped.
    by: By,
}

/// How many runs the figures are about, and their sums.
#[derive(Template)]
#[template(path = "health-head.html")]
struct Head {
    tabs: Vec<Tab>,
    coverage: Coverage,
    /// The figures of all runs; none if no agent has worked yet.
    all: Option<Row>,
}

struct Tab {
    label: &'static str,
    address: String,
    is_current: bool,
}

/// The figures by group.
#[derive(Template)]
#[template(path = "health-table.html")]
struct Table {
    rows: Vec<Row>,
    more: usize,
    what: &'static str,
    /// Whether the rows are fields, which share the replies of their contract.
    is_by_field: bool,
}

/// A group.
struct Row {
    /// The name, and what it belongs to.
    name: String,
    of: String,
    attempts: Count,
    accepted: Count,
    refuted: Rate,
    corrected: u64,
    violations: Rate,
    codes: String,
    cost: String,
    cost_of: u64,
}

/// A number that leads to the attempts behind it.
struct Count {
    number: u64,
    address: String,
}

/// A share that leads to the attempts behind it.
struct Rate {
    share: String,
    part: u64,
    of: u64,
    address: String,
    bars: Vec<Bar>,
    /// What the bars say, for people who do not see them.
    bars_text: String,
}

/// The bar of a week.
struct Bar {
    x: usize,
    y: String,
    height: String,
    /// Whether there is nothing to show in this week.
    is_empty: bool,
    title: String,
}

pub(super) fn render(site: &Arc<Site>, query: &Query) -> Result<Rendered, Problem> {
    let overview = site.counted.overview(&site.folders)?;
    let now = jiff::Timestamp::now().as_millisecond();
    let by = query.by;
    let all = overview.weeks.trends(&[], now, WEEKS).pop();
    let trends = overview.weeks.trends(by.dimensions(), now, WEEKS);
    let tabs = By::EACH.into_iter().map(|each| Tab {
        label: label(each),
        address: format!("/health?by={}", each.name()),
        is_current: each == by,
    });
    let head = Head {
        tabs: tabs.collect(),
        coverage: overview.coverage,
        all: all.map(|trend| row(None, &trend)),
    };
    let table = Table {
        rows: trends.iter().take(MAX_ROWS).map(|trend| row(Some(by), trend)).collect(),
        more: trends.len().saturating_sub(MAX_ROWS),
        what: label(by),
        is_by_field: by == By::Field,
    };
    let sections = vec![Section::new("health-head", &head)?, Section::new("health-table", &table)?];
    Ok(Rendered { title: "Health".to_owned(), sections })
}

fn label(by: By) -> &'static str {
    match by {
        By::Field => "Contract field",
        By::Agent => "Agent",
        By::Model => "Model",
        By::Version => "CLI version",
    }
}

fn row(by: Option<By>, trend: &Trend) -> Row {
    let (key, replies, claims) = (&trend.group.key, &trend.group.replies, &trend.group.claims);
    let (name, of) = by.map(|by| names(by, key)).unwrap_or_default();
    // The fields of a contract share its attempts and replies, whatever each of them claims.
    let of_contract = key.without_field();
    let address = |what| attempts::address(&of_contract, what);
    let codes = replies.top_codes();
    let codes = codes.iter().take(MAX_CODES).map(|(code, number)| format!("{code} × {number}"));
    Row {
        name,
        of,
        attempts: Count { number: replies.attempts, address: address(What::All) },
        accepted: Count { number: replies.accepted, address: address(What::Accepted) },
        refuted: refuted(trend, attempts::address(key, What::Refuted)),
        corrected: claims.corrected,
        violations: violations(trend, address(What::Violations)),
        codes: format::cell(&codes.collect::<Vec<_>>().join(", ")),
        cost: replies.cost_per_accepted().map(format::cost).unwrap_or_default(),
        cost_of: replies.accepted,
    }
}

/// The name of a group, and what it belongs to.
fn names(by: By, key: &Key) -> (String, String) {
    let part = |part: &Option<String>, unknown: &str| match part.as_deref() {
        None | Some("") => unknown.to_owned(),
        Some(name) => format::cell(name),
    };
    match by {
        By::Field => (part(&key.field, "(no claim)"), part(&key.contract, "(no contract)")),
        By::Agent => (part(&key.agent, "(unknown)"), part(&key.player, "(unknown program)")),
        By::Model => (part(&key.model, "(model not told)"), String::new()),
        By::Version => {
            (part(&key.version, "(version not told)"), part(&key.player, "(unknown program)"))
        }
    }
}

fn refuted(trend: &Trend, address: String) -> Rate {
    let counts = |claims: &ClaimFigures| (claims.refuted, claims.verified + claims.refuted);
    let (part, of) = counts(&trend.group.claims);
    let weeks = trend.weeks.iter().map(|week| (week, counts(&week.group.claims)));
    rate((part, of), address, weeks)
}

fn violations(trend: &Trend, address: String) -> Rate {
    let counts = |replies: &ReplyFigures| (replies.violations, replies.replies);
    let (part, of) = counts(&trend.group.replies);
    let weeks = trend.weeks.iter().map(|week| (week, counts(&week.group.replies)));
    rate((part, of), address, weeks)
}

fn rate<'w>(
    (part, of): (u64, u64),
    address: String,
    weeks: impl Iterator<Item = (&'w Week, (u64, u64))>,
) -> Rate {
    let bars: Vec<Bar> = weeks
        .enumerate()
        .map(|(at, (week, (part, of)))| bar(at, week.starts_at, part, of))
        .collect();
    let told = bars.iter().filter(|bar| !bar.is_empty).map(|bar| bar.title.as_str());
    let bars_text = told.collect::<Vec<_>>().join("; ");
    Rate { share: share(part, of), part, of, address, bars, bars_text }
}

/// The bar of a week, from the bottom. A rate of 0 is a thin line, and a week without figures a faint
/// one.
fn bar(at: usize, starts_at: i64, part: u64, of: u64) -> Bar {
    let share = if of == 0 { 0.0 } else { fraction(part, of) };
    let height = (BAR_HEIGHT * share).clamp(1.0, BAR_HEIGHT);
    let date = format::machine_time(starts_at);
    let date = date.split('T').next().unwrap_or_default();
    Bar {
        x: at * BAR_WIDTH,
        y: format!("{:.1}", BAR_HEIGHT - height),
        height: format!("{height:.1}"),
        is_empty: of == 0,
        title: format!("week of {date}: {part} of {of}"),
    }
}

/// A share in percent; empty if there is nothing that it could be a part of.
pub(super) fn share(part: u64, of: u64) -> String {
    if of == 0 {
        return String::new();
    }
    let percent = 100.0 * fraction(part, of);
    // Something is never shown as nothing, or as everything if it is not.
    if percent > 0.0 && percent < 10.0 || percent > 99.0 && percent < 100.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of replies are far below 2^52")]
fn fraction(part: u64, of: u64) -> f64 {
    part as f64 / of as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_digits_that_matter() {
        for (part, of, text) in [
            (0, 0, ""),
            (0, 3, "0 %"),
            (1, 3, "33 %"),
            (1, 300, "0.3 %"),
            (797, 800, "99.6 %"),
            (3, 3, "100 %"),
        ] {
            assert_eq!(share(part, of), text, "{part} of {of}");
        }
    }

    #[test]
    fn bars_stand_on_the_bottom_and_are_never_invisible() {
        let shown = |part, of| {
            let bar = bar(2, 4 * 24 * 60 * 60 * 1000, part, of);
            (bar.x, bar.y, bar.height, bar.is_empty, bar.title)
        };
        let texts = |y: &str, height: &str, is_empty, title: &str| {
            (14, y.to_owned(), height.to_owned(), is_empty, format!("week of 1970-01-05: {title}"))
        };
        assert_eq!(shown(1, 2), texts("10.0", "10.0", false, "1 of 2"));
        assert_eq!(shown(0, 2), texts("19.0", "1.0", false, "0 of 2"));
        assert_eq!(shown(0, 0), texts("19.0", "1.0", true, "0 of 0"));
        assert_eq!(shown(2, 2), texts("0.0", "20.0", false, "2 of 2"));
    }
}
