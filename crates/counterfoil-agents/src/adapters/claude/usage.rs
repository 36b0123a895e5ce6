//! The usage that Claude Code reports.

use super::events::{Models, ResultEvent, Usage};
use crate::adapters::UsageMeter;
use crate::adapters::common::Field;
use crate::adapters::record::RecordedTokens;

/// The last tested version that reports usage per prompt. Later versions report totals of the
/// conversation.
const LAST_PER_PROMPT: [u32; 3] = [2, 1, 250];

/// Adds the usage of one more final event.
///
/// New versions report the usage since the previous final event, including subagents. Older
/// versions report totals of the conversation, and the oldest the usage of the prompt. The field
/// `usage` never includes subagents.
pub(super) fn accumulate(
    before: UsageMeter,
    last: &ResultEvent,
    version: Option<&str>,
) -> UsageMeter {
    if let Some(models) = last.model_usage_since_last_result.get() {
        let (input_tokens, output_tokens) = sum_tokens(models);
        let cost = models.values().filter_map(|used| cost(&used.cost_usd)).sum::<f64>();
        return UsageMeter {
            input_tokens: before.input_tokens.saturating_add(input_tokens),
            output_tokens: before.output_tokens.saturating_add(output_tokens),
            cost_usd: before.cost_usd + cost,
            ..UsageMeter::default()
        };
    }
    let is_cumulative = !version.is_some_and(counts_per_prompt);
    let cost_usd = cost(&last.total_cost_usd).unwrap_or(before.cost_usd);
    let meter = UsageMeter { cost_usd, cost_is_cumulative: is_cumulative, ..before };
    if let Some(models) = last.model_usage.get().filter(|models| !models.is_empty()) {
        let (input_tokens, output_tokens) = sum_tokens(models);
        return UsageMeter {
            input_tokens,
            output_tokens,
            tokens_are_cumulative: is_cumulative,
            ..meter
        };
    }
    let Some(used) = last.usage.get() else { return meter };
    let (input, output) = used.tokens();
    UsageMeter {
        input_tokens: before.input_tokens.saturating_add(input),
        output_tokens: before.output_tokens.saturating_add(output),
        ..meter
    }
}

impl Usage {
    /// Input and output tokens.
    pub(super) fn tokens(&self) -> (u64, u64) {
        let input =
            [&self.input_tokens, &self.cache_creation_input_tokens, &self.cache_read_input_tokens];
        (sum(input), tokens(&self.output_tokens))
    }
}

impl Usage {
    /// The tokens as a record has them.
    pub(super) fn recorded(&self) -> RecordedTokens {
        let (input, output) = self.tokens();
        RecordedTokens {
            input,
            output,
            cached: tokens(&self.cache_read_input_tokens),
            written: tokens(&self.cache_creation_input_tokens),
        }
    }
}

fn counts_per_prompt(version: &str) -> bool {
    let numbers: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
    <[u32; 3]>::try_from(numbers).is_ok_and(|version| version <= LAST_PER_PROMPT)
}

fn sum_tokens(models: &Models) -> (u64, u64) {
    models.values().fold((0, 0), |(input, output), used| {
        let more =
            [&used.input_tokens, &used.cache_creation_input_tokens, &used.cache_read_input_tokens];
        (input.saturating_add(sum(more)), output.saturating_add(tokens(&used.output_tokens)))
    })
}

fn sum(fields: [&Field<u64>; 3]) -> u64 {
    fields.into_iter().map(tokens).fold(0, u64::saturating_add)
}

fn tokens(field: &Field<u64>) -> u64 {
    field.get().copied().unwrap_or(0)
}

fn cost(field: &Field<f64>) -> Option<f64> {
    field.get().copied().filter(|cost| cost.is_finite() && *cost >= 0.0)
}
