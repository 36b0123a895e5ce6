//! The time of a commit.

use super::Snapshotter;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Snapshotter {
    /// The time of the commit that a revision names. `None` if git cannot tell.
    pub fn commit_time(&self, revision: &str) -> Option<SystemTime> {
        let commit = format!("{revision}^{{commit}}");
        let arguments =
            ["log", "-1", "--no-show-signature", "--format=%ct", "--end-of-options", &commit];
        let output = self.git.run(self.location.as_ref()?, &arguments).ok()?;
        let seconds = String::from_utf8_lossy(&output.stdout).trim().parse().ok()?;
        UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    }
}
