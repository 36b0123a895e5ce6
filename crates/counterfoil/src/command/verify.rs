//! `counterfoil verify`

use crate::cli::{Format, VerifyArgs};
use crate::exit::Exit;
use crate::output::weight::{Weighed, weigh};
use crate::{input, output, tell};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::{ClaimPolicy, ClaimReport, Contract, HeldClaim, Report, did_you_mean};
use counterfoil_engine::ledger::Totals;
use counterfoil_process::Stop;
use counterfoil_verify::base::Base;
use counterfoil_verify::claims::{Check, World, verify};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    let contract = input::contract(&args.contract, &args.contracts)?;
    let held = held(&contract, &args.required)?;
    let folder = input::repository(args.repo.as_deref())?;
    let mut base = Base::open(&folder, &args.base, ours(&folder, &args.file)).map_err(|why| {
        anyhow!(
            "{why}; --base names what the agent began from, as HEAD, a branch or a commit, in {}",
            folder.display()
        )
    })?;
    let (name, bytes) = input::read(&args.file, contract.policy().max_bytes)?;
    let (report, text) = super::check::held_to(&contract, contract.policy(), &bytes);
    if !report.is_accepted() {
        match args.format {
            Format::Json => print_json(args, &report, &[], &[])?,
            format => super::check::report_as(format, &contract, &report, &name, &text)?,
        }
        return Ok(Exit::Bad);
    }
    let mut notes = base.notes().to_vec();
    let Some(claims) = observe(args, &contract, &held, &report, &mut base, &mut notes)? else {
        return Ok(Exit::Cancelled);
    };
    let weighed = weigh(claims, &held, &args.required);
    match args.format {
        Format::Json => print_json(args, &report, &weighed, &notes)?,
        Format::Sarif => {
            let log = output::sarif::claims(&weighed, &report.contract, &name);
            output::data(&(serde_json::to_string_pretty(&log)? + "\n"))?;
        }
        Format::Junit => output::data(&output::junit::claims(&weighed, &report.contract))?,
        Format::Github => output::data(&output::github::claims(&weighed, &name))?,
        Format::Human => {
            for note in &notes {
                output::words(&format!("note: {note}\n"));
            }
            output::data(&tell::claims::verified(
                &weighed,
                &report.contract,
                &args.base,
                output::style_of_data(),
            ))?;
        }
    }
    Ok(if weighed.iter().any(|weighed| weighed.counts) { Exit::Claim } else { Exit::Good })
}

/// The claims that are held: those of the contract, and what is required even where the contract
/// says that nothing follows.
fn held(contract: &Contract, required: &[String]) -> Result<Vec<HeldClaim>> {
    let mut held = contract.held_claims();
    for name in required {
        match held.iter_mut().find(|held| held.name == *name) {
            Some(held) if held.claim.policy == ClaimPolicy::Ignore => {
                held.claim.policy = ClaimPolicy::Require;
            }
            Some(_) => {}
            None => {
                let known: Vec<&str> = held.iter().map(|held| held.name.as_str()).collect();
                let hint = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known
                    .as_slice()
                {
                    [] => "it has none".to_owned(),
                    known => format!("its claims: {}", known.join(", ")),
                });
                bail!("{} has no claim '{name}'; {hint}", contract.reference());
            }
        }
    }
    Ok(held)
}

/// What is no part of the agent's work: where we keep things, and what it said.
fn ours(folder: &Path, file: &Path) -> BTreeSet<PathBuf> {
    let tops = folder.ancestors().filter(|folder| folder.join(".git").exists()).take(1);
    let mut ours: BTreeSet<PathBuf> =
        tops.chain([folder]).map(|folder| folder.join(".counterfoil")).collect();
    if file.as_os_str() != "-" {
        ours.extend(std::path::absolute(file).ok().into_iter().chain(file.canonicalize().ok()));
    }
    ours
}

/// Holds the claims against the repository; none if somebody stopped it.
fn observe(
    args: &VerifyArgs,
    contract: &Contract,
    held: &[HeldClaim],
    report: &Report,
    base: &mut Base,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<ClaimReport>>> {
    let (mut config, remark) = base.config()?;
    notes.extend(remark);
    for (name, line) in &args.checks {
        if line.trim().is_empty() {
            bail!("the check '{name}' runs nothing; write --check {name}=CMD");
        }
        config.checks.insert(name.clone(), Check::line(line));
    }
    let registry = input::registry(&args.contracts)?;
    let contracts = move |id: &str| -> Option<Arc<Contract>> { registry.get(id).ok() };
    let observed = base.observed();
    let (folder, top) = (observed.folder().to_owned(), observed.top().to_owned());
    let ours = ours(&folder, &args.file);
    let value = report.value.clone().context("an accepted result has a value")?;
    let (sender, stop) = watch::channel(Stop::No);
    let mut world = World {
        folder: &folder,
        top: &top,
        observer: observed,
        config: &config,
        contracts: &contracts,
        cache: None,
        stop,
        marker: format!("verify/{}", std::process::id()),
        ours: &ours,
        commands: !args.no_commands,
        since: &args.base,
        company: None,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (claims, stopped) = runtime.block_on(async {
        let mut verifying = std::pin::pin!(verify(held, contract, &value, &mut world));
        tokio::select! {
            claims = &mut verifying => (claims, false),
            // What a check started ends with it.
            () = told_to_stop() => {
                let _ = sender.send(Stop::AtOnce);
                (verifying.await, true)
            }
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok((!stopped).then_some(claims))
}

/// Waits for somebody to stop us. Where signals cannot be heard, nobody can.
async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// The report of `check`, and what became of the claims.
fn print_json(
    args: &VerifyArgs,
    report: &Report,
    weighed: &[Weighed],
    notes: &[String],
) -> Result<()> {
    let mut object = serde_json::to_value(report)?;
    let summary = Totals::of(weighed.iter().map(|weighed| weighed.claim.verdict));
    object["base"] = json!(args.base);
    object["claims"] = serde_json::to_value(weighed)?;
    object["summary"] = serde_json::to_value(summary)?;
    object["notes"] = json!(notes);
    output::data(&(serde_json::to_string_pretty(&object)? + "\n"))
}
