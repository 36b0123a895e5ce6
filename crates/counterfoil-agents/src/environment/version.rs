//! Runs a program with `--version`: in bounded time, with bounded output, and leaving nothing behind.

use crate::adapters::common::truncate;
use counterfoil_contract::text::duration;
use counterfoil_process::{
    Cause, ChildSpec, Environment, Exit, Output, OutputSink, StopRequest, Timeouts, supervise,
};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a program may take to print its version. Some need a second, and many times that on a
/// busy machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of each output is kept.
const MAX_KEPT_BYTES: usize = 4096;
/// How much output is read before the program is stopped.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// How many lines of what a program said are quoted.
const MAX_LINES: usize = 5;
/// How many characters of what a program said are quoted.
const MAX_CHARS: usize = 400;

/// Runs a program with `--version` and returns its output.
///
/// # Errors
///
/// Why there is none, with what the program itself said.
pub(super) fn query(
    program: &Path,
    variables: Vec<(OsString, OsString)>,
    timeout: Duration,
) -> Result<String, String> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let spec = ChildSpec {
        argv: vec![program.into(), "--version".into()],
        cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
        environment: Environment::Only(variables),
        extra: Vec::new(),
        stdin: Vec::new(),
        marker: format!("version/{}-{}-{call}", std::process::id(), uuid::Uuid::now_v7()),
        timeouts: Timeouts {
            total: Some(timeout),
            grace: Duration::from_secs(1),
            ..Timeouts::default()
        },
    };
    // A thread of its own: the caller may be in a runtime already.
    let supervised = std::thread::scope(|scope| {
        scope.spawn(move || run(spec)).join().unwrap_or_else(|_| Err("it was not observed".into()))
    });
    let (cause, exit, said) = supervised?;
    let why = match (cause, exit) {
        (Cause::Finished, Exit::Code(0)) => {
            return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
        }
        (Cause::Finished, Exit::Code(code)) => format!("`--version` ended with exit code {code}"),
        (Cause::Finished, Exit::Signal(signal)) => {
            format!("`--version` was killed by signal {signal}")
        }
        (Cause::SinkStopped, _) => {
            format!("`--version` wrote more than {} MiB and was stopped", MAX_OUTPUT_BYTES >> 20)
        }
        _ => {
            format!("it did not print its version within {} and was stopped", duration(timeout))
        }
    };
    Err(match said.quote() {
        Some(quote) => format!("{why}; it said: {quote}"),
        None => format!("{why}; it said nothing"),
    })
}

fn run(spec: ChildSpec) -> Result<(Cause, Exit, Said), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut said = Said::default();
    let (_keep, stop) = watch::channel(StopRequest::None);
    let ended = runtime.block_on(supervise(spec, &mut said, stop));
    ended.map(|ended| (ended.cause, ended.exit, said)).map_err(|error| error.to_string())
}

/// The beginning of what a program wrote.
#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    bytes: usize,
}

impl OutputSink for Said {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let (kept, bytes) = match output {
            Output::Stdout(bytes) => (&mut self.stdout, bytes),
            Output::Stderr(bytes) => (&mut self.stderr, bytes),
        };
        let room = MAX_KEPT_BYTES.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_OUTPUT_BYTES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Said {
    /// The first lines of standard error, or of standard output if that is empty, as one line
    /// without anything that a terminal would obey.
    fn quote(&self) -> Option<String> {
        let quote = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines: Vec<&str> = lines.take(MAX_LINES).collect();
            let quote = truncate(&lines.join(" | "), MAX_CHARS);
            (!quote.is_empty()).then_some(quote)
        };
        quote(&self.stderr).or_else(|| quote(&self.stdout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// What a script of the shell is found to say in one second, and how long that took.
    fn asked(script: &str) -> (Result<String, String>, Duration, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("acme");
        std::fs::write(&program, format!("#!/bin/sh\ncd \"${{0%/*}}\"\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let began = Instant::now();
        let found = query(&program, vec![("PATH".into(), path)], Duration::from_secs(1));
        (found, began.elapsed(), folder)
    }

    #[test]
    fn what_the_program_itself_said_is_quoted() {
        for (script, expected) in [
            (
                "echo out of order >&2; exit 3",
                "`--version` ended with exit code 3; it said: out of order",
            ),
            ("exit 3", "`--version` ended with exit code 3; it said nothing"),
            ("echo 'on stdout'; exit 1", "`--version` ended with exit code 1; it said: on stdout"),
            (
                "printf 'a\\n\\n  b\\nc\\nd\\ne\\nf\\n' >&2; echo 1.2.3; exit 1",
                "`--version` ended with exit code 1; it said: a | b | c | d | e",
            ),
            ("kill -9 $$", "`--version` was killed by signal 9; it said nothing"),
        ] {
            assert_eq!(asked(script).0.unwrap_err(), expected, "{script}");
        }
        let escapes = asked("printf 'a\\033[31mred\\033]0;title\\007\\302\\233 \\377' >&2; exit 1");
        let quote = escapes.0.unwrap_err();
        assert!(!quote.chars().any(char::is_control), "{quote:?}");
        assert!(quote.contains("red"), "{quote}");
        let long = asked("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1").0.unwrap_err();
        assert!(long.chars().count() < 500 && long.ends_with('…'), "{long}");
    }

    #[test]
    fn a_version_is_printed() {
        assert_eq!(asked("echo 1.2.3; echo warning >&2").0.unwrap(), "1.2.3\n");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_that_it_started() {
        let (found, took, folder) = asked(
            "echo waiting for a person >&2; trap '' TERM; (setsid sleep 300 & echo $! > child); sleep 300 & echo $! > other; wait; wait",
        );
        assert_eq!(
            found.unwrap_err(),
            "it did not print its version within 1 s and was stopped; it said: waiting for a person"
        );
        assert!(took < Duration::from_secs(20), "{took:?}");
        for file in ["child", "other"] {
            let pid = std::fs::read_to_string(folder.path().join(file)).unwrap();
            let state = std::fs::read_to_string(format!("/proc/{}/comm", pid.trim()));
            assert!(state.is_err(), "{file} is still there: {state:?}");
        }
    }

    #[test]
    fn a_flood_ends_at_once_and_is_not_kept() {
        for flood in ["yes", "yes >&2", "cat /dev/zero"] {
            let (found, took, _) = asked(flood);
            let why = found.unwrap_err();
            assert!(why.starts_with("`--version` wrote more than 1 MiB and was stopped"), "{why}");
            assert!(took < Duration::from_secs(15), "{flood} took {took:?}");
            assert!(why.len() < 5000, "{}", why.len());
        }
    }

    #[test]
    fn a_child_that_keeps_the_output_open_is_not_waited_for() {
        let (found, took, _) = asked("sleep 300 & echo 1.2.3");
        assert_eq!(found.unwrap(), "1.2.3\n");
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
}
