//! Decides what `init` adds to which file. No I/O.

use super::change::{FileChange, FileEdit};
use super::checks;
use super::json;
use super::project_file::FileState;
use super::suggest::{Suggestion, is_named_like, suggest};
use super::survey::{
    CLAUDE_SERVERS, CLAUDE_SETTINGS, CODEX_SETTINGS, CONFIG_SCHEMA, GEMINI_SETTINGS, Survey,
};
use super::toml;
use super::trust::FolderTrust;
use crate::project;
use crate::schema::FileKind;
use crate::shell;
use counterfoil_agents::adapters::Server;
use counterfoil_contract::suggest::how_to_add_check;
use counterfoil_contract::text::{display_path, pluralize};
use counterfoil_engine::config::{Config, FILE};
use serde_json::{Value, json as literal};
use std::collections::BTreeMap;

/// The planned edits of a project.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The files to write.
    pub(crate) files: Vec<PlannedFile>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// The files that cannot be edited, and why.
    pub(crate) problems: Vec<String>,
}

/// The planned edit of one file.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFile {
    /// The path of the file relative to the project.
    pub(crate) file: &'static str,
    /// The current text, or none if the file does not exist.
    pub(crate) before: Option<String>,
    /// The new text.
    pub(crate) after: String,
    /// The recorded change, for undoing it.
    pub(crate) change: FileChange,
    /// Whether the text is the same for every project, so that people need not read it.
    pub(crate) is_generated: bool,
}

/// The first line of a new configuration file: where editors find its schema.
const SCHEMA_LINE: &str = "#:schema schemas/counterfoil-config.schema.json\n";

/// What a configuration file says about checks if none can be proposed.
const COMMENTED_CHECKS: &str = "\
# Commands that verify what agents claim. Fill in those of the project:
# [checks]
# test = \"make test\"
# lint = \"make lint\"
";

/// The most agents for which candidates are listed in a comment.
const MAX_AMBIGUOUS: usize = 50;

/// The most agents without a similar contract that are named in a note.
const MAX_NAMED: usize = 5;

/// The reason why a file is not edited.
type Reason = String;

/// The contracts that a person chose for agents, by agent.
pub(crate) type Bindings = BTreeMap<String, String>;

/// The agents that have the name of one of our contracts, or of its agent, with that contract. A name
/// is no reason to bind them: somebody has to say that the agent returns what the contract asks for.
pub(crate) fn unasked_bindings(survey: &Survey, chosen: &Bindings) -> Bindings {
    let config = current_config(survey);
    let agents = survey.subagents.named.keys().filter(|name| {
        let settings = config.agents.named.get(*name);
        !chosen.contains_key(*name) && settings.is_none_or(|settings| settings.contract.is_none())
    });
    let same_name = |name: &String| match suggest(name, &survey.contracts) {
        Suggestion::Exact(id) if !survey.is_own_contract(&id) => Some((name.clone(), id)),
        _ => None,
    };
    agents.filter_map(same_name).collect()
}

/// The contract that an agent is bound to already.
pub(crate) fn current_binding(survey: &Survey, agent: &str) -> Option<String> {
    bound_to(&current_config(survey), agent).map(str::to_owned)
}

fn current_config(survey: &Survey) -> Config {
    match survey.files.get(FILE) {
        Some(FileState::Text(text)) => Config::parse(text).unwrap_or_default(),
        _ => Config::default(),
    }
}

/// Plans the edits of a project. Agents are bound to contracts that a person chose, and to contracts
/// of the project with their name.
pub(crate) fn plan(survey: &Survey, bindings: &Bindings) -> Plan {
    let mut plan = Plan::default();
    plan.notes.extend(survey.notes.iter().chain(&survey.subagents.notes).cloned());
    let has = |marker: &str| survey.markers.contains(&marker);
    let claude = has(".claude") || survey.programs.iter().any(|program| program == "claude");
    plan.edit_file(survey, FILE, SCHEMA_LINE, |edit, notes| {
        add_project_settings(survey, bindings, edit, notes)
    });
    plan.add_config_schema(survey);
    // Without a contract the hooks have nothing to validate and the MCP server does not start.
    if !plan.has_bound_agent(survey) {
        plan.notes.push(
            "no agent is bound to a contract, so hooks and the MCP server are not set up; bind one with \
             `counterfoil init --bind AGENT=CONTRACT` (`counterfoil contract list` lists contracts)"
                .to_owned(),
        );
        return plan;
    }
    if claude {
        plan.edit_file(survey, CLAUDE_SETTINGS, json::EMPTY, |edit, _| add_claude_hooks(edit));
        plan.edit_file(survey, CLAUDE_SERVERS, json::EMPTY, |edit, notes| {
            add_json_server(survey, edit, notes)
        });
    }
    if has(".gemini") {
        plan.edit_file(survey, GEMINI_SETTINGS, json::EMPTY, |edit, notes| {
            add_json_server(survey, edit, notes)
        });
    }
    if has(".codex") {
        plan.edit_file(survey, CODEX_SETTINGS, "", |edit, _| add_codex_server(survey, edit));
    }
    plan.notes.extend(what_must_be_trusted(survey, &plan.files));
    if !plan.files.is_empty() && !survey.on_path {
        plan.notes.push(
            "`counterfoil` is not on PATH, and the added entries call it by that name".to_owned(),
        );
    }
    plan
}

impl Plan {
    /// Whether an agent is bound to a contract, in the current or in the planned configuration.
    fn has_bound_agent(&self, survey: &Survey) -> bool {
        let planned = self
            .files
            .iter()
            .find(|planned| planned.file == FILE)
            .map(|planned| planned.after.as_str());
        let text = match (planned, survey.files.get(FILE)) {
            (Some(after), _) => after,
            (None, Some(FileState::Text(text))) => text,
            _ => return false,
        };
        Config::parse(text)
            .is_ok_and(|config| config.agents.named.values().any(|agent| agent.contract.is_some()))
    }

    /// Plans the schema that a new configuration file names, unless it is there.
    fn add_config_schema(&mut self, survey: &Survey) {
        let names_it = |file: &PlannedFile| file.file == FILE && file.before.is_none();
        let is_there = !matches!(survey.files.get(CONFIG_SCHEMA), None | Some(FileState::Missing));
        if is_there || !self.files.iter().any(names_it) {
            return;
        }
        let text = FileKind::Config.text();
        self.files.push(PlannedFile {
            file: CONFIG_SCHEMA,
            before: None,
            after: text.to_owned(),
            change: FileChange::of_new_file(CONFIG_SCHEMA, text),
            is_generated: true,
        });
    }

    /// Plans the edit of one file. A file that cannot be edited becomes a note.
    fn edit_file(
        &mut self,
        survey: &Survey,
        file: &'static str,
        empty: &str,
        add: impl FnOnce(&mut FileEdit, &mut Vec<String>) -> Result<(), Reason>,
    ) {
        let before = match survey.files.get(file) {
            None | Some(FileState::Missing) => None,
            Some(FileState::Text(text)) => Some(text.clone()),
            Some(FileState::Unusable(why)) => {
                self.problems.push(format!("{file}: {why}"));
                return;
            }
        };
        let creates_folder = before.is_none()
            && file.split_once('/').is_some_and(|(folder, _)| !survey.markers.contains(&folder));
        let mut edit = FileEdit::new(before, empty);
        match add(&mut edit, &mut self.notes) {
            Ok(()) if edit.is_changed() => self.files.push(PlannedFile {
                file,
                before: edit.before().map(str::to_owned),
                after: edit.text().to_owned(),
                change: edit.to_change(file, creates_folder),
                is_generated: false,
            }),
            Ok(()) => {}
            Err(why) => self.problems.push(format!("{file}: {why}")),
        }
    }
}

/// What a person has to trust before the programs use what is added.
fn what_must_be_trusted(survey: &Survey, files: &[PlannedFile]) -> Vec<String> {
    let edits = |names: &[&str]| files.iter().any(|file| names.contains(&file.file));
    let root = display_path(&survey.trust.root);
    let mut notes = Vec::new();
    if edits(&[CLAUDE_SETTINGS, CLAUDE_SERVERS]) {
        notes.push(format!(
            "Claude Code asks at its next start here whether to trust the folder and to use the server in \
             {CLAUDE_SERVERS}; the hooks and the server are off until you agree"
        ));
    }
    let codex = format!("Codex reads {CODEX_SETTINGS} only in projects that it trusts");
    match survey.trust.codex {
        _ if !edits(&[CODEX_SETTINGS]) => {}
        FolderTrust::Trusted => {}
        FolderTrust::Unknown => notes.push(format!(
            "{codex}: agree when it asks at its next start here, or add [projects.\"{root}\"] with \
             trust_level = \"trusted\" to its config.toml in your home"
        )),
        FolderTrust::Untrusted => notes.push(format!(
            "{codex}, and its config.toml in your home does not trust this one: set trust_level of \
             [projects.\"{root}\"] to \"trusted\""
        )),
    }
    if edits(&[GEMINI_SETTINGS]) {
        let gemini = "Gemini CLI connects to servers only in folders that it trusts";
        match survey.trust.gemini {
            FolderTrust::Trusted => {}
            FolderTrust::Unknown => {
                notes.push(format!("{gemini}: agree when it asks at its next start here"));
            }
            FolderTrust::Untrusted => notes.push(format!(
                "{gemini}, and it was told not to trust this one: change that with /permissions in it"
            )),
        }
        notes.push(format!(
            "Gemini CLI asks before each call of the server's tools: allow them when it asks, or add \
             \"trust\": true to mcpServers.{} in {GEMINI_SETTINGS}",
            Server::NAME
        ));
    }
    notes
}

/// Adds the default program, checks and the contracts of agents to the project's configuration.
fn add_project_settings(
    survey: &Survey,
    bindings: &Bindings,
    edit: &mut FileEdit,
    notes: &mut Vec<String>,
) -> Result<(), Reason> {
    toml::validate(edit.text())?;
    let config =
        Config::parse(edit.text()).map_err(|error| format!("{error}; it was not changed"))?;
    if edit.before().is_none() && config.agents.rest.is_none() {
        match survey.programs.as_slice() {
            [] => {}
            [one] => edit.add_toml(&["agent"], literal!(one))?,
            [first, others @ ..] => edit.add_comment(&format!(
                "# The program for agents without one of their own; also installed: {}.\n# agent = \"{first}\"\n",
                others.join(", ")
            ))?,
        }
    }
    let mut has_none = false;
    // A project that has some was asked before, or knows what it wants.
    if config.verify.checks.is_empty() {
        let proposed = checks::propose(&survey.build_files, &survey.taken_names);
        for check in &proposed.checks {
            edit.add_toml(&["checks", check.name], literal!(&check.run))?;
        }
        notes.extend(proposed.notes);
        has_none = proposed.checks.is_empty() && !toml::contains(edit.text(), &["checks".into()]);
        if has_none {
            notes.push(format!(
                "no check is proposed, because no build file that init reads (Makefile, package.json, \
                 Cargo.toml, pyproject.toml, go.mod) names a command; claims about tests stay not \
                 verified until there is one: fill in the commented lines of [checks] in {FILE}"
            ));
        } else if !proposed.checks.iter().any(|check| check.name == "test") {
            notes.push(format!(
                "no command that runs the tests was found; if the project has one, {}",
                how_to_add_check("test", None, FILE)
            ));
        }
    }
    add_bindings(survey, &config, bindings, edit, notes)?;
    // At the end, where a table can begin. They may be there from an earlier time.
    if has_none && !edit.text().replace("\r\n", "\n").contains("# [checks]\n") {
        edit.add_comment(COMMENTED_CHECKS)?;
    }
    Ok(())
}

/// The contract that an agent is bound to.
fn bound_to<'c>(config: &'c Config, agent: &str) -> Option<&'c str> {
    config.agents.named.get(agent)?.contract.as_deref()
}

/// Adds the contracts of agents.
fn add_bindings(
    survey: &Survey,
    config: &Config,
    bindings: &Bindings,
    edit: &mut FileEdit,
    notes: &mut Vec<String>,
) -> Result<(), Reason> {
    for (name, id) in bindings {
        if bound_to(config, name).is_none() {
            edit.add_toml(&["agents", name, "contract"], literal!(id))?;
        }
    }
    let unasked = unasked_bindings(survey, bindings);
    if unasked.len() > MAX_NAMED {
        notes.push(format!(
            "not bound: {} with the name of a built-in contract or of its agent",
            pluralize(unasked.len() - MAX_NAMED, "more agent")
        ));
    }
    for (name, id) in unasked.iter().take(MAX_NAMED) {
        let not_bound = if is_named_like(id, name) {
            format!("agent '{name}' has the name of the contract {id} and is not bound to it")
        } else {
            format!(
                "the contract {id} is for an agent named '{name}', and yours is not bound to it"
            )
        };
        notes.push(format!(
            "{not_bound}; if the agent returns what `counterfoil contract show {id}` describes, bind \
             it with `counterfoil init --bind {}`",
            shell::quote(&format!("{name}={id}"))
        ));
    }
    let mut without_match = Vec::new();
    let mut ambiguous = 0;
    for name in survey.subagents.named.keys() {
        if bound_to(config, name).is_some()
            || bindings.contains_key(name)
            || unasked.contains_key(name)
        {
            continue;
        }
        match suggest(name, &survey.contracts) {
            Suggestion::Exact(id) => edit.add_toml(&["agents", name, "contract"], literal!(id))?,
            Suggestion::Ambiguous(candidates) => {
                ambiguous += 1;
                let header = format!("# {}\n", toml::header(&["agents".to_owned(), name.clone()]));
                if ambiguous <= MAX_AMBIGUOUS
                    && !edit.text().replace("\r\n", "\n").contains(&header)
                {
                    let lines: String =
                        candidates.iter().map(|id| format!("# contract = \"{id}\"\n")).collect();
                    edit.add_comment(&format!(
                        "# Contracts with a similar name:\n{header}{lines}"
                    ))?;
                }
            }
            Suggestion::NoMatch => without_match.push(name.as_str()),
        }
    }
    if ambiguous > MAX_AMBIGUOUS {
        notes.push(format!(
            "not listed: {} with a name similar to contracts",
            pluralize(ambiguous - MAX_AMBIGUOUS, "more agent")
        ));
    }
    if !without_match.is_empty() {
        let some = without_match.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if without_match.len() > MAX_NAMED {
            format!(" and {} more", without_match.len() - MAX_NAMED)
        } else {
            String::new()
        };
        notes.push(format!(
            "no contract has a name similar to {some}{more}; list contracts with `counterfoil contract list` and bind one with {} in {FILE}",
            "[agents.NAME] contract = \"ID\""
        ));
    }
    Ok(())
}

/// Adds the hooks to the settings of Claude Code.
fn add_claude_hooks(edit: &mut FileEdit) -> Result<(), Reason> {
    json::validate(edit.text())?;
    for (event, hook) in [("Stop", "claude-stop"), ("SubagentStop", "claude-subagent-stop")] {
        let command = format!("counterfoil hook {hook}");
        let existing = json::get(edit.text(), &["hooks".to_owned(), event.to_owned()]);
        if existing.is_some_and(|existing| has_hook(&existing, &format!("hook {hook}"))) {
            continue;
        }
        let entry = literal!({"hooks": [{"type": "command", "command": command, "timeout": 30}]});
        edit.add_json(&["hooks", event], entry, true)?;
    }
    Ok(())
}

/// Whether one of the commands of an event runs `counterfoil` with these arguments.
fn has_hook(event: &Value, arguments: &str) -> bool {
    let groups = event.as_array().into_iter().flatten();
    let mut hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
    hooks.any(|hook| {
        hook["command"]
            .as_str()
            .is_some_and(|command| command.contains("counterfoil") && command.contains(arguments))
    })
}

/// The arguments that start the MCP server.
fn server_arguments(survey: &Survey) -> Value {
    if survey.own_contracts {
        literal!(["mcp", "--contracts", project::CONTRACTS_FOLDER])
    } else {
        literal!(["mcp"])
    }
}

/// Adds the MCP server to a JSON file.
fn add_json_server(
    survey: &Survey,
    edit: &mut FileEdit,
    notes: &mut Vec<String>,
) -> Result<(), Reason> {
    json::validate(edit.text())?;
    let existing = json::get(edit.text(), &["mcpServers".to_owned(), Server::NAME.to_owned()]);
    match existing {
        None => {
            let entry = literal!({"command": "counterfoil", "args": server_arguments(survey)});
            edit.add_json(&["mcpServers", Server::NAME], entry, false)
        }
        Some(existing) => {
            if existing["args"].get(0).and_then(Value::as_str) != Some("mcp") {
                notes.push(format!(
                    "another MCP server is already named '{}'; it was not changed",
                    Server::NAME
                ));
            }
            Ok(())
        }
    }
}

/// Adds the MCP server to the configuration of Codex.
fn add_codex_server(survey: &Survey, edit: &mut FileEdit) -> Result<(), Reason> {
    toml::validate(edit.text())?;
    let path = ["mcp_servers", Server::NAME];
    if toml::contains(edit.text(), &path.map(str::to_owned)) {
        return Ok(());
    }
    edit.add_toml(&[path[0], path[1], "command"], literal!("counterfoil"))?;
    edit.add_toml(&[path[0], path[1], "args"], server_arguments(survey))
}
