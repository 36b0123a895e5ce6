//! `counterfoil hook`: the I/O of a hook. Whatever goes wrong ends with 1: to Claude Code, 2 alone
//! means that the agent goes on.

use crate::cli::{HeldArgs, HookCommand};
use crate::exit::Exit;
use crate::hook::{Event, LONGEST, Payload, Speaker, Store, TAIL, last_message};
use crate::{input, output, project};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::Contract;
use counterfoil_contract::render::prompt;
use counterfoil_process::MARKER;
use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// To Claude Code, this code means: not yet, and the words on standard error are for the agent.
const BLOCK: Exit = Exit::Usage;

/// The main agent, where a payload does not name it.
const MAIN: &str = "claude";

pub(crate) fn run(command: &HookCommand) -> Exit {
    let held = match command {
        HookCommand::ClaudeStop(args) => held(Event::Stop, args),
        HookCommand::ClaudeSubagentStop(args) => held(Event::SubagentStop, args),
    };
    match held {
        Ok(exit) => exit,
        Err(error) => {
            output::words(&format!("counterfoil: {error:#}\n"));
            Exit::Bad
        }
    }
}

fn held(event: Event, args: &HeldArgs) -> Result<Exit> {
    // Whoever works in a run of ours is held to its contract there.
    if std::env::var_os(MARKER).is_some() {
        return Ok(Exit::Good);
    }
    if std::io::stdin().is_terminal() {
        bail!(
            "this is a hook of {}: Claude Code runs it, with a payload on standard input; `counterfoil init` sets it up",
            event.name()
        );
    }
    let (_, bytes) = input::read(Path::new("-"), LONGEST)?;
    let payload = Payload::read(&bytes, event).map_err(|why| anyhow!(why))?;
    let here = match &payload.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().context("the current folder cannot be read")?,
    };
    let home = project::home(&here);
    let Some(contract) = bound(event, args, &payload, home.as_deref())? else {
        return Ok(Exit::Good);
    };
    let message = match &payload.message {
        Some(message) => message.clone(),
        None => from_transcript(event, &payload)?,
    };
    let session =
        payload.session.as_deref().context("the payload names no session; nothing was checked")?;
    let report = contract.check(&message);
    let agent = payload.agent.as_deref().unwrap_or_default();
    let folder = memory_folder(&here, home.as_deref());
    if report.is_accepted() {
        forget(folder.as_deref(), session, agent);
        return Ok(Exit::Good);
    }
    let repair = prompt::repair(&contract, &report);
    // Without a memory it could go on for ever, so nothing is blocked then.
    let unkept =
        || format!("the result does not satisfy {}, and was not sent back", contract.reference());
    let folder = folder
        .context("there is no folder to remember in; set HOME or XDG_STATE_HOME")
        .with_context(unkept)?;
    let mut store = Store::open(&folder, session, agent).with_context(unkept)?;
    let chain = store.chain().of_turn(payload.active, payload.prompt.as_deref());
    match chain.block(&message, &repair) {
        Ok(longer) => {
            store.keep(&longer).with_context(unkept)?;
            output::words(&repair);
            Ok(BLOCK)
        }
        Err(enough) => {
            // Whatever comes after this is another turn.
            let _ = store.keep(&crate::hook::Chain::default());
            let first =
                report.violations.first().map(|violation| format!(": {}", violation.message));
            output::words(&format!(
                "counterfoil: the result does not satisfy {}, and is let through: {enough}{}\n",
                contract.reference(),
                first.unwrap_or_default()
            ));
            Ok(Exit::Bad)
        }
    }
}

/// The contract that the agent is bound to, if it is.
fn bound(
    event: Event,
    args: &HeldArgs,
    payload: &Payload,
    home: Option<&Path>,
) -> Result<Option<Arc<Contract>>> {
    if let Some(id) = &args.contract {
        return project::contract(id, &args.contracts, home).map(Some);
    }
    let Some(home) = home else { return Ok(None) };
    let config = project::config(home)?;
    let bound = |name: &str| {
        config
            .agents
            .named
            .get(name)
            .and_then(|settings| settings.contract.clone())
            .map(|id| (name.to_owned(), id))
    };
    let found = match (event, payload.kind.as_deref()) {
        // A session that was started as one of the agents is that agent.
        (Event::Stop, kind) => kind.and_then(bound).or_else(|| bound(MAIN)),
        (Event::SubagentStop, Some(kind)) => bound(kind),
        (Event::SubagentStop, None) => {
            if config.agents.named.values().all(|settings| settings.contract.is_none()) {
                return Ok(None);
            }
            bail!(
                "the payload does not say which subagent it is; update Claude Code, or name the contract with --contract \
                 under a matcher in the settings"
            );
        }
    };
    let Some((name, id)) = found else { return Ok(None) };
    let contract = project::contract(&id, &args.contracts, Some(home)).with_context(|| {
        format!(
            "{} binds the agent '{name}' to '{id}'",
            home.join(counterfoil_engine::config::FILE).display()
        )
    })?;
    Ok(Some(contract))
}

/// What the agent said last, for versions of Claude Code that do not send it along.
fn from_transcript(event: Event, payload: &Payload) -> Result<String> {
    let path = payload.transcript.as_deref().context(
        "the payload has neither last_assistant_message nor a transcript; nothing was checked; update Claude Code",
    )?;
    let speaker = match event {
        Event::Stop => Speaker::Main,
        Event::SubagentStop => Speaker::Subagent(payload.agent.as_deref()),
    };
    let tail =
        tail(path).with_context(|| format!("cannot read the transcript {}", path.display()))?;
    last_message(&tail, speaker).with_context(|| {
        format!("there is no message of the agent in {}; nothing was checked", path.display())
    })
}

/// The end of a file. A pipe would be waited for.
fn tail(path: &Path) -> Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        bail!("it is not a file");
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where is remembered how often an agent was sent back: the project's state folder if it has one,
/// else the user's.
fn memory_folder(here: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let top = project::top(here);
    let states = [home.map(Path::to_owned), top]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(project::STATE));
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

/// A good result ends the chain. If that cannot be written, the next turn is new by what the
/// payload says.
fn forget(folder: Option<&Path>, session: &str, agent: &str) {
    if let Some(folder) = folder
        && Store::is_there(folder, session, agent)
        && let Ok(mut store) = Store::open(folder, session, agent)
    {
        let _ = store.keep(&crate::hook::Chain::default());
    }
}
