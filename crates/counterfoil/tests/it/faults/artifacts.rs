//! Artifacts are written after the journal. A kill between the two must not leave them outdated;
//! removing them while the run waits simulates such a kill.

use crate::shell_project::{SHELL_AGENT, ShellProject, workflow_with_question};

pub(crate) const ARTIFACTS: &str = "artifacts:\n\
    \x20 - { path: out/status.md, template: '{{ run.outcome }} at {{ run.state }}' }\n\
    \x20 - { path: out/log.md, template: \"{{ run.updated }} {{ run.from }} to {{ run.state }}\\n\", append: true }\n";

fn resting() -> ShellProject {
    let project = ShellProject::new();
    project.write("flow.yaml", workflow_with_question() + ARTIFACTS);
    project.write("agent.sh", "cp out/status.md seen 2> /dev/null; echo '{\"ok\": true}'\n");
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    assert_eq!(project.read_or_empty("out/status.md"), "waiting at approve");
    project
}

/// The log without its times.
fn logged(project: &ShellProject) -> Vec<String> {
    project
        .read_or_empty("out/log.md")
        .lines()
        .map(|line| line.split_once(' ').unwrap().1.to_owned())
        .collect()
}

#[test]
fn what_a_kill_kept_from_being_written_is_written_when_the_run_is_taken_up() {
    let project = resting();
    let log = project.read_or_empty("out/log.md");
    assert_eq!(logged(&project).last().unwrap(), "before to approve");
    project.write(
        "out/log.md",
        log.rsplit_once('\n').unwrap().0.rsplit_once('\n').unwrap().0.to_owned() + "\n",
    );
    project.write("out/status.md", "running at before");
    // It only waits again, but what was missing is there, to the letter.
    assert_eq!(project.run(&["resume", "last"]).code, Some(4));
    assert_eq!(project.read_or_empty("out/log.md"), log);
    assert_eq!(project.read_or_empty("out/status.md"), "waiting at approve");
}

#[test]
fn what_was_written_is_not_written_twice() {
    let project = resting();
    let log = project.read_or_empty("out/log.md");
    for _ in 0..2 {
        assert_eq!(project.run(&["resume", "last"]).code, Some(4));
        assert_eq!(project.read_or_empty("out/log.md"), log);
    }
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    let lines = logged(&project);
    let unique: std::collections::BTreeSet<&String> = lines.iter().collect();
    assert_eq!(lines.len(), unique.len(), "{lines:?}");
}

#[test]
fn the_last_of_them_is_not_lost_either() {
    let project = resting();
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    let log = project.read_or_empty("out/log.md");
    project.write("out/status.md", "running at work");
    project.run(&["resume", "last"]).expect(2, &["ended as done"]);
    assert_eq!(project.read_or_empty("out/status.md"), "done at end");
    assert_eq!(project.read_or_empty("out/log.md"), log);
}

#[test]
fn an_old_run_does_not_write_over_what_a_newer_one_shows() {
    let project = resting();
    let old = project.show_last()["run"].as_str().unwrap().to_owned();
    project.run(&["answer", &old, "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    project.run(&["resume", &old]).expect(2, &["ended as done"]);
    assert_eq!(project.read_or_empty("out/status.md"), "waiting at approve");
}

#[test]
fn a_run_that_is_cancelled_while_nobody_drives_it_shows_that() {
    let project = resting();
    project.run(&["cancel", "last"]).expect(0, &["cancelled"]);
    assert_eq!(project.read_or_empty("out/status.md"), "cancelled at approve");
}
