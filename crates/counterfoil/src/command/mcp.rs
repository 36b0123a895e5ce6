//! The command `counterfoil mcp`.

use crate::cli::McpArgs;
use crate::exit::Exit;
use crate::mcp::{SubmissionStore, SubmissionTools, serve};
use crate::{input, project, state_folder};
use anyhow::{Context, Result, bail};
use counterfoil_agents::submissions::SessionFile;
use counterfoil_contract::Contract;
use counterfoil_contract::text::display_path;
use counterfoil_engine::config::{Config, FILE};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn run(args: &McpArgs) -> Result<Exit> {
    let (tools, store, checks) = match &args.session {
        Some(path) => {
            let session = SessionFile::load(path)?;
            let contract = Contract::compile_stored(session.contract).with_context(|| {
                format!("cannot compile the contract of session {}", display_path(path))
            })?;
            let names = session.checks.iter().flat_map(|checks| checks.names.clone()).collect();
            let tools = SubmissionTools::for_attempt(
                Arc::new(contract),
                session.target,
                session.context,
                session.receives,
                names,
            );
            (tools, SubmissionStore::File(session.submissions), session.checks)
        }
        None => {
            let tools = SubmissionTools::new(contracts(args)?, args.target);
            (tools, SubmissionStore::Folder(state_folder::of(&args.location)?), None)
        }
    };
    serve(tools, store, checks)?;
    Ok(Exit::Success)
}

/// The contracts named on the command line, or those that the project binds to agents, without
/// duplicates.
fn contracts(args: &McpArgs) -> Result<Vec<Arc<Contract>>> {
    let mut named: Vec<(String, Option<String>)> =
        args.contract.iter().map(|id| (id.clone(), None)).collect();
    if named.is_empty() {
        let repo = input::repository(args.location.repo.as_deref())?;
        let here = std::env::current_dir().context("cannot determine the current folder")?;
        let config = Config::load(args.location.repo.as_deref().unwrap_or(&here), &repo)?;
        let bound = config.agents.named.into_iter();
        named.extend(bound.filter_map(|(agent, settings)| Some((settings.contract?, Some(agent)))));
    }
    if named.is_empty() {
        bail!(
            "no contract is given; name one with --contract ID, or bind one to an agent in {FILE}: [agents.NAME] contract = \"ID\""
        );
    }
    let mut contracts = BTreeMap::new();
    for (id, agent) in named {
        let contract =
            project::named_contract(&id, &args.contracts).with_context(|| match &agent {
                Some(agent) => format!("cannot load the contract of agent '{agent}' in {FILE}"),
                None => format!("cannot load the contract '{id}'"),
            })?;
        contracts.entry(contract.reference().to_owned()).or_insert(contract);
    }
    Ok(contracts.into_values().collect())
}
