//! Our own output is never the agent's fault: a file that it goes to is no change of the work tree.

use crate::verification::project::DirtyProject;
use counterfoil_testkit::{TIMEOUT, wait_until};

/// Ways in which people keep what a run prints.
const KEPT: [&str; 5] = [
    r#""$0" "$@" > "$REPO/night.txt" 2>&1"#,
    r#""$0" "$@" 2>> "$REPO/night.txt""#,
    r#"nohup "$0" "$@" > "$REPO/night.txt" 2>&1 < /dev/null"#,
    r#""$0" "$@" 2>&1 | tee "$REPO/night.txt""#,
    r#""$0" "$@" 2>&1 | cat | tee -a "$REPO/night.txt" "$REPO/second.txt" > /dev/null"#,
];

/// An agent that is asked again: a line is printed while it works.
const ASKED_AGAIN: &str = r#"
echo one > one.rs
if [ -e ../asked ]; then echo '{"files": ["one.rs"]}'; else touch ../asked; fi
"#;

#[test]
fn files_that_our_output_goes_to_are_no_changes() {
    for line in KEPT {
        let project = DirtyProject::new();
        // A protected file that is written is restored.
        let top = "protection: require\nprotect: [night.txt, second.txt]";
        project.write_one_step(top, ", claims: { files: require }, repairs: 1");
        project.write("night.txt", "from the night before\n");
        project.write("agent.sh", ASKED_AGAIN);
        let program = env!("CARGO_BIN_EXE_counterfoil").to_owned();
        let state = project.state().display().to_string();
        let repo = project.repo().display().to_string();
        let mut arguments = vec!["-c".to_owned(), line.to_owned(), program];
        let run = ["run", "repo/flow.yaml", "--agent", "command:sh agent.sh"];
        arguments
            .extend(run.into_iter().chain(["--state", &state, "--repo", &repo]).map(str::to_owned));
        let mut command = project.command_of("sh", &arguments);
        let output = command.env("REPO", &repo).output();
        let run = project.show_last();
        assert_eq!(run["outcome"], "done", "{line}: {run}\n{output:?}");
        let kept = project.read("night.txt");
        assert!(kept.len() > "from the night before\n".len(), "{line}: {kept}");
    }
}

/// An agent that waits until it is killed, and works the second time.
const KILLED_FIRST: &str = r#"
echo one > one.rs
if [ -e ../up ]; then echo '{"files": ["one.rs"]}'; else touch ../up; exec sleep 60; fi
"#;

#[test]
fn the_log_of_a_killed_process_is_no_change_either() {
    let project = DirtyProject::new();
    project.write_one_step("", ", claims: { files: require }, repairs: 0");
    project.write("agent.sh", KILLED_FIRST);
    let run = crate::shell_project::run_arguments("flow.yaml", "command:sh agent.sh");
    let log = project.repo().join("night.txt");
    let mut command = project.command(&run);
    let live = command.start(log.clone(), log);
    wait_until(TIMEOUT, "the agent is up", || project.repo().join("../up").exists().then_some(()));
    assert!(live.kill());
    project.run(&["resume", "last"]).expect(0, &["done"]);
    assert!(!project.read("night.txt").is_empty());
}

#[test]
fn a_file_that_only_the_agent_writes_is_a_change() {
    let project = DirtyProject::new();
    project.write_one_step("", ", claims: { files: require }, repairs: 0");
    project.write(
        "agent.sh",
        "echo one > one.rs; echo two > night.txt\necho '{\"files\": [\"one.rs\"]}'\n",
    );
    let ran = project.run_agent("command:sh agent.sh");
    ran.assert_claim(0, "files", "refuted", &["night.txt"]);
}
