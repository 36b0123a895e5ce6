//! Git without anything of whoever runs the tests.

use std::path::Path;
use std::process::{Command, Stdio};

/// Git in a folder, with nothing of whoever runs the tests.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null());
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("LC_ALL", "C");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_EDITOR", "true");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Kim")
            .env(format!("GIT_{who}_EMAIL"), "kim@example.com");
    }
    command
}
