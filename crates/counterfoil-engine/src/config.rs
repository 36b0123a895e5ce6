//! The whole of `counterfoil.toml`. Each crate parses its own tables.

use counterfoil_agents::config::AgentConfig;
use counterfoil_verify::config::ProjectFile;
use counterfoil_workspace::git;
use sha2::{Digest as _, Sha256};
use std::path::Path;

pub use counterfoil_agents::config::{Agents, Channel, Denied, Settings};
pub use counterfoil_verify::config::{ConfigError, FILE, VerifyConfig};

/// The JSON Schema of the file.
pub const JSON_SCHEMA: &str = include_str!("config.schema.json");

/// The digest of the configuration of the project in a folder. It differs if the file does.
pub fn digest(folder: &Path) -> String {
    match ProjectFile::find(folder, git::repository_top(folder).unwrap_or(folder)) {
        Ok(None) => "none".to_owned(),
        Ok(Some(file)) => hex::encode(Sha256::digest(file.text)),
        Err(_) => "unreadable".to_owned(),
    }
}

/// The configuration of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The checks, and the files whose changes need no claim.
    pub verify: VerifyConfig,
    /// The settings of agents.
    pub agents: Agents,
    /// Patterns to redact in recordings, in addition to known secrets.
    pub redact: Vec<String>,
}

impl Config {
    /// Reads the file in a folder, or else at the top of its repository. Without a file it returns
    /// the default.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not valid.
    pub fn load(folder: &Path, top: &Path) -> Result<Self, ConfigError> {
        let Some(file) = ProjectFile::find(folder, top)? else { return Ok(Self::default()) };
        let mut config = Self::parse(&file.text)
            .map_err(|error| ConfigError { path: Some(file.path.clone()), ..error })?;
        config.verify.source = Some(file.path);
        Ok(config)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// The text is not TOML, has an unknown table, or a table is not valid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError { path: None, message };
        let verify = VerifyConfig::parse(text)?;
        let AgentConfig { agents, redact } =
            AgentConfig::parse(text).map_err(|error| wrong(error.message))?;
        Ok(Self { verify, agents, redact })
    }
}
