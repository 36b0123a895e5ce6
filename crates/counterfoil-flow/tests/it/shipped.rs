//! The workflows under `examples/`, with their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A workflow with the files of its folder.
pub(crate) struct Example {
    pub(crate) name: String,
    /// The workflow among `files`.
    pub(crate) workflow: String,
    pub(crate) files: BTreeMap<String, String>,
}

/// Every workflow under `examples/`, by name.
pub(crate) fn examples() -> Vec<Example> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut examples = Vec::new();
    for folder in entries(&root).into_iter().filter(|path| path.is_dir()) {
        let mut files = BTreeMap::new();
        gather(&folder, &folder, &mut files);
        for (workflow, text) in &files {
            let is_workflow =
                !workflow.contains('/') && text.lines().any(|line| line.starts_with("workflow:"));
            if is_workflow {
                let name = workflow.trim_end_matches(".yaml").to_owned();
                examples.push(Example { name, workflow: workflow.clone(), files: files.clone() });
            }
        }
    }
    examples
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn gather(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for path in entries(folder) {
        if path.is_dir() {
            gather(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
}
