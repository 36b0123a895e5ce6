//! What follows from what was seen. No I/O.

use super::look::{SETTINGS, Seen, SeenProgram};
use super::{Diagnosis, Finding, Level, Program, State};
use counterfoil_agents::agent::adapter::Server;
use counterfoil_agents::agent::installed::{Fit, Trouble};
use counterfoil_contract::did_you_mean;
use counterfoil_engine::config::{Agents, Channel};
use counterfoil_process::Containment;
use std::collections::BTreeSet;

/// Says what is in the way, and what is fine.
pub(crate) fn judge(seen: &Seen) -> Diagnosis {
    let agents = seen.config.as_ref().map(|config| config.agents.clone()).unwrap_or_default();
    let needed = needed(&agents);
    let programs: Vec<Program> =
        seen.programs.iter().map(|one| program(one, needed.contains(one.name))).collect();
    let mut findings = Vec::new();
    let mut fine = Vec::new();
    settings(seen, &agents, &mut findings, &mut fine);
    played(seen, &programs, &agents, &mut findings);
    place(seen, &mut findings, &mut fine);
    people(seen, &agents, &mut findings, &mut fine);
    findings.sort_by_key(|finding| finding.level);
    Diagnosis {
        ok: findings.iter().all(|finding| finding.level != Level::Fail),
        repo: seen.repo.clone(),
        findings,
        programs,
        fine,
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

/// The programs that the project says play, and other words that stand where a program should.
fn needed(agents: &Agents) -> BTreeSet<&str> {
    let specs = agents.named.values().filter_map(|settings| settings.spec.as_deref());
    let specs = specs.chain(agents.rest.as_deref()).filter(|spec| !spec.contains(':'));
    let set_up = agents.named.iter().filter(|(_, settings)| settings.program.is_some());
    specs.chain(set_up.map(|(name, _)| name.as_str())).collect()
}

fn program(seen: &SeenProgram, needed: bool) -> Program {
    let (state, path, version) = match &seen.found {
        Ok(installed) => {
            let state = match installed.fit {
                Fit::Good => State::Good,
                Fit::TooOld => State::Old,
                Fit::Newer => State::Newer,
                Fit::Unknown => State::Unknown,
            };
            (state, Some(installed.program.clone()), installed.version.clone())
        }
        Err(Trouble::Missing { .. }) => (State::Missing, None, None),
        Err(Trouble::Broken { program, .. }) => (State::Broken, Some(program.clone()), None),
        Err(Trouble::TooOld { program, version, .. }) => {
            (State::Old, Some(program.clone()), Some(version.clone()))
        }
    };
    let channels = seen.channels.iter().map(|channel| match channel {
        Channel::Native => "native",
        Channel::Submit => "submit",
    });
    Program {
        name: seen.name.to_owned(),
        state,
        needed,
        path,
        version,
        known: (seen.versions.0.to_owned(), seen.versions.1.to_owned()),
        login: seen.login.by.clone(),
        channels: if state.plays() { channels.chain(["text"]).collect() } else { Vec::new() },
        install: seen.install.to_owned(),
    }
}

/// What the project says.
fn settings(seen: &Seen, agents: &Agents, findings: &mut Vec<Finding>, fine: &mut Vec<String>) {
    let config = match &seen.config {
        Ok(config) => config,
        Err(why) => {
            findings.push(finding(
                Level::Fail,
                SETTINGS,
                why.clone(),
                "mend the file, or remove what it does not know",
            ));
            return;
        }
    };
    for (agent, why) in &seen.unbound {
        findings.push(finding(
            Level::Fail,
            SETTINGS,
            format!("the agent '{agent}' is bound to a contract that cannot be had: {why}"),
            "`counterfoil contract list` lists all; contracts of your own stand in the folder contracts beside it",
        ));
    }
    let known: Vec<&str> = seen.programs.iter().map(|program| program.name).collect();
    let specs = agents.named.iter().filter_map(|(name, settings)| {
        Some((format!("agents.{name}.spec"), settings.spec.as_deref()?))
    });
    for (place, spec) in specs.chain(agents.rest.as_deref().map(|rest| ("agent".to_owned(), rest)))
    {
        let is_known =
            known.contains(&spec) || spec.starts_with("command:") || spec.starts_with("script:");
        if !is_known {
            let near = did_you_mean(spec, known.iter().copied()).unwrap_or_default();
            findings.push(finding(
                Level::Fail,
                SETTINGS,
                format!("{place} is {spec:?}, and nobody is called so; {near}")
                    .trim_end_matches("; ")
                    .to_owned(),
                format!("write one of {}, command:CMDLINE, script:FILE", known.join(", ")),
            ));
        }
    }
    let bound = agents.named.values().filter(|settings| settings.contract.is_some()).count();
    if config.verify.source.is_some() && findings.is_empty() {
        fine.push(format!(
            "{SETTINGS}: {bound} {} bound to contracts",
            if bound == 1 { "agent" } else { "agents" }
        ));
    }
}

/// The programs that play.
fn played(seen: &Seen, programs: &[Program], agents: &Agents, findings: &mut Vec<Finding>) {
    for (program, seen) in programs.iter().zip(&seen.programs) {
        let level = if program.needed { Level::Fail } else { Level::Warn };
        let (oldest, newest) = &program.known;
        let version = program.version.as_deref().unwrap_or("?");
        let update = format!("`{}`", program.install);
        let mut add = |level, message: String, fix: String| {
            findings.push(finding(level, &program.name, message, fix))
        };
        match (program.state, &seen.found) {
            (State::Missing, Err(Trouble::Missing { looked, .. })) if program.needed => {
                add(level, format!("the project wants it, and {looked}"), update);
            }
            (State::Broken, Err(trouble)) => add(level, trouble.to_string(), update),
            (State::Old, _) => add(
                level,
                format!(
                    "version {version} is older than {oldest}: flags and events that results rest on are not there"
                ),
                update,
            ),
            (State::Newer, _) => add(
                Level::Warn,
                format!(
                    "version {version} is newer than {newest}, the last that was tried: its events may have changed"
                ),
                format!("nothing, as long as runs go well; else `{}@{newest}`", program.install),
            ),
            (State::Unknown, _) => {
                add(Level::Warn, "it does not say which version it is".to_owned(), update);
            }
            _ => {}
        }
        if program.state.plays() && program.login.is_none() {
            add(
                Level::Warn,
                "no login was seen; whether there is one shows when it is asked".to_owned(),
                seen.login.way.to_owned(),
            );
        }
    }
    let others =
        agents.rest.is_some() || agents.named.values().any(|settings| settings.spec.is_some());
    if !others && !programs.iter().any(|program| program.state.plays()) {
        let ways: Vec<String> =
            programs.iter().map(|program| format!("`{}`", program.install)).collect();
        findings.push(finding(
            Level::Fail,
            "programs",
            "none of the programs that play agents is there",
            format!("install one: {}", ways.join(", or ")),
        ));
    }
}

/// The place where runs happen.
fn place(seen: &Seen, findings: &mut Vec<Finding>, fine: &mut Vec<String>) {
    let state = seen.repo.join(crate::project::STATE);
    match (seen.repository, seen.git) {
        (true, true) => fine.push("git: a repository".to_owned()),
        (true, false) => findings.push(finding(
            Level::Fail,
            "git",
            "this is a repository, and git is not on PATH: what agents change cannot be seen",
            "install git",
        )),
        (false, _) => findings.push(finding(
            Level::Warn,
            "git",
            "this is not a git repository: workspaces, commits and diffs are not to be had",
            "`git init`",
        )),
    }
    if seen.writable {
        fine.push(format!("state: {}", state.display()));
    } else {
        findings.push(finding(
            Level::Fail,
            "state",
            format!("{} cannot be written to", state.display()),
            format!("`chmod u+w {}`, or keep runs elsewhere with --state DIR", seen.repo.display()),
        ));
    }
    if let Some(folder) = &seen.open_to_all {
        findings.push(finding(
            Level::Warn,
            "state",
            format!(
                "anybody may write to {}, and so change what agents are given and what they hand in",
                folder.display()
            ),
            format!("`chmod o-w {}`", folder.display()),
        ));
    }
    match seen.containment {
        Containment::ProcessGroup => findings.push(finding(
            Level::Warn,
            "processes",
            format!("what agents start is found by {}", seen.containment),
            "nothing here; on Linux more can be done",
        )),
        contained => fine.push(format!("processes: {contained}")),
    }
}

/// What is in the way of people who use the programs by hand.
fn people(seen: &Seen, agents: &Agents, findings: &mut Vec<Finding>, fine: &mut Vec<String>) {
    let tool = format!("mcp__{}__{}", Server::NAME, Server::TOOL);
    let is_bound =
        |name: &str| agents.named.get(name).is_some_and(|settings| settings.contract.is_some());
    let whole =
        [tool.clone(), format!("mcp__{}", Server::NAME), format!("mcp__{}__*", Server::NAME)];
    for (name, (file, tools)) in seen.subagents.named.iter().filter(|(name, _)| is_bound(name)) {
        if let Some(tools) =
            tools.as_ref().filter(|tools| !tools.iter().any(|one| whole.contains(one)))
        {
            findings.push(finding(
                Level::Warn,
                file,
                format!(
                    "`tools:` of '{name}' does not list {tool}: it cannot hand in its result by the tool"
                ),
                format!("tools: {}, {tool}", tools.join(", ")),
            ));
        }
    }
    for (file, why) in &seen.odd {
        findings.push(finding(
            Level::Warn,
            file,
            format!("it is not JSON: {why}"),
            "mend the file",
        ));
    }
    for file in &seen.hookless {
        findings.push(finding(
            Level::Warn,
            file,
            "`disableAllHooks` is set: hooks do not hold anybody to a contract",
            "take `\"disableAllHooks\": true` out of it",
        ));
    }
    for (name, (command, is_there)) in &seen.servers {
        if !is_there {
            findings.push(finding(
                Level::Warn,
                ".mcp.json",
                format!("the server '{name}' is run by `{command}`, which is not there"),
                if name == Server::NAME {
                    "put counterfoil on PATH"
                } else {
                    "install it, or take the entry out"
                },
            ));
        }
    }
    let bound = seen.subagents.named.keys().any(|name| is_bound(name)) || is_bound("claude");
    if bound && !(seen.hooks && seen.servers.contains_key(Server::NAME)) {
        findings.push(finding(
            Level::Warn,
            "claude",
            "agents are bound to contracts, and nothing holds them to it when people use them by hand",
            "`counterfoil init`",
        ));
    } else if seen.hooks {
        fine.push("hooks: attached".to_owned());
        if !seen.on_path {
            findings.push(finding(
                Level::Warn,
                "hooks",
                "`counterfoil` is not on PATH, and hooks call it so",
                "put it on PATH",
            ));
        }
    }
}
