//! Packs by their names: what is listed and shown, and what a name means.

use crate::place::Place;
use serde_json::json;

const PACKS: [&str; 5] =
    ["execution-loop", "review-fix", "feature-pipeline", "spec-pipeline", "gated-team"];

#[test]
fn packs_are_listed() {
    let place = Place::new();
    insta::assert_snapshot!("list", place.shown(&["pack", "list"]));
    let list = place.json(&["pack", "list", "--format", "json"]);
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, PACKS);
    for row in list.as_array().unwrap() {
        assert_eq!(row["workflows"][0], row["name"], "{row:#}");
        assert!(!row["summary"].as_str().unwrap().is_empty(), "{row:#}");
        assert!(!row["agents"].as_array().unwrap().is_empty(), "{row:#}");
        assert_eq!(row["inputs"][0]["name"], "task", "{row:#}");
        for key in ["type", "required", "default", "summary"] {
            assert!(row["inputs"][0].get(key).is_some(), "{key}");
        }
    }
}

#[test]
fn a_pack_is_shown() {
    let place = Place::new();
    insta::assert_snapshot!("show", place.shown(&["pack", "show", "execution-loop"]));
    let shown = place.json(&["pack", "show", "execution-loop", "--format", "json"]);
    let main = &shown["workflows"][0];
    let limit =
        main["inputs"].as_array().unwrap().iter().find(|input| input["name"] == "max_iterations");
    assert_eq!(limit.unwrap()["default"], json!(5));
    let qa = main["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "qa");
    assert_eq!(qa.unwrap()["contract"], "execution-loop/qa@1");
}

#[test]
fn every_pack_passes_the_checker_and_can_be_drawn() {
    let place = Place::new();
    let list = place.json(&["pack", "list", "--format", "json"]);
    for row in list.as_array().unwrap() {
        for workflow in row["workflows"].as_array().unwrap() {
            let workflow = workflow.as_str().unwrap();
            let words = place.words(0, &["workflow", "check", workflow]);
            assert!(words.starts_with(&format!("{workflow}: {workflow} v")), "{words}");
            let graph = place.said(&["workflow", "graph", workflow]);
            assert!(String::from_utf8_lossy(&graph.stdout).contains("-->"), "{workflow}");
        }
    }
}

#[test]
fn a_file_does_not_stand_in_the_way_of_a_pack() {
    let place = Place::new();
    let other = "workflow: other\nstart: done\nstates: { done: { end: done } }\n";
    place.file("execution-loop", other);
    place.file("mine", other);
    place.file("sub/mine", other);
    place.file("execution-loop.yaml", other);
    let name = |word: &str| {
        let words = place.words(0, &["workflow", "check", word]);
        words.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(name("execution-loop"), "execution-loop");
    for file in ["./execution-loop", "execution-loop.yaml", "mine", "sub/mine"] {
        assert_eq!(name(file), "other", "{file}");
    }
}

#[test]
fn a_folder_called_as_a_pack_does_not_stand_in_its_way_either() {
    let place = Place::new();
    place.file("execution-loop/workflow.yaml", "workflow: other\n");
    place.words(0, &["workflow", "check", "execution-loop"]);
}

#[test]
fn names_that_mean_nothing_say_what_is_near() {
    let place = Place::new();
    place.file("folder/workflow.yaml", "");
    let refused: Vec<String> = [
        vec!["run", "execution-lop"],
        vec!["run", "nothing-of-the-kind"],
        vec!["run", "missing.yaml"],
        vec!["run", "folder"],
        vec!["workflow", "graph", "gated_team"],
        vec!["pack", "show", "exection-loop"],
        vec!["pack", "show", "zzz"],
        vec!["pack", "eject", "review-fx", "out"],
        vec!["demo", "gated-tem"],
        vec!["demo", "zzz"],
        vec!["demo", "folder"],
    ]
    .iter()
    .map(|arguments| place.shown(arguments))
    .collect();
    for block in &refused {
        assert!(block.contains("\nexit 2\n"), "{block}");
    }
    insta::assert_snapshot!("refused", refused.join("\n"));
    assert!(!place.path("here/out").exists());
}

#[test]
fn help_says_what_there_is() {
    let place = Place::new();
    let pages = [vec!["pack", "--help"], vec!["pack", "eject", "--help"], vec!["demo", "--help"]];
    let pages: Vec<String> = pages.iter().map(|arguments| place.shown(arguments)).collect();
    insta::assert_snapshot!("help", pages.join("\n"));
}
