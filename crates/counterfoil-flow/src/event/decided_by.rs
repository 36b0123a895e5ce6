//! Who decided something about a run, and from where.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A person or program that decided something about a run: answered, cancelled, reopened or
/// undid it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecidedBy {
    /// The name that was given.
    pub by: String,
    /// From where, as far as it is known.
    pub from: Option<Box<Origin>>,
}

impl From<&str> for DecidedBy {
    fn from(by: &str) -> Self {
        Self { by: by.to_owned(), from: None }
    }
}

/// The process that recorded a decision, as the operating system knows it. The name beside it is
/// what the person's environment says; this is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The account that the process ran as.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The name of the machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The terminal, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// The process id.
    #[serde(default)]
    pub pid: u32,
    /// The program that started the process, such as a shell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
}
