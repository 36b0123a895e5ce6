use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Parsed {
    parse_with_extents(text, Limits::of_depth(128)).unwrap()
}

fn fault(text: &str) -> Fault {
    parse(text, Limits::of_depth(128)).unwrap_err().fault
}

#[test]
fn numbers_keep_their_digits() {
    let text = "[12345678901234567890123, 0.1000000000000000055511151231257827, 1e400, -0, 1.0]";
    assert_eq!(read(text).value.to_string(), text.replace(' ', "").replace("1e400", "1e+400"));
}

#[test]
fn extents_are_those_of_the_text() {
    let text = r#" {"a" : [1, "x\"y"], "b":{} } "#;
    let node = read(text).node.unwrap();
    let at = |pointer: &str| {
        let (node, all) = node.locate(pointer);
        assert!(all);
        &text[node.start..node.end]
    };
    assert_eq!(at(""), text.trim());
    assert_eq!(at("/a"), r#"[1, "x\"y"]"#);
    assert_eq!(at("/a/1"), r#""x\"y""#);
    assert_eq!(at("/b"), "{}");
    let (start, end) = node.locate("/a").0.key.unwrap();
    assert_eq!(&text[start..end], "\"a\"");
}

#[test]
fn faults_have_kinds() {
    assert_eq!(fault(r#"{"a": 1"#), Fault::Truncated);
    assert_eq!(fault(r#"{"a": NaN}"#), Fault::NotANumber);
    assert_eq!(fault(r#"{"a": -Infinity}"#), Fault::NotANumber);
    assert_eq!(fault(r#"{"a": "\ud800"}"#), Fault::LoneSurrogate);
    assert_eq!(fault(r#"{"a": true|false}"#), Fault::Placeholder);
    assert_eq!(fault(r#"{"a": 1} x"#), Fault::Trailing);
    assert!(matches!(fault(r#"{"a": 1,}"#), Fault::Syntax(_)));
    assert!(matches!(fault(r#"{"a": 01}"#), Fault::Syntax(_)));
}

#[test]
fn depth_is_limited_without_recursion() {
    let deep = "[".repeat(100_000);
    assert_eq!(fault(&deep), Fault::TooDeep);
    let just = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert!(parse(&just, Limits::of_depth(128)).is_ok());
    assert!(parse(&just, Limits::of_depth(127)).is_err());
}

#[test]
fn a_duplicate_key_is_noticed_and_the_last_wins() {
    let text = r#"{"a": {"x": [1]}, "b": {"c": 1, "c": 2}, "a": {"x": [1]}}"#;
    let parsed = read(text);
    assert!(parsed.duplicates);
    assert_eq!(parsed.value.to_string(), r#"{"a":{"x":[1]},"b":{"c":2}}"#);
    let found: Vec<_> = duplicate_keys(text, Limits::of_depth(128))
        .into_iter()
        .map(|duplicate| (duplicate.pointer, duplicate.differs))
        .collect();
    assert_eq!(found, [("/b/c".to_owned(), true), ("/a".to_owned(), false)]);
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_serde_json_writes(value in json()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let parsed = read(&text);
        prop_assert_eq!(&parsed.value, &value);
        let alone = extents(&text, Limits::of_depth(128));
        prop_assert_eq!(format!("{alone:?}"), format!("{:?}", parsed.node));
    }

    #[test]
    fn agrees_with_serde_json_on_any_text(text in r#"[\[\]{}",:0-9a-z\\ -]{0,24}"#) {
        let ours = parse(&text, Limits::of_depth(128)).ok().map(|parsed| parsed.value);
        let theirs = serde_json::from_str::<Value>(&text).ok();
        prop_assert_eq!(ours, theirs);
    }
}
