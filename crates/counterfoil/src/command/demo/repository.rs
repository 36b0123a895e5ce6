//! The repository of a demo: a new one that stays for inspection and does not depend on the user's
//! git configuration.

use crate::unpack::{self, FileToWrite};
use anyhow::{Context, Result, bail};
use counterfoil_contract::text::display_path;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Settings of the repository that override the user's git configuration.
const SETTINGS: [(&str, &str); 9] = [
    ("user.name", "Counterfoil demo"),
    ("user.email", "demo@counterfoil.invalid"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.autocrlf", "false"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
];

/// The date of the first commit. It is fixed, so that the commit hash is always the same.
const COMMIT_DATE: &str = "2026-01-01T00:00:00Z";

/// Returns an error if git is not available.
pub(super) fn require_git() -> Result<()> {
    let found = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            bail!("git does not work: {}", String::from_utf8_lossy(&output.stderr).trim())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "git is not installed, and the demo needs it; install git, or run `counterfoil demo contracts`, \
             which does not need it"
        ),
        Err(error) => Err(error).context("cannot start git"),
    }
}

/// Creates the folder of the repository: the chosen one, which must be empty, or a temporary one.
pub(super) fn create_folder(pack: &str, keep: Option<&Path>) -> Result<PathBuf> {
    let folder = match keep {
        Some(keep) => {
            unpack::create_empty_folder(keep, "choose another for --keep")?;
            keep.to_owned()
        }
        None => {
            let folder =
                tempfile::Builder::new().prefix(&format!("counterfoil-demo-{pack}-")).tempdir();
            folder
                .context("cannot create a folder for the demo; choose one with --keep DIR")?
                .keep()
        }
    };
    folder.canonicalize().with_context(|| format!("cannot open {}", display_path(&folder)))
}

/// Initializes the repository with one commit of `files`, and `changes` that are not committed.
pub(super) fn initialize(
    repo: &Path,
    files: &[FileToWrite<'_>],
    changes: &[FileToWrite<'_>],
) -> Result<()> {
    // An empty template excludes the user's hooks and ignore rules.
    git(
        repo,
        &["init", "--quiet", "--template=", "--initial-branch=main", "--object-format=sha1"],
    )?;
    for (key, value) in SETTINGS {
        git(repo, &["config", "--local", key, value])?;
    }
    unpack::write_files(repo, files)?;
    git(repo, &["add", "--all", "--force"])?;
    git(repo, &["commit", "--quiet", "--allow-empty", "--no-verify", "--message", "Begin"])?;
    unpack::write_files(repo, changes)
}

/// Runs git in the repository, without the user's configuration and environment.
fn git(repo: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
    {
        command.env_remove(name);
    }
    let output = command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_DATE", COMMIT_DATE)
        .env("GIT_COMMITTER_DATE", COMMIT_DATE)
        .arg("-C")
        .arg(repo)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot start git")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`git {}` failed in {}: {}", arguments.join(" "), display_path(repo), stderr.trim());
    }
    Ok(())
}
