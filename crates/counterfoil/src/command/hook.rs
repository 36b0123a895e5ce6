//! The command `counterfoil hook`. Every error exits with 1, because Claude Code takes 2 as a
//! request to continue the turn.

use crate::cli::{HookCheckArgs, HookCommand};
use crate::exit::Exit;
use crate::hook::{
    BlockHistory, Event, HistoryStore, MAX_PAYLOAD_BYTES, Payload, Speaker, TAIL_BYTES,
    last_message,
};
use crate::{input, output, project};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::Contract;
use counterfoil_contract::shown::Shown;
use counterfoil_contract::text::display_path;
use counterfoil_process::MARKER;
use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The exit code that blocks the end of a turn. Claude Code passes standard error to the agent.
const BLOCK: Exit = Exit::Usage;

/// The name of the main agent if the payload does not name one.
const MAIN_AGENT: &str = "claude";

pub(crate) fn run(command: &HookCommand) -> Exit {
    let result = match command {
        HookCommand::ClaudeStop(args) => validate(Event::Stop, args),
        HookCommand::ClaudeSubagentStop(args) => validate(Event::SubagentStop, args),
    };
    match result {
        Ok(exit) => exit,
        Err(error) => {
            output::write_message("counterfoil", &format!("{error:#}"));
            Exit::Failure
        }
    }
}

/// Validates the last message of the agent against its contract.
fn validate(event: Event, args: &HookCheckArgs) -> Result<Exit> {
    // In a run of the engine, the engine validates the result.
    if std::env::var_os(MARKER).is_some() {
        return Ok(Exit::Success);
    }
    if std::io::stdin().is_terminal() {
        bail!(
            "Claude Code runs this command as its {} hook, with a payload on standard input; set it up with `counterfoil init`",
            event.name()
        );
    }
    let (_, bytes) = input::read(Path::new("-"), MAX_PAYLOAD_BYTES)?;
    let payload = Payload::parse(&bytes, event).map_err(|why| anyhow!(why))?;
    let cwd = match &payload.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().context("cannot determine the current folder")?,
    };
    let home = project::config_folder(&cwd);
    let Some(contract) = bound_contract(event, args, &payload, home.as_deref())? else {
        return Ok(Exit::Success);
    };
    let message = match &payload.message {
        Some(message) => message.clone(),
        None => message_from_transcript(event, &payload)?,
    };
    let session = payload
        .session_id
        .as_deref()
        .context("the payload has no session id; nothing was checked")?;
    // The agent may quote the instructions of its contract, or an earlier repair prompt.
    let known = Arc::new(counterfoil_contract::Context {
        workspace: counterfoil_workspace::folder_names(&cwd),
        ..Default::default()
    });
    let policy = contract.policy().with_context(&known);
    let report = contract.check_bytes_shown(message.as_bytes(), &policy, &Shown::of(&contract));
    let agent = payload.agent_id.as_deref().unwrap_or_default();
    let folder = history_folder(&cwd, home.as_deref());
    if report.is_accepted() {
        clear_history(folder.as_deref(), session, agent);
        return Ok(Exit::Success);
    }
    let repair = contract.repair(&report);
    // Without a history the turn could be blocked forever, so it is not blocked at all.
    let not_blocked =
        || format!("the result does not satisfy {}, but was not sent back", contract.reference());
    let folder = folder
        .context("there is no folder for the hook history; set HOME or XDG_STATE_HOME")
        .with_context(not_blocked)?;
    let mut store = HistoryStore::open(&folder, session, agent).with_context(not_blocked)?;
    let history = store.load().for_turn(payload.stop_hook_active, payload.prompt_id.as_deref());
    match history.add_block(&message, &repair) {
        Ok(longer) => {
            store.save(&longer).with_context(not_blocked)?;
            output::write_stderr(&repair);
            Ok(BLOCK)
        }
        Err(limit) => {
            // The next message belongs to another turn.
            let _ = store.save(&BlockHistory::default());
            let first =
                report.violations.first().map(|violation| format!(": {}", violation.message));
            output::write_stderr(&format!(
                "counterfoil: the result does not satisfy {} and was let through, because {limit}{}\n",
                contract.reference(),
                first.unwrap_or_default()
            ));
            Ok(Exit::Failure)
        }
    }
}

/// The contract that the agent is bound to, if any.
fn bound_contract(
    event: Event,
    args: &HookCheckArgs,
    payload: &Payload,
    home: Option<&Path>,
) -> Result<Option<Arc<Contract>>> {
    if let Some(id) = &args.contract {
        return project::contract(id, &args.contracts, home).map(Some);
    }
    let Some(home) = home else { return Ok(None) };
    let config = project::load_config(home)?;
    let contract_of = |name: &str| {
        config
            .agents
            .named
            .get(name)
            .and_then(|settings| settings.contract.clone())
            .map(|id| (name.to_owned(), id))
    };
    let found = match (event, payload.agent_type.as_deref()) {
        // A session can be started as one of the agents.
        (Event::Stop, agent_type) => {
            agent_type.and_then(contract_of).or_else(|| contract_of(MAIN_AGENT))
        }
        (Event::SubagentStop, Some(agent_type)) => contract_of(agent_type),
        (Event::SubagentStop, None) => {
            if config.agents.named.values().all(|settings| settings.contract.is_none()) {
                return Ok(None);
            }
            bail!(
                "the payload does not name the subagent; update Claude Code, or set --contract for a matcher in its \
                 settings"
            );
        }
    };
    let Some((name, id)) = found else { return Ok(None) };
    let contract = project::contract(&id, &args.contracts, Some(home)).with_context(|| {
        format!(
            "cannot load the contract '{id}' of agent '{name}' in {}",
            display_path(&home.join(counterfoil_engine::config::FILE))
        )
    })?;
    Ok(Some(contract))
}

/// The last message of the agent from the transcript, for versions of Claude Code that do not send
/// it in the payload.
fn message_from_transcript(event: Event, payload: &Payload) -> Result<String> {
    let path = payload.transcript.as_deref().context(
        "the payload has neither last_assistant_message nor a transcript path; nothing was checked; update Claude Code",
    )?;
    let speaker = match event {
        Event::Stop => Speaker::Main,
        Event::SubagentStop => Speaker::Subagent(payload.agent_id.as_deref()),
    };
    let tail = read_tail(path)
        .with_context(|| format!("cannot read the transcript {}", display_path(path)))?;
    last_message(&tail, speaker).with_context(|| {
        format!("{} contains no message of the agent; nothing was checked", display_path(path))
    })
}

/// Reads the end of a regular file. Anything else, such as a pipe, could block.
fn read_tail(path: &Path) -> Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        bail!("it is not a regular file");
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The folder of the block histories: in the state folder of the project if it exists, otherwise in
/// that of the user.
fn history_folder(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let top = project::repository_root(cwd);
    let states = [home.map(Path::to_owned), top]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(project::STATE_FOLDER));
    let variable = |name| {
        std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute())
    };
    states
        .into_iter()
        .find(|state| state.is_dir())
        .or_else(|| {
            let state =
                variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
            state.map(|state| state.join("counterfoil"))
        })
        .map(|state| state.join("hooks"))
}

/// Clears the history after a valid result. An error is ignored: the next payload says that its
/// turn is new.
fn clear_history(folder: Option<&Path>, session: &str, agent: &str) {
    if let Some(folder) = folder
        && HistoryStore::exists(folder, session, agent)
        && let Ok(mut store) = HistoryStore::open(folder, session, agent)
    {
        let _ = store.save(&BlockHistory::default());
    }
}
