//! The three small workflows: validate, issue, implement.

use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const CHECK: [&str; 2] = ["--input", "check=cat notes.md; grep -q good notes.md"];
const ISSUE: [&str; 4] = ["--task", "It returns two", "--input", "issue=17"];

fn validation() -> Scenario {
    Scenario::new("review-fix/validate").file("notes.md", "all wrong\n").commit()
}

fn fixed(summary: &str) -> Value {
    json!({"success": true, "summary": summary, "files_mentioned": ["notes.md"]})
}

#[test]
fn a_validation_that_passes_needs_no_fixer() {
    let ran = validation().file("notes.md", "good\n").run(&CHECK);
    assert_eq!((ran.ended(), ran.attempts().len()), (("done", None, 0), 0), "{ran:?}");
}

#[test]
fn a_validation_fails_is_fixed_and_passes() {
    let ran = validation()
        .also_ejected()
        .says("fixer", fixed("Wrote it down"))
        .writes("notes.md", "still wrong\n")
        // The list of files is best effort: one that did not change is noted, not asked about.
        .says(
            "fixer",
            json!({"success": true, "summary": "Wrote the other thing down", "files_mentioned": ["notes.md", "README.md"]}),
        )
        .writes("notes.md", "good\n")
        .run(&CHECK);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("fix#1")["value"], fixed("Wrote it down"));
    let second = ran.attempt("fix#2");
    assert_eq!(second["repairs_asked"], 0);
    assert_eq!(
        (&second["claims"][0]["claim"], &second["claims"][0]["verdict"]),
        (&json!("files_mentioned"), &json!("verified"))
    );
    assert_eq!(
        ran.transitions(),
        ["check>fix", "fix>check", "check>fix", "fix>check", "check>done"]
    );
    let first = ran.prompt("fix#1", 1);
    assert!(first.contains("all wrong") && first.contains("grep -q good"), "{first}");
    let second = ran.prompt("fix#2", 1);
    assert!(second.contains("still wrong") && !second.contains("all wrong"), "{second}");
    assert!(second.contains("What was done then: Wrote it down"), "{second}");
}

#[test]
fn a_validation_is_tried_three_times_at_most() {
    let scenario = (0..4).fold(validation(), |scenario, at| {
        scenario.says("fixer", fixed("Tried")).writes("notes.md", &format!("wrong {at}\n"))
    });
    let ran = scenario.run(&CHECK);
    assert_eq!(ran.ended(), ("exhausted", None, 6), "{ran:?}");
    assert_eq!((ran.attempts().len(), ran.commands().len()), (3, 4));
}

#[test]
fn a_fixer_that_fails_says_why_and_nobody_tries_again() {
    let gives_up = json!({"success": false, "summary": "No way", "error_details": "the formatter is not installed"});
    let ran = validation().says("fixer", gives_up.clone()).run(&CHECK);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ran.reason(), "the fixer gave up: the formatter is not installed");
    assert_eq!(ran.attempts().len(), 1);
    // What it changed before counts: the command decides.
    let better = validation().says("fixer", gives_up).writes("notes.md", "good\n").run(&CHECK);
    assert_eq!(better.ended(), ("done", None, 0), "{better:?}");
}

#[test]
fn a_failure_without_details_is_asked_for_again() {
    let ran = validation()
        .says("fixer", json!({"success": false, "summary": "No way"}))
        .says(
            "fixer",
            json!({"success": false, "summary": "No way", "error_details": "no formatter"}),
        )
        .run(&CHECK);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.prompt("fix#1", 2).contains("error_details"));
}

#[test]
fn a_fixer_without_a_report_keeps_its_edits_and_the_command_decides() {
    let ran = validation()
        .raw("fixer", "All good now.")
        .writes("notes.md", "good\n")
        .raw("fixer", "Really.")
        .raw("fixer", "")
        .run(&CHECK);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempts(), ["fix#1 contract"]);
    assert_eq!(ran.read("notes.md"), "good\n");
}

#[test]
fn a_command_that_fails_is_not_made_good_by_a_fixer_that_says_so() {
    let scenario = (0..3).fold(validation(), |scenario, at| {
        scenario.says("fixer", fixed(&format!("It passes now ({at})")))
    });
    let ran = scenario.run(&CHECK);
    assert_eq!(ran.ended(), ("exhausted", None, 6), "{ran:?}");
    // Version control knows that no file was changed.
    for name in ["fix#1", "fix#2", "fix#3"] {
        let told = ran.attempt(name);
        assert_eq!(
            (&told["repairs_asked"], &told["claims"][0]["verdict"]),
            (&json!(0), &json!("refuted"))
        );
    }
}

/// A fix of issue 17 in `src/lib.rs`.
fn fix(more: &Value) -> Value {
    let mut fix = json!({
        "success": true, "issue_number": 17, "issue_title": "It returns two", "fix_description": "It returns one",
        "files_changed": [{"file_path": "src/lib.rs", "change_type": "modified", "lines_added": 1, "lines_removed": 1}]
    });
    for (name, value) in more.as_object().unwrap() {
        fix[name] = value.clone();
    }
    fix
}

fn issue(said: Value) -> Scenario {
    Scenario::new("review-fix/issue")
        .says("issue-fixer", said)
        .writes("src/lib.rs", "pub fn one() {}\n")
}

#[test]
fn an_issue_is_fixed() {
    let ran = issue(fix(&json!({}))).also_ejected().run(&ISSUE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.reason(), "#17 is fixed: It returns one");
    assert_eq!(ran.variables()["files"], json!(["src/lib.rs"]));
    let prompt = ran.prompt("fix#1", 1);
    assert!(prompt.contains("issue #17") && prompt.contains("It returns two"), "{prompt}");
}

#[test]
fn a_fix_of_another_issue_is_refused() {
    let ran =
        issue(fix(&json!({"issue_number": 18}))).says("issue-fixer", fix(&json!({}))).run(&ISSUE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.prompt("fix#1", 2).contains("`issue_number` is not 17"),
        "{}",
        ran.prompt("fix#1", 2)
    );
}

#[test]
fn an_issue_that_is_not_fixed_blocks_with_its_errors() {
    let ran =
        issue(fix(&json!({"success": false, "errors": ["could not reproduce it", "no log"]})))
            .run(&ISSUE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ran.reason(), "not fixed: could not reproduce it; no log");
}

#[test]
fn a_commit_that_is_not_there_is_refuted() {
    let said = || fix(&json!({"commit_sha": "0123456789abcdef0123456789abcdef01234567"}));
    let ran = issue(said()).says("issue-fixer", said()).says("issue-fixer", said()).run(&ISSUE);
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    assert!(ran.prompt("fix#1", 2).contains("commit_sha"));
}

#[test]
fn a_fix_whose_checks_do_not_pass_is_not_one() {
    let checks = "[checks]\ntest = \"grep -q one_more src/lib.rs\"\n";
    let ran = issue(fix(&json!({"validation_passed": true})))
        .file("counterfoil.toml", checks)
        .commit()
        .run(&ISSUE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("claimed to succeed"), "{}", ran.reason());
    let said = issue(fix(&json!({"validation_passed": false}))).run(&ISSUE);
    assert_eq!(
        (said.ended(), said.reason()),
        (("blocked", None, 7), "the validation does not pass"),
        "{said:?}"
    );
}

/// What became of two tasks.
fn tasks(second: &str, more: &Value) -> Value {
    let task = |id: &str, status: &str| {
        json!({
            "task_id": id, "status": status, "files_changed": [{"file_path": "src/lib.rs", "lines_added": 1, "lines_removed": 1}],
            "tests_added": [], "duration_ms": 5, "validation": [],
            "error": if status == "failed" { json!("the service did not start") } else { json!(null) }
        })
    };
    let completed = 1 + u8::from(second == "completed");
    let mut all = json!({
        "success": second == "completed", "tasks_completed": completed, "tasks_failed": u8::from(second == "failed"),
        "tasks_skipped": u8::from(second == "skipped"), "task_results": [task("T001", "completed"), task("T002", second)],
        "files_changed": [], "commits": []
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

#[test]
fn tasks_are_accounted_for_one_by_one() {
    let done = Scenario::new("review-fix/implement")
        .also_ejected()
        .says("implementer", tasks("completed", &json!({})))
        .writes("src/lib.rs", "pub fn one() {}\n")
        .run(&["--task", "T001, T002"]);
    assert_eq!(done.ended(), ("done", None, 0), "{done:?}");
    assert!(done.prompt("implement#1", 1).contains("T001, T002"));

    let said = tasks("failed", &json!({"errors": ["one is left"]}));
    let left = Scenario::new("review-fix/implement")
        .says("implementer", said)
        .run(&["--task", "T001, T002"]);
    assert_eq!(left.ended(), ("blocked", None, 7), "{left:?}");
    assert_eq!(
        left.reason(),
        "not all is done: one is left; T002 is failed: the service did not start"
    );
    assert_eq!(left.variables()["tasks"][1]["status"], "failed");
}

#[test]
fn counts_that_are_not_those_of_the_tasks_are_refused() {
    for (second, more, words) in [
        (
            "failed",
            json!({"tasks_failed": 0, "errors": ["one is left"]}),
            "do not agree with the statuses",
        ),
        (
            "failed",
            json!({"tasks_completed": 2, "errors": ["one is left"]}),
            "do not agree with the statuses",
        ),
        ("skipped", json!({"success": true}), "not every task"),
        ("failed", json!({}), "`errors` does not say what went wrong"),
    ] {
        let ran = Scenario::new("review-fix/implement")
            .built_in_only()
            .says("implementer", tasks(second, &more))
            .writes("src/lib.rs", "pub fn one() {}\n")
            .says("implementer", tasks("completed", &json!({})))
            .run(&["--task", "T001, T002"]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert!(ran.prompt("implement#1", 2).contains(words), "{}", ran.prompt("implement#1", 2));
    }
}
