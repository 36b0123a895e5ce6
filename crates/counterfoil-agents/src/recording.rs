//! Recordings: what agents said in a run and what came of it, as files that can be looked at, kept
//! with a project, and judged again.
//!
//! A recording is a folder: [`FILE`] says what happened, and the files that it names hold what was
//! asked and said, byte for byte. This module knows what stands in it; reading and writing files is
//! the business of whoever has a recording.

mod compare;
mod gather;
mod judge;
mod layout;
pub mod redact;

pub use compare::{Difference, differences};
pub use gather::{Gathered, Gatherer};
pub use judge::{Judged, Said, UNJUDGED, Unruly, replayed, spoken_by};
pub use layout::{Names, is_inside};

use counterfoil_contract::{Definition, Violation};
use counterfoil_flow::{AssignedAgent, Usage};
use counterfoil_process::Exit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The file that says what happened.
pub const FILE: &str = "recording.json";
/// The form of recordings that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// A run as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The form it has.
    pub version: u32,
    /// The program that wrote it.
    pub made_by: String,
    /// The run.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// Whether secrets were taken out.
    pub redacted: bool,
    /// What is not in it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What was asked of its agents, by `id@version`.
    pub contracts: BTreeMap<String, Definition>,
    /// Agent sessions, in the order they started.
    pub attempts: Vec<Attempt>,
}

/// An agent session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// State, or state, item key, inner state.
    pub path: Vec<String>,
    /// Which attempt of this path.
    pub n: u32,
    /// The agent.
    pub agent: String,
    /// Who played it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<AssignedAgent>,
    /// What it had to hand back, as `id@version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// What its result had to satisfy beside that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What came of it.
    #[serde(rename = "result", default)]
    pub came: Came,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it said.
    pub replies: Vec<Reply>,
}

/// What came of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Came {
    /// How it ended; none if nobody has said so yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What was wrong with its last reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violated>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// Something that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violated {
    /// The code.
    pub code: String,
    /// Where, as a JSON pointer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// In words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl From<&Violation> for Violated {
    fn from(violation: &Violation) -> Self {
        let (code, pointer) = (violation.code.as_str().to_owned(), violation.pointer.clone());
        Self { code, pointer, message: violation.message.clone() }
    }
}

/// A rule of a step, with the values it read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// What must hold.
    pub check: String,
    /// What is wrong if it does not.
    pub message: String,
    /// The part of the result that it is about, as a JSON pointer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// What the run knew when the step started.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub known: Map<String, Value>,
}

/// One reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The program whose events the output holds; none if the output is the text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Kept>,
    /// What came on standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Kept>,
    /// The end of what came on standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Kept>,
    /// What was handed in through the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submissions: Option<Kept>,
    /// The final text, where the output holds events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Kept>,
    /// How the program ended: its code, or the number of the signal below zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Whether the program was given the schema of its answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema: bool,
    /// By which way the result came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// What the agent was not allowed to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What came of it: accepted, rejected, absent, refuted, or how it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The codes of what was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
}

/// A file of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Where it is, from the folder of the recording.
    pub file: String,
    /// SHA-256 of what is in it, in hex.
    pub sha256: String,
}

impl Kept {
    /// A file with these bytes.
    pub fn of(file: &str, bytes: &[u8]) -> Self {
        Self { file: file.to_owned(), sha256: digest(bytes) }
    }

    /// Whether these bytes are what was recorded.
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.sha256 == digest(bytes)
    }
}

/// SHA-256 of bytes, in hex.
pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// How a program ended, from the number that stands for it.
pub fn exit(number: i32) -> Exit {
    if number < 0 { Exit::Signal(number.saturating_neg()) } else { Exit::Code(number) }
}

/// A recording that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no JSON, or says something else.
    #[error("it is no recording: {0}; export the run again")]
    Form(String),
    /// A newer program wrote it.
    #[error(
        "it has form {found}, and this program reads up to {VERSION}; use a newer counterfoil (it was made by {made_by})"
    )]
    Newer {
        /// The form it has.
        found: u64,
        /// Who wrote it.
        made_by: String,
    },
}

impl Recording {
    /// Reads the text of [`FILE`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        let form = |error: serde_json::Error| Unusable::Form(error.to_string());
        // What a newer program wrote may have any shape.
        let value: Value = serde_json::from_slice(bytes).map_err(form)?;
        let found = value.get("version").and_then(Value::as_u64);
        let found = found.ok_or_else(|| Unusable::Form("it has no version".to_owned()))?;
        if found > u64::from(VERSION) {
            let made_by =
                value.get("made_by").and_then(Value::as_str).unwrap_or("nobody who says so");
            return Err(Unusable::Newer { found, made_by: made_by.to_owned() });
        }
        serde_json::from_value(value).map_err(form)
    }

    /// Drops the contracts that nothing was judged by.
    pub fn forget_unused(&mut self) {
        let attempts = &self.attempts;
        let used = |reference: &String| {
            attempts.iter().any(|one| one.contract.as_ref() == Some(reference))
        };
        self.contracts.retain(|reference, _| used(reference));
    }

    /// The text of [`FILE`].
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl Attempt {
    /// As people call it.
    pub fn name(&self) -> String {
        format!("{} #{}", self.path.join("/"), self.n)
    }
}
