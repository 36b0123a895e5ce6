//! What an attempt may still use.

use counterfoil_flow::amount::{dollars, duration};
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

/// Whose budget it is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Owner {
    /// The step's own.
    Step,
    /// What was left of the run's when the step began.
    Run,
}

/// Describes the part of a budget that is used up, if one is.
pub(super) fn exceeded_budget(
    budget: &Budget,
    spent: &Usage,
    owner: Owner,
    limit: Limit,
) -> Option<String> {
    let is_over = |more: bool, equal: bool| more || (equal && limit == Limit::Reached);
    let message = |used: String, most: String| match owner {
        Owner::Step => format!("this step used {used}, and its limit is {most}"),
        Owner::Run => format!("this step used {used}, and the run had {most} left"),
    };
    let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
    if let Some(most) = budget.tokens.filter(|most| is_over(tokens > *most, tokens == *most)) {
        return Some(message(format!("{tokens} tokens"), format!("{most}")));
    }
    let cost = spent.cost_usd;
    if let Some(most) = budget.cost_usd.filter(|most| is_over(cost > *most, cost >= *most)) {
        return Some(message(dollars(cost), dollars(most)));
    }
    let most = budget.time_ms.filter(|most| spent.wall_ms > *most)?;
    Some(message(duration(spent.wall_ms), duration(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_was_used_and_what_there_was() {
        let spent = Usage { input_tokens: 10, output_tokens: 5, cost_usd: 3.5, wall_ms: 1500 };
        for (budget, owner, message) in [
            (
                Budget { tokens: Some(5), ..Budget::default() },
                Owner::Run,
                "this step used 15 tokens, and the run had 5 left",
            ),
            (
                Budget { cost_usd: Some(3.0), ..Budget::default() },
                Owner::Step,
                "this step used $3.50, and its limit is $3.00",
            ),
            (
                Budget { time_ms: Some(1000), ..Budget::default() },
                Owner::Run,
                "this step used 1.5 s, and the run had 1 s left",
            ),
        ] {
            let found = exceeded_budget(&budget, &spent, owner, Limit::Exceeded);
            assert_eq!(found.as_deref(), Some(message));
        }
    }
}
