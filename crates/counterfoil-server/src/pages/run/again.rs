//! What a person fills in to try a run again that has ended.

use crate::commands;
use crate::folders::RunPlace;
use counterfoil_flow::{BudgetPart, Workflow};

/// The most limits of a workflow that the page names.
const MAX_LIMITS: usize = 8;

/// The parts of a budget, in the order of their fields.
const PARTS: [BudgetPart; 5] = [
    BudgetPart::Cost,
    BudgetPart::Time,
    BudgetPart::Attempts,
    BudgetPart::Tokens,
    BudgetPart::Iterations,
];

/// A field for a new limit of the whole run.
pub(super) struct LimitField {
    /// The name, as the API has it.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// What a phone shows to type it.
    pub(super) keyboard: &'static str,
    /// Whether the run would end again at once without it.
    pub(super) is_required: bool,
}

/// The fields for a run that used up a part of its budget, or none.
pub(super) fn limit_fields(used_up: Option<BudgetPart>) -> Vec<LimitField> {
    let field = |part: BudgetPart| {
        let (name, label, keyboard) = match part {
            BudgetPart::Cost => ("max_cost", "Cost at most, in US dollars", "decimal"),
            BudgetPart::Time => ("max_time", "Time at most, such as 2h", "text"),
            BudgetPart::Attempts => ("max_attempts", "Attempts at most", "numeric"),
            BudgetPart::Tokens => ("max_tokens", "Tokens at most", "numeric"),
            BudgetPart::Iterations => ("max_iterations", "Iterations at most", "numeric"),
        };
        LimitField { name, label, keyboard, is_required: used_up == Some(part) }
    };
    PARTS.map(field).into()
}

/// A part of the budget, as options name it; empty for none.
pub(super) fn part_name(part: Option<BudgetPart>) -> &'static str {
    match part {
        Some(BudgetPart::Cost) => "cost",
        Some(BudgetPart::Time) => "time",
        Some(BudgetPart::Tokens) => "tokens",
        Some(BudgetPart::Iterations) => "iterations",
        Some(BudgetPart::Attempts) => "attempts",
        None => "",
    }
}

/// How a limit of the workflow itself is raised.
#[derive(Default)]
pub(super) struct WorkflowLimits {
    /// The names of its limits; those of a sub-workflow with its name.
    pub(super) names: Vec<String>,
    /// What to type; empty if it has none.
    pub(super) command: String,
}

/// The limits of a workflow. They are raised in a terminal.
pub(super) fn workflow_limits(place: &RunPlace, workflow: Option<&Workflow>) -> WorkflowLimits {
    let Some(workflow) = workflow else { return WorkflowLimits::default() };
    let main = workflow.main.limits.keys().cloned();
    let inner = workflow.machines.values().flat_map(|machine| {
        machine.limits.keys().map(move |limit| format!("{}.{limit}", machine.name))
    });
    let names: Vec<String> = main.chain(inner).take(MAX_LIMITS).collect();
    let one = if let [one] = names.as_slice() { one.as_str() } else { "NAME" };
    let command =
        if names.is_empty() { String::new() } else { commands::reopen_with_limit(place, one) };
    WorkflowLimits { names, command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_budget_has_a_field_and_only_the_one_that_is_needed_is_required() {
        for part in PARTS {
            let fields = limit_fields(Some(part));
            assert_eq!(fields.len(), PARTS.len());
            let required: Vec<_> =
                fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
            assert_eq!(required, [format!("max_{}", part_name(Some(part)))]);
        }
        assert!(limit_fields(None).iter().all(|field| !field.is_required));
    }
}
