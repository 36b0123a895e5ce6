//! A process that cannot be ended: an agent that is not privileged starts a program that is. It is named
//! with its process id, whether it hides or not.

use crate::PROGRAM;
use crate::shell_project::{SHELL_AGENT, ShellProject, run_arguments};
use counterfoil_testkit::{report_skip, send_signal};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

/// The user and group of a process without privileges.
const NOBODY: &str = "65534";

/// A program that belongs to root and runs as root for every user.
const PRIVILEGED: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE *pids = fopen("pids", "a");
  if (!pids || setuid(0)) return 1;
  fprintf(pids, "%d\n", (int)getpid());
  fclose(pids);
  return execl("/bin/sleep", "sleep", "300", (char *)0);
}
"#;

/// It does everything that makes a process hard to find: a session of its own, two forks, no
/// environment, other limits.
const AGENT: &str = "env -i setsid sh -c 'ulimit -n 100; ./privileged > /dev/null 2>&1 &'\n\
    while [ ! -s pids ]; do sleep 0.01; done\nsleep 0.3\necho '{\"ok\": true}'\n";

#[test]
fn a_process_that_cannot_be_ended_is_named() {
    let project = ShellProject::with_agent("", AGENT);
    let program = project.root_path("counterfoil");
    let source = project.root_path("privileged.c");
    let privileged = project.repo().join("privileged");
    fs::copy(PROGRAM, &program).unwrap();
    fs::write(&source, PRIVILEGED).unwrap();
    let built = Command::new("cc").arg("-o").arg(&privileged).arg(&source).status();
    assert!(built.unwrap().success());
    if fs::metadata(&privileged).unwrap().uid() != 0 {
        report_skip("only root can make a program that others run as root");
        return;
    }
    let nobody = format!("{NOBODY}:{NOBODY}");
    assert!(
        Command::new("chown").args(["-R", &nobody]).arg(project.root()).status().unwrap().success()
    );
    assert!(Command::new("chown").arg("0:0").arg(&privileged).status().unwrap().success());
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755)).unwrap();

    let mut plain = project.command(&run_arguments("flow.yaml", SHELL_AGENT));
    let drop = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"];
    let mut command = project.command_of("setpriv", &drop);
    command.arg(&program).args(plain.as_std().get_args());
    let output = project.start_command(&mut command).wait();
    let pids = project.read_or_empty("pids");
    let left: Vec<&str> = pids.lines().collect();
    for pid in &left {
        send_signal("KILL", pid);
    }
    output.expect(0, &["could not be ended"]);
    assert_eq!(left.len(), 1, "{pids}");
    assert!(output.stderr.contains(left[0]), "{pids}: {}", output.stderr);
}
