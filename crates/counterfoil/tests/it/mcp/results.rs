//! Submitting results: what is accepted, what is stored, what the server answers.

use crate::mcp::client::{Session, words};
use counterfoil_contract::Status;
use counterfoil_contract::render::vendor::Target;
use serde_json::{Value, json};

const QA: &str = "execution-loop/qa";

fn good() -> Value {
    json!({"dod_achieved": true, "checks": [{"criterion": "tests", "passed": true}]})
}

fn bad() -> Value {
    json!({"dod_achieved": "yes", "checks": [{"criterion": "tests"}], "test_results": {"total": "3"}})
}

/// Whether it was accepted.
fn accepted(answer: &Value) -> bool {
    let said = answer["structuredContent"]["status"] == "accepted";
    assert_eq!(answer["isError"], !said, "{answer}");
    said
}

#[test]
fn wrong_then_right() {
    let session = Session::of(QA, Target::Claude);
    let mut client = session.greet();
    let refused = client.submit(&bad());
    assert!(!accepted(&refused));
    insta::assert_snapshot!("a_rejection", words(&refused));
    insta::assert_json_snapshot!("a_rejection_as_data", refused["structuredContent"]);
    let taken = client.submit(&good());
    assert!(accepted(&taken));
    insta::assert_snapshot!("an_acknowledgement", words(&taken));
    let kept = session.kept();
    assert_eq!(
        kept.iter().map(|one| one.status).collect::<Vec<_>>(),
        [Status::Rejected, Status::Accepted]
    );
    assert_eq!(kept[0].value, bad());
    assert_eq!(kept[0].codes, ["C0202", "C0201"]);
    assert_eq!(kept[1].value, good());
    assert!(
        kept.iter().all(|one| one.contract == "execution-loop/qa@1" && one.at > 1_700_000_000_000)
    );
}

#[test]
fn everything_is_kept_in_the_order_in_which_it_came() {
    let session =
        Session::written("contract: acme/n\nversion: 1\nfields: { n: integer }", Target::Claude);
    let mut client = session.greet();
    // Without waiting for answers in between.
    let values = [json!(1), json!("2"), json!(3), json!(null)];
    for (id, n) in values.iter().enumerate() {
        let params = json!({"name": "submit_result", "arguments": {"n": n}});
        let frame =
            json!({"jsonrpc": "2.0", "id": id + 100, "method": "tools/call", "params": params});
        client.write(frame.to_string().as_bytes());
    }
    let (answers, _) = client.end();
    assert_eq!(
        answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect::<Vec<_>>(),
        [100, 101, 102, 103]
    );
    let kept: Vec<(Value, bool)> = session
        .kept()
        .into_iter()
        .map(|one| (one.value["n"].clone(), one.status == Status::Accepted))
        .collect();
    let [one, two, three, four] = values;
    assert_eq!(kept, [(one, true), (two, false), (three, true), (four, false)]);
}

#[test]
fn what_is_wrong_is_told_in_full_but_not_without_end() {
    let session = Session::written(
        "contract: acme/list\nversion: 1\nschema: { type: object, properties: { items: { items: { type: integer } } } }",
        Target::Claude,
    );
    let mut client = session.greet();
    let long = "x".repeat(1000);
    let answer = client.submit(&json!({"items": vec![json!(long); 300]}));
    assert!(!accepted(&answer));
    assert!(words(&answer).contains("and 280 more"), "{:.2000}", words(&answer));
    assert!(answer.to_string().len() < 60_000, "{}", answer.to_string().len());
}

#[test]
fn digits_are_kept_as_they_were_written() {
    let session = Session::written(
        "contract: acme/n\nversion: 1\nfields: { n: number, m: integer }",
        Target::Claude,
    );
    let mut client = session.greet();
    client.write(br#"{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"submit_result","arguments":{"n":1.10000000000000000000001,"m":123456789012345678901234567890}}}"#);
    assert!(accepted(&client.read()["result"]));
    let text = std::fs::read_to_string(session.submissions()).unwrap();
    assert!(
        text.contains(r#"{"n":1.10000000000000000000001,"m":123456789012345678901234567890}"#),
        "{text}"
    );
}

#[test]
fn what_a_dialect_makes_null_is_left_out() {
    let yaml = "contract: acme/check\nversion: 1\nfields: { ok: boolean, why?: string }";
    for (target, good) in
        [(Target::Codex, true), (Target::Claude, false), (Target::Draft2020, false)]
    {
        let session = Session::written(yaml, target);
        let mut client = session.greet();
        assert_eq!(accepted(&client.submit(&json!({"ok": true, "why": null}))), good, "{target:?}");
        assert_eq!(session.kept()[0].value == json!({"ok": true}), good, "{target:?}");
        let arguments = json!({"result": {"ok": true, "why": null}, "text": null});
        let checked = session.consult().call("check_result", &arguments);
        assert_eq!(checked["structuredContent"]["status"] == "accepted", good, "{target:?}");
    }
}

#[test]
fn a_wrapping_that_is_not_needed_is_taken_off_unless_it_could_be_the_result() {
    let plain = Session::written(
        "contract: acme/check\nversion: 1\nfields: { ok: boolean }",
        Target::Claude,
    );
    let mut client = plain.greet();
    assert!(accepted(&client.submit(&json!({"result": {"ok": true}}))));
    assert!(accepted(&client.submit(&json!({"result": "{\"ok\": true}"}))));
    assert!(!accepted(&client.submit(&json!({"result": {"ok": true}, "ok": 1}))));
    let values: Vec<Value> = plain.kept().into_iter().map(|one| one.value).collect();
    assert_eq!(
        values,
        [json!({"ok": true}), json!({"ok": true}), json!({"result": {"ok": true}, "ok": 1})]
    );

    let own = Session::written(
        "contract: acme/own\nversion: 1\nfields: { result?: { ok: boolean }, ok?: boolean }",
        Target::Claude,
    );
    let mut client = own.greet();
    assert!(accepted(&client.submit(&json!({"result": {"ok": true}}))));
    assert_eq!(own.kept()[0].value, json!({"result": {"ok": true}}));
}

#[test]
fn a_field_that_nobody_reads_is_refused_where_the_contract_says_so() {
    let refusing = "contract: acme/check\nversion: 1\nfields: { ok: boolean, items?: [{ id: string }] }\npolicy: { unknown_fields: refuse }";
    let session = Session::written(refusing, Target::Claude);
    let mut client = session.greet();
    for hidden in [
        json!({"ok": true, "findings": [{"severity": "critical"}]}),
        json!({"ok": true, "items": [{"id": "a", "severity": "critical"}]}),
        json!({"result": {"ok": true}, "findings": ["critical"]}),
    ] {
        assert!(!accepted(&client.submit(&hidden)), "{hidden}");
    }
    let answer = client.submit(&json!({"ok": true, "findings": ["critical"]}));
    assert!(
        words(&answer).contains("the field `findings` is not part of the contract"),
        "{answer}"
    );
    assert!(accepted(&client.submit(&json!({"ok": true, "findings": []}))));
    let kept: Vec<Status> = session.kept().into_iter().map(|one| one.status).collect();
    assert_eq!(kept.iter().filter(|status| **status == Status::Accepted).count(), 1);
}

#[test]
fn what_a_client_adds_for_itself_is_no_part_of_the_result() {
    let closed =
        "contract: acme/check\nversion: 1\nfields: { ok: boolean }\npolicy: { closed: true }";
    let session = Session::written(closed, Target::Gemini);
    let mut client = session.greet();
    assert!(accepted(&client.submit(&json!({"ok": true, "wait_for_previous": true}))));
    assert_eq!(session.kept()[0].value, json!({"ok": true}));
    let arguments = json!({"result": {"ok": true}, "wait_for_previous": false});
    let checked = session.consult().call("check_result", &arguments);
    assert_eq!(checked["structuredContent"]["status"], "accepted");
    // What the contract itself calls so stays.
    let own = "contract: acme/own\nversion: 1\nfields: { wait_for_previous: boolean }";
    let session = Session::written(own, Target::Gemini);
    assert!(accepted(&session.greet().submit(&json!({"wait_for_previous": true}))));
}

#[test]
fn a_wrapping_that_was_forgotten_is_put_on_where_that_is_clear() {
    let either = Session::written(
        "contract: acme/either\nversion: 1\nschema: { anyOf: [ { type: object, required: [a], properties: { a: { type: integer } } }, { type: array } ] }",
        Target::Claude,
    );
    let mut client = either.greet();
    assert!(accepted(&client.submit(&json!({"result": {"a": 1}}))));
    assert!(accepted(&client.submit(&json!({"a": 1}))));
    assert!(accepted(&client.submit(&json!({"result": [1]}))));
    let values: Vec<Value> = either.kept().into_iter().map(|one| one.value).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"a": 1}), json!([1])]);

    let list = Session::written(
        "contract: acme/list\nversion: 1\nschema: { type: array }",
        Target::Claude,
    );
    let mut client = list.greet();
    let answer = client.submit(&json!({"a": 1}));
    assert_eq!(answer["isError"], true);
    assert!(words(&answer).contains("pass the result as `result`"), "{}", words(&answer));
    assert!(list.kept().is_empty());
}

#[test]
fn nothing_handed_in_is_absent_and_no_empty_result() {
    let list = Session::written(
        "contract: acme/list\nversion: 1\nschema: { type: array }",
        Target::Claude,
    );
    let mut client = list.greet();
    for arguments in [json!({}), Value::Null] {
        let answer = client.submit(&arguments);
        assert_eq!(answer["structuredContent"]["status"], "absent");
        assert_eq!(answer["isError"], true);
    }
    assert!(list.kept().iter().all(|one| one.status == Status::Absent));
}

#[test]
fn a_check_keeps_nothing() {
    let session = Session::of(QA, Target::Claude);
    let mut client = session.consult();
    let text = format!("Done.\n```json\n{}\n```\n", good());
    for (arguments, status) in [
        (json!({"result": good()}), "accepted"),
        (json!({"result": bad()}), "rejected"),
        // As the tool that submits takes it: without the wrapping, or as a string.
        (good(), "accepted"),
        (bad(), "rejected"),
        (json!({"result": good().to_string()}), "accepted"),
        (json!({"text": text}), "accepted"),
        (json!({"text": "All good!"}), "absent"),
    ] {
        let answer = client.call("check_result", &arguments);
        assert_eq!(answer["isError"], false, "a check that finds something is no failure");
        let report = &answer["structuredContent"];
        assert_eq!(report["status"], status, "{arguments}");
        for key in [
            "contract",
            "stage",
            "value",
            "partial",
            "violations",
            "warnings",
            "rejected_items",
            "provenance",
        ] {
            assert!(report.get(key).is_some(), "{key}: {report}");
        }
    }
    assert!(!session.folder.path().join(".counterfoil").exists());
}

#[test]
fn arguments_that_cannot_be_used_are_answered_with_the_way_out() {
    let session = Session::of(QA, Target::Claude);
    let mut client = session.consult();
    for (arguments, words_of_it) in [
        (json!({}), "pass a `result`, or a `text`"),
        (json!({"text": "a", "result": {}}), "not both"),
        (json!({"text": 7}), "`text` must be a string"),
        (json!({"txt": "a"}), "`txt` is not a known argument"),
        (json!({"contract": "execution-loop/aq", "text": "a"}), "did you mean"),
        (json!({"contract": 1, "text": "a"}), "`contract` must be the id"),
    ] {
        let answer = client.call("check_result", &arguments);
        assert_eq!(answer["isError"], true, "{arguments}");
        assert!(words(&answer).contains(words_of_it), "{arguments}: {}", words(&answer));
    }
}

#[test]
fn a_place_that_cannot_be_written_never_accepts() {
    let session = Session::of(QA, Target::Claude);
    std::fs::create_dir(session.submissions()).unwrap();
    let mut client = session.greet();
    let answer = client.submit(&good());
    assert_eq!(answer["isError"], true);
    assert_eq!(answer["structuredContent"]["status"], "error");
    let said = words(&answer);
    assert!(said.contains("not submitted"), "{said}");
    assert!(said.contains("submissions.jsonl cannot be written"), "{said}");
    // The violations of a bad one are told all the same.
    assert!(words(&client.submit(&bad())).contains("C0202 /dod_achieved"));
    std::fs::remove_dir(session.submissions()).unwrap();
    assert!(accepted(&client.submit(&good())), "it can be corrected while the server runs");
}

#[test]
fn limits_of_the_contract_hold() {
    let session = Session::written(
        "contract: acme/small\nversion: 1\nschema: { type: object }\npolicy: { max_bytes: 200, max_depth: 5 }",
        Target::Claude,
    );
    let mut client = session.greet();
    let large = client.submit(&json!({"a": "x".repeat(300)}));
    assert!(words(&large).contains("C0103"), "{}", words(&large));
    let deep = client.submit(&json!({"a": [[[[[1]]]]]}));
    assert!(words(&deep).contains("C0104"), "{}", words(&deep));
    assert!(accepted(&client.submit(&json!({"a": [[[[1]]]]}))));
}
