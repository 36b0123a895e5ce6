//! How `---OUTPUT---` blocks of the feature pipeline are parsed, rule by rule.

use counterfoil_contract::Report;
use counterfoil_packs::registry;
use serde_json::{Value, json};

/// Checks a text against the contract of the type design analyzer.
fn read(text: &str) -> Report {
    registry().get("feature-pipeline/type-design-analyzer").unwrap().check(text)
}

/// A block with these lines.
fn block(lines: &str) -> String {
    format!("---OUTPUT---\n{lines}\n---END---\n")
}

const LINES: &str = "types_analyzed: 2\nquality_score: 7\nissues: none\nrecommendations: none";

/// A valid block with one line replaced.
fn with(line: &str) -> String {
    let key = line.split(':').next().unwrap();
    let lines: Vec<&str> = LINES
        .lines()
        .map(|known| if known.starts_with(&format!("{key}:")) { line } else { known })
        .collect();
    block(&lines.join("\n"))
}

/// The value of a field of an accepted text.
fn field(text: &str, name: &str) -> Value {
    let report = read(text);
    assert!(report.is_accepted(), "{text}\n{report:#?}");
    report.value.unwrap()[name].clone()
}

fn codes(report: &Report) -> Vec<&str> {
    report.violations.iter().map(|violation| violation.code.as_str()).collect()
}

fn warnings(text: &str) -> Vec<String> {
    let report = read(text);
    assert!(report.is_accepted(), "{text}\n{report:#?}");
    report.warnings.iter().map(|warning| warning.code.as_str().to_owned()).collect()
}

#[test]
fn only_the_block_counts() {
    let text = format!("quality_score: 1\nI looked at everything.\n\n{}", block(LINES));
    assert_eq!(field(&text, "quality_score"), 7);
}

#[test]
fn no_block_is_absent_and_no_result() {
    let report = read(LINES);
    assert_eq!((codes(&report), report.value.as_ref()), (vec!["C0101"], None));
}

#[test]
fn a_block_without_an_end_is_no_result() {
    let report = read(&format!("---OUTPUT---\n{LINES}\n"));
    assert_eq!((codes(&report), report.value.as_ref()), (vec!["C0108"], None));
}

#[test]
fn the_end_marker_is_searched_after_the_start_marker() {
    assert_eq!(field(&format!("---END---\n{}", block(LINES)), "quality_score"), 7);
}

#[test]
fn markers_count_alone_on_their_line() {
    let text = format!("Ends with ---OUTPUT--- quality_score: 1 ---END---\n{}", block(LINES));
    assert_eq!(field(&text, "quality_score"), 7);
}

#[test]
fn markers_inside_a_line_count_if_no_pair_is_on_its_own_line() {
    assert_eq!(
        field(&format!("So: ---OUTPUT---\n{LINES}\n---END--- That is all."), "quality_score"),
        7
    );
}

#[test]
fn the_last_block_decides() {
    let text = format!("{}{}", with("quality_score: 11"), block(LINES));
    assert_eq!(field(&text, "quality_score"), 7);
    // Also if it does not satisfy the contract, or has no end.
    let wrong = format!("{}{}", block(LINES), with("quality_score: 11"));
    assert_eq!(codes(&read(&wrong)), ["C0204"]);
    let unclosed = format!("{text}---OUTPUT---\nquality_score: 9\n");
    assert_eq!(codes(&read(&unclosed)), ["C0108"]);
}

#[test]
fn two_valid_blocks_that_differ_are_asked_about() {
    let text = format!("{}{}", with("quality_score: 3"), block(LINES));
    assert_eq!(codes(&read(&text)), ["C0112"]);
    assert_eq!(field(&format!("{}{}", block(LINES), block(LINES)), "quality_score"), 7);
}

#[test]
fn a_placeholder_is_a_violation_of_its_own_kind() {
    assert_eq!(codes(&read(&with("quality_score: [1-10]"))), ["C0212"]);
}

#[test]
fn a_fence_around_or_inside_the_markers_is_ignored() {
    assert_eq!(field(&format!("```\n{}```\n", block(LINES)), "quality_score"), 7);
    assert_eq!(field(&block(&format!("```yaml\n{LINES}\n```")), "quality_score"), 7);
}

#[test]
fn a_line_splits_at_its_first_colon() {
    let text = with("issues: [src/a.ts:45 - an id: a plain string]");
    assert_eq!(field(&text, "issues"), json!(["src/a.ts:45 - an id: a plain string"]));
}

#[test]
fn keys_and_values_are_trimmed() {
    assert_eq!(
        field(&block(&LINES.replace("quality_score: ", "  quality_score  :   ")), "quality_score"),
        7
    );
}

#[test]
fn keys_keep_their_case() {
    let report = read(&block(&LINES.replace("quality_score", "Quality_Score")));
    assert_eq!(codes(&report), ["C0201"]);
}

#[test]
fn a_line_without_a_colon_is_a_note() {
    let text = block(&format!("{LINES}\nthat is all"));
    assert_eq!(warnings(&text), ["W0105"]);
    assert_eq!(read(&text).warnings[0].received, "that is all");
}

#[test]
fn a_key_has_one_value() {
    let report = read(&block(&format!("{LINES}\nquality_score: 4")));
    assert_eq!((codes(&report), report.value.as_ref()), (vec!["C0124"], None));
    let text = block(&format!("{LINES}\nquality_score: 7"));
    assert_eq!(field(&text, "quality_score"), 7);
    assert_eq!(warnings(&text), ["W0103"]);
}

#[test]
fn a_list_is_never_shorter_than_it_was_written() {
    for lines in [
        "issues: [one, two",
        "issues:\n- one\n- two",
        "issues: [one,\n  two]",
        "issues: [one], [two]",
    ] {
        let report = read(&with(lines));
        assert_eq!((codes(&report), report.value.as_ref()), (vec!["C0127"], None), "{lines}");
    }
}

#[test]
fn every_word_for_nothing_is_nothing() {
    for word in ["none", "None.", "[none]", "N/A", "-", ""] {
        assert_eq!(field(&with(&format!("issues: {word}")), "issues"), json!(null), "{word}");
    }
}

#[test]
fn a_list_splits_at_comma_and_space() {
    assert_eq!(field(&with("issues: [one, two,three]"), "issues"), json!(["one", "two,three"]));
}

#[test]
fn a_list_may_be_empty() {
    assert_eq!(field(&with("issues: []"), "issues"), json!([]));
    assert_eq!(field(&with("issues: [ ]"), "issues"), json!([]));
}

#[test]
fn a_json_list_on_one_line_may_hold_commas() {
    assert_eq!(
        field(&with(r#"issues: ["one, two", "three"]"#), "issues"),
        json!(["one, two", "three"])
    );
}

#[test]
fn items_stay_texts() {
    assert_eq!(field(&with("issues: [1, true]"), "issues"), json!(["1", "true"]));
}

#[test]
fn none_is_null_in_any_case_and_in_quotes() {
    for none in ["none", "None", "NONE", "\"none\""] {
        assert_eq!(field(&with(&format!("issues: {none}")), "issues"), Value::Null, "{none}");
    }
}

#[test]
fn true_and_false_are_booleans_in_any_case() {
    let contract = registry().get("feature-pipeline/code-simplifier").unwrap();
    let text = |word: &str| {
        block(&format!(
            "simplified: {word}\nfiles_modified: []\nlines_removed: 0\ncomplexity_reduction: none\nchanges_summary: x"
        ))
    };
    for (word, value) in [("true", json!(true)), ("False", json!(false)), ("TRUE", json!(true))] {
        let report = contract.check(&text(word));
        assert_eq!(report.value.unwrap()["simplified"], value, "{word}");
    }
    assert_eq!(codes(&contract.check(&text("yes"))), ["C0202"]);
}

#[test]
fn an_enum_that_knows_the_word_none_keeps_it() {
    let contract = registry().get("feature-pipeline/code-simplifier").unwrap();
    let lines = "simplified: false\nfiles_modified: []\nlines_removed: 0\ncomplexity_reduction: none\nchanges_summary: x";
    assert_eq!(contract.check(&block(lines)).value.unwrap()["complexity_reduction"], "none");
}

#[test]
fn a_whole_number_is_one_and_a_decimal_is_not() {
    assert_eq!(field(&with("types_analyzed: 12"), "types_analyzed"), 12);
    assert_eq!(codes(&read(&with("types_analyzed: 2.5"))), ["C0202"]);
    // Where the contract has a text, both are one.
    let contract = registry().get("feature-pipeline/code-simplifier").unwrap();
    for number in ["12", "2.50", "+3"] {
        let lines = format!(
            "simplified: false\nfiles_modified: []\nlines_removed: 0\ncomplexity_reduction: none\nchanges_summary: {number}"
        );
        let value = contract.check(&block(&lines)).value.unwrap();
        assert_eq!(value["changes_summary"], number);
    }
}

#[test]
fn a_sentence_where_a_list_is_expected_is_a_list_of_one_and_is_recorded() {
    let report = read(&with("issues: ids are plain strings"));
    assert_eq!(report.value.as_ref().unwrap()["issues"], json!(["ids are plain strings"]));
    assert_eq!(report.provenance.coercions.len(), 1);
}

#[test]
fn every_field_is_required_in_every_block() {
    for definition in counterfoil_packs::definitions() {
        let Some(name) = definition.contract.strip_prefix("feature-pipeline/") else { continue };
        let contract = registry().get(&definition.contract).unwrap();
        let example = definition.examples[0].as_object().unwrap();
        for key in example.keys() {
            let mut without = example.clone();
            without.remove(key);
            let report = contract.check_value(&Value::Object(without));
            assert!(codes(&report).contains(&"C0201"), "{name} without {key}: {report:#?}");
        }
    }
}
