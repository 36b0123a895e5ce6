//! The table `retry` of an agent: how often and how long a step waits for its service.

use counterfoil_flow::{FailureKind, RetryRule};
use counterfoil_process::parse_timeout;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// The most retries.
const MAX_TIMES: u32 = 100;

/// The table as it is written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Written {
    transport: Option<WrittenRule>,
    limit: Option<WrittenRule>,
    timeout: Option<WrittenRule>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenRule {
    times: Option<Spanned<u32>>,
    first: Option<Spanned<String>>,
    most: Option<Spanned<String>>,
}

impl Written {
    /// Validates the table. An error has the byte offset and a message.
    pub(super) fn validate(self) -> Result<BTreeMap<FailureKind, RetryRule>, (usize, String)> {
        let rules = [
            (FailureKind::Transport, self.transport),
            (FailureKind::Limit, self.limit),
            (FailureKind::Timeout, self.timeout),
        ];
        let written = rules.into_iter().filter_map(|(kind, rule)| Some((kind, rule?)));
        written.map(|(kind, rule)| Ok((kind, rule.validate(kind.name())?))).collect()
    }
}

impl WrittenRule {
    fn validate(self, kind: &str) -> Result<RetryRule, (usize, String)> {
        if let Some(times) = self.times.as_ref().filter(|times| *times.get_ref() > MAX_TIMES) {
            let why = format!("has more than {MAX_TIMES} retries for {kind}; lower `times`");
            return Err((times.span().start, why));
        }
        let delay = |name: &str, written: Option<Spanned<String>>| {
            let Some(written) = written else { return Ok(None) };
            let at = written.span().start;
            let delay = parse_timeout(written.get_ref())
                .map_err(|error| (at, format!("has for {kind} the delay `{name}` {error}")))?;
            Ok(Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)))
        };
        Ok(RetryRule {
            times: self.times.map(Spanned::into_inner),
            first_ms: delay("first", self.first)?,
            most_ms: delay("most", self.most)?,
        })
    }
}

/// Rules, completed with others.
pub(super) fn merged(
    mut own: BTreeMap<FailureKind, RetryRule>,
    base: BTreeMap<FailureKind, RetryRule>,
) -> BTreeMap<FailureKind, RetryRule> {
    for (kind, base) in base {
        let rule = own.entry(kind).or_default();
        *rule = RetryRule {
            times: rule.times.or(base.times),
            first_ms: rule.first_ms.or(base.first_ms),
            most_ms: rule.most_ms.or(base.most_ms),
        };
    }
    own
}
