//! Laws that hold for every text: reading in pieces changes nothing, spans are the offending
//! values, repairs can be replayed, strict text is never repaired, and the work is linear.
use counterfoil_contract::edit::{Edit, RepairKind, apply as apply_edits};
use counterfoil_contract::policy::{RepairPolicy, Truncated};
use counterfoil_contract::render::prompt::frame_result;
use counterfoil_contract::{Contract, Framing, Progress, Report, Status};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

fn contract(framing: &str, repair: &str) -> Contract {
    Contract::from_yaml(&format!(
        "contract: law/any\nversion: 1\nframing: {framing}\npolicy: {{ repair: {repair} }}\nfields: {{ status: a | b, n?: any }}"
    ))
    .unwrap()
}

static ALL: LazyLock<Vec<Contract>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for framing in ["any-json", "fenced-json", "json-only", "output-block"] {
        for repair in ["none", "syntax", "syntax, truncated: accept"] {
            all.push(contract(framing, repair));
        }
    }
    all
});

static LISTS: LazyLock<Contract> = LazyLock::new(|| {
    Contract::from_yaml("contract: law/lists\nversion: 1\nframing: output-block\nfields: { status: a | b, files: [string] }").unwrap()
});

/// Pieces that make texts interesting.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{"status": "a"}"#.to_owned()),
        Just(r#"{"status": "b", "n": [1, {"x": "y"}]}"#.to_owned()),
        Just("{'status': 'a',}".to_owned()),
        Just("{\"status\": \"a\", \"n\": \"cut".to_owned()),
        Just("{\"status\": \"A\"}".to_owned()),
        Just("```json\n".to_owned()),
        Just("\n```\n".to_owned()),
        Just("````md\n".to_owned()),
        Just("\n> ".to_owned()),
        Just("- ".to_owned()),
        Just("\n<think>\n".to_owned()),
        Just("\n</think>\n".to_owned()),
        Just("\n---OUTPUT---\n".to_owned()),
        Just("\n---END---\n".to_owned()),
        Just("---OUTPUT---".to_owned()),
        Just("---END---".to_owned()),
        Just("status: a\n".to_owned()),
        Just("n: [x, y]\n".to_owned()),
        Just("{status: [".to_owned()),
        Just("<path>".to_owned()),
        Just("\"a|b\"".to_owned()),
        Just(", {'n': ".to_owned()),
        Just("\u{1b}[32m".to_owned()),
        r#"[\[\]{}"',:<>/#`~a-c1\\ \n]{0,12}"#,
        "[a-zä ]{0,20}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

/// An attempt that no framing accepts.
fn invalid_attempt() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{"status": "zzz"}"#.to_owned()),
        Just(r#"{"STATUS": "a"}"#.to_owned()),
        Just(r#"{"n": 1}"#.to_owned()),
        Just(r#"{"status": "zzz", "x": 1, "y": {"status": "a"}}"#.to_owned()),
        Just(r#"{"result": {"status": "a"}}"#.to_owned()),
        Just(r#"[{"status": "a"}]"#.to_owned()),
        Just("{\"status\": \"a\", oops".to_owned()),
        Just("{\"status\": \"a\", \"n\": [1".to_owned()),
        Just("{\"status\": \"a\", \"n\": \"cut\n\n".to_owned()),
        Just("```json\n{\"status\": \"zzz\"}\n```\n".to_owned()),
        Just("> {\n>   \"status\": \"zzz\"\n> }\n".to_owned()),
        Just("---OUTPUT---\nstatus: zzz\n---END---\n".to_owned()),
        Just("---OUTPUT---\nstatus: a\n".to_owned()),
    ]
}

/// Text that is not about the contract of these laws.
fn unrelated() -> impl Strategy<Value = String> {
    let word = "[a-mo-rt-z]{1,8}";
    let json = prop_oneof![
        (word, word).prop_map(|(key, value)| json!({key: value, "level": 3}).to_string()),
        (word, word)
            .prop_map(|(key, value)| format!("{:#}", json!({key: {"inner": [value, 1, null]}}))),
        prop::collection::vec(0..9, 0..4).prop_map(|items| json!(items).to_string()),
    ];
    prop_oneof![
        json.clone(),
        json.prop_map(|json| format!("```\n{json}\n```\n")),
        "[a-zä ,.]{0,40}",
        Just("fn main() { let x = vec![1, 2]; }".to_owned()),
        Just("see [1] and {that}".to_owned()),
        Just("... and so on".to_owned()),
    ]
}

/// A contract that closes what is cut off takes what follows for a part of it.
fn rejects_truncated(contract: &Contract) -> bool {
    contract.policy().truncated == Truncated::Reject
}

fn answer(contract: &Contract) -> Option<&'static str> {
    match contract.framing() {
        Framing::AnyJson => Some("{\"status\": \"a\"}"),
        Framing::FencedJson => Some("```json\n{\"status\": \"a\"}\n```"),
        Framing::OutputBlock => Some("---OUTPUT---\nstatus: a\n---END---\n"),
        Framing::JsonOnly => None,
    }
}

/// An object that needs repair, in one way or several.
fn repairable() -> impl Strategy<Value = String> {
    let word = "[a-zäޞ \"'\n\\\\]{0,16}";
    (word, prop_oneof![Just("'"), Just("\"")], prop_oneof![Just("True"), Just("None"), Just("1")], any::<[bool; 5]>()).prop_map(
        |(word, quote, literal, [trailing, comment, bare, open, comma])| {
            let key = if bare { "n".to_owned() } else { format!("{quote}n{quote}") };
            let separator = if comma { "\n" } else { ", " };
            format!(
                "{{{}{quote}status{quote}: {quote}a{quote}{separator}{key}: [{literal}, {quote}{word}{quote}{}]{}{}",
                if comment { "// note\n" } else { "" },
                if trailing { "," } else { "" },
                if trailing { "," } else { "" },
                if open { "" } else { "}" },
            )
        },
    )
}

fn in_pieces(contract: &Contract, text: &str, size: usize) -> Report {
    let mut stream = contract.stream();
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(size) {
        stream.push(&piece.iter().collect::<String>());
    }
    stream.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Many beginnings of a value before a long stretch of something else.
    #[test]
    fn what_follows_many_beginnings_is_read_in_linear_work(
        head in r#"[\[{"'a,: #]{1,6}"#,
        between in r#"[\[{}\]"',: \n]{0,4}"#,
        tail in prop_oneof![r#"[\[{}\]"',:/*#1a \n]{1,6}"#, Just("/*c*/".to_owned()), Just("\u{1b}[0m".to_owned())],
        end in r#"[;}\]"]{0,1}"#,
    ) {
        let text = format!("{}{between}{}{end}", head.repeat(400), tail.repeat(400));
        for contract in ALL.iter() {
            let (_, examined) = contract.check_measured(&text);
            prop_assert!(
                examined <= 8 * text.len() as u64 + 256,
                "{:?}: {examined} of {}: {head:?} {between:?} {tail:?} {end:?}",
                contract.framing(),
                text.len()
            );
        }
    }

    /// Whatever is repeated, the work stays linear: a place that is reached from many beginnings is
    /// looked at once.
    #[test]
    fn repetition_is_read_in_linear_work(piece in prop_oneof![
        r#"[\[\]{}"',:<>/*#`~a1\\ \n]{1,8}"#,
        text().prop_filter("a piece", |text| !text.is_empty()),
    ]) {
        let text = piece.repeat(4096_usize.div_ceil(piece.len()));
        for contract in ALL.iter() {
            let (_, examined) = contract.check_measured(&text);
            prop_assert!(
                examined <= 8 * text.len() as u64 + 256,
                "{:?}: {examined} of {}",
                contract.framing(),
                text.len()
            );
        }
    }
}

/// Many cases, and room for the texts that a law is not about.
fn config() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.max(2000);
    ProptestConfig {
        max_global_rejects: cases.saturating_mul(100),
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reading_in_pieces_gives_the_answer_of_the_whole(text in text(), size in 1usize..9) {
        for contract in ALL.iter() {
            let whole = contract.check(&text);
            prop_assert_eq!(in_pieces(contract, &text, size), whole, "{:?} {:?}", contract.framing(), text);
        }
    }

    /// Every place that a report names is a part of the text.
    #[test]
    fn places_are_between_characters(text in text(), repairable in repairable()) {
        for text in [text, repairable] {
            for contract in ALL.iter() {
                let report = contract.check(&text);
                let violations = report.violations.iter().chain(&report.warnings);
                let spans = violations.filter_map(|violation| violation.span);
                for span in spans.chain(report.provenance.span).chain(report.provenance.passed_over) {
                    prop_assert!(text.get(span.start..span.end).is_some(), "{:?} in {:?}", span, text);
                }
            }
        }
    }

    /// The last attempt decides: whatever the text says before, an invalid attempt at its end
    /// rejects it.
    #[test]
    fn an_invalid_attempt_after_any_text_rejects_it(text in text(), attempt in invalid_attempt()) {
        let text = format!("{text}\n\n{attempt}");
        for contract in ALL.iter().filter(|contract| rejects_truncated(contract)) {
            let report = contract.check(&text);
            prop_assert!(!report.is_accepted(), "{:?} {:?} {:#?}", contract.framing(), text, report);
        }
    }

    /// JSON that is not about the contract, and prose, change nothing after an accepted result.
    #[test]
    fn unrelated_text_after_an_accepted_one_changes_nothing(text in text(), unrelated in unrelated()) {
        let longer = format!("{text}\n\n{unrelated}");
        // Where syntax is repaired, a string that was never closed reaches over what follows.
        let free = |contract: &&Contract| contract.framing() != Framing::JsonOnly && contract.policy().repair == RepairPolicy::None;
        for contract in ALL.iter().filter(free) {
            let (before, after) = (contract.check(&text), contract.check(&longer));
            // Text after a fence that is still open belongs to the fence.
            let rest = before.provenance.span.map_or("", |span| &text[span.end..]);
            let open = contract.framing() == Framing::FencedJson && !rest.contains(['`', '~']);
            if !before.is_accepted() || open {
                continue;
            }
            prop_assert_eq!(&before.value, &after.value, "{:?} {:?} {:#?}", contract.framing(), longer, after);
        }
    }

    #[test]
    fn unrelated_text_around_an_answer_changes_nothing(before in unrelated(), after in unrelated()) {
        for (contract, answer) in ALL.iter().filter_map(|contract| Some((contract, answer(contract)?))) {
            let text = format!("{before}\n\n{answer}\n\n{after}");
            let report = contract.check(&text);
            prop_assert_eq!(report.value, Some(json!({"status": "a"})), "{:?} {:?}", contract.framing(), text);
        }
    }

    #[test]
    fn work_is_linear(text in text()) {
        for contract in ALL.iter() {
            let (_, examined) = contract.check_measured(&text);
            prop_assert!(examined <= 8 * text.len() as u64 + 256, "{} bytes examined of {}", examined, text.len());
        }
    }

    #[test]
    fn recorded_repairs_can_be_replayed(before in "[a-z .\n]{0,20}", repairable in repairable(), after in "[a-z .\n]{0,20}") {
        // With repairs, and accepting what is cut off.
        let contract = &ALL[2];
        let text = format!("{before}\n{repairable}\n{after}");
        let report = contract.check(&text);
        prop_assume!(report.status == Status::Accepted && !report.provenance.repairs.is_empty());
        let span = report.provenance.span.unwrap();
        let raw = &text[span.start..span.end];
        prop_assert!(serde_json::from_str::<Value>(raw).is_err(), "a strict parser reads {raw:?}: no repair was needed");
        let edits: Vec<Edit> = report
            .provenance
            .repairs
            .iter()
            .map(|repair| Edit { kind: repair.kind, start: repair.span.start, end: repair.span.end, replacement: repair.replacement.clone() })
            .collect();
        let repaired = apply_edits(raw, span.start, &edits);
        // Quote markers are framing, not repair: blank them as the framing does.
        let repaired = repaired.lines().map(|line| line.trim_start_matches(['>', ' '])).collect::<Vec<_>>().join("\n");
        let value: Value = serde_json::from_str(&repaired).map_err(|error| TestCaseError::fail(format!("{repaired:?}: {error}")))?;
        prop_assert_eq!(Some(value), report.value);
    }

    #[test]
    fn strict_text_is_never_repaired(value in "[a-z \"'/,{}\\[\\]]{0,20}") {
        let text = format!("so: {}", json!({"status": "a", "n": value}));
        let report = ALL[1].check(&text);
        prop_assert_eq!(report.status, Status::Accepted);
        prop_assert!(report.provenance.repairs.is_empty());
    }

    #[test]
    fn a_list_in_a_block_comes_back_as_it_was_written(items in prop::collection::vec(r#"[a-c ,"'\[\]():\{]{1,8}"#, 0..4)) {
        let value = json!({"status": "a", "files": items});
        let text = frame_result(&LISTS, &value);
        let report = LISTS.check(&text);
        prop_assert_eq!(report.value, Some(value), "{}", text);
    }

    /// In whatever form a list is written, it is read as it was meant or refused.
    #[test]
    fn a_list_in_a_block_is_never_shorter(
        items in prop::collection::vec(r"[a-c():][a-c():\[\] ]{0,4}[a-c():\[\]]", 1..4),
        form in 0usize..9,
        behind in prop_oneof![Just(""), Just("\n"), Just("\nnote: x"), Just("\n]"), Just(","), Just(" and so on")],
    ) {
        let list = match form {
            0 => format!("[{}]", items.join(", ")),
            1 => format!("\n- {}", items.join("\n- ")),
            2 => format!("[\n  {}\n]", items.join(",\n  ")),
            3 => items.join("\n"),
            4 => format!("{:#}", json!(items)),
            5 => items.join(",\n"),
            6 => format!("[{}]\n- x", items.join(", ")),
            7 => format!("['{}']", items.join("', '")),
            _ => format!("none\n\n* {}", items.join("\n* ")),
        };
        let text = format!("---OUTPUT---\nfiles: {list}{behind}\nstatus: a\n---END---\n");
        let report = LISTS.check(&text);
        if let Some(value) = report.value {
            // One value without brackets is a list of one.
            let whole = json!([format!("{list}{behind}").trim()]);
            prop_assert!(value["files"] == json!(items) || value["files"] == whole, "{value} from {text}");
        }
    }

    /// Spans come from parsing, not from searching: the offending value stands elsewhere in the text too.
    #[test]
    fn the_slice_at_a_span_is_the_offending_value(
        wrong in prop_oneof![Just(json!(true)), Just(json!(17)), Just(json!("zzz")), Just(json!([1])), Just(json!(null))],
        before in 0usize..4,
        position in 0usize..5,
        pretty in any::<bool>(),
    ) {
        let contract = Contract::from_yaml("contract: law/spans\nversion: 1\nframing: any-json\nfields: { items: [{ level: low | high, note?: any }] }").unwrap();
        let mut items: Vec<Value> = (0..5).map(|_| json!({"note": wrong.clone(), "level": "low"})).collect();
        items[position]["level"] = wrong.clone();
        let object = json!({"items": items});
        let json = if pretty { format!("{object:#}") } else { object.to_string() };
        let text = format!("{}Result ä: {json} {wrong}", format!("note {wrong} ").repeat(before));
        let report = contract.check(&text);
        prop_assert_eq!(report.violations.len(), 1);
        let violation = &report.violations[0];
        prop_assert_eq!(&violation.pointer, &format!("/items/{position}/level"));
        let span = violation.span.unwrap();
        let slice: Value = serde_json::from_str(&text[span.start..span.end]).unwrap();
        prop_assert_eq!(slice, wrong);
        // It is the one behind the right key, in the right item.
        prop_assert_eq!(text[..span.start].matches("\"level\"").count(), position + 1);
        prop_assert!(text[..span.start].trim_end().ends_with("\"level\":"));
    }
}

/// Texts made to be slow, each `size` bytes long or a little more.
fn hostile(size: usize) -> Vec<(&'static str, String)> {
    let fill = |piece: &str| piece.repeat(size / piece.len());
    vec![
        ("only braces", fill("{")),
        ("only brackets", fill("[")),
        ("nested members", fill("[{\"a\":")),
        ("unmatched braces and quotes in prose", fill("he said \"use { and \" then [ 'x }\n")),
        ("bad fences", fill("```json\n{\"a\": \n```\n")),
        ("fences that never close", fill("```json\n")),
        ("output markers", fill("---OUTPUT---\n")),
        ("output markers and ends", fill("---OUTPUT---\na: b\n---END---\n")),
        ("quotes", fill("\"")),
        ("opened quotes", fill("{\"")),
        ("opened members", fill("{\"a\": \"x ")),
        ("single quotes", fill("{'a': 'x ")),
        ("comments", fill("{/* ")),
        ("comments behind strings", fill(" #[\"")),
        ("block comments behind strings", fill("[\"a\"/*")),
        ("backslashes", fill("{\"\\")),
        ("empty objects", fill("{}")),
        ("unclosed values in fences", fill("{\"a\": \"x\n```\n")),
        ("thinking", fill("<think>\n")),
        ("deep nesting", format!("{}{}", "[".repeat(size / 2), "]".repeat(size / 2))),
        ("one long line of prose", fill("word ")),
        ("dashes", fill("-")),
        ("quote markers", fill("> {\n")),
        ("bare words", fill("{a: b ")),
    ]
}

#[test]
fn hostile_texts_are_read_in_linear_work_and_hide_no_answer() {
    for contract in ALL.iter() {
        let answer = match contract.framing().name() {
            "any-json" => "\n{\"status\": \"a\"}\n",
            "fenced-json" => "\n\n~~~json\n{\"status\": \"a\"}\n~~~\n",
            "output-block" => "\n---OUTPUT---\nstatus: a\n---END---\n",
            _ => "",
        };
        for (name, prefix) in hostile(200_000) {
            let text = format!("{prefix}{answer}");
            let (report, examined) = contract.check_measured(&text);
            assert!(
                examined <= 8 * text.len() as u64,
                "{name}, {:?}: {examined} of {}",
                contract.framing(),
                text.len()
            );
            let hidden = name == "thinking"
                || (contract.framing().name() == "fenced-json" && name.contains("fences"));
            if !answer.is_empty() && !hidden {
                assert!(
                    report.is_accepted(),
                    "{name}, {:?}, {:?}: {:#?}",
                    contract.framing(),
                    contract.policy().repair,
                    report.violations.first()
                );
            }
        }
    }
}

#[test]
fn a_stream_holds_little_and_knows_early() {
    let contract = Contract::from_yaml("contract: law/stream\nversion: 1\nframing: any-json\npolicy: { repair: syntax, max_bytes: 300000000 }\nfields: { status: a | b }").unwrap();
    let mut stream = contract.stream();
    let prose =
        "The agent goes on and on, it's \"fine\" [really] {or not}, see a < b.\n".repeat(1000);
    let mut most = 0;
    let mut length = 0;
    while length < 100_000_000 {
        assert_eq!(stream.push(&prose), Progress::Searching);
        length += prose.len();
        most = most.max(stream.buffered_bytes());
    }
    assert!(most < 1_000_000, "{most} bytes held of {length}");
    assert_eq!(stream.push("{\"status\": "), Progress::Searching);
    assert_eq!(stream.push("\"a\"}"), Progress::Complete, "the answer is complete before the end");
    assert_eq!(stream.push(" That was it."), Progress::Complete);
    let report = stream.finish();
    assert_eq!(report.value, Some(json!({"status": "a"})));
    assert_eq!(report.provenance.span.unwrap().start, length);
}

#[test]
fn every_framing_knows_early() {
    for (framing, head, tail) in [
        ("any-json", "x {\"status\": \"a\"", "}"),
        ("json-only", "{\"status\": \"a\"", "}"),
        ("fenced-json", "```json\n{\"status\": \"a\"}\n", "```\n"),
        ("output-block", "---OUTPUT---\nstatus: a\n", "---END---\n"),
    ] {
        let contract = contract(framing, "none");
        let mut stream = contract.stream();
        assert_eq!(stream.push(head), Progress::Searching, "{framing}");
        assert_eq!(stream.push(tail), Progress::Complete, "{framing}");
    }
}

#[test]
fn a_long_block_warns() {
    let contract = Contract::from_yaml(
        "contract: law/long\nversion: 1\nframing: output-block\nfields: { note: string }",
    )
    .unwrap();
    let codes = |length: usize| {
        let report =
            contract.check(&format!("---OUTPUT---\nnote: {}\n---END---\n", "x".repeat(length)));
        report.warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>()
    };
    let key = "note: ".len();
    assert_eq!(codes(1000 - key), Vec::<&str>::new());
    assert_eq!(codes(1001 - key), ["W0104"]);
}

#[test]
fn every_kind_of_repair_has_a_name_of_its_own() {
    let names: std::collections::HashSet<&str> =
        [RepairKind::Comment, RepairKind::TrailingComma, RepairKind::BareKey]
            .map(RepairKind::name)
            .into();
    assert_eq!(names.len(), 3);
}
