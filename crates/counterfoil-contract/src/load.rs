//! Contracts from text and from files.

mod folder;
mod keys;
#[cfg(feature = "yaml")]
mod yaml;

use crate::code::Code;
use crate::contract::Contract;
use crate::definition::Definition;
use crate::json;
use crate::policy::Limits;
use crate::problem::{LoadError, Problem};
use crate::registry::Registry;
use crate::source::Source;
use crate::text::display_path;
use std::path::{Path, PathBuf};

pub use folder::{Folder, FolderError, FolderFiles, is_contract_file};
pub use keys::{misspelt_key, not_utf8, top_keys};
#[cfg(feature = "yaml")]
pub use yaml::{WriteYamlError, yaml_error};

/// Larger contract files are refused.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// JSON in a contract file may be nested this deep.
const MAX_FILE_DEPTH: usize = 128;

impl Definition {
    /// Reads a definition from JSON. `name` names it in errors.
    ///
    /// # Errors
    ///
    /// If the text is not JSON, or not a definition.
    pub fn from_json(text: &str, name: &str) -> Result<Self, LoadError> {
        check_size(text, name)?;
        let parsed = json::parse(text, Limits::of_depth(MAX_FILE_DEPTH)).map_err(|fault| {
            let line = Source::whole(text).span(fault.at, fault.at).line;
            syntax_error(name, format!("not JSON: {}", fault.fault), Some(line))
        })?;
        if parsed.duplicates {
            return Err(syntax_error(name, "a key occurs twice in one object".to_owned(), None));
        }
        serde_json::from_value(parsed.value)
            .map_err(|error| syntax_error(name, error.to_string(), None))
    }

    /// Reads a definition from a file: YAML or JSON with the `yaml` feature, JSON without it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is too large, or holds no definition.
    pub fn from_file(path: &Path) -> Result<Self, LoadError> {
        let name = display_path(path);
        let text = read_text(path).map_err(|message| {
            LoadError::one(
                &name,
                Problem::new(Code::ContractSyntax, "", message, "name a YAML or JSON file"),
            )
        })?;
        from_file_text(&text, &name)
    }
}

impl Contract {
    /// Reads and compiles a contract from JSON.
    ///
    /// # Errors
    ///
    /// If the text is not JSON, not a definition, or does not compile.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        Self::compile(Definition::from_json(text, "contract")?)
    }

    /// Reads and compiles a contract file: YAML or JSON with the `yaml` feature, JSON without it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is too large, or holds no contract that compiles.
    pub fn from_file(path: &Path) -> Result<Self, LoadError> {
        let definition = Definition::from_file(path)?;
        Self::compile(definition).map_err(|error| LoadError { name: display_path(path), ..error })
    }
}

/// Whether a line of a file gives a key, in any usual form of YAML or JSON: with quotes, after a brace
/// or a byte order mark, with blanks before the colon.
pub fn gives_key(text: &str, key: &str, may_be_indented: bool) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().filter(|line| may_be_indented || !line.starts_with([' ', '\t'])).any(|line| {
        let named = line.trim_start_matches(['{', ' ', '\t', '"', '\'']).strip_prefix(key);
        named.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    })
}

/// The keys that contracts have, beside one that may be misspelt.
pub const CONTRACT_KEYS: [&str; 4] = ["version", "fields", "schema", "rules"];

/// Whether a text has a key `contract` somewhere, as the files of contracts do.
pub fn is_contract_text(text: &str) -> bool {
    gives_key(text, "contract", true)
        || text.contains("\"contract\"")
        || top_keys(text).contains(&"contract")
}

impl Registry {
    /// Adds every contract file below a folder and returns how many there were. A file without a
    /// `contract` key is skipped.
    ///
    /// # Errors
    ///
    /// If a folder or file cannot be read, or if a contract cannot be added.
    pub fn add_folder(&mut self, folder: &Path) -> Result<usize, LoadError> {
        let mut count = 0;
        for path in contract_files(folder)? {
            let name = display_path(&path);
            let text = read_text(&path).map_err(|message| {
                LoadError::one(
                    &name,
                    Problem::new(Code::ContractSyntax, "", message, "check the file"),
                )
            })?;
            if !is_contract_text(&text) {
                continue;
            }
            let definition = from_file_text(&text, &name)?;
            self.add(definition).map_err(|error| LoadError { name, ..error })?;
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(feature = "yaml")]
fn from_file_text(text: &str, name: &str) -> Result<Definition, LoadError> {
    Definition::from_yaml(text, name)
}

#[cfg(not(feature = "yaml"))]
fn from_file_text(text: &str, name: &str) -> Result<Definition, LoadError> {
    if Path::new(name).extension().is_some_and(|extension| extension != "json") {
        let message = "this build cannot read YAML: it has no support for it";
        let hint = "enable the feature `yaml` of counterfoil-contract, or write JSON";
        return Err(LoadError::one(name, Problem::new(Code::ContractSyntax, "", message, hint)));
    }
    Definition::from_json(text, name)
}

fn check_size(text: &str, name: &str) -> Result<(), LoadError> {
    if text.len() as u64 <= MAX_FILE_BYTES {
        return Ok(());
    }
    let message = format!("the file has {} bytes, more than {MAX_FILE_BYTES}", text.len());
    Err(syntax_error(name, message, None))
}

fn syntax_error(name: &str, message: String, line: Option<usize>) -> LoadError {
    let hint = "see docs/contracts.md for the format";
    let mut problem = Problem::new(Code::ContractSyntax, "", message, hint);
    problem.line = line;
    LoadError::one(name, problem)
}

fn contract_files(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let refused = |error: FolderError| {
        let (message, hint) = match &error {
            FolderError::Unreadable(why) => {
                (format!("cannot read the folder: {why}"), "check the path")
            }
            FolderError::LeadsOut { .. } => {
                (error.to_string(), "links are followed only if they stay in the folder")
            }
        };
        let name = display_path(folder);
        LoadError::one(&name, Problem::new(Code::ContractSyntax, "", message, hint))
    };
    // A file is not taken for a folder with one file in it.
    std::fs::read_dir(folder).map_err(|error| refused(error.into()))?;
    let files = Folder::new(folder).contract_files(Path::new("")).map_err(refused)?;
    Ok(files.into_iter().map(|file| folder.join(file)).collect())
}

fn read_text(path: &Path) -> Result<String, String> {
    let meta = std::fs::metadata(path)
        .map_err(|error| format!("cannot read {}: {error}", display_path(path)))?;
    if meta.is_dir() {
        return Err(format!("{} is a folder", display_path(path)));
    }
    // Opening a pipe would block.
    if !meta.is_file() {
        return Err(format!("{} is not a regular file", display_path(path)));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(format!(
            "{} has {} bytes, more than {MAX_FILE_BYTES}",
            display_path(path),
            meta.len()
        ));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| format!("cannot read {}: {error}", display_path(path)))?;
    String::from_utf8(bytes).map_err(|error| {
        format!("cannot read {}: {}", display_path(path), not_utf8(error.as_bytes()))
    })
}
