//! What agents are equipped with: settings, our own program, and those of our variables that each
//! may see.

use super::adapter::Adapter;
use super::installed::{Installed, Trouble};
use crate::config::{Agents, Settings};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What agents are equipped with.
#[derive(Clone, Debug, Default)]
pub struct Equipment {
    /// What the project says of its agents.
    pub agents: Agents,
    /// Our own program, which serves the tool that takes results; without it, the tool is not
    /// attached.
    pub counterfoil: Option<PathBuf>,
    /// Our variables. An agent sees those that it may.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where the files are that specs name.
    pub folder: PathBuf,
    /// The programs that were looked at.
    looked: Arc<Mutex<BTreeMap<PathBuf, Result<Installed, Trouble>>>>,
}

/// The variables that every program may see: where things are, how to speak, and how to reach the
/// network.
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

impl Equipment {
    /// With the variables of this process.
    pub fn of_this_process(agents: Agents, counterfoil: Option<PathBuf>) -> Self {
        Self { agents, counterfoil, variables: std::env::vars_os().collect(), ..Self::default() }
    }

    /// One of our variables.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(OsStr::new(name)).cloned()
    }

    /// Those of our variables that a program may see.
    pub fn seen_by(&self, adapter: &dyn Adapter, settings: &Settings) -> Vec<(OsString, OsString)> {
        let named = adapter.named_variables(&|name| self.variable(name));
        let own = adapter.variables().iter().copied();
        let more = settings.pass.iter().chain(&named).map(String::as_str);
        let patterns: Vec<&str> = COMMON.into_iter().chain(own).chain(more).collect();
        let seen = self
            .variables
            .iter()
            .filter(|(name, _)| name.to_str().is_some_and(|name| is_seen(name, &patterns)));
        seen.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What a look at a program gives, once for all that it plays.
    pub(super) fn looked_at(
        &self,
        program: PathBuf,
        look: impl FnOnce() -> Result<Installed, Trouble>,
    ) -> Result<Installed, Trouble> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.entry(program).or_insert_with(look).clone()
    }
}

/// Whether a name fits one of the patterns; the last that fits decides, and `!` in front of it says
/// no.
fn is_seen(name: &str, patterns: &[&str]) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let last = patterns.iter().rev().find(|pattern| fits(pattern.trim_start_matches('!')));
    last.is_some_and(|pattern| !pattern.starts_with('!'))
}

#[cfg(test)]
mod tests {
    use super::is_seen;

    #[test]
    fn the_last_pattern_that_fits_decides() {
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
        .filter(|name| is_seen(name, &patterns))
        .collect();
        assert_eq!(seen, ["ACME_", "ACME_KEY", "ACME_SECRET_NAME", "PATH"]);
    }
}
