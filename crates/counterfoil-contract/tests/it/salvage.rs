//! What is read of the attempts of a text that is not accepted: the work is linear, whatever is
//! repeated.

use counterfoil_contract::Contract;
use proptest::prelude::*;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Contract>> = LazyLock::new(|| {
    let contract = |framing: &str| {
        Contract::from_yaml(&format!(
            "contract: law/items\nversion: 1\nframing: {framing}\n\
             policy: {{ salvage: [/items], unknown_fields: refuse }}\n\
             fields: {{ items: [{{ id: string, level: low | high }}], n?: any }}"
        ))
        .unwrap()
    };
    ["any-json", "fenced-json", "json-only", "output-block"].map(contract).into()
});

/// Attempts, whole, broken and cut off, that are slow to read if one is read again for another.
const PIECES: [&str; 16] = [
    "{\"items\": [{\"id\": \"a\", \"level\": \"low\"}]}\n",
    "{\"items\": [{\"id\": \"a\", \"level\": \"low\"}",
    "{\"items\": [",
    "{\"items\": [{\"id\": ",
    "{\"items\": \"",
    "{'items': ['",
    "{\"items\": [{\"id\": \"a\" \"level\" }",
    "{\"items\": {\"items\": ",
    "[{\"items\": [",
    "{\"items\": [] // ",
    "{\"items\": [] /* ",
    "{items: [x, ",
    "> {\"items\": [\n",
    "```json\n{\"items\": [\n",
    "---OUTPUT---\nitems: [",
    "---OUTPUT---\nitems: []\n",
];

/// Asserts that the work for four times the text is not much more than four times the work.
fn assert_linear(contract: &Contract, piece: &str) -> Result<(), String> {
    let work = |size: usize| {
        let text = piece.repeat(size.div_ceil(piece.len()));
        contract.salvage_measured(&text).1
    };
    let (short, long) = (work(10_000), work(40_000));
    if long <= 5 * short + 1000 && long <= 40 * 40_000 {
        return Ok(());
    }
    Err(format!("{:?} {piece:?}: {short} and {long}", contract.framing()))
}

#[test]
fn attempts_are_read_in_linear_work() {
    let wrong: Vec<String> = ALL
        .iter()
        .flat_map(|contract| PIECES.map(|piece| assert_linear(contract, piece)))
        .filter_map(Result::err)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn mixed_attempts_are_read_in_linear_work(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..4),
        noise in r#"[\[\]{}"',:<>/#`a1\\ \n]{0,6}"#,
    ) {
        let piece = format!("{}{noise}", pieces.concat());
        for contract in ALL.iter() {
            prop_assert_eq!(assert_linear(contract, &piece), Ok(()));
        }
    }
}
