//! Looking around: programs, files, folders. It decides nothing.

use super::login::{self, Login};
use crate::init::{Standing, Subagents, on_path, standing, subagents};
use crate::project;
use counterfoil_agents::agent::Equipment;
use counterfoil_agents::agent::adapter::{Adapter, Server, adapters};
use counterfoil_agents::agent::installed::{self, Installed, Trouble};
use counterfoil_engine::config::{Channel, Config, FILE};
use counterfoil_process::{Containment, containment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Where.
    pub(crate) repo: PathBuf,
    /// What the project says, or what is wrong with that.
    pub(crate) config: Result<Config, String>,
    /// Contracts that are bound to agents and cannot be had: by the agent, why.
    pub(crate) unbound: BTreeMap<String, String>,
    /// The programs that play agents.
    pub(crate) programs: Vec<SeenProgram>,
    /// Whether it is a git repository.
    pub(crate) repository: bool,
    /// Whether git is on PATH.
    pub(crate) git: bool,
    /// Whether we are on PATH.
    pub(crate) on_path: bool,
    /// Whether the state folder, or the folder it would be made in, can be written to.
    pub(crate) writable: bool,
    /// The state folder, or the repository around it, if anybody may write to it.
    pub(crate) open_to_all: Option<PathBuf>,
    /// The project's subagents.
    pub(crate) subagents: Subagents,
    /// Files that say that no hooks are run.
    pub(crate) hookless: Vec<String>,
    /// Whether our hooks are attached.
    pub(crate) hooks: bool,
    /// Servers in `.mcp.json`: the command, and whether it is there.
    pub(crate) servers: BTreeMap<String, (String, bool)>,
    /// Files that cannot be read as what they should be.
    pub(crate) odd: Vec<(String, String)>,
    /// By what means nothing of a child is left.
    pub(crate) containment: Containment,
}

/// What was seen of a program.
#[derive(Clone, Debug)]
pub(crate) struct SeenProgram {
    /// As it is named in specs.
    pub(crate) name: &'static str,
    /// How it is installed.
    pub(crate) install: &'static str,
    /// The versions that are known to work.
    pub(crate) versions: (&'static str, &'static str),
    /// What came of looking for it.
    pub(crate) found: Result<Installed, Trouble>,
    /// Its login.
    pub(crate) login: Login,
    /// By which ways it can hand back a result beside the text.
    pub(crate) channels: Vec<Channel>,
}

/// Looks around in a project.
pub(crate) fn look(repo: &Path) -> Seen {
    let home = project::home(repo).unwrap_or_else(|| repo.to_owned());
    let config = project::config(&home).map_err(|error| error.to_string());
    let known = config.clone().unwrap_or_default();
    let path = std::env::var_os("PATH");
    let path = path.as_deref();
    let state = repo.join(project::STATE);
    let mut odd = Vec::new();
    let settings: Vec<(String, Value)> = [".claude/settings.json", ".claude/settings.local.json"]
        .into_iter()
        .filter_map(|file| Some((file.to_owned(), read(repo, file, &mut odd)?)))
        .chain(user_settings())
        .collect();
    let servers = read(repo, ".mcp.json", &mut odd)
        .map(|value| servers(&value, repo, path))
        .unwrap_or_default();
    Seen {
        repo: repo.to_owned(),
        unbound: unbound(&known, &home),
        programs: programs(&known, &home),
        repository: project::top(repo).is_some(),
        git: on_path("git", path).is_some(),
        on_path: on_path("counterfoil", path).is_some(),
        writable: may_write(&state),
        open_to_all: [state.as_path(), repo]
            .into_iter()
            .find(|folder| is_open_to_all(folder))
            .map(Path::to_owned),
        subagents: subagents(repo),
        hookless: settings
            .iter()
            .filter(|(_, value)| value["disableAllHooks"] == true)
            .map(|(file, _)| file.clone())
            .collect(),
        hooks: settings.iter().any(|(_, value)| has_our_hooks(&value["hooks"])),
        servers,
        odd,
        containment: containment(),
        config,
    }
}

/// The programs, asked for their versions side by side: one that is slow does not hold up the
/// others.
fn programs(config: &Config, home: &Path) -> Vec<SeenProgram> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = adapters()
            .iter()
            .map(|adapter| scope.spawn(move || program(*adapter, config, home)))
            .collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}

fn program(adapter: &dyn Adapter, config: &Config, home: &Path) -> SeenProgram {
    // Each its own: what was looked at is kept under a lock.
    let mut equipment = Equipment::of_this_process(config.agents.clone(), None);
    home.clone_into(&mut equipment.folder);
    let settings = config.agents.settings(adapter.name(), adapter.name());
    let ours =
        |name: &str| settings.env.get(name).map(Into::into).or_else(|| equipment.variable(name));
    let mut channels = vec![Channel::Native, Channel::Submit];
    channels.retain(|channel| {
        settings.has(*channel) && (*channel != Channel::Native || adapter.takes_schema())
    });
    SeenProgram {
        name: adapter.name(),
        install: adapter.install(),
        versions: adapter.versions(),
        found: installed::look(adapter, &settings, &equipment),
        login: login::seen(adapter.name(), &ours, &adapter.named_variables(&ours)),
        channels,
    }
}

/// Contracts that are bound and cannot be had.
fn unbound(config: &Config, home: &Path) -> BTreeMap<String, String> {
    let bound = config
        .agents
        .named
        .iter()
        .filter_map(|(name, settings)| Some((name, settings.contract.as_deref()?)));
    bound
        .filter_map(|(name, id)| {
            let error = project::contract(id, &[], Some(home)).err()?;
            Some((name.clone(), format!("{error:#}")))
        })
        .collect()
}

/// The settings of Claude Code for all projects of this user.
fn user_settings() -> Option<(String, Value)> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let folder =
        variable("CLAUDE_CONFIG_DIR").or_else(|| Some(variable("HOME")?.join(".claude")))?;
    let value = read(&folder, "settings.json", &mut Vec::new())?;
    Some((folder.join("settings.json").display().to_string(), value))
}

fn read(folder: &Path, file: &str, odd: &mut Vec<(String, String)>) -> Option<Value> {
    let text = match standing(folder, file) {
        Standing::Missing => return None,
        Standing::Text(text) => text,
        // Whether it can be changed does not matter here.
        Standing::Unusable(_) => std::fs::read_to_string(folder.join(file)).ok()?,
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            odd.push((file.to_owned(), error.to_string()));
            None
        }
    }
}

/// The servers that a file names, and whether their commands are there.
fn servers(
    value: &Value,
    repo: &Path,
    path: Option<&std::ffi::OsStr>,
) -> BTreeMap<String, (String, bool)> {
    let servers = value["mcpServers"].as_object().into_iter().flatten();
    let mut found: BTreeMap<String, (String, bool)> = servers
        .filter_map(|(name, server)| {
            let command = server["command"].as_str()?;
            // What stands for something else is not ours to read.
            let is_there = command.contains("${")
                || if command.contains('/') {
                    repo.join(command).exists()
                } else {
                    on_path(command, path).is_some()
                };
            Some((name.clone(), (command.to_owned(), is_there)))
        })
        .take(100)
        .collect();
    // Whoever has a server of another kind under our name has no server of ours.
    found.retain(|name, _| name != Server::NAME || value["mcpServers"][name]["args"][0] == "mcp");
    found
}

/// Whether a folder, or the nearest one above it that is there, may be written to.
fn may_write(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.exists());
    there.is_some_and(|folder| {
        folder.is_dir() && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
    })
}

fn is_open_to_all(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o1002 == 0o002)
}

/// Whether our hooks are among those of a file, however they are called.
fn has_our_hooks(hooks: &Value) -> bool {
    let text = hooks.to_string();
    text.contains("counterfoil") && text.contains("hook claude-")
}

/// The file of the settings, for words.
pub(super) const SETTINGS: &str = FILE;
