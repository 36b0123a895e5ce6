//! Every claim of the published contracts can be extracted from every example.

use counterfoil_verify::claims::makes_claim;
use std::collections::BTreeMap;

#[test]
fn every_claim_is_understood_in_every_example() {
    let registry = counterfoil_packs::registry();
    let mut made: BTreeMap<String, bool> = BTreeMap::new();
    for entry in registry.iter() {
        let contract = entry.contract().unwrap();
        for effective in contract.effective_claims() {
            let claim = format!("{} {}", contract.id(), effective.field);
            for example in &contract.definition().examples {
                // As the engine sees it: with defaults and canonical field names.
                let value = contract.check_value(example).value.unwrap();
                match makes_claim(&effective, &contract, &value) {
                    Ok(is_made) => *made.entry(claim.clone()).or_default() |= is_made,
                    Err(why) => panic!("{claim}: {why}\n{example:#}"),
                }
            }
        }
    }
    let never: Vec<_> =
        made.iter().filter(|(_, is_made)| !**is_made).map(|(claim, _)| claim).collect();
    assert!(never.is_empty(), "no example makes these claims: {never:#?}");
    assert!(made.len() > 40, "{}", made.len());
}
