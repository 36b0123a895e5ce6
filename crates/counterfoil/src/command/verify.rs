//! The command `counterfoil verify`.

use crate::cli::{Format, VerifyArgs};
use crate::exit::Exit;
use crate::gate::{GatedClaims, GatedWork, gate};
use crate::project::{self, STATE_FOLDER};
use crate::render::github::Answer;
use crate::report::check::{NotExamined, VerifyReport, VerifySummary};
use crate::{input, output, render, state_folder};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, EffectiveClaim};
use counterfoil_contract::suggest::{did_you_mean, how_to_add_check};
use counterfoil_contract::text::{display_path, escape_control, join_limited};
use counterfoil_contract::{Context as Known, Contract, Report};
use counterfoil_engine::config::FILE;
use counterfoil_process::StopRequest;
use counterfoil_process::contain::Launcher;
use counterfoil_verify::baseline::{ConfigNotice, EarlierFiles, RevisionBaseline};
use counterfoil_verify::claims::{Check, CommitsBefore, StartWords, VerifyContext, verify};
use counterfoil_verify::protect::WriteRules;
use counterfoil_verify::unfinished::{UnfinishedWork, Unread};
use counterfoil_verify::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::git::{head, repository_top};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// The folder in the state folder that keeps files while a check is run as it was at the base.
const KEPT: &str = "verify";
/// The maximum number of files that a note names.
const MAX_NAMES: usize = 10;
/// The fewest digits of the id of a commit that git takes for it.
const MIN_ABBREVIATION: usize = 4;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    let folder = input::repository(args.repo.as_deref())?;
    let state = state_folder::find(&folder)?.folder;
    let own_files = own_files(&folder, &state, &args.file);
    let kept = (!args.no_commands).then(|| state.join(KEPT));
    let base = RevisionBaseline::open(&folder, &args.base, &own_files, kept.as_deref());
    let mut base = base.map_err(|why| {
        let shown = display_path(&folder);
        if repository_top(&folder).is_none() {
            return anyhow!(
                "{shown} is not in a git repository, so the claims cannot be checked against what changed; \
                 name the repository with --repo DIR, or use `counterfoil check` for the result alone"
            );
        }
        if why.is_shallow {
            return anyhow!(
                "{why}; get the history of {shown} with `git fetch --unshallow`, or in GitHub Actions with \
                 `fetch-depth: 0` of actions/checkout"
            );
        }
        anyhow!(
            "{why}; set --base to the commit in {shown} from which the agent started, \
             as `git rev-parse HEAD` printed it before the agent worked"
        )
    })?;
    let ContractsThen { contract, folders, notes, _copies } = contracts_then(args, &mut base)?;
    let claims = effective_claims(&contract, &args.required)?;
    for (name, _) in &args.checks {
        refuse_unused_check(name, &claims, &contract)?;
    }
    let file = input::named(&args.file);
    let (_, bytes) = input::read(&args.file, contract.policy().max_bytes)?;
    // Absolute paths in the workspace become relative ones, as in a run.
    let workspace = counterfoil_workspace::folder_names(&folder);
    let known = Known { workspace, ..Known::default() };
    let policy = contract.policy().with_context(&Arc::new(known));
    let (report, text) = super::check::check_bytes(&contract, &policy, &bytes);
    let mut notes: Vec<String> = base.notes().iter().cloned().chain(notes).collect();
    if !report.is_accepted() {
        match args.format {
            Format::Json => print_json(args, &report, &GatedClaims::default(), &notes, None)?,
            format => {
                write_notes(&notes);
                super::check::print_report(format, &contract, &report, &args.file, &text, &folder)?;
            }
        }
        return Ok(Exit::Failure);
    }
    let surroundings = Surroundings { state: &state, own_files: &own_files, contracts: &folders };
    let moved_base = note_on_name_of_head(&folder, &args.base, base.commit());
    let unfinished = args.strict.then(|| GatedWork::from(unfinished_work(base.diff())));
    let verified =
        verify_claims(args, &contract, &claims, &report, &mut base, &surroundings, &mut notes)?;
    let Some(verified) = verified else { return Ok(Exit::Cancelled) };
    notes.extend(moved_base);
    let gated = gate(verified, &claims, &args.required);
    let line = report.provenance.span.map(|span| span.line);
    match args.format {
        Format::Json => print_json(args, &report, &gated, &notes, unfinished.as_ref())?,
        Format::Sarif => {
            write_notes(&notes);
            let (file, work) = (input::placed(file, &folder), placed(unfinished.as_ref(), &folder));
            let log = render::sarif::claims(&gated, &report.contract, &file, line, work.as_ref());
            output::write_json(&log)?;
        }
        Format::Junit => {
            write_notes(&notes);
            let suite = render::junit::claims(&gated, &report.contract, unfinished.as_ref());
            output::write_xml(&suite?)?;
        }
        Format::Github => {
            write_notes(&notes);
            let is_file = args.file.as_os_str() != "-";
            let (file, work) = (input::placed(file, &folder), placed(unfinished.as_ref(), &folder));
            let answer = Answer { file: is_file.then_some(file.as_path()), line };
            let claims = render::github::claims(&gated, answer);
            output::write_stdout(&(claims + &render::github::unfinished(work.as_ref())))?;
        }
        Format::Human => {
            write_notes(&notes);
            output::write_quoting(&render::claims::verification(
                &gated,
                &report.contract,
                &args.base,
                &report.provenance.defaults,
                output::stdout_line_style(),
            ))?;
            if let Some(work) = &unfinished {
                output::write_quoting(&render::claims::unfinished(work))?;
            }
        }
    }
    let failed = gated.fails() || unfinished.as_ref().is_some_and(GatedWork::fails);
    Ok(if failed { Exit::Claim } else { Exit::Success })
}

/// Unfinished work in a folder with the paths from the top of the repository.
fn placed(work: Option<&GatedWork>, folder: &Path) -> Option<GatedWork> {
    let path_of = |file: &Path| {
        input::from_top(&folder.join(file), folder).unwrap_or_else(|| file.to_owned())
    };
    work.map(|work| work.with_paths(path_of))
}

/// A note that the base is a name of the commit that is checked out: it may have moved with commits of
/// the agent. An id of a commit does not move.
fn note_on_name_of_head(folder: &Path, base: &str, commit: &str) -> Option<String> {
    let is_id = base.len() >= MIN_ABBREVIATION && commit.starts_with(&base.to_lowercase());
    (!is_id && head(folder).as_deref() == Some(commit)).then(|| {
        format!(
            "the base '{base}' is the commit that is checked out, so commits of the agent are not seen; \
             name the commit from before it worked"
        )
    })
}

/// Remarks about the verification, for people: in JSON they are part of the document.
fn write_notes(notes: &[String]) {
    for note in notes {
        output::write_message("note", &escape_control(note.trim_end()));
    }
}

/// What the changes since the base left unfinished. Checks may change files, so it comes before them.
fn unfinished_work(diff: &mut WorkspaceDiff) -> UnfinishedWork {
    diff.refresh();
    match diff.unobservable_reason() {
        Some(reason) => {
            let unread = vec![Unread { file: None, reason }];
            UnfinishedWork { unread, ..UnfinishedWork::default() }
        }
        None => diff.unfinished_work(),
    }
}

/// The contracts as they were at the base: an agent that changes them would choose what it claims.
struct ContractsThen {
    contract: Arc<Contract>,
    /// The folders with contracts.
    folders: Vec<PathBuf>,
    /// What differs from the work tree.
    notes: Vec<String>,
    _copies: Vec<EarlierFiles>,
}

fn contracts_then(args: &VerifyArgs, base: &mut RevisionBaseline) -> Result<ContractsThen> {
    let mut then = |path: &Path| -> Result<Option<EarlierFiles>> {
        base.earlier_files(path, input::is_contract_file).with_context(|| {
            format!("the contracts in {} cannot be read as in {}", display_path(path), args.base)
        })
    };
    let (mut copies, mut folders) = (Vec::new(), Vec::new());
    let mut name = args.contract.clone();
    if input::is_contract_file(Path::new(&args.contract))
        && let Some(earlier) = then(Path::new(&args.contract))?
    {
        if let Some(path) = &earlier.path {
            name = path.to_string_lossy().into_owned();
        }
        copies.push(earlier);
    }
    for folder in &args.contracts {
        let earlier = then(folder)?;
        let copy = earlier.as_ref().and_then(|earlier| earlier.path.clone());
        folders.push(copy.unwrap_or_else(|| folder.clone()));
        copies.extend(earlier);
    }
    let now = || project::named_contract(&args.contract, &args.contracts);
    let (contract, is_as_now) = if copies.iter().all(|copy| copy.path.is_none()) {
        (now()?, true)
    } else {
        // A contract that is new since then is used as it is.
        match input::contract(&name, &folders) {
            Ok(contract) => (contract, false),
            Err(error) if error.is::<counterfoil_contract::registry::NotFound>() => (now()?, true),
            Err(error) => return Err(error.context(format!("the contracts as in {}", args.base))),
        }
    };
    // A changed file may have a name or a version that the base does not have.
    let top = base.diff().top().to_owned();
    let has_it = |path: &Path| {
        let is_it = |now: Contract| now.reference() == contract.reference();
        is_as_now && Contract::from_file(&top.join(path)).is_ok_and(is_it)
    };
    let notes = notes_on_contracts(&copies, is_as_now, has_it);
    Ok(ContractsThen { contract, folders, notes, _copies: copies })
}

/// What is said of contracts that are not as they were at the base. `is_as_now`: the contract is one
/// of the work tree. `has_it`: whether a changed file has it.
fn notes_on_contracts(
    copies: &[EarlierFiles],
    is_as_now: bool,
    has_it: impl Fn(&Path) -> bool,
) -> Vec<String> {
    let mut changed: BTreeSet<&Path> = BTreeSet::new();
    let mut used: BTreeSet<&Path> = BTreeSet::new();
    let mut unused: BTreeSet<&Path> = BTreeSet::new();
    for copy in copies {
        changed.extend(copy.changed.iter().map(PathBuf::as_path));
        // Without a copy, the files of the work tree were read.
        let added = if is_as_now || copy.path.is_none() { &mut used } else { &mut unused };
        added.extend(copy.added.iter().map(PathBuf::as_path));
    }
    unused.retain(|path| !used.contains(path));
    let (renamed, changed): (BTreeSet<&Path>, BTreeSet<&Path>) =
        changed.into_iter().partition(|path| has_it(path));
    [
        ("contracts changed since the base commit; those of that commit are used", changed),
        ("contracts with another name or version in the base commit are used as they are", renamed),
        ("contracts added since the base commit are used as they are", used),
        ("contracts added since the base commit are not used", unused),
    ]
    .into_iter()
    .filter(|(_, paths)| !paths.is_empty())
    .map(|(what, paths)| {
        let names = join_limited(paths.into_iter().map(display_path), MAX_NAMES);
        format!("{what}: {names}")
    })
    .collect()
}

/// The claims to verify: those of the contract, and the required ones even if the contract ignores
/// them.
fn effective_claims(contract: &Contract, required: &[String]) -> Result<Vec<EffectiveClaim>> {
    let mut claims = contract.effective_claims();
    for name in required {
        match claims.iter_mut().find(|claim| claim.name == *name) {
            Some(claim) if claim.claim.policy == ClaimPolicy::Ignore => {
                claim.claim.policy = ClaimPolicy::Require;
            }
            Some(_) => {}
            None => {
                let known: Vec<&str> = claims.iter().map(|claim| claim.name.as_str()).collect();
                let hint = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known
                    .as_slice()
                {
                    [] => "it has no claims".to_owned(),
                    known => format!("its claims are {}", known.join(", ")),
                });
                bail!("{} has no claim '{name}'; {hint}", contract.reference());
            }
        }
    }
    Ok(claims)
}

/// An error for a check that no claim runs: with a misspelled name, nothing would be checked.
fn refuse_unused_check(name: &str, claims: &[EffectiveClaim], contract: &Contract) -> Result<()> {
    let verified = || claims.iter().filter(|claim| claim.claim.policy != ClaimPolicy::Ignore);
    let used: BTreeSet<&str> =
        verified().filter_map(|claim| claim.claim.check.as_deref()).collect();
    let near = did_you_mean(name, used.iter().copied());
    // A command that an agent names may be run if it is one of the checks.
    let any_command = verified().any(|claim| claim.claim.kind == ClaimKind::Commands);
    if used.contains(name) || (any_command && near.is_none()) {
        return Ok(());
    }
    let hint = near.unwrap_or_else(|| {
        if used.is_empty() {
            "its claims run no checks".to_owned()
        } else {
            format!("its claims run {}", join_limited(&used, MAX_NAMES))
        }
    });
    bail!("no claim of {} runs the check '{name}'; {hint}", contract.reference())
}

/// An error for a required claim whose check is configured nowhere: it could never be verified. For
/// any claim it is an error if a check has nearly that name: then one of the two is misspelled.
fn refuse_missing_checks(
    required: &[String],
    claims: &[EffectiveClaim],
    known: &[&str],
) -> Result<()> {
    let is_required = |claim: &EffectiveClaim| {
        claim.claim.policy == ClaimPolicy::Require || required.contains(&claim.name)
    };
    for claim in claims.iter().filter(|claim| claim.claim.policy != ClaimPolicy::Ignore) {
        let Some(check) = claim.claim.check.as_deref().filter(|check| !known.contains(check))
        else {
            continue;
        };
        let near = did_you_mean(check, known.iter().copied());
        if !is_required(claim) && near.is_none() {
            continue;
        }
        let required = if is_required(claim) { "is required, but" } else { "cannot be verified:" };
        let near = near.map(|near| format!("{near} Otherwise ")).unwrap_or_default();
        bail!(
            "the claim '{}' {required} there is no check '{check}'; {near}give it with --check \
             {check}=CMD, or {} at the base commit",
            claim.name,
            how_to_add_check(check, None, FILE)
        );
    }
    Ok(())
}

/// The folders and files of our own.
struct Surroundings<'a> {
    state: &'a Path,
    own_files: &'a BTreeSet<PathBuf>,
    /// The folders with contracts.
    contracts: &'a [PathBuf],
}

/// The paths that are not part of the agent's work: the state folders, the file with the result (also
/// if standard input is redirected from it), and the files that our own output goes to.
fn own_files(folder: &Path, state: &Path, file: &Path) -> BTreeSet<PathBuf> {
    let repository = repository_top(folder).into_iter();
    let mut excluded: BTreeSet<PathBuf> =
        repository.chain([folder]).map(|folder| folder.join(STATE_FOLDER)).collect();
    excluded.extend(std::path::absolute(state).ok().into_iter().chain(state.canonicalize().ok()));
    excluded.extend(counterfoil_process::output_files());
    if file.as_os_str() == "-" {
        excluded.extend(counterfoil_process::input_file());
    } else {
        excluded.extend(std::path::absolute(file).ok().into_iter().chain(file.canonicalize().ok()));
    }
    excluded
}

/// Verifies the claims against the repository. Returns none if a signal stopped it.
fn verify_claims(
    args: &VerifyArgs,
    contract: &Contract,
    claims: &[EffectiveClaim],
    report: &Report,
    base: &mut RevisionBaseline,
    around: &Surroundings<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<ClaimReport>>> {
    let (mut config, notice) = base.config()?;
    notes.extend(notice.map(|notice| {
        match notice {
            ConfigNotice::Changed => notice.to_string(),
            ConfigNotice::Added => {
                "counterfoil.toml is not in the base commit, so its checks are ignored; \
             name checks with --check NAME=CMD"
                    .to_owned()
            }
        }
    }));
    for (name, line) in &args.checks {
        if line.trim().is_empty() {
            bail!("the check '{name}' has no command; use --check {name}=CMD");
        }
        config.checks.insert(name.clone(), Check::shell(line));
    }
    if !args.no_commands {
        let known: Vec<&str> = config.checks.keys().map(String::as_str).collect();
        refuse_missing_checks(&args.required, claims, &known)?;
    }
    let registry = input::registry(around.contracts)?;
    let contracts = move |id: &str| -> Option<Arc<Contract>> { registry.get(id).ok() };
    let diff = base.diff();
    let (folder, top) = (diff.folder().to_owned(), diff.top().to_owned());
    let value = report.value.clone().context("the accepted result has no value")?;
    let (sender, stop) = watch::channel(StopRequest::None);
    let launcher =
        Launcher::new(config.contain.clone(), std::env::current_exe().ok(), Some(around.state));
    let rules = WriteRules::new(Some(&args.may_change), &[], &[])
        .map_err(|error| anyhow!("--may-change: {error}"))?;
    let as_then = format!("as in {}", args.base);
    let mut context = VerifyContext {
        folder: &folder,
        top: &top,
        view: diff,
        config: &config,
        contracts: &contracts,
        cache: None,
        unrestored: &[],
        may_change: &|path| rules.names(path),
        start: StartWords {
            since: &args.base,
            as_then: &as_then,
            way_out: "to allow the change, add --may-change PATH",
        },
        commits_before: &CommitsBefore::Revision(args.base.clone()),
        stop,
        launcher: &launcher,
        marker: format!("verify/{}", std::process::id()),
        own_files: around.own_files,
        run_commands: !args.no_commands,
        since: &args.base,
        concurrent_writer: None,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (claims, stopped) = runtime.block_on(async {
        let mut verifying = std::pin::pin!(verify(claims, contract, &value, &mut context));
        tokio::select! {
            claims = &mut verifying => (claims, false),
            // Stopping also ends the processes that a check started.
            () = stop_signal() => {
                let _ = sender.send(StopRequest::Immediate);
                (verifying.await, true)
            }
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok((!stopped).then_some(claims))
}

/// Waits for SIGINT, SIGTERM or SIGHUP. If signal handlers cannot be installed, it never returns.
pub(super) async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// Prints the report of `check` with the verdicts of the claims.
fn print_json(
    args: &VerifyArgs,
    report: &Report,
    gated: &GatedClaims,
    notes: &[String],
    unfinished: Option<&GatedWork>,
) -> Result<()> {
    output::write_json(&VerifyReport {
        report,
        base: &args.base,
        claims: &gated.made,
        not_made: &gated.not_made,
        summary: VerifySummary { totals: gated.totals(), not_made: gated.not_made.len() },
        notes,
        unfinished: unfinished.map(|work| work.places.as_slice()),
        not_examined: unfinished
            .map(|work| work.not_examined.iter().map(NotExamined::new).collect()),
    })
}
