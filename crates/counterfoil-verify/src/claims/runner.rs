//! The test runner that a check is, and whether its run ended as one does. A test can end its
//! process with the exit code 0. Then the runner says less than it does at the end of each run. Pure.

use super::allow::OPERATORS;
use super::figures::{pytest, strip_ansi};
use super::unittest;
use crate::config::CheckCommand;

/// A test runner that a check calls directly, with options with which it prints its summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    Unittest,
    Pytest,
    Cargo,
    /// All test files are run in one process.
    Node,
}

/// How a run that exited with 0 did not end as a test run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    NoSummary,
    /// Its summary says that tests failed.
    HasFailures,
}

impl Unfinished {
    /// The reason, as text for people.
    pub(super) fn text(self, line: &str) -> String {
        match self {
            Self::NoSummary => format!(
                "`{line}` exited with 0 and printed no summary, so its tests did not end in good order"
            ),
            Self::HasFailures => {
                format!("`{line}` exited with 0, but its summary says that tests failed")
            }
        }
    }
}

/// The options of pytest with which it prints its summary, without values.
const PYTEST_OPTIONS: &str = "-q --quiet -v -vv -vvv --verbose -x --exitfirst -s -l --showlocals \
    --lf --last-failed --ff --failed-first --nf --sw --stepwise --strict-markers --strict-config \
    --cov --no-cov --no-header -ra -rA -rf -rs -rx -rfE";
/// Those with a value, in the next word or behind a `=`.
const PYTEST_SETTINGS: &str = "-k -m -n -c -W --maxfail --tb --ignore --ignore-glob --deselect \
    --import-mode --rootdir --durations --junitxml --junit-xml --cov --cov-report \
    --cov-fail-under --cov-config --capture --color --timeout --basetemp --confcutdir --dist";

impl Runner {
    /// The runner that a check calls directly; none if it is another program, if the shell does more
    /// than call it, or if its options may change what it prints.
    pub(super) fn of(run: &CheckCommand) -> Option<Self> {
        let words = match run {
            CheckCommand::Argv(words) => words.clone(),
            CheckCommand::Shell(line) if line.trim().contains(OPERATORS) => return None,
            CheckCommand::Shell(line) => shlex::split(line)?,
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut words = &words[..];
        while let [first, rest @ ..] = words
            && let Some((name, _)) = first.split_once('=')
            && matches!(run, CheckCommand::Shell(_))
        {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                || matches!(name, "PYTEST_ADDOPTS" | "NODE_OPTIONS" | "RUST_TEST_NOCAPTURE")
            {
                return None;
            }
            words = rest;
        }
        let [program, arguments @ ..] = words else { return None };
        let name = program.rsplit('/').next().unwrap_or(program);
        let version = name.strip_prefix("python");
        if version.is_some_and(|it| it.chars().all(|c| c == '.' || c.is_ascii_digit())) {
            return python(arguments);
        }
        match name {
            "pytest" | "py.test" => prints_summary(arguments).then_some(Self::Pytest),
            "cargo" => cargo(arguments),
            "node" => node(arguments),
            _ => None,
        }
    }

    /// How a run that exited with 0 did not end as a test run does, by its whole output.
    pub(super) fn unfinished(self, stdout: &str, stderr: &str) -> Option<Unfinished> {
        match self {
            Self::Unittest => match unittest::summaries(stderr).last() {
                None => Some(Unfinished::NoSummary),
                Some(summary) => summary.has_failed.then_some(Unfinished::HasFailures),
            },
            Self::Pytest => unfinished_pytest(stdout),
            Self::Cargo => is_cargo_unfinished(stdout).then_some(Unfinished::NoSummary),
            Self::Node => {
                let is_summary = |line: &str| {
                    line.starts_with("# tests ") || line.starts_with("\u{2139} tests ")
                };
                (!stdout.lines().any(is_summary)).then_some(Unfinished::NoSummary)
            }
        }
    }
}

/// `python3 -m unittest` or `python3 -m pytest`, with options of Python before it.
fn python(arguments: &[&str]) -> Option<Runner> {
    let mut words = arguments;
    loop {
        words = match words {
            ["-m", "unittest", rest @ ..] => {
                return (!rest.iter().any(|word| matches!(*word, "-h" | "--help")))
                    .then_some(Runner::Unittest);
            }
            ["-m", "pytest", rest @ ..] => {
                return prints_summary(rest).then_some(Runner::Pytest);
            }
            ["-W" | "-X", _, rest @ ..] => rest,
            [
                "-B" | "-E" | "-I" | "-P" | "-s" | "-S" | "-u" | "-O" | "-OO" | "-b" | "-bb",
                rest @ ..,
            ] => rest,
            _ => return None,
        };
    }
}

/// Whether pytest prints its summary with these arguments. With options that are not known here, it
/// may not.
fn prints_summary(arguments: &[&str]) -> bool {
    let has = |list: &str, word: &str| list.split_whitespace().any(|one| one == word);
    let mut quiet = 0_usize;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        quiet += usize::from(matches!(*word, "-q" | "--quiet"));
        if !word.starts_with('-') || has(PYTEST_OPTIONS, word) {
            continue;
        }
        match word.split_once('=') {
            Some((name, _)) if has(PYTEST_SETTINGS, name) => {}
            None if *word == "-p" && words.next() == Some(&"no:cacheprovider") => {}
            None if has(PYTEST_SETTINGS, word) => {
                words.next();
            }
            _ => return false,
        }
    }
    quiet <= 1
}

/// `cargo test`, if what tests print is not shown.
fn cargo(arguments: &[&str]) -> Option<Runner> {
    let arguments = match arguments {
        [toolchain, rest @ ..] if toolchain.starts_with('+') => rest,
        arguments => arguments,
    };
    let ["test" | "t", rest @ ..] = arguments else { return None };
    let shows = ["--nocapture", "--no-capture", "--show-output", "--format", "--list", "-Z"];
    let is_plain = !rest.iter().any(|word| shows.iter().any(|option| word.starts_with(option)));
    is_plain.then_some(Runner::Cargo)
}

/// `node --test`, if it runs the test files in its own process. Otherwise none of them can end it.
fn node(arguments: &[&str]) -> Option<Runner> {
    let changes = ["reporter", "watch", "config", "env-file", "--help"];
    let is_plain = !arguments.iter().any(|word| changes.iter().any(|part| word.contains(part)));
    let is_one_process = arguments.iter().any(|word| word.ends_with("-isolation=none"));
    (arguments.contains(&"--test") && is_one_process && is_plain).then_some(Runner::Node)
}

/// Settings that are not seen here may silence pytest: `addopts = -q` beside `-q`. It then still
/// prints its progress, and other reporters print something else.
fn unfinished_pytest(stdout: &str) -> Option<Unfinished> {
    let mut last = None;
    let (mut has_header, mut is_complete, mut is_only_progress) = (false, false, true);
    for line in stdout.lines() {
        let line = strip_ansi(line);
        let line = line.trim();
        last = pytest(line).or(last);
        has_header |= line.starts_with("=====") && line.contains(" test session starts ");
        is_only_progress &= line.chars().all(|c| ".sxXFEp []%".contains(c) || c.is_ascii_digit());
        is_complete |= line.ends_with("[100%]");
    }
    match last {
        Some(figures) => {
            figures.failed.is_some_and(|failed| failed > 0).then_some(Unfinished::HasFailures)
        }
        None if is_complete => None,
        None => (has_header || is_only_progress).then_some(Unfinished::NoSummary),
    }
}

/// Whether a test program of Rust began its tests and did not end them.
fn is_cargo_unfinished(stdout: &str) -> bool {
    let is_start = |line: &&str| {
        let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(' '));
        count.is_some_and(|(count, what)| {
            count.parse::<u64>().is_ok() && matches!(what, "test" | "tests")
        })
    };
    let started = stdout.lines().filter(is_start).count();
    started > stdout.lines().filter(|line| line.starts_with("test result: ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runners_that_are_called_directly_are_known() {
        let of = |line: &str| Runner::of(&CheckCommand::Shell(line.to_owned()));
        for (line, runner) in [
            ("python3 -m unittest", Runner::Unittest),
            (" python -B -W error -m unittest -q test_a.py\n", Runner::Unittest),
            ("PYTHONPATH=src .venv/bin/python3.12 -m unittest discover -s tests", Runner::Unittest),
            ("pytest", Runner::Pytest),
            ("python3 -m pytest -q -x --tb=short -k 'a and b' tests", Runner::Pytest),
            ("pytest -p no:cacheprovider --maxfail 2", Runner::Pytest),
            ("cargo test --workspace -- --test-threads=1", Runner::Cargo),
            ("cargo +nightly test -q", Runner::Cargo),
            ("node --test --test-isolation=none", Runner::Node),
        ] {
            assert_eq!(of(line), Some(runner), "{line}");
        }
        for line in [
            "",
            "make test",
            "npm test",
            "python3 test_a.py",
            "python3 -c 'import unittest' -m unittest",
            "python3 -m unittest --help",
            "python3 -m unittest 2> log",
            "python3 -m unittest | tee log",
            "python3 -m unittest; true",
            "cd tests && python3 -m unittest",
            "sh -c 'python3 -m unittest'",
            "uv run pytest",
            "pytest -qq",
            "pytest -q -q",
            "pytest -q --quiet",
            "pytest --no-summary",
            "pytest -p no:terminal",
            "pytest --collect-only",
            "PYTEST_ADDOPTS=-q pytest -q",
            "cargo test -- --nocapture",
            "cargo nextest run",
            "cargo build",
            "node --test",
            "node --test --test-isolation=none --test-reporter=dot",
            "node test.js",
            "python3 -m 'unittest",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        let argv = ["python3", "-m", "unittest"].map(str::to_owned).to_vec();
        assert_eq!(Runner::of(&CheckCommand::Argv(argv)), Some(Runner::Unittest));
        assert_eq!(Runner::of(&CheckCommand::Argv(Vec::new())), None);
    }

    #[test]
    fn a_run_ends_with_a_summary() {
        use Unfinished::{HasFailures, NoSummary};
        let header = "======= test session starts =======\ncollected 3 items\n";
        let bar = "-".repeat(70);
        let unittest = |result: &str| format!("..\n{bar}\nRan 2 tests in 0.001s\n\n{result}\n");
        for (runner, stdout, stderr, expected) in [
            (Runner::Unittest, "", unittest("OK"), None),
            (Runner::Unittest, "", unittest("OK") + "sys:1: ResourceWarning: unclosed\n", None),
            (Runner::Unittest, "", unittest("FAILED (failures=1)"), Some(HasFailures)),
            (Runner::Unittest, "", "..".to_owned(), Some(NoSummary)),
            (Runner::Unittest, "Ran 2 tests in 0.001s\n\nOK\n", String::new(), Some(NoSummary)),
            (Runner::Pytest, "==== 3 passed in 0.10s ====\n", String::new(), None),
            (Runner::Pytest, "1 failed, 3 passed in 0.10s\n", String::new(), Some(HasFailures)),
            (
                Runner::Pytest,
                ".F   [100%]\n1 failed, 1 passed in 0.10s\n",
                String::new(),
                Some(HasFailures),
            ),
            (Runner::Pytest, "", String::new(), Some(NoSummary)),
            (Runner::Pytest, "..s", String::new(), Some(NoSummary)),
            (Runner::Pytest, header, String::new(), Some(NoSummary)),
            // Settings or another reporter changed what it prints.
            (Runner::Pytest, "...    [100%]\n", String::new(), None),
            (Runner::Pytest, "Results (0.12s):\n", String::new(), None),
            (
                Runner::Cargo,
                "\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed\n",
                String::new(),
                None,
            ),
            (Runner::Cargo, "", String::new(), None),
            (Runner::Cargo, "running for 2 tests\n", String::new(), None),
            (
                Runner::Cargo,
                "running 0 tests\n\ntest result: ok. 0 passed\n\nrunning 2 tests\n",
                String::new(),
                Some(NoSummary),
            ),
            (Runner::Node, "# tests 3\n# pass 3\n", String::new(), None),
            (Runner::Node, "\u{2139} tests 3\n", String::new(), None),
            (Runner::Node, "TAP version 13\n", String::new(), Some(NoSummary)),
        ] {
            assert_eq!(runner.unfinished(stdout, &stderr), expected, "{runner:?} {stdout}{stderr}");
        }
    }
}
