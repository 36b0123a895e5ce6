//! Contracts from files.

use crate::code::Code;
use crate::contract::Contract;
use crate::definition::Definition;
use crate::problem::{LoadError, Problem};
use crate::registry::Registry;
use std::path::{Path, PathBuf};

/// The largest contract file read.
const LARGEST_FILE: u64 = 4 << 20;

impl Definition {
    /// Reads a definition from YAML or JSON. JSON is YAML, so one reader serves both.
    pub fn from_yaml(text: &str, name: &str) -> Result<Self, LoadError> {
        let wrong = |message: String, line: Option<usize>| {
            let mut problem = Problem::new(
                Code::ContractSyntax,
                "",
                message,
                "see docs/contracts.md for the format",
            );
            problem.line = line;
            LoadError::one(name, problem)
        };
        if text.len() as u64 > LARGEST_FILE {
            return Err(wrong(
                format!("the file has {} bytes, more than {LARGEST_FILE}", text.len()),
                None,
            ));
        }
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let line =
                error.location().map(|location| usize::try_from(location.line()).unwrap_or(0));
            wrong(error.to_string(), line)
        })
    }

    /// Reads a definition from a file.
    pub fn from_file(path: &Path) -> Result<Self, LoadError> {
        let name = path.display().to_string();
        let text = read_text(path).map_err(|message| {
            LoadError::one(
                &name,
                Problem::new(Code::ContractSyntax, "", message, "name a YAML or JSON file"),
            )
        })?;
        Self::from_yaml(&text, &name)
    }

    /// The definition as a file.
    pub fn to_yaml(&self) -> Result<String, String> {
        serde_saphyr::to_string(&crate::plain::plain(self)?).map_err(|error| error.to_string())
    }
}

impl Contract {
    /// Reads and compiles a contract file.
    pub fn from_file(path: &Path) -> Result<Self, LoadError> {
        let definition = Definition::from_file(path)?;
        Self::compile(definition)
            .map_err(|error| LoadError { name: path.display().to_string(), ..error })
    }

    /// Reads and compiles a contract from YAML or JSON.
    pub fn from_yaml(text: &str) -> Result<Self, LoadError> {
        Self::compile(Definition::from_yaml(text, "contract")?)
    }
}

impl Registry {
    /// Adds every contract file below a folder. Files that are not contracts (no `contract:` key)
    /// are passed over.
    pub fn add_folder(&mut self, folder: &Path) -> Result<usize, LoadError> {
        let mut count = 0;
        for path in contract_files(folder)? {
            let text = read_text(&path).map_err(|message| {
                LoadError::one(
                    &path.display().to_string(),
                    Problem::new(Code::ContractSyntax, "", message, "check the file"),
                )
            })?;
            if !text.lines().any(|line| {
                line.trim_start().starts_with("contract:") || line.contains("\"contract\"")
            }) {
                continue;
            }
            let name = path.display().to_string();
            let definition = Definition::from_yaml(&text, &name)?;
            self.add(definition).map_err(|error| LoadError { name, ..error })?;
            count += 1;
        }
        Ok(count)
    }
}

/// Folders deeper than this are not searched.
const DEEPEST_FOLDER: usize = 8;

fn contract_files(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut files = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| {
            LoadError::one(
                &folder.display().to_string(),
                Problem::new(
                    Code::ContractSyntax,
                    "",
                    format!("cannot read the folder: {error}"),
                    "check the path",
                ),
            )
        })?;
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEEPEST_FOLDER {
                open.push((path, depth + 1));
            } else if kind.is_file()
                && path
                    .extension()
                    .and_then(|extension| extension.to_str())
                    .is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read_text(path: &Path) -> Result<String, String> {
    let meta = std::fs::metadata(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if meta.is_dir() {
        return Err(format!("{} is a folder", path.display()));
    }
    if meta.len() > LARGEST_FILE {
        return Err(format!(
            "{} has {} bytes, more than {LARGEST_FILE}",
            path.display(),
            meta.len()
        ));
    }
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}
