//! The repository of a demo: made anew, left for looking, with nothing of the user's in it.

use crate::lay::{self, Laid};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What holds in the repository whatever the user's git is set to, for us and for the run.
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

/// When the commit was made that a demo begins with: always then, so that it has the same name
/// every time.
const BEGAN: &str = "2026-01-01T00:00:00Z";

/// A demo needs git.
pub(super) fn expect_git() -> Result<()> {
    let found = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            bail!("git does not work here: {}", String::from_utf8_lossy(&output.stderr).trim())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "there is no git on this machine, and a demo runs in a git repository; install git, \
             or see `counterfoil demo contracts`, which needs none"
        ),
        Err(error) => Err(error).context("git cannot be started"),
    }
}

/// The folder of the repository: the one that was chosen, which must be empty, or one in the
/// temporary folder.
pub(super) fn folder(pack: &str, keep: Option<&Path>) -> Result<PathBuf> {
    let folder = match keep {
        Some(keep) => {
            lay::empty_folder(keep, "choose another for --keep")?;
            keep.to_owned()
        }
        None => {
            let made =
                tempfile::Builder::new().prefix(&format!("counterfoil-demo-{pack}-")).tempdir();
            made.context("cannot make a folder for the demo; choose one with --keep DIR")?.keep()
        }
    };
    folder.canonicalize().with_context(|| format!("cannot open {}", folder.display()))
}

/// Makes the repository: one commit of these files, and changes over it that are not committed.
pub(super) fn make(repo: &Path, files: &[Laid<'_>], changes: &[Laid<'_>]) -> Result<()> {
    // An empty template: nobody's hooks, nobody's excludes.
    git(
        repo,
        &["init", "--quiet", "--template=", "--initial-branch=main", "--object-format=sha1"],
    )?;
    for (key, value) in SETTINGS {
        git(repo, &["config", "--local", key, value])?;
    }
    lay::out(repo, files)?;
    git(repo, &["add", "--all", "--force"])?;
    git(repo, &["commit", "--quiet", "--allow-empty", "--no-verify", "--message", "Begin"])?;
    lay::out(repo, changes)
}

/// Git in the repository, deaf to what the user's environment says.
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
        .env("GIT_AUTHOR_DATE", BEGAN)
        .env("GIT_COMMITTER_DATE", BEGAN)
        .arg("-C")
        .arg(repo)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("git cannot be started")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`git {}` failed in {}: {}", arguments.join(" "), repo.display(), said.trim());
    }
    Ok(())
}
