//! Invalid recordings and transcripts: each is reported, and the others are still replayed.

use crate::recordings::runs::{exported, recording};
use crate::runs::project::WorkflowProject;
use serde_json::json;

#[test]
fn what_cannot_be_judged_is_told_and_the_rest_goes_on() {
    let project = exported();
    for name in ["newer", "cut", "edited", "lost", "outside"] {
        for file in ["recording.json", "attempts/001-work/1.prompt", "attempts/001-work/1.stdout"] {
            project.write(format!("{name}/{file}"), project.read(format!("rec/{file}")));
        }
        for file in ["attempts/001-work/2.prompt", "attempts/001-work/2.stdout"] {
            project.write(format!("{name}/{file}"), project.read(format!("rec/{file}")));
        }
    }
    project.write(
        "newer/recording.json",
        r#"{"version": 9, "made_by": "counterfoil 9.0", "shape": "another"}"#,
    );
    let whole = project.read("rec/recording.json");
    project.write("cut/recording.json", &whole[..whole.len() / 2]);
    project.write("edited/attempts/001-work/1.stdout", "{\"ok\": true}");
    std::fs::remove_file(project.path("lost/attempts/001-work/2.stdout")).unwrap();
    let mut outside = recording(&project);
    outside["attempts"][0]["replies"][0]["stdout"]["file"] = json!("../rec/recording.json");
    project.write("outside/recording.json", outside.to_string());
    let shown = project.snapshot(&["replay", "newer", "cut", "edited", "lost", "outside", "rec"]);
    // Where half of the file ends depends on how long its times are.
    let (before, cut) = shown.split_once("it is not a recording: ").unwrap();
    let (_, behind) = cut.split_once("; export").unwrap();
    insta::assert_snapshot!(
        "broken_recordings",
        format!("{before}it is not a recording: [where it was cut]; export{behind}")
    );
}

#[test]
fn wrong_usage_names_the_thing_and_the_way_out() {
    let project = WorkflowProject::new("", "");
    project.write("empty/notes.md", "nothing");
    for (arguments, words) in [
        (vec!["replay", "none"], "cannot open none"),
        (vec!["replay", "empty"], "there is nothing to replay in empty; pass a recording"),
        (vec!["replay", "empty", "--agent", "cluade"], "did you mean 'claude'?"),
        (vec!["replay", "empty", "--contract", "acme/none"], "no contract is called 'acme/none'"),
    ] {
        let said = project.run_refused(&arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_great_many_files_are_looked_through() {
    let project = exported();
    std::fs::create_dir(project.path("many")).unwrap();
    for number in 0..10_000 {
        std::fs::write(project.path(format!("many/{number}.txt")), "").unwrap();
    }
    std::fs::rename(project.path("rec"), project.path("many/rec")).unwrap();
    std::os::unix::fs::symlink(project.path("many"), project.path("many/circle")).unwrap();
    let replayed = project.run_json(&["replay", "many", "--format", "json"]);
    assert_eq!(replayed.report["summary"]["same"], json!(1));
    assert!(
        replayed.stderr.contains("many/circle is skipped: it is a link to a folder"),
        "{}",
        replayed.stderr
    );
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused_with_its_line() {
    let project = exported();
    project
        .write("counterfoil.toml", "[redact]\npatterns = [\n  \"good-[0-9]+\",\n  \"bad-(\",\n]\n");
    let said = project.run_refused(&["export", "last", "other"]);
    assert!(
        said.contains("line 4: \"bad-(\" in redact.patterns cannot be used: unclosed group"),
        "{said}"
    );
    assert!(!project.path("other").exists());
}
