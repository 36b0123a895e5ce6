//! Which tasks a text asks `review-fix/implement` for.

use super::false_done::not_done;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// These tasks, completed with `src/lib.rs`, and these errors.
fn completed(ids: &[&str], errors: &[&str]) -> Value {
    let task = |id: &&str| json!({"task_id": id, "status": "completed", "files_changed": [{"file_path": "src/lib.rs"}]});
    json!({
        "success": true, "tasks_completed": ids.len(), "tasks_failed": 0, "tasks_skipped": 0,
        "task_results": ids.iter().map(task).collect::<Vec<_>>(), "errors": errors
    })
}

/// The implementer reports this, whatever it is asked.
fn implemented(result: &Value) -> Scenario {
    let scenario = Scenario::new("review-fix/implement").built_in_only();
    (0..3).fold(scenario, |scenario, _| {
        scenario.says("implementer", result.clone()).writes("src/lib.rs", "pub fn one() {}\n")
    })
}

#[test]
fn the_tasks_of_a_text_are_done_with_those_and_no_others() {
    for (task, ids) in [
        ("Do these:\n- T001\n- T003\n- T005", vec!["T001", "T003", "T005"]),
        ("Do these:\n* T001 -\n  T003", vec!["T001", "T003"]),
        ("T001\r\n- T003", vec!["T001", "T003"]),
        ("T001 to\nT003", vec!["T001", "T003"]),
        ("Do:\n- T001 - 404 is a page of its own\n- T002 – 500 too", vec!["T001", "T002"]),
        ("T001 - T003", vec!["T001", "T002", "T003"]),
        ("T001\t–\tT003", vec!["T001", "T002", "T003"]),
        ("T098 – 101, then stop", vec!["T098", "T099", "T100", "T101"]),
        ("任务T001：one。任务T002：two", vec!["T001", "T002"]),
    ] {
        let ran = implemented(&completed(&ids, &[])).run(&["--task", task]);
        assert_eq!(ran.ended(), ("done", None, 0), "{task}: {ran:?}");
    }
}

#[test]
fn a_task_beside_letters_that_are_not_ascii_is_not_left_out() {
    for task in ["T001, 任务T002：two", "T001, ÄT002", "T001 and T002を"] {
        let left_out = implemented(&completed(&["T001"], &[]));
        not_done(left_out, &["--task", task], 1, "T001, T002");
    }
}

#[test]
fn errors_that_say_that_there_are_none_are_none() {
    for none in ["None.", "No errors.", "no issues found", "N/A", "nothing to report", " - "] {
        let ran = implemented(&completed(&["T001"], &[none])).run(&["--task", "T001"]);
        assert_eq!(ran.ended(), ("done", None, 0), "{none}: {ran:?}");
    }
    let result = completed(&["T001"], &["none of the inputs is checked"]);
    not_done(implemented(&result), &["--task", "T001"], 1, "`errors` says what went wrong");
}
