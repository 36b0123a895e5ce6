//! Claims in words: claimed, observed, verdict, evidence. A mismatch is told as one, with what it
//! rests on.

use super::table::{self, Cell, Color, Column, Row};
use super::{clean, many, one_line, title};
use crate::output::weight::Weighed;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::{ClaimReport, Evidence, Verdict};
use counterfoil_engine::ledger::{self, Entry, Totals};
use counterfoil_flow::{ChangedFiles, Ended, Reply};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Refuted claims that are named at the end of a run.
const NAMED: usize = 10;
/// Files that are named in a line.
const FILES: usize = 5;
/// Below this a table has no room, and each claim gets lines of its own.
const NARROW: usize = 72;

/// How the claims of a run stand, in a line, and those that do not hold below it; nothing if there
/// were none.
pub(crate) fn summary(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", totals(&ledger::totals(entries)));
    let refuted: Vec<&Entry> = entries
        .iter()
        .filter(|entry| !entry.superseded && entry.standing == Verdict::Refuted)
        .collect();
    for entry in refuted.iter().take(NAMED) {
        let place = title(&entry.path.join("/"), entry.agent.as_deref(), None, entry.n);
        let _ = writeln!(text, "  {place}: {}", against(&entry.claim));
    }
    if refuted.len() > NAMED {
        let _ = writeln!(text, "  … and {} more", refuted.len() - NAMED);
    }
    text
}

/// The totals in a line.
pub(crate) fn totals(totals: &Totals) -> String {
    let mut line = format!("claims: verified {} of {}", totals.verified, totals.claims());
    for (number, word) in [
        (totals.refuted, "refuted"),
        (totals.stale, "stale"),
        (totals.unverifiable, "unverifiable"),
    ] {
        if number > 0 {
            let _ = write!(line, ", {word} {number}");
        }
    }
    if totals.corrected > 0 {
        let _ = write!(line, "; corrected when asked again: {}", totals.corrected);
    }
    line
}

/// A claim and where it differs from what was observed.
pub(crate) fn against(claim: &ClaimReport) -> String {
    one_line(&format!("{}: {}", claim.claim, mismatch(claim)))
}

/// A claim and its verdict, in a line.
pub(super) fn verdict_line(claim: &ClaimReport) -> String {
    one_line(&format!("{} {}: {}", claim.claim, claim.verdict.name(), mismatch(claim)))
}

/// The reason says it; where there is none, both sides do.
fn mismatch(claim: &ClaimReport) -> String {
    match (claim.reason.is_empty(), claim.observed.is_null()) {
        (false, _) => claim.reason.clone(),
        (true, false) => {
            format!("claimed {}, observed {}", value(&claim.claimed), value(&claim.observed))
        }
        (true, true) => format!("claimed {}", value(&claim.claimed)),
    }
}

/// Why a result was asked for again although its contract accepts it.
pub(super) fn asked_again(claims: &[ClaimReport]) -> Option<String> {
    let required: Vec<&ClaimReport> = claims.iter().filter(|claim| claim.blocks()).collect();
    let refuted = claims.iter().filter(|claim| claim.verdict == Verdict::Refuted);
    let why = if required.is_empty() { refuted.collect() } else { required };
    let lines: Vec<String> = why.into_iter().map(verdict_line).collect();
    (!lines.is_empty()).then(|| one_line(&lines.join("; ")))
}

/// What stands under an attempt that ended: what it changed, which of its claims do not hold, what
/// it was not allowed to do, and what else was noted.
pub(crate) fn under(ended: &Ended) -> Vec<String> {
    let changed = ended.changed.as_ref().filter(|changed| changed.total > 0);
    let doubtful = ended
        .claims
        .iter()
        .filter(|claim| matches!(claim.verdict, Verdict::Refuted | Verdict::Stale));
    let lines = changed.map(files_changed).into_iter().chain(doubtful.map(verdict_line));
    lines.chain(ended.reply.iter().flat_map(noted)).collect()
}

/// So many of what was denied or noted are shown; the report has all.
const NOTES: usize = 3;

/// What was denied or noted beside a reply.
fn noted(reply: &Reply) -> Vec<String> {
    let denied = reply.denied.iter().map(|what| format!("not allowed: {}", one_line(what)));
    let all = denied.chain(reply.notes.iter().map(|note| format!("note: {}", one_line(note))));
    let mut lines: Vec<String> = all.collect();
    let more = lines.len().saturating_sub(NOTES);
    if more > 1 {
        lines.truncate(NOTES);
        lines.push(format!("and {more} more notes"));
    }
    lines
}

fn files_changed(changed: &ChangedFiles) -> String {
    let moved: BTreeSet<&String> =
        changed.renamed.iter().flat_map(|(from, to)| [from, to]).collect();
    let plain = || changed.added.iter().chain(&changed.modified).chain(&changed.deleted);
    let listed = plain().collect::<BTreeSet<_>>().union(&moved).count() as u64;
    // A renamed file may stand among those that are gone and new as well; it is told once.
    let stayed = plain().filter(|path| !moved.contains(path)).map(|path| clean(path));
    let renamed =
        changed.renamed.iter().map(|(from, to)| format!("{} to {}", clean(from), clean(to)));
    let mut names: Vec<String> = stayed.chain(renamed).take(FILES + 1).collect();
    if names.len() > FILES || (listed < changed.total && !names.is_empty()) {
        names.truncate(FILES);
        names.push("…".to_owned());
    }
    if names.is_empty() {
        return format!("files changed: {}", changed.total);
    }
    format!("files changed: {} ({})", changed.total, names.join(", "))
}

/// The table of a run's claims, by attempt, in the order they were held against the world, and how
/// they stand.
pub(crate) fn table(entries: &[Entry], style: Style) -> String {
    if entries.is_empty() {
        return "no claims were held against anything in this run\n".to_owned();
    }
    let mut replies: BTreeMap<(&Vec<String>, u32), BTreeSet<u32>> = BTreeMap::new();
    for entry in entries {
        replies.entry((&entry.path, entry.n)).or_default().insert(entry.reply);
    }
    let mut rows = Vec::new();
    let mut head = String::new();
    for entry in entries {
        let place = title(&entry.path.join("/"), entry.agent.as_deref(), None, entry.n);
        let played = entry.player.as_ref().filter(|player| Some(*player) != entry.agent.as_ref());
        let player = played.map(|player| format!(" ({player})")).unwrap_or_default();
        let contract =
            entry.contract.as_ref().map(|contract| format!(", {contract}")).unwrap_or_default();
        // Replies of an attempt are told apart where there are several.
        let several = replies.get(&(&entry.path, entry.n)).is_some_and(|replies| replies.len() > 1);
        let reply = if several { format!(", reply {}", entry.reply) } else { String::new() };
        let now = format!("{place}{player}{contract}{reply}");
        if now != head {
            head.clone_from(&now);
            rows.push(Told::Head(now));
        }
        let standing = Standing {
            verdict: entry.standing,
            note: if entry.corrected { ", corrected" } else { "" },
            since: &entry.since,
            counts: !entry.superseded,
        };
        rows.push(Told::Claim(&entry.claim, standing));
    }
    let mut text = told(&rows, style);
    let _ = writeln!(text, "\n{}", totals(&ledger::totals(entries)));
    if entries.iter().any(|entry| entry.superseded) {
        text.push_str("in parentheses: said again or put right later, and not counted\n");
    }
    text
}

/// The table of claims that were just held against the world, how they stand, and by which a job
/// fails.
pub(crate) fn verified(claims: &[Weighed], contract: &str, base: &str, style: Style) -> String {
    if claims.is_empty() {
        return format!(
            "accepted: {contract}; the result makes no claim that is held against anything\n"
        );
    }
    let rows: Vec<Told<'_>> = claims
        .iter()
        .map(|weighed| {
            let verdict = weighed.claim.verdict;
            Told::Claim(&weighed.claim, Standing { verdict, note: "", since: "", counts: true })
        })
        .collect();
    let verdicts = claims.iter().map(|weighed| weighed.claim.verdict);
    let mut text =
        format!("accepted: {contract}; held against what changed since {}\n\n", clean(base));
    let _ = writeln!(text, "{}\n{}", told(&rows, style), totals(&Totals::of(verdicts)));
    let counted: Vec<&str> = claims
        .iter()
        .filter(|weighed| weighed.counts)
        .map(|weighed| weighed.claim.claim.as_str())
        .collect();
    if !counted.is_empty() {
        let _ = writeln!(text, "fails by: {}", counted.join(", "));
    }
    text
}

enum Told<'a> {
    Head(String),
    Claim(&'a ClaimReport, Standing<'a>),
}

#[derive(Clone, Copy)]
struct Standing<'a> {
    verdict: Verdict,
    note: &'static str,
    since: &'a str,
    counts: bool,
}

impl Standing<'_> {
    fn words(&self) -> String {
        let words = format!("{}{}", self.verdict.name(), self.note);
        if self.counts { words } else { format!("({words})") }
    }

    fn color(&self) -> Color {
        match self.verdict {
            _ if !self.counts => Color::Dim,
            Verdict::Verified => Color::Green,
            Verdict::Refuted => Color::Red,
            Verdict::Stale => Color::Yellow,
            Verdict::Unverifiable => Color::Dim,
        }
    }
}

fn told(rows: &[Told<'_>], style: Style) -> String {
    if style.width < NARROW {
        return stacked(rows, style);
    }
    let columns = [
        Column::words("CLAIM"),
        Column::words("CLAIMED"),
        Column::words("OBSERVED"),
        Column::word("VERDICT"),
        Column::words("EVIDENCE"),
    ];
    let rows: Vec<Row> = rows
        .iter()
        .map(|row| match row {
            Told::Head(head) => Row::Head(head.clone()),
            Told::Claim(claim, standing) => Row::Cells(vec![
                claim.claim.clone().into(),
                value(&claim.claimed).into(),
                value(&claim.observed).into(),
                Cell::colored(standing.words(), standing.color()),
                evidence(claim, standing.since).join("\n").into(),
            ]),
        })
        .collect();
    table::render(&columns, &rows, 2, style)
}

/// One below the other, where columns have no room.
fn stacked(rows: &[Told<'_>], style: Style) -> String {
    let mut text = String::new();
    for row in rows {
        match row {
            Told::Head(head) => {
                let gap = if text.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{gap}{}", clean(head));
            }
            Told::Claim(claim, standing) => {
                let verdict = standing.color().paint(&standing.words(), style);
                let _ = writeln!(text, "  {}: {verdict}", clean(&claim.claim));
                let mut lines = vec![format!("claimed {}", value(&claim.claimed))];
                if !claim.observed.is_null() {
                    lines.push(format!("observed {}", value(&claim.observed)));
                }
                lines.extend(evidence(claim, standing.since));
                for line in
                    lines.iter().flat_map(|line| table::wrap(line, style.width.saturating_sub(4)))
                {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
    }
    text
}

/// What a verdict rests on, in lines: why it is one first.
pub(crate) fn evidence(claim: &ClaimReport, since: &str) -> Vec<String> {
    let mut lines: Vec<String> = [since, &claim.reason].map(one_line).into_iter().collect();
    lines.retain(|line| !line.is_empty());
    for evidence in &claim.evidence {
        let line = evidence_line(evidence);
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn evidence_line(evidence: &Evidence) -> String {
    let mut line = evidence.text.clone();
    if let Some(code) = evidence.exit_code
        && !line.contains("exit")
    {
        let _ = write!(line, " (exit code {code})");
    }
    // How a command ended is said at the end of what it said; of one that succeeded nobody asks.
    let failed = evidence.exit_code.is_some_and(|code| code != 0);
    let last =
        evidence.output.lines().rev().find(|line| !line.trim().is_empty()).filter(|_| failed);
    if let Some(last) = last {
        let _ = write!(line, ": {}", last.trim());
    }
    if let Some(hash) = &evidence.sha256 {
        let _ = write!(line, " [sha256 {}]", hash.chars().take(12).collect::<String>());
    }
    one_line(line.trim())
}

/// What was claimed or observed, as people write it.
pub(crate) fn value(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(word).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", word(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => word(other),
    };
    one_line(&text)
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) && items.len() <= FILES => {
            format!("[{}]", items.iter().map(word).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", many(items.len(), "item")),
        other => super::brief(other),
    }
}

#[cfg(test)]
mod tests;
