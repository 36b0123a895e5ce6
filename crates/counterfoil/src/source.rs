//! Where a workflow is defined: in a pack of this binary, or in a file.

use crate::input;
use crate::report::project_checks::WrittenBy;
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::Registry;
use counterfoil_contract::suggest::{did_you_mean, nearest};
use counterfoil_contract::text::display_path;
use counterfoil_engine::FsFiles;
use counterfoil_flow::{FileError, Files, Rejected, Workflow, check};
use counterfoil_packs::Pack;
use std::path::{Component, Path, PathBuf};

/// The most files of a folder that are compared with the name of one that does not exist.
const MAX_FILES: usize = 1000;
/// What helps if no workflow has a name.
const LIST_OR_FILE: &str = "list the packs with `counterfoil pack list`, or give a file";

/// The definition of a workflow.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A workflow of a pack.
    Pack {
        /// The pack.
        pack: &'static Pack,
        /// The name of the workflow: `PACK` or `PACK/NAME`.
        name: String,
        /// The workflow file in the pack.
        file: &'static str,
    },
    /// A workflow file.
    File(PathBuf),
}

impl Source {
    /// Finds a workflow by name or path. The name of a pack takes precedence over a file of the same
    /// name; `./NAME` is always a file.
    pub(crate) fn find(argument: &Path) -> Result<Self> {
        if let Some(found) = Self::find_in_packs(argument) {
            return Ok(found);
        }
        if argument.is_dir() {
            bail!("{} is a folder; give the path of a workflow file", display_path(argument));
        }
        if argument.exists() {
            return Ok(Self::File(argument.to_owned()));
        }
        if has_extension(argument, &["yaml", "yml"]) {
            let near = similar_file(argument)
                .map(|near| format!("; did you mean '{}'?", display_path(&near)))
                .unwrap_or_default();
            bail!("workflow file {} does not exist{near}", display_path(argument));
        }
        let name = display_path(argument);
        let known = pack_workflows();
        let hint = with_similar(&name, known.iter().map(String::as_str), LIST_OR_FILE);
        bail!("no pack has a workflow '{name}', and there is no file of that name; {hint}")
    }

    /// The workflow of a pack by its name.
    pub(crate) fn find_in_packs(argument: &Path) -> Option<Self> {
        argument.to_str().and_then(find_in_packs)
    }

    /// All workflows of a pack. The first has the name of the pack.
    pub(crate) fn all_in_pack(pack: &'static Pack) -> Vec<Self> {
        let all = pack.workflows().into_iter();
        all.map(|found| Self::Pack { pack, name: found.name, file: found.file }).collect()
    }

    /// Checks the workflow, and warns of links to nothing in its folders of contracts. The outer error
    /// is a file name that cannot be used.
    pub(crate) fn check(&self, registry: &Registry) -> Result<Result<Workflow, Rejected>> {
        match self {
            Self::Pack { pack, file, .. } => Ok(check(file, &PackFiles(pack), registry)),
            Self::File(file) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                let name = file
                    .file_name()
                    .and_then(|name| name.to_str())
                    .context("the file has no name")?;
                let files = FsFiles::new(folder).with_named(name);
                Ok(check(name, &OwnFiles { folder, files }, registry))
            }
        }
    }

    /// The folder with the workflow's own files, which agents must not change. The files of a pack
    /// are in the binary.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Pack { .. } => None,
            Self::File(file) => Some(file.parent().unwrap_or(Path::new("")).to_owned()),
        }
    }

    /// Who wrote the workflow.
    pub(crate) fn written_by(&self) -> WrittenBy {
        match self {
            Self::Pack { .. } => WrittenBy::Pack,
            Self::File(_) => WrittenBy::User,
        }
    }

    /// The path of a file of the workflow, which the checker names relative to its folder.
    pub(crate) fn path_of(&self, file: &str) -> PathBuf {
        match self {
            Self::Pack { pack, .. } => Path::new(pack.name()).join(file),
            Self::File(workflow) => workflow.with_file_name("").join(file),
        }
    }

    /// The name or path of the workflow, for formats that escape it themselves.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Pack { name, .. } => name.clone(),
            Self::File(file) => file.to_string_lossy().into_owned(),
        }
    }

    /// The name or path of the workflow, as on the command line, on one line.
    pub(crate) fn display_name(&self) -> String {
        match self {
            Self::Pack { name, .. } => name.clone(),
            Self::File(file) => display_path(file),
        }
    }
}

/// The workflow of a pack by its name.
fn find_in_packs(name: &str) -> Option<Source> {
    let pack = counterfoil_packs::pack(name.split('/').next()?)?;
    let found = pack.workflows().into_iter().find(|workflow| workflow.name == name)?;
    Some(Source::Pack { pack, name: found.name, file: found.file })
}

/// The names of all workflows in all packs.
fn pack_workflows() -> Vec<String> {
    let all = counterfoil_packs::packs().iter().flat_map(Pack::workflows);
    all.map(|workflow| workflow.name).collect()
}

/// A pack by its name, or an error that suggests a similar name.
pub(crate) fn pack(name: &str) -> Result<&'static Pack> {
    if let Some(pack) = counterfoil_packs::pack(name) {
        return Ok(pack);
    }
    if let Some(Source::Pack { pack, .. }) = find_in_packs(name) {
        bail!(
            "'{name}' is a workflow of the pack '{0}'; give the name of the pack: {0}",
            pack.name()
        );
    }
    Err(unknown_pack(name, &[], "list the packs with `counterfoil pack list`"))
}

/// The error for an unknown pack, with a similar name if there is one, and a hint. `others` are names
/// that stand for something else in its place.
pub(crate) fn unknown_pack(name: &str, others: &[&str], hint: &str) -> anyhow::Error {
    let mut known: Vec<&str> = counterfoil_packs::packs().iter().map(Pack::name).collect();
    known.extend(others);
    let hint = with_similar(name, known, hint);
    anyhow!("unknown pack '{name}'; {hint}")
}

/// A hint, after the name that was probably meant.
fn with_similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, hint: &str) -> String {
    match did_you_mean(name, known) {
        Some(meant) => format!("{meant} Otherwise {hint}"),
        None => hint.to_owned(),
    }
}

/// The workflow file in the same folder whose name is most similar. The extension does not count.
fn similar_file(missing: &Path) -> Option<PathBuf> {
    let folder = missing.parent()?;
    let read = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let files =
        std::fs::read_dir(read).ok()?.flatten().map(|entry| PathBuf::from(entry.file_name()));
    let mut files: Vec<PathBuf> =
        files.filter(|file| has_extension(file, &["yaml", "yml"])).take(MAX_FILES).collect();
    files.sort();
    let stem = |file: &Path| file.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let stems: Vec<String> = files.iter().filter_map(|file| stem(file)).collect();
    let near = nearest(&stem(missing)?, stems.iter().map(String::as_str))?;
    let found = files.iter().find(|file| stem(file).as_deref() == Some(near))?;
    Some(folder.join(found))
}

/// Whether a path has one of these extensions.
fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| extensions.contains(&extension))
}

/// The files of a workflow in a folder. Links to nothing that are left out are named.
struct OwnFiles<'a> {
    folder: &'a Path,
    files: FsFiles,
}

impl Files for OwnFiles<'_> {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.files.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let listed = self.files.list(path)?;
        input::warn_of_dangling_in(self.folder, Path::new(path));
        Ok(listed)
    }
}

/// The files of a pack, as the checker of workflows reads them.
struct PackFiles(&'static Pack);

impl Files for PackFiles {
    fn read(&self, path: &str) -> Result<String, FileError> {
        let bytes = self.0.file(&normalize(path)?).ok_or("no such file in the pack")?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "it is not UTF-8".into())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let path = normalize(path)?;
        if self.0.file(&path).is_some() {
            return Ok(vec![path]);
        }
        let folder = format!("{path}/");
        let is_contract = |file: &str| has_extension(Path::new(file), &["yaml", "yml", "json"]);
        let files: Vec<String> = self
            .0
            .files()
            .into_iter()
            .map(|(file, _)| file)
            .filter(|file| file.starts_with(&folder) && is_contract(file))
            .map(str::to_owned)
            .collect();
        if files.is_empty() { Err("no such file or folder in the pack".into()) } else { Ok(files) }
    }
}

/// A path without `.` components, as packs store it.
fn normalize(path: &str) -> Result<String, String> {
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
