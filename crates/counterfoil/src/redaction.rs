//! Takes secrets out of what leaves the machine: the log, spans, annotations and reports for CI
//! systems, and what the program of `--notify` is told. What an agent returned may quote a key.

use crate::input;
use counterfoil_agents::redact::{PatternError, RedactionLevel, Redactor};
use counterfoil_engine::config::Config;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// What is written in place of a text if nothing can be redacted.
pub(crate) const WITHHELD: &str = "[redacted]";

/// The repository that the command line names.
static REPOSITORY: OnceLock<Option<PathBuf>> = OnceLock::new();
/// Compiling its patterns takes time, and most commands need none.
static REDACTOR: LazyLock<Option<Mutex<Redactor>>> = LazyLock::new(|| {
    let repo = REPOSITORY.get().and_then(Option::as_deref);
    project_redactor(repo).ok().map(Mutex::new)
});

/// Says which project's settings count. Without it, they are those of the current folder.
pub(crate) fn set_repository(repo: Option<&Path>) {
    let _ = REPOSITORY.set(repo.map(Path::to_owned));
}

/// Makes the redactor ready, which the first text would wait for. Returns whether there is one.
pub(crate) fn prepare() -> bool {
    REDACTOR.is_some()
}

fn shared() -> Option<MutexGuard<'static, Redactor>> {
    REDACTOR.as_ref().map(|redactor| redactor.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Remembers the secrets in what is reported, so that they are redacted also where nothing says what
/// they are.
pub(crate) fn learn(reported: &impl Serialize) {
    if let (Some(mut redactor), Ok(bytes)) = (shared(), serde_json::to_vec(reported)) {
        redactor.learn(&bytes);
    }
}

/// A text without secrets.
pub(crate) fn text(text: &str) -> String {
    redacted(text, RedactionLevel::Full)
}

/// A text about a contract or a workflow without secrets: `token: string` describes a field.
pub(crate) fn text_about_definition(text: &str) -> String {
    redacted(text, RedactionLevel::KnownForms)
}

fn redacted(text: &str, level: RedactionLevel) -> String {
    match shared() {
        Some(mut redactor) => redactor.redact_text(text, level),
        None => WITHHELD.to_owned(),
    }
}

/// JSON whose strings have no secrets; none if it cannot be redacted.
pub(crate) fn json(text: &str) -> Option<String> {
    let redacted = shared()?.redact_bytes(text.as_bytes(), RedactionLevel::Full)?;
    String::from_utf8(redacted).ok()
}

/// The redactor of a project as far as its settings can be read.
pub(crate) fn project_redactor(repo: Option<&Path>) -> Result<Redactor, PatternError> {
    let config = input::repository(repo).ok().and_then(|repo| Config::load(&repo, &repo).ok());
    let mut config = config.unwrap_or_default();
    redactor(&config).or_else(|_| {
        config.redact.clear();
        redactor(&config)
    })
}

/// What takes out the usual kinds of secrets, the patterns of a project, and the values of variables:
/// those of the environment, and those that the project sets for agents.
///
/// # Errors
///
/// A pattern of the project is invalid.
pub(crate) fn redactor(config: &Config) -> Result<Redactor, PatternError> {
    let mut redactor = Redactor::new(&config.redact)?;
    let named = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    redactor.learn_variables(std::env::vars_os().filter_map(named));
    for settings in config.agents.named.values() {
        redactor.learn_variables(settings.env.clone());
    }
    Ok(redactor)
}
