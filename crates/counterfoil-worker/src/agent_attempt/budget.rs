//! What an attempt may still use.

use counterfoil_flow::{Budget, Usage};

/// What a prompt may use: what is left of the budgets of the step and of the run.
pub(super) fn left_of(step: &Budget, run: &Budget, spent: &Usage) -> Budget {
    let used = spent.input_tokens.saturating_add(spent.output_tokens);
    let tokens = step.tokens.into_iter().chain(run.tokens).min();
    let cost = step.cost_usd.into_iter().chain(run.cost_usd).reduce(f64::min);
    Budget {
        tokens: tokens.map(|most| most.saturating_sub(used)),
        cost_usd: cost.map(|most| (most - spent.cost_usd).max(0.0)),
        ..Budget::default()
    }
}

/// When a budget counts as used up.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// All of it was used.
    Reached,
    /// More than that was used.
    Exceeded,
}

/// Describes the part of a budget that is used up, if one is.
pub(super) fn exceeded_budget(
    budget: &Budget,
    spent: &Usage,
    whose: &str,
    limit: Limit,
) -> Option<String> {
    let is_over = |more: bool, equal: bool| more || (equal && limit == Limit::Reached);
    let does = if limit == Limit::Reached { "reach" } else { "exceed" };
    let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
    if let Some(most) = budget.tokens.filter(|most| is_over(tokens > *most, tokens == *most)) {
        return Some(format!("{tokens} tokens {does} the limit of {whose}, {most}"));
    }
    let cost = spent.cost_usd;
    if let Some(most) = budget.cost_usd.filter(|most| is_over(cost > *most, cost >= *most)) {
        return Some(format!("{cost:.4} USD {does} the limit of {whose}, {most:.4}"));
    }
    let most = budget.time_ms.filter(|most| spent.wall_ms > *most)?;
    Some(format!("{} ms exceed the limit of {whose}, {most}", spent.wall_ms))
}
