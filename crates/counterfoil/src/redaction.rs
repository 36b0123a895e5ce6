//! Takes secrets out of what leaves the machine: the log, spans, annotations and reports for CI
//! systems, and what the program of `--notify` is told. What an agent returned may quote a key.

use crate::{input, output, project};
use counterfoil_agents::redact::{PatternError, RedactionLevel, Redactor};
use counterfoil_engine::config::Config;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What is written in place of a text if nothing can be redacted.
pub(crate) const WITHHELD: &str = "[redacted]";

/// The repository that the command line names.
static REPOSITORY: OnceLock<Option<PathBuf>> = OnceLock::new();
/// The settings of projects that were added before there is a redactor.
static ADDED: Mutex<Vec<Config>> = Mutex::new(Vec::new());
/// The redactor; none if the settings of a project cannot be read. Compiling its patterns takes time,
/// and most commands need none.
static SHARED: OnceLock<Option<Mutex<Shared>>> = OnceLock::new();

/// A redactor with the settings of projects that it was made from.
struct Shared {
    redactor: Redactor,
    patterns: Vec<String>,
    /// The variables that the projects set for agents.
    variables: Vec<(String, String)>,
}

impl Shared {
    /// The redactor of the project that the command works in: that of the repository and, below its
    /// top, that of the current folder, from which contracts are taken.
    ///
    /// # Errors
    ///
    /// The settings of a project cannot be read, so that its patterns are not known.
    fn of_projects(repo: Option<&Path>) -> Result<Self, String> {
        let top = input::repository(repo).ok();
        let current = std::env::current_dir().ok().filter(|_| repo.is_none());
        let nearest = current.as_deref().and_then(project::config_folder);
        let nearest = nearest.filter(|folder| top.as_ref() != Some(folder));
        let invalid = |error: PatternError| error.to_string();
        let mut shared = Self {
            redactor: redactor(&Config::default()).map_err(invalid)?,
            patterns: Vec::new(),
            variables: Vec::new(),
        };
        for folder in top.iter().chain(&nearest) {
            let config = project::load_config(folder).map_err(|error| error.to_string())?;
            shared.add(&config).map_err(invalid)?;
        }
        for config in ADDED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            shared.add(config).map_err(invalid)?;
        }
        Ok(shared)
    }

    /// Adds the settings of a project.
    fn add(&mut self, config: &Config) -> Result<(), PatternError> {
        let is_new = |pattern: &&String| !self.patterns.contains(pattern);
        let new: Vec<String> = config.redact.iter().filter(is_new).cloned().collect();
        for settings in config.agents.named.values() {
            self.variables.extend(settings.env.clone());
        }
        if !new.is_empty() {
            self.patterns.extend(new);
            let all = Config { redact: self.patterns.clone(), ..Config::default() };
            self.redactor = redactor(&all)?;
        }
        self.redactor.learn_variables(self.variables.clone());
        Ok(())
    }
}

/// Says which project's settings count. Without it, they are those of the current folder.
pub(crate) fn set_repository(repo: Option<&Path>) {
    let _ = REPOSITORY.set(repo.map(Path::to_owned));
}

/// Adds the settings of the project of a run, which may be another one than that of the command. Call
/// it before the run is reported.
///
/// # Errors
///
/// A pattern of the project is invalid.
pub(crate) fn add_project(config: &Config) -> Result<(), PatternError> {
    match SHARED.get() {
        Some(Some(shared)) => shared.lock().unwrap_or_else(PoisonError::into_inner).add(config),
        // Nothing is reported as it is anyway.
        Some(None) => Ok(()),
        None => {
            ADDED.lock().unwrap_or_else(PoisonError::into_inner).push(config.clone());
            Ok(())
        }
    }
}

/// Makes the redactor ready, which the first text would wait for. Returns whether there is one.
pub(crate) fn prepare() -> bool {
    shared().is_some()
}

/// A redactor for reports that are made beside others; none if nothing can be redacted.
#[cfg(feature = "opentelemetry")]
pub(crate) fn copy() -> Option<Redactor> {
    shared().map(|shared| shared.redactor.clone())
}

fn shared() -> Option<MutexGuard<'static, Shared>> {
    let shared = SHARED.get_or_init(|| {
        let repo = REPOSITORY.get().and_then(Option::as_deref);
        let problem = match Shared::of_projects(repo) {
            Ok(shared) => return Some(Mutex::new(shared)),
            Err(problem) => problem,
        };
        let warning = format!("texts that may hold secrets are withheld: {problem}");
        output::write_message("warning", &warning);
        None
    });
    shared.as_ref().map(|shared| shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Remembers the secrets in what is reported, so that they are redacted also where nothing says what
/// they are.
pub(crate) fn learn(reported: &impl Serialize) {
    if let (Some(mut shared), Ok(bytes)) = (shared(), serde_json::to_vec(reported)) {
        shared.redactor.learn(&bytes);
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
        Some(mut shared) => shared.redactor.redact_text(text, level),
        None => WITHHELD.to_owned(),
    }
}

/// JSON whose strings have no secrets; none if it cannot be redacted.
pub(crate) fn json(text: &str) -> Option<String> {
    let redacted = shared()?.redactor.redact_bytes(text.as_bytes(), RedactionLevel::Full)?;
    String::from_utf8(redacted).ok()
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
