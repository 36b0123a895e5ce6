//! The runtime contract: compiled once, then applied to any number of texts.

use crate::claim::{Claim, HeldClaim};
use crate::code::Code;
use crate::definition::Definition;
use crate::display::Display;
use crate::expr::Type;
use crate::policy::{Framing, Policy};
use crate::problem::LoadError;
use crate::report::{Provenance, Report, Stage, Status};
use crate::session::Session;
use crate::source::Source;
use crate::validate::{CompiledRule, Detail, Judgement, Places, Reading, judge};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// What one agent must hand back: compiled, checked, ready to be held against texts.
#[derive(Debug)]
pub struct Contract {
    pub(crate) definition: Definition,
    pub(crate) reference: String,
    pub(crate) schema: Value,
    pub(crate) validator: jsonschema::Validator,
    pub(crate) ty: Type,
    pub(crate) rules: Vec<CompiledRule>,
    pub(crate) fields_read: Option<Vec<String>>,
    pub(crate) display: Option<Display>,
}

/// A text that is not accepted: the text itself and all that is wrong with it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", summarise(report))]
pub struct Rejection {
    /// The text as it was given.
    pub text: String,
    /// What came of it.
    pub report: Box<Report>,
}

fn summarise(report: &Report) -> String {
    let mut lines = vec![format!(
        "{} is {}",
        report.contract,
        match report.status {
            Status::Accepted => "accepted",
            Status::Rejected => "rejected",
            Status::Absent => "absent",
        }
    )];
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
    /// Compiles a definition: its schema must be valid, its rules must hold together, its examples
    /// must pass.
    pub fn compile(definition: Definition) -> Result<Self, LoadError> {
        crate::compile::compile(definition)
    }

    /// A contract for any JSON Schema, without an id of its own.
    pub fn from_schema(
        schema: &Value,
        framing: Framing,
        policy: Policy,
    ) -> Result<Self, LoadError> {
        let mut definition = Definition::new("local/schema", 1, framing, schema.clone());
        definition.policy = Policy { placeholders: false, ..policy };
        crate::compile::compile(definition)
    }

    /// The id, `namespace/name`.
    pub fn id(&self) -> &str {
        &self.definition.contract
    }

    /// The version.
    pub fn version(&self) -> u32 {
        self.definition.version
    }

    /// The id with its version, `namespace/name@1`.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Where in the text the result stands.
    pub fn framing(&self) -> Framing {
        self.definition.framing
    }

    /// How strictly a text is read.
    pub fn policy(&self) -> &Policy {
        &self.definition.policy
    }

    /// The contract as it was written down.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The claims as a step holds them that says nothing otherwise.
    pub fn held_claims(&self) -> Vec<HeldClaim> {
        let held = self.definition.claims.iter().map(|(field, claim)| HeldClaim {
            name: Claim::name(field),
            field: field.clone(),
            claim: claim.clone(),
            findings: None,
        });
        held.collect()
    }

    /// The claims, by field.
    pub fn claims(&self) -> &BTreeMap<String, Claim> {
        &self.definition.claims
    }

    /// The schema, without an id.
    pub fn raw_schema(&self) -> &Value {
        &self.schema
    }

    /// The type of a result.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    pub(crate) fn validator(&self) -> &jsonschema::Validator {
        &self.validator
    }

    pub(crate) fn compiled_rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// The root fields that rules read; `None` if one reads the result as a whole.
    pub(crate) fn fields_read(&self) -> Option<&[String]> {
        self.fields_read.as_deref()
    }

    /// Holds a text to the contract. Never an error: the report says what came of it.
    pub fn check(&self, text: &str) -> Report {
        self.check_with(text, &self.definition.policy)
    }

    /// The same with another policy.
    pub fn check_with(&self, text: &str, policy: &Policy) -> Report {
        let report = Session::new(self, policy).whole(text);
        self.log(&report);
        report
    }

    /// The same, and how many bytes were looked at to find the candidates: the measure of the
    /// scan's linearity.
    pub fn check_measured(&self, text: &str) -> (Report, u64) {
        let mut session = Session::new(self, &self.definition.policy);
        let report = session.whole(text);
        self.log(&report);
        (report, session.examined())
    }

    /// The same with nothing forgiven: no defaults, repairs, coercions or duplicate keys.
    pub fn check_strictly(&self, text: &str) -> Report {
        self.check_with(text, &self.definition.policy.strictly())
    }

    /// Bytes that may not be UTF-8.
    pub fn check_bytes(&self, bytes: &[u8]) -> Report {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.check(text),
            Err(error) => {
                let report = crate::session::not_utf8(self, bytes, error.valid_up_to());
                self.log(&report);
                report
            }
        }
    }

    /// Holds a value that was parsed elsewhere to the contract. Places are unknown; the limits of
    /// size and depth hold as for a text.
    pub fn check_value(&self, value: &Value) -> Report {
        let report = crate::session::beyond(self, value).unwrap_or_else(|| self.judge_value(value));
        self.log(&report);
        report
    }

    /// The same without a word in the log.
    pub(crate) fn judge_value(&self, value: &Value) -> Report {
        self.judge_by(value, &self.definition.policy)
    }

    /// The same with nothing forgiven.
    pub(crate) fn judge_strictly(&self, value: &Value) -> Report {
        self.judge_by(value, &self.definition.policy.strictly())
    }

    fn judge_by(&self, value: &Value, policy: &Policy) -> Report {
        let reading = Reading {
            value: value.clone(),
            places: Places::none(),
            violations: Vec::new(),
            warnings: Vec::new(),
            coercions: Vec::new(),
        };
        let judgement = judge(self, policy, reading, &Source::whole(""), Detail::Full);
        self.report(judgement, self.provenance())
    }

    /// Holds a text to the contract and gives the result as a Rust type.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, Rejection> {
        typed(self.check(text), text)
    }

    /// An incremental extractor for a text that arrives in pieces.
    pub fn stream(&self) -> crate::Stream<'_> {
        crate::Stream::new(Session::new(self, &self.definition.policy))
    }

    /// The one line that shows a result.
    pub fn show(&self, value: &Value) -> String {
        match &self.display {
            Some(display) => display.render(value),
            None => crate::validate::excerpt(value),
        }
    }

    pub(crate) fn provenance(&self) -> Provenance {
        Provenance {
            framing: self.framing(),
            candidates: 0,
            chosen: None,
            span: None,
            repairs: Vec::new(),
            coercions: Vec::new(),
            defaults: Vec::new(),
            unwrapped: Vec::new(),
            passed_over: Vec::new(),
        }
    }

    pub(crate) fn report(&self, judgement: Judgement, mut provenance: Provenance) -> Report {
        provenance.coercions = judgement.coercions;
        provenance.defaults = judgement.defaults;
        provenance.unwrapped = judgement.unwrapped;
        let accepted = judgement.stage.is_none();
        let mut warnings = judgement.warnings;
        if let Some(why) = &self.definition.deprecated {
            let mut note = crate::validate::bare_violation(
                Code::Deprecated,
                "",
                format!("{} is deprecated: {why}", self.reference),
            );
            why.clone_into(&mut note.hint);
            warnings.push(note);
        }
        Report {
            contract: self.reference.clone(),
            status: if accepted { Status::Accepted } else { Status::Rejected },
            stage: judgement.stage,
            value: accepted.then_some(judgement.value),
            partial: judgement.partial,
            violations: judgement.violations,
            warnings,
            rejected_items: judgement.rejected_items,
            provenance,
        }
    }

    /// Every rejection is one structured event.
    pub(crate) fn log(&self, report: &Report) {
        if report.is_accepted() {
            return;
        }
        let codes = report.codes().iter().map(|code| code.as_str()).collect::<Vec<_>>().join(",");
        tracing::warn!(
            target: "counterfoil::rejected",
            contract = %self.reference,
            agent = self.definition.agent.as_deref().unwrap_or(""),
            stage = report.stage.map_or("", Stage::name),
            codes = %codes,
            status = if report.status == Status::Absent { "absent" } else { "rejected" },
            "result not accepted"
        );
    }
}

/// The result of a report as a Rust type.
pub(crate) fn typed<T: DeserializeOwned>(report: Report, text: &str) -> Result<T, Rejection> {
    let reject = |report: Report| Rejection { text: text.to_owned(), report: Box::new(report) };
    let Some(value) = report.value.clone() else { return Err(reject(report)) };
    match serde_json::from_value(value) {
        Ok(value) => Ok(value),
        Err(error) => {
            // The schema and the Rust type disagree: a fault of the contract's author, said as
            // such.
            let mut report = report;
            let mut violation = crate::validate::bare_violation(
                Code::Forbidden,
                "",
                format!("the result satisfies the schema but not the Rust type: {error}"),
            );
            violation.hint = "make the schema and the type agree".into();
            report.status = Status::Rejected;
            report.stage = Some(Stage::Validation);
            report.value = None;
            report.violations.push(violation);
            Err(reject(report))
        }
    }
}
