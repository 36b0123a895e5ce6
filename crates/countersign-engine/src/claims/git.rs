//! Asks git, bounded in time and output, in a way that runs nothing of the repository's own.

use super::World;
use crate::process::{Cause, Clocks, Environment, Exit, Output, Spawn, Watch, supervise};
use std::ops::ControlFlow;
use std::time::Duration;

/// No question of ours takes so long.
const PATIENCE: Duration = Duration::from_mins(2);
/// More than this is not listened to.
const MOST: usize = 64 << 20;

/// What git said.
pub(super) struct Said {
    pub(super) ok: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

/// Runs git in the workspace's folder; if that cannot be done, why.
pub(super) async fn git(arguments: &[&str], stdin: Vec<u8>, world: &World<'_>) -> Result<Said, String> {
    let fixed = [
        "git",
        "--no-pager",
        "--no-replace-objects",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
    ];
    let mut hearing = Hearing::default();
    // Variables that would point git at another repository than the one it stands in.
    let elsewhere = [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
    ];
    let environment =
        std::env::vars_os().filter(|(name, _)| !elsewhere.iter().any(|other| name == other)).collect();
    let spawn = Spawn {
        argv: fixed.iter().chain(arguments).map(Into::into).collect(),
        cwd: world.folder.to_owned(),
        environment: Environment::Only(environment),
        extra: [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
            ("GIT_NO_LAZY_FETCH", "1"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into(),
        stdin,
        marker: world.marker.clone(),
        clocks: Clocks { total: Some(PATIENCE), ..Clocks::default() },
    };
    let ended =
        supervise(spawn, &mut hearing, world.stop.clone()).await.map_err(|error| error.to_string())?;
    match ended.cause {
        Cause::Finished => {}
        Cause::Stopped => return Err("it was stopped".to_owned()),
        Cause::Watcher => return Err(format!("git said more than {MOST} bytes")),
        Cause::Startup | Cause::Idle | Cause::Total => {
            return Err(format!("git took longer than {} s", PATIENCE.as_secs()));
        }
    }
    let stderr = String::from_utf8_lossy(&hearing.stderr).trim().to_owned();
    Ok(Said { ok: ended.exit == Exit::Code(0), stdout: hearing.stdout, stderr })
}

#[derive(Default)]
struct Hearing {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Watch for Hearing {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        match output {
            Output::Stdout(bytes) => self.stdout.extend_from_slice(bytes),
            Output::Stderr(bytes) => {
                let room = (4usize << 10).saturating_sub(self.stderr.len()).min(bytes.len());
                self.stderr.extend_from_slice(&bytes[..room]);
            }
        }
        if self.stdout.len() > MOST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
