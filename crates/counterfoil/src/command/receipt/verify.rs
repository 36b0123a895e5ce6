//! The command `counterfoil receipt verify`.

use crate::cli::{ListFormat, VerifyReceiptArgs};
use crate::exit::Exit;
use crate::report::receipt::{Comparison, ReceiptVerification, RerunCheck};
use crate::{input, output, render, state_folder, unique_keys};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::Contract;
use counterfoil_contract::text::{display_path, pluralize};
use counterfoil_engine::config::Config;
use counterfoil_engine::receipt::{EventChain, ReceiptCheck, VERSION, content_digest};
use counterfoil_flow::CheckStatus;
use counterfoil_process::StopRequest;
use counterfoil_process::contain::Launcher;
use counterfoil_verify::baseline::{BaselineError, RevisionBaseline};
use counterfoil_verify::claims::{
    Check, CheckRun, CommitsBefore, StartWords, VerifyConfig, VerifyContext, run_check,
};
use counterfoil_workspace::git::{head, repository_top};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// The size limit of a receipt.
const MAX_BYTES: usize = 512 << 20;

/// What is read of a receipt. The rest is only covered by its digest.
#[derive(Deserialize)]
struct Document {
    receipt: u32,
    run: String,
    sha256: String,
    seal: Option<String>,
    journal: EventChain,
    #[serde(default)]
    checks: Vec<ReceiptCheck>,
}

pub(super) fn run(args: &VerifyReceiptArgs) -> Result<Exit> {
    let (value, receipt) = read(&args.file)?;
    let mut found = ReceiptVerification::new(&receipt.run);
    let is_whole = check_digests(&value, &receipt, &mut found);
    compare_with_journal(args, &receipt, is_whole, &mut found)?;
    if args.rerun && !rerun(args, &receipt, &mut found)? {
        return Ok(Exit::Cancelled);
    }
    match args.format {
        ListFormat::Json => output::write_json(&found)?,
        ListFormat::Human => {
            let style = output::stdout_line_style();
            let shown = render::receipt::verification(&found, args.require_genuine, style);
            output::write_stdout(&shown)?;
        }
    }
    let is_refused = found.is_altered() || (args.require_genuine && !found.genuine);
    Ok(match (is_refused, found.has_other_outcome()) {
        (true, _) => Exit::Failure,
        (false, true) => Exit::Claim,
        (false, false) => Exit::Success,
    })
}

fn read(path: &Path) -> Result<(Value, Document)> {
    let (name, bytes) = input::read(path, MAX_BYTES)?;
    if bytes.len() > MAX_BYTES {
        bail!("{name} is larger than {MAX_BYTES} bytes");
    }
    if bytes.trim_ascii_start().starts_with(b"<") {
        bail!("{name} is a page; give the JSON file of the receipt, which stands beside it");
    }
    let value = unique_keys::read(&bytes).with_context(|| format!("{name} is not a receipt"))?;
    if !value.is_object() {
        bail!("{name} is not a receipt: it is not a JSON object");
    }
    let receipt: Document = Document::deserialize(&value).map_err(|error| {
        let why = error.to_string();
        // What serde says of a part names a type of this program.
        let why = if why.contains("struct ") { "a part of it has another form" } else { &why };
        anyhow!("{name} is not a receipt: {why}")
    })?;
    if receipt.receipt != VERSION {
        bail!("{name} is a receipt of version {}; this program reads {VERSION}", receipt.receipt);
    }
    Ok((value, receipt))
}

/// Compares the digests of a receipt with its content. Returns whether the content is what it was.
fn check_digests(value: &Value, receipt: &Document, found: &mut ReceiptVerification) -> bool {
    let is_whole = content_digest(value) == receipt.sha256;
    if is_whole {
        found.add("content", Comparison::Agrees, format!("sha256 {}", receipt.sha256));
    } else {
        let detail = "the receipt was changed: its digest does not match its content";
        found.add("content", Comparison::Differs, detail.to_owned());
    }
    match receipt.journal.check(&receipt.run) {
        Ok(()) => {
            let events = pluralize(receipt.journal.links.len(), "event");
            found.add(
                "chain",
                Comparison::Agrees,
                format!("{events}, head {}", receipt.journal.head),
            );
        }
        Err(error) => found.add("chain", Comparison::Differs, error.to_string()),
    }
    is_whole
}

/// Compares a receipt with the journal of its run, if that is here.
fn compare_with_journal(
    args: &VerifyReceiptArgs,
    receipt: &Document,
    is_whole: bool,
    found: &mut ReceiptVerification,
) -> Result<()> {
    let state = state_folder::of(&args.location)?;
    let absent = |found: &mut ReceiptVerification, why: String| {
        found.add("journal", Comparison::Unknown, why);
        // To see this needs no key.
        if receipt.seal.as_ref().is_none_or(String::is_empty) {
            found.add("seal", Comparison::Differs, "the receipt has no seal".to_owned());
        }
    };
    if state_folder::require_runs(&state).is_err() {
        absent(
            found,
            "there is no journal here; name it with --state DIR or --repo DIR".to_owned(),
        );
        return Ok(());
    }
    let engine = state_folder::open_to_read(&state)?;
    let journal = match super::chain(&engine, &receipt.run) {
        Ok(journal) => journal,
        Err(error) if is_unknown_run(&error) => {
            absent(found, "the journal here does not have the run".to_owned());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match receipt.journal.compare(&journal) {
        Ok(()) => {
            let more = journal.links.len() - receipt.journal.links.len();
            let went_on = match more {
                0 => String::new(),
                more => format!("; the run went on by {}", pluralize(more, "event")),
            };
            let mut later = journal.links.iter().skip(receipt.journal.links.len());
            let is_undone = later.any(|link| link.kind == "run-undone");
            let went_on = if is_undone { went_on + ", and was undone" } else { went_on };
            found.add("journal", Comparison::Agrees, format!("its events are the same{went_on}"));
        }
        Err(error) => found.add("journal", Comparison::Differs, error.to_string()),
    }
    let expected = engine.journal().seal(&receipt.run, receipt.sha256.as_bytes());
    match (expected, &receipt.seal) {
        (Some(expected), Some(seal)) if expected == *seal && !is_whole => {
            let detail = "made with the key of the journal, for another content";
            found.add("seal", Comparison::Differs, detail.to_owned());
        }
        (Some(expected), Some(seal)) if expected == *seal => {
            found.genuine = !found.is_altered();
            found.add("seal", Comparison::Agrees, "made with the key of the journal".to_owned());
        }
        (Some(_), Some(_)) => {
            found.add(
                "seal",
                Comparison::Differs,
                "not made with the key of the journal".to_owned(),
            );
        }
        (None, _) => {
            found.add("seal", Comparison::Unknown, "the key of the journal is not here".to_owned());
        }
        (Some(_), None) => {
            let detail = "the receipt has no seal; one that was made here has";
            found.add("seal", Comparison::Differs, detail.to_owned());
        }
    }
    Ok(())
}

fn is_unknown_run(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(counterfoil_engine::journal::Error::NoRun { .. }))
}

/// Runs the checks again. Returns false if a signal stopped it.
fn rerun(
    args: &VerifyReceiptArgs,
    receipt: &Document,
    found: &mut ReceiptVerification,
) -> Result<bool> {
    let repo = input::repository(args.location.repo.as_deref())?;
    let state = state_folder::of(&args.location)?;
    let config = Config::load(&repo, &repo)?.verify;
    // The last outcome of each check is the one that the run ended with.
    let last: BTreeMap<&str, &ReceiptCheck> =
        receipt.checks.iter().map(|check| (check.name.as_str(), check)).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (sender, stop) = watch::channel(StopRequest::None);
    for (name, recorded) in last {
        let expected = match recorded.report.status {
            CheckStatus::Passed => true,
            CheckStatus::Failed => false,
            CheckStatus::NotConfigured => continue,
        };
        let check = match command(name, recorded, &config, found.genuine) {
            Ok(check) => check,
            Err(why) => {
                found.add_check(RerunCheck {
                    name: name.to_owned(),
                    command: recorded.report.command.clone(),
                    result: Comparison::Unknown,
                    same_tree: None,
                    detail: why,
                });
                continue;
            }
        };
        let mut running = Box::pin(run_in(&repo, &state, &config, &check, stop.clone()));
        let ran = runtime.block_on(async {
            tokio::select! {
                ran = &mut running => ran,
                () = crate::command::verify::stop_signal() => {
                    let _ = sender.send(StopRequest::Immediate);
                    running.await
                }
            }
        })?;
        let Some(ran) = ran else { return Ok(false) };
        found.add_check(outcome(name, expected, recorded, &ran));
    }
    Ok(true)
}

fn outcome(name: &str, expected: bool, recorded: &ReceiptCheck, ran: &CheckRun) -> RerunCheck {
    let word = |passed: bool| if passed { "passes" } else { "fails" };
    let agrees = ran.passed() == expected;
    let detail = if agrees {
        format!("{} again", word(expected))
    } else {
        let reason =
            if ran.reason.is_empty() { String::new() } else { format!(": {}", ran.reason) };
        format!(
            "was recorded as one that {}, and {} now{reason}",
            word(expected),
            word(ran.passed())
        )
    };
    let same_tree =
        recorded.report.tree.as_ref().zip(ran.tree.as_ref()).map(|(then, now)| then == now);
    RerunCheck {
        name: name.to_owned(),
        command: ran.command.clone(),
        result: if agrees { Comparison::Agrees } else { Comparison::Differs },
        same_tree,
        detail,
    }
}

/// The check to run. A receipt is a file that anybody may have written: its own commands are run only
/// if it is genuine.
fn command(
    name: &str,
    recorded: &ReceiptCheck,
    config: &VerifyConfig,
    is_genuine: bool,
) -> Result<Check, String> {
    let line = recorded.report.command.as_str();
    match config.checks.get(name) {
        Some(check) if line.is_empty() || check.run.to_string() == line => Ok(check.clone()),
        Some(check) if !is_genuine => {
            Err(format!("not run: counterfoil.toml has another command, `{}`", check.run))
        }
        _ if line.is_empty() => Err("not run: the check is not in counterfoil.toml".to_owned()),
        _ if is_genuine => Ok(Check::shell(line)),
        _ => Err(
            "not run: the command is not in counterfoil.toml, and the receipt has no valid seal"
                .to_owned(),
        ),
    }
}

async fn run_in(
    repo: &Path,
    state: &Path,
    config: &VerifyConfig,
    check: &Check,
    stop: watch::Receiver<StopRequest>,
) -> Result<Option<CheckRun>> {
    let own_files = BTreeSet::from([state.to_owned(), repo.join(crate::project::STATE_FOLDER)]);
    let mut base = RevisionBaseline::open(repo, "HEAD", &own_files, None)
        .map_err(|why| cannot_rerun(repo, &why))?;
    let diff = base.diff();
    let (folder, top) = (diff.folder().to_owned(), diff.top().to_owned());
    let launcher = Launcher::new(config.contain.clone(), std::env::current_exe().ok(), Some(state));
    let no_contracts = |_: &str| -> Option<Arc<Contract>> { None };
    let mut context = VerifyContext {
        folder: &folder,
        top: &top,
        view: diff,
        config,
        contracts: &no_contracts,
        cache: None,
        unrestored: &[],
        may_change: &|_| true,
        start: StartWords::RUN,
        commits_before: &CommitsBefore::Unknown(String::new()),
        stop,
        marker: format!("receipt/{}", std::process::id()),
        launcher: &launcher,
        own_files: &own_files,
        run_commands: true,
        since: "HEAD",
        concurrent_writer: None,
    };
    Ok(run_check(check, &mut context).await)
}

/// Why the checks cannot be run again in a repository, and what to do.
fn cannot_rerun(repo: &Path, why: &BaselineError) -> anyhow::Error {
    let shown = display_path(repo);
    let way_out = "name the repository of the run with --repo DIR, or leave out --rerun";
    if repository_top(repo).is_none() {
        return anyhow!(
            "{shown} is not in a git repository, so the checks cannot be run again; {way_out}"
        );
    }
    if head(repo).is_none() {
        return anyhow!(
            "the repository {shown} has no commit to compare the files with, so the checks cannot be \
             run again; commit the files, {way_out}"
        );
    }
    anyhow!("the checks cannot be run again: {why}")
}
