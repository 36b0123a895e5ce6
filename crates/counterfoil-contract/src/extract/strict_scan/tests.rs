use super::*;
use proptest::prelude::*;

fn closed(text: &str) -> Vec<&str> {
    scan(text)
        .into_iter()
        .filter(|candidate| matches!(candidate.shape, Shape::Closed { .. }))
        .map(|candidate| &text[candidate.start..candidate.end])
        .collect()
}

#[test]
fn finds_values_in_prose() {
    assert_eq!(closed(r#"so {"a": [1, {}]} and [2]."#), [r#"{"a": [1, {}]}"#, "[2]"]);
}

#[test]
fn a_stray_quote_pairs_up_wrongly_and_is_forgiven() {
    assert_eq!(closed(r#"He said "use {" and then {"a": 1}"#), [r#"{"a": 1}"#]);
    assert_eq!(closed("{\" stray\n{\"a\": 1}"), [r#"{"a": 1}"#]);
}

#[test]
fn values_inside_a_broken_one_stay() {
    let text = r#"{"log": {"a": 1}, oops {"b": 2}"#;
    let all = scan(text);
    assert_eq!(closed(text), [r#"{"a": 1}"#, r#"{"b": 2}"#]);
    assert!(matches!(all[0].shape, Shape::Broken { .. }));
    assert!(all[1].nested && !all[2].nested);
}

#[test]
fn a_markdown_quote_may_be_inside() {
    let text = "> {\n>   \"a\": 1\n> }";
    let all = scan(text);
    assert_eq!(all.len(), 1);
    assert!(matches!(all[0].shape, Shape::Closed { quoted: true, .. }));
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same(
        text in r#"[\[\]{}",:<>/a-c1\\ \n'(“✓]{0,60}"#,
        cut in 1usize..7,
        counts in any::<bool>(),
    ) {
        let mut whole = StrictScan::new(0).counts_items(counts);
        whole.feed(text.as_bytes(), 0, true, &|_| false);
        let mut parts = StrictScan::new(0).counts_items(counts);
        let mut at = 0;
        while at < text.len() {
            at = (at + cut).min(text.len());
            let keep = parts.keep_from();
            parts.feed(&text.as_bytes()[keep..at], keep, false, &|_| false);
        }
        let keep = parts.keep_from();
        parts.feed(&text.as_bytes()[keep..], keep, true, &|_| false);
        prop_assert_eq!(whole.take_events(), parts.take_events());
    }
}
