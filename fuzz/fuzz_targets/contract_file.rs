//! Any contract file: loading returns a contract or an error, and a loaded contract can be used.
#![no_main]

use counterfoil_contract::render::{markdown, vendor};
use counterfoil_contract::{Contract, compat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A valid header lets the fuzzer reach the interesting parts.
    for yaml in [text.to_owned(), format!("contract: a/b\nversion: 1\n{text}")] {
        let Ok(contract) = Contract::from_yaml(&yaml) else { continue };
        let _ = contract.check("{\"a\": 1} [2] \"x\"");
        let _ = (contract.prompt(), markdown::page(&contract));
        for target in vendor::Target::ALL {
            let _ = vendor::schema(&contract, target);
        }
        let _ = compat::compare(&contract, &contract);
    }
});
