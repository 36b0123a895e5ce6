//! The packs as folders of files: workflows, prompts, templates, a demo. They stand in `packs/` and
//! are part of the binary.

use crate::{execution_loop, feature_pipeline, gated_team, review_fix, spec_pipeline};
use counterfoil_contract::Definition;
use include_dir::{Dir, DirEntry, include_dir};
use serde::Deserialize;

/// The file that holds the workflow which is named as its pack.
const MAIN: &str = "workflow.yaml";

/// A pack: contracts, and the files of workflows that use them.
#[derive(Debug)]
pub struct Pack {
    name: &'static str,
    definitions: fn() -> Vec<Definition>,
    folder: &'static Dir<'static>,
}

/// A workflow of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedWorkflow {
    /// What it is called on the command line: `PACK`, or `PACK/NAME`.
    pub name: String,
    /// Its file in the pack.
    pub file: &'static str,
}

/// The part of a workflow file that is read here; the rest is for whoever runs it.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    summary: String,
}

static EXECUTION_LOOP: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/execution-loop");
static REVIEW_FIX: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/review-fix");
static FEATURE_PIPELINE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/feature-pipeline");
static SPEC_PIPELINE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/spec-pipeline");
static GATED_TEAM: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/packs/gated-team");

static PACKS: [Pack; 5] = [
    Pack {
        name: "execution-loop",
        definitions: execution_loop::definitions,
        folder: &EXECUTION_LOOP,
    },
    Pack { name: "review-fix", definitions: review_fix::definitions, folder: &REVIEW_FIX },
    Pack {
        name: "feature-pipeline",
        definitions: feature_pipeline::definitions,
        folder: &FEATURE_PIPELINE,
    },
    Pack { name: "spec-pipeline", definitions: spec_pipeline::definitions, folder: &SPEC_PIPELINE },
    Pack { name: "gated-team", definitions: gated_team::definitions, folder: &GATED_TEAM },
];

/// Every pack.
pub fn packs() -> &'static [Pack] {
    &PACKS
}

/// A pack by its name.
pub fn pack(name: &str) -> Option<&'static Pack> {
    PACKS.iter().find(|pack| pack.name == name)
}

impl Pack {
    /// Its name, which is also the first part of its contracts' ids.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is for, in a line: the summary of its main workflow.
    pub fn summary(&self) -> String {
        let head: Option<Head> = self.text(MAIN).and_then(|text| serde_saphyr::from_str(text).ok());
        head.map(|head| head.summary).unwrap_or_default()
    }

    /// Its contracts.
    pub fn definitions(&self) -> Vec<Definition> {
        (self.definitions)()
    }

    /// Its workflows: the one that is named as the pack, then the others by name.
    pub fn workflows(&self) -> Vec<PackedWorkflow> {
        let mut found: Vec<PackedWorkflow> = self
            .folder
            .files()
            .filter_map(|file| file.path().to_str())
            .filter_map(|file| Some((file.strip_suffix(".yaml")?, file)))
            .map(|(stem, file)| PackedWorkflow { name: self.called(stem), file })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn called(&self, stem: &str) -> String {
        if MAIN.strip_suffix(".yaml") == Some(stem) {
            self.name.to_owned()
        } else {
            format!("{}/{stem}", self.name)
        }
    }

    /// The bytes of a file, by its path in the pack with `/` between the parts.
    pub fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.folder.get_file(path).map(include_dir::File::contents)
    }

    /// The text of a file, if it is one.
    pub fn text(&self, path: &str) -> Option<&'static str> {
        self.folder.get_file(path).and_then(include_dir::File::contents_utf8)
    }

    /// Every file with its bytes, by path.
    pub fn files(&self) -> Vec<(&'static str, &'static [u8])> {
        let mut files = Vec::new();
        let mut open = vec![self.folder];
        while let Some(folder) = open.pop() {
            for entry in folder.entries() {
                match entry {
                    DirEntry::Dir(folder) => open.push(folder),
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
