//! Where a workflow stands: in a pack that the binary brings along, or in a file.

use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::{Registry, did_you_mean};
use counterfoil_engine::Folder;
use counterfoil_flow::{Files, Rejected, Workflow, check};
use counterfoil_packs::Pack;
use std::path::{Component, Path, PathBuf};

/// A workflow that was named.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// In a pack.
    Pack {
        /// Which.
        pack: &'static Pack,
        /// What it is called: `PACK` or `PACK/NAME`.
        name: String,
        /// Its file in the pack.
        file: &'static str,
    },
    /// In a file.
    File(PathBuf),
}

impl Source {
    /// A pack's name is a pack, whatever files there are; everything else is a file. `./NAME` says
    /// that a file is meant.
    pub(crate) fn named(word: &Path) -> Result<Self> {
        if let Some(found) = word.to_str().and_then(packed) {
            return Ok(found);
        }
        if word.is_dir() {
            bail!("{} is a folder; name the workflow file in it", word.display());
        }
        if word.exists() {
            return Ok(Self::File(word.to_owned()));
        }
        if ends_as(word, &["yaml", "yml"]) {
            bail!("there is no workflow file {}", word.display());
        }
        let name = word.display();
        let way = match did_you_mean(&name.to_string(), workflows().iter().map(String::as_str)) {
            Some(near) => format!("{near} Or give a file"),
            None => "`counterfoil pack list` lists the packs; or give a file".to_owned(),
        };
        bail!("there is no workflow '{name}' in the packs, nor a file of that name; {way}")
    }

    /// Every workflow of a pack: the one that is named as it first.
    pub(crate) fn all_of(pack: &'static Pack) -> Vec<Self> {
        let all = pack.workflows().into_iter();
        all.map(|found| Self::Pack { pack, name: found.name, file: found.file }).collect()
    }

    /// Checks it; the outer error is a file that cannot be had.
    pub(crate) fn check(&self, registry: &Registry) -> Result<Result<Workflow, Rejected>> {
        match self {
            Self::Pack { pack, file, .. } => Ok(check(file, &Packed(pack), registry)),
            Self::File(file) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                let name = file
                    .file_name()
                    .and_then(|name| name.to_str())
                    .context("the file has no name")?;
                Ok(check(name, &Folder::new(folder), registry))
            }
        }
    }

    /// The folder of its own files, which agents must not change. Nobody can change those of a
    /// pack.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        match self {
            Self::Pack { .. } => None,
            Self::File(file) => Some(file.parent().unwrap_or(Path::new("")).to_owned()),
        }
    }

    /// As it is named on the command line.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Pack { name, .. } => name.clone(),
            Self::File(file) => file.display().to_string(),
        }
    }
}

/// A workflow of a pack by its name.
fn packed(name: &str) -> Option<Source> {
    let pack = counterfoil_packs::pack(name.split('/').next()?)?;
    let found = pack.workflows().into_iter().find(|workflow| workflow.name == name)?;
    Some(Source::Pack { pack, name: found.name, file: found.file })
}

/// The names of all workflows of all packs.
fn workflows() -> Vec<String> {
    let all = counterfoil_packs::packs().iter().flat_map(Pack::workflows);
    all.map(|workflow| workflow.name).collect()
}

/// A pack by its name, or an error that names one that is near.
pub(crate) fn pack(name: &str) -> Result<&'static Pack> {
    if let Some(pack) = counterfoil_packs::pack(name) {
        return Ok(pack);
    }
    if let Some(Source::Pack { pack, .. }) = packed(name) {
        bail!("'{name}' is a workflow of the pack '{0}'; name the pack: {0}", pack.name());
    }
    Err(no_pack(name, "`counterfoil pack list` lists all"))
}

/// Nothing is called so; what is near, and what can be done.
pub(crate) fn no_pack(name: &str, otherwise: &str) -> anyhow::Error {
    let near = did_you_mean(name, counterfoil_packs::packs().iter().map(Pack::name));
    let near = near.map(|near| format!("{near} ")).unwrap_or_default();
    anyhow!("there is no pack '{name}'; {near}{otherwise}")
}

/// Whether a path has one of these endings.
fn ends_as(path: &Path, endings: &[&str]) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| endings.contains(&ending))
}

/// The files of a pack as a workflow reads them.
struct Packed(&'static Pack);

impl Files for Packed {
    fn read(&self, path: &str) -> Result<String, String> {
        let bytes = self.0.file(&plain(path)?).ok_or("no such file in the pack")?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "it is not UTF-8".to_owned())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let path = plain(path)?;
        if self.0.file(&path).is_some() {
            return Ok(vec![path]);
        }
        let folder = format!("{path}/");
        let is_contract = |file: &str| ends_as(Path::new(file), &["yaml", "yml", "json"]);
        let files: Vec<String> = self
            .0
            .files()
            .into_iter()
            .map(|(file, _)| file)
            .filter(|file| file.starts_with(&folder) && is_contract(file))
            .map(str::to_owned)
            .collect();
        if files.is_empty() {
            Err("no such file or folder in the pack".to_owned())
        } else {
            Ok(files)
        }
    }
}

/// A path as a pack spells it: `./prompts/qa.md` is `prompts/qa.md`.
fn plain(path: &str) -> Result<String, String> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.extend(part.to_str()),
            Component::CurDir => {}
            _ => return Err("it is not a path inside the pack".to_owned()),
        }
    }
    Ok(parts.join("/"))
}
