//! What commands print without a run.

use super::published::Shapes;
use crate::PROGRAM;
use counterfoil_testkit::TestProject;
use serde_json::json;

const CONTRACT: &str = "\
contract: acme/qa
version: 1
fields: { passed: boolean, fix_info?: string, severity: { type: string, default: low } }
rules:
  - { id: fix-info-when-failed, when: \"!result.passed\", require: [fix_info] }
policy: { repair: syntax, coerce: all, unwrap: { keys: [result] } }
examples: [{ passed: false, fix_info: \"the button is missing\" }]
";

const LIST: &str = "\
contract: acme/list
version: 1
deprecated: use acme/qa
fields: { findings: [{ line: integer }] }
policy: { salvage: [/findings] }
examples: [{ findings: [{ line: 1 }] }]
";

fn project() -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("contracts/qa.yaml", CONTRACT);
    project.write("contracts/list.yaml", LIST);
    project.commit_all("base");
    project
}

/// Texts that give every status and stage, and use each part of a report.
fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("acme/qa", r#"{"passed": true, "severity": "high"}"#.to_owned()),
        (
            "acme/qa",
            "First {\"passed\": 1}\nthen {'result': {'passed': 'true', /* x */}}".to_owned(),
        ),
        ("acme/qa", r#"{"passed": false, "more": 1}"#.to_owned()),
        ("acme/qa", r#"{"passed": tru, "x": [1,"#.to_owned()),
        ("acme/qa", "I ran the tests, and they pass.".to_owned()),
        ("acme/list", r#"{"findings": [{"line": 1}, {"line": "two"}]}"#.to_owned()),
        ("acme/list", json!({"findings": vec![json!({"line": "x"}); 1500]}).to_string()),
    ]
}

#[test]
fn reports_of_texts_have_their_shapes() {
    let project = project();
    let shapes = Shapes::of(&["check", "batch-input", "batch-output"]);
    let mut lines = String::new();
    let mut seen = Vec::new();
    for (index, (contract, text)) in texts().into_iter().enumerate() {
        let line = json!({"id": index, "contract": contract, "text": text});
        shapes.assert_fits("batch-input", &line);
        lines += &format!("{line}\n");
        let file = format!("{index}.txt");
        project.write(&file, text);
        let report = project
            .run(&[
                "check",
                &file,
                "--contract",
                contract,
                "--contracts",
                "contracts",
                "--format",
                "json",
            ])
            .json();
        shapes.assert_fits("check", &report);
        seen.push(format!("{} {}", report["status"], report["stage"]));
        let used = ["left_out", "rejected_items", "partial"];
        seen.extend(
            used.into_iter()
                .filter(|key| {
                    report.get(*key).is_some_and(|part| !part.is_null() && *part != json!([]))
                })
                .map(str::to_owned),
        );
        let parts = report["provenance"].as_object().unwrap();
        seen.extend(
            parts
                .iter()
                .filter(|(_, part)| part.as_array().is_some_and(|part| !part.is_empty()))
                .map(|(key, _)| key.clone()),
        );
    }
    for part in [
        "\"accepted\" null",
        "\"rejected\" \"rules\"",
        "\"rejected\" \"validation\"",
        "\"absent\" \"extraction\"",
        "left_out",
        "rejected_items",
        "repairs",
        "coercions",
        "defaults",
        "unwrapped",
        "passed_over",
    ] {
        assert!(seen.iter().any(|seen| seen == part), "no {part} in {seen:?}");
    }
    let schema = json!({"id": "s", "schema": {"type": "object"}, "framing": "any-json", "repair": "syntax",
        "truncated": "accept", "coerce": true, "strict": false, "text": "{}"});
    shapes.assert_fits("batch-input", &schema);
    lines += &format!("{schema}\n");
    for wrong in [json!({"text": 3}), json!({"text": "", "more": 1}), json!({"id": 1})] {
        assert!(!shapes.fits("batch-input", &wrong), "{wrong}");
        lines += &format!("{wrong}\n");
    }
    project.write("batch.jsonl", &lines);
    project.write("other.jsonl", "{}\n");
    for files in [&["batch.jsonl"][..], &["batch.jsonl", "other.jsonl"]] {
        let arguments = [&["check", "--contracts", "contracts", "--batch"], files].concat();
        let answers = project.run(&arguments).json_lines();
        assert_eq!(answers.len(), lines.lines().count() + files.len() - 1);
        shapes.assert_each_fits("batch-output", &answers);
        assert_eq!(
            answers.iter().filter(|answer| answer["status"] == "error").count(),
            2 + files.len()
        );
    }
    let several = [
        "check",
        "0.txt",
        "2.txt",
        "--contract",
        "acme/qa",
        "--contracts",
        "contracts",
        "--format",
        "json",
    ];
    for report in project.run(&several).json_lines() {
        assert!(report["file"].is_string());
        shapes.assert_fits("check", &report);
    }
}

#[test]
fn lists_of_problems_have_their_shapes() {
    let project = project();
    let shapes = Shapes::of(&["contract-list", "contract-lint", "contract-diff", "workflow-check"]);
    let fits = |kind: &str, arguments: &[&str]| {
        let printed = project.run(&[arguments, &["--format", "json"]].concat()).json();
        shapes.assert_fits(kind, &printed);
        printed
    };
    let list = fits("contract-list", &["contract", "list", "--contracts", "contracts"]);
    assert!(list.as_array().unwrap().iter().any(|item| item["deprecated"].is_string()));
    project.write("counterfoil.toml", "");
    let list = fits("contract-list", &["contract", "list"]);
    assert!(list.as_array().unwrap().iter().any(|item| item["path"].is_string()));
    std::fs::remove_file(project.path("counterfoil.toml")).unwrap();
    project.write("broken.yaml", "contract: acme/broken\nversion: one\nfields: { ok: maybe }\n");
    let lint = fits("contract-lint", &["contract", "lint", "broken.yaml", "contracts"]);
    assert_eq!(lint["contracts"][0]["ok"], false, "{lint}");
    project.write(
        "loose.yaml",
        "contract: acme/loose\nversion: 1\nfields: { ok: { type: string, minlength: 1 } }\n",
    );
    let lint = fits("contract-lint", &["contract", "lint", "loose.yaml"]);
    assert_eq!(lint["contracts"][0]["warnings"][0]["code"], "W0401", "{lint}");
    project.write(
        "qa-2.yaml",
        CONTRACT
            .replace("version: 1", "version: 2")
            .replace("passed: boolean", "passed: string")
            .replace("passed: false", "passed: 'no'")
            .replace("!result.passed", "result.passed == 'no'"),
    );
    let diff = fits("contract-diff", &["contract", "diff", "contracts/qa.yaml", "qa-2.yaml"]);
    assert!(!diff["breaks"].as_array().unwrap().is_empty(), "{diff}");
    fits("contract-diff", &["contract", "diff", "contracts/qa.yaml", "contracts/qa.yaml"]);
    project.write("wrong.yaml", "workflow: wrong\nstart: build\nstates:\n  build: { command: [make], checks: [lint], go: don }\n  done: { end: done }\n");
    project.write("right.yaml", "workflow: right\nstart: build\nstates:\n  build: { command: [make], checks: [lint], go: done }\n  done: { end: done }\n");
    let check =
        fits("workflow-check", &["workflow", "check", "wrong.yaml", "right.yaml", "review-fix"]);
    assert_eq!(
        (&check["workflows"][0]["ok"], &check["workflows"][1]["ok"]),
        (&json!(false), &json!(true)),
        "{check}"
    );
    assert!(!check["workflows"][1]["warnings"].as_array().unwrap().is_empty(), "{check}");
}

const FIX: &str = "\
contract: acme/fix
version: 1
fields: { files_changed: [path], tests_passing: boolean, lint: boolean }
claims:
  files_changed: { kind: files-changed }
  tests_passing: { kind: command, run: \"echo 1 passed\" }
  lint: { kind: command, check: lint }
examples: [{ files_changed: [a.py], tests_passing: true, lint: true }]
";

#[test]
fn verified_claims_have_their_shape() {
    let project = project();
    let shapes = Shapes::of(&["verify"]);
    project.write("fix.yaml", FIX);
    project.write("a.py", "x = 1\n");
    project.commit_all("work");
    project.write("a.py", "def f():\n    raise NotImplementedError  # TODO: write it\n");
    project.write(
        "fix.txt",
        r#"{"files_changed": ["a.py", "b.py"], "tests_passing": true, "lint": true}"#,
    );
    project.write("bad.txt", "{}");
    let base =
        ["verify", "fix.txt", "--contract", "fix.yaml", "--base", "HEAD", "--format", "json"];
    let plain = project.run(&base).json();
    shapes.assert_fits("verify", &plain);
    assert!(plain.get("unfinished").is_none() && plain.get("not_examined").is_none(), "{plain}");
    project.write("Makefile", "test:\n\ttrue\n");
    let strict = project.run(&[&base[..], &["--strict", "--no-commands"]].concat()).json();
    shapes.assert_fits("verify", &strict);
    assert!(!strict["unfinished"].as_array().unwrap().is_empty(), "{strict}");
    assert_eq!(strict["not_examined"][0]["file"], "Makefile", "{strict}");
    let verdicts = [&plain, &strict].map(|report| report["claims"].to_string()).concat();
    for verdict in ["verified", "refuted", "unverifiable"] {
        assert!(verdicts.contains(&format!("\"{verdict}\"")), "{verdict}: {verdicts}");
    }
    let bad = ["verify", "bad.txt", "--contract", "fix.yaml", "--base", "HEAD", "--format", "json"];
    shapes.assert_fits("verify", &project.run(&bad).json());
}

#[test]
fn what_is_said_of_the_setup_and_of_packs_has_its_shape() {
    let project = project();
    let shapes = Shapes::of(&["doctor", "pack-list", "pack-show"]);
    project.write_program("bin/claude", "echo '2.1.0 (Claude Code)'");
    let path = format!("{}:/usr/bin:/bin", project.path("bin").display());
    let mut doctor = project.command(&["doctor", "--format", "json"]);
    let doctor = doctor.env("PATH", path).output().json();
    shapes.assert_fits("doctor", &doctor);
    assert!(doctor["programs"].as_array().unwrap().iter().any(|one| one["path"].is_string()));
    let list = project.run(&["pack", "list", "--format", "json"]).json();
    shapes.assert_fits("pack-list", &list);
    let shown = project.run(&["pack", "show", "review-fix", "--format", "json"]).json();
    shapes.assert_fits("pack-show", &shown);
    assert!(!shown["workflows"][0]["checks"].as_array().unwrap().is_empty(), "{shown:#}");
}
