//! Applies a contract: to a text, to bytes, to a value, to a text that arrives in pieces.

use crate::code::Code;
use crate::contract::Contract;
use crate::extractor::{self, ContractRef, Extractor};
use crate::own_words::carries_own_words;
use crate::policy::Policy;
use crate::render::prompt::{self, Delivery};
use crate::report::{RefusedResult, Report, SalvagedItems, Stage, Status};
use crate::reporting;
use crate::shown::Shown;
use crate::stream::Stream;
use crate::validate::{bare_violation, excerpt, innermost, select_values};
use crate::work::{self, MAX_CHECK_TIME};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// A text that is not accepted, with the report that says why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", summarize(report))]
pub struct Rejection {
    /// The text that was checked.
    pub text: String,
    /// The report about it.
    pub report: Box<Report>,
}

fn summarize(report: &Report) -> String {
    let status = match report.status {
        Status::Accepted => "accepted",
        Status::Rejected => "rejected",
        Status::Absent => "absent",
    };
    let mut lines = vec![format!("{} is {status}", report.contract)];
    for violation in &report.violations {
        let place = violation
            .span
            .map(|span| format!(" at {}:{}", span.line, span.column))
            .unwrap_or_default();
        lines.push(format!("{}{place}: {}", violation.code, violation.message));
    }
    lines.join("; ")
}

impl Contract {
    /// Extracts the result from a text and validates it. The report says whether the result is
    /// accepted, rejected or absent.
    pub fn check(&self, text: &str) -> Report {
        self.check_with(text, self.policy())
    }

    /// Like [`check`](Self::check), with another policy.
    pub fn check_with(&self, text: &str, policy: &Policy) -> Report {
        let report = Extractor::new(ContractRef::Borrowed(self), policy).check_whole(text);
        reporting::log_rejection(self, &report);
        report
    }

    /// Like [`check`](Self::check), and returns how many bytes the scanners read. The number grows
    /// linearly with the length of the text.
    pub fn check_measured(&self, text: &str) -> (Report, u64) {
        let mut extractor = Extractor::new(ContractRef::Borrowed(self), self.policy());
        let report = extractor.check_whole(text);
        reporting::log_rejection(self, &report);
        (report, extractor.examined())
    }

    /// Like [`check`](Self::check), and returns how many steps it took: bytes that scanners read,
    /// values that were visited, names that were compared. The number grows linearly with the length
    /// of the text. The steps of the JSON Schema validator and of rules are not among them.
    pub fn check_counted(&self, text: &str) -> (Report, u64) {
        let ((report, examined), steps) = work::counted(|| self.check_measured(text));
        (report, examined + steps)
    }

    /// Like [`check`](Self::check), but with the strict policy: no defaults, repairs, coercions or
    /// duplicate keys.
    pub fn check_strictly(&self, text: &str) -> Report {
        self.check_with(text, &self.policy().strictly())
    }

    /// Like [`check`](Self::check), for bytes that may not be UTF-8.
    pub fn check_bytes(&self, bytes: &[u8]) -> Report {
        self.check_bytes_with(bytes, self.policy())
    }

    /// Like [`check_bytes`](Self::check_bytes), with another policy.
    pub fn check_bytes_with(&self, bytes: &[u8], policy: &Policy) -> Report {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.check_with(text, policy),
            Err(error) => {
                let report = extractor::not_utf8(self, bytes, error.valid_up_to());
                reporting::log_rejection(self, &report);
                report
            }
        }
    }

    /// Like [`check_bytes_with`](Self::check_bytes_with), but a part of the text that repeats what
    /// the agent was shown does not count as a result.
    pub fn check_bytes_shown(&self, bytes: &[u8], policy: &Policy, shown: &Shown) -> Report {
        let report = self.check_bytes_shown_quietly(bytes, policy, shown);
        self.log_rejection(&report);
        report
    }

    /// Like [`check_bytes_shown`](Self::check_bytes_shown), without the event of a rejection: for
    /// one of several candidates. The caller decides, and calls
    /// [`log_rejection`](Self::log_rejection) for the result.
    pub fn check_bytes_shown_quietly(
        &self,
        bytes: &[u8],
        policy: &Policy,
        shown: &Shown,
    ) -> Report {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                let extractor = Extractor::new(ContractRef::Borrowed(self), policy);
                extractor.without_quotations(shown).check_whole(text)
            }
            Err(error) => extractor::not_utf8(self, bytes, error.valid_up_to()),
        }
    }

    /// Like [`check_value_with`](Self::check_value_with), but a value that repeats what the agent
    /// was shown is not a result.
    pub fn check_value_shown(&self, value: &Value, policy: &Policy, shown: &Shown) -> Report {
        let report = self.check_value_shown_quietly(value, policy, shown);
        self.log_rejection(&report);
        report
    }

    /// Like [`check_value_shown`](Self::check_value_shown), without the event of a rejection, as
    /// [`check_bytes_shown_quietly`](Self::check_bytes_shown_quietly).
    pub fn check_value_shown_quietly(
        &self,
        value: &Value,
        policy: &Policy,
        shown: &Shown,
    ) -> Report {
        let repeated = shown.repeated(value);
        if repeated.is_some_and(|value| carries_own_words(&value, self.ty())) {
            return extractor::only_quoted(self);
        }
        self.validate_within_limits(value, policy)
    }

    /// Emits the event of a rejection for a report that is not accepted. The functions that check
    /// do so themselves, except those that say otherwise.
    pub fn log_rejection(&self, report: &Report) {
        reporting::log_rejection(self, report);
    }

    /// Like [`check_value`](Self::check_value), for a value that no agent sent just now.
    pub(crate) fn check_value_quietly(&self, value: &Value) -> Report {
        self.validate_within_limits(value, self.policy())
    }

    fn validate_within_limits(&self, value: &Value, policy: &Policy) -> Report {
        if let Some(report) = extractor::report_beyond_limits(self, value) {
            return report;
        }
        work::within(MAX_CHECK_TIME, || {
            let report = reporting::validate_value(self, value, policy);
            if work::is_over() { extractor::took_too_long(self, 0) } else { report }
        })
    }

    /// Validates a value that is already parsed. The report has no spans. The limits on
    /// size and depth apply as they do to a text.
    pub fn check_value(&self, value: &Value) -> Report {
        self.check_value_with(value, self.policy())
    }

    /// Like [`check_value`](Self::check_value), with another policy.
    pub fn check_value_with(&self, value: &Value, policy: &Policy) -> Report {
        let report = self.validate_within_limits(value, policy);
        reporting::log_rejection(self, &report);
        report
    }

    /// What can be read of every attempt in a text, and the items of its lists: also of one in another form than the
    /// contract asks for, of one that breaks off, and of one that a later one replaces. What repeats
    /// `shown` is no attempt. The text itself is accepted or not by [`check`](Self::check).
    pub fn salvage_text(&self, text: &[u8], policy: &Policy, shown: &Shown) -> SalvagedItems {
        let text = String::from_utf8_lossy(text);
        work::within(MAX_CHECK_TIME, || extractor::items_of_text(self, &text, policy, shown).0)
    }

    /// Like [`salvage_text`](Self::salvage_text), and returns how many bytes were read. The number
    /// grows linearly with the length of the text.
    pub fn salvage_measured(&self, text: &str) -> (SalvagedItems, u64) {
        extractor::items_of_text(self, text, self.policy(), &Shown::default())
    }

    /// The items of the result of a report, whether it is accepted or not.
    pub fn salvage_report(&self, report: &Report) -> SalvagedItems {
        let value = report.value.as_ref().or(report.partial.as_ref());
        let lists = innermost(&self.policy().salvage);
        let items = |list: &String| value.map(|value| select_values(value, &format!("{list}/*")));
        let refused = |value: &Value| RefusedResult {
            value: value.clone(),
            violations: report.violations.clone(),
        };
        SalvagedItems {
            valid: lists.filter_map(items).flatten().cloned().collect(),
            rejected: report.rejected_items.clone(),
            results: report.refused_value.iter().map(refused).collect(),
        }
    }

    /// Extracts the result from a text, validates it, and deserializes it.
    ///
    /// # Errors
    ///
    /// If the text holds no result that satisfies the contract.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, Rejection> {
        into_typed(self.check(text), text)
    }

    /// A stream for a text that arrives in pieces. It borrows the contract.
    pub fn stream(&self) -> Stream<'_> {
        Stream::new(Extractor::new(ContractRef::Borrowed(self), self.policy()))
    }

    /// A stream that shares the contract, so that it can outlive every borrow: for tasks, threads
    /// and bindings to other languages.
    ///
    /// ```
    /// use counterfoil_contract::{Contract, Framing, Policy, Stream};
    /// use std::sync::Arc;
    ///
    /// let schema = serde_json::json!({"type": "object", "required": ["ok"]});
    /// let contract = Contract::from_schema(&schema, Framing::AnyJson, Policy::default())?;
    /// let mut stream: Stream<'static> = Arc::new(contract).shared_stream();
    /// stream.push("The result is {\"ok\"");
    /// stream.push(": true}");
    /// assert!(stream.finish().is_accepted());
    /// # Ok::<(), counterfoil_contract::LoadError>(())
    /// ```
    pub fn shared_stream(self: &Arc<Self>) -> Stream<'static> {
        let contract = ContractRef::Shared(Arc::clone(self));
        Stream::new(Extractor::new(contract, self.policy()))
    }

    /// The instructions to append to an agent's prompt: which result to send, and in which form.
    pub fn prompt(&self) -> String {
        prompt::suffix(self, Delivery::Text)
    }

    /// The prompt that asks the agent to send the result again: what is wrong with it, where, and
    /// in which form to send it.
    pub fn repair(&self, report: &Report) -> String {
        prompt::repair(self, report, Delivery::Text)
    }

    /// One line about a result, by the contract's `display` template.
    pub fn display_line(&self, value: &Value) -> String {
        match &self.display {
            Some(display) => display.render(value),
            None => excerpt(value),
        }
    }
}

/// The result of a report as a Rust type.
fn into_typed<T: DeserializeOwned>(mut report: Report, text: &str) -> Result<T, Rejection> {
    let reject = |report: Report| Rejection { text: text.to_owned(), report: Box::new(report) };
    let Some(value) = report.value.clone() else { return Err(reject(report)) };
    serde_json::from_value(value).map_err(|error| {
        // The schema and the Rust type disagree. Only the author of the contract can fix that.
        let mut violation = bare_violation(
            Code::Forbidden,
            "",
            format!("the result satisfies the schema but not the Rust type: {error}"),
        );
        violation.hint = "make the schema and the type agree".into();
        report.status = Status::Rejected;
        report.stage = Some(Stage::Validation);
        report.value = None;
        report.violations.push(violation);
        reject(report)
    })
}
