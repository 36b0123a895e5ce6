//! The attempts of a run on a line of time: who worked when, for how long, what was repaired, and
//! when nobody worked.

use super::now::{Moment, attempt_mark, attempt_reason, ended_at, is_at_work};
use super::{Idle, Query, Show};
use crate::format::{self, Mark};
use askama::Template;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{Attempt, RunReport, RunWait, WaitCause};

/// The number of attempts on a page.
const PAGE: usize = 200;
/// The width of the line of time, in the units of its drawing.
const WIDTH: u64 = 1000;
/// The narrowest bar.
const MIN_BAR: u64 = 3;
/// A time without an attempt that is longer than this share of the whole is shortened to it.
const IDLE_SHARE: i64 = 25;

/// The attempts of a run.
#[derive(Template)]
#[template(path = "run-timeline.html")]
pub(super) struct Timeline {
    address: String,
    rows: Vec<Row>,
    /// The waits after the last of them.
    last_waits: Vec<Wait>,
    total: usize,
    failed: usize,
    only_failed: bool,
    is_shortened: bool,
    idle_matters: bool,
    /// Whether any of the rows cost something.
    has_cost: bool,
    pages: Vec<(usize, String, bool)>,
    toggle_failed: String,
    toggle_idle: String,
}

struct Row {
    address: String,
    /// The outer parts of the path, for a state inside of another one; empty if there are none.
    outer: String,
    /// The last part of the path.
    name: String,
    visit: u32,
    attempt: u32,
    /// The agent; empty if it has the name of the step.
    agent: String,
    mark: Mark,
    /// What came of its repairs.
    repairs: Option<String>,
    refuted: usize,
    reason: String,
    started: Moment,
    /// When it started, since the start of the run.
    offset: String,
    took: String,
    is_open: bool,
    cost: String,
    left: u64,
    width: u64,
    class: &'static str,
    /// What was repaired, as parts of the bar, and in words.
    repair_bars: Vec<(u64, u64)>,
    repair_times: String,
    /// The waits before it.
    waits: Vec<Wait>,
}

/// A time in which a step waited.
struct Wait {
    label: &'static str,
    /// What it waited for.
    cause: String,
    started: Moment,
    offset: String,
    is_open: bool,
    took: String,
    left: u64,
    width: u64,
}

/// The attempts of a run, in the order they started.
pub(super) fn timeline(
    run: &str,
    report: &RunReport,
    (all, claims, waits): (&[Attempt], &[Entry], &[RunWait]),
    query: &Query,
) -> Timeline {
    let failed = all.iter().filter(|attempt| attempt.is_trouble()).count();
    let only_failed = query.show == Show::Failed;
    let wanted: Vec<&Attempt> =
        all.iter().filter(|attempt| !only_failed || attempt.is_trouble()).collect();
    let count = wanted.len().div_ceil(PAGE).max(1);
    let current = if query.page == 0 { count } else { query.page.min(count) };
    let rows = wanted.iter().skip((current - 1) * PAGE).take(PAGE).copied();
    let shown: Vec<&Attempt> = rows.collect();
    let times: Vec<(i64, i64)> =
        shown.iter().map(|attempt| (attempt.started_at, ended_at(attempt, report))).collect();
    let full = Scale::new(&times, false);
    let shortened = Scale::new(&times, true);
    let is_shortened = query.idle == Idle::Short;
    let scale = if is_shortened { &shortened } else { &full };
    let address = format!("/runs/{}", format::encode(run));
    let link = |show: Show, idle: Idle, page: usize| {
        let mut pairs = Vec::new();
        if show == Show::Failed {
            pairs.push("show=failed".to_owned());
        }
        if idle == Idle::Full {
            pairs.push("idle=full".to_owned());
        }
        if page > 0 {
            pairs.push(format!("page={page}"));
        }
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("{address}{query}")
    };
    let other_show = if only_failed { Show::All } else { Show::Failed };
    let other_idle = if is_shortened { Idle::Full } else { Idle::Short };
    let row_of = |attempt: &&Attempt| row(&address, attempt, scale, (report, claims));
    let mut rows: Vec<Row> = shown.iter().map(row_of).collect();
    let last_waits = if only_failed {
        Vec::new()
    } else {
        let first = (current - 1) * PAGE;
        let is_last = current == count;
        add_waits(&mut rows, waits, |wait| {
            let place = wanted.partition_point(|attempt| attempt.started_at < wait.from);
            let is_here = place >= first && (is_last || place < first + shown.len());
            is_here.then(|| (place - first, wait_row(wait, scale, report)))
        })
    };
    let pages = near(current, count).into_iter();
    let pages = pages.map(|page| (page, link(query.show, query.idle, page), page == current));
    Timeline {
        has_cost: rows.iter().any(|row| !row.cost.is_empty()),
        rows,
        last_waits,
        total: all.len(),
        failed,
        only_failed,
        is_shortened,
        idle_matters: full.length != shortened.length,
        pages: if count > 1 { pages.collect() } else { Vec::new() },
        toggle_failed: link(other_show, query.idle, 0),
        toggle_idle: link(query.show, other_idle, query.page),
        address,
    }
}

/// Adds the waits to the rows before which they are. Returns those after the last row.
fn add_waits(
    rows: &mut [Row],
    waits: &[RunWait],
    place: impl Fn(&RunWait) -> Option<(usize, Wait)>,
) -> Vec<Wait> {
    let mut last = Vec::new();
    for (at, wait) in waits.iter().filter_map(place) {
        rows.get_mut(at).map_or(&mut last, |row| &mut row.waits).push(wait);
    }
    last
}

fn wait_row(wait: &RunWait, scale: &Scale, report: &RunReport) -> Wait {
    let is_open = wait.to.is_none() && report.resumable;
    let to = wait.to.unwrap_or(report.updated_at).max(wait.from);
    let (left, width) = scale.bar(wait.from, to);
    let (label, cause) = match &wait.cause {
        WaitCause::Answer(question) => ("wait for an answer", question.as_str()),
        WaitCause::Retry(failure) => ("wait before another try", failure.as_str()),
    };
    Wait {
        label,
        cause: format::cell(cause),
        started: Moment::new(wait.from),
        offset: offset(wait.from, report.started_at),
        is_open,
        took: format::duration(u64::try_from(to - wait.from).unwrap_or(0)),
        left,
        width,
    }
}

/// The pages that are linked: the first one, the last one, and those around the current one.
fn near(current: usize, count: usize) -> Vec<usize> {
    (1..=count).filter(|page| *page == 1 || *page == count || page.abs_diff(current) <= 3).collect()
}

/// When something started, as the time since the start of the run.
pub(super) fn offset(started_at: i64, run_started_at: i64) -> String {
    let since = u64::try_from(started_at.saturating_sub(run_started_at)).unwrap_or(0);
    format!("+{}", format::duration(since))
}

/// The outer parts of a path and its last part, for people.
fn split(path: &[String]) -> (String, String) {
    let parts = path.split_last();
    let shown = parts.map(|(name, outer)| (format::cell(&outer.join(" / ")), format::cell(name)));
    shown.unwrap_or_default()
}

/// The agent, unless its name tells nothing new.
fn agent(attempt: &Attempt) -> String {
    let agent = attempt.agent.as_deref().unwrap_or_default();
    let is_known = attempt.path.last().is_some_and(|name| name.eq_ignore_ascii_case(agent));
    if is_known { String::new() } else { format::cell(agent) }
}

/// Why an attempt ended as it did, or what its first refuted claim says.
fn reason(attempt: &Attempt, report: &RunReport) -> String {
    let reason = attempt_reason(attempt, report);
    if !reason.is_empty() {
        return format::cell(&reason);
    }
    let refuted = attempt.refuted().next();
    refuted
        .map(|claim| format::cell(&format!("{}: {}", claim.claim, claim.reason)))
        .unwrap_or_default()
}

fn row(
    run: &str,
    attempt: &Attempt,
    scale: &Scale,
    (report, claims): (&RunReport, &[Entry]),
) -> Row {
    let (outer, name) = split(&attempt.path);
    let end = ended_at(attempt, report);
    let (left, width) = scale.bar(attempt.started_at, end);
    let repairs = &attempt.repairs_at;
    let until = repairs.iter().skip(1).copied().chain([end]);
    let repair_bars = repairs.iter().zip(until).map(|(from, to)| scale.bar(*from, to.max(*from)));
    let repair_times: Vec<String> =
        repairs.iter().map(|at| offset(*at, attempt.started_at)).collect();
    let mark = attempt_mark(attempt, report);
    let refuted = attempt.refuted_among(claims);
    let took = u64::try_from(end - attempt.started_at).unwrap_or(0);
    Row {
        address: format!(
            "{run}/attempts/{}",
            format::encode(&format::attempt_id(&attempt.path, attempt.n))
        ),
        outer,
        name,
        visit: attempt.visit,
        attempt: attempt.attempt,
        agent: agent(attempt),
        class: if refuted > 0 { "bad" } else { mark.class },
        mark,
        repairs: format::repairs(attempt),
        refuted,
        reason: reason(attempt, report),
        started: Moment::new(attempt.started_at),
        offset: offset(attempt.started_at, report.started_at),
        took: format::duration(took),
        is_open: is_at_work(attempt, report),
        cost: format::cost(attempt.usage.cost_usd),
        left,
        width,
        repair_bars: repair_bars.collect(),
        repair_times: repair_times.join(", "),
        waits: Vec::new(),
    }
}

/// Places times on the line.
struct Scale {
    /// The times at which something begins or ends, and the length of the line up to there.
    points: Vec<(i64, i64)>,
    /// The length of the line, in milliseconds.
    length: i64,
}

impl Scale {
    /// The line over these stretches of time. Times between them can be shortened.
    fn new(times: &[(i64, i64)], shorten: bool) -> Self {
        let mut busy = times.to_vec();
        busy.sort_unstable();
        let working: i64 = merged(&busy).iter().map(|(from, to)| to - from).sum();
        let longest = if shorten { (working / IDLE_SHARE).max(1) } else { i64::MAX };
        let (mut points, mut length) = (Vec::new(), 0);
        let mut last: Option<i64> = None;
        for (from, to) in merged(&busy) {
            if let Some(last) = last {
                length += (from - last).min(longest);
            }
            points.push((from, length));
            length += to - from;
            points.push((to, length));
            last = Some(to);
        }
        Self { points, length: length.max(1) }
    }

    /// The bar of a stretch of time: its left side and its width.
    fn bar(&self, from: i64, to: i64) -> (u64, u64) {
        let (left, right) = (self.at(from), self.at(to));
        let width = right.saturating_sub(left).clamp(MIN_BAR, WIDTH);
        (left.min(WIDTH - width), width)
    }

    /// The place of a time, from 0 to [`WIDTH`].
    fn at(&self, time: i64) -> u64 {
        let after = self.points.partition_point(|(point, _)| *point <= time);
        let length =
            match (after.checked_sub(1).and_then(|at| self.points.get(at)), self.points.get(after))
            {
                (Some((before, from)), Some((next, to))) if next > before => {
                    let share = i128::from(time - before) * i128::from(to - from);
                    from + i64::try_from(share / i128::from(next - before)).unwrap_or(0)
                }
                (Some((_, from)), _) => *from,
                (None, _) => 0,
            };
        let place = i128::from(length) * i128::from(WIDTH) / i128::from(self.length);
        u64::try_from(place).unwrap_or(0).min(WIDTH)
    }
}

/// Joins stretches of time that touch or overlap. They are sorted by their beginnings.
fn merged(sorted: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for &(from, to) in sorted {
        match joined.last_mut() {
            Some((_, end)) if from <= *end => *end = (*end).max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_has_the_time_since_the_start_of_the_run() {
        assert_eq!(offset(1_000, 1_000), "+0 ms");
        assert_eq!(offset(2_600, 1_000), "+1.6 s");
        assert_eq!(offset(62_000, 1_000), "+1 min 1 s");
        assert_eq!(offset(900, 1_000), "+0 ms", "a clock that was set back");
        assert_eq!(offset(i64::MIN, i64::MAX), "+0 ms");
    }

    #[test]
    fn a_path_has_a_name_and_what_is_around_it() {
        let split = |parts: &[&str]| {
            let path: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            super::split(&path)
        };
        assert_eq!(split(&["qa"]), (String::new(), "qa".to_owned()));
        assert_eq!(split(&["each", "a.txt", "fix"]), ("each / a.txt".to_owned(), "fix".to_owned()));
        assert_eq!(split(&[]), (String::new(), String::new()));
    }

    #[test]
    fn only_pages_near_the_current_one_are_linked() {
        assert_eq!(near(1, 3), [1, 2, 3]);
        assert_eq!(near(50, 100), [1, 47, 48, 49, 50, 51, 52, 53, 100]);
        assert_eq!(near(1, 1), [1]);
    }

    #[test]
    fn times_are_placed_in_proportion() {
        let scale = Scale::new(&[(100, 200), (200, 300)], false);
        assert_eq!([100, 150, 200, 300].map(|time| scale.at(time)), [0, 250, 500, 1000]);
        assert_eq!([0, 400].map(|time| scale.at(time)), [0, 1000], "outside of the line");
    }

    #[test]
    fn a_long_wait_is_shortened_and_the_order_stays() {
        let times = [(0, 100), (1_000_000, 1_000_100)];
        let (full, short) = (Scale::new(&times, false), Scale::new(&times, true));
        assert_eq!(full.at(100), 0);
        assert!(short.at(100) > 450 && short.at(1_000_000) < 550, "{}", short.at(100));
        assert!(short.at(500_000) >= short.at(100) && short.at(500_000) <= short.at(1_000_000));
    }
}
