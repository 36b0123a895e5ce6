//! Descendants that an agent leaves in sessions of their own end with the attempt.

use crate::shell_project::{SHELL_AGENT, ShellProject, run_arguments};
use counterfoil_testkit::{TIMEOUT, wait_until};

/// Two daemons: one keeps the pipes open, one closes them.
const DAEMONS: &str = "setsid sleep 300 &\nsetsid sleep 300 > /dev/null 2>&1 &\n";

#[test]
fn nothing_is_left_after_a_normal_end() {
    let project = ShellProject::with_agent("", &format!("{DAEMONS}echo '{{\"ok\": true}}'\n"));
    project.assert_run_ends(SHELL_AGENT, 0, "done", None, &[]);
}

#[test]
fn nothing_is_left_after_a_timeout() {
    let project = ShellProject::with_agent(
        "timeout: 1s, retries: { timeout: 0 }",
        &format!("{DAEMONS}sleep 300\n"),
    );
    project.assert_run_ends(SHELL_AGENT, 124, "failed", Some("timeout"), &["took too long"]);
}

#[test]
fn nothing_is_left_after_we_were_killed_and_the_run_is_taken_up() {
    let project = ShellProject::with_agent("", &format!("{DAEMONS}touch up\nsleep 300\n"));
    let live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    wait_until(TIMEOUT, "the agent is up", || project.repo().join("up").exists().then_some(()));
    assert!(live.kill());
    assert_eq!(project.show_last()["outcome"], "interrupted");
    project.write("agent.sh", "ls -1 > /dev/null; echo '{\"ok\": true}'\n");
    project
        .run(&["resume", "last"])
        .expect(0, &["interrupted: the process that drove the run ended"]);
    project.assert_intact();
}

#[test]
fn nothing_is_left_after_a_killed_run_is_cancelled_rather_than_taken_up() {
    let project = ShellProject::with_agent("", &format!("{DAEMONS}touch up\nsleep 300\n"));
    let live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    wait_until(TIMEOUT, "the agent is up", || project.repo().join("up").exists().then_some(()));
    assert!(live.kill());
    project.run(&["cancel", "last"]).expect(0, &["cancelled"]);
    project.assert_intact();
    project.run(&["resume", "last"]).expect(2, &["ended as cancelled", "start a new one"]);
}
