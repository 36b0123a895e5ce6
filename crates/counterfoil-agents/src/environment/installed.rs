//! Finds the programs of adapters and checks their versions.

use super::{AgentEnvironment, version};
use crate::adapters::Adapter;
use crate::config::Settings;
use counterfoil_contract::text::display_path;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The path of the program.
    pub program: PathBuf,
    /// The version, if the program reports one.
    pub version: Option<String>,
    /// How the version compares with the supported ones.
    pub fit: VersionFit,
}

/// How a version compares with the supported ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionFit {
    /// The version is supported.
    Good,
    /// The version is older than the oldest supported one.
    TooOld,
    /// The version is newer than the newest tested one.
    Newer,
    /// The program reports no version.
    Unknown,
}

/// A program that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The program was not found.
    #[error(
        "`{name}` is not installed: {why}; install it with `{install}`, or set its path in counterfoil.toml: [agents.{name}] program = \"…\""
    )]
    Missing {
        /// The name of the program.
        name: String,
        /// Why it was not found.
        why: String,
        /// The command that installs it.
        install: String,
    },
    /// The program does not run.
    #[error("{} cannot be run: {why}", display_path(program))]
    Broken {
        /// The path of the program.
        program: PathBuf,
        /// What went wrong.
        why: String,
    },
    /// The program is too old.
    #[error(
        "{} is version {version}, and at least {oldest} is needed; update it with `{install}`",
        display_path(program)
    )]
    TooOld {
        /// The path of the program.
        program: PathBuf,
        /// The installed version.
        version: String,
        /// The oldest supported version.
        oldest: String,
        /// The command that updates it.
        install: String,
    },
}

/// Finds the program of an adapter and its version.
///
/// # Errors
///
/// The program was not found or does not run.
pub fn inspect(
    adapter: &dyn Adapter,
    settings: &Settings,
    environment: &AgentEnvironment,
) -> Result<Installed, ProgramError> {
    let program = find(adapter, settings, environment)?;
    environment.inspect_once(program.clone(), || {
        let set =
            adapter.version_variables().iter().map(|(name, value)| (name.into(), value.into()));
        let variables: Vec<_> =
            environment.visible_to(adapter, settings).into_iter().chain(set).collect();
        let output = version::query(&program, variables, version::TIMEOUT)
            .map_err(|why| ProgramError::Broken { program: program.clone(), why })?;
        let version = find_version(&output);
        let (oldest, newest) = adapter.versions();
        let fit = fit(version.as_deref(), oldest, newest);
        Ok(Installed { program, version, fit })
    })
}

/// Like [`inspect`], but a program that is too old is an error as well.
///
/// # Errors
///
/// The program was not found, does not run, or is too old.
pub fn require(
    adapter: &dyn Adapter,
    settings: &Settings,
    environment: &AgentEnvironment,
) -> Result<Installed, ProgramError> {
    let found = inspect(adapter, settings, environment)?;
    match found {
        Installed { program, version: Some(version), fit: VersionFit::TooOld } => {
            Err(ProgramError::TooOld {
                program,
                version,
                oldest: adapter.versions().0.to_owned(),
                install: adapter.install().to_owned(),
            })
        }
        found => Ok(found),
    }
}

fn find(
    adapter: &dyn Adapter,
    settings: &Settings,
    environment: &AgentEnvironment,
) -> Result<PathBuf, ProgramError> {
    let missing = |why: String| ProgramError::Missing {
        name: adapter.name().to_owned(),
        why,
        install: adapter.install().to_owned(),
    };
    if let Some(program) = &settings.program {
        let program = environment.folder.join(program);
        return match std::path::absolute(&program) {
            Ok(path) if is_program(&path) => Ok(path),
            _ => Err(missing(format!("{} is not a program", display_path(&program)))),
        };
    }
    let path = environment.variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(adapter.name()))
        .find(|program| is_program(program))
        .ok_or_else(|| missing("it is not on PATH".to_owned()))
}

/// The command line of a program without an adapter, with the program where it is: a relative path
/// begins at the folder of the environment, and a name is looked up on PATH when it is started.
///
/// # Errors
///
/// There is no such program.
pub(crate) fn locate(
    argv: &[String],
    settings: &Settings,
    environment: &AgentEnvironment,
) -> Result<Vec<String>, MissingCommand> {
    let [program, arguments @ ..] = argv else { return Ok(Vec::new()) };
    let missing = |why| MissingCommand { program: program.clone(), why };
    let located = if program.contains('/') {
        let path = std::path::absolute(environment.folder.join(program)).unwrap_or_default();
        if !is_program(&path) {
            let why = if path.exists() { "is not an executable file" } else { "does not exist" };
            return Err(missing(format!("{} {why}", display_path(&path))));
        }
        path.to_str().map_or_else(|| program.clone(), str::to_owned)
    } else {
        let own = settings.env.get("PATH").map(Into::into);
        // Without the variable, it is for the system to say where programs are.
        if let Some(path) = own.or_else(|| environment.variable("PATH"))
            && !std::env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
        {
            return Err(missing("it is not on PATH".to_owned()));
        }
        program.clone()
    };
    Ok(std::iter::once(located).chain(arguments.iter().cloned()).collect())
}

/// A program without an adapter that was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the agent's program `{program}` cannot be started: {why}; install it, put it on PATH or give its full path"
)]
pub struct MissingCommand {
    /// The program, as the spec names it.
    pub program: String,
    /// Why it was not found.
    pub why: String,
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The version in the output of a program: the first word that looks like one.
fn find_version(output: &str) -> Option<String> {
    let words = output.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    let mut words = words.map(|word| word.trim_start_matches('v'));
    words.find(|word| numbers(word).len() >= 2).map(str::to_owned)
}

/// The numbers of a version; empty if the text is not a version.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain.split('.').map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}

fn fit(version: Option<&str>, oldest: &str, newest: &str) -> VersionFit {
    let Some(version) = version.map(numbers) else { return VersionFit::Unknown };
    if version < numbers(oldest) {
        VersionFit::TooOld
    } else if version > numbers(newest) {
        VersionFit::Newer
    } else {
        VersionFit::Good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_the_output_of_programs() {
        let found = [
            "2.1.325 (Acme Code)",
            "acme-cli 0.166.0\n",
            "0.61.0",
            "v1.2.3-beta.1",
            "no version",
            "12",
        ]
        .map(|output| find_version(output).unwrap_or_default());
        assert_eq!(found, ["2.1.325", "0.166.0", "0.61.0", "1.2.3-beta.1", "", ""]);
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let fit = |version| fit(Some(version), "0.99.0", "0.166.0");
        assert_eq!(fit("0.100.0"), VersionFit::Good);
        assert_eq!(fit("0.9.9"), VersionFit::TooOld);
        assert_eq!(fit("0.166.1"), VersionFit::Newer);
        assert_eq!(super::fit(None, "1.0", "2.0"), VersionFit::Unknown);
    }
}
