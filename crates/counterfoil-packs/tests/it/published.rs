//! Published contracts are frozen as files. Every current contract must be an additive successor of
//! every published version, and equal to the published file of its own version.
//!
//! `UPDATE=1 cargo test -p counterfoil-packs --test it published` writes the files of new versions. It
//! never changes an existing file.

use counterfoil_contract::compat::compare;
use counterfoil_contract::{Contract, Definition, Policy};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("published")
}

fn published_path(definition: &Definition) -> PathBuf {
    folder().join(format!("{}@{}.yaml", definition.contract, definition.version))
}

/// A definition without what may be added to a published version: which examples agents are shown,
/// when a result approves, and whether several results are asked about. It does not change which
/// results are valid.
fn as_published(definition: &Definition, published: &Definition) -> Definition {
    let policy = Policy { several: published.policy.several, ..definition.policy.clone() };
    Definition {
        policy,
        shown: published.shown.clone(),
        approves: published.approves.clone(),
        ..definition.clone()
    }
}

#[test]
fn every_contract_is_published() {
    let all = counterfoil_packs::definitions()
        .into_iter()
        .chain(counterfoil_packs::earlier_definitions());
    for definition in all {
        let path = published_path(&definition);
        if !path.exists() && std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, definition.to_yaml().unwrap()).unwrap();
        }
        let published = Definition::from_file(&path)
            .unwrap_or_else(|error| panic!("{error}\npublish it with UPDATE=1"));
        assert_eq!(
            as_published(&definition, &published),
            published,
            "{} changed after it was published; raise its version",
            definition.contract
        );
    }
}

#[test]
fn every_contract_is_an_additive_successor_of_what_was_published() {
    let current = counterfoil_packs::registry();
    let mut compared = 0;
    for pack in std::fs::read_dir(folder()).unwrap().flatten() {
        for file in std::fs::read_dir(pack.path()).unwrap().flatten() {
            let old = Contract::from_file(&file.path()).unwrap();
            let gone =
                |error| panic!("{} was published but no longer exists: {error}", old.reference());
            let same = current.get(old.reference()).unwrap_or_else(gone);
            assert_eq!(as_published(same.definition(), old.definition()), *old.definition());
            let new = current.get(old.id()).unwrap_or_else(gone);
            let comparison = compare(&old, &new);
            assert!(comparison.is_additive(), "{comparison:#?}");
            compared += 1;
        }
    }
    assert_eq!(
        compared,
        counterfoil_packs::definitions().len() + counterfoil_packs::earlier_definitions().len(),
        "one published file for each version of each contract"
    );
}

#[test]
fn a_breaking_change_would_be_seen() {
    // Proves that the check above can fail: an incompatible field is not an additive change.
    for pack in counterfoil_packs::packs() {
        let definition = pack.definitions().remove(0);
        let old = Contract::compile(definition.clone()).unwrap();
        let mut broken = definition;
        broken.version += 1;
        broken.examples.clear();
        broken.counter_examples.clear();
        broken.rules.clear();
        broken.claims.clear();
        broken.policy.salvage.clear();
        broken.policy.rename.clear();
        broken.display = None;
        (broken.approves, broken.shown) = (None, Vec::new());
        let properties = broken.schema.as_mut().unwrap()["properties"].as_object_mut().unwrap();
        let name = properties.keys().next().unwrap().clone();
        properties[&name] = serde_json::json!({"type": "array", "items": {"const": "no agent writes this"}, "minItems": 7});
        let new = Contract::compile(broken).unwrap();
        assert!(!compare(&old, &new).is_additive(), "{} with another `{name}`", old.reference());
    }
}
