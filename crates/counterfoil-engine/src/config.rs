//! `counterfoil.toml` as a whole. Each crate parses its own tables; unknown ones are refused here.

use counterfoil_agents::config::AgentConfig;
use counterfoil_verify::config::ProjectFile;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;

pub use counterfoil_agents::config::{Agents, Channel, Denied, Settings};
pub use counterfoil_verify::config::{ConfigError, FILE, VerifyConfig};

/// What a project says of its checks, claims, agents and recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Its checks, and the files whose changes no agent has to claim.
    pub verify: VerifyConfig,
    /// Its agents.
    pub agents: Agents,
    /// Patterns of what is taken out of recordings, beside what is known to be secret.
    pub redact: Vec<String>,
}

impl Config {
    /// Reads the file in a folder, or else at the top of its repository; without one, nothing is
    /// configured.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or something in it cannot be used.
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
    /// The text is not TOML, has an unknown table, or something in a table cannot be used.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError { path: None, message };
        if let Err(error) = toml::from_str::<Tables>(text) {
            return Err(wrong(error.to_string().trim_end().to_owned()));
        }
        let verify = VerifyConfig::parse(text)?;
        let AgentConfig { agents, redact } =
            AgentConfig::parse(text).map_err(|error| wrong(error.message))?;
        Ok(Self { verify, agents, redact })
    }
}

/// The names at the top of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default, rename = "checks")]
    _checks: IgnoredAny,
    #[serde(default, rename = "claims")]
    _claims: IgnoredAny,
    #[serde(default, rename = "agent")]
    _agent: IgnoredAny,
    #[serde(default, rename = "agents")]
    _agents: IgnoredAny,
    #[serde(default, rename = "redact")]
    _redact: IgnoredAny,
}
