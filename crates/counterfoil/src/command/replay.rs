//! The command `counterfoil replay`.

mod case;
mod find;

use crate::cli::{ReplayArgs, RunFormat};
use crate::exit::Exit;
use crate::report::replay::{Comparison, ReplayCounts, ReplayReport, ReplayResults};
use crate::{input, output, project, render};
use anyhow::{Result, anyhow, bail};
use case::{Case, NewOutcome};
use counterfoil_agents::adapters::{adapter, adapters};
use counterfoil_agents::recording::{Attempt, ReplayedReply, differences, replay_attempt};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::display_path;
use counterfoil_contract::{Contract, Definition, Registry};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn run(args: &ReplayArgs) -> Result<Exit> {
    if let Some(agent) = args.agent.as_deref().filter(|agent| adapter(agent).is_none()) {
        let names: Vec<&str> = adapters().iter().map(|adapter| adapter.name()).collect();
        let hint = did_you_mean(agent, names.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("available: {}", names.join(", ")));
        bail!("there is no agent program '{agent}'; {hint}");
    }
    let mut replayer = Replayer {
        contract: args
            .contract
            .as_ref()
            .map(|name| project::named_contract(name, &args.contracts))
            .transpose()?,
        registry: input::registry(&args.contracts)?,
        recorded: BTreeMap::new(),
    };
    let search = find::find(&args.paths).map_err(|why| anyhow!(why))?;
    for note in &search.notes {
        output::write_message("note", note);
    }
    let mut all = Vec::new();
    for found in &search.found {
        // One source at a time: all of them may not fit in memory.
        let Some(mut source) = case::load(found, args.agent.as_deref()) else { continue };
        let mut outcomes = Vec::new();
        for (index, case) in std::mem::take(&mut source.cases).into_iter().enumerate() {
            let mut one = match case {
                Ok(case) => {
                    let (one, after) = replayer.replay(&case);
                    let is_unchanged =
                        matches!(one.comparison, Comparison::Same | Comparison::Broken { .. });
                    outcomes.extend(after.filter(|_| !is_unchanged).map(
                        |(attempt, replayed, definition)| NewOutcome {
                            index,
                            attempt,
                            texts: replayed.into_iter().map(|replayed| replayed.text).collect(),
                            definition,
                        },
                    ));
                    one
                }
                Err((name, why)) => ReplayReport::broken(name, why),
            };
            one.updated = args.update
                && matches!(one.comparison, Comparison::Changed { .. } | Comparison::New);
            all.push(one);
        }
        if args.update && !outcomes.is_empty() {
            case::write_back(&mut source.origin, outcomes).map_err(|why| anyhow!(why))?;
        }
    }
    if all.is_empty() {
        let paths: Vec<String> = args.paths.iter().map(|path| display_path(path)).collect();
        bail!(
            "there is nothing to replay in {}; pass a recording (see `counterfoil export`) or transcripts",
            paths.join(", ")
        );
    }
    let counts = ReplayCounts::from_reports(&all);
    match args.format {
        RunFormat::Human => {
            output::write_stdout(&render::replay::results(&all, &counts, output::stdout_style()))?;
        }
        RunFormat::Json => {
            output::write_json(&ReplayResults { summary: counts, replayed: &all })?;
        }
        RunFormat::Junit => output::write_xml(&render::junit::replay(&all)?)?,
        RunFormat::Github => output::write_stdout(&render::github::replay(&all))?,
    }
    let changed = !args.update && counts.changed > 0;
    Ok((!changed && counts.broken == 0).into())
}

/// Replays attempts against their contracts.
struct Replayer {
    /// The contract named on the command line, used for all attempts.
    contract: Option<Arc<Contract>>,
    registry: Registry,
    /// Compiled contracts of recordings, by their definition.
    recorded: BTreeMap<String, Arc<Contract>>,
}

/// The outcome of a replay, with the definition of the contract that was used.
type Outcome = (Attempt, Vec<ReplayedReply>, Option<Definition>);

impl Replayer {
    fn replay(&mut self, case: &Case) -> (ReplayReport, Option<Outcome>) {
        let broken = |why: String| (ReplayReport::broken(case.name.clone(), why), None);
        let (contract, contract_source) = match self.find_contract(case) {
            Ok(contract) => contract,
            Err(why) => return broken(why),
        };
        let (after, replayed) =
            match replay_attempt(&case.attempt, contract.as_deref(), &case.outputs) {
                Ok(after) => after,
                Err(error) => return broken(error.to_string()),
            };
        let texts: Vec<Option<(String, String)>> = case
            .texts
            .iter()
            .zip(&replayed)
            .map(|(before, replayed)| Some((before.clone()?, replayed.text.clone()?)))
            .collect();
        let differences = differences(&case.attempt, &after, &texts);
        let comparison = match &case.attempt.result.outcome {
            None => Comparison::New,
            Some(_) if differences.is_empty() => Comparison::Same,
            Some(_) => Comparison::Changed { differences },
        };
        let last = replayed
            .iter()
            .rev()
            .find(|replayed| replayed.status == "accepted")
            .or(replayed.last());
        let one = ReplayReport {
            name: case.name.clone(),
            program: after.replies.iter().find_map(|reply| reply.program.clone()),
            contract: contract.as_ref().map(|contract| contract.reference().to_owned()),
            contract_source,
            recorded_with: case
                .attempt
                .contract
                .clone()
                .filter(|_| case.attempt.result.outcome.is_some()),
            outcome: after.result.outcome.clone(),
            channel: last.and_then(|replayed| replayed.channel.clone()),
            codes: after.replies.last().map(|reply| reply.codes.clone()).unwrap_or_default(),
            text: last.and_then(|replayed| replayed.text.clone()),
            reason: last
                .map(|replayed| replayed.reason.clone())
                .filter(|reason| !reason.is_empty()),
            notes: replayed.iter().flat_map(|replayed| replayed.notes.clone()).collect(),
            comparison,
            updated: false,
        };
        (one, Some((after, replayed, contract.map(|contract| contract.definition().clone()))))
    }

    /// The contract for a case and where it comes from: the one named on the command line, the
    /// newest available version of the recorded id, or the recorded one.
    fn find_contract(
        &mut self,
        case: &Case,
    ) -> Result<(Option<Arc<Contract>>, Option<&'static str>), String> {
        if let Some(contract) = &self.contract {
            return Ok((Some(contract.clone()), Some("named")));
        }
        let Some(reference) = &case.attempt.contract else { return Ok((None, None)) };
        let id = reference.split('@').next().unwrap_or_default();
        if let Ok(entry) = self.registry.find(id) {
            let contract = entry.contract().map_err(|error| error.to_string())?;
            return Ok((Some(contract), Some("current")));
        }
        let Some(definition) = &case.definition else {
            return Err(format!(
                "{reference} is not in the recording, and there is no contract '{id}'; name its folder with --contracts"
            ));
        };
        let key = serde_json::to_string(definition).map_err(|error| error.to_string())?;
        if let Some(known) = self.recorded.get(&key) {
            return Ok((Some(known.clone()), Some("recorded")));
        }
        let contract = Contract::compile_stored(definition.clone()).map_err(|error| {
            format!("cannot compile the recorded contract {reference}: {error}")
        })?;
        let contract = Arc::new(contract);
        self.recorded.insert(key, contract.clone());
        Ok((Some(contract), Some("recorded")))
    }
}
