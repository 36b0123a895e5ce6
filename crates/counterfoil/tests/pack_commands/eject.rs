//! An ejected pack: written into a folder and nowhere else, and it runs the same.

use crate::place::Place;
use serde_json::{Value, json};

const PACK: &str = "execution-loop";

/// What a run of the demo's script gives, without what differs from run to run.
fn essence(place: &Place, workflow: &str, repo: &str) -> Value {
    std::fs::create_dir_all(place.path("here").join(repo)).unwrap();
    let run = place.json(&[
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
    let place = Place::new();
    let words = place.words(0, &["pack", "eject", PACK, "out"]);
    for line in [
        "run:    counterfoil run out/workflow.yaml --task TEXT --agent SPEC\n",
        "check:  counterfoil workflow check out/workflow.yaml\n",
        "demo:   counterfoil demo out\n",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let ejected = essence(&place, "out/workflow.yaml", "one");
    assert_eq!(ejected, essence(&place, PACK, "two"));
    assert!(!ejected[4].as_array().unwrap().is_empty(), "nothing was played: {ejected:#}");
}

#[test]
fn every_file_of_every_pack_is_written_as_it_is() {
    let place = Place::new();
    for pack in counterfoil_packs::packs() {
        place.words(0, &["pack", "eject", pack.name(), pack.name()]);
        for (path, bytes) in pack.files() {
            let path = place.path("here").join(pack.name()).join(path);
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
        }
        let workflow = format!("{}/workflow.yaml", pack.name());
        place.words(0, &["workflow", "check", &workflow]);
    }
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone_unless_forced() {
    let place = Place::new();
    place.file("out/mine.txt", "mine");
    place.file("out/workflow.yaml", "mine");
    let words = place.words(2, &["pack", "eject", PACK, "out"]);
    assert!(words.contains("out is not empty") && words.contains("--force"), "{words}");
    assert_eq!(place.read("out/workflow.yaml"), "mine");
    assert_eq!(std::fs::read_dir(place.path("here/out")).unwrap().count(), 2);

    place.words(0, &["pack", "eject", PACK, "out", "--force"]);
    assert!(place.read("out/workflow.yaml").starts_with("workflow: execution-loop\n"));
    assert_eq!(place.read("out/mine.txt"), "mine", "what is not of the pack stays");
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let place = Place::new();
    place.file("elsewhere/mine.txt", "mine");
    place.file("out/mine.txt", "mine");
    std::os::unix::fs::symlink("../elsewhere", place.path("here/out/prompts")).unwrap();
    let words = place.words(2, &["pack", "eject", PACK, "out", "--force"]);
    assert!(words.contains("prompts is a symbolic link"), "{words}");
    assert_eq!(std::fs::read_dir(place.path("here/elsewhere")).unwrap().count(), 1);
    assert!(!place.path("here/out/workflow.yaml").exists(), "half of it was written");
}

#[test]
fn a_file_is_no_folder() {
    let place = Place::new();
    place.file("out", "mine");
    for more in [&[][..], &["--force"]] {
        let words = place.words(2, &[&["pack", "eject", PACK, "out"], more].concat());
        assert!(words.contains("out"), "{words}");
    }
    assert_eq!(place.read("out"), "mine");
}
