//! Full and read-only disks: small ones that the test mounts, where it may.

use super::file_limit::{assert_large_artifacts, large_artifacts};
use crate::shell_project::{
    SHELL_AGENT, ShellProject, agent_workflow, run_arguments, workflow_with_question,
};
use crate::small_disk::SmallDisk;
use counterfoil_testkit::{TIMEOUT, processes_in_attempts, report_skip, wait_until};
use std::path::PathBuf;

/// A small disk as the state folder of a project. `None` if nothing can be mounted: the test is then
/// skipped, and says so.
fn state_disk(project: &ShellProject, size: &str) -> Option<SmallDisk> {
    disk_at(project.state().to_owned(), size)
}

fn disk_at(at: PathBuf, size: &str) -> Option<SmallDisk> {
    SmallDisk::mount(at, size).inspect_err(|why| report_skip(why)).ok()
}

/// An agent that has printed its result, and ends when the test allows it: only the journal still needs
/// room.
const PATIENT: &str = "echo '{\"ok\": true}'\ntouch up\nwhile [ ! -e go ]; do sleep 0.02; done\n";

/// Waits until what the agent has printed is in its transcript.
fn wait_until_printed(project: &ShellProject) {
    wait_until(TIMEOUT, "the agent is up", || project.repo().join("up").exists().then_some(()));
    wait_until(TIMEOUT, "its output is kept", || {
        let runs = std::fs::read_dir(project.state().join("transcripts")).ok()?;
        let files =
            runs.flatten().flat_map(|run| std::fs::read_dir(run.path()).into_iter().flatten());
        let mut texts =
            files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text == "{\"ok\": true}\n").then_some(())
    });
}

#[test]
fn a_full_disk_stops_the_run_and_room_lets_it_go_on() {
    let project = ShellProject::with_agent("", PATIENT);
    let Some(disk) = state_disk(&project, "1m") else { return };
    let live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    wait_until_printed(&project);
    disk.fill();
    project.write("go", "");
    live.wait().expect(
        122,
        &["the disk is full", disk.at.to_str().unwrap(), "free some space and continue"],
    );
    disk.make_room();
    project.run(&["resume", "last"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn room_that_is_made_in_time_is_enough() {
    let project = ShellProject::with_agent("", PATIENT);
    let Some(disk) = state_disk(&project, "1m") else { return };
    let mut live = project.start(&run_arguments("flow.yaml", SHELL_AGENT));
    wait_until_printed(&project);
    disk.fill();
    let attempt = project.show_last()["run"].as_str().unwrap().to_owned();
    project.write("go", "");
    wait_until(TIMEOUT, "the agent has answered", || {
        processes_in_attempts(&attempt).is_empty().then_some(())
    });
    assert!(live.is_running(), "it waits for room");
    disk.make_room();
    live.wait().expect(0, &[]);
    project.assert_intact();
}

#[test]
fn an_answer_that_fills_the_disk_is_not_the_agents_fault() {
    let project = ShellProject::with_agent("", "head -c 4000000 /dev/zero\n");
    let Some(disk) = state_disk(&project, "2m") else { return };
    let output = project.run_workflow("flow.yaml", SHELL_AGENT);
    output.expect(
        122,
        &["the disk is full", disk.at.to_str().unwrap(), "free some space and continue"],
    );
    project.write("agent.sh", "echo '{\"ok\": true}'\n");
    disk.remount("size=8m");
    project.run(&["resume", "last"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn a_command_whose_output_fills_the_disk_is_run_again_when_there_is_room() {
    let project = ShellProject::with_agent("", "echo '{\"ok\": true}'\n");
    project.write(
        "flow.yaml",
        agent_workflow("").replace("before'], go: work", "before'], go: flood")
            + "  flood: { command: [sh, flood.sh], next: [{ when: result.ok, go: work }, { go: lost }] }\n  lost: { end: failed }\n",
    );
    project.write("flood.sh", "[ -e small ] || head -c 4000000 /dev/zero\n");
    let Some(disk) = state_disk(&project, "2m") else { return };
    project
        .run_workflow("flow.yaml", SHELL_AGENT)
        .expect(122, &["the disk is full", "free some space and continue"]);
    project.write("small", "");
    disk.remount("size=8m");
    project.run(&["resume", "last"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn an_artifact_without_room_is_written_when_there_is_some() {
    let project = ShellProject::with_agent("", "echo '{\"ok\": true}'\n");
    project.write("flow.yaml", agent_workflow("") + &large_artifacts(40));
    let Some(disk) = disk_at(project.repo().join("out"), "32k") else { return };
    project
        .run_workflow("flow.yaml", SHELL_AGENT)
        .expect(122, &["the disk is full", "repo/out/", "free some space and continue"]);
    disk.remount("size=8m");
    project.run(&["resume", "last"]).expect(0, &["done"]);
    assert_large_artifacts(&project, 40);
    // The command that was interrupted by it is repeated.
    assert_eq!(project.show_last()["outcome"], "done");
}

#[test]
fn an_agent_that_fails_on_a_full_disk_is_repeated_when_there_is_room() {
    let project = ShellProject::new();
    let Some(disk) = disk_at(project.repo().to_owned(), "1m") else { return };
    project.write("contracts/ok.yaml", "contract: acme/ok\nversion: 1\nfields: { ok: boolean }\n");
    project.write("prompts/work.md", "Do the work.\n");
    project.write("flow.yaml", agent_workflow(""));
    project
        .write("agent.sh", "head -c 2000000 /dev/zero > large || exit 1\necho '{\"ok\": true}'\n");
    project.run_workflow("flow.yaml", SHELL_AGENT).expect(
        122,
        &["the disk is full", disk.at.to_str().unwrap(), "free some space and continue"],
    );
    disk.remount("size=8m");
    project.run(&["resume", "last"]).expect(0, &["done"]);
    assert_eq!(project.read_or_empty("before"), "ran\n");
    project.assert_intact();
}

#[test]
fn a_state_folder_that_cannot_be_written_can_still_be_read() {
    let project = ShellProject::with_agent("", "echo '{\"ok\": true}'\n");
    project.write("flow.yaml", workflow_with_question());
    let Some(disk) = state_disk(&project, "4m") else { return };
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    disk.remount("ro");
    for arguments in [
        &["answer", "last", "approve", "yes", "--resume"][..],
        &["resume", "last"],
        &["cancel", "last"],
    ] {
        project
            .run(arguments)
            .expect(2, &["journal.db", "cannot be written", "allow writing there"]);
    }
    project.run_workflow("flow.yaml", SHELL_AGENT).expect(2, &["cannot be written"]);
    assert_eq!(project.show_last()["outcome"], "waiting");
    disk.remount("rw");
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    project.assert_intact();
}
