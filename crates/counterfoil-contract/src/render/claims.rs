//! Text about claims: the prompt for an agent whose claims were refuted, and the descriptions on
//! the reference page.

use super::prompt::{Delivery, block_template, delivery_instruction};
use crate::claim::{Claim, ClaimKind, ClaimMatch, ClaimPolicy, Figure};
use crate::claim::{ClaimReport, Evidence};
use crate::contract::Contract;
use crate::policy::Framing;
use crate::text::pluralize;
use serde_json::Value;
use std::fmt::Write;

/// The maximum number of claims in one prompt.
const MAX_CLAIMS: usize = 20;
/// The maximum number of pieces of evidence for one claim.
const MAX_EVIDENCE: usize = 10;
/// The maximum number of items shown of a list or an object.
const MAX_ITEMS: usize = 20;
/// The maximum number of command outputs in one prompt; each may be long.
const MAX_OUTPUTS: usize = 5;
/// The maximum size of the tail of a command's output, in bytes.
const MAX_TAIL_BYTES: usize = 2000;

/// The prompt that shows an agent where its result differs from what was observed, and asks for a
/// corrected one.
pub(super) fn repair(contract: &Contract, refuted: &[ClaimReport], delivery: Delivery) -> String {
    if refuted.is_empty() {
        return "Your result matches what was observed; there is nothing to send again.\n"
            .to_owned();
    }
    let mut text = String::from("Your result does not match what was observed.\n");
    let mut outputs = MAX_OUTPUTS;
    for report in refuted.iter().take(MAX_CLAIMS) {
        let named = if report.field.is_empty() { &report.claim } else { &report.field };
        let _ = writeln!(text, "\n`{named}`");
        if !report.claimed.is_null() {
            let _ = writeln!(text, "- claimed: {}", value_text(&report.claimed));
        }
        if !report.observed.is_null() {
            let _ = writeln!(text, "- observed: {}", value_text(&report.observed));
        }
        if !report.reason.is_empty() {
            let _ = writeln!(text, "- difference: {}", one_line(&report.reason));
        }
        for evidence in report.evidence.iter().take(MAX_EVIDENCE) {
            write_evidence(evidence, &mut outputs, &mut text);
        }
    }
    if refuted.len() > MAX_CLAIMS {
        let more = pluralize(refuted.len() - MAX_CLAIMS, "more refuted claim");
        let _ = writeln!(text, "\nAnd {more}.");
    }
    let _ = writeln!(
        text,
        "\nIf the result is wrong, correct it. If work is missing, do it first. Then send the complete \
         corrected result.\n{}",
        delivery_instruction(contract, delivery)
    );
    if delivery == Delivery::Text && contract.framing() == Framing::OutputBlock {
        let _ = write!(text, "\n{}", block_template(contract));
    }
    text
}

fn write_evidence(evidence: &Evidence, outputs: &mut usize, text: &mut String) {
    let _ = writeln!(text, "- {}: {}", evidence.kind, one_line(&evidence.text));
    let output = output_tail(&evidence.output);
    if output.is_empty() || *outputs == 0 {
        return;
    }
    *outputs -= 1;
    // Longer than any run of backticks in the output, so that the output cannot close its block.
    let longest = output.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(text, "\n{fence}text\n{output}\n{fence}");
}

/// The tail of an output, starting at the beginning of a line if possible.
fn output_tail(output: &str) -> &str {
    let output = output.trim_end();
    let Some(mut from) = output.len().checked_sub(MAX_TAIL_BYTES).filter(|from| *from > 0) else {
        return output;
    };
    while !output.is_char_boundary(from) {
        from += 1;
    }
    let end = &output[from..];
    end.split_once('\n').map_or(end, |(_, whole)| whole)
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Array(items) if items.is_empty() => "nothing".to_owned(),
        Value::Array(items) => {
            let mut shown: Vec<String> = items.iter().take(MAX_ITEMS).map(value_text).collect();
            if items.len() > MAX_ITEMS {
                shown.push(format!("and {} more", items.len() - MAX_ITEMS));
            }
            shown.join(", ")
        }
        Value::Object(members) => {
            let shown: Vec<String> = members
                .iter()
                .take(MAX_ITEMS)
                .map(|(key, value)| format!("{key} {}", value_text(value)))
                .collect();
            shown.join(", ")
        }
        other => other.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One sentence about a claim: what must be true for it to be confirmed.
pub(super) fn describe(claim: &Claim) -> String {
    let quantifier = match claim.matching {
        ClaimMatch::Exact => "exactly these files were",
        ClaimMatch::Subset => "at least these files were",
        ClaimMatch::BestEffort => "some of these files were",
    };
    let run = match (&claim.run, &claim.check) {
        (Some(line), _) => format!("`{line}`"),
        (None, Some(name)) => format!("the check `{name}`"),
        (None, None) => "a command".to_owned(),
    };
    match claim.kind {
        ClaimKind::FilesModified => format!("{quantifier} modified"),
        ClaimKind::FilesAdded => format!("{quantifier} added"),
        ClaimKind::FilesDeleted => format!("{quantifier} deleted"),
        ClaimKind::FilesRenamed => format!("{quantifier} renamed"),
        ClaimKind::FilesChanged => format!("{quantifier} changed"),
        ClaimKind::Command => match &claim.when {
            Some(when) => format!("{run} succeeds, when `{}`", when.replace('|', "\\|")),
            None => format!("{run} succeeds, or fails, as the field says"),
        },
        ClaimKind::Commands => "each `cmd: …` in it succeeds".to_owned(),
        ClaimKind::Count => describe_count(claim, &run),
        ClaimKind::Artifact => match &claim.contract {
            Some(contract) => format!("the file exists and satisfies `{contract}`"),
            None => "the file exists and not empty".to_owned(),
        },
        ClaimKind::Commit => match &claim.files {
            Some(files) => {
                format!("the commit exists, with the files of `{}`", files.trim_start_matches('/'))
            }
            None => "the commit exists".to_owned(),
        },
        ClaimKind::Location => "the file and the line are there".to_owned(),
        ClaimKind::Fixed => "the file of each fixed finding changed".to_owned(),
        ClaimKind::Complete => {
            let what = "the changes leave nothing unfinished";
            match &claim.when {
                Some(when) => format!("{what}, when `{}`", when.replace('|', "\\|")),
                None => format!("{what}, when the field says so"),
            }
        }
        ClaimKind::Protected => "no protected file was changed".to_owned(),
        ClaimKind::TestsKept => "no test was removed, skipped or emptied".to_owned(),
    }
}

fn describe_count(claim: &Claim, run: &str) -> String {
    if let Some(of) = &claim.of {
        return format!("as many as `{}` has", of.trim_start_matches('/'));
    }
    let Some(figure) = claim.figure else { return "a number".to_owned() };
    let what = match figure {
        Figure::Total => "tests",
        Figure::Passed => "tests that passed",
        Figure::Failed => "tests that failed",
        Figure::Skipped => "tests that were skipped",
        Figure::TestsAdded => return "as many tests were added".to_owned(),
        Figure::TestsRemoved => return "as many tests were removed".to_owned(),
        Figure::FilesAdded => return "as many files were added".to_owned(),
        Figure::FilesModified => return "as many files were modified".to_owned(),
        Figure::FilesDeleted => return "as many files were deleted".to_owned(),
        Figure::FilesChanged => return "as many files were changed".to_owned(),
    };
    match &claim.report {
        Some(report) if claim.run.is_none() && claim.check.is_none() => {
            format!("as many {what} as `{report}` says")
        }
        _ => format!("as many {what} as {run} says"),
    }
}

/// The consequence of a refuted claim.
pub(super) fn consequence(claim: &Claim) -> &'static str {
    match claim.policy {
        ClaimPolicy::Record => "it is recorded",
        ClaimPolicy::Require => "it is sent back",
        ClaimPolicy::Ignore => "nothing",
    }
}
