//! The built-in step `read`.

use crate::builtin::project::Project;
use serde_json::json;
use std::os::unix::fs::symlink;

const HELD: &str = "read: plan/tasks.yaml, contract: t/tasks";
const TASKS: &str = "tasks:\n  - { id: a, hours: 3 }\n";

#[test]
fn a_yaml_file_is_what_its_contract_says() {
    let project = Project::bare();
    project.write("plan/tasks.yaml", TASKS);
    assert_eq!(project.run_step(HELD).value(), json!({"tasks": [{"id": "a", "hours": 3}]}));
    project.write("plan/tasks.YML", TASKS);
    assert_eq!(
        project.run_step("read: plan/tasks.YML, contract: t/tasks").value()["tasks"][0]["id"],
        "a"
    );
}

#[test]
fn another_file_is_read_as_the_contract_is_framed() {
    let project = Project::bare();
    project.write("notes.md", "Here it is: {\"tasks\": []} and that is all.");
    assert_eq!(project.run_step("read: notes.md, contract: t/tasks").value(), json!({"tasks": []}));
}

#[test]
fn without_a_contract_a_file_is_its_text() {
    let project = Project::bare();
    project.write("a.txt", "ä\r\nb");
    assert_eq!(project.run_step("read: ./a.txt").value(), json!({"text": "ä\r\nb"}));
    project.write("a.txt", "");
    assert_eq!(project.run_step("read: a.txt").value(), json!({"text": ""}));
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let project = Project::bare();
    for (text, word) in [
        ("tasks:\n  - { id: a, hours: many }\n", "/tasks/0/hours"),
        ("tasks: []\ntasks: []\n", "the key `tasks` occurs twice"),
        ("tasks: [", "line"),
        ("", "t/tasks@1"),
    ] {
        project.write("plan/tasks.yaml", text);
        let step_result = project.run_step(HELD);
        assert_eq!(step_result.outcome, "contract", "{step_result:?}");
        assert!(
            step_result.reason.contains("plan/tasks.yaml") && step_result.reason.contains(word),
            "{text}: {}",
            step_result.reason
        );
        assert_ne!(step_result.whole["commands"][0]["violations"], json!([]), "{text}");
        assert_eq!(step_result.whole["cause"], "contract");
    }
    project.write("tasks.json", b"\xff\xfe");
    let step_result = project.run_step("read: tasks.json, contract: t/tasks");
    assert_eq!(
        step_result.outcome, "contract",
        "bytes that are no text are a wrong file: {step_result:?}"
    );
}

#[test]
fn what_cannot_be_read_blocks() {
    let project = Project::bare();
    assert!(
        project
            .run_step(HELD)
            .blocked()
            .contains("'plan/tasks.yaml' cannot be read: it does not exist")
    );
    project.write("plan/tasks.yaml/inner", "");
    assert!(project.run_step(HELD).blocked().contains("it is a folder"));
    project.write("bytes", b"\xff");
    assert!(project.run_step("read: bytes").blocked().contains("utf-8"));
    project.write("large", vec![b'x'; (8 << 20) + 1]);
    assert!(project.run_step("read: large").blocked().contains("larger than 8 MiB"));
    for path in ["../secret", "/etc/passwd", "''", "a/../../b"] {
        let why = project.run_step(&format!("read: {path}")).blocked();
        assert!(why.contains("not a path inside"), "{path}: {why}");
    }
}

#[test]
fn a_link_is_followed_only_inside_of_the_repository() {
    let project = Project::bare();
    project.write("real.txt", "inside");
    symlink("real.txt", project.path("link.txt")).unwrap();
    assert_eq!(project.run_step("read: link.txt").value()["text"], "inside");
    std::fs::write(project.repo.parent().unwrap().join("secret"), "outside").unwrap();
    symlink("../secret", project.path("out.txt")).unwrap();
    assert!(project.run_step("read: out.txt").blocked().contains("outside of the repository"));
    symlink("..", project.path("up")).unwrap();
    assert!(project.run_step("read: up/secret").blocked().contains("outside of the repository"));
    symlink("nowhere", project.path("dangling")).unwrap();
    assert!(project.run_step("read: dangling").blocked().contains("does not exist"));
}

#[test]
fn a_pipe_is_not_waited_for() {
    let project = Project::bare();
    let made = std::process::Command::new("mkfifo").arg(project.path("pipe")).status().unwrap();
    assert!(made.success());
    assert!(project.run_step("read: pipe").blocked().contains("not a regular file"));
}
