//! Checks budgets, timeouts, repairs and retries.

use super::Checker;
use crate::ast::Settings;
use crate::finding::Code;
use crate::workflow::{Bounds, Budget, FailureKind};
use crate::yaml_tree::{Kind, Node};
use counterfoil_contract::suggest::did_you_mean;

impl<'n> Checker<'n> {
    pub(super) fn budget(&mut self, node: &'n Node) -> Budget {
        const KEYS: [&str; 5] = ["tokens", "cost_usd", "time", "iterations", "attempts"];
        let mut budget = Budget::default();
        if !matches!(node.kind, Kind::Map(_) | Kind::Null) {
            let message = format!("the budget is {}, not a mapping", node.describe());
            self.report(
                Code::WrongForm,
                node,
                message,
                "write { tokens: 100000, cost_usd: 2.5, time: 20m }",
            );
        }
        for (key, value) in node.entries().unwrap_or_default() {
            match key.text() {
                Some("tokens") => budget.tokens = self.reader.unsigned(value, "`tokens`"),
                Some("iterations") => {
                    budget.iterations = self.reader.unsigned(value, "`iterations`");
                }
                Some("attempts") => budget.attempts = self.reader.unsigned(value, "`attempts`"),
                Some("time") => budget.time_ms = self.duration(value, "`time`"),
                Some("cost_usd") => match &value.kind {
                    Kind::Number(number) if number.as_f64().is_some_and(|cost| cost >= 0.0) => {
                        budget.cost_usd = number.as_f64();
                    }
                    _ => self.report(
                        Code::WrongForm,
                        value,
                        "`cost_usd` is not an amount of money",
                        "write a number such as 2.5",
                    ),
                },
                other => {
                    let other = other.unwrap_or_default();
                    let hint = did_you_mean(other, KEYS)
                        .unwrap_or_else(|| format!("known keys: {}", KEYS.join(", ")));
                    self.report(
                        Code::UnknownKey,
                        key,
                        format!("a budget has no key '{other}'"),
                        hint,
                    );
                }
            }
        }
        budget
    }

    /// A duration such as `30s`, `5m` or `1h 30m`, in milliseconds.
    pub(super) fn duration(&mut self, node: &Node, what: &str) -> Option<u64> {
        let text = node.text();
        let parsed = text.and_then(|text| text.parse::<jiff::SignedDuration>().ok());
        match parsed
            .and_then(|duration| u64::try_from(duration.as_millis()).ok())
            .filter(|ms| *ms > 0)
        {
            Some(ms) => Some(ms),
            None => {
                self.report(
                    Code::WrongForm,
                    node,
                    format!("{what} is not a duration"),
                    "write a duration such as 30s, 5m or 1h 30m",
                );
                None
            }
        }
    }

    pub(super) fn bounds(&mut self, settings: &Settings<'n>, mut bounds: Bounds) -> Bounds {
        if let Some(ms) = settings.timeout.and_then(|node| self.duration(node, "`timeout`")) {
            bounds.timeout_ms = ms;
        }
        if let Some(node) = settings.startup {
            bounds.startup_ms = self.duration(node, "`startup`");
        }
        if let Some(node) = settings.idle {
            bounds.idle_ms = self.duration(node, "`idle`");
        }
        if let Some(repairs) =
            settings.repairs.and_then(|node| self.reader.unsigned(node, "`repairs`"))
        {
            bounds.repairs = u32::try_from(repairs).unwrap_or(u32::MAX).min(10);
        }
        for (key, value) in settings.retries.and_then(Node::entries).unwrap_or_default() {
            let name = key.text().unwrap_or_default();
            let retryable = [
                FailureKind::Transport,
                FailureKind::Timeout,
                FailureKind::Limit,
                FailureKind::Agent,
                FailureKind::Permission,
                FailureKind::Contract,
                FailureKind::Claim,
            ];
            match retryable.iter().find(|kind| kind.name() == name) {
                Some(kind) => {
                    if let Some(times) = self.reader.unsigned(value, "the number of retries") {
                        bounds
                            .retries
                            .insert(*kind, u32::try_from(times).unwrap_or(u32::MAX).min(100));
                    }
                }
                None => {
                    let names = retryable.iter().map(|kind| kind.name());
                    let hint = did_you_mean(name, names.clone()).unwrap_or_else(|| {
                        format!("known failures: {}", names.collect::<Vec<_>>().join(", "))
                    });
                    self.report(
                        Code::UnknownKey,
                        key,
                        format!("'{name}' is not a failure that can be retried"),
                        hint,
                    );
                }
            }
        }
        if let Some(node) = settings.budget {
            bounds.budget = self.budget(node);
        }
        bounds
    }
}
