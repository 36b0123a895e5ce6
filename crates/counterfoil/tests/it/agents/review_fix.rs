//! The pack review-fix with the real command lines, default permissions and a project whose test
//! fails until it is fixed: honest agents finish, and nothing that they try is denied.

use crate::agents::project::{CliProject, VendorCli, for_each_cli};
use serde_json::{Value, json};

for_each_cli!(honest_agents_review_a_branch_and_fix_it);
for_each_cli!(an_honest_implementer_accounts_for_its_tasks);
for_each_cli!(honest_agents_of_the_other_roles_finish: Claude claude);

/// The work on the branch, which loses blanks of a name, and its test, which says so.
const GREET: &str = "echo Hello, $1";
const TEST: &str = "[ \"$(sh greet.sh 'Kim  Li')\" = 'Hello, Kim  Li' ] || exit 1";
/// What they are in the end.
const GREET_FIXED: &str = "echo \"Hello, ${1:-you}\"";
const TEST_OF_NOBODY: &str = "[ \"$(sh greet.sh)\" = 'Hello, you' ] || exit 1";

/// A branch with the work in one commit.
fn open_branch(cli: VendorCli, script: &Value) -> Option<CliProject> {
    let project = CliProject::open(cli, script)?;
    make_branch(&project);
    Some(project)
}

/// Makes that branch in a project.
pub(super) fn make_branch(project: &CliProject) {
    project.write("counterfoil.toml", "[checks]\ntest = \"sh greet_test.sh\"\n");
    project.commit_all("base");
    project.git(&["switch", "-q", "-c", "greet"]);
    project.write("greet.sh", format!("{GREET}\n"));
    project.write("greet_test.sh", format!("{TEST}\n"));
    project.commit_all("Greet people");
}

/// A call that reads a file, as the command line does it.
fn read(cli: VendorCli, file: &str) -> Value {
    match cli {
        VendorCli::Claude => json!({"tool": "Read", "input": {"file_path": file}}),
        VendorCli::Codex => json!({"shell": format!("cat {file}")}),
        VendorCli::Gemini => json!({"tool": "read_file", "input": {"file_path": file}}),
    }
}

/// A call that replaces a line of a file, which has been read before, by the tool for it.
fn edit(cli: VendorCli, file: &str, line: &str, lines: &[&str]) -> Value {
    let (old, new) = (line, lines.join("\n"));
    let mut input = json!({"file_path": file, "old_string": old, "new_string": new});
    match cli {
        VendorCli::Claude => json!({"tool": "Edit", "input": input}),
        VendorCli::Codex => {
            let added: String = lines.iter().map(|line| format!("+{line}\n")).collect();
            let patch = format!("*** Update File: {file}\n@@\n-{old}\n{added}");
            let patch = format!("*** Begin Patch\n{patch}*** End Patch");
            json!({"tool": "apply_patch", "input": patch})
        }
        VendorCli::Gemini => {
            input["instruction"] = json!("Replace the line");
            json!({"tool": "replace", "input": input})
        }
    }
}

fn run_check() -> Value {
    json!({"mcp": "run_check", "input": {"name": "test"}})
}

/// The replies of an agent that makes the whole fix, its test included, and has the check run.
fn fixing(cli: VendorCli, when: &str) -> Vec<Value> {
    [
        json!([read(cli, "greet.sh"), read(cli, "greet_test.sh")]),
        json!([edit(cli, "greet.sh", GREET, &[GREET_FIXED])]),
        json!([edit(cli, "greet_test.sh", TEST, &[TEST, TEST_OF_NOBODY])]),
        json!([run_check()]),
    ]
    .map(|calls| json!({"when": when, "calls": calls}))
    .to_vec()
}

/// Asserts that an agent got this result of the check from `run_check`.
#[track_caller]
fn assert_check_was_shown(project: &CliProject, status: &str) {
    let words = [format!("\"status\":\"{status}\""), format!("The check `test` {status}")];
    let is_shown =
        project.requests().iter().any(|request| words.iter().any(|words| request.contains(words)));
    assert!(is_shown, "no agent was shown that the check {status}");
}

#[track_caller]
pub(super) fn assert_fixed(project: &CliProject) {
    assert_eq!(project.read("greet.sh"), format!("{GREET_FIXED}\n"));
    assert_eq!(project.read("greet_test.sh"), format!("{TEST}\n{TEST_OF_NOBODY}\n"));
    // It is in the working tree, and nothing is committed.
    assert_eq!(project.git(&["status", "--porcelain"]), " M greet.sh\n M greet_test.sh\n");
    assert_eq!(project.git(&["log", "--format=%s"]), "Greet people\nbase\n");
}

/// A reviewer who reads and has the check run, a fixer who changes the code and its test, and the
/// reviewer once more.
pub(super) fn review_script(cli: VendorCli) -> Value {
    let (review, again) = ("You review a change before it is merged", "This is a second look");
    let fix = "A review found the following. Fix it in this repository";
    let finding = |id: &str, file: &str, severity: &str, issue: &str| {
        json!({
            "id": id, "file": file, "line": 1, "issue": issue, "severity": severity,
            "category": "correctness"
        })
    };
    let found = json!({
        "groups": [{"description": "what is greeted", "findings": [
            finding("F001", "greet.sh", "critical", "blanks of the name are lost"),
            finding("F002", "greet_test.sh", "major", "nothing tests a call without a name"),
            finding("F003", "greet.sh", "minor", "it greets in English only"),
        ]}],
        "files_reviewed": ["greet.sh", "greet_test.sh"]
    });
    let outcome = |id: &str, outcome: &str, explanation: &str| json!({"id": id, "outcome": outcome, "explanation": explanation});
    let outcomes = json!({"outcomes": [
        outcome("c1-F001", "fixed", "the name is quoted"),
        outcome("c1-F002", "fixed", "it is tested, and nobody is `you`"),
        outcome("c1-F003", "blocked", "there are no translations"),
    ]});
    // What the second look has in its prompt, and the first one does not.
    let first = |mut reply: Value| {
        reply["unless"] = json!(again);
        reply
    };
    let mut replies = vec![
        first(json!({"when": review, "calls": [read(cli, "greet.sh")]})),
        first(json!({"when": review, "calls": [run_check()]})),
        first(cli.hand_in(review, &found)),
    ];
    replies.extend(fixing(cli, fix));
    replies.extend([
        cli.hand_in(fix, &outcomes),
        json!({"when": again, "calls": [read(cli, "greet.sh")]}),
        cli.hand_in(again, &json!({"groups": [], "files_reviewed": ["greet.sh", "greet_test.sh"]})),
        json!({"text": "Done.", "repeat": true}),
    ]);
    Value::Array(replies)
}

fn honest_agents_review_a_branch_and_fix_it(cli: VendorCli) {
    let Some(project) = open_branch(cli, &review_script(cli)) else { return };
    let report = project.play_honestly(&["review-fix"]);

    assert_eq!(report["reason"], "approve: 3 findings, 2 fixed, 1 blocked, 0 deferred, 0 open");
    let steps = |list: &str| -> Vec<Value> {
        report[list].as_array().unwrap().iter().map(|step| step["path"][0].clone()).collect()
    };
    assert_eq!(steps("attempts"), ["review", "fix", "rereview"]);
    // The engine ran the check before the first review, and when the fixer was done.
    let checks: Vec<(&Value, &Value)> = report["commands"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|command| command["path"][1] == "checks")
        .map(|command| (&command["path"][0], &command["checks"]["test"]["status"]))
        .collect();
    assert_eq!(checks, [(&json!("base"), &json!("failed")), (&json!("fix"), &json!("passed"))]);
    assert_check_was_shown(&project, "failed");
    assert_check_was_shown(&project, "passed");
    assert_eq!(
        (&report["claims"]["verified"], &report["claims"]["refuted"]),
        (&json!(2), &json!(0))
    );
    assert_fixed(&project);

    let dir = format!(".review-fix/{}", report["run"].as_str().unwrap());
    let ledger: Value = serde_json::from_str(&project.read(format!("{dir}/report.json"))).unwrap();
    assert_eq!(ledger["recommendation"], "approve", "{ledger:#}");
    let states: Vec<(&Value, &Value)> = ledger["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["finding"]["id"], &entry["state"]))
        .collect();
    let expected = [("c1-F001", "fixed"), ("c1-F002", "fixed"), ("c1-F003", "blocked")]
        .map(|(id, state)| (json!(id), json!(state)));
    assert_eq!(states, expected.each_ref().map(|(id, state)| (id, state)), "{ledger:#}");
    assert_eq!(ledger["failing"], json!([]));
    let page = project.read(format!("{dir}/report.md"));
    for words in ["**Recommendation: approve**", "## c1-F001: fixed", "the name is quoted"] {
        assert!(page.contains(words), "'{words}' is missing: {page}");
    }
    let debt = project.read(format!("{dir}/tech-debt/1-c1-f003.md"));
    assert!(debt.contains("1. there are no translations"), "{debt}");
}

/// Two tasks in one go, left uncommitted, as the prompt has it for agents that may not commit.
fn an_honest_implementer_accounts_for_its_tasks(cli: VendorCli) {
    let implement = "Implement these tasks in this repository";
    let files = json!([
        {"file_path": "greet.sh", "lines_added": 1, "lines_removed": 1},
        {"file_path": "greet_test.sh", "lines_added": 1, "lines_removed": 0},
    ]);
    let task = |id: &str| {
        json!({
            "task_id": id, "status": "completed", "files_changed": files,
            "tests_added": ["greet_test.sh"], "duration_ms": 0,
            "validation": [{
                "step": "test", "success": true, "output": "", "duration_ms": 0, "auto_fixed": false
            }]
        })
    };
    let result = json!({
        "success": true, "tasks_completed": 2, "tasks_failed": 0, "tasks_skipped": 0,
        "task_results": [task("T001"), task("T002")], "files_changed": files, "commits": [],
        "validation_passed": true
    });
    let mut replies = fixing(cli, implement);
    replies.push(cli.hand_in(implement, &result));
    replies.push(json!({"text": "Done.", "repeat": true}));
    let Some(project) = open_branch(cli, &json!(replies)) else { return };
    let tasks = "T001: Keep the blanks of a name\nT002: Greet nobody as you";
    let report = project.play_honestly(&["review-fix/implement", "--task", tasks]);
    assert_eq!(report["reason"], "2 tasks are done");
    assert_check_was_shown(&project, "passed");
    assert_fixed(&project);
    // What the contract asks for is what the prompt does: the command lines refuse a result without
    // a required field before the engine sees it.
    let requests = project.requests();
    assert!(requests.iter().any(|request| request.contains("Write 0 as `duration_ms`")));
}

/// One after the other: the fixer of a validation, the fixer of an issue, the code reviewer.
fn honest_agents_of_the_other_roles_finish(cli: VendorCli) {
    let (validate, issue) = ("This project's validation fails", "Fix issue #17");
    let review = "You review a change before it is merged";
    let quoted = "echo \"Hello, $1\"";
    let greet = |from: &str, to: &str| edit(cli, "greet.sh", from, &[to]);
    let file = |path: &str, removed: u8| {
        json!({
            "file_path": path, "change_type": "modified", "lines_added": 1, "lines_removed": removed
        })
    };
    let both = json!([read(cli, "greet.sh"), read(cli, "greet_test.sh")]);
    let script = json!([
        {"when": validate, "calls": [read(cli, "greet.sh")]},
        {"when": validate, "calls": [greet(GREET, quoted)]},
        cli.hand_in(validate, &json!({
            "success": true, "summary": "Quoted the name", "files_mentioned": ["greet.sh"]
        })),
        {"when": issue, "calls": both},
        {"when": issue, "calls": [greet(quoted, GREET_FIXED)]},
        {"when": issue, "calls": [edit(cli, "greet_test.sh", TEST, &[TEST, TEST_OF_NOBODY])]},
        {"when": issue, "calls": [run_check()]},
        cli.hand_in(issue, &json!({
            "success": true, "issue_number": 17, "issue_title": "Nobody is greeted",
            "root_cause": "there is no name for nobody", "fix_description": "nobody is called you",
            "files_changed": [file("greet.sh", 1), file("greet_test.sh", 0)],
            "verification_passed": true, "validation_passed": true
        })),
        {"when": review, "calls": both},
        {"when": review, "calls": [run_check()]},
        cli.hand_in(review, &json!({
            "success": true, "findings": [], "files_reviewed": 2, "summary": "Mind other languages."
        })),
        {"text": "Done.", "repeat": true},
    ]);
    let Some(project) = open_branch(cli, &script) else { return };
    let check = "check=sh greet_test.sh";
    let report = project.play_honestly(&["review-fix/validate", "--input", check]);
    assert_eq!(report["reason"], "the validation passes");
    assert_eq!(project.read("greet.sh"), format!("{quoted}\n"));

    let task = ["--task", "Without a name it says `Hello, `", "--input", "issue=17"];
    let report = project.play_honestly(&[&["review-fix/issue"], &task[..]].concat());
    assert_eq!(report["reason"], "#17 is fixed: nobody is called you");
    assert_fixed(&project);

    let report = project.play_honestly(&["review-fix", "--input", "reviewer=code-reviewer"]);
    assert_eq!(report["reason"], "approve: nothing was found");
    let run = report["run"].as_str().unwrap();
    let page = project.read(format!(".review-fix/{run}/report.md"));
    assert!(page.contains("- chunk 1: Mind other languages."), "{page}");
}
