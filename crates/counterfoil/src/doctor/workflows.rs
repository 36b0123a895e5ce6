//! The project's own workflows, as far as they are found: those whose checks are compared with the
//! checks that the project has.

use crate::input;
use crate::source::Source;
use counterfoil_contract::load::top_keys;
use counterfoil_flow::MissingCheck;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How many folders deep workflows are looked for.
const MAX_DEPTH: usize = 2;
/// The most files and folders that are looked at.
const MAX_ENTRIES: usize = 2000;
/// The most workflows that are read.
const MAX_WORKFLOWS: usize = 50;
/// The most bytes of a file that are read to know whether it is a workflow.
const MAX_BYTES: u64 = 1 << 20;
/// Folders that hold what others wrote or what was built.
const OTHERS: [&str; 3] = ["node_modules", "target", "vendor"];

/// A workflow of the project that relies on checks which are not configured.
#[derive(Clone, Debug)]
pub(crate) struct LackingWorkflow {
    /// Its path from the folder of the project.
    pub(crate) file: PathBuf,
    pub(crate) missing: Vec<MissingCheck>,
}

/// The workflows in a folder that rely on checks other than these. One that is not valid is left out:
/// `workflow check` says what is wrong with it.
pub(crate) fn lacking(folder: &Path, configured: &BTreeSet<&str>) -> Vec<LackingWorkflow> {
    let Ok(registry) = input::registry(&[]) else { return Vec::new() };
    let found = files(folder).into_iter().take(MAX_WORKFLOWS).filter_map(|path| {
        let workflow = Source::File(path.clone()).check(&registry).ok()?.ok()?;
        let missing = workflow.missing_checks(configured.iter().copied());
        let file = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        (!missing.is_empty()).then_some(LackingWorkflow { file, missing })
    });
    found.collect()
}

/// The files of workflows in a folder and in the folders in it, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut room = MAX_ENTRIES;
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Some(rest) = room.checked_sub(1) else { return sorted(files) };
            room = rest;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // A link may lead anywhere.
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() && depth < MAX_DEPTH && !OTHERS.contains(&name.as_ref()) {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && is_workflow(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    sorted(files)
}

fn sorted(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.sort();
    files
}

fn is_workflow(path: &Path) -> bool {
    let is_yaml =
        path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml {
        return false;
    }
    let mut text = String::new();
    let read = std::fs::File::open(path).map(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    let keys = top_keys(&text);
    matches!(read, Ok(Ok(_))) && keys.contains(&"workflow") && keys.contains(&"states")
}
