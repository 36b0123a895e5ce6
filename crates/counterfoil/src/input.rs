//! Reading what the command line names: files with a size limit, contracts and the
//! repository.

use crate::output;
use anyhow::{Context, Result, bail};
use counterfoil_contract::load::{Folder, is_contract_text, misspelt_key};
use counterfoil_contract::text::{display_path, join_limited, pluralize};
use counterfoil_contract::{Contract, Definition, LoadError, Registry, ResolveError};
use counterfoil_workspace::git::repository_top;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use counterfoil_contract::load::is_contract_file;

/// Larger files are no contracts that the loader reads.
const MAX_CONTRACT_BYTES: u64 = 4 << 20;
/// How many bytes of a file in a folder are read to find out what it is.
const MAX_LISTED_BYTES: usize = 4 << 20;
/// The most names of files that are left out.
const MAX_LEFT_OUT: usize = 10;

/// The name for people and the content of a file, or of standard input for `-`. At most one byte more than `limit`
/// is read, so that the caller can tell that the input is too large.
pub(crate) fn read(path: &Path, limit: usize) -> Result<(String, Vec<u8>)> {
    let max = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        announce_terminal("the text");
        std::io::stdin()
            .lock()
            .take(max)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(("<stdin>".to_owned(), bytes));
    }
    let name = display_path(path);
    if path.is_dir() {
        bail!("{name} is a folder; give a file, or - for standard input");
    }
    let file = std::fs::File::open(path).with_context(|| format!("cannot open {name}"))?;
    file.take(max).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    Ok((name, bytes))
}

/// The name of a file as reports for programs have it: the path as it is, which their format escapes.
pub(crate) fn named(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("<stdin>") } else { path }
}

/// The path of a file from the top of the repository around a folder, where GitHub looks for the files of
/// annotations and of SARIF logs. As it is if the file is not in the repository, or there is none.
pub(crate) fn placed(path: &Path, folder: &Path) -> PathBuf {
    from_top(path, folder).unwrap_or_else(|| path.to_owned())
}

/// The path of a file from the top of the repository around a folder; none if it is not in it. The file
/// itself may be a link.
pub(crate) fn from_top(path: &Path, folder: &Path) -> Option<PathBuf> {
    let top = repository_top(folder)?.canonicalize().ok()?;
    path.symlink_metadata().ok()?;
    let path = std::path::absolute(path).ok()?;
    let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    real.strip_prefix(top).ok().map(Path::to_owned)
}

/// The current folder; empty if its path is not known.
pub(crate) fn current_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// Says on stderr what is waited for, if standard input is a terminal.
pub(crate) fn announce_terminal(what: &str) {
    if std::io::stdin().is_terminal() {
        output::write_stderr(&format!("reading {what} from the terminal; end it with Ctrl-D\n"));
    }
}

/// The built-in contracts and those in the given folders. Files in them that are no contracts are
/// skipped with a warning.
pub(crate) fn registry(folders: &[PathBuf]) -> Result<Registry> {
    let mut registry = counterfoil_packs::registry();
    for folder in folders {
        for file in add_folder(&mut registry, folder)? {
            output::write_message("warning", &no_contract(&file));
        }
        warn_of_dangling_in(folder, Path::new(""));
    }
    Ok(registry)
}

/// Adds the contracts in a folder, and returns the files that look like contracts and are none, such
/// as the output of `counterfoil check --format json`.
fn add_folder(registry: &mut Registry, folder: &Path) -> Result<Vec<PathBuf>> {
    let before = registry.clone();
    let Err(error) = registry.add_folder(folder) else { return Ok(Vec::new()) };
    // Each file for itself, as far as the folder can be read.
    *registry = before;
    let files = Folder::new(folder).contract_files(Path::new(""));
    let Ok(files) = files else { return Err(error.into()) };
    let mut skipped = Vec::new();
    for path in files.into_iter().map(|file| folder.join(file)) {
        match is_contract(&path) {
            Some(true) => registry
                .add(Definition::from_file(&path)?)
                .map_err(|error| LoadError { name: display_path(&path), ..error })?,
            Some(false) => skipped.push(path),
            // As in a folder without problems.
            None => {}
        }
    }
    Ok(skipped)
}

/// What is said of a file that looks like a contract and is none.
fn no_contract(file: &Path) -> String {
    format!(
        "{} is skipped: it is no contract, which has an id in `contract` and a number in `version`",
        display_path(file)
    )
}

/// Names the links to nothing that are left out at a path in a folder, as far as it can be read.
pub(crate) fn warn_of_dangling_in(folder: &Path, path: &Path) {
    if let Ok(found) = Folder::new(folder).list(path) {
        warn_of_dangling(folder, &found.dangling);
    }
}

/// Names the links to nothing that were left out of a folder. Each is named once, however often and by
/// whichever path its folder is read.
fn warn_of_dangling(folder: &Path, links: &[PathBuf]) {
    static NAMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    for link in links.iter().map(|link| folder.join(link)) {
        let folder = Path::new(".").join(link.parent().unwrap_or(Path::new("")));
        let place = folder.canonicalize().ok().zip(link.file_name());
        let place = place.map_or_else(|| link.clone(), |(folder, name)| folder.join(name));
        if NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(place) {
            output::write_message("warning", &dangling(&link));
        }
    }
}

/// What is said of a link with the ending of a contract file that leads to nothing.
fn dangling(link: &Path) -> String {
    format!("{} is skipped: it is a link to nothing", display_path(link))
}

/// A file that looks like a contract.
#[derive(Debug)]
pub(crate) struct ContractFile {
    pub(crate) path: PathBuf,
    /// What it defines, which may not compile, or why it defines nothing.
    pub(crate) definition: Result<Definition, String>,
}

impl ContractFile {
    /// The id of the contract. A file that defines nothing may give one, too.
    pub(crate) fn id(&self) -> Option<String> {
        if let Ok(definition) = &self.definition {
            return Some(definition.contract.clone());
        }
        let value: serde_json::Value = serde_saphyr::from_str(&contract_text(&self.path)?).ok()?;
        value["contract"].as_str().map(str::to_owned)
    }
}

/// The files that look like contracts in a folder and the folders in it, one by one: others are
/// found beside one that cannot be loaded.
pub(crate) fn contract_files(folder: &Path) -> Result<Vec<ContractFile>> {
    let found = Folder::new(folder)
        .list(Path::new(""))
        .with_context(|| format!("cannot read the folder {}", display_path(folder)))?;
    let file = |path: PathBuf| {
        let definition = if is_contract(&path)? {
            Definition::from_file(&path).map_err(|error| error.to_string())
        } else {
            Err(no_contract(&path))
        };
        Some(ContractFile { path, definition })
    };
    let files = found.files.into_iter().map(|path| folder.join(path)).filter_map(file);
    let links = found.dangling.into_iter().map(|link| {
        let path = folder.join(link);
        ContractFile { definition: Err(dangling(&path)), path }
    });
    Ok(files.chain(links).collect())
}

/// The text of a file that can be a contract. Reading a pipe would block.
fn contract_text(path: &Path) -> Option<String> {
    let is_readable = std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_CONTRACT_BYTES);
    is_readable.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Whether a file is meant as a contract: it has an id and a version, or cannot be parsed. None if
/// nothing in it suggests it.
fn is_contract(path: &Path) -> Option<bool> {
    // The loader says what is wrong with other files.
    let Some(text) = contract_text(path) else { return Some(true) };
    if !is_contract_text(&text) {
        return None;
    }
    let Ok(value) = serde_saphyr::from_str::<serde_json::Value>(&text) else { return Some(true) };
    Some(value["contract"].is_string() && value["version"].is_number())
}

/// What tells files of a kind from others in a folder.
pub(crate) struct FileKind {
    /// The key at the top of each.
    pub(crate) key: &'static str,
    /// Others that each has some of: with one of them, a key that is nearly `key` is misspelt.
    pub(crate) others: &'static [&'static str],
    /// Whether a text has the key.
    pub(crate) gives_key: fn(&str) -> bool,
}

/// The files that are found at paths.
#[derive(Default)]
pub(crate) struct FoundFiles {
    pub(crate) files: Vec<PathBuf>,
    /// Files of YAML or JSON in folders that are of another kind.
    pub(crate) left_out: Vec<PathBuf>,
}

/// What is said of files in folders that are of another kind; none if there are none.
pub(crate) fn left_out_note(files: &[PathBuf], key: &str) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let names = join_limited(files.iter().map(|file| display_path(file)), MAX_LEFT_OUT);
    Some(format!("{} left out, without a key `{key}`: {names}", pluralize(files.len(), "file")))
}

/// Files as they are, and for a folder those files of YAML or JSON in it, and in the folders in it,
/// that are of a kind, such as contracts. A folder without any is an error.
pub(crate) fn files_in(paths: &[PathBuf], kind: &FileKind) -> Result<FoundFiles> {
    let mut all = FoundFiles::default();
    for path in paths {
        if !path.is_dir() {
            if !path.exists() {
                bail!("there is no file or folder {}", display_path(path));
            }
            all.files.push(path.clone());
            continue;
        }
        let name = display_path(path);
        let found = Folder::new(path.as_path())
            .list(Path::new(""))
            .with_context(|| format!("cannot read the folder {name}"))?;
        warn_of_dangling(path, &found.dangling);
        let before = all.files.len();
        for file in found.files {
            let file = path.join(file);
            // Reading a pipe would block. Who loads the file says what it is.
            let is_plain = std::fs::metadata(&file).is_ok_and(|meta| meta.is_file());
            if !is_plain || is_of_kind(&file, kind)? {
                all.files.push(file);
            } else {
                all.left_out.push(file);
            }
        }
        if all.files.len() == before {
            let key = kind.key;
            bail!("there is no {key} file in the folder {name} or in the folders in it");
        }
    }
    Ok(all)
}

/// Whether a file in a folder is meant to be of a kind. One that cannot be read as text can be
/// anything; who loads it says what is wrong.
fn is_of_kind(file: &Path, kind: &FileKind) -> Result<bool> {
    let (_, bytes) = read(file, MAX_LISTED_BYTES)?;
    let is_whole = bytes.len() <= MAX_LISTED_BYTES;
    let text = String::from_utf8_lossy(&bytes);
    let is_unreadable = is_whole && matches!(text, Cow::Owned(_));
    Ok(is_unreadable
        || (kind.gives_key)(&text)
        || misspelt_key(&text, kind.key, kind.others).is_some())
}

/// A contract by id or, if the name has the extension of a contract file, from that file.
pub(crate) fn contract(name: &str, folders: &[PathBuf]) -> Result<Arc<Contract>> {
    let path = Path::new(name);
    if is_contract_file(path) {
        return Ok(Arc::new(Contract::from_file(path)?));
    }
    // Loading one pack is faster than loading all of them.
    if folders.is_empty()
        && let Ok(contract) = counterfoil_packs::registry_for(name).get(name)
    {
        return Ok(contract);
    }
    registry(folders)?.get(name).map_err(|error| match error {
        ResolveError::NotFound(error) if error.hint.is_none() => {
            anyhow::Error::new(counterfoil_contract::registry::NotFound {
                hint: Some("`counterfoil contract list` shows all".to_owned()),
                ..error
            })
        }
        ResolveError::NotFound(error) => anyhow::Error::new(error),
        ResolveError::Load(error) => anyhow::Error::new(error),
    })
}

/// The repository: the given folder, or the repository around the current folder.
pub(crate) fn repository(folder: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = folder {
        return folder
            .canonicalize()
            .with_context(|| format!("cannot open the repository {}", display_path(folder)));
    }
    let current = std::env::current_dir().context("cannot read the current folder")?;
    let state = current.ancestors().find(|folder| folder.join(".counterfoil").is_dir());
    // The nearer one of the two.
    let root =
        state.into_iter().chain(repository_top(&current)).max_by_key(|root| root.as_os_str().len());
    Ok(root.unwrap_or(&current).to_owned())
}

/// Whether standard input is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// A line that is typed at the terminal. None at the end of the input, and if it is interrupted with
/// Ctrl-C.
pub(crate) fn read_terminal_line() -> Option<String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // A read from a terminal cannot be interrupted; its thread ends with the process.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let _ = sender.send(read.ok().filter(|bytes| *bytes > 0).map(|_| line));
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        tokio::select! {
            line = receiver => line.ok().flatten(),
            _ = tokio::signal::ctrl_c() => None,
        }
    })
}
