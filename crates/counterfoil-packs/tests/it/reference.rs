//! The generated reference pages in `docs/contracts` are up to date.
//!
//! `UPDATE=1 cargo test -p counterfoil-packs --test it reference` writes them.

use counterfoil_contract::render::markdown;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn pages() -> BTreeMap<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contracts");
    let registry = counterfoil_packs::registry();
    let mut pages = BTreeMap::new();
    let mut index = String::from(
        "# Contracts\n\nGenerated from the code: what each agent of the five packs must hand back.\nFrom the command line: `counterfoil contract list` and `counterfoil contract show ID`.\n\n| contract | framing | agent | what |\n|---|---|---|---|\n",
    );
    for entry in registry.iter() {
        let contract = entry.contract().unwrap();
        let definition = contract.definition();
        let _ = writeln!(
            index,
            "| [{id}]({id}.md) | `{}` | {} | {} |",
            contract.framing().name(),
            definition.agent.as_deref().unwrap_or(""),
            definition.summary,
            id = contract.id()
        );
        pages.insert(folder.join(format!("{}.md", contract.id())), markdown::page(&contract));
    }
    pages.insert(folder.join("README.md"), index);
    pages
}

#[test]
fn the_reference_is_current() {
    let update = std::env::var_os("UPDATE").is_some();
    for (path, page) in pages() {
        if update {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &page).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page, "{} is out of date; run with UPDATE=1", path.display());
    }
}
