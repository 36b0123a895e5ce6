//! Claims in words: for the agent whose result does not agree with what was observed, and for the
//! reference page.

use super::prompt::{asks_for, block_template};
use crate::claim::{Claim, ClaimKind, ClaimMatch, ClaimPolicy, Figure};
use crate::claim::{ClaimReport, Evidence};
use crate::contract::Contract;
use crate::policy::Framing;
use serde_json::Value;
use std::fmt::Write;

/// Claims told of in one prompt; more would not be read.
const MOST_CLAIMS: usize = 20;
/// Evidence told of for one claim.
const MOST_EVIDENCE: usize = 10;
/// Items of a list.
const MOST_ITEMS: usize = 20;
/// Outputs shown in one prompt: each may be long.
const MOST_OUTPUTS: usize = 5;
/// The end of a command's output, in bytes.
const TAIL: usize = 2000;

/// The prompt that shows an agent where its result does not agree with what was observed, and asks
/// for a correct one.
pub(super) fn repair(contract: &Contract, refuted: &[ClaimReport]) -> String {
    if refuted.is_empty() {
        return "What you handed back agrees with what was observed; there is nothing to send again.\n"
            .to_owned();
    }
    let mut text = String::from("What you handed back does not agree with what was observed.\n");
    let mut outputs = MOST_OUTPUTS;
    for report in refuted.iter().take(MOST_CLAIMS) {
        let named = if report.field.is_empty() { &report.claim } else { &report.field };
        let _ = writeln!(text, "\n`{named}`");
        if !report.claimed.is_null() {
            let _ = writeln!(text, "- claimed: {}", in_a_line(&report.claimed));
        }
        if !report.observed.is_null() {
            let _ = writeln!(text, "- observed: {}", in_a_line(&report.observed));
        }
        if !report.reason.is_empty() {
            let _ = writeln!(text, "- difference: {}", one_line(&report.reason));
        }
        for evidence in report.evidence.iter().take(MOST_EVIDENCE) {
            tell(evidence, &mut outputs, &mut text);
        }
    }
    if refuted.len() > MOST_CLAIMS {
        let _ = writeln!(text, "\nAnd {} more of the same kind.", refuted.len() - MOST_CLAIMS);
    }
    let _ = writeln!(
        text,
        "\nIf the result is wrong, correct it. If work is missing, do it first. Then hand back the whole result once more, as \
         it is then.\n{}",
        asks_for(contract)
    );
    if contract.framing() == Framing::OutputBlock {
        let _ = write!(text, "\n{}", block_template(contract));
    }
    text
}

fn tell(evidence: &Evidence, outputs: &mut usize, text: &mut String) {
    let _ = writeln!(text, "- {}: {}", evidence.kind, one_line(&evidence.text));
    let output = end(&evidence.output);
    if output.is_empty() || *outputs == 0 {
        return;
    }
    *outputs -= 1;
    // Longer than any run of backticks in it, so that the output cannot end its own block.
    let longest = output.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(text, "\n{fence}text\n{output}\n{fence}");
}

/// The end of an output, from the beginning of a line if there is one.
fn end(output: &str) -> &str {
    let output = output.trim_end();
    let Some(mut from) = output.len().checked_sub(TAIL).filter(|from| *from > 0) else {
        return output;
    };
    while !output.is_char_boundary(from) {
        from += 1;
    }
    let end = &output[from..];
    end.split_once('\n').map_or(end, |(_, whole)| whole)
}

fn in_a_line(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Array(items) if items.is_empty() => "nothing".to_owned(),
        Value::Array(items) => {
            let mut shown: Vec<String> = items.iter().take(MOST_ITEMS).map(in_a_line).collect();
            if items.len() > MOST_ITEMS {
                shown.push(format!("and {} more", items.len() - MOST_ITEMS));
            }
            shown.join(", ")
        }
        Value::Object(members) => {
            let shown: Vec<String> = members
                .iter()
                .take(MOST_ITEMS)
                .map(|(key, value)| format!("{key} {}", in_a_line(value)))
                .collect();
            shown.join(", ")
        }
        other => other.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A claim in a sentence: what it says, and what it is held against.
pub(super) fn in_words(claim: &Claim) -> String {
    let exactly = match claim.matching {
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
        ClaimKind::FilesModified => format!("{exactly} modified"),
        ClaimKind::FilesAdded => format!("{exactly} added"),
        ClaimKind::FilesDeleted => format!("{exactly} deleted"),
        ClaimKind::FilesRenamed => format!("{exactly} renamed"),
        ClaimKind::FilesChanged => format!("{exactly} changed"),
        ClaimKind::Command => match &claim.when {
            Some(when) => format!("{run} succeeds, when `{}`", when.replace('|', "\\|")),
            None => format!("{run} succeeds, or fails, as the field says"),
        },
        ClaimKind::Commands => "each `cmd: …` in it succeeds".to_owned(),
        ClaimKind::Count => count(claim, &run),
        ClaimKind::Artifact => match &claim.contract {
            Some(contract) => format!("the file is there and satisfies `{contract}`"),
            None => "the file is there and not empty".to_owned(),
        },
        ClaimKind::Commit => match &claim.files {
            Some(files) => {
                format!(
                    "the commit is there, with the files of `{}`",
                    files.trim_start_matches('/')
                )
            }
            None => "the commit is there".to_owned(),
        },
        ClaimKind::Location => "the file and the line are there".to_owned(),
        ClaimKind::Fixed => "the file of each fixed finding changed".to_owned(),
        ClaimKind::Protected => "nothing was written that may not be".to_owned(),
        ClaimKind::TestsKept => "no test was removed, skipped or emptied".to_owned(),
    }
}

fn count(claim: &Claim, run: &str) -> String {
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

/// What follows from a refuted claim, in words.
pub(super) fn follows(claim: &Claim) -> &'static str {
    match claim.policy {
        ClaimPolicy::Record => "it is recorded",
        ClaimPolicy::Require => "it is sent back",
        ClaimPolicy::Ignore => "nothing",
    }
}
