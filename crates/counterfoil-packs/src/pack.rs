//! The files of the packs: workflows, prompts, templates and demos. They are in `packs/` and are
//! embedded in the binary.

use crate::{
    build_registry, earlier, execution_loop, feature_pipeline, gated_team, review_fix,
    spec_pipeline,
};
use counterfoil_contract::{Definition, Registry};
use include_dir::{Dir, DirEntry, include_dir};
use serde::Deserialize;
use std::sync::OnceLock;

/// The file of the workflow that has the name of its pack.
const MAIN_WORKFLOW: &str = "workflow.yaml";

/// A pack: contracts, and the files of the workflows that use them.
#[derive(Debug)]
pub struct Pack {
    name: &'static str,
    definitions: fn() -> Vec<Definition>,
    /// Earlier published versions of the contracts.
    earlier_definitions: fn() -> Vec<Definition>,
    folder: &'static Dir<'static>,
    /// The contracts, once they were asked for.
    registry: OnceLock<Registry>,
}

/// A workflow of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedWorkflow {
    /// The name on the command line: `PACK`, or `PACK/NAME`.
    pub name: String,
    /// The path of the workflow file in the pack.
    pub file: &'static str,
}

/// The part of a workflow file that this crate reads.
#[derive(Deserialize)]
struct WorkflowHeader {
    #[serde(default)]
    summary: String,
}

static EXECUTION_LOOP: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/execution-loop");
static REVIEW_FIX: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/review-fix");
static FEATURE_PIPELINE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/feature-pipeline");
static SPEC_PIPELINE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/spec-pipeline");
static GATED_TEAM: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/gated-team");

static PACKS: [Pack; 5] = [
    Pack::new("execution-loop", &EXECUTION_LOOP, execution_loop::definitions, Vec::new),
    Pack::new("review-fix", &REVIEW_FIX, review_fix::definitions, earlier::review_fix),
    Pack::new(
        "feature-pipeline",
        &FEATURE_PIPELINE,
        feature_pipeline::definitions,
        earlier::feature_pipeline,
    ),
    Pack::new(
        "spec-pipeline",
        &SPEC_PIPELINE,
        spec_pipeline::definitions,
        spec_pipeline::earlier_definitions,
    ),
    Pack::new("gated-team", &GATED_TEAM, gated_team::definitions, earlier::gated_team),
];

/// All packs.
pub fn packs() -> &'static [Pack] {
    &PACKS
}

/// Finds a pack by its name.
pub fn pack(name: &str) -> Option<&'static Pack> {
    PACKS.iter().find(|pack| pack.name == name)
}

impl Pack {
    const fn new(
        name: &'static str,
        folder: &'static Dir<'static>,
        definitions: fn() -> Vec<Definition>,
        earlier_definitions: fn() -> Vec<Definition>,
    ) -> Self {
        Self { name, definitions, earlier_definitions, folder, registry: OnceLock::new() }
    }

    /// The name of the pack, which is also the namespace of its contract ids.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A one-line description: the summary of the main workflow.
    pub fn summary(&self) -> String {
        let header: Option<WorkflowHeader> =
            self.text(MAIN_WORKFLOW).and_then(|text| serde_saphyr::from_str(text).ok());
        header.map(|header| header.summary).unwrap_or_default()
    }

    /// The definitions of the pack's contracts.
    pub fn definitions(&self) -> Vec<Definition> {
        (self.definitions)()
    }

    /// Earlier published versions of the pack's contracts.
    pub fn earlier_definitions(&self) -> Vec<Definition> {
        (self.earlier_definitions)()
    }

    /// The contracts of the pack, with their earlier versions. They are built by the first call.
    pub fn registry(&self) -> &Registry {
        self.registry.get_or_init(|| build_registry(self.earlier_definitions(), self.definitions()))
    }

    /// The workflows of the pack: first the one with the name of the pack, then the others by name.
    pub fn workflows(&self) -> Vec<PackedWorkflow> {
        let mut found: Vec<PackedWorkflow> = self
            .folder
            .files()
            .filter_map(|file| file.path().to_str())
            .filter_map(|file| Some((file.strip_suffix(".yaml")?, file)))
            .map(|(stem, file)| PackedWorkflow { name: self.workflow_name(stem), file })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn workflow_name(&self, stem: &str) -> String {
        if MAIN_WORKFLOW.strip_suffix(".yaml") == Some(stem) {
            self.name.to_owned()
        } else {
            format!("{}/{stem}", self.name)
        }
    }

    /// The bytes of a file. The path is relative to the pack and uses `/`.
    pub fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.folder.get_file(path).map(include_dir::File::contents)
    }

    /// The text of a file, if it exists and is UTF-8.
    pub fn text(&self, path: &str) -> Option<&'static str> {
        self.folder.get_file(path).and_then(include_dir::File::contents_utf8)
    }

    /// All files with their bytes, sorted by path.
    pub fn files(&self) -> Vec<(&'static str, &'static [u8])> {
        let mut files = Vec::new();
        let mut pending = vec![self.folder];
        while let Some(folder) = pending.pop() {
            for entry in folder.entries() {
                match entry {
                    DirEntry::Dir(folder) => pending.push(folder),
                    DirEntry::File(file) => {
                        files.extend(file.path().to_str().map(|path| (path, file.contents())));
                    }
                }
            }
        }
        files.sort_unstable_by_key(|(path, _)| *path);
        files
    }
}
