//! What would be added to which file. No I/O.

use super::bind::{Proposal, propose};
use super::change::{Change, Draft};
use super::json;
use super::survey::{CLAUDE_SERVERS, CLAUDE_SETTINGS, CODEX_SETTINGS, GEMINI_SETTINGS, Survey};
use super::toml;
use super::write::Standing;
use crate::project;
use counterfoil_agents::agent::adapter::Server;
use counterfoil_engine::config::{Config, FILE};
use serde_json::{Value, json as literal};

/// What would be done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// File by file.
    pub(crate) files: Vec<Planned>,
    /// What somebody should know.
    pub(crate) notes: Vec<String>,
}

/// What would be done to a file.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// The file, in the project.
    pub(crate) file: &'static str,
    /// What it holds; none if there is none.
    pub(crate) before: Option<String>,
    /// What it would hold.
    pub(crate) after: String,
    /// What is kept for taking it out again.
    pub(crate) change: Change,
}

/// So many agents at most get a comment with candidates.
const MOST_UNSURE: usize = 50;

/// Why a file is left as it is.
type Left = String;

/// What would be added to a project.
pub(crate) fn plan(survey: &Survey) -> Plan {
    let mut plan = Plan::default();
    plan.notes.extend(survey.notes.iter().chain(&survey.subagents.notes).cloned());
    let has = |sign: &str| survey.signs.contains(&sign);
    let claude = has(".claude") || survey.programs.iter().any(|program| program == "claude");
    plan.draft(survey, FILE, "", |draft, notes| agents(survey, draft, notes));
    // Without a contract a hook holds nobody to anything, and the server does not start.
    if !plan.binds(survey) {
        plan.notes.push("no agent is bound to a contract yet; hooks and the server that takes results come with the first".to_owned());
        return plan;
    }
    if claude {
        plan.draft(survey, CLAUDE_SETTINGS, json::EMPTY, |draft, _| hooks(draft));
        plan.draft(survey, CLAUDE_SERVERS, json::EMPTY, |draft, notes| {
            server(survey, draft, notes)
        });
    }
    if has(".gemini") {
        plan.draft(survey, GEMINI_SETTINGS, json::EMPTY, |draft, notes| {
            server(survey, draft, notes)
        });
    }
    if has(".codex") {
        plan.draft(survey, CODEX_SETTINGS, "", |draft, _| codex(survey, draft));
    }
    if !plan.files.is_empty() && !survey.on_path {
        plan.notes
            .push("`counterfoil` is not on PATH; what is added calls it by that name".to_owned());
    }
    plan
}

impl Plan {
    /// Whether an agent is bound to a contract, now or by what would be added.
    fn binds(&self, survey: &Survey) -> bool {
        let planned = self
            .files
            .iter()
            .find(|planned| planned.file == FILE)
            .map(|planned| planned.after.as_str());
        let text = match (planned, survey.files.get(FILE)) {
            (Some(after), _) => after,
            (None, Some(Standing::Text(text))) => text,
            _ => return false,
        };
        Config::parse(text)
            .is_ok_and(|config| config.agents.named.values().any(|agent| agent.contract.is_some()))
    }

    /// Works on a file, if it can be worked on; one that is in the way is named.
    fn draft(
        &mut self,
        survey: &Survey,
        file: &'static str,
        empty: &str,
        work: impl FnOnce(&mut Draft, &mut Vec<String>) -> Result<(), Left>,
    ) {
        let before = match survey.files.get(file) {
            None | Some(Standing::Missing) => None,
            Some(Standing::Text(text)) => Some(text.clone()),
            Some(Standing::Unusable(why)) => {
                self.notes.push(format!("{file}: {why}"));
                return;
            }
        };
        let folder = before.is_none()
            && file.split_once('/').is_some_and(|(folder, _)| !survey.signs.contains(&folder));
        let mut draft = Draft::new(before, empty);
        match work(&mut draft, &mut self.notes) {
            Ok(()) if draft.is_changed() => self.files.push(Planned {
                file,
                before: draft.before().map(str::to_owned),
                after: draft.text().to_owned(),
                change: draft.change(file, folder),
            }),
            Ok(()) => {}
            Err(why) => self.notes.push(format!("{file}: {why}")),
        }
    }
}

/// Who plays agents, and what they hand back.
fn agents(survey: &Survey, draft: &mut Draft, notes: &mut Vec<String>) -> Result<(), Left> {
    toml::check(draft.text())?;
    let config =
        Config::parse(draft.text()).map_err(|error| format!("{error}; it is left as it is"))?;
    if draft.before().is_none() && config.agents.rest.is_none() {
        match survey.programs.as_slice() {
            [] => {}
            [one] => draft.toml(&["agent"], literal!(one))?,
            [first, others @ ..] => draft.lines(&format!(
                "# Who plays the agents that nobody else plays, or {}:\n# agent = \"{first}\"\n",
                others.join(", ")
            ))?,
        }
    }
    let mut unlike = Vec::new();
    let mut unsure = 0;
    for name in survey.subagents.named.keys() {
        if config.agents.named.get(name).is_some_and(|settings| settings.contract.is_some()) {
            continue;
        }
        match propose(name, &survey.offers) {
            Proposal::Bound(id) => draft.toml(&["agents", name, "contract"], literal!(id))?,
            Proposal::Unsure(candidates) => {
                unsure += 1;
                let header = format!("# {}\n", toml::header(&["agents".to_owned(), name.clone()]));
                if unsure <= MOST_UNSURE && !draft.text().replace("\r\n", "\n").contains(&header) {
                    let lines: String =
                        candidates.iter().map(|id| format!("# contract = \"{id}\"\n")).collect();
                    draft.lines(&format!(
                        "# By its name it may hand back one of these:\n{header}{lines}"
                    ))?;
                }
            }
            Proposal::Nothing => unlike.push(name.as_str()),
        }
    }
    if unsure > MOST_UNSURE {
        notes.push(format!(
            "{} more agents have names like those of contracts",
            unsure - MOST_UNSURE
        ));
    }
    if !unlike.is_empty() {
        let some = unlike.iter().take(5).copied().collect::<Vec<_>>().join(", ");
        let more = if unlike.len() > 5 {
            format!(" and {} more", unlike.len() - 5)
        } else {
            String::new()
        };
        notes.push(format!(
            "no contract is named like {some}{more}; `counterfoil contract list` lists all, and {} in {FILE} binds one",
            "[agents.NAME] contract = \"ID\""
        ));
    }
    Ok(())
}

/// The hooks of Claude Code.
fn hooks(draft: &mut Draft) -> Result<(), Left> {
    json::check(draft.text())?;
    for (event, hook) in [("Stop", "claude-stop"), ("SubagentStop", "claude-subagent-stop")] {
        let command = format!("counterfoil hook {hook}");
        let there = json::get(draft.text(), &["hooks".to_owned(), event.to_owned()]);
        if there.is_some_and(|there| runs(&there, &format!("hook {hook}"))) {
            continue;
        }
        let entry = literal!({"hooks": [{"type": "command", "command": command, "timeout": 30}]});
        draft.json(&["hooks", event], entry, true)?;
    }
    Ok(())
}

/// Whether one of the commands of an event is ours, however it is written.
fn runs(event: &Value, ours: &str) -> bool {
    let groups = event.as_array().into_iter().flatten();
    let mut hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
    hooks.any(|hook| {
        hook["command"]
            .as_str()
            .is_some_and(|command| command.contains("counterfoil") && command.contains(ours))
    })
}

/// How the server that takes results is started.
fn arguments(survey: &Survey) -> Value {
    if survey.own_contracts {
        literal!(["mcp", "--contracts", project::CONTRACTS])
    } else {
        literal!(["mcp"])
    }
}

/// The server that takes results, for programs that are told of it in JSON.
fn server(survey: &Survey, draft: &mut Draft, notes: &mut Vec<String>) -> Result<(), Left> {
    json::check(draft.text())?;
    let there = json::get(draft.text(), &["mcpServers".to_owned(), Server::NAME.to_owned()]);
    match there {
        None => {
            let entry = literal!({"command": "counterfoil", "args": arguments(survey)});
            draft.json(&["mcpServers", Server::NAME], entry, false)
        }
        Some(there) => {
            if there["args"].get(0).and_then(Value::as_str) != Some("mcp") {
                notes.push(format!(
                    "there is another server called '{}' already; it is left as it is",
                    Server::NAME
                ));
            }
            Ok(())
        }
    }
}

/// The same for Codex.
fn codex(survey: &Survey, draft: &mut Draft) -> Result<(), Left> {
    toml::check(draft.text())?;
    let path = ["mcp_servers", Server::NAME];
    if toml::is_there(draft.text(), &path.map(str::to_owned)) {
        return Ok(());
    }
    draft.toml(&[path[0], path[1], "command"], literal!("counterfoil"))?;
    draft.toml(&[path[0], path[1], "args"], arguments(survey))
}
