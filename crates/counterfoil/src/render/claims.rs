//! Claims: what was claimed, what was observed, the verdict and the evidence.

use super::lines;
use super::text::{abbreviate, one_line};
use crate::gate::{GatedClaims, GatedWork, Level, NotMade, UnexaminedFile};
use crate::report::run::RunFiles;
use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{escape_control, pluralize};
use counterfoil_engine::event_text::{self, attempt_title, doubted};
use counterfoil_engine::ledger::{self, Entry, Totals};
use counterfoil_flow::{ChangedFiles, Ended, Reply};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

/// The number of reasons for unverifiable claims in the totals.
const MAX_REASONS: usize = 2;
/// The number of files or items listed in a line.
const MAX_LISTED: usize = 5;

/// The totals in one line: how many claims were made, and how each of them stands.
pub(crate) fn totals(totals: &Totals) -> String {
    headline(totals, 0)
}

/// The totals in one line, with the number of required claims that were not made.
pub(crate) fn headline(totals: &Totals, not_made: usize) -> String {
    let because = match totals.unverifiable_because.as_slice() {
        [] => String::new(),
        reasons => {
            let short: Vec<String> =
                reasons.iter().take(MAX_REASONS).map(|reason| short_reason(reason)).collect();
            let more = if reasons.len() > MAX_REASONS { ", …" } else { "" };
            format!(" ({}{more})", short.join("; "))
        }
    };
    let mut line = format!("claims: {} made", totals.made);
    for (number, verdict) in [
        (totals.verified, "verified"),
        (totals.refuted, "refuted"),
        (totals.corrected, "refuted earlier and corrected"),
        (totals.stale, "stale"),
        (not_made as u64, NotMade::NAME),
        (totals.unverifiable, "not verifiable"),
    ] {
        if number > 0 {
            let _ = write!(line, ", {number} {verdict}");
        }
    }
    line + &because
}

/// The first part of a reason, without the way out that follows.
fn short_reason(reason: &str) -> String {
    one_line(reason.split(';').next().unwrap_or_default())
}

/// A claim and how it differs from the observation.
pub(crate) fn mismatch_line(claim: &ClaimReport) -> String {
    one_line(&format!("{}: {}", claim.claim, mismatch(claim)))
}

/// A claim, its verdict and how it differs from the observation.
fn verdict_line(claim: &ClaimReport) -> String {
    one_line(&format!("{}: {}", verdict(claim), mismatch(claim)))
}

/// A claim and its verdict.
fn verdict(claim: &ClaimReport) -> String {
    let verdict = match claim.verdict {
        Verdict::Unverifiable => "not verifiable",
        other => other.name(),
    };
    format!("{} {verdict}", claim.claim)
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

/// The claims of an attempt that were explained below one of its replies.
#[derive(Debug, Default)]
pub(super) struct Explained(BTreeSet<String>);

impl Explained {
    /// A claim that is not verified, on a line that begins with the mark of its verdict. One that stands
    /// as after an earlier reply is not explained again.
    fn line(&mut self, claim: &ClaimReport) -> String {
        let line = marked_verdict_line(claim);
        if self.0.contains(&line) {
            return format!("{} {}, as before", mark(claim), one_line(&verdict(claim)));
        }
        self.0.insert(line.clone());
        line
    }
}

/// The lines below a requested repair: each claim that it was requested for.
pub(super) fn repair_details(claims: &[ClaimReport], explained: &mut Explained) -> Vec<String> {
    doubted(claims).into_iter().map(|claim| explained.line(claim)).collect()
}

/// The lines below an ended attempt: changed files, claims that are not verified, denied actions and
/// notes.
pub(super) fn attempt_details(ended: &Ended, explained: &mut Explained) -> Vec<String> {
    let changed = ended.changed.as_ref().filter(|changed| changed.total > 0);
    let doubtful = ended.claims.iter().filter(|claim| match claim.verdict {
        Verdict::Verified => false,
        Verdict::Refuted | Verdict::Stale => true,
        Verdict::Unverifiable => !claim.is_own() || claim.blocks(),
    });
    let claims = doubtful.map(|claim| explained.line(claim));
    let lines = changed.map(files_changed).into_iter().chain(claims);
    let lines = lines.chain(ended.reply.iter().flat_map(reply_notes));
    lines.chain(super::checks::failing_output(ended)).collect()
}

/// A claim that is not verified, on a line that begins with the mark of its verdict.
pub(crate) fn marked_verdict_line(claim: &ClaimReport) -> String {
    format!("{} {}", mark(claim), verdict_line(claim))
}

fn mark(claim: &ClaimReport) -> char {
    match claim.verdict {
        Verdict::Refuted => '✗',
        _ if claim.blocks() => '✗',
        Verdict::Verified => '✓',
        Verdict::Stale | Verdict::Unverifiable => '○',
    }
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

pub(super) fn files_changed(changed: &ChangedFiles) -> String {
    let files = RunFiles::of([changed]);
    format!("files changed: {}{}", files.total, names(&files))
}

/// The names of some files in parentheses after their number, the renamed ones with both names.
/// Nothing if none is known.
pub(super) fn names(files: &RunFiles) -> String {
    let kept = files.kept.iter().map(|path| escape_control(path));
    let renamed = files
        .renamed
        .iter()
        .map(|(from, to)| format!("{} to {}", escape_control(from), escape_control(to)));
    let mut names: Vec<String> = kept.chain(renamed).take(MAX_LISTED + 1).collect();
    if names.is_empty() {
        return String::new();
    }
    if names.len() > MAX_LISTED || files.more {
        names.truncate(MAX_LISTED);
        names.push("…".to_owned());
    }
    format!(" ({})", names.join(", "))
}

/// The claims of a run by attempt, in the order they were verified, and their totals.
pub(crate) fn page(entries: &[Entry], style: Style) -> String {
    if entries.is_empty() {
        return "no claims were verified in this run\n".to_owned();
    }
    let mut text = list(entries, style);
    text.push('\n');
    text += &lines::lines("", &totals(&ledger::totals(entries)), style);
    if entries.iter().any(|entry| entry.superseded) {
        text.push_str("in parentheses: repeated or corrected by a later reply, and not counted\n");
    }
    text
}

/// The claims of a run by attempt. Each name, value and hash stands whole on its line, so that it can be
/// searched for.
pub(crate) fn list(entries: &[Entry], style: Style) -> String {
    let mut replies: BTreeMap<(&Vec<String>, u32), BTreeSet<u32>> = BTreeMap::new();
    for entry in entries {
        replies.entry((&entry.path, entry.n)).or_default().insert(entry.reply);
    }
    let mut text = String::new();
    let mut last_heading = String::new();
    for entry in entries {
        let attempt =
            attempt_title(&entry.path.join("/"), entry.agent.as_deref(), None, entry.place());
        let program = entry.player.as_ref().filter(|player| Some(*player) != entry.agent.as_ref());
        let program = program.map(|program| format!(" ({program})")).unwrap_or_default();
        let contract =
            entry.contract.as_ref().map(|contract| format!(", {contract}")).unwrap_or_default();
        // Replies are numbered if an attempt has several.
        let several = replies.get(&(&entry.path, entry.n)).is_some_and(|replies| replies.len() > 1);
        let reply = if several { format!(", reply {}", entry.reply) } else { String::new() };
        let heading = format!("{attempt}{program}{contract}{reply}");
        if heading != last_heading {
            let gap = if text.is_empty() { "" } else { "\n" };
            text = text + gap + &lines::lines("", &heading, style);
            last_heading = heading;
        }
        let status = ClaimStatus {
            verdict: entry.standing,
            note: if entry.corrected { ", corrected later" } else { "" },
            since: &entry.since,
            counts: !entry.superseded,
            is_default: false,
        };
        text += &claim_lines(&entry.claim, status, style);
    }
    text
}

/// A claim that was not made, and who requires it.
pub(crate) fn not_made_line(missing: &NotMade) -> String {
    one_line(&format!("{}: {}", missing.claim, missing.reason))
}

/// The result of `counterfoil verify`: the claims, their totals, and those that fail the job.
/// `defaults` are the pointers of the fields that the result does not have.
pub(crate) fn verification(
    claims: &GatedClaims,
    contract: &str,
    base: &str,
    defaults: &[String],
    style: Style,
) -> String {
    if claims.made.is_empty() && claims.not_made.is_empty() {
        let words = format!("accepted: {contract}; the result makes no claim that can be verified");
        return lines::line("", &words, style) + "\n";
    }
    let first = format!("accepted: {contract}; claims checked against the changes since {base}");
    let mut text = lines::line("", &first, style) + "\n\n";
    for gated in &claims.made {
        let field = &gated.claim.field;
        let status = ClaimStatus {
            verdict: gated.claim.verdict,
            note: "",
            since: "",
            counts: true,
            is_default: defaults
                .iter()
                .any(|pointer| pointer.strip_prefix('/') == Some(field.as_str())),
        };
        text += &claim_lines(&gated.claim, status, style);
    }
    for missing in &claims.not_made {
        let mark = if missing.level() == Level::Error { '✗' } else { '○' };
        let first = format!("{mark} {}: {}", missing.claim, NotMade::NAME);
        text += &lines::lines("  ", &first, style);
        text += &lines::lines("      ", &format!("evidence: {}", missing.reason), style);
    }
    text.push('\n');
    text += &lines::lines("", &headline(&claims.totals(), claims.not_made.len()), style);
    let failing: Vec<&str> = claims.failing().collect();
    if !failing.is_empty() {
        let _ = writeln!(text, "failed because of: {}", failing.join(", "));
    }
    text
}

/// The most places with unfinished work, and files that were not examined, that are listed.
const MAX_PLACES: usize = 100;

/// Unfinished work that a change left behind, and what was not examined.
pub(crate) fn unfinished(work: &GatedWork) -> String {
    let (failing, noted): (Vec<&UnexaminedFile>, Vec<&UnexaminedFile>) =
        work.not_examined.iter().partition(|file| file.counts);
    let mut text = match work.places.len() {
        0 if failing.is_empty() => {
            "no unfinished work was added in Go, JavaScript, Python, Rust or TypeScript\n"
                .to_owned()
        }
        0 => String::new(),
        places => format!("unfinished: {}\n", pluralize(places, "place")),
    };
    list_indented(&mut text, &work.places);
    if !failing.is_empty() {
        text.push_str("whether work is unfinished is not known:\n");
        list_indented(&mut text, &failing);
    }
    if !noted.is_empty() {
        let files = pluralize(noted.len(), "file");
        let _ = writeln!(text, "not examined for unfinished work: {files}");
        list_indented(&mut text, &noted);
    }
    text
}

/// Items on lines of their own, if there are not too many.
fn list_indented<T: Display>(text: &mut String, items: &[T]) {
    for item in items.iter().take(MAX_PLACES) {
        let _ = writeln!(text, "  {item}");
    }
    if let Some(more @ 1..) = items.len().checked_sub(MAX_PLACES) {
        let _ = writeln!(text, "  and {more} more");
    }
}

#[derive(Clone, Copy)]
struct ClaimStatus<'a> {
    verdict: Verdict,
    note: &'static str,
    since: &'a str,
    counts: bool,
    /// Whether the value is the default of the contract, because the result does not have the field.
    is_default: bool,
}

impl ClaimStatus<'_> {
    /// A claim that does not count has the mark of nothing to look at.
    fn mark(&self) -> char {
        match self.verdict {
            _ if !self.counts => '·',
            Verdict::Verified => '✓',
            Verdict::Refuted => '✗',
            Verdict::Stale | Verdict::Unverifiable => '○',
        }
    }

    fn label(&self) -> String {
        let label = format!("{}{}", self.verdict.name(), self.note);
        if self.counts { label } else { format!("({label})") }
    }
}

/// A claim with its verdict, both values and the evidence, each on lines of its own.
fn claim_lines(claim: &ClaimReport, status: ClaimStatus<'_>, style: Style) -> String {
    let first = format!("{} {}: {}", status.mark(), claim.claim, status.label());
    let mut text = lines::lines("  ", &first, style);
    let claimed = value(&claim.claimed);
    let claimed = Some(if status.is_default {
        format!("claimed:  nothing: the field is missing, and its default is {claimed}")
    } else {
        format!("claimed:  {claimed}")
    });
    let observed =
        (!claim.observed.is_null()).then(|| format!("observed: {}", value(&claim.observed)));
    let evidence =
        evidence(claim, status.since).into_iter().map(|line| format!("evidence: {line}"));
    for line in claimed.into_iter().chain(observed).chain(evidence) {
        text += &lines::lines("      ", &line, style);
    }
    text
}

/// The evidence for a verdict, one line each, after its reason.
pub(crate) fn evidence(claim: &ClaimReport, since: &str) -> Vec<String> {
    let mut lines: Vec<String> = [since, &claim.reason].map(one_line).into_iter().collect();
    lines.retain(|line| !line.is_empty());
    lines.extend(event_text::evidence(claim, since).into_iter().map(|(_, line)| line));
    lines
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
