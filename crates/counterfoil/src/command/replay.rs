//! `counterfoil replay`

mod case;
mod find;

use crate::cli::{ReplayArgs, RunFormat};
use crate::exit::Exit;
use crate::tell::replay::{Counts, Replayed, Result as Came};
use crate::{input, output, tell};
use anyhow::{Result, anyhow, bail};
use case::{Case, Origin, Settled};
use counterfoil_agents::agent::adapter::{adapter, adapters};
use counterfoil_agents::recording::{Attempt, Judged, differences, replayed};
use counterfoil_contract::{Contract, Definition, Registry, did_you_mean};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn run(args: &ReplayArgs) -> Result<Exit> {
    if let Some(agent) = args.agent.as_deref().filter(|agent| adapter(agent).is_none()) {
        let names: Vec<&str> = adapters().iter().map(|adapter| adapter.name()).collect();
        let hint = did_you_mean(agent, names.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("there are {}", names.join(", ")));
        bail!("no program is called '{agent}'; {hint}");
    }
    let mut judge = Judge {
        given: args
            .contract
            .as_ref()
            .map(|name| input::contract(name, &args.contracts))
            .transpose()?,
        registry: input::registry(&args.contracts)?,
        recorded: BTreeMap::new(),
    };
    let finding = find::find(&args.paths).map_err(|why| anyhow!(why))?;
    for remark in &finding.remarks {
        output::words(&format!("note: {remark}\n"));
    }
    let mut all = Vec::new();
    for found in &finding.found {
        // One at a time: a folder may hold more than there is room for.
        let Some(mut source) = case::load(found, args.agent.as_deref()) else { continue };
        let mut settled = Vec::new();
        for (index, case) in std::mem::take(&mut source.cases).into_iter().enumerate() {
            let mut one = match case {
                Ok(case) => {
                    let (one, after) = judge.case(&case);
                    let stays = matches!(one.came, Came::Same | Came::Broken { .. });
                    settled.extend(after.filter(|_| !stays).map(
                        |(attempt, judged, definition)| Settled {
                            index,
                            attempt,
                            texts: judged.into_iter().map(|judged| judged.text).collect(),
                            definition,
                        },
                    ));
                    one
                }
                Err((name, why)) => Replayed::broken(name, why),
            };
            one.updated = args.update && matches!(one.came, Came::Changed { .. } | Came::New);
            all.push(one);
        }
        if args.update && !settled.is_empty() {
            write_back(&mut source.origin, settled)?;
        }
    }
    if all.is_empty() {
        let shown: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "there is nothing to replay in {}; name a recording (`counterfoil export` makes one) or transcripts",
            shown.join(", ")
        );
    }
    let counts = Counts::of(&all);
    match args.format {
        RunFormat::Human => {
            output::data(&tell::replay::told(&all, &counts, output::style_of_data()))?
        }
        RunFormat::Json => {
            let object = json!({"summary": counts, "replayed": all});
            output::data(&(serde_json::to_string_pretty(&object)? + "\n"))?;
        }
        RunFormat::Junit => output::data(&output::junit::of_replay(&all))?,
    }
    let changed = !args.update && counts.changed > 0;
    Ok((!changed && counts.broken == 0).into())
}

fn write_back(origin: &mut Origin, settled: Vec<Settled>) -> Result<()> {
    case::write_back(origin, settled).map_err(|why| anyhow!(why))
}

/// What attempts are judged by.
struct Judge {
    /// The contract that was named, for all.
    given: Option<Arc<Contract>>,
    registry: Registry,
    /// Those of recordings, by their definition.
    recorded: BTreeMap<String, Arc<Contract>>,
}

/// What comes of a case, with what it was judged by if the recording does not have it.
type After = (Attempt, Vec<Judged>, Option<Definition>);

impl Judge {
    fn case(&mut self, case: &Case) -> (Replayed, Option<After>) {
        let broken = |why: String| (Replayed::broken(case.name.clone(), why), None);
        let (contract, from) = match self.contract(case) {
            Ok(contract) => contract,
            Err(why) => return broken(why),
        };
        let (after, judged) = match replayed(&case.attempt, contract.as_deref(), &case.said) {
            Ok(after) => after,
            Err(error) => return broken(error.to_string()),
        };
        let texts: Vec<Option<(String, String)>> = case
            .texts
            .iter()
            .zip(&judged)
            .map(|(before, judged)| Some((before.clone()?, judged.text.clone()?)))
            .collect();
        let differences = differences(&case.attempt, &after, &texts);
        let came = match &case.attempt.came.outcome {
            None => Came::New,
            Some(_) if differences.is_empty() => Came::Same,
            Some(_) => Came::Changed { differences },
        };
        let last = judged.iter().rev().find(|judged| judged.status == "accepted").or(judged.last());
        let one = Replayed {
            name: case.name.clone(),
            program: after.replies.iter().find_map(|reply| reply.program.clone()),
            contract: contract.as_ref().map(|contract| contract.reference().to_owned()),
            judged_by: from,
            recorded_with: case
                .attempt
                .contract
                .clone()
                .filter(|_| case.attempt.came.outcome.is_some()),
            outcome: after.came.outcome.clone(),
            channel: last.and_then(|judged| judged.channel.clone()),
            codes: after.replies.last().map(|reply| reply.codes.clone()).unwrap_or_default(),
            said: last.and_then(|judged| judged.text.clone()),
            why: last.map(|judged| judged.reason.clone()).filter(|reason| !reason.is_empty()),
            notes: judged.iter().flat_map(|judged| judged.notes.clone()).collect(),
            came,
            updated: false,
        };
        (one, Some((after, judged, contract.map(|contract| contract.definition().clone()))))
    }

    /// The contract that was named; else the newest there is of the id that was recorded; else the
    /// recorded one. And where it is from.
    fn contract(
        &mut self,
        case: &Case,
    ) -> Result<(Option<Arc<Contract>>, Option<&'static str>), String> {
        if let Some(given) = &self.given {
            return Ok((Some(given.clone()), Some("named")));
        }
        let Some(reference) = &case.attempt.contract else { return Ok((None, None)) };
        let id = reference.split('@').next().unwrap_or_default();
        if let Ok(entry) = self.registry.find(id) {
            let contract = entry.contract().map_err(|error| error.to_string())?;
            return Ok((Some(contract), Some("current")));
        }
        let Some(definition) = &case.definition else {
            return Err(format!(
                "{reference} is not in the recording, and no contract is called '{id}'; name its folder with --contracts"
            ));
        };
        let key = serde_json::to_string(definition).map_err(|error| error.to_string())?;
        if let Some(known) = self.recorded.get(&key) {
            return Ok((Some(known.clone()), Some("recorded")));
        }
        let contract = Contract::compile(definition.clone())
            .map_err(|error| format!("{reference}, as it was recorded, does not load: {error}"))?;
        let contract = Arc::new(contract);
        self.recorded.insert(key, contract.clone());
        Ok((Some(contract), Some("recorded")))
    }
}
