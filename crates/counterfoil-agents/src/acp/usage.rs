//! What a prompt used, in the forms in which programs tell it. Pure.

use super::incoming::{Cost, Prompted, TokenCount};

/// The input and output tokens of a prompt; none if the program told nothing.
///
/// The protocol has no rule yet whether tokens of a cache are part of the input. The total tells.
pub(super) fn tokens(answer: &Prompted) -> Option<(u64, u64)> {
    let quota = answer.meta.as_ref().and_then(|meta| meta.quota.as_ref()?.token_count);
    [answer.usage, quota].into_iter().flatten().map(sum).find(|tokens| *tokens != (0, 0))
}

fn sum(count: TokenCount) -> (u64, u64) {
    let (input, output) = (count.input_tokens.unwrap_or(0), count.output_tokens.unwrap_or(0));
    let cached = count.cached_read_tokens.unwrap_or(0);
    let cached = cached.saturating_add(count.cached_write_tokens.unwrap_or(0));
    let told = input.saturating_add(output);
    match count.total_tokens {
        Some(total) if total >= told => {
            // What is neither read nor from a cache was thought: it counts as written.
            let cached = cached.min(total - told);
            (input + cached, total - input - cached)
        }
        _ => (input.saturating_add(cached), output),
    }
}

/// An amount in US dollars; none if it is one of another currency, or no amount.
pub(super) fn dollars(cost: &Cost) -> Option<f64> {
    let is_dollars = cost.currency.as_deref().is_none_or(|name| name.eq_ignore_ascii_case("USD"));
    cost.amount.filter(|amount| is_dollars && amount.is_finite() && *amount >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(u64, u64)> {
        tokens(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn tokens_are_counted_once() {
        for (text, expected) in [
            (r#"{"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}"#, Some((10, 5))),
            // With what is in a cache beside the input, and as a part of it.
            (
                r#"{"usage":{"inputTokens":10,"outputTokens":5,"cachedReadTokens":80,
                "cachedWriteTokens":5,"totalTokens":100}}"#,
                Some((95, 5)),
            ),
            (
                r#"{"usage":{"inputTokens":95,"outputTokens":5,"cachedReadTokens":80,
                "totalTokens":100}}"#,
                Some((95, 5)),
            ),
            (
                r#"{"usage":{"inputTokens":10,"outputTokens":5,"thoughtTokens":7,"totalTokens":22}}"#,
                Some((10, 12)),
            ),
            (
                r#"{"usage":{"inputTokens":10,"outputTokens":5,"cachedReadTokens":1}}"#,
                Some((11, 5)),
            ),
            (
                r#"{"usage":null,"_meta":{"quota":{"token_count":{"input_tokens":10,"output_tokens":5}}}}"#,
                Some((10, 5)),
            ),
            (r#"{"usage":null,"_meta":{"quota":{"token_count":null}}}"#, None),
            (r#"{"_meta":7}"#, None),
            (
                r#"{"usage":{"inputTokens":18446744073709551615,"outputTokens":18446744073709551615,
                "cachedReadTokens":9,"totalTokens":1}}"#,
                Some((u64::MAX, u64::MAX)),
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn only_dollars_count() {
        let read = |amount, currency: Option<&str>| {
            dollars(&Cost { amount, currency: currency.map(str::to_owned) })
        };
        assert_eq!(read(Some(0.5), Some("USD")), Some(0.5));
        assert_eq!(read(Some(0.5), None), Some(0.5));
        assert_eq!(read(Some(0.5), Some("EUR")), None);
        assert_eq!(read(Some(-1.0), Some("USD")), None);
        assert_eq!(read(None, None), None);
    }
}
