//! Measures snapshots and the verification of claims, compared with `git status`, in generated
//! repositories with 10,000 and 100,000 committed files, 50 edited files and 50 new ones. Prints
//! one JSON object per line.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use counterfoil_contract::Contract;
use counterfoil_process::StopRequest;
use counterfoil_verify::claims::{CommitsBefore, StartWords, VerifyConfig, VerifyContext, verify};
use counterfoil_verify::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::snapshot::{Revision, Settings, Snapshotter};
use counterfoil_workspace::workspaces::Workspaces;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const TOUCHED: usize = 50;

fn main() {
    let folder =
        std::env::var("BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    for files in [10_000, 100_000] {
        let folder = tempfile::tempdir_in(&folder).unwrap();
        make(folder.path(), files);
        measure(folder.path(), files);
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@bench", "-c", "gc.auto=0"]);
    command.args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    assert!(command.stdout(Stdio::null()).status().unwrap().success(), "git {arguments:?}");
}

fn path(at: usize) -> String {
    format!("part{}/module{}/file{at}.rs", at / 5000, at / 100)
}

/// Creates a repository with edits that are old enough for git to trust their times.
fn make(folder: &Path, files: usize) {
    git(folder, &["init", "-q"]);
    for at in 0..files {
        let path = folder.join(path(at));
        if at % 100 == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("pub fn number() -> usize {{\n    {at}\n}}\n").repeat(1 + at % 20))
            .unwrap();
    }
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "all"]);
    std::thread::sleep(Duration::from_secs(2));
    git(folder, &["update-index", "-q", "--refresh"]);
    edit(folder, files, 0);
    for at in 0..TOUCHED {
        fs::write(folder.join(format!("part0/new{at}.rs")), format!("new {at}\n").repeat(100))
            .unwrap();
    }
    std::thread::sleep(Duration::from_secs(3));
}

fn edit(folder: &Path, files: usize, round: usize) {
    for at in (0..TOUCHED).map(|at| (at * files / TOUCHED + round) % files) {
        fs::write(folder.join(path(at)), format!("edited {round}\n").repeat(100)).unwrap();
    }
}

fn measure(folder: &Path, files: usize) {
    let mut times: [Vec<Duration>; 4] = Default::default();
    let timed = |times: &mut Vec<Duration>, act: &mut dyn FnMut()| {
        let started_at = Instant::now();
        act();
        times.push(started_at.elapsed());
    };
    let mut tree = Snapshotter::open(folder, Settings::default());
    tree.snapshot();
    // Interleaved, so that other load affects all measurements alike.
    for _ in 0..ROUNDS {
        timed(&mut times[0], &mut || {
            git(folder, &["--no-optional-locks", "status", "--porcelain"]);
        });
        timed(&mut times[1], &mut || drop(tree.snapshot()));
        timed(&mut times[2], &mut || {
            Snapshotter::open(folder, Settings::default()).snapshot();
        });
    }
    let before = tree.snapshot();
    for round in 1..=ROUNDS {
        edit(folder, files, round);
        let after = tree.snapshot();
        timed(&mut times[3], &mut || drop(tree.changes(&before, &after)));
    }
    let verified: Vec<Duration> =
        (0..ROUNDS).map(|round| verified(folder, files, 2 * ROUNDS + round)).collect();
    let revisions: Vec<Duration> = (0..3).map(|_| compared_with_head(folder)).collect();
    let state = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let started_at = Instant::now();
    let workspaces = Workspaces::new(state.path(), folder);
    workspaces.open("bench", "one", &BTreeSet::new()).unwrap();
    let worktree = started_at.elapsed().as_secs_f64() * 1000.0;
    workspaces.discard("bench", "one").unwrap();
    let (verified, revision) = (median(verified), median(revisions));
    let [status, again, first, changes] = times.map(median);
    println!(
        "{}",
        json!({
            "name": format!("snapshot-{files}-files"),
            "git_status_ms": status, "snapshot_ms": again, "first_snapshot_ms": first, "changes_ms": changes,
            "verify_ms": verified, "revision_ms": revision, "worktree_ms": worktree,
            "snapshot_by_status": again / status, "first_by_status": first / status,
            "verify_by_status": verified / status,
        })
    );
}

/// The cost of comparing with a commit: nothing but the commit is believed, so every file is read.
fn compared_with_head(folder: &Path) -> Duration {
    let started_at = Instant::now();
    let mut opened = Revision::open(folder, Settings::default(), "HEAD").unwrap();
    let now = opened.snapshotter.snapshot();
    assert!(!opened.snapshotter.changes(&opened.snapshot, &now).files.is_empty());
    started_at.elapsed()
}

/// The cost at the end of an attempt: a snapshot, and the verification of a result with 100 claimed
/// files and 100 locations.
fn verified(folder: &Path, files: usize, round: usize) -> Duration {
    const CONTRACT: &str = "contract: bench/work\nversion: 1\nframing: any-json\n\
        fields: { files: [string], found: [{ file: string, line: integer }] }\n\
        claims: { files: { kind: files-changed, match: subset }, found/*/file: { kind: location } }\n\
        examples: [{ files: [], found: [] }]\n";
    let contract = Contract::from_yaml(CONTRACT).unwrap();
    let edited: Vec<String> =
        (0..TOUCHED).map(|at| path((at * files / TOUCHED + round) % files)).collect();
    let new = (0..TOUCHED).map(|at| format!("part0/new{round}-{at}.rs"));
    let found: Vec<_> =
        edited.iter().chain(&edited).map(|file| json!({"file": file, "line": 7})).collect();
    let claimed: Vec<String> = edited.iter().cloned().chain(new.clone()).collect();
    let value = json!({"files": claimed, "found": found});
    let mut tree = Snapshotter::open(folder, Settings::default());
    let before = tree.snapshot();
    edit(folder, files, round);
    new.for_each(|file| fs::write(folder.join(file), "new\n".repeat(100)).unwrap());
    let mut observed = WorkspaceDiff::new(tree, before, None);
    let (_keep, stop) = tokio::sync::watch::channel(StopRequest::None);
    let (config, ours) = (VerifyConfig::default(), BTreeSet::new());
    let launcher = counterfoil_process::contain::Launcher::default();
    let mut context = VerifyContext {
        folder,
        top: folder,
        view: &mut observed,
        config: &config,
        contracts: &|_| None,
        cache: None,
        unrestored: &[],
        may_change: &|_| true,
        start: StartWords::RUN,
        commits_before: &CommitsBefore::Revision("HEAD".to_owned()),
        stop,
        launcher: &launcher,
        marker: "bench".to_owned(),
        own_files: &ours,
        run_commands: false,
        since: "HEAD",
        concurrent_writer: None,
    };
    let claims = contract.effective_claims();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let started_at = Instant::now();
    let reports = runtime.block_on(verify(&claims, &contract, &value, &mut context));
    let took = started_at.elapsed();
    assert!(reports.iter().all(|report| report.verdict.name() == "verified"), "{reports:#?}");
    took
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
