//! Any text with or without markers: no panic, and the stream gives the same report as the whole text.
#![no_main]

use counterfoil_contract::Contract;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    Contract::from_yaml(
        "contract: fuzz/block\nversion: 1\nframing: output-block\npolicy: { salvage: [\"\"] }\nfields: { ok: boolean, files: [string], n: integer, level?: none | low, s?: number, t?: string? }",
    )
    .unwrap()
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(inner) = std::str::from_utf8(bytes) else { return };
    for text in [inner.to_owned(), format!("---OUTPUT---\n{inner}\n---END---\n")] {
        let (report, examined) = CONTRACT.check_measured(&text);
        assert!(examined <= 8 * text.len() as u64 + 256);
        let mut stream = CONTRACT.stream();
        for character in text.chars() {
            stream.push(character.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(stream.finish(), report);
    }
});
