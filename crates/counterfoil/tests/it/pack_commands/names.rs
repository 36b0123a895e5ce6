//! Names of packs and workflows: listing, showing and resolving them.

use crate::pack_commands::{empty_project, stderr_of};
use serde_json::json;

const PACKS: [&str; 5] =
    ["execution-loop", "review-fix", "feature-pipeline", "spec-pipeline", "gated-team"];

#[test]
fn packs_are_listed() {
    let project = empty_project();
    insta::assert_snapshot!("list", project.snapshot(&["pack", "list"]));
    let list = project.run_json(&["pack", "list", "--format", "json"]).report;
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
    let project = empty_project();
    insta::assert_snapshot!("show", project.snapshot(&["pack", "show", "execution-loop"]));
    let shown = project.run_json(&["pack", "show", "execution-loop", "--format", "json"]).report;
    let main = &shown["workflows"][0];
    let limit =
        main["inputs"].as_array().unwrap().iter().find(|input| input["name"] == "max_iterations");
    assert_eq!(limit.unwrap()["default"], json!(5));
    let qa = main["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "qa");
    assert_eq!(qa.unwrap()["contract"], "execution-loop/qa@1");
}

#[test]
fn every_pack_passes_the_checker_and_can_be_drawn() {
    let project = empty_project();
    let list = project.run_json(&["pack", "list", "--format", "json"]).report;
    for row in list.as_array().unwrap() {
        for workflow in row["workflows"].as_array().unwrap() {
            let workflow = workflow.as_str().unwrap();
            let words = stderr_of(&project, 0, &["workflow", "check", workflow]);
            assert!(words.starts_with(&format!("{workflow}: {workflow} v")), "{words}");
            let graph = project.run(&["workflow", "graph", workflow]);
            assert!(graph.stdout.contains("-->"), "{workflow}");
        }
    }
}

#[test]
fn a_file_does_not_stand_in_the_way_of_a_pack() {
    let project = empty_project();
    let other = "workflow: other\nstart: done\nstates: { done: { end: done } }\n";
    project.write("execution-loop", other);
    project.write("mine", other);
    project.write("sub/mine", other);
    project.write("execution-loop.yaml", other);
    let name = |word: &str| {
        let words = stderr_of(&project, 0, &["workflow", "check", word]);
        words.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(name("execution-loop"), "execution-loop");
    for file in ["./execution-loop", "execution-loop.yaml", "mine", "sub/mine"] {
        assert_eq!(name(file), "other", "{file}");
    }
}

#[test]
fn a_folder_called_as_a_pack_does_not_stand_in_its_way_either() {
    let project = empty_project();
    project.write("execution-loop/workflow.yaml", "workflow: other\n");
    stderr_of(&project, 0, &["workflow", "check", "execution-loop"]);
}

#[test]
fn names_that_mean_nothing_say_what_is_near() {
    let project = empty_project();
    project.write("folder/workflow.yaml", "");
    let refused: Vec<String> = [
        vec!["run", "execution-lop"],
        vec!["run", "gatedteam"],
        vec!["run", "nothing-of-the-kind"],
        vec!["run", "missing.yaml"],
        vec!["run", "folder/workflwo.yaml"],
        vec!["run", "folder/workflow.yml"],
        vec!["run", "folder"],
        vec!["workflow", "graph", "gated_team"],
        vec!["pack", "show", "exection-loop"],
        vec!["pack", "show", "gatedteam"],
        vec!["pack", "show", "zzz"],
        vec!["pack", "eject", "review-fx", "out"],
        vec!["demo", "gated_team"],
        vec!["demo", "contract"],
        vec!["demo", "zzz"],
        vec!["demo", "folder"],
    ]
    .iter()
    .map(|arguments| project.snapshot(arguments))
    .collect();
    for block in &refused {
        assert!(block.contains("\nexit 2\n"), "{block}");
    }
    insta::assert_snapshot!("refused", refused.join("\n"));
    assert!(!project.path("out").exists());
}

#[test]
fn help_says_what_there_is() {
    let project = empty_project();
    let pages = [vec!["pack", "--help"], vec!["pack", "eject", "--help"], vec!["demo", "--help"]];
    let pages: Vec<String> = pages.iter().map(|arguments| project.snapshot(arguments)).collect();
    insta::assert_snapshot!("help", pages.join("\n"));
}
