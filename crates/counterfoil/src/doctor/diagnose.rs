//! Derives findings from the observed state. No I/O.

use super::probe::{CONFIG_FILE, Probe, ProgramProbe};
use super::{Diagnosis, Finding, Level, Program, State};
use super::{command_agents, own_settings};
use crate::report::project_checks;
use counterfoil_agents::adapters::Server;
use counterfoil_agents::config::CommandSettings;
use counterfoil_agents::environment::installed::{ProgramError, VersionFit};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::display_path;
use counterfoil_engine::config::{Agents, Channel};
use counterfoil_process::Containment;
use counterfoil_process::contain::{Kind, Support};
use std::collections::BTreeSet;

/// Lists the problems and the checks that passed.
pub(crate) fn diagnose(probe: &Probe) -> Diagnosis {
    let agents = probe.config.as_ref().map(|config| config.agents.clone()).unwrap_or_default();
    let needed = needed_programs(&agents);
    let programs: Vec<Program> = probe
        .programs
        .iter()
        .map(|program| program_state(program, needed.contains(program.name)))
        .collect();
    let mut findings = Vec::new();
    let mut passed = Vec::new();
    check_config(probe, &agents, &mut findings, &mut passed);
    check_checks(probe, &mut findings);
    check_programs(probe, &programs, &agents, &mut findings);
    let (wrong, runnable) = command_agents::check(&probe.commands);
    findings.extend(wrong);
    passed.extend(runnable);
    check_repository(probe, &mut findings, &mut passed);
    check_containment(probe, &mut findings, &mut passed);
    check_interactive_use(probe, &agents, &mut findings, &mut passed);
    findings.sort_by_key(|finding| finding.level);
    let checks = probe.config.iter().flat_map(|config| config.verify.checks.keys().cloned());
    let checks = checks.collect();
    Diagnosis {
        ok: findings.iter().all(|finding| finding.level != Level::Fail),
        repo: probe.repo.clone(),
        findings,
        programs,
        checks,
        passed,
    }
}

fn finding(
    level: Level,
    about: &str,
    message: impl Into<String>,
    fix: impl Into<String>,
) -> Finding {
    Finding { level, about: about.to_owned(), message: message.into(), fix: fix.into() }
}

/// The programs that the project assigns to agents. Unknown names are included.
fn needed_programs(agents: &Agents) -> BTreeSet<&str> {
    let specs = agents.named.values().filter_map(|settings| settings.spec.as_deref());
    let specs = specs.chain(agents.rest.as_deref()).filter(|spec| !spec.contains(':'));
    let configured = agents.named.iter().filter(|(_, settings)| settings.program.is_some());
    specs.chain(configured.map(|(name, _)| name.as_str())).collect()
}

fn program_state(probe: &ProgramProbe, needed: bool) -> Program {
    let (state, path, version) = match &probe.found {
        Ok(installed) => {
            let state = match installed.fit {
                VersionFit::Good => State::Good,
                VersionFit::TooOld => State::Old,
                VersionFit::Newer => State::Newer,
                VersionFit::Unknown => State::Unknown,
            };
            (state, Some(installed.program.clone()), installed.version.clone())
        }
        Err(ProgramError::Missing { .. }) => (State::Missing, None, None),
        Err(ProgramError::Broken { program, .. }) => (State::Broken, Some(program.clone()), None),
        Err(ProgramError::TooOld { program, version, .. }) => {
            (State::Old, Some(program.clone()), Some(version.clone()))
        }
    };
    let channels = probe.channels.iter().map(|channel| match channel {
        Channel::Native => "native",
        Channel::Submit => "submit",
    });
    Program {
        name: probe.name.to_owned(),
        state,
        needed,
        path,
        version,
        known: (probe.versions.0.to_owned(), probe.versions.1.to_owned()),
        login: probe.login.source.clone(),
        channels: if state.is_usable() { channels.chain(["text"]).collect() } else { Vec::new() },
        permissions: state.is_usable().then_some(probe.permissions),
        settings: if state.is_usable() {
            own_settings::lines(probe.name, &probe.settings)
        } else {
            Vec::new()
        },
        install: probe.install.to_owned(),
    }
}

/// Checks the configuration of the project.
fn check_config(
    probe: &Probe,
    agents: &Agents,
    findings: &mut Vec<Finding>,
    passed: &mut Vec<String>,
) {
    let config = match &probe.config {
        Ok(config) => config,
        Err(why) => {
            findings.push(finding(Level::Fail, CONFIG_FILE, why.clone(), "correct the file"));
            return;
        }
    };
    for (agent, why) in &probe.contract_errors {
        findings.push(finding(
            Level::Fail,
            CONFIG_FILE,
            format!("cannot load the contract of agent '{agent}': {why}"),
            "choose one from `counterfoil contract list`, or add your own to the folder `contracts` beside the file",
        ));
    }
    let known: Vec<&str> = probe.programs.iter().map(|program| program.name).collect();
    for name in &known {
        let settings = agents.named.get(*name);
        if settings.is_some_and(|settings| settings.command != CommandSettings::default()) {
            findings.push(finding(
                Level::Warn,
                CONFIG_FILE,
                format!("[agents.{name}.command] means nothing to {name}, whose output is known"),
                "remove the table; it is for `command:` agents",
            ));
        }
    }
    let specs = agents.named.iter().filter_map(|(name, settings)| {
        Some((format!("agents.{name}.spec"), settings.spec.as_deref()?))
    });
    for (key, spec) in specs.chain(agents.rest.as_deref().map(|rest| ("agent".to_owned(), rest))) {
        let is_known = known.contains(&spec)
            || ["acp:", "command:", "script:"].iter().any(|kind| spec.starts_with(kind));
        if !is_known {
            let hint = did_you_mean(spec, known.iter().copied()).unwrap_or_default();
            findings.push(finding(
                Level::Fail,
                CONFIG_FILE,
                format!("{key} is {spec:?}, which is not a known agent program; {hint}")
                    .trim_end_matches("; ")
                    .to_owned(),
                format!(
                    "use one of {}, acp:CMDLINE, command:CMDLINE or script:FILE",
                    known.join(", ")
                ),
            ));
        }
    }
    let bound = agents.named.values().filter(|settings| settings.contract.is_some()).count();
    if config.verify.source.is_some() && findings.is_empty() {
        passed.push(format!(
            "{CONFIG_FILE}: {bound} {} bound to contracts",
            if bound == 1 { "agent" } else { "agents" }
        ));
    }
}

/// Checks that the project has the checks that its contracts and its workflows rely on.
fn check_checks(probe: &Probe, findings: &mut Vec<Finding>) {
    let Ok(config) = &probe.config else { return };
    let configured: BTreeSet<&str> = config.verify.checks.keys().map(String::as_str).collect();
    for (agent, claims) in &probe.claims {
        for (check, fix) in project_checks::missing_for_claims(claims, &configured, &probe.proposed)
        {
            let message = format!(
                "there is no check '{check}'; claims in the contract of agent '{agent}' stay not verified until there is one"
            );
            findings.push(finding(Level::Warn, CONFIG_FILE, message, fix));
        }
    }
    let lacking = probe.lacking.iter();
    let lacking = lacking.map(|one| (display_path(&one.file), one.missing.as_slice()));
    for (check, fix) in project_checks::missing_for_workflows(lacking, &probe.proposed) {
        let message = format!("there is no check {check}");
        findings.push(finding(Level::Warn, CONFIG_FILE, message, fix));
    }
}

/// Checks the agent programs.
fn check_programs(
    probe: &Probe,
    programs: &[Program],
    agents: &Agents,
    findings: &mut Vec<Finding>,
) {
    for (program, probe) in programs.iter().zip(&probe.programs) {
        let level = if program.needed { Level::Fail } else { Level::Warn };
        let (oldest, newest) = &program.known;
        let version = program.version.as_deref().unwrap_or("?");
        let update = format!("`{}`", program.install);
        let mut add = |level, message: String, fix: String| {
            findings.push(finding(level, &program.name, message, fix));
        };
        match (program.state, &probe.found) {
            (State::Missing, Err(ProgramError::Missing { why: looked, .. })) if program.needed => {
                add(level, format!("the project uses it, but {looked}"), update);
            }
            (State::Broken, Err(trouble)) => add(level, trouble.to_string(), update),
            (State::Old, _) => add(
                level,
                format!(
                    "version {version} is not supported: it lacks required flags and events; the oldest supported version is {oldest}"
                ),
                update,
            ),
            (State::Newer, _) => add(
                Level::Warn,
                format!(
                    "version {version} is newer than {newest}, the newest tested version; its output format may have changed"
                ),
                format!("none needed while runs succeed; otherwise `{}@{newest}`", program.install),
            ),
            (State::Unknown, _) => {
                add(Level::Warn, "its version cannot be determined".to_owned(), update);
            }
            _ => {}
        }
        if program.state.is_usable() && program.login.is_none() {
            add(
                Level::Warn,
                match &probe.login.insufficient {
                    Some(why) => why.clone(),
                    None => "no credentials were found; it may still be logged in".to_owned(),
                },
                probe.login.instructions.to_owned(),
            );
        }
    }
    let has_spec =
        agents.rest.is_some() || agents.named.values().any(|settings| settings.spec.is_some());
    if !has_spec && !programs.iter().any(|program| program.state.is_usable()) {
        let commands: Vec<String> =
            programs.iter().map(|program| format!("`{}`", program.install)).collect();
        findings.push(finding(
            Level::Fail,
            "programs",
            "no supported agent program is installed",
            format!("install one: {}", commands.join(", or ")),
        ));
    }
}

/// Checks the repository, the state folder and process containment.
fn check_repository(probe: &Probe, findings: &mut Vec<Finding>, passed: &mut Vec<String>) {
    match (probe.is_repository, probe.has_git) {
        (true, true) => passed.push("git: repository found".to_owned()),
        (true, false) => findings.push(finding(
            Level::Fail,
            "git",
            "git is not on PATH, so changes made by agents cannot be observed",
            "install git",
        )),
        (false, _) => findings.push(finding(
            Level::Warn,
            "git",
            "this is not a git repository, so workspaces, commits and diffs are not available",
            "`git init`",
        )),
    }
    match &probe.state {
        Ok(state) if probe.writable => passed.push(format!("state: {}", display_path(state))),
        Ok(state) => findings.push(finding(
            Level::Fail,
            "state",
            format!("{} is not writable", display_path(state)),
            "make it, or the folder around it, writable, or choose another state folder with --state DIR",
        )),
        Err(why) => findings.push(finding(
            Level::Fail,
            "state",
            match &probe.config {
                // The finding about the file says why.
                Err(_) => format!(
                    "the folder with the runs is not known: {CONFIG_FILE}, which may name it, cannot be read"
                ),
                Ok(_) => format!("the folder with the runs is not known: {why}"),
            },
            "correct the file, or name the folder with --state DIR",
        )),
    }
    if let Some(folder) = &probe.world_writable {
        findings.push(finding(
            Level::Warn,
            "state",
            format!(
                "{} is writable by every user, who can change the inputs and results of agents",
                display_path(folder)
            ),
            format!("`chmod o-w {}`", display_path(folder)),
        ));
    }
    match probe.containment {
        Containment::Table => findings.push(finding(
            Level::Warn,
            "processes",
            format!(
                "processes started by agents are found by {}: one that leaves its session and hides or \
                 clears its environment before it was seen can outlive the run",
                probe.containment
            ),
            "none on this system; on Linux nothing outlives a run (docs/setup.md, macOS)",
        )),
        containment => passed.push(format!("processes: {containment}")),
    }
}

/// Checks that the configured containment works, and recommends one if none is configured.
fn check_containment(probe: &Probe, findings: &mut Vec<Finding>, passed: &mut Vec<String>) {
    let Ok(config) = &probe.config else { return };
    let (bwrap, landlock) = (&probe.kinds.bwrap, &probe.kinds.landlock);
    let configured = config.verify.contain.kind;
    let refused = match (configured, bwrap, landlock) {
        (Kind::Bwrap, Support::No(why), _) | (Kind::Landlock, _, Support::No(why)) => Some(why),
        _ => None,
    };
    if let Some(why) = refused {
        findings.push(finding(
            Level::Fail,
            "containment",
            format!("contain is \"{configured}\", but {why}"),
            "until then, commands, checks and command agents are not started",
        ));
        return;
    }
    let available = match (bwrap, landlock) {
        (Support::Yes(_), Support::Yes(_)) => "bwrap and landlock are available",
        (Support::Yes(_), Support::No(_)) => "bwrap is available",
        (Support::No(_), Support::Yes(_)) => "landlock is available, bwrap is not",
        (Support::No(_), Support::No(_)) => "neither bwrap nor landlock is available",
    };
    let limits = match landlock {
        Support::Yes(landlock) if !landlock.mounts => {
            "; without user name spaces, landlock hides nothing and allows no new entries beside .git"
        }
        _ => "",
    };
    let advice = match (configured, probe.kinds.recommended()) {
        (Kind::None, Some(kind)) => format!(
            "; recommended for commands, checks and command agents: contain = \"{kind}\" in {CONFIG_FILE}"
        ),
        (Kind::None, None) => String::new(),
        (kind, _) => format!("; contain is \"{kind}\""),
    };
    passed.push(format!("containment: {available}{limits}{advice}"));
}

/// Checks the hooks and the MCP server, for people who use the agent programs interactively.
fn check_interactive_use(
    probe: &Probe,
    agents: &Agents,
    findings: &mut Vec<Finding>,
    passed: &mut Vec<String>,
) {
    let tool = format!("mcp__{}__{}", Server::NAME, Server::TOOL);
    let is_bound =
        |name: &str| agents.named.get(name).is_some_and(|settings| settings.contract.is_some());
    let permissions =
        [tool.clone(), format!("mcp__{}", Server::NAME), format!("mcp__{}__*", Server::NAME)];
    for (name, (file, tools)) in probe.subagents.named.iter().filter(|(name, _)| is_bound(name)) {
        if let Some(tools) =
            tools.as_ref().filter(|tools| !tools.iter().any(|tool| permissions.contains(tool)))
        {
            findings.push(finding(
                Level::Warn,
                file,
                format!(
                    "`tools:` of '{name}' does not list {tool}, so the agent cannot submit its result with it"
                ),
                format!("tools: {}, {tool}", tools.join(", ")),
            ));
        }
    }
    for (file, why) in &probe.invalid_json {
        findings.push(finding(
            Level::Warn,
            file,
            format!("the file is not valid JSON: {why}"),
            "correct the file",
        ));
    }
    for file in &probe.hooks_disabled_in {
        findings.push(finding(
            Level::Warn,
            file,
            "`disableAllHooks` is set, so hooks do not validate results",
            "remove `\"disableAllHooks\": true`",
        ));
    }
    for (name, (command, exists)) in &probe.servers {
        if !exists {
            findings.push(finding(
                Level::Warn,
                ".mcp.json",
                format!("the command `{command}` of the MCP server '{name}' does not exist"),
                if name == Server::NAME {
                    "put counterfoil on PATH"
                } else {
                    "install it, or remove the entry"
                },
            ));
        }
    }
    let is_any_bound =
        probe.subagents.named.keys().any(|name| is_bound(name)) || is_bound("claude");
    if is_any_bound && !(probe.has_hooks && probe.servers.contains_key(Server::NAME)) {
        findings.push(finding(
            Level::Warn,
            "claude",
            "agents are bound to contracts, but hooks and the MCP server are not set up for interactive use",
            "`counterfoil init`",
        ));
    } else if probe.has_hooks {
        passed.push("hooks: installed".to_owned());
        if !probe.on_path {
            findings.push(finding(
                Level::Warn,
                "hooks",
                "`counterfoil` is not on PATH, and the hooks call it by that name",
                "put it on PATH",
            ));
        }
    }
}
