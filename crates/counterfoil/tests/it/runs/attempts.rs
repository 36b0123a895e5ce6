//! Attempts in the report of a run: repairs within an attempt, retries as further attempts.

use crate::runs::project::{BAD, GOOD, WorkflowProject, one_step, replies};
use serde_json::{Value, json};

#[test]
fn the_report_has_every_promised_field() {
    let ran = WorkflowProject::new(
        &one_step(""),
        &replies(&[r#"text: 'Done. {"ok": true, "note": "all of it"}', usage: { input_tokens: 10, output_tokens: 5, cost_usd: 0.01 }"#]),
    )
    .run_workflow();
    let report = &ran.report;
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    for (key, value) in [
        ("workflow", json!("one")),
        ("outcome", json!("done")),
        ("cause", Value::Null),
        ("state", json!("done")),
        ("reason", json!("")),
        ("iterations", json!(1)),
        ("questions", json!([])),
        ("variables", json!({})),
    ] {
        assert_eq!(report[key], value, "{key}");
    }
    assert_eq!(report["run"].as_str().unwrap().len(), 36);
    let usage = &report["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(10), &json!(5)));
    assert_eq!(usage["cost_usd"], json!(0.01));
    assert!(usage["wall_ms"].is_u64());

    assert_eq!(report["attempts"].as_array().unwrap().len(), 1);
    let attempt = &report["attempts"][0];
    for (key, value) in [
        ("path", json!(["work"])),
        ("item", Value::Null),
        ("agent", json!("worker")),
        ("n", json!(1)),
        ("outcome", json!("accepted")),
        ("contract", json!("scene/step@1")),
        ("value", json!({"ok": true, "note": "all of it"})),
        ("violations", json!([])),
        ("claims", json!([])),
        ("repairs_asked", json!(0)),
    ] {
        assert_eq!(attempt[key], value, "{key}");
    }
    assert_eq!(attempt["usage"]["input_tokens"], json!(10));
    assert_eq!(attempt["replies"].as_array().unwrap().len(), 1);
    assert_eq!(attempt["replies"][0]["status"], "accepted");
}

#[test]
fn what_was_received_is_kept_as_it_came() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[r#"text: 'Done. {"ok": true}'"#]));
    let ran = project.run_workflow();
    let transcript = ran.report["attempts"][0]["replies"][0]["transcript"].as_str().unwrap();
    assert_eq!(project.read(format!(".counterfoil/{transcript}")), "Done. {\"ok\": true}");
}

#[test]
fn a_repair_is_a_further_reply_of_the_same_attempt() {
    let ran = WorkflowProject::new(&one_step(""), &replies(&["text: 'I am done.'", BAD, GOOD]))
        .run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempts(), ["work#1 accepted"]);
    let attempt = &ran.report["attempts"][0];
    assert_eq!(attempt["repairs_asked"], 2);
    let statuses: Vec<&Value> =
        attempt["replies"].as_array().unwrap().iter().map(|r| &r["status"]).collect();
    assert_eq!(statuses, ["absent", "rejected", "accepted"]);
}

#[test]
fn every_reply_of_an_attempt_costs() {
    let ran = WorkflowProject::new(
        &one_step(""),
        &replies(&[
            "text: nothing, usage: { input_tokens: 100, output_tokens: 10, cost_usd: 0.5 }",
            r#"text: '{"ok": true}', usage: { input_tokens: 1, output_tokens: 2, cost_usd: 0.25 }"#,
        ]),
    )
    .run_workflow();
    for usage in [&ran.report["usage"], &ran.report["attempts"][0]["usage"]] {
        assert_eq!(usage["input_tokens"], 101);
        assert_eq!(usage["output_tokens"], 12);
        assert_eq!(usage["cost_usd"], 0.75);
    }
}

#[test]
fn no_valid_result_after_all_repairs_fails_by_contract() {
    let ran = WorkflowProject::new(&one_step(""), &replies(&[BAD, BAD, BAD, GOOD])).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("contract"), 1));
    assert_eq!(ran.attempts(), ["work#1 contract"]);
    let attempt = &ran.report["attempts"][0];
    assert_eq!(attempt["repairs_asked"], 2);
    assert_eq!(attempt["value"], Value::Null);
    assert_eq!(attempt["violations"][0]["pointer"], "/note");
    assert!(ran.reason().contains("after 2 repairs"), "{}", ran.reason());
    assert_eq!(ran.report["state"], "work");
}

#[test]
fn repairs_can_be_bounded_by_the_state() {
    let ran =
        WorkflowProject::new(&one_step(", repairs: 0"), &replies(&[BAD, GOOD])).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("contract"), 1));
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], 0);
    assert!(!ran.reason().contains("after"), "{}", ran.reason());
}

#[test]
fn a_broken_connection_is_tried_three_times_more() {
    let ran = WorkflowProject::new(
        &one_step(""),
        &replies(&["fail: transport", "fail: transport", "fail: transport", BAD, GOOD]),
    )
    .run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(
        ran.attempts(),
        ["work#1 transport", "work#2 transport", "work#3 transport", "work#4 accepted"]
    );
    // Repairs are counted apart from retries.
    let asked: Vec<&Value> = ran.report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| &attempt["repairs_asked"])
        .collect();
    assert_eq!(asked, [0, 0, 0, 1]);
    assert!(ran.report["usage"]["wall_ms"].as_u64().unwrap() < 1000, "a script does not back off");
}

#[test]
fn a_connection_that_stays_broken_fails_by_transport() {
    let ran =
        WorkflowProject::new(&one_step(""), &replies(&["fail: transport"; 12])).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("transport"), 5));
    assert_eq!(ran.attempts().len(), 11);
    assert_eq!(ran.reason(), "the connection failed");
}

#[test]
fn a_connection_that_breaks_during_a_repair_starts_the_attempt_anew() {
    let ran = WorkflowProject::new(&one_step(""), &replies(&[BAD, "fail: transport", GOOD]))
        .run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempts(), ["work#1 transport", "work#2 accepted"]);
    let first = &ran.report["attempts"][0];
    assert_eq!(first["repairs_asked"], 1);
    assert_eq!(first["replies"][1]["status"], "transport");
}

#[test]
fn a_timeout_is_tried_once_more() {
    let once =
        WorkflowProject::new(&one_step(""), &replies(&["fail: timeout", GOOD])).run_workflow();
    assert_eq!(once.ended(), ("done", None, 0));
    let twice =
        WorkflowProject::new(&one_step(""), &replies(&["fail: timeout", "fail: timeout", GOOD]))
            .run_workflow();
    assert_eq!(twice.ended(), ("failed", Some("timeout"), 124));
    assert_eq!(twice.attempts(), ["work#1 timeout", "work#2 timeout"]);
}

#[test]
fn retries_are_counted_by_trouble() {
    let ran = WorkflowProject::new(
        &one_step(""),
        &replies(&["fail: timeout", "fail: transport", "fail: timeout"]),
    )
    .run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("timeout"), 124));
    assert_eq!(ran.attempts().len(), 3);
}

#[test]
fn permission_and_the_agent_itself_are_not_tried_again() {
    for trouble in ["permission", "agent"] {
        let ran =
            WorkflowProject::new(&one_step(""), &replies(&[&format!("fail: {trouble}"), GOOD]))
                .run_workflow();
        assert_eq!(ran.ended(), ("failed", Some(trouble), 5), "{trouble}");
        assert_eq!(ran.attempts().len(), 1, "{trouble}");
    }
}

#[test]
fn a_limit_is_waited_for_as_often_as_the_state_says() {
    let lifted =
        WorkflowProject::new(&one_step(""), &replies(&["fail: limit", "fail: limit", GOOD]))
            .run_workflow();
    assert_eq!(lifted.ended(), ("done", None, 0));
    let once = one_step(", retries: { limit: 1 }");
    let stays =
        WorkflowProject::new(&once, &replies(&["fail: limit", "fail: limit", GOOD])).run_workflow();
    assert_eq!(stays.ended(), ("failed", Some("limit"), 5));
    assert_eq!(stays.attempts().len(), 2);
}

#[test]
fn the_reason_of_a_failure_can_be_scripted() {
    let ran = WorkflowProject::new(
        &one_step(""),
        &replies(&["fail: permission, reason: may not write to src"]),
    )
    .run_workflow();
    assert_eq!(ran.reason(), "may not write to src");
}

#[test]
fn a_script_that_runs_out_says_who_asked_for_what() {
    let ran = WorkflowProject::new(&one_step(""), &replies(&[BAD])).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("agent"), 5));
    assert!(ran.reason().contains("'worker' asked for reply number 2"), "{}", ran.reason());
}

#[test]
fn a_reply_for_another_prompt_is_left_alone() {
    let script = replies(&[r#"when: "the moon", text: '{"ok": true}'"#]);
    let ran = WorkflowProject::new(&one_step(""), &script).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("agent"), 5));
    assert!(ran.reason().contains("reply number 1"), "{}", ran.reason());
    assert!(ran.reason().contains("`when`"), "{}", ran.reason());
}

#[test]
fn a_repair_takes_the_next_reply_whose_when_stood_in_the_first_prompt() {
    let script = replies(&[
        "when: 'Do it', text: nothing",
        r#"when: "the moon", text: '{"ok": true, "note": "wrong one"}'"#,
        r#"when: "Do it", text: '{"ok": true, "note": "right one"}'"#,
    ]);
    let ran = WorkflowProject::new(&one_step(""), &script).run_workflow();
    assert_eq!(ran.report["attempts"][0]["value"]["note"], "right one");
}

#[test]
fn a_reply_writes_deletes_runs_and_takes_its_time() {
    let project = WorkflowProject::new(
        &one_step(""),
        r#"
replies:
  - agent: worker
    writes: { src/new.rs: "fn new() {}\n" }
    deletes: [old.rs]
    exec: "cat src/new.rs > copied.rs"
    delay_ms: 60
    text: '{"ok": true}'
"#,
    );
    project.write("old.rs", "fn old() {}\n");
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(project.read("src/new.rs"), "fn new() {}\n");
    assert_eq!(
        project.read("copied.rs"),
        "fn new() {}\n",
        "what is written is there when the command runs"
    );
    assert!(!project.path("old.rs").exists());
    assert!(ran.report["usage"]["wall_ms"].as_u64().unwrap() >= 60);
}

#[test]
fn a_reply_stays_inside_the_workspace() {
    let script = replies(&[r#"writes: { ../outside: "x" }, text: '{"ok": true}'"#]);
    let ran = WorkflowProject::new(&one_step(""), &script).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("agent"), 5));
    assert!(
        ran.reason().contains("'../outside' is not a path inside the workspace"),
        "{}",
        ran.reason()
    );
}

#[test]
fn an_agent_of_its_own_command_line_works_too() {
    let project = WorkflowProject::new(&one_step(""), "replies: []");
    project.write("agent.sh", "cat > asked.txt; echo 'Done: {\"ok\": true}'");
    let ran = project.run_json(&[
        "run",
        "flow.yaml",
        "--format",
        "json",
        "--agent",
        "worker=command:sh agent.sh",
    ]);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(project.read("asked.txt").starts_with("Do it."));
}

#[test]
fn every_refused_reply_is_one_event_of_the_log() {
    // Without a result, against the contract, and against a rule of the step.
    let rule = ", rules: [{ id: noted, check: has(result.note), message: no note, at: /note }]";
    let refused = replies(&["text: 'Done.'", BAD, GOOD]);
    let noted = replies(&[r#"text: '{"ok": true, "note": "yes"}'"#]);
    for (script, code, expected) in
        [(refused, 1, &["extraction C0101", "rules C0301", "rules C0303"][..]), (noted, 0, &[])]
    {
        let project = WorkflowProject::new(&one_step(rule), &script);
        let run = ["run", "flow.yaml", "--format", "json", "--agent", "script:script.yaml"];
        let output = project.command(&run).env("COUNTERFOIL_LOG", "warn").output();
        assert_eq!(output.code, Some(code), "{output:?}");
        let mut events = Vec::new();
        for line in output.stderr.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let of = |field: &str| event["fields"][field].as_str().unwrap().to_owned();
            assert_eq!(event["target"], "counterfoil::rejected");
            assert_eq!(of("contract"), "scene/step@1");
            events.push(format!("{} {}", of("stage"), of("codes")));
        }
        assert_eq!(events, expected, "{output:?}");
    }
}
