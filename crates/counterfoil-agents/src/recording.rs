//! Recordings: the prompts, replies and results of a run, as files that can be inspected, stored
//! with a project, and replayed.
//!
//! A recording is a folder. [`FILE`] describes the attempts, and the files that it names contain
//! prompts and output byte for byte. This module defines the format and replays recordings; the
//! caller reads and writes the files.

mod collect;
mod compare;
mod layout;
mod replay;

pub use collect::{CollectedAttempt, Recorder};
pub use compare::{Difference, differences};
pub use layout::ReplyFiles;
pub use replay::{
    NOT_VALIDATED, RecordedOutput, ReplayedReply, RuleMismatch, detect_programs, replay_attempt,
};

use counterfoil_contract::policy::UnknownFields;
use counterfoil_contract::{Context, Definition, Violation};
use counterfoil_flow::{AssignedAgent, QuotedValue, Usage};
use counterfoil_process::Exit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The file that describes a recording.
pub const FILE: &str = "recording.json";
/// The format version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The version of the format.
    pub version: u32,
    /// The program that wrote it.
    pub made_by: String,
    /// The id of the run.
    pub run: String,
    /// The name of the workflow.
    pub workflow: String,
    /// Whether secrets were redacted.
    pub redacted: bool,
    /// What was left out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The contracts of the attempts, by `id@version`.
    pub contracts: BTreeMap<String, Definition>,
    /// Agent sessions, in the order they started.
    pub attempts: Vec<Attempt>,
}

/// A recorded attempt of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The state, or the state, item key and inner state.
    pub path: Vec<String>,
    /// The number of the attempt on this path.
    pub n: u32,
    /// The name of the agent.
    pub agent: String,
    /// The program that was assigned to the agent.
    #[serde(rename = "player", default, skip_serializing_if = "Option::is_none")]
    pub assigned: Option<AssignedAgent>,
    /// The contract of the result, as `id@version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// What followed from fields that the contract does not define.
    #[serde(default, skip_serializing_if = "UnknownFields::are_kept")]
    pub unknown_fields: UnknownFields,
    /// The further rules for the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The values of the run that the prompt contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<QuotedValue>,
    /// The outcome of the attempt.
    #[serde(default)]
    pub result: RecordedOutcome,
    /// The reason of the outcome, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The replies, in order.
    pub replies: Vec<Reply>,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedOutcome {
    /// The name of the outcome; none if it is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The accepted result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The violations of the last reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<RecordedViolation>,
    /// The usage of the attempt.
    #[serde(default)]
    pub usage: Usage,
}

/// A recorded violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedViolation {
    /// The diagnostic code.
    pub code: String,
    /// The location, as a JSON pointer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// The message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl From<&Violation> for RecordedViolation {
    fn from(violation: &Violation) -> Self {
        let (code, pointer) = (violation.code.as_str().to_owned(), violation.pointer.clone());
        Self { code, pointer, message: violation.message.clone() }
    }
}

/// A rule of a step, with the values that it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The id of the rule.
    pub id: String,
    /// The expression that must be true.
    pub check: String,
    /// The message if it is not.
    pub message: String,
    /// The part of the result that the rule is about, as a JSON pointer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// The values of the run when the step started.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub known: Map<String, Value>,
}

/// A recorded reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The program whose events the output contains; none if the output is the text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<RecordedFile>,
    /// Standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<RecordedFile>,
    /// The end of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<RecordedFile>,
    /// The submissions through the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submissions: Option<RecordedFile>,
    /// The final text, if the output contains events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<RecordedFile>,
    /// The exit code of the program, or the negative number of the signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Whether the program was given a schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema: bool,
    /// The channel of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The denied actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The status: accepted, rejected, absent, refuted, or the kind of failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The codes of the violations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// What was known of the attempt, if the result depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
}

impl Reply {
    /// Whether the output contains events, of which the text is only a part. Only of such a reply
    /// the exit status is recorded.
    pub fn has_events(&self) -> bool {
        self.program.is_some() || self.text.is_some() || self.exit.is_some()
    }
}

/// A file of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// The path, relative to the folder of the recording.
    pub file: String,
    /// The SHA-256 of its content, in hex.
    pub sha256: String,
}

impl RecordedFile {
    /// Describes a file with the given content.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Self {
        Self { file: file.to_owned(), sha256: digest(bytes) }
    }

    /// Whether the content is the recorded one.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.sha256 == digest(bytes)
    }
}

/// The SHA-256 of some bytes, in hex.
pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The exit status for a recorded number.
pub fn exit_from_number(number: i32) -> Exit {
    if number < 0 { Exit::Signal(number.saturating_neg()) } else { Exit::Code(number) }
}

/// A recording that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The text is not a recording.
    #[error("it is not a recording: {0}; export the run again")]
    Malformed(String),
    /// A newer version wrote it.
    #[error(
        "it has format version {found}, and this program reads up to {VERSION}; use a newer counterfoil (it was made by {made_by})"
    )]
    Newer {
        /// The format version of the recording.
        found: u64,
        /// The program that wrote it.
        made_by: String,
    },
}

impl Recording {
    /// Parses the text of [`FILE`].
    ///
    /// # Errors
    ///
    /// The text is not a recording, or a newer version wrote it.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordingError> {
        let malformed = |error: serde_json::Error| RecordingError::Malformed(error.to_string());
        // A newer version may have any structure, so the version is read first.
        let value: Value = serde_json::from_slice(bytes).map_err(malformed)?;
        let found = value.get("version").and_then(Value::as_u64);
        let found =
            found.ok_or_else(|| RecordingError::Malformed("it has no version".to_owned()))?;
        if found > u64::from(VERSION) {
            let made_by =
                value.get("made_by").and_then(Value::as_str).unwrap_or("an unknown program");
            return Err(RecordingError::Newer { found, made_by: made_by.to_owned() });
        }
        serde_json::from_value(value).map_err(malformed)
    }

    /// Removes the contracts that no attempt uses.
    pub fn remove_unused_contracts(&mut self) {
        let attempts = &self.attempts;
        let used = |reference: &String| {
            attempts.iter().any(|one| one.contract.as_ref() == Some(reference))
        };
        self.contracts.retain(|reference, _| used(reference));
    }

    /// The text of [`FILE`].
    ///
    /// # Errors
    ///
    /// A value cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl Attempt {
    /// The display name of the attempt.
    pub fn name(&self) -> String {
        format!("{} #{}", self.path.join("/"), self.n)
    }
}
