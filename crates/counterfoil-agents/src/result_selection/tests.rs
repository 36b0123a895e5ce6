use super::*;
use counterfoil_contract::{Code, Definition, Framing};
use serde_json::json;

fn contract() -> Contract {
    let schema = json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "n": {"type": "integer"},
            "notes": {"type": "array", "items": {"type": "string"}, "default": []},
            "why": {"type": "string"}
        },
        "required": ["ok"]
    });
    let definition = Definition::new("acme/check", 1, Framing::AnyJson, schema)
        .example(json!({"ok": false, "n": 7, "why": "two tests fail"}));
    Contract::compile(definition).unwrap()
}

fn submitted(value: Value) -> Submission {
    let report = contract().check_value(&value);
    Submission::now(value, &report)
}

fn candidates<'o>(
    text: &'o str,
    structured: Option<&'o Value>,
    submissions: &'o [Submission],
) -> ResultCandidates<'o> {
    ResultCandidates {
        text: text.as_bytes(),
        messages: None,
        structured,
        submissions,
        context: None,
    }
}

fn selected(text: &str, structured: Option<&Value>, submissions: &[Submission]) -> SelectedResult {
    let contract = contract();
    let prompt = contract.prompt();
    let mut selector = ResultSelector::new(&contract, &[], &prompt, &[]);
    selector.select(candidates(text, structured, submissions))
}

fn codes(selected: &SelectedResult) -> Vec<Code> {
    selected.report.codes()
}

#[test]
fn the_last_submission_wins_over_everything() {
    let submissions = [
        submitted(json!({"n": 3})),
        submitted(json!({"ok": true, "n": 1})),
        submitted(json!({"ok": true, "n": 2})),
    ];
    let found =
        selected(r#"{"ok": true, "n": 2}"#, Some(&json!({"ok": true, "n": 2})), &submissions);
    assert_eq!(found.channel, Channel::Submitted);
    assert_eq!(found.report.value, Some(json!({"ok": true, "n": 2, "notes": []})));
    assert_eq!(found.notes, ["1 submission rejected"]);
}

#[test]
fn a_refused_submission_after_an_accepted_one_asks_again() {
    let submissions = [submitted(json!({"ok": true})), submitted(json!({"ok": "no"}))];
    // Whatever the text says.
    for text in ["done", r#"{"ok": true}"#] {
        let found = selected(text, None, &submissions);
        assert_eq!((found.channel, found.report.status), (Channel::Submitted, Status::Rejected));
        assert_eq!(found.report.violations[0].pointer, "/ok");
    }
}

#[test]
fn unknown_fields_are_refused_in_every_channel_alike() {
    let contract = contract().with_unknown_fields(UnknownFields::Refuse).unwrap();
    let hidden = json!({"ok": true, "findings": [{"severity": "critical"}]});
    let submissions = [submitted(hidden.clone())];
    let text = hidden.to_string();
    for offered in [
        candidates(&text, None, &[]),
        candidates("Done.", Some(&hidden), &[]),
        candidates("Done.", None, &submissions),
    ] {
        let mut selector = ResultSelector::new(&contract, &[], "", &[]);
        let found = selector.select(offered);
        assert_eq!(codes(&found), [Code::UnknownField], "{:?}", found.channel);
        assert_eq!(found.report.violations[0].pointer, "/findings");
    }
}

#[test]
fn a_contradiction_is_asked_about_once_with_the_place_and_both_values() {
    let contract = contract();
    let mut selector = ResultSelector::new(&contract, &[], "", &[]);
    let submissions = [submitted(json!({"ok": true, "n": 3}))];
    let first = selector.select(candidates(r#"{"ok": false}"#, None, &submissions));
    assert_eq!((first.channel, first.report.status), (Channel::Submitted, Status::Rejected));
    assert_eq!(codes(&first), [Code::ChannelsDiffer]);
    let violation = &first.report.violations[0];
    assert_eq!(violation.pointer, "/ok");
    let repair = contract.repair(&first.report);
    for part in ["There is a question", "/ok", "true in the result", "false in the final text"] {
        assert!(repair.contains(part), "{part:?} is missing in {repair}");
    }
    // The second time the last submission counts.
    let second = selector.select(candidates(r#"{"ok": false}"#, None, &submissions));
    assert_eq!(second.report.value, Some(json!({"ok": true, "n": 3, "notes": []})));
    assert_eq!(second.notes.len(), 1);
}

#[test]
fn what_a_text_leaves_out_or_adds_is_no_contradiction() {
    let submissions = [submitted(json!({"ok": true, "n": 3, "notes": ["a"]}))];
    for text in [
        r#"{"ok": true}"#,
        r#"{"ok": true, "n": 3.0}"#,
        r#"{"ok": true, "why": "all pass"}"#,
        r#"{"ok": true, "extra": 1}"#,
        r#"I changed ["a.rs", "b.rs"]."#,
        r#"The settings are {"timeout": 4} now."#,
        "all done",
    ] {
        let found = selected(text, None, &submissions);
        assert!(found.report.value.is_some(), "{text}: {:?}", found.report);
    }
    for text in [
        r#"{"ok": true, "n": 4}"#,
        r#"{"ok": true, "notes": []}"#,
        // A text that is not a result on its own gives values, too.
        r#"{"n": 4}"#,
    ] {
        assert_eq!(codes(&selected(text, None, &submissions)), [Code::ChannelsDiffer], "{text}");
    }
}

#[test]
fn structured_output_wins_over_text_and_is_validated_against_the_contract() {
    let found = selected(r#"{"ok": true}"#, Some(&json!({"ok": true})), &[]);
    assert_eq!(found.channel, Channel::Native);
    assert!(found.report.value.is_some());
    let found = selected(r#"{"ok": false}"#, Some(&json!({"ok": true})), &[]);
    assert_eq!((found.channel, codes(&found)), (Channel::Native, vec![Code::ChannelsDiffer]));
}

#[test]
fn a_refused_result_does_not_yield_to_another_channel() {
    let refused = json!({"ok": "no"});
    let submissions = [submitted(refused.clone())];
    let valid = json!({"ok": true});
    let text = valid.to_string();
    for (offered, channel, note) in [
        (candidates(&text, Some(&refused), &[]), Channel::Native, "the final text is valid"),
        (candidates(&text, None, &submissions), Channel::Submitted, "the final text is valid"),
        (
            candidates("Done.", Some(&valid), &submissions),
            Channel::Submitted,
            "the structured output is valid",
        ),
    ] {
        let contract = contract();
        let mut selector = ResultSelector::new(&contract, &[], "", &[]);
        let found = selector.select(offered);
        assert_eq!((found.channel, found.report.status), (channel, Status::Rejected));
        assert_eq!(found.report.violations[0].pointer, "/ok");
        assert!(found.notes.iter().any(|one| one.starts_with(note)), "{:?}", found.notes);
        // The next reply may use another channel.
        let next = selector.select(candidates(&text, None, &[]));
        assert_eq!(next.report.value, Some(json!({"ok": true, "notes": []})));
    }
}

#[test]
fn a_problem_in_a_refused_field_is_not_forgotten() {
    let contract = contract().with_unknown_fields(UnknownFields::Refuse).unwrap();
    let hidden = json!({"ok": true, "findings": [{"severity": "critical"}]});
    let text = hidden.to_string();
    let clean = json!({"ok": true});
    let clean_text = clean.to_string();
    let told = json!({"ok": true, "why": "`findings` was about another file"}).to_string();
    let refused = [submitted(hidden.clone())];
    let then_clean = [submitted(hidden.clone()), submitted(clean.clone())];
    for first in [
        candidates(&text, None, &[]),
        candidates(&clean_text, Some(&hidden), &[]),
        candidates(&clean_text, None, &refused),
        candidates("Done.", None, &then_clean),
        // Beside a question about something else, too.
        candidates(r#"{"ok": false}"#, None, &then_clean),
    ] {
        let mut selector = ResultSelector::new(&contract, &[], "", &[]);
        assert!(!selector.select(first).report.is_accepted());
        // However often it is left out.
        for _ in 0..3 {
            let next = selector.select(candidates(&clean_text, None, &[]));
            assert_eq!(codes(&next), [Code::ProblemLeftOut]);
        }
        let repair = contract.repair(&selector.select(candidates(&clean_text, None, &[])).report);
        assert!(repair.contains("`findings`") && repair.contains("critical"), "{repair}");
        assert!(selector.select(candidates(&told, None, &[])).report.is_accepted());
    }
    // Without the setting the field is noted, and nothing is asked.
    assert!(selected(&text, None, &[]).report.is_accepted());
}

#[test]
fn without_a_valid_result_the_report_is_on_the_candidate_that_counts() {
    let found = selected("all done", None, &[submitted(json!({"ok": "yes"}))]);
    assert_eq!(found.channel, Channel::Submitted);
    assert_eq!(found.report.violations[0].pointer, "/ok");
    let found = selected(r#"{"ok": 7}"#, None, &[submitted(json!({"n": 1}))]);
    assert_eq!((found.channel, found.report.status), (Channel::Submitted, Status::Rejected));
    assert_eq!(selected("all done", None, &[]).report.status, Status::Absent);
    assert_eq!(selected("", Some(&json!({})), &[]).report.value, None);
}

#[test]
fn the_items_of_both_channels_are_kept_where_they_contradict_each_other() {
    let contract = Contract::from_yaml(
        "contract: acme/list\nversion: 1\nframing: any-json\n\
         fields: { items: [{ id: string }], ok: boolean }\npolicy: { salvage: [/items] }\n",
    )
    .unwrap();
    let result = |id: &str, ok: bool| json!({"items": [{"id": id}], "ok": ok});
    let submissions =
        [Submission::now(result("F001", true), &contract.check_value(&result("F001", true)))];
    let text = result("F002", false).to_string();
    let mut selector = ResultSelector::new(&contract, &[], "", &[]);
    let found = selector.select(candidates(&text, None, &submissions));
    assert_eq!(codes(&found), [Code::ChannelsDiffer]);
    assert_eq!(found.items.valid, [json!({"id": "F001"}), json!({"id": "F002"})]);
}

#[test]
fn a_quotation_of_the_example_is_no_result_on_any_channel() {
    let example = json!({"why": "two tests fail", "n": 7, "ok": false});
    let quoted = format!("The form is:\n> {example}\n");
    for found in [
        selected(&quoted, None, &[]),
        selected("", Some(&example), &[]),
        selected("", None, &[submitted(example.clone())]),
    ] {
        assert_eq!((found.report.status, codes(&found)), (Status::Absent, vec![Code::OnlyQuoted]));
    }
    let answer = format!("{{\"ok\": true}}\n{quoted}");
    assert_eq!(selected(&answer, None, &[]).report.value, Some(json!({"ok": true, "notes": []})));
}

#[test]
fn a_copy_of_an_earlier_result_counts_when_it_is_sent_again() {
    let contract = contract();
    let earlier = json!({"ok": true, "n": 5, "notes": [], "why": "all pass"});
    let quote =
        |name: &str, value: Value, input| QuotedValue { name: name.to_owned(), value, input };
    let quotes = [quote("checked", json!({"last": earlier}), false)];
    let prompt = format!("Before:\n{earlier}\n{}", contract.prompt());
    let mut selector = ResultSelector::new(&contract, &[], &prompt, &quotes);
    let text = earlier.to_string();
    let first = selector.select(candidates(&text, None, &[]));
    assert_eq!(codes(&first), [Code::CopyOfEarlier]);
    assert!(contract.repair(&first.report).contains("identical to `checked`"));
    let second = selector.select(candidates(&text, None, &[]));
    assert_eq!(second.report.value, Some(earlier.clone()));
    // Another result is not asked about, nor is a small one that can be equal by chance.
    let mut selector = ResultSelector::new(&contract, &[], &prompt, &quotes);
    let other = selector.select(candidates(r#"{"ok": true, "n": 6}"#, None, &[]));
    assert!(other.report.value.is_some());
    let quotes = [quote("checked", json!({"ok": true, "notes": []}), false)];
    let mut selector = ResultSelector::new(&contract, &[], "", &quotes);
    assert!(selector.select(candidates(r#"{"ok": true}"#, None, &[])).report.value.is_some());
    // An input is not a result of the run, and not ours either.
    let quotes = [quote("wanted", earlier.clone(), true)];
    let mut selector = ResultSelector::new(&contract, &[], &prompt, &quotes);
    assert_eq!(selector.select(candidates(&text, None, &[])).report.value, Some(earlier));
}

#[test]
fn questions_end() {
    let contract = contract();
    let values: Vec<Value> = (2..5).map(|n| json!({"ok": true, "n": n, "notes": []})).collect();
    let quotes: Vec<QuotedValue> = values
        .iter()
        .map(|value| QuotedValue { name: "n".to_owned(), value: value.clone(), input: false })
        .collect();
    let mut selector = ResultSelector::new(&contract, &[], "", &quotes);
    let mut asked = 0;
    for round in 0..20 {
        let value = &values[round % values.len()];
        let submissions = [submitted(value.clone())];
        let found = selector.select(candidates(r#"{"ok": false}"#, None, &submissions));
        asked += usize::from(found.report.value.is_none());
    }
    assert_eq!(asked, values.len() + 1);
}
