//! Claims: what was claimed, what was observed, the verdict and the evidence.

use super::color::Color;
use super::event_lines::attempt_title;
use super::table::{self, Cell, Column, Row};
use super::text::{abbreviate, one_line};
use crate::gate::GatedClaim;
use counterfoil_contract::claim::{ClaimReport, Evidence, Verdict};
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{escape_control, pluralize};
use counterfoil_engine::ledger::{self, Entry, Totals};
use counterfoil_flow::{ChangedFiles, Ended, Reply};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The number of refuted claims listed at the end of a run.
const MAX_REFUTED: usize = 10;
/// The number of files or items listed in a line.
const MAX_LISTED: usize = 5;
/// On narrower terminals, claims are printed one below the other instead of in columns.
const MIN_TABLE_WIDTH: usize = 72;

/// The claim totals of a run in one line and the refuted claims below it. Empty if there are no
/// claims.
pub(crate) fn summary(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", totals(&ledger::totals(entries)));
    let refuted: Vec<&Entry> = entries
        .iter()
        .filter(|entry| !entry.superseded && entry.standing == Verdict::Refuted)
        .collect();
    for entry in refuted.iter().take(MAX_REFUTED) {
        let attempt = attempt_title(&entry.path.join("/"), entry.agent.as_deref(), None, entry.n);
        let _ = writeln!(text, "  {attempt}: {}", mismatch_line(&entry.claim));
    }
    if refuted.len() > MAX_REFUTED {
        let _ = writeln!(text, "  … and {} more", refuted.len() - MAX_REFUTED);
    }
    text
}

/// The totals in one line.
pub(crate) fn totals(totals: &Totals) -> String {
    let mut line = format!("claims: verified {} of {}", totals.verified, totals.claims());
    for (number, verdict) in [
        (totals.refuted, "refuted"),
        (totals.stale, "stale"),
        (totals.unverifiable, "unverifiable"),
    ] {
        if number > 0 {
            let _ = write!(line, ", {verdict} {number}");
        }
    }
    if totals.corrected > 0 {
        let _ = write!(line, "; refuted {}, corrected later", totals.corrected);
    }
    line
}

/// A claim and how it differs from the observation.
pub(crate) fn mismatch_line(claim: &ClaimReport) -> String {
    one_line(&format!("{}: {}", claim.claim, mismatch(claim)))
}

/// A claim, its verdict and how it differs from the observation.
pub(super) fn verdict_line(claim: &ClaimReport) -> String {
    one_line(&format!("{} {}: {}", claim.claim, claim.verdict.name(), mismatch(claim)))
}

/// The reason of the verdict or, if there is none, both values.
fn mismatch(claim: &ClaimReport) -> String {
    match (claim.reason.is_empty(), claim.observed.is_null()) {
        (false, _) => claim.reason.clone(),
        (true, false) => {
            format!("claimed {}, observed {}", value(&claim.claimed), value(&claim.observed))
        }
        (true, true) => format!("claimed {}", value(&claim.claimed)),
    }
}

/// The claims because of which a repair was requested although the contract accepts the result.
pub(super) fn retry_reason(claims: &[ClaimReport]) -> Option<String> {
    let required: Vec<&ClaimReport> = claims.iter().filter(|claim| claim.blocks()).collect();
    let refuted = claims.iter().filter(|claim| claim.verdict == Verdict::Refuted);
    let reasons = if required.is_empty() { refuted.collect() } else { required };
    let lines: Vec<String> = reasons.into_iter().map(verdict_line).collect();
    (!lines.is_empty()).then(|| one_line(&lines.join("; ")))
}

/// The lines below an ended attempt: changed files, refuted and stale claims, denied actions and
/// notes.
pub(crate) fn attempt_details(ended: &Ended) -> Vec<String> {
    let changed = ended.changed.as_ref().filter(|changed| changed.total > 0);
    let failed = ended.claims.iter().filter(|claim| {
        matches!(claim.verdict, Verdict::Refuted | Verdict::Stale) || claim.blocks()
    });
    let lines = changed.map(files_changed).into_iter().chain(failed.map(verdict_line));
    let lines = lines.chain(ended.reply.iter().flat_map(reply_notes));
    lines.chain(super::checks::failing_output(ended)).collect()
}

/// The number of denied actions and notes that are printed; the report has all of them.
const MAX_NOTES: usize = 3;

/// Denied actions and notes of a reply.
fn reply_notes(reply: &Reply) -> Vec<String> {
    let denied = reply.denied.iter().map(|what| format!("permission denied: {}", one_line(what)));
    let all = denied.chain(reply.notes.iter().map(|note| format!("note: {}", one_line(note))));
    let mut lines: Vec<String> = all.collect();
    let more = lines.len().saturating_sub(MAX_NOTES);
    if more > 1 {
        lines.truncate(MAX_NOTES);
        lines.push(format!("and {more} more notes"));
    }
    lines
}

fn files_changed(changed: &ChangedFiles) -> String {
    let renamed_paths: BTreeSet<&String> =
        changed.renamed.iter().flat_map(|(from, to)| [from, to]).collect();
    let others = || changed.added.iter().chain(&changed.modified).chain(&changed.deleted);
    let listed = others().collect::<BTreeSet<_>>().union(&renamed_paths).count() as u64;
    // A renamed file may also be among the deleted and added ones; it is listed once.
    let unrenamed =
        others().filter(|path| !renamed_paths.contains(path)).map(|path| escape_control(path));
    let renamed = changed
        .renamed
        .iter()
        .map(|(from, to)| format!("{} to {}", escape_control(from), escape_control(to)));
    let mut names: Vec<String> = unrenamed.chain(renamed).take(MAX_LISTED + 1).collect();
    if names.len() > MAX_LISTED || (listed < changed.total && !names.is_empty()) {
        names.truncate(MAX_LISTED);
        names.push("…".to_owned());
    }
    if names.is_empty() {
        return format!("files changed: {}", changed.total);
    }
    format!("files changed: {} ({})", changed.total, names.join(", "))
}

/// The claims of a run by attempt, in the order they were verified, and their totals.
pub(crate) fn table(entries: &[Entry], style: Style) -> String {
    if entries.is_empty() {
        return "no claims were verified in this run\n".to_owned();
    }
    let mut replies: BTreeMap<(&Vec<String>, u32), BTreeSet<u32>> = BTreeMap::new();
    for entry in entries {
        replies.entry((&entry.path, entry.n)).or_default().insert(entry.reply);
    }
    let mut rows = Vec::new();
    let mut last_heading = String::new();
    for entry in entries {
        let attempt = attempt_title(&entry.path.join("/"), entry.agent.as_deref(), None, entry.n);
        let program = entry.player.as_ref().filter(|player| Some(*player) != entry.agent.as_ref());
        let program = program.map(|program| format!(" ({program})")).unwrap_or_default();
        let contract =
            entry.contract.as_ref().map(|contract| format!(", {contract}")).unwrap_or_default();
        // Replies are numbered if an attempt has several.
        let several = replies.get(&(&entry.path, entry.n)).is_some_and(|replies| replies.len() > 1);
        let reply = if several { format!(", reply {}", entry.reply) } else { String::new() };
        let heading = format!("{attempt}{program}{contract}{reply}");
        if heading != last_heading {
            last_heading.clone_from(&heading);
            rows.push(ClaimRow::Heading(heading));
        }
        let status = ClaimStatus {
            verdict: entry.standing,
            note: if entry.corrected { ", corrected" } else { "" },
            since: &entry.since,
            counts: !entry.superseded,
        };
        rows.push(ClaimRow::Claim(&entry.claim, status));
    }
    let mut text = claim_rows(&rows, style);
    let _ = writeln!(text, "\n{}", totals(&ledger::totals(entries)));
    if entries.iter().any(|entry| entry.superseded) {
        text.push_str("in parentheses: repeated or corrected by a later reply, and not counted\n");
    }
    text
}

/// The result of `counterfoil verify`: the claims, their totals, and those that fail the job.
pub(crate) fn verification(
    claims: &[GatedClaim],
    contract: &str,
    base: &str,
    style: Style,
) -> String {
    if claims.is_empty() {
        return format!("accepted: {contract}; the result makes no claim that can be verified\n");
    }
    let rows: Vec<ClaimRow<'_>> = claims
        .iter()
        .map(|gated| {
            let verdict = gated.claim.verdict;
            let status = ClaimStatus { verdict, note: "", since: "", counts: true };
            ClaimRow::Claim(&gated.claim, status)
        })
        .collect();
    let verdicts = claims.iter().map(|gated| gated.claim.verdict);
    let mut text = format!(
        "accepted: {contract}; claims checked against the changes since {}\n\n",
        escape_control(base)
    );
    let _ = writeln!(
        text,
        "{}\n{}",
        claim_rows(&rows, style),
        totals(&Totals::from_verdicts(verdicts))
    );
    let failing: Vec<&str> = claims
        .iter()
        .filter(|gated| gated.counts)
        .map(|gated| gated.claim.claim.as_str())
        .collect();
    if !failing.is_empty() {
        let _ = writeln!(text, "failed because of: {}", failing.join(", "));
    }
    text
}

/// A row of the table of claims.
enum ClaimRow<'a> {
    Heading(String),
    Claim(&'a ClaimReport, ClaimStatus<'a>),
}

#[derive(Clone, Copy)]
struct ClaimStatus<'a> {
    verdict: Verdict,
    note: &'static str,
    since: &'a str,
    counts: bool,
}

impl ClaimStatus<'_> {
    fn label(&self) -> String {
        let label = format!("{}{}", self.verdict.name(), self.note);
        if self.counts { label } else { format!("({label})") }
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

fn claim_rows(rows: &[ClaimRow<'_>], style: Style) -> String {
    if style.width < MIN_TABLE_WIDTH {
        return stacked(rows, style);
    }
    let columns = [
        Column::wrapping("CLAIM"),
        Column::wrapping("CLAIMED"),
        Column::wrapping("OBSERVED"),
        Column::fixed("VERDICT"),
        Column::wrapping("EVIDENCE"),
    ];
    let rows: Vec<Row> = rows
        .iter()
        .map(|row| match row {
            ClaimRow::Heading(heading) => Row::Heading(heading.clone()),
            ClaimRow::Claim(claim, status) => Row::Cells(vec![
                claim.claim.clone().into(),
                value(&claim.claimed).into(),
                value(&claim.observed).into(),
                Cell::colored(status.label(), status.color()),
                evidence(claim, status.since).join("\n").into(),
            ]),
        })
        .collect();
    table::render(&columns, &rows, 2, style)
}

/// The claims one below the other, for narrow terminals.
fn stacked(rows: &[ClaimRow<'_>], style: Style) -> String {
    let mut text = String::new();
    for row in rows {
        match row {
            ClaimRow::Heading(heading) => {
                let gap = if text.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{gap}{}", escape_control(heading));
            }
            ClaimRow::Claim(claim, status) => {
                let verdict = status.color().paint(&status.label(), style);
                let _ = writeln!(text, "  {}: {verdict}", escape_control(&claim.claim));
                let mut lines = vec![format!("claimed {}", value(&claim.claimed))];
                if !claim.observed.is_null() {
                    lines.push(format!("observed {}", value(&claim.observed)));
                }
                lines.extend(evidence(claim, status.since));
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

/// The evidence for a verdict, one line each, after its reason.
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
    // The last line of a failed command usually says why it failed.
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

/// A claimed or observed value, for people.
pub(crate) fn value(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(nested_value).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{name}: {}", nested_value(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => nested_value(other),
    };
    one_line(&text)
}

fn nested_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) && items.len() <= MAX_LISTED => {
            format!("[{}]", items.iter().map(nested_value).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", pluralize(items.len(), "item")),
        other => abbreviate(other),
    }
}

#[cfg(test)]
mod tests;
