//! Inspects programs, files and folders. It draws no conclusions.

use super::Permissions;
use super::login::{self, Login};
use super::own_settings::{Owner, SettingsFile};
use super::workflows::{self, LackingWorkflow};
use crate::init::{FileState, Subagents, file_state, find_on_path, proposed_commands, subagents};
use crate::{project, state_folder, user_file};
use counterfoil_agents::adapters::{Adapter, Server, adapters};
use counterfoil_agents::command_agent::program_name;
use counterfoil_agents::config::Settings;
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_agents::environment::installed;
use counterfoil_agents::environment::installed::{Installed, ProgramError};
use counterfoil_agents::spec::AgentSpec;
use counterfoil_contract::claim::EffectiveClaim;
use counterfoil_contract::text::display_path;
use counterfoil_engine::config::{Channel, Config, FILE};
use counterfoil_flow::Access;
use counterfoil_process::contain::{Availability, Launcher};
use counterfoil_process::{Containment, containment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The observed state of the machine and the project.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The repository.
    pub(crate) repo: PathBuf,
    /// The configuration of the project, or why it cannot be loaded.
    pub(crate) config: Result<Config, String>,
    /// The agents whose contract cannot be loaded, with the error.
    pub(crate) contract_errors: BTreeMap<String, String>,
    /// The claims of the contracts that agents are bound to, by agent.
    pub(crate) claims: BTreeMap<String, Vec<EffectiveClaim>>,
    /// The project's own workflows that rely on checks which are not configured.
    pub(crate) lacking: Vec<LackingWorkflow>,
    /// The commands of checks that the build files of the project propose.
    pub(crate) proposed: BTreeMap<&'static str, String>,
    /// The supported agent programs.
    pub(crate) programs: Vec<ProgramProbe>,
    /// The `command:` agents that the project configures.
    pub(crate) commands: Vec<CommandProbe>,
    /// Whether the folder is in a git repository.
    pub(crate) is_repository: bool,
    /// Whether git is on PATH.
    pub(crate) has_git: bool,
    /// Whether `counterfoil` is on PATH.
    pub(crate) on_path: bool,
    /// The folder with the runs, or why it is not known.
    pub(crate) state: Result<PathBuf, String>,
    /// Whether the state folder, or the folder in which it would be created, is writable.
    pub(crate) writable: bool,
    /// The state folder or the repository, if every user may write to it.
    pub(crate) world_writable: Option<PathBuf>,
    /// The Claude Code subagents of the project.
    pub(crate) subagents: Subagents,
    /// The settings files that disable all hooks.
    pub(crate) hooks_disabled_in: Vec<String>,
    /// Whether the hooks of Counterfoil are set up.
    pub(crate) has_hooks: bool,
    /// The servers in `.mcp.json`: the command, and whether it exists.
    pub(crate) servers: BTreeMap<String, (String, bool)>,
    /// The files that are not valid JSON, with the error.
    pub(crate) invalid_json: Vec<(String, String)>,
    /// How descendants of child processes are found.
    pub(crate) containment: Containment,
    /// Which kinds of containment this system offers.
    pub(crate) kinds: Availability,
}

/// The observed state of an agent program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramProbe {
    /// The name of the program, as used in agent specs.
    pub(crate) name: &'static str,
    /// The command that installs it.
    pub(crate) install: &'static str,
    /// The oldest supported version and the newest tested one.
    pub(crate) versions: (&'static str, &'static str),
    /// The installed program, or why it is not usable.
    pub(crate) found: Result<Installed, ProgramError>,
    /// The detected login.
    pub(crate) login: Login,
    /// The channels for results that the program has besides its text, in the order of preference.
    pub(crate) channels: Vec<Channel>,
    /// What agents with each access may do.
    pub(crate) permissions: Permissions,
    /// The user's own settings of the program.
    pub(crate) settings: Vec<SettingsFile>,
}

/// A `command:` agent that the project configures.
#[derive(Clone, Debug)]
pub(crate) struct CommandProbe {
    /// The key of the spec in the configuration.
    pub(crate) key: String,
    /// The agent, or `NAME` if the spec is for all.
    pub(crate) agent: String,
    /// The command line, or why there is none.
    pub(crate) argv: Result<Vec<String>, String>,
    /// Its settings and those of its program.
    pub(crate) settings: Settings,
    /// The first program of its command lines that was not found.
    pub(crate) missing: Option<String>,
    /// The variables that look like credentials and that it does not see.
    pub(crate) hidden_keys: Vec<String>,
}

/// Inspects a project.
pub(crate) fn probe(repo: &Path) -> Probe {
    let home = project::config_folder(repo).unwrap_or_else(|| repo.to_owned());
    let config = project::load_config(&home).map_err(|error| error.to_string());
    let effective = config.clone().unwrap_or_default();
    let path = std::env::var_os("PATH");
    let path = path.as_deref();
    let state = state_folder::find(repo).map(|found| found.folder);
    let state = state.map_err(|error| format!("{error:#}"));
    let world_writable = [state.as_deref().ok(), Some(repo)]
        .into_iter()
        .flatten()
        .find(|folder| is_world_writable(folder))
        .map(Path::to_owned);
    let mut invalid_json = Vec::new();
    let settings: Vec<(String, Value)> = [".claude/settings.json", ".claude/settings.local.json"]
        .into_iter()
        .filter_map(|file| Some((file.to_owned(), read_json(repo, file, &mut invalid_json)?)))
        .chain(user_settings())
        .collect();
    let servers = read_json(repo, ".mcp.json", &mut invalid_json)
        .map(|value| servers(&value, repo, path))
        .unwrap_or_default();
    Probe {
        repo: repo.to_owned(),
        contract_errors: contract_errors(&effective, &home),
        claims: bound_claims(&effective, &home),
        lacking: if config.is_ok() { lacking(&effective, &home) } else { Vec::new() },
        proposed: proposed_commands(&home),
        programs: programs(&effective, &home, repo),
        commands: commands(&effective, &home, path),
        is_repository: project::repository_root(repo).is_some(),
        has_git: find_on_path("git", path).is_some(),
        on_path: find_on_path("counterfoil", path).is_some(),
        writable: state.as_deref().is_ok_and(is_writable),
        world_writable,
        state,
        subagents: subagents(repo),
        hooks_disabled_in: settings
            .iter()
            .filter(|(_, value)| value["disableAllHooks"] == true)
            .map(|(file, _)| file.clone())
            .collect(),
        has_hooks: settings.iter().any(|(_, value)| has_counterfoil_hooks(&value["hooks"])),
        servers,
        invalid_json,
        containment: containment(),
        kinds: Launcher::new(effective.verify.contain.clone(), std::env::current_exe().ok(), None)
            .availability(),
        config,
    }
}

/// Probes all programs in parallel, so that a slow one does not delay the others.
fn programs(config: &Config, home: &Path, repo: &Path) -> Vec<ProgramProbe> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = adapters()
            .iter()
            .map(|adapter| scope.spawn(move || probe_program(*adapter, config, home, repo)))
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn probe_program(adapter: &dyn Adapter, config: &Config, home: &Path, repo: &Path) -> ProgramProbe {
    // One for each program: lookups are cached under a lock.
    let mut environment = AgentEnvironment::from_process(config.agents.clone(), None);
    home.clone_into(&mut environment.folder);
    let settings = config.agents.settings(adapter.name(), adapter.name());
    let env =
        |name: &str| settings.env.get(name).map(Into::into).or_else(|| environment.variable(name));
    let mut channels = settings.channels().to_vec();
    channels.retain(|channel| *channel != Channel::Native || adapter.structured_output().is_some());
    ProgramProbe {
        name: adapter.name(),
        install: adapter.install(),
        versions: adapter.versions(),
        found: installed::inspect(adapter, &settings, &environment),
        login: login::detect(adapter.name(), &env, &adapter.configured_variables(&env)),
        channels,
        permissions: Permissions {
            read_only: adapter.permissions(Access::ReadOnly),
            workspace_write: adapter.permissions(Access::WorkspaceWrite),
        },
        settings: settings_files(adapter.name(), &env, repo),
    }
}

/// The settings files of a program that exist: the user's, and those of the project.
fn settings_files(
    program: &str,
    env: &dyn Fn(&str) -> Option<OsString>,
    repo: &Path,
) -> Vec<SettingsFile> {
    let (folder, file, in_project): (_, _, &[&str]) = match program {
        "claude" => (
            user_file::folder(env, "CLAUDE_CONFIG_DIR", ".claude"),
            "settings.json",
            &[".claude/settings.json", ".claude/settings.local.json"],
        ),
        "codex" => {
            (user_file::folder(env, "CODEX_HOME", ".codex"), "config.toml", &[".codex/config.toml"])
        }
        "gemini" => (user_file::gemini_folder(env), "settings.json", &[".gemini/settings.json"]),
        _ => return Vec::new(),
    };
    let read = |path: &Path| {
        if program == "codex" { user_file::read_toml(path) } else { user_file::read_json(path) }
    };
    let home = env("HOME").map(PathBuf::from);
    let user = folder.map(|folder| folder.join(file)).and_then(|path| {
        let name = login::display_path(&path, home.as_deref());
        Some(SettingsFile { name, of: Owner::User, content: read(&path)? })
    });
    let own = in_project.iter().filter_map(|file| {
        let content = read(&repo.join(file))?;
        Some(SettingsFile { name: (*file).to_owned(), of: Owner::Project, content })
    });
    user.into_iter().chain(own).collect()
}

/// The `command:` agents that the project configures.
fn commands(config: &Config, home: &Path, path: Option<&OsStr>) -> Vec<CommandProbe> {
    let agents = &config.agents;
    let named = agents.named.iter().filter_map(|(name, settings)| {
        Some((format!("agents.{name}.spec"), name.as_str(), settings.spec.as_deref()?))
    });
    let rest = agents.rest.as_deref().map(|spec| ("agent".to_owned(), "NAME", spec));
    let specs = rest.into_iter().chain(named).filter(|(_, _, spec)| spec.starts_with("command:"));
    let environment = AgentEnvironment::from_process(agents.clone(), None);
    let probe = |(key, agent, spec): (String, &str, &str)| {
        let argv = match AgentSpec::parse(spec) {
            Ok(AgentSpec::Command(argv)) => Ok(argv),
            Ok(_) => Err("it is not a command".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let program = argv.as_ref().map_or("", |argv| program_name(argv));
        let settings = agents.settings(agent, program);
        let lines = argv.iter().chain(&settings.command.resume);
        let mut programs = lines.filter_map(|argv| argv.first());
        let is_missing = |program: &&String| {
            if program.contains('/') {
                !home.join(program.as_str()).exists()
            } else {
                find_on_path(program, path).is_none()
            }
        };
        CommandProbe {
            key,
            agent: agent.to_owned(),
            missing: programs.find(is_missing).cloned(),
            hidden_keys: environment.keys_hidden_from_command(&settings),
            argv,
            settings,
        }
    };
    specs.map(probe).collect()
}

/// The agents whose contract cannot be loaded.
fn contract_errors(config: &Config, home: &Path) -> BTreeMap<String, String> {
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

/// The claims of the contracts that agents are bound to, by agent.
fn bound_claims(config: &Config, home: &Path) -> BTreeMap<String, Vec<EffectiveClaim>> {
    let named = config.agents.named.iter();
    let bound = named.filter_map(|(name, settings)| {
        let contract = project::contract(settings.contract.as_deref()?, &[], Some(home)).ok()?;
        Some((name.clone(), contract.effective_claims()))
    });
    bound.collect()
}

/// The project's own workflows that rely on checks which are not configured.
fn lacking(config: &Config, home: &Path) -> Vec<LackingWorkflow> {
    let configured = config.verify.checks.keys().map(String::as_str).collect();
    workflows::lacking(home, &configured)
}

/// The user settings of Claude Code.
fn user_settings() -> Option<(String, Value)> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let folder =
        variable("CLAUDE_CONFIG_DIR").or_else(|| Some(variable("HOME")?.join(".claude")))?;
    let value = read_json(&folder, "settings.json", &mut Vec::new())?;
    Some((display_path(&folder.join("settings.json")), value))
}

fn read_json(folder: &Path, file: &str, invalid_json: &mut Vec<(String, String)>) -> Option<Value> {
    let text = match file_state(folder, file) {
        FileState::Missing => return None,
        FileState::Text(text) => text,
        // A file that cannot be edited may still be readable.
        FileState::Unusable(_) => std::fs::read_to_string(folder.join(file)).ok()?,
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            invalid_json.push((file.to_owned(), error.to_string()));
            None
        }
    }
}

/// The MCP servers in a file, and whether their commands exist.
fn servers(
    value: &Value,
    repo: &Path,
    path: Option<&std::ffi::OsStr>,
) -> BTreeMap<String, (String, bool)> {
    let servers = value["mcpServers"].as_object().into_iter().flatten();
    let mut found: BTreeMap<String, (String, bool)> = servers
        .filter_map(|(name, server)| {
            let command = server["command"].as_str()?;
            // The command may contain a variable, which only the client expands.
            let exists = command.contains("${")
                || if command.contains('/') {
                    repo.join(command).exists()
                } else {
                    find_on_path(command, path).is_some()
                };
            Some((name.clone(), (command.to_owned(), exists)))
        })
        .take(100)
        .collect();
    // An entry with our name that does not start `counterfoil mcp` is another server.
    found.retain(|name, _| name != Server::NAME || value["mcpServers"][name]["args"][0] == "mcp");
    found
}

/// Whether a folder, or its nearest existing ancestor, is writable.
fn is_writable(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|folder| folder.exists());
    existing.is_some_and(|folder| {
        folder.is_dir() && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
    })
}

fn is_world_writable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o1002 == 0o002)
}

/// Whether one of the hooks runs `counterfoil hook claude-…`.
fn has_counterfoil_hooks(hooks: &Value) -> bool {
    let text = hooks.to_string();
    text.contains("counterfoil") && text.contains("hook claude-")
}

/// The configuration file of a project, as named in findings.
pub(super) const CONFIG_FILE: &str = FILE;
