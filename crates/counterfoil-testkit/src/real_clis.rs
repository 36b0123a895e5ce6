//! The real command lines of the agents, the browser, and counting the tests that are skipped without them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The `testing` directory of the repository: the mock server and the pinned command lines.
pub fn testing_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing").canonicalize().unwrap()
}

/// The directory with the agents' command lines, or `None` if the test must be skipped.
///
/// A skipped test is reported by [`report_skip`]. With `COUNTERFOIL_NO_SKIPS`, it fails instead unless
/// the npm registry was unreachable (`COUNTERFOIL_TEST_UNREACHABLE`).
pub fn installed_clis() -> Option<PathBuf> {
    let output = Command::new(testing_dir().join("install-clis")).arg("--where").output().unwrap();
    let dir = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
    if dir.join("bin/claude").exists() {
        return Some(dir);
    }
    let unreachable = std::env::var_os("COUNTERFOIL_TEST_UNREACHABLE").is_some();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        unreachable || std::env::var_os("COUNTERFOIL_NO_SKIPS").is_none(),
        "{name} must not be skipped here, but no command lines are installed in {}",
        dir.display()
    );
    let reason =
        if unreachable { "the npm registry did not answer" } else { "run testing/install-clis" };
    report_skip(&format!("the agents' command lines are not installed; {reason}"));
    None
}

/// The python that can drive a browser, or `None` if the test must be skipped.
///
/// As with [`installed_clis`], with `COUNTERFOIL_NO_SKIPS` the test fails instead unless a registry
/// was unreachable (`COUNTERFOIL_TEST_BROWSER_UNREACHABLE`).
pub fn installed_browser() -> Option<PathBuf> {
    let output = Command::new(testing_dir().join("install-browser")).arg("--where").output();
    let python = PathBuf::from(String::from_utf8(output.unwrap().stdout).unwrap().trim_end());
    if python.exists() && Path::new("/usr/bin/chromium").exists() {
        return Some(python);
    }
    let unreachable = std::env::var_os("COUNTERFOIL_TEST_BROWSER_UNREACHABLE").is_some();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        unreachable || std::env::var_os("COUNTERFOIL_NO_SKIPS").is_none(),
        "{name} must not be skipped here, but there is no browser, or nothing that drives it in {}",
        python.display()
    );
    let reason =
        if unreachable { "a registry did not answer" } else { "run testing/install-browser" };
    report_skip(&format!("no browser is installed; {reason}"));
    None
}

/// Reports that the current test is skipped: on standard error, and in the file that
/// `COUNTERFOIL_TEST_SKIPS` names, because test runners hide the output of tests that pass.
#[allow(clippy::disallowed_methods)]
pub fn report_skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED: {name}: {reason}");
    if let Some(list) = std::env::var_os("COUNTERFOIL_TEST_SKIPS") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(list).unwrap();
        // One call, because tests write at the same time.
        file.write_all(format!("{name}: {reason}\n").as_bytes()).unwrap();
    }
}
