//! Reading a file.

use crate::deeds::scene::Scene;
use serde_json::json;
use std::os::unix::fs::symlink;

const HELD: &str = "read: plan/tasks.yaml, contract: t/tasks";
const TASKS: &str = "tasks:\n  - { id: a, hours: 3 }\n";

#[test]
fn a_yaml_file_is_what_its_contract_says() {
    let scene = Scene::bare();
    scene.write("plan/tasks.yaml", TASKS);
    assert_eq!(scene.play(HELD).given(), json!({"tasks": [{"id": "a", "hours": 3}]}));
    scene.write("plan/tasks.YML", TASKS);
    assert_eq!(
        scene.play("read: plan/tasks.YML, contract: t/tasks").given()["tasks"][0]["id"],
        "a"
    );
}

#[test]
fn another_file_is_read_as_the_contract_is_framed() {
    let scene = Scene::bare();
    scene.write("notes.md", "Here it is: {\"tasks\": []} and that is all.");
    assert_eq!(scene.play("read: notes.md, contract: t/tasks").given(), json!({"tasks": []}));
}

#[test]
fn without_a_contract_a_file_is_its_text() {
    let scene = Scene::bare();
    scene.write("a.txt", "ä\r\nb");
    assert_eq!(scene.play("read: ./a.txt").given(), json!({"text": "ä\r\nb"}));
    scene.write("a.txt", "");
    assert_eq!(scene.play("read: a.txt").given(), json!({"text": ""}));
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let scene = Scene::bare();
    for (text, word) in [
        ("tasks:\n  - { id: a, hours: many }\n", "/tasks/0/hours"),
        ("tasks: []\ntasks: []\n", "duplicate"),
        ("tasks: [", "line"),
        ("", "t/tasks@1"),
    ] {
        scene.write("plan/tasks.yaml", text);
        let came = scene.play(HELD);
        assert_eq!(came.outcome, "contract", "{came:?}");
        assert!(
            came.reason.contains("plan/tasks.yaml") && came.reason.contains(word),
            "{text}: {}",
            came.reason
        );
        assert_ne!(came.whole["commands"][0]["violations"], json!([]), "{text}");
        assert_eq!(came.whole["cause"], "contract");
    }
    scene.write("tasks.json", b"\xff\xfe");
    let came = scene.play("read: tasks.json, contract: t/tasks");
    assert_eq!(came.outcome, "contract", "bytes that are no text are a wrong file: {came:?}");
}

#[test]
fn what_cannot_be_read_blocks() {
    let scene = Scene::bare();
    assert!(
        scene.play(HELD).blocked().contains("'plan/tasks.yaml' cannot be read: it is not there")
    );
    scene.write("plan/tasks.yaml/inner", "");
    assert!(scene.play(HELD).blocked().contains("it is a folder"));
    scene.write("bytes", b"\xff");
    assert!(scene.play("read: bytes").blocked().contains("utf-8"));
    scene.write("large", vec![b'x'; (8 << 20) + 1]);
    assert!(scene.play("read: large").blocked().contains("more than 8 MiB"));
    for path in ["../secret", "/etc/passwd", "''", "a/../../b"] {
        let why = scene.play(&format!("read: {path}")).blocked();
        assert!(why.contains("not a path inside"), "{path}: {why}");
    }
}

#[test]
fn a_link_is_followed_only_inside_of_the_repository() {
    let scene = Scene::bare();
    scene.write("real.txt", "inside");
    symlink("real.txt", scene.path("link.txt")).unwrap();
    assert_eq!(scene.play("read: link.txt").given()["text"], "inside");
    std::fs::write(scene.repo.parent().unwrap().join("secret"), "outside").unwrap();
    symlink("../secret", scene.path("out.txt")).unwrap();
    assert!(scene.play("read: out.txt").blocked().contains("leads out of the repository"));
    symlink("..", scene.path("up")).unwrap();
    assert!(scene.play("read: up/secret").blocked().contains("leads out of the repository"));
    symlink("nowhere", scene.path("dangling")).unwrap();
    assert!(scene.play("read: dangling").blocked().contains("not there"));
}

#[test]
fn a_pipe_is_not_waited_for() {
    let scene = Scene::bare();
    let made = std::process::Command::new("mkfifo").arg(scene.path("pipe")).status().unwrap();
    assert!(made.success());
    assert!(scene.play("read: pipe").blocked().contains("no plain file"));
}
