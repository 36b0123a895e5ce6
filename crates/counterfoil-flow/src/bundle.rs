//! Bundles: the files and contracts that a run started with, so that later changes to them do not
//! affect the run.

use counterfoil_contract::Definition;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Why a file of a workflow cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct FileError {
    /// What is wrong with the file.
    pub reason: String,
}

impl<T: Into<String>> From<T> for FileError {
    fn from(reason: T) -> Self {
        Self { reason: reason.into() }
    }
}

/// The source of the files of a workflow: a folder, an archive in the binary, a journal.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn read(&self, path: &str) -> Result<String, FileError>;

    /// The contract files at a path: the file itself, or those in a folder.
    ///
    /// # Errors
    ///
    /// There is nothing at the path, or it cannot be read.
    fn list(&self, path: &str) -> Result<Vec<String>, FileError>;
}

impl Files for BTreeMap<String, String> {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.get(path).cloned().ok_or_else(|| "no such file".into())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        if self.contains_key(path) {
            return Ok(vec![path.to_owned()]);
        }
        let folder = format!("{}/", path.trim_end_matches('/'));
        let files: Vec<String> =
            self.keys().filter(|name| name.starts_with(&folder)).cloned().collect();
        if files.is_empty() { Err("no such file or folder".into()) } else { Ok(files) }
    }
}

/// A workflow's files and contracts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// The workflow file among `files`.
    pub workflow: String,
    /// The workflow, its prompts and its templates, by path.
    pub files: BTreeMap<String, String>,
    /// The contracts it uses, by `id@version`.
    pub contracts: BTreeMap<String, Definition>,
    /// Whether the claims that the workflow records are required in this run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_claims: bool,
}

impl Bundle {
    /// Serialises the bundle.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Deserialises a bundle.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The hash that identifies a serialised bundle.
    pub fn hash(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }
}
