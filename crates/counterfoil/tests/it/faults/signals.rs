//! SIGINT and SIGTERM: the first stops gracefully, the second immediately. The run can be resumed
//! either way.

use crate::shell_project::{SHELL_AGENT, ShellProject, run_arguments};
use counterfoil_testkit::{
    CommandOutput, RunningCommand, TIMEOUT, processes_in_attempts, wait_until,
};
use std::time::{Duration, Instant};

/// An agent that is asked to end and does not.
const STUBBORN: &str = "trap '' TERM INT\necho up >> up\nwhile :; do sleep 0.1; done\n";
/// An agent that is asked to end and does.
const POLITE: &str =
    "trap 'echo bye >> bye; exit 0' TERM\necho up >> up\nwhile :; do sleep 0.05; done\n";

/// A run that is started for people to watch, once its agent is up.
fn up(project: &ShellProject) -> RunningCommand {
    let live = project.start(&run_arguments("flow.yaml", SHELL_AGENT)[..4]);
    wait_until(TIMEOUT, "the agent is up", || {
        (!project.read_or_empty("up").is_empty()).then_some(())
    });
    live
}

/// Asserts that the run was stopped and can be resumed.
fn goes_on(project: &ShellProject, output: &CommandOutput) {
    output.expect(130, &["interrupted", "continue: counterfoil resume"]);
    project.assert_intact();
    let report = project.show_last();
    assert_eq!(report["outcome"], "cancelled");
    assert_eq!(report["attempts"][0]["outcome"], "cancelled");
    assert_eq!(project.count_events("run-stopped"), 1);
    assert_eq!(project.count_events("run-ended"), 0);
    project.write("agent.sh", "echo '{\"ok\": true}'\n");
    project.run(&["resume", "last"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn ctrl_c_asks_the_agent_to_end_and_the_run_goes_on_later() {
    for signal in ["INT", "TERM"] {
        let project = ShellProject::with_agent("", POLITE);
        let live = up(&project);
        live.signal(signal);
        let output = live.wait();
        assert_eq!(project.read_or_empty("bye"), "bye\n", "{signal}: it was not asked");
        goes_on(&project, &output);
    }
}

#[test]
fn an_agent_that_does_not_listen_is_killed_after_its_grace() {
    let project = ShellProject::with_agent("", STUBBORN);
    let live = up(&project);
    let began = Instant::now();
    live.signal("INT");
    let output = live.wait();
    assert!(began.elapsed() > Duration::from_secs(4), "it had no grace: {:?}", began.elapsed());
    goes_on(&project, &output);
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let project = ShellProject::with_agent("", STUBBORN);
    let live = up(&project);
    live.signal("INT");
    wait_until(TIMEOUT, "the first is heard", || {
        live.stderr_so_far().contains("stopping: waiting for agents").then_some(())
    });
    let began = Instant::now();
    live.signal("INT");
    let output = live.wait();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    output.expect(130, &["stopping immediately"]);
    goes_on(&project, &output);
}

#[test]
fn an_interrupt_is_heard_while_a_large_result_is_read() {
    // Each of them is an attempt at a result, and the longest that is read: this takes seconds.
    let project = ShellProject::with_agent(
        "repairs: 0",
        "yes '{\"a\":{\"b\":\"' | tr -d '\\n' | head -c 60000000\n",
    );
    let live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    let run = wait_until(TIMEOUT, "the agent has answered", || {
        let transcripts = std::fs::read_dir(project.state().join("transcripts")).ok()?;
        let run = transcripts.flatten().next()?;
        let mut files = std::fs::read_dir(run.path()).ok()?.flatten();
        let is_complete =
            files.any(|file| file.metadata().is_ok_and(|file| file.len() == 60_000_000));
        let run = run.file_name().to_string_lossy().into_owned();
        (is_complete && processes_in_attempts(&run).is_empty()).then_some(run)
    });
    live.signal("INT");
    live.wait().expect(130, &[]);
    let report = project.show_last();
    assert_eq!(report["run"], run.as_str());
    assert_eq!(report["attempts"][0]["outcome"], "cancelled", "{report:#}");
    assert_eq!(report["attempts"][0]["reason"], "stopped while its result was being read");
}
