//! What agents get from their surroundings: the project's settings, our own executable, and the
//! environment variables that each program may see.

pub mod installed;
mod version;

use crate::adapters::Adapter;
use crate::config::{Agents, Settings};
use counterfoil_process::contain::Launcher;
use installed::{Installed, ProgramError};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Settings, executable and environment variables for agents.
#[derive(Clone, Debug, Default)]
pub struct AgentEnvironment {
    /// The project's settings for agents.
    pub agents: Agents,
    /// Our own executable, which serves the tool that receives results. Without it the tool is not
    /// attached.
    pub executable: Option<PathBuf>,
    /// The environment variables. A program sees only those that it may see.
    pub variables: BTreeMap<OsString, OsString>,
    /// How commands without an adapter are contained.
    pub launcher: Launcher,
    /// The folder that file names in specs and settings are relative to.
    pub folder: PathBuf,
    /// The results of inspecting programs, by path.
    inspected: Arc<Mutex<BTreeMap<PathBuf, Result<Installed, ProgramError>>>>,
}

/// The variables that every program may see: paths, language, terminal and network.
const COMMON: [&str; 35] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
    "CARGO_HOME",
    "RUSTUP_HOME",
];

/// All variables but the marks of agents' sessions.
const SESSION_MARKS: [&str; 10] = [
    "*",
    "!CLAUDECODE*",
    "!CLAUDE_CODE_ENTRYPOINT",
    "!CLAUDE_CODE_SESSION*",
    "!CLAUDE_CODE_SSE_PORT",
    "!CODEX_SANDBOX*",
    "!CODEX_THREAD_ID",
    "!GEMINI_CLI",
    "!OPENCODE",
    "!QWEN_CODE",
];

impl AgentEnvironment {
    /// Creates an environment with the variables of this process.
    pub fn from_process(agents: Agents, executable: Option<PathBuf>) -> Self {
        Self { agents, executable, variables: std::env::vars_os().collect(), ..Self::default() }
    }

    /// Looks up a variable.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(OsStr::new(name)).cloned()
    }

    /// The variables that a program may see.
    pub fn visible_to(
        &self,
        adapter: &dyn Adapter,
        settings: &Settings,
    ) -> Vec<(OsString, OsString)> {
        let configured = adapter.configured_variables(&|name| self.variable(name));
        let own = adapter.variables().iter().copied();
        let more = settings.pass.iter().chain(&configured).map(String::as_str);
        self.matching(&COMMON.into_iter().chain(own).chain(more).collect::<Vec<_>>())
    }

    /// The variables that a `command:` agent may see: the common ones and those that its settings
    /// pass on.
    pub fn visible_to_command(&self, settings: &Settings) -> Vec<(OsString, OsString)> {
        let more = settings.pass.iter().map(String::as_str);
        self.matching(&COMMON.into_iter().chain(more).collect::<Vec<_>>())
    }

    /// The names of the variables that look like credentials and that a `command:` agent does not
    /// see.
    pub fn keys_hidden_from_command(&self, settings: &Settings) -> Vec<String> {
        let more = settings.pass.iter().map(String::as_str);
        let patterns: Vec<&str> = COMMON.into_iter().chain(more).collect();
        let names = self.variables.keys().filter_map(|name| name.to_str());
        let hidden = names.filter(|name| {
            let is_key =
                ["_KEY", "_TOKEN", "_SECRET", "_BASE_URL"].iter().any(|end| name.ends_with(end));
            is_key && !is_visible(name, &patterns) && !settings.env.contains_key(*name)
        });
        hidden.map(str::to_owned).collect()
    }

    /// The variables whose names match the patterns.
    fn matching(&self, patterns: &[&str]) -> Vec<(OsString, OsString)> {
        let visible = self
            .variables
            .iter()
            .filter(|(name, _)| name.to_str().is_some_and(|name| is_visible(name, patterns)));
        visible.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The variables that a program without an adapter may see: all but those by which an agent marks
    /// what it starts. A program that finds them takes itself for a part of that agent's session.
    pub fn visible_to_others(&self, settings: &Settings) -> Vec<(OsString, OsString)> {
        let more = settings.pass.iter().map(String::as_str);
        let patterns: Vec<&str> = SESSION_MARKS.into_iter().chain(more).collect();
        let is_mark = |name: &str| !is_visible(name, &patterns);
        let visible = self
            .variables
            .iter()
            .filter(|(name, _)| name.to_str().is_none_or(|name| !is_mark(name)));
        visible.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Inspects a program unless it was inspected before.
    pub(super) fn inspect_once(
        &self,
        program: PathBuf,
        inspect: impl FnOnce() -> Result<Installed, ProgramError>,
    ) -> Result<Installed, ProgramError> {
        let mut inspected = self.inspected.lock().unwrap_or_else(PoisonError::into_inner);
        inspected.entry(program).or_insert_with(inspect).clone()
    }
}

/// Whether a name matches the patterns. The last matching pattern decides; a leading `!` excludes
/// the name.
fn is_visible(name: &str, patterns: &[&str]) -> bool {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    let last = patterns.iter().rev().find(|pattern| matches(pattern.trim_start_matches('!')));
    last.is_some_and(|pattern| !pattern.starts_with('!'))
}

#[cfg(test)]
mod tests {
    use super::is_visible;

    #[test]
    fn the_last_matching_pattern_decides() {
        let patterns = ["ACME_*", "!ACME_SECRET*", "ACME_SECRET_NAME", "PATH"];
        let seen: Vec<&str> = [
            "ACME_",
            "ACME_KEY",
            "ACME_SECRET",
            "ACME_SECRET_NAME",
            "PATH",
            "PATHS",
            "path",
            "HOME",
        ]
        .into_iter()
        .filter(|name| is_visible(name, &patterns))
        .collect();
        assert_eq!(seen, ["ACME_", "ACME_KEY", "ACME_SECRET_NAME", "PATH"]);
    }
}
