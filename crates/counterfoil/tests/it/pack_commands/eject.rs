//! Ejected packs: files are written only into the given directory, and the pack runs the same way.

use crate::pack_commands::{empty_project, stderr_of};
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};

const PACK: &str = "execution-loop";

/// What a run of the demo's script gives, without what differs from run to run.
fn essence(project: &TestProject, workflow: &str, repo: &str) -> Value {
    std::fs::create_dir_all(project.path(repo)).unwrap();
    let run = project.run_json(&[
        "run",
        workflow,
        "--task",
        "x",
        "--repo",
        repo,
        "--format",
        "json",
        "--agent",
        "script:out/demo/script.yaml",
    ]);
    let run = &run.report;
    let attempts: Vec<Value> = run["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| json!([attempt["path"], attempt["n"], attempt["outcome"], attempt["value"]]))
        .collect();
    json!([run["workflow"], run["outcome"], run["cause"], run["state"], attempts, run["variables"]])
}

#[test]
fn an_ejected_pack_runs_the_same() {
    let project = empty_project();
    let words = stderr_of(&project, 0, &["pack", "eject", PACK, "out"]);
    for line in [
        "run:    counterfoil run out/workflow.yaml --task TEXT --agent SPEC\n",
        "check:  counterfoil workflow check out/workflow.yaml\n",
        "demo:   counterfoil demo out\n",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let ejected = essence(&project, "out/workflow.yaml", "one");
    assert_eq!(ejected, essence(&project, PACK, "two"));
    assert!(!ejected[4].as_array().unwrap().is_empty(), "nothing was played: {ejected:#}");
}

#[test]
fn every_file_of_every_pack_is_written_as_it_is() {
    let project = empty_project();
    for pack in counterfoil_packs::packs() {
        stderr_of(&project, 0, &["pack", "eject", pack.name(), pack.name()]);
        for (path, bytes) in pack.files() {
            let path = project.path(pack.name()).join(path);
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
        }
        let workflow = format!("{}/workflow.yaml", pack.name());
        stderr_of(&project, 0, &["workflow", "check", &workflow]);
    }
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone_unless_forced() {
    let project = empty_project();
    project.write("out/mine.txt", "mine");
    project.write("out/workflow.yaml", "mine");
    let words = stderr_of(&project, 2, &["pack", "eject", PACK, "out"]);
    assert!(words.contains("out is not empty") && words.contains("--force"), "{words}");
    assert_eq!(project.read("out/workflow.yaml"), "mine");
    assert_eq!(std::fs::read_dir(project.path("out")).unwrap().count(), 2);

    stderr_of(&project, 0, &["pack", "eject", PACK, "out", "--force"]);
    assert!(project.read("out/workflow.yaml").starts_with("workflow: execution-loop\n"));
    assert_eq!(project.read("out/mine.txt"), "mine", "what is not of the pack stays");
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let project = empty_project();
    project.write("elsewhere/mine.txt", "mine");
    project.write("out/mine.txt", "mine");
    std::os::unix::fs::symlink("../elsewhere", project.path("out/prompts")).unwrap();
    let words = stderr_of(&project, 2, &["pack", "eject", PACK, "out", "--force"]);
    assert!(words.contains("prompts is a symbolic link"), "{words}");
    assert_eq!(std::fs::read_dir(project.path("elsewhere")).unwrap().count(), 1);
    assert!(!project.path("out/workflow.yaml").exists(), "half of it was written");
}

#[test]
fn a_file_is_no_folder() {
    let project = empty_project();
    project.write("out", "mine");
    for more in [&[][..], &["--force"]] {
        let words = stderr_of(&project, 2, &[&["pack", "eject", PACK, "out"], more].concat());
        assert!(words.contains("out"), "{words}");
    }
    assert_eq!(project.read("out"), "mine");
}
