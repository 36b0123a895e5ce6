//! Reads what a project and PATH contain. It decides nothing.

use super::checks::{self, BUILD_FILES, BuildFiles, READ_FILES, target_names};
use super::frontmatter::{self, Frontmatter};
use super::project_file::{FileState, file_state};
use super::suggest::AvailableContract;
use super::trust::{self, Trust};
use crate::project;
use counterfoil_engine::config::FILE;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most subagent files that are read.
const MAX_AGENT_FILES: usize = 1000;
/// The most bytes that are read of each: the front matter is at the beginning.
const MAX_FRONTMATTER_BYTES: u64 = 64 << 10;
/// The most bytes that are read of a build file.
const MAX_BUILD_FILE_BYTES: u64 = 4 << 20;
/// The depth to which folders are searched.
const MAX_DEPTH: usize = 4;

/// The folder with the subagents of a project, and that of a user in the home folder.
pub(crate) const SUBAGENTS: &str = ".claude/agents";
/// The project settings of Claude Code.
/// The JSON Schema of `counterfoil.toml`, for editors.
pub(crate) const CONFIG_SCHEMA: &str = "schemas/counterfoil-config.schema.json";
pub(crate) const CLAUDE_SETTINGS: &str = ".claude/settings.json";
/// The MCP servers of a project, as Claude Code reads them.
pub(crate) const CLAUDE_SERVERS: &str = ".mcp.json";
/// The project settings of Gemini CLI.
pub(crate) const GEMINI_SETTINGS: &str = ".gemini/settings.json";
/// The project configuration of Codex.
pub(crate) const CODEX_SETTINGS: &str = ".codex/config.toml";

/// What was found in a project.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// The Claude Code subagents of the project.
    pub(crate) subagents: Subagents,
    /// The folders and files that show which programs the project uses.
    pub(crate) markers: Vec<&'static str>,
    /// The supported agent programs on PATH.
    pub(crate) programs: Vec<String>,
    /// Whether `counterfoil` is on PATH.
    pub(crate) on_path: bool,
    /// The contracts that can be bound to agents.
    pub(crate) contracts: Vec<AvailableContract>,
    /// Whether the project has contracts of its own.
    pub(crate) own_contracts: bool,
    /// The configuration files by their paths.
    pub(crate) files: BTreeMap<&'static str, FileState>,
    /// The build files that say which checks the project has.
    pub(crate) build_files: BuildFiles,
    /// The names of targets of make that files or folders have.
    pub(crate) taken_names: BTreeSet<&'static str>,
    /// What Codex and Gemini CLI trust of the project.
    pub(crate) trust: Trust,
    /// Problems that were found.
    pub(crate) notes: Vec<String>,
}

impl Survey {
    /// Whether the project itself defines a contract.
    pub(crate) fn is_own_contract(&self, id: &str) -> bool {
        self.contracts.iter().any(|contract| contract.id == id && contract.is_own)
    }
}

/// The subagents of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subagents {
    /// The file of each subagent, and the tools that it may use unless it may use all.
    pub(crate) named: BTreeMap<String, (String, Option<Vec<String>>)>,
    /// Problems that were found.
    pub(crate) notes: Vec<String>,
}

/// Surveys a project.
pub(crate) fn survey(root: &Path, path: Option<&OsStr>) -> Survey {
    let mut notes = Vec::new();
    let registry = project::registry(root).unwrap_or_else(|error| {
        notes
            .push(format!("the contracts in {} are skipped: {error:#}", project::CONTRACTS_FOLDER));
        counterfoil_packs::registry()
    });
    let builtin = counterfoil_packs::registry();
    let contracts = registry
        .iter()
        .map(counterfoil_contract::registry::Entry::definition)
        .filter(|definition| definition.deprecated.is_none())
        .map(|definition| AvailableContract {
            id: definition.contract.clone(),
            agent: definition.agent.clone(),
            is_own: builtin.get(&definition.contract).is_err(),
        })
        .collect();
    let files =
        [FILE, CONFIG_SCHEMA, CLAUDE_SETTINGS, CLAUDE_SERVERS, GEMINI_SETTINGS, CODEX_SETTINGS];
    let markers = [".claude", ".codex", ".gemini", "AGENTS.md"];
    Survey {
        subagents: subagents(root),
        markers: markers.into_iter().filter(|name| root.join(name).exists()).collect(),
        programs: programs(path),
        on_path: find_on_path("counterfoil", path).is_some(),
        contracts,
        own_contracts: project::contracts_folder(root).is_some(),
        files: files.into_iter().map(|file| (file, file_state(root, file))).collect(),
        build_files: build_files(root),
        taken_names: taken_names(root),
        trust: trust::read(root, &|name| std::env::var_os(name)),
        notes,
    }
}

/// The commands of checks that the build files of a project propose, by the names of the checks.
pub(crate) fn proposed_commands(root: &Path) -> BTreeMap<&'static str, String> {
    let proposed = checks::propose(&build_files(root), &taken_names(root));
    proposed.checks.into_iter().map(|check| (check.name, check.run)).collect()
}

/// The names of targets of make that files or folders have.
fn taken_names(root: &Path) -> BTreeSet<&'static str> {
    target_names().filter(|name| root.join(name).exists()).collect()
}

/// The build files of a project. Those that cannot be read are left out.
fn build_files(root: &Path) -> BuildFiles {
    let names = BUILD_FILES.into_iter().filter(|name| root.join(name).is_file());
    let text = |name: &'static str| {
        if !READ_FILES.contains(&name) {
            return Some((name, String::new()));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(root.join(name)).ok()?;
        file.take(MAX_BUILD_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        Some((name, String::from_utf8(bytes).ok()?))
    };
    names.filter_map(text).collect()
}

/// The supported agent programs that are on PATH.
fn programs(path: Option<&OsStr>) -> Vec<String> {
    let known = ["claude", "codex", "gemini"];
    known.into_iter().filter(|name| find_on_path(name, path).is_some()).map(str::to_owned).collect()
}

/// The path of a program on PATH.
pub(crate) fn find_on_path(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .map(|folder| folder.join(name))
        .find(|program| is_executable(program))
}

/// Whether a path is an executable file.
fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The subagents in `.claude/agents`, by their front matter.
pub(crate) fn subagents(root: &Path) -> Subagents {
    let mut found = Subagents::default();
    let (files, is_truncated) = markdown_files(&root.join(SUBAGENTS));
    if is_truncated {
        found
            .notes
            .push(format!("only the first {MAX_AGENT_FILES} files in {SUBAGENTS} were read"));
    }
    for path in files {
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let frontmatter = match read_frontmatter(&path) {
            Ok(frontmatter) => frontmatter,
            Err(why) => {
                found.notes.push(format!("{file} is skipped: {why}"));
                continue;
            }
        };
        if let Some(error) = &frontmatter.yaml_error {
            found.notes.push(format!(
                "the front matter of {file} is not valid YAML ({error}); it was read line by line"
            ));
        }
        let Some(name) = frontmatter.name else {
            found.notes.push(format!(
                "{file} is skipped: it has no agent name; add `name: …` to its front matter"
            ));
            continue;
        };
        if let Some((other, _)) = found.named.get(&name) {
            found.notes.push(format!("{file} is skipped: {other} has the same name {name:?}"));
            continue;
        }
        found.named.insert(name, (file, frontmatter.tools));
    }
    found
}

fn read_frontmatter(path: &Path) -> Result<Frontmatter, String> {
    let mut bytes = Vec::new();
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FRONTMATTER_BYTES).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // The limit may cut a character in two; this is not an error of the file.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => return Err(format!("it is not UTF-8 (at byte {})", error.valid_up_to())),
    };
    frontmatter::parse(text)
        .ok_or_else(|| "it has no front matter between two lines of ---".to_owned())
}

/// The Markdown files below a folder, sorted, and whether there are more than the limit.
fn markdown_files(folder: &Path) -> (Vec<PathBuf>, bool) {
    let mut files = Vec::new();
    let mut pending = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < MAX_DEPTH {
                    pending.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
            // Bounds the walk. The limit is far higher than the number of files kept, because the
            // first files by name are kept and folders are not sorted.
            if files.len() + pending.len() > 50 * MAX_AGENT_FILES {
                break;
            }
        }
    }
    files.sort();
    let is_truncated = files.len() > MAX_AGENT_FILES;
    files.truncate(MAX_AGENT_FILES);
    (files, is_truncated)
}
