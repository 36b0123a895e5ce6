//! Hints for errors of the libraries: which command or flag helps. The libraries know neither.

use counterfoil_engine::{AssignmentError, Error, InputError, TranscriptError, journal};
use counterfoil_flow::{BudgetPart, ReopenError, SameEnd};

/// What to type, for an error that a library reported.
pub(crate) fn for_error(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let assignment = cause.downcast_ref().and_then(for_assignment);
        let input = || cause.downcast_ref().and_then(for_input);
        let journal = || cause.downcast_ref().and_then(for_journal);
        assignment
            .or_else(input)
            .or_else(journal)
            .or_else(|| cause.downcast_ref().and_then(for_engine))
            .or_else(|| cause.downcast_ref().and_then(for_transcript))
    })
}

/// What may have removed a transcript.
pub(crate) fn for_transcript(error: &TranscriptError) -> Option<String> {
    let is_missing = matches!(error, TranscriptError::Missing { .. });
    is_missing.then(|| "`counterfoil clean` removes what old runs left".to_owned())
}

fn for_engine(error: &Error) -> Option<String> {
    match error {
        Error::Assignment(error) => for_assignment(error),
        Error::Input(error) => for_input(error),
        Error::Journal(error) => for_journal(error),
        Error::Reopen { why, .. } => for_reopening(why),
        Error::Interrupted { run } | Error::NoRepository { run, .. } => {
            Some(format!("continue it with `counterfoil resume {run}`"))
        }
        _ => None,
    }
}

/// What to change so that a run does not end again at once.
fn for_reopening(error: &ReopenError) -> Option<String> {
    let ReopenError::SameEnd { needs, .. } = error else { return None };
    Some(match needs {
        SameEnd::Budget(part) => {
            format!("give the whole run more with `{}`", budget_flag(*part))
        }
        SameEnd::Limit(limit) => {
            format!("raise the limit with `--limit {limit}=N`, or the input that it depends on")
        }
        SameEnd::Values => "change an input with `--input NAME=VALUE`".to_owned(),
    })
}

/// The option that gives a run more of a part of its budget.
pub(crate) fn budget_flag(part: BudgetPart) -> &'static str {
    match part {
        BudgetPart::Tokens => "--max-tokens N",
        BudgetPart::Cost => "--max-cost USD",
        BudgetPart::Time => "--max-time DUR",
        BudgetPart::Iterations => "--max-iterations N",
        BudgetPart::Attempts => "--max-attempts N",
    }
}

fn for_assignment(error: &AssignmentError) -> Option<String> {
    let AssignmentError::Unassigned { .. } = error else { return None };
    Some(
        "assign one with `--agent SPEC` (all agents) or `--agent NAME=SPEC`, or in \
         counterfoil.toml: agent = \"SPEC\""
            .to_owned(),
    )
}

fn for_input(error: &InputError) -> Option<String> {
    let (InputError::Missing { name } | InputError::Empty { name }) = error else { return None };
    Some(match name.as_str() {
        "task" => "give it with --task TEXT".to_owned(),
        name => format!("give it with --input {name}=VALUE"),
    })
}

fn for_journal(error: &journal::Error) -> Option<String> {
    match error {
        journal::Error::NoRun { .. } => Some("`counterfoil runs` lists them".to_owned()),
        journal::Error::Folder { .. } => Some("name another one with --state DIR".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_found_below_the_context_of_an_error() {
        let missing = || Error::Input(InputError::Missing { name: "task".into() });
        let error = anyhow::Error::new(missing()).context("cannot start");
        assert_eq!(for_error(&error).as_deref(), Some("give it with --task TEXT"));
        let error = anyhow::anyhow!("something else");
        assert_eq!(for_error(&error), None);
    }
}
