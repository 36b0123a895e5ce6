//! Receipts: what they contain, what they never contain, and how a change of one is noticed.

use crate::PROGRAM;
use crate::runs::project::{WorkflowProject, one_step, replies};
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};

const CONTRACT: &str = "\
contract: scene/fix
version: 1
fields: { files_changed: [string], tests_passing: boolean, note?: string }
claims:
  files_changed: { kind: files-changed }
  tests_passing: { kind: command, check: test }
examples: [{ files_changed: [a.rs], tests_passing: true }]
";

const WORKFLOW: &str = "\
workflow: fix
version: 1
inputs: { task: { type: string } }
agents: { fixer: { contract: scene/fix, prompt: 'Do it: {{ task }}', access: workspace-write } }
contracts: [contracts]
start: fix
states:
  fix: { agent: fixer, checks: [lint], go: save }
  save: { commit: { message: 'fix: it', paths: run.changed }, go: done }
  done: { end: done }
";

/// What no viewer may obey.
const EVIL: &str = "</pre><script>alert(1)</script> | `x` @everyone \u{1b}[2J\u{202e}";
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu\nKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQJAIJLixBy2qpFoS4DSmoEm\n-----END RSA PRIVATE KEY-----";

/// A project after a run that changed a file, with hostile texts and secrets in all of its parts.
fn ran() -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("contracts/fix.yaml", CONTRACT);
    project.write("flow.yaml", WORKFLOW);
    project
        .write("counterfoil.toml", "[checks]\ntest = \"grep -q good a.rs\"\nlint = \"cat a.rs\"\n");
    project.write("a.rs", "bad\n");
    let text = json!({"files_changed": ["a.rs"], "tests_passing": true, "note": format!("{EVIL} {SECRET}")});
    let written = format!("good\n{EVIL}\n{SECRET}\n{KEY}\n");
    let script = json!({"replies": [{
        "agent": "fixer", "text": text.to_string(), "writes": {"a.rs": written},
        "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25},
    }]});
    project.write("script.json", script.to_string());
    project.commit_all("base");
    let task = format!("fix {EVIL} with {SECRET}");
    let run = project.run_json(&[
        "run",
        "flow.yaml",
        "--agent",
        "script:script.json",
        "--task",
        &task,
        "--format",
        "json",
    ]);
    assert_eq!(run.ended(), ("done", None, 0), "{}", run.report);
    project
}

fn receipt(project: &TestProject) -> Value {
    project.run(&["receipt", "last", "--format", "json"]).json()
}

#[test]
fn a_receipt_says_what_was_asked_done_claimed_checked_and_spent() {
    let project = ran();
    let receipt = receipt(&project);
    assert_eq!(receipt["outcome"], "done");
    assert!(receipt["asked"]["inputs"]["task"].as_str().unwrap().starts_with("fix </pre>"));
    let claims = receipt["claims"].as_array().unwrap();
    let verdicts: Vec<String> =
        claims.iter().map(|claim| format!("{} {}", claim["claim"], claim["standing"])).collect();
    assert!(verdicts.contains(&"\"files_changed\" \"verified\"".to_owned()), "{verdicts:?}");
    assert!(verdicts.contains(&"\"tests_passing\" \"verified\"".to_owned()), "{verdicts:?}");
    let checks = receipt["checks"].as_array().unwrap();
    // The first one was run before the first step.
    let check = |name: &str| checks.iter().rfind(|check| check["name"] == name).unwrap();
    assert_eq!(check("lint")["command"], "cat a.rs");
    assert!(check("lint")["output"].as_str().unwrap().contains("good"));
    assert!(check("lint")["tree"].is_string(), "{}", check("lint"));
    assert_eq!(check("test")["claim"], "tests_passing");
    assert_eq!(receipt["changes"]["files"], json!(["a.rs"]));
    assert!(receipt["changes"]["diff"].as_str().unwrap().contains("+good"), "{receipt}");
    let commit = &receipt["commits"][0];
    assert_eq!(commit["subject"], "fix: it");
    assert!(commit["diff"].as_str().unwrap().contains("-bad\n+good"), "{commit}");
    assert_eq!(receipt["usage"]["cost_usd"], 0.25);
    let links = receipt["journal"]["links"].as_array().unwrap();
    assert_eq!(links.len(), project.events().len());
    assert_eq!(receipt["notes"], json!([]));
}

#[test]
fn nothing_in_a_receipt_is_obeyed_and_no_secret_is_in_it() {
    let project = ran();
    // A folder that does not exist is made.
    let elsewhere = project.root_path("made/for/it");
    let made = project.run(&["receipt", "last", "--output", &elsewhere.display().to_string()]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 2);
    let written = project.run(&["receipt", "last", "--output", "."]);
    let files: Vec<&str> = written.stdout.lines().collect();
    assert_eq!(files.len(), 2, "{}", written.stdout);
    let page = project.read(files[0]);
    let json = project.read(files[1]);
    let comment = project.run(&["receipt", "last", "--format", "markdown"]).stdout;
    for (what, text) in [("page", &page), ("json", &json), ("comment", &comment)] {
        assert!(!text.contains(SECRET), "{what}: {text}");
        assert!(
            !text.contains("MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu"),
            "{what}"
        );
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{what}: {text}");
        assert!(text.contains("redacted"), "{what}: {text}");
        assert!(text.contains("alert(1)"), "{what} leaves out what the agent said: {text}");
    }
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("default-src 'none'") && page.contains("prefers-color-scheme: dark"));
    for url in ["http://", "https://", "src=", "url("] {
        assert!(!page.contains(url), "the page loads something: {url}");
    }
    // In Markdown, everything hostile is inside of code.
    let outside: String = without_code(&comment);
    assert!(!outside.contains("@everyone") && !outside.contains("<script"), "{comment}");
}

/// Markdown without its code.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let fence = &rest[at..][..rest[at..].find(|c| c != '`').unwrap_or(rest.len() - at)];
        let inside = &rest[at + fence.len()..];
        // The end is a run of backticks of the same length.
        let end = inside.match_indices(fence).find(|(end, _)| {
            !inside[..*end].ends_with('`') && !inside[end + fence.len()..].starts_with('`')
        });
        let Some((end, _)) = end else { return out };
        rest = &inside[end + fence.len()..];
    }
    out + rest
}

#[test]
fn a_receipt_is_compared_with_its_journal_and_a_change_is_noticed() {
    let project = ran();
    let original = receipt(&project);
    assert!(original["seal"].is_string(), "the journal has a key");
    let verify = |receipt: &Value| {
        project.write("receipt.json", receipt.to_string());
        let (code, found) =
            project.code_and_json(&["receipt", "verify", "receipt.json", "--format", "json"]);
        let results: Vec<String> = found["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| {
                format!(
                    "{} {}",
                    finding["what"].as_str().unwrap(),
                    finding["result"].as_str().unwrap()
                )
            })
            .collect();
        (code, found["genuine"] == true, results.join(", "))
    };
    let all = "content agrees, chain agrees, journal agrees, seal agrees";
    assert_eq!(verify(&original), (0, true, all.to_owned()));
    // A verdict that was changed.
    let mut changed = original.clone();
    changed["claims"][0]["standing"] = json!("refuted");
    let altered = "content differs, chain agrees, journal agrees, seal differs";
    assert_eq!(verify(&changed), (1, false, altered.to_owned()));
    // The digest can be computed anew by anybody. The seal cannot.
    changed["sha256"] = json!(counterfoil_engine::receipt::content_digest(&changed));
    let forged = "content agrees, chain agrees, journal agrees, seal differs";
    assert_eq!(verify(&changed), (1, false, forged.to_owned()));
    // Nor is it enough to leave it out.
    for seal in [None, Some(Value::Null), Some(json!(""))] {
        let mut unsealed = changed.clone();
        unsealed.as_object_mut().unwrap().remove("seal");
        if let Some(seal) = seal {
            unsealed["seal"] = seal;
        }
        assert_eq!(verify(&unsealed), (1, false, forged.to_owned()));
    }
    let mut chain = original.clone();
    chain["journal"]["links"].as_array_mut().unwrap().remove(2);
    assert!(verify(&chain).2.contains("chain differs, journal differs"), "{:?}", verify(&chain));
    // Another journal knows nothing of the run, and says so instead of agreeing.
    let other = TestProject::new(PROGRAM);
    other.write("receipt.json", original.to_string());
    let output = other.run(&["receipt", "verify", "receipt.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("whether it is genuine is not known"), "{}", output.stdout);
    // That a seal is missing shows without a key.
    let mut unsealed = original.clone();
    unsealed.as_object_mut().unwrap().remove("seal");
    other.write("receipt.json", unsealed.to_string());
    let output = other.run(&["receipt", "verify", "receipt.json"]);
    output.expect(1, &["seal     DIFFERS  the receipt has no seal", "does not agree"]);
}

#[test]
fn a_receipt_that_must_be_genuine_fails_where_that_is_not_known() {
    let project = ran();
    let original = receipt(&project);
    let verify = |project: &TestProject, receipt: &Value| {
        project.write("receipt.json", receipt.to_string());
        project.run(&["receipt", "verify", "receipt.json", "--require-genuine"])
    };
    verify(&project, &original).expect(0, &["receipt of run", ": genuine"]);
    let mut changed = original.clone();
    changed["outcome"] = json!("failed");
    verify(&project, &changed).expect(1, &["does not agree"]);
    // Nothing speaks against it where its journal is not.
    let other = TestProject::new(PROGRAM);
    verify(&other, &original).expect(1, &["is genuine is not known (--require-genuine)"]);
    let arguments = ["receipt", "verify", "receipt.json", "--require-genuine", "--format", "json"];
    let (code, found) = other.code_and_json(&arguments);
    assert_eq!((code, &found["ok"], &found["genuine"]), (1, &json!(true), &json!(false)));
}

#[test]
fn a_receipt_with_a_key_that_occurs_twice_is_refused() {
    let project = ran();
    // The last one counts for most programs, and people read the first one.
    let text = receipt(&project).to_string();
    for (from, to) in [
        ("{\"receipt\":1,", "{\"outcome\":\"failed\",\n\"receipt\":1,"),
        ("\"summary\":{", "\"summary\":{\"verified\":7,\n"),
    ] {
        assert!(text.contains(from), "{text}");
        project.write("receipt.json", text.replacen(from, to, 1));
        let output = project.run(&["receipt", "verify", "receipt.json"]);
        assert_eq!(output.code, Some(2), "{}", output.stdout);
        assert!(output.stderr.contains("is not a receipt: the key \""), "{}", output.stderr);
        assert!(output.stderr.contains("occurs twice in one object at line 2"), "{output:?}");
    }
}

#[test]
fn without_a_commit_the_checks_cannot_be_run_again_and_that_is_said() {
    let project = ran();
    project.write("receipt.json", receipt(&project).to_string());
    let verify = || project.run_refused(&["receipt", "verify", "receipt.json", "--rerun"]);
    std::fs::remove_dir_all(project.path(".git")).unwrap();
    let said = verify();
    assert!(said.contains("is not in a git repository, so the checks cannot be run"), "{said}");
    assert!(said.contains("--repo DIR"), "{said}");
    project.init_git();
    let said = verify();
    assert!(said.contains("has no commit to compare the files with"), "{said}");
    assert!(said.contains("commit the files"), "{said}");
}

#[test]
fn the_checks_of_a_receipt_are_run_again() {
    let project = ran();
    project.write("receipt.json", receipt(&project).to_string());
    let verify = || project.run(&["receipt", "verify", "receipt.json", "--rerun"]);
    let same = verify();
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.contains("test: passes again"), "{}", same.stdout);
    project.write("a.rs", "bad again\n");
    let other = verify();
    assert_eq!(other.code, Some(3), "{}", other.stdout);
    assert!(other.stdout.contains("fails now"), "{}", other.stdout);
    assert!(other.stdout.contains("(on another tree)"), "{}", other.stdout);
}

#[test]
fn what_was_found_fits_a_terminal_of_80_columns() {
    let project = ran();
    let original = receipt(&project);
    project.write("receipt.json", original.to_string());
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("stty rows 40 cols 80; '{program}' receipt verify receipt.json");
    let mut terminal = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    let shown = terminal.output().stdout.replace('\r', "");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let digest = original["sha256"].as_str().unwrap();
    let lines = format!("content  ok       sha256\n                {digest}\nchain    ok ");
    assert!(shown.contains(&lines), "{shown}");
    // Programs find whole lines.
    let whole = project.run(&["receipt", "verify", "receipt.json"]).stdout;
    assert!(whole.contains(&format!("content  ok       sha256 {digest}\n")), "{whole}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown), words(&whole));
}

#[test]
fn a_forged_receipt_runs_nothing() {
    let project = ran();
    let mut forged = receipt(&project);
    for check in forged["checks"].as_array_mut().unwrap() {
        check["command"] = json!("touch owned");
        check["name"] = json!("evil");
    }
    forged["sha256"] = json!(counterfoil_engine::receipt::content_digest(&forged));
    project.write("receipt.json", forged.to_string());
    let output = project.run(&["receipt", "verify", "receipt.json", "--rerun"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stdout.contains("the receipt has no valid seal"), "{}", output.stdout);
    assert!(!project.path("owned").exists());
}

#[test]
fn what_is_no_receipt_is_refused() {
    let project = TestProject::new(PROGRAM);
    for (text, says) in [
        ("<!doctype html>", "is a page; give the JSON file"),
        ("nothing", "is not a receipt"),
        ("{}", "is not a receipt"),
        ("[]", "is not a receipt: it is not a JSON object"),
        (
            r#"{"receipt": 1, "run": "a", "sha256": "", "journal": []}"#,
            "is not a receipt: a part of it has another form",
        ),
    ] {
        project.write("receipt.json", text);
        let output = project.run(&["receipt", "verify", "receipt.json"]);
        assert_eq!(output.code, Some(2), "{}", output.stdout);
        assert!(output.stderr.contains(says), "{}", output.stderr);
    }
}

/// A run of two steps that wrote `greet.txt` twice.
fn greeted(more: &str) -> WorkflowProject {
    let first = r#"text: '{"ok": true}', writes: { greet.txt: "hell\n" }"#;
    let second = r#"text: '{"ok": true}', writes: { greet.txt: "hello\n", b.txt: "b\n" }"#;
    let workflow =
        one_step(more).replace("go: done", "go: again") + "  again: { agent: worker, go: done }\n";
    let project = WorkflowProject::new(&workflow, &replies(&[first, second]));
    project.init_git();
    project.commit_all("base");
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    project
}

const GREETED: &str = "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n\
                       --- /dev/null\n+++ b/greet.txt\n@@ -0,0 +1 @@\n+hello\n";

#[test]
fn a_receipt_shows_what_the_steps_changed_and_not_what_was_changed_since() {
    // Also what was merged from a worktree.
    for more in ["", ", workspace: worktree"] {
        let project = greeted(more);
        let original = receipt(&project);
        assert_eq!(original["changes"]["files"], json!(["b.txt", "greet.txt"]));
        assert_eq!(original["changes"]["diff"], GREETED);
        assert_eq!(original["notes"], json!([]));
        assert_eq!(receipt(&project)["sha256"], original["sha256"]);
        project.write("greet.txt", "bye\n");
        project.write("other.txt", "not of the run\n");
        let later = receipt(&project);
        assert_eq!(later["changes"], original["changes"]);
        assert_eq!(later["notes"], json!(["1 file changed since the run ended: greet.txt"]));
        project.write("greet.txt", "hello\n");
        assert_eq!(receipt(&project)["sha256"], original["sha256"]);
        // What was undone was changed nevertheless, and is not changed by others.
        project.run(&["undo", "last"]).expect(0, &["restored 2 files"]);
        let undone = receipt(&project);
        assert_eq!(undone["changes"], original["changes"]);
        assert_eq!(undone["notes"], json!([]));
    }
}

#[test]
fn a_receipt_says_that_what_the_steps_changed_is_not_recorded_any_more() {
    let project = greeted("");
    std::fs::remove_dir_all(project.state().join("undo")).unwrap();
    project.write("greet.txt", "bye\n");
    let receipt = receipt(&project);
    assert_eq!(receipt["changes"], json!({"files": ["b.txt", "greet.txt"], "diff": ""}));
    let notes = receipt["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let note = notes[0].as_str().unwrap();
    assert!(
        note.starts_with("the diff does not have all changes of 2 files, since they"),
        "{note}"
    );
    assert!(note.ends_with(": b.txt, greet.txt"), "{note}");
}

#[test]
fn what_a_command_changed_between_two_steps_is_not_shown_as_theirs() {
    let first = r#"text: '{"ok": true}', writes: { greet.txt: "one\n" }"#;
    let second = r#"text: '{"ok": true}', writes: { greet.txt: "three\n" }"#;
    let workflow = one_step("").replace("go: done", "go: between")
        + "  between: { command: [sh, -c, 'echo two > greet.txt'], go: again }\n  \
             again: { agent: worker, go: done }\n";
    let project = WorkflowProject::new(&workflow, &replies(&[first, second]));
    project.init_git();
    project.commit_all("base");
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    let made = receipt(&project);
    assert_eq!(
        made["changes"]["diff"],
        "--- /dev/null\n+++ b/greet.txt\n@@ -0,0 +1 @@\n+one\n\
         --- a/greet.txt\n+++ b/greet.txt\n@@ -1 +1 @@\n-two\n+three\n"
    );
    let between = "the diff does not have the changes between the steps of 1 file, since it is not \
                   recorded who made them: greet.txt";
    assert_eq!(made["notes"], json!([between]));
    project.write("greet.txt", "bye\n");
    let since = "1 file changed after the agents of the run ended: greet.txt";
    assert_eq!(receipt(&project)["notes"], json!([between, since]));
}
