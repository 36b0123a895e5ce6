//! The tables `[checks]` and `[claims]` of `counterfoil.toml`: the checks of a project by name, and
//! the files whose changes no agent has to claim. Other tables belong to other crates and are
//! ignored here.

use counterfoil_process::parse_timeout;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// The file's name.
pub const FILE: &str = "counterfoil.toml";
/// How long a check may take that says nothing else.
pub const CHECK_TIMEOUT: Duration = Duration::from_mins(10);
/// A longer file is no configuration.
const LARGEST: u64 = 1 << 20;

/// Files that tools leave behind by themselves: nobody claims them, and nobody misses them in a
/// claim.
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

/// What a project says of its checks and claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The checks that claims can name.
    pub checks: BTreeMap<String, Check>,
    /// Globs of files whose changes nobody claims: [`NOISE`] and the project's own.
    pub noise: Vec<String>,
    /// The file it was read from.
    pub source: Option<PathBuf>,
}

/// A command that says whether something is good, by its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is run, in the workspace's folder.
    pub run: Run,
    /// How long it may take.
    pub timeout: Duration,
    /// The file it leaves with its figures, relative to the workspace's folder.
    pub report: Option<String>,
}

/// What a check runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// A line for `sh -c`.
    Line(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl Run {
    /// As the system gets it.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Line(line) => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
            Self::Argv(argv) => argv.clone(),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => f.write_str(line.trim()),
            Self::Argv(argv) => match shlex::try_join(argv.iter().map(String::as_str)) {
                Ok(line) => f.write_str(&line),
                Err(_) => f.write_str(&argv.join(" ")),
            },
        }
    }
}

impl Check {
    /// A line for `sh -c`, with the usual time.
    pub fn line(line: impl Into<String>) -> Self {
        Self { run: Run::Line(line.into()), timeout: CHECK_TIMEOUT, report: None }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
pub struct ConfigError {
    /// The file.
    pub path: Option<PathBuf>,
    /// What is wrong with it, where, and the way out.
    pub message: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            checks: BTreeMap::new(),
            noise: NOISE.iter().map(|glob| (*glob).to_owned()).collect(),
            source: None,
        }
    }
}

impl Config {
    /// Reads the file in a workspace's folder, or else at the top of its repository; without one,
    /// nothing is configured.
    pub fn load(folder: &Path, top: &Path) -> Result<Self, ConfigError> {
        let Some(file) = ProjectFile::find(folder, top)? else { return Ok(Self::default()) };
        let mut config = Self::parse(&file.text)
            .map_err(|error| ConfigError { path: Some(file.path.clone()), ..error })?;
        config.source = Some(file.path);
        Ok(config)
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError { path: None, message };
        let file: File =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        let at = |place: usize| text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1;
        let mut config = Self::default();
        for glob in file.claims.noise {
            if let Err(error) = Glob::new(glob.get_ref()) {
                return Err(wrong(format!(
                    "line {}: {:?} in claims.noise is no glob: {}; write it as in \"**/build/**\"",
                    at(glob.span().start),
                    glob.get_ref(),
                    error.kind()
                )));
            }
            config.noise.push(glob.into_inner());
        }
        for (name, check) in file.checks {
            let line = at(check.span().start);
            let check = check
                .into_inner()
                .checked()
                .map_err(|why| wrong(format!("line {line}: the check '{name}' {why}")))?;
            config.checks.insert(name, check);
        }
        Ok(config)
    }

    /// The globs of noise as one. One that is no glob is left out; [`Config::parse`] lets none
    /// through.
    pub fn noise(&self) -> GlobSet {
        let mut builder = GlobSetBuilder::new();
        for glob in self.noise.iter().filter_map(|glob| Glob::new(glob).ok()) {
            builder.add(glob);
        }
        builder.build().unwrap_or_default()
    }
}

/// The bytes of a file; none if there is no such file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    // A pipe would be waited for.
    if !meta.is_file() {
        return Err("it is not a file; remove it or put the configuration there".to_owned());
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is longer than {LARGEST} bytes"));
    }
    Ok(Some(bytes))
}

/// The text of a project's `counterfoil.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl ProjectFile {
    /// Reads the file in a workspace's folder, or else at the top of its repository.
    ///
    /// # Errors
    ///
    /// The file exists and cannot be read, is not a regular file, is too long or is not UTF-8.
    pub fn find(folder: &Path, top: &Path) -> Result<Option<Self>, ConfigError> {
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

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    checks: BTreeMap<String, Spanned<WrittenCheck>>,
    #[serde(default)]
    claims: Claims,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Claims {
    noise: Vec<Spanned<String>>,
}

/// A check in one of its three forms.
struct WrittenCheck {
    run: Run,
    timeout: Option<String>,
    report: Option<String>,
}

impl WrittenCheck {
    fn checked(self) -> Result<Check, String> {
        let program = match &self.run {
            Run::Line(line) => line.trim(),
            Run::Argv(argv) => argv.first().map(String::as_str).unwrap_or_default(),
        };
        if program.is_empty() {
            return Err("runs nothing; name a command, as in \"cargo test\"".to_owned());
        }
        let nul = match &self.run {
            Run::Line(line) => line.contains('\0'),
            Run::Argv(argv) => argv.iter().any(|word| word.contains('\0')),
        };
        if nul {
            return Err("has a NUL in its command; take it out".to_owned());
        }
        let timeout = match &self.timeout {
            None => CHECK_TIMEOUT,
            Some(text) => {
                parse_timeout(text).map_err(|error| format!("has the timeout {error}"))?
            }
        };
        Ok(Check { run: self.run, timeout, report: self.report })
    }
}

impl<'de> Deserialize<'de> for WrittenCheck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CheckVisitor)
    }
}

struct CheckVisitor;

impl<'de> Visitor<'de> for CheckVisitor {
    type Value = WrittenCheck;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command line, a list of words, or a table with `run`")
    }

    fn visit_str<E: de::Error>(self, line: &str) -> Result<WrittenCheck, E> {
        Ok(WrittenCheck { run: Run::Line(line.to_owned()), timeout: None, report: None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<WrittenCheck, A::Error> {
        let argv = Vec::deserialize(de::value::SeqAccessDeserializer::new(words))?;
        Ok(WrittenCheck { run: Run::Argv(argv), timeout: None, report: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<WrittenCheck, A::Error> {
        let table = Table::deserialize(de::value::MapAccessDeserializer::new(table))?;
        Ok(WrittenCheck { run: table.run.0, timeout: table.timeout, report: table.report })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    run: WrittenRun,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    report: Option<String>,
}

struct WrittenRun(Run);

impl<'de> Deserialize<'de> for WrittenRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RunVisitor)
    }
}

struct RunVisitor;

impl<'de> Visitor<'de> for RunVisitor {
    type Value = WrittenRun;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command line or a list of words")
    }

    fn visit_str<E: de::Error>(self, line: &str) -> Result<WrittenRun, E> {
        Ok(WrittenRun(Run::Line(line.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<WrittenRun, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(words))
            .map(|argv| WrittenRun(Run::Argv(argv)))
    }
}
