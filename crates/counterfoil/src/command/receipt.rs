//! The command `counterfoil receipt`.

mod changes;
mod verify;

use crate::cli::{ReceiptArgs, ReceiptCommand, ReceiptFormat, StateLocation, WriteReceiptArgs};
use crate::exit::Exit;
use crate::{output, person, render, state_folder};
use anyhow::{Context, Result};
use counterfoil_agents::redact::{RedactionLevel, Redactor};
use counterfoil_contract::text::{Form, display_path, neutralize};
use counterfoil_engine::Engine;
use counterfoil_engine::receipt::{EventChain, Receipt, SealedReceipt, content_digest};
use counterfoil_flow::Bundle;
use counterfoil_workspace::{atomic_write, git};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ReceiptArgs) -> Result<Exit> {
    match &args.command {
        Some(ReceiptCommand::Verify(args)) => verify::run(args),
        None => write(&args.write),
    }
}

fn write(args: &WriteReceiptArgs) -> Result<Exit> {
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let engine = state_folder::open_to_read(&state)?;
    let run = engine.journal().resolve(&args.run)?;
    let receipt = document(&engine, &state, &args.location, &run)?;
    match args.format {
        ReceiptFormat::Json => output::write_json(&receipt)?,
        ReceiptFormat::Markdown => output::write_stdout(&render::receipt::markdown(&receipt))?,
        ReceiptFormat::Files => {
            let json = serde_json::to_string_pretty(&receipt)? + "\n";
            let page = render::receipt::page(&receipt)?;
            std::fs::create_dir_all(&args.output).with_context(|| {
                format!("cannot create the folder {}", display_path(&args.output))
            })?;
            let file = |extension: &str| args.output.join(format!("receipt-{run}.{extension}"));
            let files = [file("html"), file("json")];
            if let Some(note) = exempt(&engine, &state, args, &run, &files)? {
                output::write_message("note", &note);
            }
            let [html, data] = files;
            for (path, text) in [(html, page.as_str()), (data, &neutralize(&json, Form::Json))] {
                atomic_write(&path, text.as_bytes())
                    .with_context(|| format!("cannot write {}", display_path(&path)))?;
                output::write_stdout(&format!("{}\n", display_path(&path)))?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Sees to it that the files of a receipt do not count as changes of a run that has not ended. Returns
/// what to say if they do.
fn exempt(
    engine: &Engine,
    state: &Path,
    args: &WriteReceiptArgs,
    run: &str,
    files: &[PathBuf],
) -> Result<Option<String>> {
    let run_state = engine.run_state(run)?;
    let repo = state_folder::repository_of_run(&args.location, state, &run_state.repo)?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (repo, folder) = (real(&repo), real(&args.output));
    let top = git::repository_top(&repo).unwrap_or(&repo);
    if run_state.ended.is_some() || !folder.starts_with(top) {
        return Ok(None);
    }
    let names = files.iter().filter_map(|file| file.file_name());
    // What drives the run has read which files are ours, and nobody who works in a run says it.
    let is_exempt = !engine.journal().run(run)?.is_driven()
        && person::require_outside_of_attempts("receipt").is_ok()
        && engine.add_output_files(run, names.map(|name| folder.join(name))).is_ok();
    Ok((!is_exempt).then(|| {
        format!(
            "run {run} has not ended, so these files count as changes of its current step; remove \
             them, or write them to a folder outside of the repository with --output DIR"
        )
    }))
}

/// The receipt of a run as a JSON document, redacted, with its digest and its seal.
fn document(engine: &Engine, state: &Path, location: &StateLocation, run: &str) -> Result<Value> {
    let chain = chain(engine, run)?;
    let run_state = engine.run_state(run)?;
    let bundle = Bundle::from_bytes(&engine.journal().bundle(&run_state.bundle)?)?;
    let entries = engine.ledger(run)?.entries();
    let report = engine.report(run)?;
    let mut receipt = Receipt::new(&report, &run_state, entries, &bundle.contracts, chain.clone());
    let repo = state_folder::repository_of_run(location, state, &run_state.repo)?;
    changes::add(&mut receipt, engine, &report, &repo);
    let mut redactor = super::export::redactor(location, Path::new(&run_state.repo))?;
    let mut document = redacted(receipt, &mut redactor)?;
    // The digests are no secrets, and must not be taken for any.
    document.insert("journal".to_owned(), serde_json::to_value(&chain)?);
    let content = Value::Object(document.clone());
    let sha256 = content_digest(&content);
    let seal = engine.journal().seal(run, sha256.as_bytes());
    Ok(serde_json::to_value(SealedReceipt { content: document, seal, sha256 })?)
}

/// The chain of the events in the journal, whose own digests are checked.
fn chain(engine: &Engine, run: &str) -> Result<EventChain> {
    let info = engine.journal().run(run)?;
    let mut chain = EventChain::new(run, &info.bundle);
    engine.journal().visit(run, 1, |event| {
        chain.add(&event);
        ControlFlow::Continue(())
    })?;
    Ok(chain)
}

/// A receipt without secrets. All of it is read first, so that a secret that is recognised in one
/// place is redacted in all.
fn redacted(mut receipt: Receipt, redactor: &mut Redactor) -> Result<Map<String, Value>> {
    receipt.redacted = true;
    let all = serde_json::to_vec(&receipt)?;
    redactor.learn(&all);
    // Texts of several lines are also read as they are: the lines of a key belong together.
    let diffs = receipt.commits.iter_mut().map(|commit| &mut commit.diff);
    let outputs = receipt.checks.iter_mut().map(|check| &mut check.report.output);
    let evidence = receipt.claims.iter_mut().flat_map(|entry| &mut entry.claim.evidence);
    let mut texts: Vec<&mut String> = diffs
        .chain([&mut receipt.changes.diff])
        .chain(outputs)
        .chain(evidence.map(|evidence| &mut evidence.output))
        .collect();
    for text in &texts {
        redactor.learn(text.as_bytes());
    }
    for text in &mut texts {
        **text = redactor.redact_text(text, RedactionLevel::Full);
    }
    let all = serde_json::to_vec(&receipt)?;
    let redacted = redactor.redact_bytes(&all, RedactionLevel::Full);
    Ok(serde_json::from_slice(&redacted.context("the receipt is not text")?)?)
}
