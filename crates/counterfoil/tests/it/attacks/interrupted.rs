//! Agents that end the run, so that another process goes on with what they left.

use super::{DirtyProject, says_tests_pass};
use crate::verification::project::replies;
use counterfoil_testkit::read_tree;
use serde_json::{Value, json};
use std::path::Path;

/// A project whose check fails as long as a.rs says so.
fn project() -> DirtyProject {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", "[checks]\ntest = \"sh t.sh\"\n");
    project.write("t.sh", "! grep -q broken a.rs\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "--no-verify", "-m", "checks"]);
    project
}

/// Runs the workflow with replies, of which one kills the process that drives the run.
fn run_and_kill(project: &DirtyProject, replies: &[Value]) {
    project.write_script(replies);
    let output = project.run(&["run", "repo/flow.yaml", "--agent", "script:script.yaml"]);
    assert_eq!(output.code, None, "the run was to be killed: {output:?}");
}

/// Shell commands that kill the process that drives the run, once.
fn kills(project: &DirtyProject) -> String {
    let once = project.root_path("killed");
    let engine = Path::new(crate::PROGRAM).display().to_string();
    format!(
        "if mkdir '{once}' 2>/dev/null; then p=$$; while [ \"$(readlink /proc/$p/exe)\" != '{engine}' ]; do p=$(awk '/^PPid/ {{print $2}}' /proc/$p/status); done; kill -9 $p; sleep 5; fi; ",
        once = once.display()
    )
}

fn resumed(project: &DirtyProject) -> Value {
    project.run(&["resume", "last", "--format", "json"]).json()
}

/// The check of a step is repeated by the next process, which has to know how it was.
#[test]
fn a_weakened_check_is_run_as_it_was_by_the_next_process() {
    let project = project();
    project.write_workflow("", "work", "  work: { agent: worker, checks: [test], go: end }");
    let exec = format!("echo broken > a.rs; cat > t.sh <<'END'\n{}exit 0\nEND", kills(&project));
    let files = json!({"files": ["a.rs", "t.sh"]});
    run_and_kill(&project, &[replies(&files, json!({"exec": exec}))]);
    let report = resumed(&project);
    let checks: Vec<&Value> = report["commands"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|command| command["path"][0] == "work")
        .map(|command| &command["checks"]["test"])
        .filter(|check| !check.is_null())
        .collect();
    assert!(!checks.is_empty(), "{report:#}");
    for check in checks {
        assert_eq!(check["status"], "failed", "{report:#}");
    }
}

/// While a check runs with the files of the start, the agent's versions are aside. They come back.
#[test]
fn files_that_were_put_back_for_a_check_are_put_forward_by_the_next_process() {
    let project = killed_while_put_back("");
    assert_ne!(project.read("t.sh"), "exit 0\n", "the run was killed while the file was put back");
    let report = resumed(&project);
    assert_eq!(project.read("t.sh"), "exit 0\n", "{report:#}");
    assert_ne!(report["outcome"], "running", "{report:#}");
}

/// A run of one step that was killed while a check ran with files from the start.
fn killed_while_put_back(more: &str) -> DirtyProject {
    let project = project();
    // The script of the start kills the run, when it runs again.
    let kill = kills(&project);
    project.write("t.sh", format!("if grep -q broken a.rs; then {kill}exit 1; fi\n"));
    project.git(&["commit", "-q", "-a", "--no-verify", "-m", "kill"]);
    project.write_one_step("", &format!(", repairs: 0{more}"));
    let exec = "echo broken > a.rs; echo 'exit 0' > t.sh";
    let reply = says_tests_pass(&["a.rs", "t.sh"], exec);
    run_and_kill(&project, &[reply.clone(), reply]);
    project
}

/// No process goes on with a run that is cancelled, so cancelling puts them forward.
#[test]
fn files_that_were_put_back_for_a_check_are_put_forward_when_the_run_is_cancelled() {
    let project = killed_while_put_back("");
    assert_ne!(project.read("t.sh"), "exit 0\n", "the run was killed while the file was put back");
    project.run(&["cancel", "last"]).expect(0, &[]);
    assert_eq!(project.read("t.sh"), "exit 0\n");
    project.run(&["undo", "last"]).expect(1, &["  a.rs", "  t.sh"]);
}

/// The patch of a worktree has the work of the agent, not what was put back.
#[test]
fn files_that_were_put_back_in_a_worktree_are_put_forward_before_it_is_discarded() {
    let project = killed_while_put_back(", workspace: worktree");
    project.run(&["cancel", "last"]).expect(0, &[]);
    let kept = read_tree(&project.state().join("kept"));
    let has =
        |text: &str| kept.values().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(text));
    assert!(has("+broken") && has("+exit 0"), "{:?}", kept.keys());
}

/// Nobody has looked at what the agent wrote there, and it says what is run and how it is contained.
#[test]
fn a_configuration_that_changed_while_an_agent_was_at_work_is_not_used() {
    let project = project();
    project.write_one_step("", ", repairs: 0");
    let exec = format!("echo 'contain = \"none\"' > counterfoil.toml; {}", kills(&project));
    let honest = says_tests_pass(&["a.rs"], "echo fine > a.rs");
    run_and_kill(&project, &[replies(&json!({"files": []}), json!({"exec": exec})), honest]);
    for _ in 0..2 {
        let output = project.run(&["resume", "last"]);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains("resume the run with --accept-config"), "{output:?}");
    }
    // The way out: the file as it was, or a word from the person.
    project.git(&["checkout", "-q", "counterfoil.toml"]);
    let report = resumed(&project);
    assert_eq!(report["outcome"], "done", "{report:#}");
}

#[test]
fn a_person_accepts_a_changed_configuration() {
    let project = project();
    project.write_one_step("", ", repairs: 0");
    let exec = kills(&project);
    let honest = says_tests_pass(&["a.rs"], "echo fine > a.rs");
    run_and_kill(&project, &[replies(&json!({"files": []}), json!({"exec": exec})), honest]);
    project.write("counterfoil.toml", "[checks]\ntest = \"sh -e t.sh\"\n");
    let output = project.run(&["resume", "last", "--accept-config", "--format", "json"]);
    assert_eq!(output.json()["outcome"], "done", "{output:?}");
}
