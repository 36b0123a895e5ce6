//! Starts the child, and says in words why it cannot be started.

use super::{ChildSpec, Environment, MARKER};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A child that could not be started, or that was lost.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The argument list is empty.
    #[error(
        "there is no program to run: the argument list is empty; name a program as its first item"
    )]
    NoProgram,
    /// The marker cannot be put into an environment.
    #[error(
        "`{program}` cannot be started with the marker {marker:?}; a marker is a text without NUL, and not empty"
    )]
    BadMarker {
        /// The program.
        program: String,
        /// The marker.
        marker: String,
    },
    /// The folder to run in is none.
    #[error("`{program}` cannot be started in {}: it is not a folder; create it or name another", cwd.display())]
    NoFolder {
        /// The program.
        program: String,
        /// The folder.
        cwd: PathBuf,
    },
    /// There is no such program.
    #[error(
        "`{program}` cannot be started: there is no such program; install it, put it on PATH or give its full path"
    )]
    Missing {
        /// The program.
        program: String,
    },
    /// The program is a folder.
    #[error("`{program}` cannot be started: it is a folder; name the program in it")]
    IsFolder {
        /// The program.
        program: String,
    },
    /// The program may not be executed.
    #[error("`{program}` cannot be started: it is not executable; make it so with chmod +x")]
    NotExecutable {
        /// The program.
        program: String,
    },
    /// The file is there, but what its first line names is not.
    #[error(
        "`{program}` cannot be started: the interpreter it asks for is missing; see its first line"
    )]
    NoInterpreter {
        /// The program.
        program: String,
    },
    /// The system refused for another reason.
    #[error("`{program}` cannot be started: {source}")]
    Refused {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The child ran, but how it ended cannot be known.
    #[error("`{program}` was lost: {source}; does other code in this process wait for any child?")]
    Lost {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
}

/// Starts the child in a session of its own, and gives it back with its program's name.
pub(super) fn launch(spec: &ChildSpec) -> Result<(Box<dyn ChildWrapper>, String), SpawnError> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err(SpawnError::NoProgram);
    };
    let name = program.to_string_lossy().into_owned();
    if spec.marker.is_empty() || spec.marker.contains('\0') {
        return Err(SpawnError::BadMarker { program: name, marker: spec.marker.clone() });
    }
    // The system says the same of a missing folder as of a missing program.
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
        let stdin = if spec.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    match command.wrap(KillOnDrop).wrap(ProcessSession).spawn() {
        // The wrapper's wait would block until the whole group is gone; the tree sees to that, so
        // it comes off.
        Ok(child) => Ok((child.into_inner(), name)),
        Err(error) => Err(classify_error(program, &spec.cwd, name, error)),
    }
}

fn classify_error(program: &OsStr, cwd: &Path, name: String, source: io::Error) -> SpawnError {
    // Only a program with a slash is a path, and it counts from the child's folder.
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
