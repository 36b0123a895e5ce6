//! What an agent is told of the claims that were refuted before it starts.
//!
//! Prompts quote what earlier agents said. Where that does not agree with what was observed, the
//! engine says so itself, whatever the prompt of the workflow quotes.

use crate::run_state::{Frame, RunState};
use counterfoil_contract::claim::Verdict;
use std::fmt::Write;

/// Further claims are counted, not named.
const MAX_NAMED: usize = 20;

/// The section of a prompt with the claims that were refuted: those of the last result of the same
/// step, and those of earlier steps that were not done again since. Empty if there are none.
pub(super) fn section(run: &RunState, frame: &Frame) -> String {
    let verdicts = frame.verdicts().into_iter();
    let refuted = verdicts.filter(|(_, one)| one.verdict == Verdict::Refuted);
    let mut lines: Vec<String> = refuted
        .map(|(claim, one)| line("an earlier attempt at this step", claim, &one.reason))
        .collect();
    let mut next = Some(frame);
    while let Some(at) = next {
        for (step, claims) in &at.observed {
            let said = claims.iter().map(|(claim, why)| line(&format!("'{step}'"), claim, why));
            lines.extend(said);
        }
        next = at.parent.as_ref().and_then(|parent| run.frames.get(parent));
    }
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(MAX_NAMED);
    lines.truncate(MAX_NAMED);
    let mut text = "\n\n## What was observed\n\n\
        These statements of earlier results were checked and do not agree with what was observed. \
        Go by what was observed, not by what was said:\n"
        .to_owned();
    for line in lines {
        let _ = write!(text, "\n- {line}");
    }
    if more > 0 {
        let _ = write!(text, "\n- and {more} more");
    }
    text
}

fn line(step: &str, claim: &str, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("{step}, `{claim}`: {}", why.join(" "))
}
