//! The contracts of the spec pipeline. All agents share one envelope for success and error; each has
//! its own result type.

mod build;
mod context;
mod design;
mod earlier;

pub use build::*;
pub use context::*;
pub use design::*;
pub(crate) use earlier::earlier_definitions;

use crate::value::string_enum;
use counterfoil_contract::{AgentOutput, Definition, Framing, Rule, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

string_enum! {
    /// Whether an agent of the pipeline succeeded.
    EnvelopeStatus { Success = "success", Error = "error" }
}

string_enum! {
    /// What kind of error stopped an agent.
    ErrorType {
        Prerequisite = "PrerequisiteError",
        Validation = "ValidationError",
        QualityGate = "QualityGateFailure",
        ConstitutionViolation = "ConstitutionViolationError",
        BranchExists = "BranchExistsError",
        Timeout = "TimeoutError",
        ExternalService = "ExternalServiceError",
    }
}

string_enum! {
    /// What to do about an error.
    RecoveryStrategy {
        RunPrerequisiteAgent = "run_prerequisite_agent",
        FeedbackLoop = "feedback_loop",
        FixAndRetry = "fix_and_retry",
        AskUser = "ask_user",
        ManualResolution = "manual_resolution",
    }
}

string_enum! {
    /// The severity of a finding in the pipeline.
    PipelineSeverity { Critical = "CRITICAL", High = "HIGH", Medium = "MEDIUM", Low = "LOW" }
}

/// The agent that could help, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuggestedAction {
    /// The agent to run
    pub agent: String,
    /// Why it would help
    pub reason: String,
}

/// Why an agent could not give a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopeError {
    /// What kind of error it is
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// A short code in capitals
    pub code: String,
    /// What happened, for a person
    pub message: String,
    /// Anything else a program may want
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
    /// Whether the pipeline can go on after something is done about it
    pub recoverable: bool,
    /// What should be done about it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_strategy: Option<RecoveryStrategy>,
    /// Which agent could help
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<SuggestedAction>,
}

/// Something that is wrong, with the place and a way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineFinding {
    /// How much it weighs
    pub severity: PipelineSeverity,
    /// What kind of issue it is, such as `coverage_gap`
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong
    pub message: String,
    /// Where, as `file:line`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// How to fix it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
}

/// A result type that the envelope of the pipeline can contain.
pub trait SpecResult {
    /// The agent's name.
    const AGENT: &'static str;

    /// The agent's name with the prefix it has as a plug-in.
    const PREFIXED_AGENT: &'static str;

    /// Adds the rules, claims, display and examples of this result to the contract of the envelope.
    fn extend_envelope(envelope: Definition) -> Definition;

    /// An error that this agent can meet, for the example of its contract.
    fn failure() -> Value {
        json!({
            "type": "PrerequisiteError", "code": "SPEC_NOT_FOUND", "message": "There is no spec.md to start from",
            "details": {"looked_in": "specs/007-search"}, "recoverable": true,
            "recovery_strategy": "run_prerequisite_agent",
            "suggested_action": {"agent": "specify", "reason": "It writes the spec"}
        })
    }

    /// The schema of the field `agent`: the names that the agent may use for itself.
    fn agent_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "enum": [Self::AGENT, Self::PREFIXED_AGENT]})
    }
}

/// What every agent of the pipeline hands back: a result or an error, never both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(bound = "R: SpecResult + JsonSchema")]
pub struct Envelope<R> {
    /// The agent that answers
    #[schemars(schema_with = "R::agent_schema")]
    pub agent: String,
    /// `success` with a `result`, or `error` with an `error`
    pub status: EnvelopeStatus,
    /// When it was done
    #[schemars(required)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// Milliseconds it took
    #[schemars(required)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<u64>,
    /// The result; only when `status` is success
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<R>,
    /// What went wrong; only when `status` is error
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EnvelopeError>,
}

impl<R> AgentOutput for Envelope<R>
where
    R: SpecResult + Serialize + DeserializeOwned + JsonSchema + 'static,
{
    fn definition() -> Definition {
        let success = "result.status == \"success\"";
        let error = "result.status == \"error\"";
        let envelope = Definition::for_type::<Self>(
            &format!("spec-pipeline/{}", R::AGENT),
            2,
            Framing::AnyJson,
        )
        .agent(R::AGENT)
        .alias(R::PREFIXED_AGENT)
        .rule(Rule::require("success-has-result", success, &["result"]))
        .rule(Rule::forbid("success-has-no-error", success, &["error"]))
        .rule(Rule::require("error-has-error", error, &["error"]))
        .rule(Rule::forbid("error-has-no-result", error, &["result"]))
        // The engine knows both; agents of the origin may say them.
        .fills("timestamp?", "run.ended")
        .fills("execution_time_ms?", "run.duration_ms")
        .example(error_example::<R>(&R::failure()))
        .counter_example("error-has-error", without_error(error_example::<R>(&R::failure())));
        R::extend_envelope(envelope)
    }
}

/// An envelope around a result, for examples.
fn success_example<R: SpecResult>(result: &Value) -> Value {
    json!({
        "agent": R::AGENT, "status": "success", "timestamp": "2026-03-01T09:30:00Z", "execution_time_ms": 48000,
        "result": result
    })
}

/// An envelope around an error, for examples.
fn error_example<R: SpecResult>(error: &Value) -> Value {
    json!({
        "agent": R::PREFIXED_AGENT, "status": "error", "timestamp": "2026-03-01T09:30:00+01:00", "execution_time_ms": 900,
        "error": error
    })
}

fn without_error(mut envelope: Value) -> Value {
    envelope.as_object_mut().map(|members| members.remove("error"));
    envelope
}

/// The error in the example of an agent that lacks a document.
fn missing_document(code: &str, message: &str, agent: &str, reason: &str) -> Value {
    json!({
        "type": "PrerequisiteError", "code": code, "message": message, "recoverable": true,
        "recovery_strategy": "run_prerequisite_agent", "suggested_action": {"agent": agent, "reason": reason}
    })
}

/// The display template of an envelope: the error, or the given template for the result.
fn envelope_display(result: &str) -> String {
    format!(
        "{{% if result.status == 'error' %}}{{{{ result.error.type }}}}: {{{{ result.error.message }}}}\
         {{% else %}}{result}{{% endif %}}"
    )
}

/// A rule over the result in the envelope; `check` sees it as `result.result`.
fn result_rule(id: &str, check: &str, message: &str, at: &str) -> Rule {
    Rule::check(id, check, message).when("has(result.result)").at(at)
}

/// An expression that is true if a percentage matches its counts, within rounding.
fn percentage_matches_counts(percentage: &str, part: &str, whole: &str) -> String {
    let exact = format!("100.0 * double({part}) / double({whole})");
    format!("{whole} == 0 || ({percentage} - {exact} <= 0.5 && {exact} - {percentage} <= 0.5)")
}

/// Accepts findings with the fields category, file and description instead of type, location and
/// message.
fn rename_finding_fields(definition: Definition, findings: &str) -> Definition {
    [("category", "type"), ("file", "location"), ("description", "message")]
        .into_iter()
        .fold(definition, |definition, (from, to)| definition.renames(findings, from, to))
}

pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        SpecifyOutput::definition(),
        ClarifyOutput::definition(),
        ResearchOutput::definition(),
        PlanOutput::definition(),
        ChecklistOutput::definition(),
        TasksOutput::definition(),
        AnalyzeOutput::definition(),
        ImplementOutput::definition(),
        TestOutput::definition(),
        ReviewOutput::definition(),
        TasksToIssuesOutput::definition(),
        WorkflowContext::definition(),
        FeedbackContext::definition(),
    ]
}
