//! Starts the child and explains why it cannot be started.

use super::{ChildSpec, Environment, MARKER};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Why a child could not be started or its exit could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The argument list is empty.
    #[error("there is no program to run: the argument list is empty")]
    NoProgram,
    /// The marker is empty or contains NUL.
    #[error(
        "`{program}` cannot be started with the marker {marker:?}: a marker must not be empty or contain NUL"
    )]
    BadMarker {
        /// The program, as given.
        program: String,
        /// The rejected marker.
        marker: String,
    },
    /// The working directory does not exist or is not a folder.
    #[error("`{program}` cannot be started in {}: it is not a folder", cwd.display())]
    NoFolder {
        /// The program, as given.
        program: String,
        /// The rejected working directory.
        cwd: PathBuf,
    },
    /// The program was not found.
    #[error(
        "`{program}` cannot be started: there is no such program; install it, put it on PATH or give its full path"
    )]
    Missing {
        /// The program, as given.
        program: String,
    },
    /// The program is a folder.
    #[error("`{program}` cannot be started: it is a folder, not a program")]
    IsFolder {
        /// The program, as given.
        program: String,
    },
    /// The program is not executable.
    #[error("`{program}` cannot be started: it is not executable; run chmod +x on it")]
    NotExecutable {
        /// The program, as given.
        program: String,
    },
    /// The program is a script whose interpreter does not exist.
    #[error(
        "`{program}` cannot be started: the interpreter named in its first line does not exist"
    )]
    NoInterpreter {
        /// The program, as given.
        program: String,
    },
    /// The operating system refused for another reason.
    #[error("`{program}` cannot be started: {source}")]
    Refused {
        /// The program, as given.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The child ran, but its exit status is unknown.
    #[error(
        "the exit status of `{program}` is unknown: {source}; other code in this process may have waited for it"
    )]
    Lost {
        /// The program, as given.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Starts the child in its own session and returns it with the name of its program.
pub(super) fn launch(
    spec: &ChildSpec,
    stdin: Stdio,
) -> Result<(Box<dyn ChildWrapper>, String), SpawnError> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err(SpawnError::NoProgram);
    };
    let name = program.to_string_lossy().into_owned();
    if spec.marker.is_empty() || spec.marker.contains('\0') {
        return Err(SpawnError::BadMarker { program: name, marker: spec.marker.clone() });
    }
    // The operating system reports the same error for a missing folder as for a missing program.
    if !spec.cwd.is_dir() {
        return Err(SpawnError::NoFolder { program: name, cwd: spec.cwd.clone() });
    }
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(arguments).current_dir(&spec.cwd);
        if let Environment::Only(variables) = &spec.environment {
            command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        }
        command
            .envs(spec.extra.iter().map(|(name, value)| (name, value)))
            .env(MARKER, &spec.marker);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    match command.wrap(KillOnDrop).wrap(ProcessSession).spawn() {
        // The wait of the wrapper blocks until the whole group is gone, which the process tree
        // takes care of. So the wrapper is removed.
        Ok(child) => Ok((child.into_inner(), name)),
        Err(error) => Err(classify_error(program, &spec.cwd, name, error)),
    }
}

fn classify_error(program: &OsStr, cwd: &Path, name: String, source: io::Error) -> SpawnError {
    // Only a program with a slash is a path, and it is relative to the child's working directory.
    let is_path = name.contains('/');
    let found = if is_path { std::fs::metadata(cwd.join(program)).ok() } else { None };
    match (source.kind(), found) {
        (io::ErrorKind::PermissionDenied, Some(found)) if found.is_dir() => {
            SpawnError::IsFolder { program: name }
        }
        (io::ErrorKind::PermissionDenied, Some(found))
            if found.permissions().mode() & 0o111 == 0 =>
        {
            SpawnError::NotExecutable { program: name }
        }
        (io::ErrorKind::PermissionDenied, None) if !is_path => {
            SpawnError::NotExecutable { program: name }
        }
        (io::ErrorKind::NotFound, Some(_)) => SpawnError::NoInterpreter { program: name },
        (io::ErrorKind::NotFound, None) => SpawnError::Missing { program: name },
        _ => SpawnError::Refused { program: name, source },
    }
}
