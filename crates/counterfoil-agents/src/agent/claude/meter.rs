//! What Claude Code says it used.

use super::events::{Last, Models};
use crate::agent::adapter::Meter;
use crate::agent::adapter::common::Field;

/// The last version that was seen to count each prompt alone; the next one that was tried counts
/// over the conversation.
const ALONE: [u32; 3] = [2, 1, 250];

/// What was used with one more end of a reply.
///
/// New versions say what was used since the end before, subagents and all. Those before them give
/// sums of the whole conversation, and the oldest of the prompt alone; `usage` leaves subagents out
/// in all of them.
pub(super) fn used(before: Meter, last: &Last, version: Option<&str>) -> Meter {
    if let Some(models) = last.model_usage_since_last_result.get() {
        let (input_tokens, output_tokens) = tokens_of(models);
        let cost = models.values().filter_map(|used| money(&used.cost_usd)).sum::<f64>();
        return Meter {
            input_tokens: before.input_tokens.saturating_add(input_tokens),
            output_tokens: before.output_tokens.saturating_add(output_tokens),
            cost_usd: before.cost_usd + cost,
            ..Meter::default()
        };
    }
    let adds_up = !version.is_some_and(counts_alone);
    let cost_usd = money(&last.total_cost_usd).unwrap_or(before.cost_usd);
    let meter = Meter { cost_usd, cost_adds_up: adds_up, ..before };
    if let Some(models) = last.model_usage.get().filter(|models| !models.is_empty()) {
        let (input_tokens, output_tokens) = tokens_of(models);
        return Meter { input_tokens, output_tokens, tokens_add_up: adds_up, ..meter };
    }
    let Some(used) = last.usage.get() else { return meter };
    let input =
        [&used.input_tokens, &used.cache_creation_input_tokens, &used.cache_read_input_tokens];
    Meter {
        input_tokens: before.input_tokens.saturating_add(sum(input)),
        output_tokens: before.output_tokens.saturating_add(tokens(&used.output_tokens)),
        ..meter
    }
}

fn counts_alone(version: &str) -> bool {
    let numbers: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
    <[u32; 3]>::try_from(numbers).is_ok_and(|version| version <= ALONE)
}

fn tokens_of(models: &Models) -> (u64, u64) {
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

fn money(field: &Field<f64>) -> Option<f64> {
    field.get().copied().filter(|money| money.is_finite() && *money >= 0.0)
}
