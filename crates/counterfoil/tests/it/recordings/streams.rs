//! Replaying the output of programs: transcripts with their exit codes, and named streams.

use crate::runs::project::WorkflowProject;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The recorded transcripts of the real programs, with which the adapters are tested.
fn transcripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../counterfoil-agents/tests/it/agents/transcripts")
}

/// A project with these transcripts in `said/CLI/`.
fn with(cli: &str, names: &[&str]) -> WorkflowProject {
    let project = WorkflowProject::new("", "");
    for name in names {
        for end in ["stdout", "stderr", "meta.json"] {
            let file = transcripts().join(cli).join(format!("{name}.{end}"));
            let text = std::fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            project.write(format!("said/{cli}/{name}.{end}"), &text);
        }
    }
    project
}

#[test]
fn transcripts_are_new_until_they_are_recorded() {
    let project = with("codex", &["json", "err401-json", "badflag", "sigterm-json"]);
    let shown =
        [project.snapshot(&["replay", "said"]), project.snapshot(&["replay", "said", "--update"])]
            .join("\n");
    insta::assert_snapshot!("transcripts", shown);
    let replayed = project.run_json(&["replay", "said", "--format", "json"]);
    assert_eq!(
        (replayed.code, &replayed.report["summary"]["same"]),
        (Some(0), &json!(4)),
        "{}",
        replayed.report
    );
    // Another answer, another cost, another end.
    let said = project.read("said/codex/json.stdout");
    project.write(
        "said/codex/json.stdout",
        said.replace("hello from mock", "good evening")
            .replace("\"output_tokens\":5", "\"output_tokens\":7"),
    );
    let replayed = project.run_json(&["replay", "said/codex/json.stdout", "--format", "json"]);
    let whats: Vec<&Value> = replayed.report["replayed"][0]["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["what"])
        .collect();
    assert_eq!(whats, [&json!("usage.output_tokens"), &json!("text")]);
    assert_eq!(replayed.code, Some(1));
}

#[test]
fn a_stream_is_judged_by_the_contract_that_is_named() {
    let project = with("gemini", &["stream-json-stdin"]);
    let said = project.read("said/gemini/stream-json-stdin.stdout");
    // Somewhere that does not say whose it is.
    project.write(
        "stream.jsonl",
        said.replace("hello fr", "{\\\"ok\\\": tr").replace("om mock", "ue}"),
    );
    let arguments = [
        "replay",
        "stream.jsonl",
        "--contract",
        "scene/step",
        "--contracts",
        "contracts",
        "--format",
        "json",
    ];
    let replayed = project.run_json(&[&arguments[..], &["--agent", "gemini"]].concat());
    let one = &replayed.report["replayed"][0];
    assert_eq!((&one["outcome"], &one["channel"]), (&json!("accepted"), &json!("text")), "{one}");
    // Whose it is can be told from it.
    let replayed = project.run_json(&arguments);
    assert_eq!(replayed.report["replayed"][0]["outcome"], json!("accepted"), "{}", replayed.report);
    // What was handed in counts for more, and is asked about if the text contradicts it.
    for (ok, outcome, codes) in
        [(true, "accepted", json!([])), (false, "contract", json!(["C0118"]))]
    {
        let submission = json!({"at": 1, "contract": "scene/step@1", "status": "accepted", "value": {"ok": ok, "note": "n"}, "codes": []});
        project.write("stream.submissions.jsonl", format!("{submission}\n"));
        let replayed = project.run_json(&arguments);
        let one = &replayed.report["replayed"][0];
        assert_eq!(
            (&one["outcome"], &one["channel"], &one["codes"]),
            (&json!(outcome), &json!("submitted"), &codes),
            "{one}"
        );
    }
}

#[test]
fn every_transcript_of_the_programs_is_told_from_the_others() {
    let project = WorkflowProject::new("", "");
    let mut told = 0;
    for cli in ["codex", "gemini"] {
        let scene_of = |name: &str| format!("{cli}-{name}.jsonl");
        for entry in std::fs::read_dir(transcripts().join(cli)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(name) = name.strip_suffix(".stdout") {
                std::fs::copy(&path, project.path(scene_of(name))).unwrap();
            }
        }
    }
    let replayed = project.run_json(&["replay", ".", "--format", "json"]);
    for one in replayed.report["replayed"].as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        assert_eq!(one["result"], json!("new"), "{one}");
        let program = one["program"].as_str().unwrap();
        assert!(name.contains(&format!("/{program}-")), "{name} is taken for one of {program}");
        told += 1;
    }
    assert!(told > 20, "{told} streams were known: {}", replayed.report["summary"]);
}

#[test]
fn plain_texts_and_long_lines_are_read() {
    let project = WorkflowProject::new("", "");
    project.write("reply.txt", "Here it is: {\"ok\": true}");
    let line = format!(
        "{{\"type\":\"item.completed\",\"item\":{{\"type\":\"other\",\"x\":\"{}\"}}}}\n",
        "x".repeat(20 << 20)
    );
    let stream = std::fs::read_to_string(transcripts().join("codex/json.stdout")).unwrap();
    project.write("codex/long.stdout", &(line + &stream));
    project.write("codex/long.meta.json", "{\"rc\": 0}");
    let arguments = [
        "replay",
        "reply.txt",
        "codex",
        "--contract",
        "scene/step",
        "--contracts",
        "contracts",
        "--format",
        "json",
    ];
    let replayed = project.run_json(&arguments);
    let outcome = |at: usize| replayed.report["replayed"][at]["outcome"].clone();
    assert_eq!(
        (outcome(0), outcome(1)),
        (json!("contract"), json!("accepted")),
        "{}",
        replayed.report
    );
    assert_eq!(replayed.report["replayed"][0]["text"], json!("hello from mock"));
}

#[test]
fn a_program_that_refused_the_schema_is_judged_by_what_it_said_without() {
    let project = with("codex", &["schema-refused", "json"]);
    let both =
        project.read("said/codex/schema-refused.stdout") + &project.read("said/codex/json.stdout");
    project.write("codex/both.stdout", &both);
    let replayed = project.run_json(&["replay", "codex", "--format", "json"]);
    let one = &replayed.report["replayed"][0];
    assert_eq!(
        (&one["outcome"], &one["text"]),
        (&json!("unjudged"), &json!("hello from mock")),
        "{one}"
    );
}

#[test]
fn a_recorded_transcript_that_cannot_be_read_is_broken() {
    let project = with("codex", &["json"]);
    // Nothing but its events says which program wrote it.
    for name in ["a", "b"] {
        project.write(format!("kept/{name}.jsonl"), project.read("said/codex/json.stdout"));
    }
    let replay = |arguments: &[&str]| {
        let all = [&["replay", "kept", "--format", "json"][..], arguments].concat();
        let replayed = project.run_json(&all);
        let summary = &replayed.report["summary"];
        (replayed.code, summary["same"].as_u64(), summary["broken"].as_u64())
    };
    replay(&["--update"]);
    assert_eq!(replay(&[]), (Some(0), Some(2), Some(0)));
    let b = project.path("kept/b.jsonl");
    let whole = project.read("kept/b.jsonl");
    let broken = (Some(1), Some(1), Some(1));
    project.write("kept/b.jsonl", "");
    assert_eq!(replay(&[]), broken, "emptied");
    std::fs::remove_file(&b).unwrap();
    assert_eq!(replay(&[]), broken, "deleted");
    std::os::unix::fs::symlink("nothing", &b).unwrap();
    assert_eq!(replay(&[]), broken, "a link to nothing");
    for format in ["human", "junit", "github"] {
        let output = project.run(&["replay", "kept", "--format", format]);
        output.expect(1, &[]);
        assert!(output.stdout.contains("b.jsonl"), "{format}: {output:?}");
    }
    std::fs::remove_file(&b).unwrap();
    project.write("kept/b.jsonl", &whole);
    assert_eq!(replay(&[]), (Some(0), Some(2), Some(0)), "restored");
    // Nor does a pipe in the place of a recording pass for none.
    let pipe = project.path("kept/run/recording.json");
    std::fs::create_dir(project.path("kept/run")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    project.write("kept/run/c.stdout", "hello");
    assert_eq!(replay(&[]), (Some(1), Some(2), Some(1)), "a pipe");
}
