//! Whether a program that plays agents is there, and which version it has.

use super::Equipment;
use super::adapter::Adapter;
use crate::config::Settings;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where.
    pub program: PathBuf,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// How that stands to what is known.
    pub fit: Fit,
}

/// How a version stands to those that are known to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is one of them.
    Good,
    /// It is older.
    TooOld,
    /// It is newer than any that was tried.
    Newer,
    /// It says no version.
    Unknown,
}

/// A program that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It is not there.
    #[error(
        "`{name}` is not installed: {looked}; install it with `{install}`, or name it in counterfoil.toml: [agents.{name}] program = \"…\""
    )]
    Missing {
        /// The program.
        name: String,
        /// Where it was looked for, in words.
        looked: String,
        /// How it is installed.
        install: String,
    },
    /// It is there and does not run.
    #[error("{} cannot be run: {why}", program.display())]
    Broken {
        /// Where it is.
        program: PathBuf,
        /// Why.
        why: String,
    },
    /// It is too old.
    #[error("{} is version {version}, and at least {oldest} is needed; update it with `{install}`", program.display())]
    TooOld {
        /// Where it is.
        program: PathBuf,
        /// Its version.
        version: String,
        /// The oldest that works.
        oldest: String,
        /// How it is updated.
        install: String,
    },
}

/// How long a program may take to say its version: some need a second for it, and many times that
/// on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// Looks whether a program can play agents.
pub fn look(
    adapter: &dyn Adapter,
    settings: &Settings,
    equipment: &Equipment,
) -> Result<Installed, Trouble> {
    let program = find(adapter, settings, equipment)?;
    equipment.looked_at(program.clone(), || {
        let set = adapter.for_version().iter().map(|(name, value)| (name.into(), value.into()));
        let variables: Vec<_> =
            equipment.seen_by(adapter, settings).into_iter().chain(set).collect();
        let said = version_of(&program, &variables)
            .map_err(|why| Trouble::Broken { program: program.clone(), why })?;
        let version = version_in(&said);
        let (oldest, newest) = adapter.versions();
        let fit = fit(version.as_deref(), oldest, newest);
        Ok(Installed { program, version, fit })
    })
}

/// The same for one that is about to play: one that is too old is none.
pub fn needed(
    adapter: &dyn Adapter,
    settings: &Settings,
    equipment: &Equipment,
) -> Result<Installed, Trouble> {
    let found = look(adapter, settings, equipment)?;
    match found {
        Installed { program, version: Some(version), fit: Fit::TooOld } => Err(Trouble::TooOld {
            program,
            version,
            oldest: adapter.versions().0.to_owned(),
            install: adapter.install().to_owned(),
        }),
        found => Ok(found),
    }
}

fn find(
    adapter: &dyn Adapter,
    settings: &Settings,
    equipment: &Equipment,
) -> Result<PathBuf, Trouble> {
    let missing = |looked: String| Trouble::Missing {
        name: adapter.name().to_owned(),
        looked,
        install: adapter.install().to_owned(),
    };
    if let Some(program) = &settings.program {
        let program = equipment.folder.join(program);
        return match std::path::absolute(&program) {
            Ok(path) if is_program(&path) => Ok(path),
            _ => Err(missing(format!("{} is not a program", program.display()))),
        };
    }
    let path = equipment.variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(adapter.name()))
        .find(|program| is_program(program))
        .ok_or_else(|| missing("it is not on PATH".to_owned()))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// What a program says when it is asked for its version.
fn version_of(
    program: &Path,
    variables: &[(std::ffi::OsString, std::ffi::OsString)],
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not say its version within {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = stdout.take(4096).read_to_end(&mut said);
    }
    if status.success() {
        Ok(String::from_utf8_lossy(&said).into_owned())
    } else {
        Err(format!("asked for its version, it ended with {status}"))
    }
}

/// The version in what a program says: the first word that is one.
fn version_in(said: &str) -> Option<String> {
    let words = said.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    let mut words = words.map(|word| word.trim_start_matches('v'));
    words.find(|word| numbers(word).len() >= 2).map(str::to_owned)
}

/// The numbers of a version; none if it is none.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain.split('.').map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}

fn fit(version: Option<&str>, oldest: &str, newest: &str) -> Fit {
    let Some(version) = version.map(numbers) else { return Fit::Unknown };
    if version < numbers(oldest) {
        Fit::TooOld
    } else if version > numbers(newest) {
        Fit::Newer
    } else {
        Fit::Good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        let found = [
            "2.1.325 (Acme Code)",
            "acme-cli 0.166.0\n",
            "0.61.0",
            "v1.2.3-beta.1",
            "no version",
            "12",
        ]
        .map(|said| version_in(said).unwrap_or_default());
        assert_eq!(found, ["2.1.325", "0.166.0", "0.61.0", "1.2.3-beta.1", "", ""]);
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let fit = |version| fit(Some(version), "0.99.0", "0.166.0");
        assert_eq!(fit("0.100.0"), Fit::Good);
        assert_eq!(fit("0.9.9"), Fit::TooOld);
        assert_eq!(fit("0.166.1"), Fit::Newer);
        assert_eq!(super::fit(None, "1.0", "2.0"), Fit::Unknown);
    }
}
