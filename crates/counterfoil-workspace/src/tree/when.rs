//! When a commit was made.

use super::Tree;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Tree {
    /// When the commit that a revision names was made; none if git cannot tell.
    pub fn made(&self, revision: &str) -> Option<SystemTime> {
        let commit = format!("{revision}^{{commit}}");
        let arguments =
            ["log", "-1", "--no-show-signature", "--format=%ct", "--end-of-options", &commit];
        let said = self.git.ask(self.place.as_ref()?, &arguments).ok()?;
        let seconds = String::from_utf8_lossy(&said.stdout).trim().parse().ok()?;
        UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    }
}
