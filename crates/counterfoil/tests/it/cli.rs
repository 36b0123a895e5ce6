//! Arguments, standard input, output streams and exit codes of the commands for contracts.

use crate::PROGRAM;
use counterfoil_testkit::{CommandOutput, TestCommand};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program without any inherited variable, not even `PATH`.
fn counterfoil() -> TestCommand {
    let mut command = TestCommand::new(PROGRAM);
    command.as_std().env_clear().env("NO_COLOR", "1").env("LANG", "C.UTF-8");
    command
}

/// Runs a command and returns a readable block for snapshots.
fn snapshot(command: &mut TestCommand) -> String {
    command.output().to_block()
}

fn report(command: &mut TestCommand) -> Value {
    command.output().json()
}

fn file(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const QA: &str = "execution-loop/qa";
const GOOD: &str = "Done.\n\n```json\n{\"dod_achieved\": true, \"checks\": [{\"criterion\": \"tests\", \"passed\": true}]}\n```\n";
const BAD: &str = "Done.\n\n```json\n{\"dod_achieved\": true, \"checks\": [{\"criterion\": \"tests\", \"passed\": false}], \"test_results\": {\"total\": \"3\"}}\n```\n";

#[test]
fn an_accepted_text_gives_the_value_on_stdout() {
    insta::assert_snapshot!(snapshot(
        counterfoil().args(["check", "--contract", QA]).write_stdin(GOOD)
    ));
}

#[test]
fn a_rejected_text_is_explained_on_stderr() {
    insta::assert_snapshot!(snapshot(
        counterfoil().args(["check", "-", "--contract", QA]).write_stdin(BAD)
    ));
}

#[test]
fn an_absent_result_is_no_success() {
    insta::assert_snapshot!(snapshot(
        counterfoil()
            .args(["check", "--contract", "review-fix/review-result"])
            .write_stdin("LGTM, approved!")
    ));
}

#[test]
fn a_long_line_is_cut_to_the_place() {
    let text = format!(
        "{{\"padding\": \"{}\", \"dod_achieved\": \"yes\", \"checks\": [], \"more\": \"{}\"}}",
        "x".repeat(5000),
        "y".repeat(5000)
    );
    insta::assert_snapshot!(snapshot(
        counterfoil().args(["check", "--contract", QA]).write_stdin(text)
    ));
}

#[test]
fn the_json_report_has_the_promised_shape() {
    let report = report(
        counterfoil().args(["check", "--contract", QA, "--format", "json"]).write_stdin(BAD),
    );
    for key in [
        "contract",
        "status",
        "stage",
        "value",
        "partial",
        "violations",
        "warnings",
        "rejected_items",
        "provenance",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
    assert_eq!(report["contract"], "execution-loop/qa@1");
    assert_eq!(report["status"], "rejected");
    assert_eq!(report["value"], Value::Null);
    for key in ["code", "pointer", "span", "message", "expected", "received", "hint"] {
        assert!(report["violations"][0].get(key).is_some(), "{key}");
    }
    for key in ["framing", "candidates", "chosen", "span", "repairs", "coercions"] {
        assert!(report["provenance"].get(key).is_some(), "{key}");
    }
}

#[test]
fn exit_codes_are_a_table() {
    let folder = TempDir::new().unwrap();
    let good = file(&folder, "good.txt", GOOD);
    for (arguments, code) in [
        (vec!["check", &good, "--contract", QA], 0),
        (vec!["check", &good, "--contract", "execution-loop/dod"], 1),
        (vec!["check", &good, "--contract", "execution-loop/nope"], 2),
        (vec!["check", "/no/such/file", "--contract", QA], 2),
        (vec!["check", ".", "--contract", QA], 2),
        (vec!["check", &good], 2),
        (vec!["check", &good, "--contract", QA, "--schema", &good], 2),
        (vec!["check", &good, "--schema", &good], 2),
        (vec!["check", &good, "--contract", QA, "--coerce"], 2),
        (vec!["check", &good, "--contract", QA, "--max-depth", "100000"], 2),
        (vec!["demo", "contract"], 2),
        (vec!["demo", "contracts", "--keep", "x"], 2),
        (vec!["explain", "C9999"], 2),
        (vec!["explain", "c0201"], 0),
        (vec!["nonsense"], 2),
    ] {
        let output = counterfoil().args(&arguments).output();
        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
        if code == 2 {
            assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn usage_errors_name_the_thing_and_the_way_out() {
    insta::assert_snapshot!(
        [
            snapshot(
                counterfoil().args(["check", "--contract", "execution-loop/qaa"]).write_stdin("")
            ),
            snapshot(
                counterfoil().args(["check", "--contract", "execution-loop/qa@7"]).write_stdin("")
            ),
            snapshot(counterfoil().args(["check", "/no/such/file", "--contract", QA])),
            snapshot(counterfoil().args(["check"]).write_stdin("")),
        ]
        .join("\n")
    );
}

/// The report about a text that is checked against a schema.
fn check_by_schema(schema: &str, flags: &[&str], text: &str) -> Value {
    let mut command = counterfoil();
    command.args(["check", "--format", "json", "--schema", schema]).args(flags);
    report(command.write_stdin(text))
}

#[test]
fn any_schema_serves() {
    let folder = TempDir::new().unwrap();
    let schema = file(
        &folder,
        "schema.json",
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})
            .to_string(),
    );
    let check = |flags: &[&str], text: &str| check_by_schema(&schema, flags, text);
    assert_eq!(check(&[], "x {\"n\": 1}")["value"], json!({"n": 1}));
    assert_eq!(check(&[], "{'n': 1}")["status"], "rejected");
    assert_eq!(check(&["--repair", "syntax"], "{'n': 1}")["value"], json!({"n": 1}));
    let cut = "{\"n\": 1, \"m\": \"cut o";
    assert_eq!(check(&["--repair", "syntax"], cut)["violations"][0]["code"], "C0121");
    assert_eq!(
        check(&["--repair", "syntax", "--truncated", "accept"], cut)["value"],
        json!({"n": 1, "m": "cut o"})
    );
    assert_eq!(check(&[], "{\"n\": \"1\"}")["status"], "rejected");
    assert_eq!(check(&["--coerce"], "{\"n\": \"1,234\"}")["value"], json!({"n": 1234}));
    assert_eq!(
        check(&["--framing", "json-only"], "x {\"n\": 1}")["violations"][0]["code"],
        "C0105"
    );
    assert_eq!(check(&["--max-bytes", "3"], "{\"n\": 1}")["violations"][0]["code"], "C0103");
    assert_eq!(check(&["--max-depth", "1"], "{\"n\": [1]}")["violations"][0]["code"], "C0104");
}

#[test]
fn a_part_of_the_prompt_is_no_answer() {
    let folder = TempDir::new().unwrap();
    let schema = file(
        &folder,
        "schema.json",
        json!({"type": "object", "required": ["note"], "properties": {"note": {"type": "string"}}})
            .to_string(),
    );
    let prompt = file(&folder, "prompt.md", "Answer like this:\n\n{\"note\": \"All was read.\"}\n");
    let check = |flags: &[&str], text: &str| check_by_schema(&schema, flags, text);
    let quoted = "You want { \"note\": \"All was read.\" } from me.";
    assert_eq!(check(&[], quoted)["status"], "accepted");
    let report = check(&["--prompt", &prompt], quoted);
    assert_eq!(
        (&report["status"], &report["violations"][0]["code"]),
        (&json!("absent"), &json!("C0116"))
    );
    let own = format!("{quoted}\n{{\"note\": \"Half was read.\"}}");
    assert_eq!(check(&["--prompt", &prompt], &own)["value"], json!({"note": "Half was read."}));
}

#[test]
fn schemas_that_cannot_be_used_say_why() {
    let folder = TempDir::new().unwrap();
    for (name, schema, word) in [
        ("remote", json!({"$ref": "https://example.com/x.json"}), "nothing is fetched"),
        ("file", json!({"properties": {"a": {"$ref": "other.json#/x"}}}), "nothing is fetched"),
        ("loop", json!({"$ref": "#"}), "refers to itself"),
        (
            "loops",
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            "refers to itself",
        ),
        ("type", json!({"type": "strng"}), "schema"),
        ("bomb", json!({"type": "string", "pattern": "(((a{100}){100}){100}){100}"}), "schema"),
    ] {
        let path = file(&folder, &format!("{name}.json"), schema.to_string());
        let output = counterfoil().args(["check", "--schema", &path]).write_stdin("{}").output();
        assert_eq!(output.code, Some(2), "{name}");
        assert!(output.stderr.contains(word), "{name}: {}", output.stderr);
    }
    // A slow pattern and a recursive schema are fine: linear matching, bounded depth.
    let slow = file(
        &folder,
        "slow.json",
        json!({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}, "next": {"$ref": "#"}}})
            .to_string(),
    );
    let text = json!({"a": format!("{}!", "a".repeat(50_000)), "next": {"next": {}}}).to_string();
    assert_eq!(
        counterfoil().args(["check", "--schema", &slow]).write_stdin(text).output().code,
        Some(1)
    );
}

#[test]
fn a_schema_with_a_key_twice_is_refused_with_its_place() {
    let folder = TempDir::new().unwrap();
    for (name, schema, says) in [
        (
            "a.json",
            "{\"type\": \"object\",\n\"type\": \"array\"}",
            "a.json: the key \"type\" occurs twice in one object at line 2 column",
        ),
        (
            "b.yaml",
            "type: object\nproperties:\n  a: {}\n  a: { type: string }\n",
            "b.yaml: the key `a` occurs twice at line 4",
        ),
    ] {
        let path = file(&folder, name, schema);
        let output = counterfoil().args(["check", "--schema", &path]).write_stdin("{}").output();
        assert_eq!(output.code, Some(2), "{name}");
        assert!(output.stderr.contains(says), "{name}: {}", output.stderr);
    }
    let lines = concat!(
        r#"{"id": 1, "text": "1", "schema": {"type": "number", "type": "string"}}"#,
        "\n",
        // The keys of the text are those of the result.
        r#"{"id": 2, "text": "{\"a\": 1}", "schema": {"type": "object"}}"#,
        "\n",
    );
    let batch = file(&folder, "batch.jsonl", lines);
    let output = counterfoil().args(["check", "--batch", &batch]).output();
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let answers: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&answers[0]["id"], &answers[0]["status"]), (&json!(1), &json!("error")));
    let message = answers[0]["message"].as_str().unwrap();
    assert!(message.contains("the key \"type\" occurs twice in one object at column"), "{message}");
    assert_eq!(answers[1]["status"], "accepted");
}

#[test]
fn sarif_validates_against_its_schema() {
    let log = report(
        counterfoil().args(["check", "--contract", QA, "--format", "sarif"]).write_stdin(BAD),
    );
    let schema = include_str!("../fixtures/sarif-2.1.0.json");
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    // Its pattern for languages has an unbalanced bracket, which a careful validator refuses; we
    // write no language.
    for part in ["run", "toolComponent"] {
        schema["definitions"][part]["properties"]["language"]
            .as_object_mut()
            .unwrap()
            .remove("pattern");
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&log)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert!(
        !validator.is_valid(&json!({"version": "2.1.0", "runs": [{"results": 1}]})),
        "the schema can refuse"
    );
    let region = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 4);
}

#[test]
fn junit_and_github() {
    for format in ["junit", "github"] {
        let text = "{\"dod_achieved\": \"<yes> & \\\"no\\\"\", \"checks\": []}";
        insta::assert_snapshot!(
            format,
            snapshot(
                counterfoil()
                    .args(["check", "--contract", QA, "--format", format])
                    .write_stdin(text)
            )
        );
    }
}

#[test]
fn a_batch_of_ten_thousand_lines_in_order() {
    let folder = TempDir::new().unwrap();
    let mut lines = String::new();
    for index in 0..10_000 {
        let line = match index % 5 {
            0 => json!({"id": index, "contract": QA, "text": GOOD}),
            1 => json!({"id": index, "contract": QA, "text": "nothing"}),
            2 => {
                json!({"id": index, "schema": {"type": "object"}, "text": "{'a': 1}", "repair": "syntax"})
            }
            3 => json!({"id": index, "contract": "no/such", "text": ""}),
            _ => json!({"id": index, "contract": QA, "text": GOOD, "surprise": 1}),
        };
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    lines.push_str("not json\n\n[1]\n");
    let path = file(&folder, "batch.jsonl", lines);
    let output = counterfoil().args(["check", "--batch", &path]).output();
    assert_eq!(output.code, Some(3), "lines that are not understood take precedence");
    assert_eq!(
        output.stderr,
        "10002 lines: 4000 accepted, 0 rejected, 2000 absent, 4002 not understood\n"
    );
    let results: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 10_002);
    for (index, result) in results.iter().take(10_000).enumerate() {
        assert_eq!(result["id"], index);
        let expected = ["accepted", "absent", "accepted", "error", "error"][index % 5];
        assert_eq!(result["status"], expected, "{result}");
    }
    assert_eq!(results[10_000]["status"], "error");
    assert_eq!(results[10_001]["status"], "error");
}

#[test]
fn a_batch_that_is_all_good_ends_with_zero() {
    let line = json!({"id": "a", "contract": QA, "text": GOOD}).to_string();
    let output = counterfoil().args(["check", "--batch", "-"]).write_stdin(line).output();
    assert_eq!(output.code, Some(0));
}

#[test]
fn each_line_of_a_batch_is_answered_before_the_next_is_read() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let mut command = counterfoil();
    command.args(["check", "--batch", "-", "--contract", QA]);
    let piped = command.as_std().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = piped.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    // Without the flush, this would wait forever: the input stays open.
    for (id, text, expected) in [(1, GOOD, "accepted"), (2, BAD, "rejected"), (3, "-", "absent")] {
        writeln!(input, "{}", json!({"id": id, "text": text})).unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["status"]), (&json!(id), &json!(expected)));
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_batch_has_a_contract_for_all_lines_and_several_files() {
    let folder = TempDir::new().unwrap();
    let batch = |name: &str, lines: &[Value]| {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        file(&folder, name, lines.join("\n"))
    };
    let first = batch("first.jsonl", &[json!({"id": 1, "text": GOOD})]);
    let own =
        json!({"id": 2, "schema": {"type": "object", "required": ["a"]}, "text": "{\"a\": 1}"});
    let second = batch("second.jsonl", &[own, json!({"id": 3, "text": GOOD, "strict": true})]);
    let run = |arguments: &[&str]| counterfoil().args(["check"]).args(arguments).output();
    let all = run(&["--contract", QA, "--batch", &first, &second]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert_eq!(all.stdout.lines().count(), 3);
    assert_eq!(all.stderr, "3 lines: 3 accepted, 0 rejected, 0 absent, 0 not understood\n");
    // A line without any contract is not understood, and says where it is.
    let none = run(&["--batch", &first, "--batch", &second]);
    assert_eq!(none.code, Some(3));
    let line: Value = serde_json::from_str(none.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["status"], &line["file"], &line["line"]),
        (&json!("error"), &json!(first), &json!(1))
    );
    assert!(line["message"].as_str().unwrap().contains("--contract"), "{line}");
    // Settings of a schema do not apply to a contract that the line does not see.
    let setting = batch("setting.jsonl", &[json!({"text": GOOD, "repair": "syntax"})]);
    assert_eq!(run(&["--contract", QA, "--batch", &setting]).code, Some(3));
    // Nothing is not a batch in which everything is accepted.
    for empty in ["", "\n \n"] {
        let output = counterfoil().args(["check", "--batch", "-"]).write_stdin(empty).output();
        assert_eq!(output.code, Some(3));
        assert!(output.stderr.contains("the batch is empty"), "{}", output.stderr);
    }
    // An option that all lines must heed is not dropped.
    let repaired = batch("repaired.jsonl", &[json!({"text": "{'a': 1}"})]);
    let schema = file(&folder, "schema.json", "{\"type\": \"object\"}");
    let by_schema = ["--schema", &schema, "--repair", "syntax", "--batch", &repaired];
    assert_eq!(run(&by_schema).code, Some(0));
    assert_eq!(run(&[&["--strict"][..], &by_schema].concat()).code, Some(1));
    assert_eq!(run(&["--batch", "no-such.jsonl"]).code, Some(2));
}

#[test]
fn a_line_of_a_batch_that_is_too_long_is_named_and_no_other_is_lost() {
    // The limit of a line for `--max-bytes 100`.
    const LIMIT: usize = 600 + (1 << 20);
    let line = |id: u64, length: usize| {
        let begin = format!("{{\"id\": {id}, \"text\": \"{{}}\"}}");
        begin.clone() + &" ".repeat(length.saturating_sub(begin.len()))
    };
    let lines =
        [line(1, 0), line(2, LIMIT), line(3, LIMIT + 1), line(4, LIMIT + 100_000), line(5, 0)];
    let folder = TempDir::new().unwrap();
    for end in ["", "\n"] {
        let batch = file(&folder, "batch.jsonl", lines.join("\n") + end);
        let arguments = ["check", "--contract", QA, "--max-bytes", "100", "--batch", &batch];
        let output = counterfoil().args(arguments).output();
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        let answers: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        for (at, answer) in answers.iter().enumerate() {
            let is_too_long = at == 2 || at == 3;
            assert_eq!(answer["status"] == "error", is_too_long, "{answer}");
            if is_too_long {
                assert_eq!(answer["line"], at + 1);
                let limit = format!("larger than the limit of {LIMIT} bytes");
                assert!(answer["message"].as_str().unwrap().contains(&limit), "{answer}");
            }
        }
    }
}

#[test]
fn an_input_of_a_batch_that_cannot_be_read_keeps_no_other_from_being_checked() {
    let folder = TempDir::new().unwrap();
    let good = file(&folder, "good.jsonl", json!({"id": 1, "text": GOOD}).to_string());
    let missing = folder.path().join("missing.jsonl").to_string_lossy().into_owned();
    let directory = folder.path().to_string_lossy().into_owned();
    let run = |inputs: &[&str]| {
        counterfoil().args(["check", "--contract", QA, "--batch"]).args(inputs).output()
    };
    let output = run(&[missing.as_str(), good.as_str(), directory.as_str(), good.as_str()]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert_eq!(output.stdout.lines().count(), 2, "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.contains("\"accepted\"")), "{}", output.stdout);
    let said: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("error: ") && said[0].contains("missing.jsonl"), "{said:?}");
    assert!(said[1].starts_with("error: ") && said[1].contains("is a folder"), "{said:?}");
    assert_eq!(
        said[2],
        "2 lines: 2 accepted, 0 rejected, 0 absent, 0 not understood; 2 inputs could not be read"
    );
    let none = run(&[missing.as_str()]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(2), ""));
    assert_eq!(none.stderr.lines().count(), 1, "{}", none.stderr);
}

#[test]
fn a_line_of_a_batch_that_is_no_object_is_not_understood() {
    let folder = TempDir::new().unwrap();
    for (line, id, message) in [
        (
            &b"[1, null, null, \"{}\", null, null, null, null, null]"[..],
            json!(null),
            "not a JSON object",
        ),
        (b"not json", json!(null), "not a JSON object"),
        (b"\xef\xbb\xbf{\"id\": 1}", json!(1), "missing field `text`"),
        (b"{\"id\": 9, \"text\": \"\\ud800 {\"}", json!(9), "unexpected end of hex escape"),
        (b"{\"text\": \"\\ud800, }\\\"\", \"a\": [{}, 1], \"id\": [2]}", json!([2]), "hex escape"),
        (b"{\"id\": 5, \"id\": 6, \"text\": \"\"}", json!(5), "duplicate field `id`"),
        (b"{\"text\": {\"id\": 3}}", json!(null), "expected a string"),
        (b"{\"id\": 5, \"text\": \"\xff\"}", json!(5), "at column"),
        (b"{\"id\": 6, \"txt\": \"\"}", json!(6), "unknown field `txt`"),
    ] {
        let batch = file(&folder, "batch.jsonl", line);
        let output = counterfoil().args(["check", "--contract", QA, "--batch", &batch]).output();
        assert_eq!(output.code, Some(3), "{}", output.stdout);
        let answer: Value = serde_json::from_str(output.stdout.trim()).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        let told = answer["message"].as_str().unwrap();
        assert!(told.contains(message) && !told.contains("line 1"), "{answer}");
    }
}

#[test]
fn a_name_with_a_line_feed_begins_no_line() {
    let folder = TempDir::new().unwrap();
    let begins = |text: &str| text.lines().any(|line| line.trim_start().starts_with("::"));
    let schema = file(
        &folder,
        "schema.json",
        json!({"type": "object", "properties": {"passed": {}}, "additionalProperties": false})
            .to_string(),
    );
    let check = |text: &str| {
        counterfoil()
            .args(["check", "--schema", &schema])
            .env("GITHUB_ACTIONS", "true")
            .write_stdin(text)
            .output()
    };
    let output = check(r#"{"passed": true, "x\n::stop-commands::zz": 1}"#);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains(r"x\n::stop-commands::zz"), "{}", output.stderr);
    assert!(!begins(&output.stderr), "{}", output.stderr);
    // Nor does the end of a line that is too long.
    let words = format!("{} ::stop-commands::zz", "w".repeat(60));
    for key in [words.clone(), format!("{words} ##[add-mask]x")] {
        let output = check(&json!({"passed": true, key: 1}).to_string());
        assert!(!begins(&output.stderr) && !output.stderr.contains("##["), "{}", output.stderr);
    }

    let contract = file(
        &folder,
        "bad.yaml",
        "contract: acme/bad\nversion: 1\nfields: {\"x\\n::error::pwned\\n\": foo}\n",
    );
    let output = counterfoil().args(["contract", "lint", &contract]).output();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains(r"x\n::error::pwned\n"), "{}", output.stderr);
    assert!(!begins(&output.stderr), "{}", output.stderr);
}

#[test]
fn reports_for_programs_have_the_name_that_a_file_has() {
    let folder = TempDir::new().unwrap();
    let names = ["a\n::error::pwned", "c\\d.txt", "e\u{1b}.txt"];
    let files = names.map(|name| file(&folder, name, BAD));
    let check = |format: &str| {
        counterfoil().args(["check", "--contract", QA, "--format", format]).args(&files).output()
    };
    let json = check("json").json_lines();
    let told: Vec<&Value> = json.iter().map(|line| &line["file"]).collect();
    assert_eq!(told, [&json!(files[0]), &json!(files[1]), &json!(files[2])]);
    let sarif = check("sarif").stdout;
    for end in ["/a%0A%3A%3Aerror%3A%3Apwned\"", "/c%5Cd.txt\"", "/e%1B.txt\""] {
        assert!(sarif.contains(end), "{end}: {sarif}");
    }
    let github = check("github").stdout;
    assert!(github.lines().all(|line| line.contains(" file=")), "{github}");
    assert!(github.contains("/a%0A%3A%3Aerror"), "{github}");
    let human = check("human").stderr;
    assert!(human.contains(r"a\n::error::pwned"), "{human}");
}

#[test]
fn a_text_that_is_not_read_to_its_end_has_more_than_the_limit() {
    for text in ["x".repeat(100).into_bytes(), vec![0xff; 100]] {
        let mut command = counterfoil();
        command.args(["check", "--contract", QA, "--max-bytes", "20"]);
        let output = command.write_stdin(text).output();
        let told = "the text has more than 20 bytes";
        assert!(output.stderr.contains(told), "{}", output.stderr);
    }
}

#[test]
fn a_repair_is_asked_for_what_check_rejects() {
    const NOTHING: &str = "nothing to send again";
    let folder = TempDir::new().unwrap();
    let prompt = file(&folder, "prompt.txt", format!("Answer like this: {GOOD}"));
    let good = file(&folder, "good.txt", GOOD);
    let repair = |more: &[&str]| {
        counterfoil().args(["contract", "repair", QA, &good]).args(more).output().stdout
    };
    assert!(repair(&[]).contains(NOTHING), "{}", repair(&[]));
    // What the agent only quotes is no result.
    let more = ["--prompt", prompt.as_str()];
    let check = counterfoil().args(["check", &good, "--contract", QA]).args(more).output();
    assert_eq!(check.code, Some(1), "{}", check.stderr);
    assert!(!repair(&more).contains(NOTHING), "{}", repair(&more));
    // Nor is what is too long.
    assert!(!repair(&["--max-bytes", "5"]).contains(NOTHING));
}

#[test]
fn a_known_value_has_the_form_of_its_name() {
    let known = |value: &str| {
        counterfoil().args(["check", "--contract", QA, "--known", value]).write_stdin(GOOD).output()
    };
    for value in ["started=2026-03-01T09:30:00Z", "ended=2026-03-01T09:30:00.5+02:00", "run=x"] {
        assert_eq!(known(value).code, Some(0), "{value}");
    }
    for (value, why) in [
        ("started=yesterday", "started is a time as in RFC 3339"),
        ("ended=2026-03-01", "ended is a time as in RFC 3339"),
        ("ended=", "ended is a time as in RFC 3339"),
        ("duration_ms=fast", "duration_ms is a number of milliseconds"),
        ("begun=2026-03-01T09:30:00Z", "'begun' is not one of run, workflow"),
    ] {
        let output = known(value);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{value}");
        let option = format!("invalid value '{value}' for '--known <NAME=VALUE>': {why}");
        assert!(output.stderr.contains(&option), "{}", output.stderr);
    }
}

#[test]
fn several_files_are_checked_at_once() {
    let folder = TempDir::new().unwrap();
    let good = file(&folder, "good.txt", GOOD);
    let bad = file(&folder, "bad.txt", BAD);
    let check = |format: &str| {
        counterfoil()
            .args(["check", &good, &bad, &good, "--contract", QA, "--format", format])
            .output()
    };
    for format in ["human", "json", "sarif", "junit", "github"] {
        assert_eq!(check(format).code, Some(1), "{format}");
    }
    let human = check("human");
    assert_eq!(human.stderr.matches("good.txt:\n").count(), 2, "{}", human.stderr);
    assert!(human.stderr.contains("bad.txt:\n"), "{}", human.stderr);
    let json = check("json");
    let lines: Vec<Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let statuses: Vec<&Value> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, ["accepted", "rejected", "accepted"]);
    assert_eq!(lines[1]["file"], json!(bad));
    let sarif = check("sarif").json();
    let run = &sarif["runs"][0];
    assert_eq!(run["properties"]["texts"].as_array().unwrap().len(), 3);
    let places = run["results"].as_array().unwrap().iter().map(|result| {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap()
    });
    assert!(places.clone().count() > 0 && places.into_iter().all(|uri| uri.ends_with("bad.txt")));
    assert!(check("junit").stdout.contains("tests=\"3\" skipped=\"0\" failures=\"1\""));
    let human = check("human");
    assert_eq!(human.stdout.matches("dod_achieved").count(), 2, "{}", human.stdout);
    let both = counterfoil().args(["check", &good, &good, "--contract", QA]).output();
    assert_eq!(both.code, Some(0));
}

#[test]
fn a_person_at_a_terminal_is_told_what_is_read() {
    let run = |line: &str| {
        let mut command = TestCommand::new("script");
        command.args(["-qec", &format!("{PROGRAM} {line}"), "/dev/null"]);
        command.write_stdin("\u{4}\u{4}").output().stdout
    };
    let shown = run(&format!("check --contract {QA}"));
    assert!(shown.contains("reading the text from the terminal; end it with Ctrl-D"), "{shown}");
    let shown = run("check --batch -");
    assert!(shown.contains("reading one JSON object per line from the terminal"), "{shown}");
}

#[test]
fn contracts_are_listed_shown_and_rendered() {
    let list: Value = report(counterfoil().args(["contract", "list", "--format", "json"]));
    assert_eq!(list.as_array().unwrap().len(), 42);
    let ids: Vec<&str> =
        list.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"gated-team/output") && ids.contains(&"spec-pipeline/taskstoissues"));
    insta::assert_snapshot!("list", snapshot(counterfoil().args(["contract", "list"])));
    insta::assert_snapshot!(
        "show",
        snapshot(counterfoil().args(["contract", "show", "execution-loop/manager"]))
    );
    insta::assert_snapshot!(
        "prompt_json",
        snapshot(counterfoil().args(["contract", "prompt", QA]))
    );
    insta::assert_snapshot!(
        "prompt_block",
        snapshot(counterfoil().args(["contract", "prompt", "feature-pipeline/code-reviewer"]))
    );
    insta::assert_snapshot!(
        "repair",
        snapshot(counterfoil().args(["contract", "repair", QA]).write_stdin(BAD))
    );
    insta::assert_snapshot!(
        "repair_alone",
        snapshot(
            counterfoil()
                .args(["contract", "repair", "gated-team/output"])
                .write_stdin("```json\n{\"status\": \"OK\"}\n```")
        )
    );
    for target in ["draft2020", "claude", "codex", "gemini"] {
        insta::assert_snapshot!(
            format!("schema_{target}"),
            snapshot(counterfoil().args([
                "contract",
                "schema",
                "review-fix/review-result",
                "--target",
                target
            ]))
        );
    }
}

#[test]
fn what_is_shown_loads_again() {
    let folder = TempDir::new().unwrap();
    for id in [
        "execution-loop/dod",
        "feature-pipeline/review-pr",
        "spec-pipeline/analyze",
        "gated-team/input",
    ] {
        for format in ["yaml", "json"] {
            let output = counterfoil().args(["contract", "show", id, "--format", format]).output();
            let path = file(&folder, &format!("x.{format}"), output.stdout);
            assert_eq!(
                counterfoil().args(["contract", "lint", &path]).output().code,
                Some(0),
                "{id} {format}"
            );
            assert_eq!(
                counterfoil().args(["contract", "diff", id, &path]).output().code,
                Some(0),
                "{id} {format}"
            );
        }
    }
}

#[test]
fn contracts_of_ones_own() {
    let folder = TempDir::new().unwrap();
    let one = "contract: acme/check\nversion: 1\nframing: fenced-json\nfields: { ok: boolean, level: low | high }\nrules: [{ id: r, check: \"!result.ok || result.level == 'low'\" }]\n";
    file(&folder, "mine/check.yaml", one);
    let two = file(
        &folder,
        "two.yaml",
        one.replace("version: 1", "version: 2").replace("low | high", "low | high | extreme"),
    );
    let three = file(
        &folder,
        "three.yaml",
        one.replace("version: 1", "version: 2").replace("level:", "\"note?\": string, level:"),
    );
    let mine = folder.path().join("mine").display().to_string();
    let good = "```json\n{\"ok\": true, \"level\": \"low\"}\n```";
    assert_eq!(
        counterfoil()
            .args(["check", "--contract", "acme/check", "--contracts", &mine])
            .write_stdin(good)
            .output()
            .code,
        Some(0)
    );
    insta::assert_snapshot!(
        "diff_breaking",
        snapshot(counterfoil().args([
            "contract",
            "diff",
            "acme/check",
            &two,
            "--contracts",
            &mine
        ]))
    );
    insta::assert_snapshot!(
        "diff_additive",
        snapshot(counterfoil().args([
            "contract",
            "diff",
            "acme/check",
            &three,
            "--contracts",
            &mine
        ]))
    );
}

#[test]
fn lint_says_all_at_once() {
    let folder = TempDir::new().unwrap();
    let path = file(
        &folder,
        "bad.yaml",
        "contract: acme/check\nversion: 1\nfields: { ok: boolean, level: low | high, note?: string }\nrules:\n  - { id: a, check: \"result.level == 'LOW'\" }\n  - { id: b, when: '!result.okay', require: [nte] }\n  - { id: c, check: 'result.note != \"\"' }\nclaims: { files: { kind: files-modified } }\npolicy: { salvage: [/items] }\n",
    );
    let shown =
        snapshot(counterfoil().args(["contract", "lint", &path])).replace(&path, "bad.yaml");
    insta::assert_snapshot!(shown);
    // A bomb of aliases, and keys that stand twice.
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nschema: *g\ncontract: a/b\nversion: 1\n";
    for text in [
        bomb,
        "contract: a/b\ncontract: a/c\nversion: 1\n",
        "contract: a/b\nversion: 1\nsurprise: 1\n",
        "{",
        "",
    ] {
        let path = file(&folder, "x.yaml", text);
        let output = counterfoil().args(["contract", "lint", &path]).output();
        assert_eq!(output.code, Some(1), "{text}");
        assert!(output.stderr.contains("C0401"), "{}", output.stderr);
    }
}

const GOOD_CONTRACT: &str = "contract: acme/good\nversion: 1\nfields: { ok: boolean }\n";
const BAD_CONTRACT: &str = "contract: acme/bad\nversion: 1\nfields: { ok: boolean }\nrules:\n  - { id: a, check: result.okay }\n";

#[test]
fn lint_takes_folders_and_writes_what_ci_reads() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    file(&folder, "all/good.yaml", GOOD_CONTRACT);
    file(&folder, "all/deeper/bad.yml", BAD_CONTRACT);
    file(&folder, "all/package.json", "{\"name\": \"no contract\"}");
    file(&folder, "none/notes.yaml", "a: 1\n");
    let again = file(&folder, "again.yaml", GOOD_CONTRACT);
    let lint =
        |arguments: &[&str]| counterfoil().args(["contract", "lint"]).args(arguments).output();
    let (all, none) = (at("all"), at("none"));
    let human = lint(&[&all, &again]);
    assert_eq!(human.code, Some(1));
    assert!(human.stderr.contains("acme/good@1 is valid"), "{}", human.stderr);
    assert!(human.stderr.contains("acme/good@1 is defined twice"), "{}", human.stderr);
    let json = lint(&[&all, "--format", "json"]).json();
    let rows = json["contracts"].as_array().unwrap();
    assert_eq!((rows.len(), &json["ok"]), (2, &json!(false)));
    assert_eq!(rows[0]["contract"], Value::Null);
    assert_eq!(rows[0]["problems"][0]["place"], "rules[0].check");
    assert_eq!(rows[1]["contract"], "acme/good@1");
    let sarif = lint(&[&all, "--format", "sarif"]).json();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], rows[0]["problems"][0]["code"]);
    let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(uri.as_str().unwrap().ends_with("all/deeper/bad.yml"), "{uri}");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&json!(5), &json!(14)));
    let github = lint(&[&all, "--format", "github"]);
    assert_eq!(github.code, Some(1));
    assert!(github.stdout.starts_with("::error file="), "{}", github.stdout);
    let notice = github.stdout.lines().nth(1).unwrap_or_default();
    assert!(notice.starts_with("::notice title=files left out::1 file "), "{}", github.stdout);
    assert_eq!(github.stdout.lines().count(), 2, "{}", github.stdout);
    // Nothing to check is no success.
    let empty = lint(&[&none]);
    assert_eq!(empty.code, Some(2));
    assert!(empty.stderr.contains("there is no contract file in the folder"), "{}", empty.stderr);
    let missing = lint(&[&format!("{none}/nothing.yaml")]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("there is no file or folder"), "{}", missing.stderr);
}

#[test]
fn problems_of_contracts_are_at_their_lines() {
    let folder = TempDir::new().unwrap();
    let rule = "contract: acme/rule\nversion: 1\nfields: { ok: boolean }\nrules:\n  - id: a\n    check: result.okay\n";
    let example = "contract: acme/example\nversion: 1\nfields: { ok: boolean }\nexamples:\n  - { ok: true }\n  - { ok: maybe }\n";
    let field = "contract: acme/field\nversion: 1\nfields:\n  ok: boolean\n  note?: nonsense\n";
    for (code, text, line) in [("C0404", rule, 6), ("C0405", example, 6), ("C0410", field, 5)] {
        let path = file(&folder, &format!("{code}.yaml"), text);
        let lint = |format: &str| {
            counterfoil().args(["contract", "lint", &path, "--format", format]).output()
        };
        let sarif = lint("sarif").json();
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], code, "{result}");
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert_eq!(region["startLine"], line, "{result}");
        let github = lint("github").stdout;
        assert!(github.contains(&format!(",line={line},col=")), "{github}");
    }
}

#[test]
fn lint_warns_of_misspelt_keywords_in_every_format() {
    let folder = TempDir::new().unwrap();
    let path = file(
        &folder,
        "loose.yaml",
        "contract: acme/loose\nversion: 1\nschema: { type: object, requird: [ok], properties: { ok: { type: boolean } } }\n",
    );
    let lint = |format: &str| {
        let output = counterfoil().args(["contract", "lint", &path, "--format", format]).output();
        // The contract is valid.
        assert_eq!(output.code, Some(0), "{output:?}");
        output
    };
    let human = lint("human").stderr;
    assert!(human.contains("acme/loose@1 is valid"), "{human}");
    assert!(human.contains("W0401 at schema.requird: 'requird' is no keyword"), "{human}");
    assert!(human.contains("did you mean 'required'?"), "{human}");
    let json = lint("json").json();
    let row = &json["contracts"][0];
    assert_eq!((&json["ok"], &row["problems"]), (&json!(true), &json!([])));
    assert_eq!(row["warnings"][0]["code"], "W0401");
    assert_eq!(row["warnings"][0]["place"], "schema.requird");
    let sarif = lint("sarif").json();
    assert_eq!(sarif["runs"][0]["properties"]["ok"], true);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["level"]), (1, &json!("warning")));
    let github = lint("github").stdout;
    assert!(github.starts_with("::warning file=") && github.contains("W0401"), "{github}");
}

#[test]
fn workflows_are_checked_by_the_folder() {
    let folder = TempDir::new().unwrap();
    let good = "workflow: good\nversion: 1\nstart: done\nstates: { done: { end: done } }\n";
    file(&folder, "flows/good.yaml", good);
    file(&folder, "flows/deeper/bad.yaml", good.replace("start: done", "start: dne"));
    file(&folder, "flows/contract.yaml", GOOD_CONTRACT);
    let flows = folder.path().join("flows").display().to_string();
    let check =
        |arguments: &[&str]| counterfoil().args(["workflow", "check"]).args(arguments).output();
    let json = check(&[&flows, "review-fix", "--format", "json"]);
    assert_eq!(json.code, Some(1));
    let json = json.json();
    let rows = json["workflows"].as_array().unwrap();
    let good: Vec<bool> = rows.iter().map(|row| row["ok"].as_bool().unwrap()).collect();
    assert_eq!(good, [false, true, true]);
    for (row, file) in rows.iter().zip(["flows/deeper/bad.yaml", "flows/good.yaml", "review-fix"]) {
        assert!(row["file"].as_str().unwrap().ends_with(file), "{row}");
    }
    assert_eq!(rows[0]["findings"][0]["file"], "bad.yaml");
    let github = check(&[&flows, "--format", "github"]).stdout;
    assert!(
        github.starts_with("::error file=") && github.contains("deeper/bad.yaml,line=3,col="),
        "{github}"
    );
    let sarif = check(&[&flows, "--format", "sarif"]).json();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert!(place["artifactLocation"]["uri"].as_str().unwrap().ends_with("flows/deeper/bad.yaml"));
    assert_eq!(place["region"]["startLine"], 3);
}

#[test]
fn bad_input_is_bounded_and_never_panics() {
    let folder = TempDir::new().unwrap();
    let invalid = file(&folder, "invalid", b"{\"dod_achieved\": \xff\xfe}");
    let nul = file(&folder, "nul", vec![0_u8; 100_000]);
    let deep = file(&folder, "deep", "[".repeat(100_000));
    let fences = file(&folder, "fences", "```json\n".repeat(1_000_000));
    let surrogate = file(
        &folder,
        "surrogate",
        "{\"dod_achieved\": true, \"checks\": [], \"fix_info\": \"\\ud800\"}",
    );
    let large = file(&folder, "large", vec![b'x'; 100_000_000]);
    for (path, code) in [
        (&invalid, "C0110"),
        (&nul, "C0101"),
        (&deep, "C0101"),
        // It ends where a result would begin.
        (&fences, "C0121"),
        (&surrogate, "C0123"),
        (&large, "C0103"),
    ] {
        let output =
            counterfoil().args(["check", path, "--contract", QA, "--format", "json"]).output();
        assert_eq!(output.code, Some(1), "{path}: {}", output.stderr);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(report["violations"][0]["code"], code, "{path}");
    }
}

#[test]
fn a_pipe_that_closes_early_is_no_error() {
    let mut child = std::process::Command::new(PROGRAM)
        .args(["contract", "list"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output: CommandOutput = child.wait_with_output().unwrap().into();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn a_rejection_is_one_structured_event() {
    let output = counterfoil()
        .env("COUNTERFOIL_LOG", "warn")
        .args(["check", "--contract", QA, "--format", "json"])
        .write_stdin(BAD)
        .output();
    let lines: Vec<Value> =
        output.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    let fields = &lines[0]["fields"];
    assert_eq!(fields["contract"], "execution-loop/qa@1");
    assert_eq!(fields["agent"], "qa");
    assert_eq!(fields["stage"], "validation");
    assert!(fields["codes"].as_str().unwrap().contains("C0202"));
}

#[test]
fn demo_shows_one_of_each() {
    let shown = snapshot(counterfoil().args(["demo", "contracts"]));
    insta::assert_snapshot!(shown.replace(PROGRAM, "counterfoil"));
    let (_, commands) = shown.split_once("Try it on your own text:\n").unwrap();
    let folder = TempDir::new().unwrap();
    for command in commands.lines().filter(|line| line.starts_with("  ")) {
        let mut shell = TestCommand::new("sh");
        let output = shell.args(["-ec", command]).current_dir(folder.path()).output();
        assert!(output.is_success(), "{command}: {}", output.stderr);
        assert!(!output.stdout.is_empty(), "{command} shows nothing");
    }
}

#[test]
fn explain_lists_and_shows() {
    insta::assert_snapshot!("explain_page", snapshot(counterfoil().args(["explain", "C0301"])));
    let list = snapshot(counterfoil().arg("explain"));
    assert!(list.contains("C0101  no result was found in the text"));
}

#[test]
fn help_completions_and_manual() {
    insta::assert_snapshot!("help", snapshot(counterfoil().arg("--help")));
    insta::assert_snapshot!("help_check", snapshot(counterfoil().args(["check", "--help"])));
    for shell in ["bash", "zsh", "fish"] {
        assert!(snapshot(counterfoil().args(["completions", shell])).contains("counterfoil"));
    }
    assert!(snapshot(counterfoil().arg("man")).contains(".TH"));
}
