//! Ways to a false done in the three small workflows: validate, issue, implement.

use super::false_done::{not_done, ways};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const ISSUE: [&str; 4] = ["--task", "It returns two", "--input", "issue=17"];
const TASKS: [&str; 2] = ["--task", "1. T001: one\n2. T002: two"];
const CHECKS: &str = "[checks]\ntest = \"grep -q 'fn one' src/lib.rs\"\n";
const GOOD: &str = "pub fn one() {}\n";

ways! {
    an_issue_fixed_without_a_file_or_a_commit:
        thrice("issue", "issue-fixer", &fix(&json!({"files_changed": []}))), ISSUE, 1, "`success` is true: name the files";
    an_issue_fixed_in_a_file_that_did_not_change:
        said("issue", "issue-fixer", &fix(&json!({}))).writes("README.md", "# Other\n"), ISSUE, 7, "no file was changed and no commit was made";
    another_issue:
        thrice("issue", "issue-fixer", &fix(&json!({"issue_number": 18}))), ISSUE, 1, "`issue_number` is not 17";
    an_issue_whose_fix_breaks_the_tests:
        said("issue", "issue-fixer", &fix(&json!({}))).writes("src/lib.rs", "pub fn two() {}\n").file("counterfoil.toml", CHECKS).commit(),
        ISSUE, 7, "exited with 1";
    an_issue_that_is_said_to_fail:
        said("issue", "issue-fixer", &fix(&json!({"validation_passed": false}))).writes("src/lib.rs", GOOD), ISSUE, 7, "the validation does not pass";
    an_issue_fixed_with_errors:
        thrice("issue", "issue-fixer", &fix(&json!({"errors": ["could not reproduce it; not fixed"]}))), ISSUE, 1, "`errors` says what went wrong";
    tasks_done_with_errors: thrice("implement", "implementer", &with_errors(&["T002 is not done"])), TASKS, 1, "`errors` says what went wrong";
    a_completed_task_with_an_error:
        thrice("implement", "implementer", &tasks(&["T001", "T002"], &json!({"error": "could not do it"}))), TASKS, 1, "a completed task has an `error`";
    a_task_inside_of_a_range: first_and_last(), ["--task", "Do T001-T003: add, take away, share"], 1, "T001, T002, T003";
    a_task_inside_of_a_range_of_dots: first_and_last(), ["--task", "T001..T003"], 1, "T001, T002, T003";
    a_task_inside_of_a_range_in_words: first_and_last(), ["--task", "The tasks t001 to t003 of the plan"], 1, "T001, T002, T003";
    a_task_inside_of_a_range_of_numbers: first_and_last(), ["--task", "T001 – 003"], 1, "T001, T002, T003";
    tasks_that_are_left_out:
        thrice("implement", "implementer", &tasks(&["T001"], &json!({}))), TASKS, 1, "T001, T002";
    tasks_that_nobody_asked_for:
        thrice("implement", "implementer", &tasks(&["T001", "T002", "T003"], &json!({}))), TASKS, 1, "and no other";
    no_tasks_at_all:
        thrice("implement", "implementer", &tasks(&[], &json!({}))), ["--task", "Make it good"], 1, "each task that was asked for";
    tasks_without_a_file_or_a_commit:
        thrice("implement", "implementer", &tasks(&["T001", "T002"], &json!({"files_changed": []}))), TASKS, 1, "needs the files that were changed";
    tasks_whose_files_did_not_change:
        said("implement", "implementer", &tasks(&["T001", "T002"], &json!({}))), TASKS, 7, "no file was changed and no commit was made for T001, T002";
    tasks_that_break_the_tests:
        said("implement", "implementer", &tasks(&["T001", "T002"], &json!({}))).writes("src/lib.rs", "pub fn two() {}\n")
            .file("counterfoil.toml", CHECKS).commit(),
        TASKS, 7, "the check test fails";
    a_task_with_a_failed_step:
        said("implement", "implementer", &tasks(&["T001", "T002"], &json!({"validation": [{"step": "test", "success": false}]})))
            .writes("src/lib.rs", GOOD),
        TASKS, 7, "validation failed: T001 (test)";
}

fn said(workflow: &str, agent: &str, result: &Value) -> Scenario {
    Scenario::new(&format!("review-fix/{workflow}")).says(agent, result.clone())
}

/// The same result for the prompt and both repair prompts.
fn thrice(workflow: &str, agent: &str, result: &Value) -> Scenario {
    (0..2).fold(said(workflow, agent, result), |scenario, _| scenario.says(agent, result.clone()))
}

/// A fix of issue 17 in `src/lib.rs`.
fn fix(more: &Value) -> Value {
    let mut fix = json!({
        "success": true, "issue_number": 17, "issue_title": "It returns two",
        "files_changed": [{"file_path": "src/lib.rs", "change_type": "modified", "lines_added": 1, "lines_removed": 1}]
    });
    for (name, value) in more.as_object().unwrap() {
        fix[name] = value.clone();
    }
    fix
}

/// Completed tasks, each with `src/lib.rs`, and something else in each.
fn tasks(ids: &[&str], more: &Value) -> Value {
    let task = |id: &&str| {
        let mut task = json!({
            "task_id": id, "status": "completed", "files_changed": [{"file_path": "src/lib.rs"}]
        });
        for (name, value) in more.as_object().unwrap() {
            task[name] = value.clone();
        }
        task
    };
    json!({
        "success": true, "tasks_completed": ids.len(), "tasks_failed": 0, "tasks_skipped": 0,
        "task_results": ids.iter().map(task).collect::<Vec<_>>()
    })
}

/// Two completed tasks, and these errors.
fn with_errors(errors: &[&str]) -> Value {
    let mut result = tasks(&["T001", "T002"], &json!({}));
    result["errors"] = json!(errors);
    result
}

/// An implementer that reports the ends of the range T001 to T003.
fn first_and_last() -> Scenario {
    thrice("implement", "implementer", &tasks(&["T001", "T003"], &json!({})))
}

/// The first commit of a scenario's repository.
fn old_commit(scenario: &Scenario) -> String {
    let folder = scenario.path("");
    let output = std::process::Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn an_issue_fixed_by_a_commit_from_before() {
    let scenario = Scenario::new("review-fix/issue");
    let old = old_commit(&scenario);
    let fixed = fix(&json!({"files_changed": [], "commit_sha": old}));
    let scenario = (0..3).fold(scenario, |scenario, _| scenario.says("issue-fixer", fixed.clone()));
    not_done(scenario, &ISSUE, 3, "it existed before the step began");
}

#[test]
fn tasks_done_by_a_commit_from_before() {
    let scenario = Scenario::new("review-fix/implement");
    let old = old_commit(&scenario);
    let result = tasks(&["T001", "T002"], &json!({"files_changed": [], "commit_sha": old}));
    let scenario =
        (0..3).fold(scenario, |scenario, _| scenario.says("implementer", result.clone()));
    not_done(scenario, &TASKS, 3, "it existed before the step began");
}

#[test]
fn a_validation_that_passes_because_a_test_is_gone() {
    let tests = "def test_one():\n    assert 1 == 1\n\ndef test_two():\n    assert 1 == 2\n";
    let scenario = Scenario::new("review-fix/validate").file("test_calc.py", tests).commit();
    let scenario = (0..3).fold(scenario, |scenario, _| {
        scenario
            .says("fixer", json!({"success": true, "summary": "It passes", "files_mentioned": ["test_calc.py"]}))
            .writes("test_calc.py", "def test_one():\n    assert 1 == 1\n")
    });
    not_done(scenario, &["--input", "check=! grep -q '1 == 2' test_calc.py"], 7, "test_two");
}

#[test]
fn a_validation_that_fails_whatever_the_fixer_says() {
    let scenario = Scenario::new("review-fix/validate");
    let scenario = (0..3).fold(scenario, |scenario, at| {
        scenario.says("fixer", json!({"success": true, "summary": format!("It passes now ({at})")}))
    });
    not_done(scenario, &["--input", "check=false"], 6, "");
}

#[test]
fn tasks_with_a_file_or_a_commit_of_the_run_are_done() {
    let commit = "git -c user.name=Kim -c user.email=kim@example.com commit -qam 'T001 and T002'";
    let ran = said("implement", "implementer", &tasks(&["T001", "T002"], &json!({})))
        .writes("src/lib.rs", GOOD)
        .exec(commit)
        .run(&TASKS);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    // Only the commit is named.
    let result = tasks(&["T001", "T002"], &json!({"files_changed": [], "commit_sha": "SHA"}));
    let script = format!(
        "echo 'pub fn one() {{}}' > src/lib.rs; {commit}; sed \"s/SHA/$(git rev-parse HEAD)/g\" .git/result.md"
    );
    let agent = ["--agent", "implementer=command:sh .git/implementer.sh"];
    let ran = Scenario::new("review-fix/implement")
        .file(".git/result.md", &format!("```json\n{result}\n```\n"))
        .file(".git/implementer.sh", &script)
        .run(&[&TASKS[..], &agent].concat());
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let dot = tasks(&["T001", "T002"], &json!({"files_changed": [{"file_path": "./src/lib.rs"}]}));
    let ran = said("implement", "implementer", &dot).writes("src/lib.rs", GOOD).run(&TASKS);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn ranges_that_are_complete_and_errors_that_say_none_are_done() {
    let four = tasks(&["T998", "T999", "T1000", "T1001"], &json!({"error": ""}));
    for (task, said) in
        [("T998-T1001", four), ("Both: T001 and T002, 2-way", with_errors(&["None"]))]
    {
        let ran = Scenario::new("review-fix/implement")
            .built_in_only()
            .says("implementer", said)
            .writes("src/lib.rs", GOOD)
            .run(&["--task", task]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    }
}
