//! What tokens cost, for programs that report only tokens: the user's prices, and a dated table of
//! well-known models.

use crate::adapters::record::RecordedTokens;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The price of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that is in no cache.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input that is read from a cache; as other input, if it is not given.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Input that is written to a cache; as other input, if it is not given.
    #[serde(default)]
    pub written: Option<f64>,
}

impl Price {
    /// What tokens cost, in US dollars.
    pub fn of(&self, tokens: RecordedTokens) -> f64 {
        let plain = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.written);
        let parts = [
            (plain, self.input),
            (tokens.cached, self.cached.unwrap_or(self.input)),
            (tokens.written, self.written.unwrap_or(self.input)),
            (tokens.output, self.output),
        ];
        #[expect(clippy::cast_precision_loss, reason = "nobody pays for so many tokens")]
        let cost = |(tokens, price): (u64, f64)| tokens as f64 * price / 1e6;
        parts.into_iter().map(cost).sum()
    }

    /// Whether every part is an amount of money.
    pub(crate) fn is_valid(&self) -> bool {
        let parts = [Some(self.input), Some(self.output), self.cached, self.written];
        parts.into_iter().flatten().all(|part| part.is_finite() && part >= 0.0)
    }
}

#[derive(Deserialize)]
struct Table {
    date: String,
    models: BTreeMap<String, Price>,
}

/// The table of well-known models.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let parsed = toml::from_str(include_str!("prices/default.toml"));
    parsed.unwrap_or_else(|_| Table { date: String::new(), models: BTreeMap::new() })
});

/// The date of the table of well-known models.
pub fn date() -> &'static str {
    &TABLE.date
}

/// Prices by model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// The user's own, which come first.
    pub own: BTreeMap<String, Price>,
}

impl Prices {
    /// The price of a model. A date at the end of its name, the name of its provider before it, and
    /// `[1m]` for a long context make no difference.
    pub fn of(&self, model: &str) -> Option<Price> {
        let find = |name: &str| self.own.get(name).or_else(|| TABLE.models.get(name)).copied();
        let bare = model.rsplit('/').next().unwrap_or(model);
        let bare = bare.split('[').next().unwrap_or(bare);
        [model, bare, without_date(bare)].into_iter().find_map(find)
    }

    /// What a conversation cost, in US dollars, if the prices of all its models are known.
    pub fn cost<'m>(
        &self,
        used: impl IntoIterator<Item = (&'m String, &'m RecordedTokens)>,
    ) -> Option<f64> {
        let used = used.into_iter().filter(|(_, tokens)| tokens.all() > 0);
        used.map(|(model, tokens)| Some(self.of(model)?.of(*tokens))).sum()
    }
}

/// A name without `-20260423`, `-2026-04-23` or `-latest` at its end.
fn without_date(name: &str) -> &str {
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let is_date = |tail: &str| {
        tail.split('-').all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
            && tail.bytes().filter(u8::is_ascii_digit).count() == 8
    };
    let starts = name.match_indices('-').map(|(at, _)| at);
    let date = starts.rev().take(3).find(|at| is_date(&name[at + 1..]));
    date.map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, cached: u64, written: u64, output: u64) -> RecordedTokens {
        RecordedTokens { input, output, cached, written }
    }

    #[test]
    fn each_kind_of_tokens_has_its_price() {
        let price = Price { input: 5.0, output: 30.0, cached: Some(0.5), written: Some(6.25) };
        let cost = price.of(tokens(1_000_000, 400_000, 100_000, 10_000));
        assert!((cost - (2.5 + 0.2 + 0.625 + 0.3)).abs() < 1e-9, "{cost}");
        let plain = Price { cached: None, written: None, ..price };
        assert!((plain.of(tokens(1_000_000, 400_000, 0, 0)) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_model_is_found_under_its_names_and_no_other_is() {
        let prices = Prices::default();
        let known = prices.of("gpt-5.5").unwrap();
        for name in ["gpt-5.5-2026-04-23", "openai/gpt-5.5", "gpt-5.5-20260423", "gpt-5.5-latest"] {
            assert_eq!(prices.of(name), Some(known), "{name}");
        }
        assert_ne!(prices.of("gpt-5.5-pro"), Some(known));
        for name in ["gpt-5.5-super", "gpt-5.51", "gpt-5.5-2026", "", "-", "claude"] {
            assert_eq!(prices.of(name), None, "{name}");
        }
        assert!(prices.of("claude-sonnet-4-5-20250929").is_some());
        assert!(prices.of("claude-opus-4-8[1m]").is_some());
    }

    #[test]
    fn own_prices_come_first_and_an_unknown_model_has_no_cost() {
        let own = Price { input: 1.0, output: 1.0, cached: None, written: None };
        let prices = Prices { own: BTreeMap::from([("gpt-5.5".to_owned(), own)]) };
        assert_eq!(prices.of("gpt-5.5"), Some(own));
        let used = |model: &str| BTreeMap::from([(model.to_owned(), tokens(1_000_000, 0, 0, 0))]);
        assert_eq!(prices.cost(&used("gpt-5.5")), Some(1.0));
        assert_eq!(prices.cost(&used("acme-1")), None);
    }

    #[test]
    fn the_table_is_read_and_dated() {
        assert!(TABLE.models.len() > 30);
        assert!(TABLE.models.values().all(Price::is_valid));
        assert!(date().parse::<jiff::civil::Date>().is_ok(), "{}", date());
    }
}
