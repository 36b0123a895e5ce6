//! The tables `[checks]` and `[claims]` and the key `contain` of `counterfoil.toml`: the named checks
//! of a project, the files whose changes need not be claimed, and how commands are contained. Other tables belong to other crates: they are
//! known by name only, so that a misspelled one is an error.

mod contain;

use contain::RawContain;
use counterfoil_contract::text::{display_path, indent_further};
use counterfoil_process::contain::Settings as ContainSettings;
use counterfoil_process::parse_timeout;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// The name of the configuration file.
pub const FILE: &str = "counterfoil.toml";
/// The time limit of a check that sets none.
pub const CHECK_TIMEOUT: Duration = Duration::from_mins(10);
/// Larger files are rejected.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Files that tools create as a side effect. Their changes need not be claimed.
pub const NOISE: [&str; 20] = [
    "**/__pycache__/**",
    "**/*.py[co]",
    "**/.pytest_cache/**",
    "**/.mypy_cache/**",
    "**/.ruff_cache/**",
    "**/.hypothesis/**",
    "**/.tox/**",
    "**/.coverage",
    "**/.coverage.*",
    "**/*.egg-info/**",
    "**/node_modules/**",
    "**/.nyc_output/**",
    "**/*.tsbuildinfo",
    "**/target/**",
    "**/*.snap.new",
    "**/.gradle/**",
    "**/.DS_Store",
    "**/Thumbs.db",
    "**/*.sw[op]",
    "**/*~",
];

/// The configuration of a project's checks and claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyConfig {
    /// The checks that claims can name.
    pub checks: BTreeMap<String, Check>,
    /// Globs of files whose changes need not be claimed: [`NOISE`] and those of the project.
    pub noise: Vec<String>,
    /// Patterns of commands that a result may name and that may be run.
    pub allow: Vec<String>,
    /// Environment variables that such commands get besides the usual ones.
    pub environment: Vec<String>,
    /// How checks, commands and agents without an adapter are contained.
    pub contain: ContainSettings,
    /// The file that the configuration was read from.
    pub source: Option<PathBuf>,
}

/// A command whose exit code says whether the work is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The command, run in the workspace's folder.
    pub run: CheckCommand,
    /// The time limit.
    pub timeout: Duration,
    /// The report file that the command writes, relative to the workspace's folder.
    pub report: Option<String>,
    /// For a command that stands in a result: the variables that it gets besides the usual ones. Any
    /// other check has the environment of this process.
    pub scrubbed: Option<Vec<String>>,
}

/// The command of a check.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckCommand {
    /// A command line for `sh -c`.
    #[serde(rename = "line")]
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl CheckCommand {
    /// The program and its arguments as passed to the operating system.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
            Self::Argv(argv) => argv.clone(),
        }
    }
}

impl fmt::Display for CheckCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => f.write_str(line.trim()),
            Self::Argv(argv) => match shlex::try_join(argv.iter().map(String::as_str)) {
                Ok(line) => f.write_str(&line),
                Err(_) => f.write_str(&argv.join(" ")),
            },
        }
    }
}

impl Check {
    /// A check that runs a command line with `sh -c` and the default time limit.
    pub fn shell(line: impl Into<String>) -> Self {
        Self {
            run: CheckCommand::Shell(line.into()),
            timeout: CHECK_TIMEOUT,
            report: None,
            scrubbed: None,
        }
    }
}

/// The configuration cannot be read or is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", path.as_ref().map(|path| format!("{}: ", display_path(path))).unwrap_or_default())]
pub struct ConfigError {
    /// The configuration file, if the text comes from a file.
    pub path: Option<PathBuf>,
    /// What is wrong, in which line, and how to fix it.
    pub message: String,
}

impl Default for VerifyConfig {
    fn default() -> Self {
        Self {
            checks: BTreeMap::new(),
            noise: NOISE.iter().map(|glob| (*glob).to_owned()).collect(),
            allow: Vec::new(),
            environment: Vec::new(),
            contain: ContainSettings::default(),
            source: None,
        }
    }
}

impl VerifyConfig {
    /// Reads the file in a workspace's folder, or else at the top of its repository. Without a
    /// file, the defaults apply.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not valid.
    pub fn load(folder: &Path, top: &Path) -> Result<Self, ConfigError> {
        Self::load_with(folder, top, read)
    }

    /// As [`VerifyConfig::load`], with another way to read a file; none if it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not valid.
    pub fn load_with(
        folder: &Path,
        top: &Path,
        read: impl Fn(&Path) -> Result<Option<Vec<u8>>, String>,
    ) -> Result<Self, ConfigError> {
        let file = ProjectFile::find_with(folder, top, read)?;
        let Some(file) = file else { return Ok(Self::default()) };
        let mut config = Self::parse(&file.text)
            .map_err(|error| ConfigError { path: Some(file.path.clone()), ..error })?;
        config.source = Some(file.path);
        Ok(config)
    }

    /// Parses the text of a configuration file.
    ///
    /// # Errors
    ///
    /// The text is not valid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError { path: None, message };
        let file: RawFile =
            toml::from_str(text).map_err(|error| wrong(indent_further(&error.to_string())))?;
        let at = |place: usize| text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1;
        let mut config = Self::default();
        for glob in file.claims.noise {
            if let Err(error) = Glob::new(glob.get_ref()) {
                return Err(wrong(format!(
                    "line {}: {:?} in claims.noise is not a valid glob: {}; write it as in \"**/build/**\"",
                    at(glob.span().start),
                    glob.get_ref(),
                    error.kind()
                )));
            }
            config.noise.push(glob.into_inner());
        }
        if let Some(contain) = file.contain {
            let line = at(contain.span().start);
            config.contain = contain
                .into_inner()
                .validate()
                .map_err(|why| wrong(format!("line {line}: {why}")))?;
        }
        config.allow = file.claims.allow;
        config.environment = file.claims.environment;
        for (name, check) in file.checks {
            let line = at(check.span().start);
            let check = check
                .into_inner()
                .validate()
                .map_err(|why| wrong(format!("line {line}: the check '{name}' {why}")))?;
            if name == "contain" && contain::is_kind(&check.run) {
                return Err(wrong(format!(
                    "line {line}: `contain` stands below [checks], which makes it a check; move it above the first table"
                )));
            }
            config.checks.insert(name, check);
        }
        Ok(config)
    }

    /// The noise globs as one matcher.
    pub fn noise(&self) -> GlobSet {
        globs(self.noise.iter().map(String::as_str))
    }
}

/// Globs as one matcher. Invalid ones are left out; [`VerifyConfig::parse`] rejects them.
pub(crate) fn globs<'g>(globs: impl IntoIterator<Item = &'g str>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs.into_iter().filter_map(|glob| Glob::new(glob).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_default()
}

/// The bytes of a file; none if it does not exist.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    // Opening a pipe would block.
    if !meta.is_file() {
        return Err("it is not a file; remove it or put the configuration there".to_owned());
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is longer than {MAX_FILE_BYTES} bytes"));
    }
    Ok(Some(bytes))
}

/// The text of a project's `counterfoil.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
}

impl ProjectFile {
    /// Reads the file in a workspace's folder, or else at the top of its repository.
    ///
    /// # Errors
    ///
    /// The file exists and cannot be read, is not a regular file, is too long or is not UTF-8.
    pub fn find(folder: &Path, top: &Path) -> Result<Option<Self>, ConfigError> {
        Self::find_with(folder, top, read)
    }

    fn find_with(
        folder: &Path,
        top: &Path,
        read: impl Fn(&Path) -> Result<Option<Vec<u8>>, String>,
    ) -> Result<Option<Self>, ConfigError> {
        for place in [folder, top] {
            let path = place.join(FILE);
            let wrong = |message: String| ConfigError { path: Some(path.clone()), message };
            let Some(bytes) = read(&path).map_err(wrong)? else { continue };
            let text = String::from_utf8(bytes).map_err(|error| {
                wrong(format!(
                    "byte {} is not UTF-8; save it as UTF-8",
                    error.utf8_error().valid_up_to()
                ))
            })?;
            return Ok(Some(Self { path, text }));
        }
        Ok(None)
    }
}

/// The tables of the file. The tables of other crates are known by name only, so that a misspelled
/// table is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    checks: BTreeMap<String, Spanned<RawCheck>>,
    #[serde(default)]
    claims: RawClaims,
    #[serde(default)]
    contain: Option<Spanned<RawContain>>,
    #[serde(default, rename = "agent")]
    _agent: IgnoredAny,
    #[serde(default, rename = "agents")]
    _agents: IgnoredAny,
    #[serde(default, rename = "prices")]
    _prices: IgnoredAny,
    #[serde(default, rename = "redact")]
    _redact: IgnoredAny,
    #[serde(default, rename = "state")]
    _state: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawClaims {
    noise: Vec<Spanned<String>>,
    allow: Vec<String>,
    environment: Vec<String>,
}

/// A check as written in the file, in one of its three forms.
struct RawCheck {
    run: CheckCommand,
    timeout: Option<String>,
    report: Option<String>,
}

impl RawCheck {
    fn validate(self) -> Result<Check, String> {
        let program = match &self.run {
            CheckCommand::Shell(line) => line.trim(),
            CheckCommand::Argv(argv) => argv.first().map(String::as_str).unwrap_or_default(),
        };
        if program.is_empty() {
            return Err("has no command; name one, as in \"cargo test\"".to_owned());
        }
        let nul = match &self.run {
            CheckCommand::Shell(line) => line.contains('\0'),
            CheckCommand::Argv(argv) => argv.iter().any(|word| word.contains('\0')),
        };
        if nul {
            return Err("has a NUL in its command; remove it".to_owned());
        }
        let timeout = match &self.timeout {
            None => CHECK_TIMEOUT,
            Some(text) => {
                parse_timeout(text).map_err(|error| format!("has the timeout {error}"))?
            }
        };
        Ok(Check { run: self.run, timeout, report: self.report, scrubbed: None })
    }
}

impl<'de> Deserialize<'de> for RawCheck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CheckVisitor)
    }
}

struct CheckVisitor;

impl<'de> Visitor<'de> for CheckVisitor {
    type Value = RawCheck;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command line, a list of words, or a table with `run`")
    }

    fn visit_str<E: de::Error>(self, line: &str) -> Result<RawCheck, E> {
        Ok(RawCheck { run: CheckCommand::Shell(line.to_owned()), timeout: None, report: None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<RawCheck, A::Error> {
        let argv = Vec::deserialize(de::value::SeqAccessDeserializer::new(words))?;
        Ok(RawCheck { run: CheckCommand::Argv(argv), timeout: None, report: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RawCheck, A::Error> {
        let table = RawCheckTable::deserialize(de::value::MapAccessDeserializer::new(table))?;
        Ok(RawCheck { run: table.run.0, timeout: table.timeout, report: table.report })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCheckTable {
    run: RawCommand,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    report: Option<String>,
}

struct RawCommand(CheckCommand);

impl<'de> Deserialize<'de> for RawCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = RawCommand;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command line or a list of words")
    }

    fn visit_str<E: de::Error>(self, line: &str) -> Result<RawCommand, E> {
        Ok(RawCommand(CheckCommand::Shell(line.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<RawCommand, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(words))
            .map(|argv| RawCommand(CheckCommand::Argv(argv)))
    }
}
