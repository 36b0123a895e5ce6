//! Pipes and sockets in places where files are expected, and git that does not end: refused at once,
//! and interrupted when somebody asks.

use crate::shell_project::{SHELL_AGENT, ShellProject, run_arguments};
use counterfoil_testkit::{TIMEOUT, wait_until, write_executable};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a refusal may take on a slow machine.
const AT_ONCE: Duration = Duration::from_secs(20);
/// An agent that is done.
const DONE: &str = "echo '{\"ok\": true}'\n";

fn project() -> ShellProject {
    let project = ShellProject::with_agent("", DONE);
    project.init_git();
    project.write("sub/a.txt", "a\n");
    project.write(".gitattributes", "*.md text\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "-m", "base"]);
    project
}

/// Puts a pipe in the place of a file.
fn put_pipe(project: &ShellProject, path: &str) {
    let path = project.path(path);
    let _ = std::fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
    for path in [
        ".gitattributes",
        ".gitignore",
        "sub/.gitattributes",
        ".git/index",
        ".git/config",
        ".git/packed-refs",
        ".git/info/exclude",
        ".git/refs/heads/other",
        "flow.yaml",
        "contracts/ok.yaml",
        "counterfoil.toml",
    ] {
        let project = project();
        put_pipe(&project, path);
        assert_refused_at_once(&project, path);
    }
}

/// What is not needed is not opened, and what is needed is named.
#[track_caller]
fn assert_refused_at_once(project: &ShellProject, path: &str) {
    let began = Instant::now();
    let output = project.run(&run_arguments("flow.yaml", SHELL_AGENT));
    assert!(began.elapsed() < AT_ONCE, "{path}: {:?}", began.elapsed());
    let said = format!("{}{}", output.stdout, output.stderr);
    let name = path.rsplit('/').next().unwrap();
    assert!(output.code == Some(0) || said.contains(name), "{path}: {said}");
}

#[test]
fn a_socket_in_the_place_of_a_file_is_refused_at_once() {
    for path in [".git/index", ".gitattributes", "flow.yaml"] {
        let project = project();
        let place = project.path(path);
        std::fs::remove_file(&place).unwrap();
        let _socket = UnixListener::bind(&place).unwrap();
        assert_refused_at_once(&project, path);
    }
}

/// A `git` on the PATH that does not end once a file says so.
fn with_hanging_git(project: &ShellProject) -> String {
    let bin = project.root_path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let real =
        String::from_utf8(Command::new("which").arg("git").output().unwrap().stdout).unwrap();
    write_executable(
        &bin.join("git"),
        format!(
            "#!/bin/sh\nif [ -e '{0}/hang' ] && case \" $* \" in *' ls-files '*) true;; *) false;; esac; then echo $$ >> '{0}/hanging'; exec sleep 300; fi\nexec {1} \"$@\"\n",
            project.root_path("").display(),
            real.trim()
        ),
    );
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

fn is_alive(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

#[test]
fn a_git_that_hangs_is_interrupted_and_does_not_outlive_us() {
    for signals in [&["INT", "INT"][..], &["KILL"]] {
        let project = project();
        let path = with_hanging_git(&project);
        std::fs::write(project.root_path("hang"), "").unwrap();
        let mut command = project.command(&run_arguments("flow.yaml", SHELL_AGENT)[..4]);
        command.as_std().env("PATH", path);
        command.as_std().stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.as_std().stderr(std::process::Stdio::null());
        let mut live = command.as_std().spawn().unwrap();
        let hanging = || std::fs::read_to_string(project.root_path("hanging")).unwrap_or_default();
        wait_until(TIMEOUT, "git hangs", || hanging().ends_with('\n').then_some(()));
        for signal in signals {
            std::thread::sleep(Duration::from_millis(300));
            counterfoil_testkit::send_signal(signal, &live.id().to_string());
        }
        let began = Instant::now();
        let ended = live.wait().unwrap();
        assert!(began.elapsed() < AT_ONCE, "{signals:?}: {:?}", began.elapsed());
        assert_eq!(ended.code(), (signals.len() == 2).then_some(130), "{signals:?}");
        wait_until(AT_ONCE, "git is gone", || (!hanging().lines().any(is_alive)).then_some(()));
        std::fs::remove_file(project.root_path("hang")).unwrap();
        project.assert_intact();
    }
}
