//! What is there in a project, and on PATH. Looking decides nothing.

use super::bind::Offer;
use super::frontmatter;
use super::write::{Standing, standing};
use crate::project;
use counterfoil_engine::config::FILE;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// So many files of subagents are looked at.
pub(crate) const MOST: usize = 1000;
/// So much of each is read: the head stands at its beginning.
const HEAD: u64 = 64 << 10;
/// Folders deeper than this are not searched.
const DEEPEST: usize = 4;

/// The files that are looked at and may be added to.
pub(crate) const CLAUDE_SETTINGS: &str = ".claude/settings.json";
pub(crate) const CLAUDE_SERVERS: &str = ".mcp.json";
pub(crate) const GEMINI_SETTINGS: &str = ".gemini/settings.json";
pub(crate) const CODEX_SETTINGS: &str = ".codex/config.toml";

/// What is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Subagents of Claude Code.
    pub(crate) subagents: Subagents,
    /// Folders and files that tell which programs are used here.
    pub(crate) signs: Vec<&'static str>,
    /// Programs on PATH that play agents.
    pub(crate) programs: Vec<String>,
    /// Whether we are on PATH.
    pub(crate) on_path: bool,
    /// The contracts that can be bound.
    pub(crate) offers: Vec<Offer>,
    /// Whether the project has contracts of its own.
    pub(crate) own_contracts: bool,
    /// The files, by their paths.
    pub(crate) files: BTreeMap<&'static str, Standing>,
    /// What was odd.
    pub(crate) notes: Vec<String>,
}

/// The subagents of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subagents {
    /// By name: the file, and the tools that it may use if not all.
    pub(crate) named: BTreeMap<String, (String, Option<Vec<String>>)>,
    /// What was odd, in words.
    pub(crate) notes: Vec<String>,
}

/// Looks at a project.
pub(crate) fn survey(root: &Path, path: Option<&OsStr>) -> Survey {
    let mut notes = Vec::new();
    let registry = project::registry(root).unwrap_or_else(|error| {
        notes.push(format!("the contracts in {} are left out: {error:#}", project::CONTRACTS));
        counterfoil_packs::registry()
    });
    let offers = registry
        .iter()
        .map(counterfoil_contract::Entry::definition)
        .filter(|definition| definition.deprecated.is_none())
        .map(|definition| Offer {
            id: definition.contract.clone(),
            agent: definition.agent.clone(),
        })
        .collect();
    let files = [FILE, CLAUDE_SETTINGS, CLAUDE_SERVERS, GEMINI_SETTINGS, CODEX_SETTINGS];
    let signs = [".claude", ".codex", ".gemini", "AGENTS.md"];
    Survey {
        subagents: subagents(root),
        signs: signs.into_iter().filter(|name| root.join(name).exists()).collect(),
        programs: programs(path),
        on_path: on_path("counterfoil", path).is_some(),
        offers,
        own_contracts: project::contracts(root).is_some(),
        files: files.into_iter().map(|file| (file, standing(root, file))).collect(),
        notes,
    }
}

/// The programs that play agents and are on PATH.
pub(crate) fn programs(path: Option<&OsStr>) -> Vec<String> {
    let known = ["claude", "codex", "gemini"];
    known.into_iter().filter(|name| on_path(name, path).is_some()).map(str::to_owned).collect()
}

/// Where a program is, by PATH.
pub(crate) fn on_path(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|folder| folder.join(name)).find(|program| is_program(program))
}

/// Whether a file can be run.
pub(crate) fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The subagents in `.claude/agents`, by their heads.
pub(crate) fn subagents(root: &Path) -> Subagents {
    let mut found = Subagents::default();
    let (files, more) = markdown(&root.join(".claude/agents"));
    if more {
        found.notes.push(format!("only {MOST} files in .claude/agents were looked at"));
    }
    for path in files {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let head = match head(&path) {
            Ok(head) => head,
            Err(why) => {
                found.notes.push(format!("{shown} is left out: {why}"));
                continue;
            }
        };
        if let Some(odd) = &head.odd {
            found.notes.push(format!(
                "the head of {shown} is not YAML ({odd}); its lines were read instead"
            ));
        }
        let Some(name) = head.name else {
            found.notes.push(format!(
                "{shown} is left out: it names no agent; write `name: …` into its head"
            ));
            continue;
        };
        if let Some((other, _)) = found.named.get(&name) {
            found.notes.push(format!("{shown} is left out: {other} is called {name:?} too"));
            continue;
        }
        found.named.insert(name, (shown, head.tools));
    }
    found
}

fn head(path: &Path) -> Result<frontmatter::Head, String> {
    let mut bytes = Vec::new();
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    std::fs::File::open(path)
        .and_then(|file| file.take(HEAD).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // What was cut off in the middle of a character is no fault of the file.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => return Err(format!("byte {} is not UTF-8", error.valid_up_to())),
    };
    frontmatter::read(text).ok_or_else(|| "it has no head between two lines of ---".to_owned())
}

/// The Markdown files below a folder, sorted, and whether there are more than are looked at.
fn markdown(folder: &Path) -> (Vec<PathBuf>, bool) {
    let mut files = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < DEEPEST {
                    open.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|ending| ending == "md") {
                files.push(path);
            }
            // Far more than are taken: the first by name are, whatever order the folder has.
            if files.len() + open.len() > 50 * MOST {
                break;
            }
        }
    }
    files.sort();
    let more = files.len() > MOST;
    files.truncate(MOST);
    (files, more)
}
