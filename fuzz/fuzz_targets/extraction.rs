//! Any text, any JSON framing: no panic (also when the items of its attempts are read), the stream gives the same report as the whole text, and the
//! work is linear in the length of the text.
#![no_main]

use counterfoil_contract::Contract;
use counterfoil_contract::shown::Shown;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CONTRACTS: LazyLock<Vec<Contract>> = LazyLock::new(|| {
    ["any-json", "fenced-json", "json-only"]
        .iter()
        .flat_map(|framing| {
            ["none", "syntax"].iter().map(move |repair| {
                Contract::from_yaml(&format!(
                    "contract: fuzz/x\nversion: 1\nframing: {framing}\npolicy: {{ repair: {repair}, coerce: all, salvage: [/n], unwrap: {{ keys: [result], strings: true }} }}\nfields: {{ status: a | b, n?: [any] }}"
                ))
                .unwrap()
            })
        })
        .collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        for contract in CONTRACTS.iter() {
            assert!(!contract.check_bytes(bytes).is_accepted());
        }
        return;
    };
    for contract in CONTRACTS.iter() {
        let (report, examined) = contract.check_measured(text);
        assert!(examined <= 8 * text.len() as u64 + 256, "{examined} bytes examined of {}", text.len());
        let mut stream = contract.stream();
        let size = 1 + bytes.len() % 13;
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            stream.push(&piece.iter().collect::<String>());
        }
        assert_eq!(stream.finish(), report);
        contract.salvage_text(bytes, contract.policy(), &Shown::default());
        for violation in report.violations.iter().chain(&report.warnings) {
            if let Some(span) = violation.span {
                assert!(text.get(span.start..span.end).is_some(), "{violation:?}");
            }
        }
    }
});
