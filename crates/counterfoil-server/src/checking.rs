//! Checks texts against contracts for people who try them out. What a request may cost is bounded:
//! the size of the text and of the contract, the time, and the number of checks at the same time.

use crate::contracts::KnownContracts;
use crate::folders::Folders;
use crate::problem::Problem;
use axum::http::StatusCode;
use counterfoil_contract::{Contract, LoadError, Report, Span, Status, Violation, work};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest text, in bytes.
pub(crate) const MAX_TEXT: usize = 1 << 20;
/// The longest definition of a contract, in bytes.
pub(crate) const MAX_CONTRACT: usize = 256 << 10;
/// The longest request. In JSON, a byte of a text takes up to six.
pub(crate) const MAX_BODY: usize = 6 * (MAX_TEXT + MAX_CONTRACT) + 4096;
/// How long one check may take, with compiling the contract.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(10);
/// The number of checks at the same time.
const MAX_CHECKS: usize = 2;

/// A text to check against a contract: a known one or one that is given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckRequest {
    /// A known contract, as `ID` or `ID@VERSION`.
    #[serde(default)]
    pub(crate) contract: Option<String>,
    /// The definition of a contract as YAML or JSON, at most 256 KiB, instead of a known one.
    #[serde(default)]
    pub(crate) definition: Option<String>,
    /// The text, at most 1 MiB.
    pub(crate) text: String,
}

/// A candidate that was passed over, and what the contract says of it by itself.
pub(crate) struct Alone {
    pub(crate) span: Span,
    pub(crate) status: Status,
    /// The first violation, if there is one.
    pub(crate) violation: Option<Violation>,
}

/// What came of a check.
pub(crate) enum Checked {
    /// The text was checked.
    Report(Box<Report>, Vec<Alone>),
    /// The contract does not load.
    NoContract(LoadError),
}

/// The checks that are running.
#[derive(Debug)]
pub(crate) struct Checks(Arc<Semaphore>);

impl Default for Checks {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CHECKS)))
    }
}

impl Checks {
    /// Admits a request that is not too large, if not too many others are at work.
    pub(crate) fn admit(&self, request: &CheckRequest) -> Result<OwnedSemaphorePermit, Problem> {
        let CheckRequest { contract, definition, text } = request;
        let too_large = |what: &str, limit: usize| {
            let detail = format!("{what} has more than {} KiB", limit >> 10);
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "size", detail)
        };
        if text.len() > MAX_TEXT {
            return Err(too_large("the text", MAX_TEXT));
        }
        if definition.as_ref().is_some_and(|definition| definition.len() > MAX_CONTRACT) {
            return Err(too_large("the contract", MAX_CONTRACT));
        }
        if definition.is_some() == contract.is_some() {
            let detail = "the request has either a `contract` or a `definition`";
            return Err(Problem::bad_request(detail));
        }
        self.try_permit().ok_or_else(|| {
            let detail = "the server checks other texts at the moment";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", detail)
                .with_hint("try again in a second")
        })
    }

    /// The right to check a text now, if not too many others are checked.
    pub(crate) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}

/// The client of a check. When it is dropped, the client has gone.
#[derive(Default)]
pub(crate) struct Client(Arc<AtomicBool>);

impl Client {
    /// Tells whether the client has gone.
    pub(crate) fn watch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a contract says of a candidate by itself.
fn alone(contract: &Contract, text: &str, span: Span) -> Option<Alone> {
    let report = contract.check(text.get(span.start..span.end)?);
    Some(Alone { span, status: report.status, violation: report.violations.into_iter().next() })
}

/// Checks a text. Returns the text, too, to show places in it.
pub(crate) fn perform(
    contracts: &KnownContracts,
    folders: &Folders,
    request: CheckRequest,
    is_gone: Arc<AtomicBool>,
) -> Result<(Checked, String), Problem> {
    let CheckRequest { contract, definition, text } = request;
    // A known contract stays compiled, so that is not interrupted. It has a limit of its own.
    let known = match (&definition, &contract) {
        (None, Some(name)) => Some(contracts.find(folders, name)?.contract()),
        _ => None,
    };
    let until = Instant::now() + MAX_TIME;
    let is_stopped = move || is_gone.load(Ordering::Relaxed);
    let checked = work::interruptible(until, is_stopped, || {
        let given = || Contract::from_yaml(definition.as_deref().unwrap_or_default()).map(Arc::new);
        match known.unwrap_or_else(given) {
            Ok(contract) => {
                let report = contract.check(&text);
                let others = report.provenance.passed_over.iter();
                let alone = others.filter_map(|span| alone(&contract, &text, *span)).collect();
                Checked::Report(Box::new(report), alone)
            }
            Err(error) => Checked::NoContract(error),
        }
    });
    Ok((checked, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: usize, definition: Option<usize>, contract: Option<&str>) -> CheckRequest {
        CheckRequest {
            contract: contract.map(str::to_owned),
            definition: definition.map(|length| "x".repeat(length)),
            text: "x".repeat(text),
        }
    }

    #[test]
    fn only_two_checks_of_bounded_size_run_at_once() {
        let checks = Checks::default();
        let status = |request: &CheckRequest| checks.admit(request).unwrap_err().status();
        let most = request(MAX_TEXT, Some(MAX_CONTRACT), None);
        let permits = [checks.admit(&most).unwrap(), checks.admit(&most).unwrap()];
        assert_eq!(status(&most), StatusCode::TOO_MANY_REQUESTS);
        drop(permits);
        assert!(checks.admit(&most).is_ok());
        let too_large = StatusCode::PAYLOAD_TOO_LARGE;
        assert_eq!(status(&request(MAX_TEXT + 1, Some(1), None)), too_large);
        assert_eq!(status(&request(1, Some(MAX_CONTRACT + 1), None)), too_large);
        for (definition, contract) in [(None, None), (Some(1), Some("a/b"))] {
            assert_eq!(status(&request(1, definition, contract)), StatusCode::BAD_REQUEST);
        }
    }

    #[test]
    fn a_check_ends_when_its_client_has_gone() {
        let client = Client::default();
        let watch = client.watch();
        assert!(!watch.load(Ordering::Relaxed));
        drop(client);
        let definition = "contract: a/b\nversion: 1\nfields: { ok: boolean }\n";
        let given = CheckRequest {
            contract: None,
            definition: Some(definition.to_owned()),
            text: "{\"ok\": true}".repeat(50_000),
        };
        let (contracts, folders) = (KnownContracts::default(), Folders::new(Vec::new()));
        let (checked, _) = perform(&contracts, &folders, given, watch).unwrap();
        assert!(match checked {
            Checked::Report(report, _) => !report.is_accepted(),
            Checked::NoContract(_) => true,
        });
    }

    #[test]
    fn a_text_is_checked_against_the_contract_of_the_program() {
        let definition = "contract: a/b\nversion: 1\nfields: { ok: boolean }\n";
        let definition = counterfoil_contract::Definition::from_yaml(definition, "a/b").unwrap();
        let contracts = KnownContracts::new(Some(Arc::new(move || vec![definition.clone()])));
        let folders = Folders::new(Vec::new());
        for (name, is_known) in [("a/b", true), ("a/b@1", true), ("a/b@2", false), ("a", false)] {
            let named = CheckRequest {
                contract: Some(name.to_owned()),
                definition: None,
                text: "{\"ok\": true}".to_owned(),
            };
            let checked = perform(&contracts, &folders, named, Arc::default());
            assert_eq!(checked.is_ok(), is_known, "{name}");
            if let Ok((Checked::Report(report, _), _)) = checked {
                assert!(report.is_accepted());
            }
        }
    }
}
