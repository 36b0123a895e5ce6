//! Waiting for processes, signalling them, and finding the ones that are left.

use std::process::Command;
use std::time::{Duration, Instant};

/// How long a test waits for something, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(1);
/// The pause between two looks at a condition that nothing notifies us about.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Polls a condition until it yields a value, and panics after the timeout.
pub fn wait_until<T>(timeout: Duration, condition: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < timeout, "timed out after {timeout:?} waiting until {condition}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a signal to a process, or to a process group if the id begins with `-`.
pub fn send_signal(signal: &str, pid: &str) {
    let status =
        Command::new("sh").args(["-c", "kill -s \"$1\" -- \"$2\"", "kill", signal, pid]).status();
    assert!(status.unwrap().success(), "cannot send {signal} to {pid}");
}

/// The processes whose `COUNTERFOIL_ATTEMPT` variable begins with a prefix (the id of a run, or of an
/// attempt), each as its id and command line.
pub fn processes_in_attempts(prefix: &str) -> Vec<String> {
    let variable = format!("COUNTERFOIL_ATTEMPT={prefix}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(variable.as_bytes()))
        {
            let command_line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!(
                "{} {}",
                entry.file_name().display(),
                String::from_utf8_lossy(&command_line).replace('\0', " ")
            ));
        }
    }
    found
}
