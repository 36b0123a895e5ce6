//! A project for the blocks of one page: a repository with one commit, a home folder that is empty,
//! and the program on the `PATH`.

use crate::{PROGRAM, root, trial};
use counterfoil_testkit::git_command;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process_group};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a command of a page may take.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long a command has to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct Sandbox {
    root: TempDir,
    /// The variables that commands of the page assigned.
    assigned: RefCell<BTreeMap<String, String>>,
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; none if the command was ended by a signal or took too long.
    pub(crate) code: Option<i32>,
    pub(crate) took_too_long: bool,
    /// Standard output and standard error, in the order of printing.
    pub(crate) output: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let sandbox = Self { root: TempDir::new().unwrap(), assigned: RefCell::default() };
        for folder in ["project", "home", "bin", "tmp"] {
            std::fs::create_dir(sandbox.path(folder)).unwrap();
        }
        std::os::unix::fs::symlink(PROGRAM, sandbox.path("bin/counterfoil")).unwrap();
        for arguments in [
            &["init", "--quiet", "-b", "main"][..],
            &["commit", "-q", "--allow-empty", "-m", "Start"],
        ] {
            let status = git_command(&sandbox.path("project"), arguments).status().unwrap();
            assert!(status.success(), "git {arguments:?}");
        }
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path("project").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs a script with these options of the shell. A variable that it assigns, and does nothing
    /// else, is there for the scripts that follow, as in the shell of a reader.
    pub(crate) fn run(&self, options: &[&str], script: &str) -> Ended {
        let Some(name) = assigned_variable(script) else {
            return self.run_for(TIMEOUT, options, script);
        };
        let script = format!("{} && printf %s \"${name}\"", script.trim());
        let ended = self.run_for(TIMEOUT, options, &script);
        if ended.code != Some(0) {
            return ended;
        }
        self.assigned.borrow_mut().insert(name.to_owned(), ended.output);
        Ended { output: String::new(), ..ended }
    }

    fn run_for(&self, timeout: Duration, options: &[&str], script: &str) -> Ended {
        let output = self.path("output");
        // One description of the file, so that both streams write where the other one ended. A
        // file, because something in the background may keep a pipe open.
        let both = File::create(&output).unwrap();
        let mut command = Command::new("sh");
        command
            .args(options)
            .args(["-c", script])
            .current_dir(self.path("project"))
            .env_clear()
            .envs(self.environment())
            .envs(&*self.assigned.borrow())
            .stdin(Stdio::null())
            .stdout(both.try_clone().unwrap())
            .stderr(both)
            .process_group(0);
        let (status, took_too_long) = wait(command.spawn().unwrap(), timeout);
        Ended {
            code: status.code().filter(|_| !took_too_long),
            took_too_long,
            output: String::from_utf8_lossy(&std::fs::read(output).unwrap()).into_owned(),
        }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let variable = |name, value: &str| (name, value.to_owned());
        let mut variables = vec![
            ("PATH", format!("{}:{path}", self.path("bin").display())),
            ("HOME", self.path("home").display().to_string()),
            // The demos leave their repositories there.
            ("TMPDIR", self.path("tmp").display().to_string()),
            // Where a job of GitHub Actions writes files that are not part of the checkout.
            ("RUNNER_TEMP", self.path("tmp").display().to_string()),
            // For `setup`: where the examples are.
            ("SOURCE", root().display().to_string()),
            variable("NO_COLOR", "1"),
            variable("LANG", "C.UTF-8"),
            variable("TZ", "UTC"),
            // Python prints at once, as it does at a terminal.
            variable("PYTHONUNBUFFERED", "1"),
            variable("GIT_CONFIG_SYSTEM", "/dev/null"),
        ];
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            variables.push(variable(name, "Kim"));
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            variables.push(variable(name, "kim@example.com"));
        }
        variables
    }
}

/// The variable to which a script assigns the output of a command, if it does nothing else.
fn assigned_variable(script: &str) -> Option<&str> {
    let (name, value) = script.trim().split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let is_output = value.starts_with("$(") && value.ends_with(')') && value.lines().count() == 1;
    (is_name && is_output).then_some(name)
}

/// Waits until a command ends, and ends it if it takes too long. Nothing of its process group is left.
fn wait(mut child: Child, timeout: Duration) -> (ExitStatus, bool) {
    let group = Pid::from_child(&child);
    let mut ends_within = |timeout: Duration| {
        let start = Instant::now();
        loop {
            let status = child.try_wait().unwrap();
            if status.is_some() || start.elapsed() > timeout {
                return status;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    };
    let ended = ends_within(timeout);
    if ended.is_none() {
        // The program ends its agents, which are in groups of their own.
        let _ = kill_process_group(group, Signal::TERM);
        ends_within(STOP_GRACE);
    }
    let _ = kill_process_group(group, Signal::KILL);
    (ended.unwrap_or_else(|| child.wait().unwrap()), ended.is_none())
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("sandbox", "a_command_that_takes_too_long_is_ended", slow_commands_are_ended),
        trial("sandbox", "the_project_is_a_repository_and_home_is_empty", the_project_is_clean),
        trial("sandbox", "both_streams_are_in_the_order_of_printing", both_streams_are_in_order),
        trial("sandbox", "a_variable_is_there_for_the_next_command", variables_are_kept),
    ]
}

fn slow_commands_are_ended() {
    let sandbox = Sandbox::new();
    let script = "sleep 600 & echo $! > background; echo before; sleep 600";
    let ended = sandbox.run_for(Duration::from_millis(300), &[], script);
    assert!(ended.took_too_long && ended.code.is_none(), "{ended:?}");
    assert_eq!(ended.output, "before\n");
    let background = std::fs::read_to_string(sandbox.path("project/background")).unwrap();
    let alive = || sandbox.run(&[], &format!("kill -0 {background}")).code == Some(0);
    counterfoil_testkit::wait_until(Duration::from_secs(10), "the group is gone", || {
        (!alive()).then_some(())
    });
}

fn the_project_is_clean() {
    let sandbox = Sandbox::new();
    let ended =
        sandbox.run(&["-eu"], "git log --format=%s; git status --short; ls -A ~; counterfoil -V");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.starts_with("Start\ncounterfoil "), "{ended:?}");
}

fn variables_are_kept() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&[], "base=$(git log --format=%s)\n");
    assert!(ended.code == Some(0) && ended.output.is_empty(), "{ended:?}");
    assert_eq!(sandbox.run(&[], "echo \"$base\"").output, "Start\n");
    assert_eq!(sandbox.run(&[], "base=$(exit 3)").code, Some(3));
    for script in ["NO_COLOR=1 true", "base=1 true", "base=$(true)\necho $(true)"] {
        assert_eq!(assigned_variable(script), None, "{script}");
    }
}

fn both_streams_are_in_order() {
    let sandbox = Sandbox::new();
    let script = "echo 1; echo 2 >&2; echo 3; sh -c 'echo 4 >&2; echo 5'; echo 6";
    assert_eq!(sandbox.run(&[], script).output, "1\n2\n3\n4\n5\n6\n");
    // The next command starts with an empty file.
    assert_eq!(sandbox.run(&[], "echo 7 >&2").output, "7\n");
}
