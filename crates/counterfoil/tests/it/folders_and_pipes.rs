//! Folders of contract and workflow files, and pipes whose reader goes away.

use crate::PROGRAM;
use counterfoil_testkit::{CommandOutput, TestProject};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const CONTRACT: &str = "contract: acme/NAME\nversion: 1\nfields: { ok: boolean }\n";

fn project_with(files: &[(&str, &str)]) -> TestProject {
    let project = TestProject::new(PROGRAM);
    for (name, text) in files {
        project.write(name, text);
    }
    project
}

fn lint(project: &TestProject) -> CommandOutput {
    project.run(&["contract", "lint", "contracts"])
}

#[test]
fn every_form_of_the_key_makes_a_contract() {
    let bom = format!("\u{feff}{}", CONTRACT.replace("NAME", "bom"));
    let project = project_with(&[
        ("contracts/plain.yaml", &CONTRACT.replace("NAME", "plain")),
        ("contracts/bom.yaml", &bom),
        (
            "contracts/blank.yaml",
            &CONTRACT.replace("NAME", "blank").replace("contract:", "contract :"),
        ),
        (
            "contracts/quoted.yaml",
            &CONTRACT.replace("NAME", "quoted").replace("contract:", "'contract':"),
        ),
    ]);
    let output = lint(&project);
    assert_eq!(output.code, Some(0), "{output:?}");
    for name in ["plain", "bom", "blank", "quoted"] {
        assert!(output.stderr.contains(&format!("{name}.yaml")), "{name}: {}", output.stderr);
        let id = format!("acme/{name}");
        let mut command =
            project.command(&["check", "--contract", &id, "--contracts", "contracts"]);
        let output = command.write_stdin(r#"{"ok": true}"#).output();
        assert_eq!(output.code, Some(0), "{name}: {output:?}");
    }
}

const WORKFLOW: &str = "workflow: NAME\nstart: a\nstates: { a: { end: done } }\n";

#[test]
fn files_that_are_left_out_are_named() {
    let project = project_with(&[
        ("contracts/good.yaml", &CONTRACT.replace("NAME", "good")),
        ("contracts/compose.yaml", "services: {}\n"),
        ("contracts/data.json", "[1, 2]"),
    ]);
    let note =
        "2 files left out, without a key `contract`: contracts/compose.yaml, contracts/data.json";
    lint(&project).expect(0, &[note]);
    for (format, shown) in [
        ("json", "\"contracts/compose.yaml\""),
        ("sarif", "toolExecutionNotifications"),
        ("github", "::notice title=files left out::2 files left out"),
    ] {
        let output = project.run(&["contract", "lint", "contracts", "--format", format]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stdout.contains(shown), "{}", output.stdout);
    }
    for index in 0..12 {
        project.write(format!("contracts/more{index:02}.yml"), "a: 1\n");
    }
    lint(&project).expect(0, &["14 files left out", "contracts/more07.yml and 4 more"]);
}

#[test]
fn a_file_with_a_misspelt_key_or_another_encoding_is_an_error() {
    let utf16 = |text: &str| {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        bytes
    };
    let project = project_with(&[
        ("contracts/good.yaml", &CONTRACT.replace("NAME", "good")),
        ("contracts/typo.yaml", &CONTRACT.replace("contract:", "contrct:")),
        ("flows/good.yaml", WORKFLOW),
        ("flows/typo.yaml", &WORKFLOW.replace("workflow:", "workflw:")),
    ]);
    project.write("contracts/wide.yaml", utf16(CONTRACT));
    project.write("flows/wide.yaml", utf16(WORKFLOW));
    lint(&project).expect(1, &["typo.yaml", "did you mean 'contract'", "wide.yaml", "UTF-16"]);
    let check = project.run(&["workflow", "check", "flows"]);
    check.expect(1, &["typo.yaml", "did you mean 'workflow'?", "wide.yaml", "UTF-16"]);
}

#[test]
fn a_finding_shows_the_path_of_its_file() {
    let project =
        project_with(&[("flows/sub/bad.yaml", &WORKFLOW.replace("start: a", "start: b"))]);
    project.run(&["workflow", "check", "flows"]).expect(1, &["[flows/sub/bad.yaml:2:8]"]);
}

#[test]
fn a_key_is_found_in_every_layout_and_a_file_by_every_extension() {
    let project = project_with(&[
        ("contracts/flow.yaml", "{version: 1, contract: acme/flow, fields: {ok: boolean}}\n"),
        ("contracts/UP.YAML", &CONTRACT.replace("NAME", "up")),
        ("flows/flow.yaml", "{start: a, workflow: flow, states: {a: {end: done}}}\n"),
        ("flows/UP.YML", &WORKFLOW.replace("NAME", "up")),
        (
            "flows/pretty.json",
            "{\n  \"start\": \"a\",\n  \"workflow\": \"pretty\",\n  \"states\": {\"a\": {\"end\": \"done\"}}\n}\n",
        ),
    ]);
    lint(&project).expect(0, &["acme/flow@1 is valid", "acme/up@1 is valid"]);
    let check = project.run(&["workflow", "check", "flows"]);
    check.expect(0, &["flow v1 is valid", "up v1 is valid", "pretty v1 is valid"]);
}

#[test]
fn a_pipe_in_a_folder_is_a_finding() {
    let project = project_with(&[("contracts/good.yaml", &CONTRACT.replace("NAME", "good"))]);
    let made = Command::new("mkfifo").arg(project.path("contracts/pipe.yaml")).status();
    assert!(made.unwrap().success());
    lint(&project).expect(1, &["pipe.yaml"]);
    assert_ne!(project.run(&["workflow", "check", "contracts"]).code, Some(0));
}

#[test]
fn a_recursive_contract_is_compatible_with_itself() {
    let project = project_with(&[(
        "tree.yaml",
        "contract: acme/tree\nversion: 1\nschema: { type: object, properties: { a: { $ref: '#/$defs/t' } }, \
         $defs: { t: { type: object, properties: { kids: { type: array, items: { $ref: '#/$defs/t' } } } } } }\n",
    )]);
    project.run(&["contract", "diff", "tree.yaml", "tree.yaml"]).expect(0, &["additive"]);
}

#[test]
fn a_batch_whose_answers_nobody_reads_is_no_success() {
    let line = r#"{"contract": "execution-loop/base", "text": "{}"}"#;
    let project = project_with(&[("batch.jsonl", &format!("{line}\n").repeat(20_000))]);
    let mut child = Command::new(PROGRAM)
        .args(["check", "--batch", "batch.jsonl"])
        .current_dir(project.repo())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"status\""), "{first}");
    assert_ne!(child.wait().unwrap().code(), Some(0));
}
