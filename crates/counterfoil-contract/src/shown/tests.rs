use super::*;
use serde_json::json;

const PROMPT: &str = "Review it.\n\nExample:\n```json\n{\n  \"ok\": true,\n  \"summary\": \"All 12 tests pass\",\n  \"checks\": [{\"name\": \"lint\", \"note\": \"no finding at all\"}]\n}\n```\n";

fn shown() -> Shown {
    Shown::new([PROMPT])
}

#[test]
fn a_copy_is_recognised_in_any_layout() {
    for copy in [
        r#"{"ok": true, "summary": "All 12 tests pass", "checks": [{"name": "lint", "note": "no finding at all"}]}"#,
        "> {\r\n>   \"ok\": true,\r\n> \"summary\": \"All 12 tests pass\",\r\n> \"checks\": [{\"name\": \"lint\", \"note\": \"no finding at all\"}]\r\n> }",
        r#"{"checks":[{"note":"no finding at all","name":"lint"}],"summary":"All 12 tests pass","ok":true}"#,
        // A part of it: an inner object, an inner list.
        r#"{"name": "lint", "note": "no finding at all"}"#,
        r#"[{"name": "lint", "note": "no finding at all"}]"#,
        // A part of it: some of its members.
        r#"{"summary": "All 12 tests pass", "ok": true}"#,
        // In an envelope.
        r#"{"result": {"ok": true, "summary": "All 12 tests pass"}}"#,
        r#"[{"ok": true, "summary": "All 12 tests pass"}]"#,
        r#"{"output": "{\"ok\": true, \"summary\": \"All 12 tests pass\"}"}"#,
        // A part of it: cut off.
        "{\n\"ok\": true,\n\"summary\": \"All 12 tests pass\",\n\"che",
        "{ \"ok\": true, \"summary\": \"All 12 tests pass\", …",
    ] {
        assert!(shown().repeats(copy), "{copy}");
    }
}

#[test]
fn another_result_is_no_copy() {
    for other in [
        r#"{"ok": false, "summary": "All 12 tests pass", "checks": []}"#,
        r#"{"ok": true, "summary": "All 13 tests pass"}"#,
        // Cut off before anything of its own: this may be the beginning of an answer.
        "{\"ok\": true, \"summary\":",
        "{",
        "",
        // It goes on with a value of its own.
        "{\"ok\": true, \"summary\": \"All 12 tests pass\", \"checks\": [{\"name\": \"types\", \"no",
    ] {
        assert!(!shown().repeats(other), "{other}");
    }
}

#[test]
fn numbers_and_escapes_are_compared_by_value() {
    let shown = Shown::new([r#"{"score": 10, "big": 12345678901234567890, "name": "Zoë"}"#]);
    assert!(shown.repeats(r#"{"big": 12345678901234567890, "score": 1e1, "name": "Zo\u00eb"}"#));
    assert!(!shown.repeats(r#"{"big": 12345678901234567891, "score": 10, "name": "Zoë"}"#));
}

#[test]
fn blocks_are_copies_in_any_order_of_their_lines() {
    let shown = Shown::new(["---OUTPUT---\napproved: false\nreason: the test fails\n---END---\n"]);
    assert!(shown.repeats_block("\n> reason:  the test fails\n> approved: false\n"));
    assert!(shown.repeats_block("reason: the test fails\n"));
    assert!(!shown.repeats_block("approved: true\nreason: the test fails\n"));
}

#[test]
fn values_that_are_not_ours_are_excepted() {
    let value = json!({"name": "lint", "note": "no finding at all"});
    assert!(shown().repeats_value(&value));
    let excepted = shown().except([&json!({"inside": [value]})]);
    assert!(!excepted.repeats_value(&value) && excepted.is_excepted(&value));
    // A value may also be given as a text.
    let excepted = shown().except([&json!(format!("see {value}"))]);
    assert!(!excepted.repeats_value(&value));
}

#[test]
fn a_small_value_is_a_copy_after_the_same_words() {
    let shown = Shown::new(["The result of the review, as an example:\n{\"ok\": true}\n"]);
    assert!(
        shown.repeats_after("> The result of the review,\n> as an example:\n> ", "{\"ok\": true}")
    );
    assert!(!shown.repeats_after("The result of my review: ", "{\"ok\": true}"));
    assert!(!shown.repeats_after("example: ", "{\"ok\": true}"));
}

#[test]
fn hostile_texts_cost_little() {
    let text = "{\"a\":[".repeat(20_000);
    let shown = Shown::new([text.as_str()]);
    let started = std::time::Instant::now();
    for start in (0..text.len()).step_by(600) {
        shown.repeats_part(&text[start..text.len().min(start + 600)]);
    }
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}
