//! Agents that flood the output, are silent, crash, or do not exist.

use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow, run_arguments};
use counterfoil_testkit::{TIMEOUT, wait_until};
use std::time::Instant;

/// The most memory a process ever had, in KiB, as long as it is there to say so.
fn peak_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[test]
fn an_agent_that_prints_hundreds_of_megabytes_costs_us_no_memory() {
    let project =
        ShellProject::with_agent("repairs: 0", "head -c 335544320 /dev/zero | tr '\\0' x\n");
    let began = Instant::now();
    let mut live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    let mut peak = 0;
    wait_until(TIMEOUT, "the flood is over", || {
        peak = peak_of(live.pid()).map_or(peak, |now| now.max(peak));
        (!live.is_running()).then_some(())
    });
    let output = live.wait();
    eprintln!("320 MiB of output: at most {} MiB of memory, {:?}", peak / 1024, began.elapsed());
    output.expect(1, &["C0103"]);
    let report = output.json();
    assert_eq!(report["cause"], "contract");
    // Everything that came is kept.
    let transcript =
        project.state().join(report["attempts"][0]["replies"][0]["transcript"].as_str().unwrap());
    assert_eq!(std::fs::metadata(transcript).unwrap().len(), 320 << 20);
    // A contract reads up to 64 MiB, and nothing is held several times over.
    assert!(peak > 0 && peak < 256 * 1024, "{peak} KiB");
    project.assert_intact();
}

#[test]
fn an_agent_that_says_nothing_is_ended_when_it_was_silent_for_too_long() {
    let project = ShellProject::with_agent("idle: 1s, retries: { timeout: 0 }", "sleep 300\n");
    project.assert_run_ends(
        SHELL_AGENT,
        124,
        "failed",
        Some("timeout"),
        &["fell silent", "1 s", "`idle`"],
    );
}

#[test]
fn an_agent_that_takes_too_long_is_ended_however_much_it_says() {
    let project = ShellProject::with_agent(
        "timeout: 1s, retries: { timeout: 0 }",
        "while :; do echo busy; sleep 0.05; done\n",
    );
    project.assert_run_ends(
        SHELL_AGENT,
        124,
        "failed",
        Some("timeout"),
        &["took too long", "1 s", "`timeout`"],
    );
}

#[test]
fn a_timeout_is_tried_once_more_by_itself() {
    let project = ShellProject::with_agent(
        "idle: 500ms",
        "if [ -e tried ]; then echo '{\"ok\": true}'; else touch tried; sleep 300; fi\n",
    );
    let report = project.assert_run_ends(SHELL_AGENT, 0, "done", None, &[]);
    assert_eq!(report["attempts"][0]["outcome"], "timeout");
    assert_eq!(report["attempts"][1]["outcome"], "accepted");
}

#[test]
fn an_agent_that_ends_well_and_says_nothing_has_given_no_result() {
    let project = ShellProject::with_agent("repairs: 0", "exit 0\n");
    project.assert_run_ends(SHELL_AGENT, 1, "failed", Some("contract"), &["no result was found"]);
    let project = ShellProject::with_agent("", "echo asked >> asked\n");
    project.assert_run_ends(
        SHELL_AGENT,
        1,
        "failed",
        Some("contract"),
        &["no result was found", "after 2 repairs"],
    );
    assert_eq!(project.read_or_empty("asked").lines().count(), 3);
}

#[test]
fn an_agent_that_fails_is_quoted() {
    let project = ShellProject::with_agent(
        "",
        "echo '{\"ok\": true}'; echo the key has expired >&2; exit 3\n",
    );
    project.assert_run_ends(
        SHELL_AGENT,
        5,
        "failed",
        Some("agent"),
        &["exit code 3", "the key has expired"],
    );
}

#[test]
fn an_agent_that_a_signal_kills_is_told_apart_from_one_that_fails() {
    let project = ShellProject::with_agent("", "echo '{\"ok\": true}'; kill -s SEGV $$\n");
    project.assert_run_ends(SHELL_AGENT, 5, "failed", Some("agent"), &["killed by signal 11"]);
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place_and_kept_as_they_came() {
    let project = ShellProject::with_agent(
        "repairs: 0",
        "printf 'fine: {\"ok\": true, \"note\": \"\\377\\376\"}'\n",
    );
    let report = project.assert_run_ends(SHELL_AGENT, 1, "failed", Some("contract"), &["UTF-8"]);
    let transcript =
        project.state().join(report["attempts"][0]["replies"][0]["transcript"].as_str().unwrap());
    assert_eq!(std::fs::read(transcript).unwrap(), b"fine: {\"ok\": true, \"note\": \"\xff\xfe\"}");
}

#[test]
fn a_program_that_is_not_there_is_named_with_the_way_out() {
    let project = ShellProject::with_agent("", "");
    let output = project.run(&run_arguments("flow.yaml", "command:no-such-agent --print"));
    output.expect(2, &["`no-such-agent` cannot be started", "install it, put it on PATH"]);
}

#[test]
fn an_agent_need_not_read_a_long_prompt() {
    let project = ShellProject::new();
    project.write("prompts/work.md", "{{ task }}\n");
    project.write(
        "flow.yaml",
        agent_workflow("").replace("start:", "inputs: { task: string }\nstart:"),
    );
    let task = project.root().join("task.txt");
    std::fs::write(&task, "x".repeat(2 << 20)).unwrap();
    // The second is still there, not reading, for longer than any pipe has room.
    for script in ["echo '{\"ok\": true}'\n", "sleep 1; echo '{\"ok\": true}'\n"] {
        project.write("agent.sh", script);
        let mut arguments = run_arguments("flow.yaml", SHELL_AGENT).to_vec();
        arguments.extend(["--task".to_owned(), format!("@{}", task.display())]);
        let output = project.run(&arguments);
        output.expect(0, &[]);
        assert_eq!(output.json()["outcome"], "done");
    }
}
