//! How values look on pages. Everything that comes from an agent or a file is escaped where it is
//! shown: by askama, and here for characters that would hide or reorder what people read.

use counterfoil_contract::claim::Verdict;
use counterfoil_contract::text::{Form, neutralize};
use counterfoil_engine::ledger::Totals;
use counterfoil_engine::{Attempt, CallOutcome};
pub(crate) use counterfoil_flow::amount::{dollars, duration};

/// The longest text that a cell of a table shows.
const MAX_CELL: usize = 160;

/// The id of an attempt, as events have it.
pub(crate) fn attempt_id(path: &[String], n: u32) -> String {
    format!("{}#{n}", path.join("/"))
}

/// A text for people on several lines: characters that would reorder or hide text are shown as
/// escapes.
pub(crate) fn text(raw: &str) -> String {
    neutralize(raw, Form::Text).into_owned()
}

/// A text on one line, shortened.
pub(crate) fn cell(raw: &str) -> String {
    let line = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = neutralize(&line, Form::Line).into_owned();
    if line.chars().count() <= MAX_CELL {
        return line;
    }
    line.chars().take(MAX_CELL - 1).chain(['…']).collect()
}

/// A text as it is, if its [`cell`] leaves something out; else nothing.
pub(crate) fn beyond_cell(raw: &str) -> String {
    let words = raw.split_whitespace().map(|word| word.chars().count() + 1);
    let is_cut = words.sum::<usize>() > MAX_CELL + 1;
    if is_cut || raw.trim().contains('\n') { text(raw) } else { String::new() }
}

/// A time in UTC for the attribute `datetime`.
pub(crate) fn machine_time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default()
}

/// A time in UTC for people.
pub(crate) fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// From when on a run would have worked if it had worked without a pause: the script of the pages
/// counts on from there. Empty for a run that does not work.
pub(crate) fn worked_since(is_at_work: bool, updated_at: i64, wall_ms: u64) -> String {
    if !is_at_work {
        return String::new();
    }
    machine_time(updated_at.saturating_sub(i64::try_from(wall_ms).unwrap_or(i64::MAX)))
}

/// How something went: a word, a sign and a colour, so that none of them is needed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The name of its class in the style sheet.
    pub(crate) class: &'static str,
    /// The sign.
    pub(crate) sign: &'static str,
    /// The word.
    pub(crate) word: &'static str,
}

impl Mark {
    /// Its word in a row of a table.
    pub(crate) fn brief(&self) -> &'static str {
        if *self == CORRECTED { "corrected" } else { self.word }
    }
}

const fn mark(class: &'static str, sign: &'static str, word: &'static str) -> Mark {
    Mark { class, sign, word }
}

/// The mark of a verdict.
pub(crate) fn verdict(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Verified => mark("good", "✓", "verified"),
        Verdict::Refuted => mark("bad", "✗", "refuted"),
        Verdict::Stale => mark("warn", "~", "stale"),
        Verdict::Unverifiable => mark("mute", "?", "not verifiable"),
    }
}

/// The mark of claims that were refuted and are not any more.
pub(crate) const CORRECTED: Mark = mark("warn", "↺", "refuted earlier and corrected");

/// The marks of a violation in the reply that came after a repair was asked for.
pub(crate) const REPAIRED: Mark = mark("good", "✓", "repaired");
pub(crate) const NOT_REPAIRED: Mark = mark("bad", "✗", "still there");

/// The mark of a reply, by its status. Nobody rejected one that was cancelled.
pub(crate) fn reply(status: &str) -> Mark {
    match status {
        "accepted" => mark("good", "✓", "accepted"),
        "cancelled" => mark("mute", "–", "cancelled"),
        _ => mark("bad", "✗", "rejected"),
    }
}

/// How many claims have each verdict, without those that none has.
pub(crate) fn verdicts(totals: &Totals) -> Vec<(Mark, u64)> {
    let counts = [
        (verdict(Verdict::Refuted), totals.refuted),
        (CORRECTED, totals.corrected),
        (verdict(Verdict::Unverifiable), totals.unverifiable),
        (verdict(Verdict::Stale), totals.stale),
        (verdict(Verdict::Verified), totals.verified),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// A cost; empty if nothing was spent.
pub(crate) fn cost(usd: f64) -> String {
    match usd {
        usd if usd.is_nan() => "unknown".to_owned(),
        usd if usd > 0.0 => dollars(usd),
        _ => String::new(),
    }
}

/// A cost that is shown even if nothing was spent.
pub(crate) fn cost_or_zero(usd: f64) -> String {
    if usd.is_nan() { "unknown".to_owned() } else { dollars(usd) }
}

/// How much of a limit is used, in percent from 0 to 100; 100 if it is not known.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 0 to 100")]
pub(crate) fn percent(used: f64, limit: f64) -> u64 {
    let share = (used / limit * 100.0).clamp(0.0, 100.0);
    if share.is_nan() { 100 } else { share as u64 }
}

/// The mark of the outcome of a run.
pub(crate) fn run_outcome(outcome: &str) -> Mark {
    match outcome {
        "done" => mark("good", "✓", "done"),
        "running" => mark("live", "●", "running"),
        "waiting" => mark("ask", "?", "waiting for an answer"),
        "answered" => mark("ask", "→", "answered, not continued"),
        "interrupted" => mark("warn", "‖", "interrupted"),
        "cancelled" => mark("mute", "–", "cancelled"),
        "blocked" => mark("bad", "✗", "blocked"),
        "failed" => mark("bad", "✗", "failed"),
        "exhausted" => mark("bad", "✗", "limit reached"),
        "budget" => mark("bad", "✗", "budget used up"),
        "altered" => mark("bad", "!", "journal was altered"),
        _ => mark("mute", "·", "unknown"),
    }
}

/// The mark of an attempt. A command that failed is no success, although its attempt is accepted.
pub(crate) fn attempt(attempt: &Attempt) -> Mark {
    match attempt.failure() {
        Some(_) => mark("bad", "✗", "failed"),
        None => attempt_outcome(attempt.outcome.as_deref()),
    }
}

/// What came of the repairs of an attempt; none if none was requested.
pub(crate) fn repairs(attempt: &Attempt) -> Option<String> {
    let asked = match attempt.repairs_asked {
        0 => return None,
        1 => "repair asked".to_owned(),
        count => format!("{count} repairs asked"),
    };
    Some(match (attempt.is_repaired(), attempt.repairs_asked) {
        (true, 1) => "repaired".to_owned(),
        (true, _) => format!("repaired, {asked}"),
        (false, _) => asked,
    })
}

/// The mark of the outcome of an attempt; none while it runs.
pub(crate) fn attempt_outcome(outcome: Option<&str>) -> Mark {
    match outcome {
        None => mark("live", "●", "at work"),
        Some("accepted") => mark("good", "✓", "accepted"),
        Some("contract") => mark("bad", "✗", "wrong result"),
        Some("claim") => mark("bad", "✗", "claim refuted"),
        Some("cancelled") => mark("mute", "–", "cancelled"),
        Some("limit") => mark("warn", "✗", "limit reached"),
        Some("blocked") => mark("bad", "✗", "blocked"),
        Some("permission") => mark("bad", "✗", "permission missing"),
        Some("timeout") => mark("warn", "✗", "timed out"),
        Some("transport") => mark("warn", "✗", "connection failed"),
        Some(_) => mark("bad", "✗", "failed"),
    }
}

/// The mark of a tool call. A call without an outcome runs as long as its attempt does.
pub(crate) fn call_outcome(outcome: Option<CallOutcome>, is_running: bool) -> Mark {
    match outcome {
        Some(CallOutcome::Succeeded) => mark("good", "✓", "done"),
        Some(CallOutcome::Failed) => mark("bad", "✗", "failed"),
        Some(CallOutcome::Denied) => mark("bad", "✗", "denied"),
        None if is_running => mark("live", "●", "at work"),
        None => mark("mute", "?", "no result"),
    }
}

/// A JSON value on several lines.
pub(crate) fn pretty(value: &serde_json::Value) -> String {
    text(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// A part of an address: everything but plain characters is encoded.
pub(crate) fn encode(part: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(part, KEPT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_short_line_without_hidden_characters() {
        assert_eq!(cell("a\n  b\u{202e}c"), "a b\\u{202e}c");
        assert_eq!(cell(&"x".repeat(500)).chars().count(), MAX_CELL);
    }

    #[test]
    fn only_a_run_at_work_counts_on() {
        assert_eq!(worked_since(true, 61_500, 1_500), "1970-01-01T00:01:00Z");
        assert_eq!(worked_since(false, 61_500, 1_500), "");
        assert_eq!(worked_since(true, 0, u64::MAX), "", "no time that there is");
    }

    #[test]
    fn what_a_cell_leaves_out_is_shown_elsewhere() {
        for raw in ["", "a  b", "x".repeat(MAX_CELL).as_str()] {
            assert_eq!(beyond_cell(raw), "", "{raw}");
        }
        for raw in ["a\nb", "x".repeat(MAX_CELL + 1).as_str(), "xy ".repeat(60).as_str()] {
            assert_eq!(beyond_cell(raw), raw);
        }
    }

    #[test]
    fn a_part_of_an_address_stays_one_part() {
        assert_eq!(encode("a/b#1?x=<\">&%"), "a%2Fb%231%3Fx%3D%3C%22%3E%26%25");
    }
}
