//! The embedded files of the packs: workflows, prompts, templates and demos.

use counterfoil_packs::{pack, packs};
use std::path::Path;

#[test]
fn a_pack_is_found_by_its_name_and_names_its_contracts() {
    for found in packs() {
        assert_eq!(pack(found.name()).unwrap().name(), found.name());
        let prefix = format!("{}/", found.name());
        let ids: Vec<String> =
            found.definitions().into_iter().map(|definition| definition.contract).collect();
        assert!(!ids.is_empty() && ids.iter().all(|id| id.starts_with(&prefix)), "{ids:?}");
    }
    assert!(pack("none").is_none() && pack("").is_none());
}

#[test]
fn the_first_workflow_is_named_as_the_pack_and_says_what_it_is_for() {
    for pack in packs() {
        let workflows = pack.workflows();
        assert_eq!((workflows[0].name.as_str(), workflows[0].file), (pack.name(), "workflow.yaml"));
        for other in &workflows[1..] {
            assert_eq!(format!("{}/{}", pack.name(), other.file), format!("{}.yaml", other.name));
        }
        assert!(!pack.summary().is_empty(), "{}", pack.name());
    }
}

#[test]
fn the_embedded_files_match_the_pack_folder() {
    for pack in packs() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packs").join(pack.name());
        let mut found = Vec::new();
        let mut open = vec![folder.clone()];
        while let Some(at) = open.pop() {
            for entry in std::fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
                    found.push((name, std::fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        let embedded: Vec<(String, Vec<u8>)> = pack
            .files()
            .into_iter()
            .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
            .collect();
        assert_eq!(embedded, found, "{}", pack.name());
        for (path, bytes) in &found {
            assert_eq!(pack.file(path).unwrap(), bytes);
        }
        assert!(pack.file("prompts").is_none() && pack.text("no/such.md").is_none());
    }
}
