//! Git, independent of the configuration of the user who runs the tests.

use std::path::Path;
use std::process::{Command, Stdio};

/// A git command in a directory. It reads no user or system configuration, inherits no `GIT_*`
/// variable, runs no hooks, and commits as Kim.
pub fn git_command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_EDITOR", "true")
        .env("LC_ALL", "C");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Kim")
            .env(format!("GIT_{role}_EMAIL"), "kim@example.com");
    }
    command
}
