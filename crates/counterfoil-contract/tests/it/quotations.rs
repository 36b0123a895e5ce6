//! Laws of quotations: repeating what was shown neither answers nor disturbs an answer. And the
//! rules for what may be shown.
use counterfoil_contract::compat::compare;
use counterfoil_contract::shown::Shown;
use counterfoil_contract::{Code, Contract, Definition, Framing, Status};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

fn example() -> Value {
    json!({
        "ok": false,
        "summary": "two of the tests fail",
        "checks": [{"name": "unit tests", "note": "they never ran at all"}, {"name": "lint", "note": "no finding, no fix"}]
    })
}

fn contract(framing: Framing, repair: bool) -> Contract {
    let schema = json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "summary": {"type": "string"},
            "checks": {"type": "array", "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "note": {"type": "string"}},
                "required": ["name"]
            }}
        },
        "required": ["ok", "summary"]
    });
    let definition = Definition::new("law/quoted", 1, framing, schema).example(example());
    let definition = if repair { definition.repairs_syntax() } else { definition };
    Contract::compile(definition).unwrap()
}

static ALL: LazyLock<Vec<(Contract, Shown)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for framing in [Framing::AnyJson, Framing::FencedJson] {
        for repair in [false, true] {
            let contract = contract(framing, repair);
            let shown = Shown::with_prompts(&contract, &["Review the change."]);
            all.push((contract, shown));
        }
    }
    all
});

/// A layout of a quotation.
#[derive(Clone, Debug)]
struct Layout {
    quotes: usize,
    indent: usize,
    windows: bool,
    fence: bool,
    compact: bool,
}

fn layout() -> impl Strategy<Value = Layout> {
    (0usize..3, 0usize..3, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(quotes, indent, windows, fence, compact)| Layout {
            quotes,
            indent,
            windows,
            fence,
            compact,
        },
    )
}

impl Layout {
    fn write(&self, value: &Value) -> String {
        if self.compact { value.to_string() } else { format!("{value:#}") }
    }

    fn apply(&self, text: &str) -> String {
        let text = if self.fence { format!("```json\n{text}\n```") } else { text.to_owned() };
        let end = if self.windows { "\r\n" } else { "\n" };
        let prefix = format!("{}{}", "> ".repeat(self.quotes), " ".repeat(self.indent));
        text.lines().map(|line| format!("{prefix}{line}{end}")).collect()
    }
}

/// What can be quoted: the example, an object or a list of it, its keys in another order.
fn part() -> impl Strategy<Value = Value> {
    let example = example();
    let mut turned = serde_json::Map::new();
    for (key, value) in example.as_object().unwrap().iter().rev() {
        turned.insert(key.clone(), value.clone());
    }
    let parts = vec![
        example.clone(),
        Value::Object(turned),
        example["checks"].clone(),
        example["checks"][0].clone(),
        example["checks"][1].clone(),
    ];
    prop::sample::select(parts)
}

fn answer() -> impl Strategy<Value = Value> {
    (any::<bool>(), "[a-z]{1,12}( [a-z]{1,8}){0,3}", prop::collection::vec("[a-z]{1,8}", 0..3))
        .prop_map(|(ok, summary, names)| {
            let checks: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"ok": ok, "summary": summary, "checks": checks})
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_text_that_only_quotes_has_no_result(part in part(), layout in layout(), before in "[a-z ]{0,20}") {
        for (contract, shown) in ALL.iter() {
            let text = format!("{before}\n{}", layout.apply(&layout.write(&part)));
            let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            prop_assert_eq!(report.status, Status::Absent, "{:?} {:?}", text, report);
        }
    }

    #[test]
    fn a_quotation_after_an_answer_changes_nothing(answer in answer(), part in part(), layout in layout()) {
        prop_assume!(answer != example());
        for (contract, shown) in ALL.iter() {
            let text = format!("Done.\n```json\n{answer}\n```\n");
            let alone = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            prop_assert_eq!(alone.value.as_ref(), Some(&answer));
            let text = format!("{text}\nYou asked:\n\n{}", layout.apply(&layout.write(&part)));
            let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            prop_assert_eq!(&report, &alone, "{:?}", text);
        }
    }

    #[test]
    fn a_part_that_is_cut_off_is_a_quotation_too(answer in answer(), cut in 0usize..1000, layout in layout()) {
        let written = layout.write(&example());
        // From the end of the first text of its own on.
        let least = written.find("fail\"").unwrap() + 5;
        let cut = least + cut % (written.len() - least);
        let layout = Layout { fence: false, ..layout };
        for (contract, shown) in ALL.iter().take(2) {
            let text = format!("Done.\n```json\n{answer}\n```\n");
            let alone = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            let text = format!("{text}\nYou asked:\n\n{}", layout.apply(&written[..cut]));
            let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            prop_assert_eq!(&report, &alone, "{:?}", text);
            let text = layout.apply(&written[..cut]);
            let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            prop_assert_eq!(report.status, Status::Absent, "{:?} {:?}", text, report);
        }
    }

    #[test]
    fn our_own_prompts_are_never_an_answer(layout in layout()) {
        for (contract, shown) in ALL.iter() {
            let absent = contract.check("nothing");
            for prompt in [contract.prompt(), contract.repair(&absent)] {
                let text = Layout { fence: false, ..layout.clone() }.apply(&prompt);
                let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
                prop_assert_eq!(report.status, Status::Absent, "{:?} {:?}", text, report);
            }
        }
    }
}

#[test]
fn a_quoted_block_is_no_result() {
    let contract = Contract::from_yaml(
        "contract: law/block\nversion: 1\nframing: output-block\nfields: { approved: boolean, reason: string }\nexamples: [{ approved: false, reason: the test fails }]",
    )
    .unwrap();
    let shown = Shown::of(&contract);
    let check = |text: &str| contract.check_bytes_shown(text.as_bytes(), contract.policy(), &shown);
    // The template and the example, in full, quoted and with their lines in another order.
    let prompt = contract.prompt();
    let quoted: String = prompt.lines().map(|line| format!("> {line}\r\n")).collect();
    for text in [
        prompt.as_str(),
        &quoted,
        "---OUTPUT---\nreason: the test fails\napproved: false\n---END---\n",
        "---OUTPUT---\nreason: the test fails\napproved: false\n",
    ] {
        assert_eq!(check(text).status, Status::Absent, "{text}: {:?}", check(text));
    }
    let answer = "---OUTPUT---\napproved: true\nreason: all tests pass\n---END---\n";
    let alone = check(answer);
    assert_eq!(alone.value, Some(json!({"approved": true, "reason": "all tests pass"})));
    assert_eq!(check(&format!("{answer}\nAs you asked:\n{prompt}")), alone);
}

#[test]
fn many_quotations_cost_little() {
    let (contract, shown) = &ALL[1];
    let text = format!("{}\n", example()).repeat(2000);
    let started = std::time::Instant::now();
    assert_eq!(
        contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown).status,
        Status::Absent
    );
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_quoted_schema_is_no_result() {
    for (contract, shown) in ALL.iter() {
        let schema = contract.raw_schema();
        for quoted in [schema, &schema["properties"]] {
            let text = format!("The schema:\n```json\n{quoted:#}\n```\n");
            let report = contract.check_bytes_shown(text.as_bytes(), contract.policy(), shown);
            assert_eq!(report.status, Status::Absent, "{text}: {report:?}");
        }
    }
}

fn gate(more: &str) -> Result<Contract, Vec<Code>> {
    let yaml =
        format!("contract: acme/gate\nversion: 1\nfields: {{ ok: boolean, why?: string }}\n{more}");
    Contract::from_yaml(&yaml)
        .map_err(|error| error.problems.iter().map(|problem| problem.code).collect())
}

fn shown_by(more: &str) -> Vec<Value> {
    gate(more).unwrap().shown_examples().cloned().collect()
}

#[test]
fn a_contract_chooses_its_examples_and_never_an_approving_one_alone() {
    let examples = "examples: [{ ok: true }, { ok: false }, { ok: true, why: it works }, { ok: false, why: it fails }]";
    // Without `approves`, the most informative one.
    assert_eq!(shown_by(examples), [json!({"ok": true, "why": "it works"})]);
    // With it, one of each kind. What does not approve comes first.
    let both = [json!({"ok": false, "why": "it fails"}), json!({"ok": true, "why": "it works"})];
    assert_eq!(shown_by(&format!("approves: result.ok\n{examples}")), both);
    // As the contract says.
    assert_eq!(shown_by(&format!("shown: 1\n{examples}")), [json!({"ok": false})]);
    assert_eq!(
        shown_by(&format!("approves: result.ok\nshown: [2, 3]\n{examples}")),
        [both[0].clone(), both[1].clone()]
    );
    // Never only what approves, and never what approves and can be equal by chance.
    for refused in ["shown: 2", "shown: [0, 1]", "shown: 0"] {
        let found = gate(&format!("approves: result.ok\n{refused}\n{examples}")).err().unwrap();
        assert!(found.iter().all(|code| *code == Code::ApprovingExample), "{refused}: {found:?}");
    }
    assert_eq!(gate(&format!("shown: 9\n{examples}")).err(), Some(vec![Code::ApprovingExample]));
    assert_eq!(
        gate("approves: result.ok\nexamples: [{ ok: true, why: it works }]").err(),
        Some(vec![Code::ApprovingExample])
    );
    assert_eq!(gate("approves: result.why").err(), Some(vec![Code::BadRule]));
    assert_eq!(gate("approves: result.gone").err(), Some(vec![Code::BadRule]));
    let contract = gate(&format!("approves: result.ok\n{examples}")).unwrap();
    assert_eq!(contract.approves(&json!({"ok": true})), Some(true));
    assert_eq!(contract.approves(&json!({"ok": false})), Some(false));
}

#[test]
fn what_is_shown_is_no_change_of_the_contract() {
    let examples = "examples: [{ ok: true }, { ok: false }]";
    let old = gate(examples).unwrap();
    let mut definition =
        gate(&format!("approves: result.ok\nshown: 1\n{examples}")).unwrap().definition().clone();
    definition.version = 2;
    let new = Contract::compile(definition).unwrap();
    let comparison = compare(&old, &new);
    assert!(comparison.is_additive(), "{comparison:#?}");
}

#[test]
fn prompt_repair_prompt_and_shown_have_the_same_examples() {
    let contract = gate("approves: result.ok\nexamples: [{ ok: true, why: it works }, { ok: false, why: it fails }]").unwrap();
    let absent = contract.check("nothing");
    for text in [contract.prompt(), contract.repair(&absent)] {
        let (bad, good) = (text.find("it fails").unwrap(), text.find("it works").unwrap());
        assert!(bad < good, "{text}");
    }
    // A small gate shows only what does not approve.
    let contract = gate("approves: result.ok\nexamples: [{ ok: true }, { ok: false }]").unwrap();
    for text in [contract.prompt(), contract.repair(&contract.check("nothing"))] {
        assert!(text.contains("\"ok\": false") && !text.contains("\"ok\": true"), "{text}");
    }
}
