//! `counterfoil mcp`

use crate::cli::McpArgs;
use crate::exit::Exit;
use crate::input;
use crate::mcp::{Desk, Store, serve};
use anyhow::{Context, Result, bail};
use counterfoil_agents::submit::SessionFile;
use counterfoil_contract::Contract;
use counterfoil_engine::config::{Config, FILE};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn run(args: &McpArgs) -> Result<Exit> {
    let (desk, store) = match &args.session {
        Some(path) => {
            let session = SessionFile::load(path)?;
            let contract = Contract::compile(session.contract)
                .with_context(|| format!("the contract of the session {}", path.display()))?;
            (Desk::new(vec![Arc::new(contract)], session.target), Store::File(session.submissions))
        }
        None => {
            (Desk::new(contracts(args)?, args.target), Store::Folder(input::state(&args.place)?))
        }
    };
    serve(desk, store)?;
    Ok(Exit::Good)
}

/// The contracts that were named, or else those that the project binds to agents; each once.
fn contracts(args: &McpArgs) -> Result<Vec<Arc<Contract>>> {
    let mut named: Vec<(String, Option<String>)> =
        args.contract.iter().map(|id| (id.clone(), None)).collect();
    if named.is_empty() {
        let repo = input::repository(args.place.repo.as_deref())?;
        let here = std::env::current_dir().context("the current folder cannot be read")?;
        let config = Config::load(args.place.repo.as_deref().unwrap_or(&here), &repo)?;
        let bound = config.agents.named.into_iter();
        named.extend(bound.filter_map(|(agent, settings)| Some((settings.contract?, Some(agent)))));
    }
    if named.is_empty() {
        bail!(
            "no contract says what a result must be; name one with --contract ID, or bind one to an agent in {FILE}: [agents.NAME] contract = \"ID\""
        );
    }
    let mut contracts = BTreeMap::new();
    for (id, agent) in named {
        let contract = input::contract(&id, &args.contracts).with_context(|| match &agent {
            Some(agent) => format!("the contract of the agent '{agent}' in {FILE}"),
            None => format!("the contract '{id}'"),
        })?;
        contracts.entry(contract.reference().to_owned()).or_insert(contract);
    }
    Ok(contracts.into_values().collect())
}
