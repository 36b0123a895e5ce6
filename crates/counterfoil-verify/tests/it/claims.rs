//! Verifies claims against real folders, real git and real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod catalogue;
mod checks;
mod commits;
mod configs;
mod kinds;
mod numbers;
mod other_kinds;
mod paths;
mod weakened;

use counterfoil_contract::Contract;
use counterfoil_contract::claim::{Claim, ClaimReport, EffectiveClaim, Verdict};
use counterfoil_process::StopRequest;
use counterfoil_verify::claims::{
    CheckCache, CheckRun, CommitsBefore, Refs, Since, StartWords, TestCounts, UnobservableError,
    VerifyConfig, VerifyContext, WorkspaceView, run_check, verify,
};
use counterfoil_verify::unfinished::{self, UnfinishedWork};
use counterfoil_workspace::snapshot::{Change, Changes};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;

type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// A workspace in a temporary folder.
struct TestWorkspace {
    temp: tempfile::TempDir,
    before: Contents,
    config: VerifyConfig,
    /// The files that git would ignore, and how they changed.
    ignored: BTreeMap<PathBuf, Since>,
    tests: Option<(u64, u64)>,
    unobservable: Option<String>,
    started_at: SystemTime,
    folder: PathBuf,
    findings: Option<Value>,
    commands: bool,
    cache: CheckCache,
    commits_before: CommitsBefore,
}

impl TestWorkspace {
    /// Creates a workspace with these files before the step.
    fn with(files: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().join("repo");
        std::fs::create_dir(&top).unwrap();
        let mut workspace = Self {
            folder: top,
            temp,
            before: Contents::new(),
            config: VerifyConfig::default(),
            ignored: BTreeMap::new(),
            tests: None,
            unobservable: None,
            started_at: SystemTime::now(),
            findings: None,
            commands: true,
            cache: CheckCache::default(),
            commits_before: CommitsBefore::Unknown("not looked at".to_owned()),
        };
        for (path, text) in files {
            workspace.write(path, text);
        }
        workspace.start_step();
        workspace
    }

    fn top(&self) -> PathBuf {
        self.temp.path().join("repo")
    }

    /// Starts the step: later changes count.
    fn start_step(&mut self) {
        self.before = contents(&self.top(), &self.folder);
        self.commits_before =
            CommitsBefore::Refs(Refs::read(&self.folder).unwrap().unwrap_or_default());
        self.started_at = SystemTime::now();
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn delete(&self, path: &str) -> &Self {
        std::fs::remove_file(self.folder.join(path)).unwrap();
        self
    }

    fn rename(&self, from: &str, to: &str) -> &Self {
        let to = self.folder.join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(self.folder.join(from), to).unwrap();
        self
    }

    fn check(mut self, text: &str) -> Self {
        self.config = VerifyConfig::parse(text).unwrap();
        self
    }

    /// Verifies one claim of a result.
    fn verify_claim(&self, field: &str, claim: Claim, value: &Value) -> Option<ClaimReport> {
        let mut reports = self.verify_claims(&[(field, claim)], value);
        assert!(reports.len() <= 1);
        reports.pop()
    }

    fn verify_claims(&self, claims: &[(&str, Claim)], value: &Value) -> Vec<ClaimReport> {
        let contract = open_contract();
        let claims: Vec<EffectiveClaim> = claims
            .iter()
            .map(|(field, claim)| EffectiveClaim {
                name: Claim::name(field),
                field: (*field).to_owned(),
                claim: claim.clone(),
                findings: self.findings.clone(),
            })
            .collect();
        self.run(&claims, &contract, value)
    }

    fn run(
        &self,
        claims: &[EffectiveClaim],
        contract: &Contract,
        value: &Value,
    ) -> Vec<ClaimReport> {
        let (_keep, stop) = watch::channel(StopRequest::None);
        self.run_until(claims, contract, value, stop)
    }

    fn run_until(
        &self,
        claims: &[EffectiveClaim],
        contract: &Contract,
        value: &Value,
        stop: watch::Receiver<StopRequest>,
    ) -> Vec<ClaimReport> {
        self.observed(stop, async |context| verify(claims, contract, value, context).await)
    }

    /// Runs a check by itself.
    fn run_check(&self, name: &str) -> CheckRun {
        let (_keep, stop) = watch::channel(StopRequest::None);
        let check = self.config.checks[name].clone();
        self.observed(stop, async |context| run_check(&check, context).await).unwrap()
    }

    fn observed<T>(
        &self,
        stop: watch::Receiver<StopRequest>,
        then: impl AsyncFnOnce(&mut VerifyContext<'_>) -> T,
    ) -> T {
        let mut view = FolderComparison { workspace: self, changes: Changes::default() };
        let tasks = Arc::new(tasks_contract());
        let contracts = move |id: &str| (id == "acme/tasks").then(|| tasks.clone());
        let top = self.top();
        let ours = BTreeSet::from([self.folder.join("report.ours.md")]);
        let launcher = counterfoil_process::contain::Launcher::default();
        let mut context = VerifyContext {
            folder: &self.folder,
            top: &top,
            view: &mut view,
            config: &self.config,
            contracts: &contracts,
            cache: Some(&self.cache),
            unrestored: &[],
            may_change: &|_| true,
            start: StartWords::RUN,
            commits_before: &self.commits_before,
            stop,
            launcher: &launcher,
            marker: format!("claims-{}", uuid()),
            own_files: &ours,
            run_commands: self.commands,
            since: "the step began",
            concurrent_writer: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(then(&mut context))
    }
}

fn uuid() -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Compares whole folders: slow and simple.
struct FolderComparison<'a> {
    workspace: &'a TestWorkspace,
    changes: Changes,
}

impl WorkspaceView for FolderComparison<'_> {
    fn changes(&mut self) -> Result<&Changes, UnobservableError> {
        if let Some(why) = &self.workspace.unobservable {
            return Err(UnobservableError { reason: why.clone() });
        }
        let (before, now) =
            (&self.workspace.before, contents(&self.workspace.top(), &self.workspace.folder));
        let ignored = |path: &&PathBuf| !self.workspace.ignored.contains_key(*path);
        let mut files = BTreeMap::new();
        for path in before.keys().chain(now.keys()).filter(ignored) {
            match (before.get(path), now.get(path)) {
                (None, Some(_)) => files.insert(path.clone(), Change::Added),
                (Some(_), None) => files.insert(path.clone(), Change::Deleted),
                (Some(old), Some(new)) if old != new => {
                    files.insert(path.clone(), Change::Modified)
                }
                _ => None,
            };
        }
        let of = |wanted| {
            files.iter().filter(move |(_, change)| **change == wanted).map(|(path, _)| path)
        };
        let mut renamed = Vec::new();
        for from in of(Change::Deleted) {
            let same: Vec<_> =
                of(Change::Added).filter(|to| now.get(*to) == before.get(from)).collect();
            if let [to] = same.as_slice() {
                renamed.push((from.clone(), (*to).clone()));
            }
        }
        self.changes = Changes { files, renamed, ..Changes::default() };
        Ok(&self.changes)
    }

    fn ignored_change(&mut self, path: &Path) -> Since {
        self.workspace.ignored.get(path).copied().unwrap_or(Since::Untouched)
    }

    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        paths.iter().filter(|path| self.workspace.ignored.contains_key(*path)).cloned().collect()
    }

    fn tree_id(&mut self) -> Option<String> {
        if self.workspace.unobservable.is_some() {
            return None;
        }
        Some(format!("{:?}", contents(&self.workspace.top(), &self.workspace.folder)))
    }

    fn unfinished_work(&mut self) -> UnfinishedWork {
        let before = &self.workspace.before;
        let now = contents(&self.workspace.top(), &self.workspace.folder);
        let files = self.changes.files.keys();
        unfinished::added(
            files.map(|path| (path.as_path(), before.get(path).cloned(), now.get(path).cloned())),
        )
    }

    fn test_counts(&mut self) -> Option<TestCounts> {
        let (added, removed) = self.workspace.tests?;
        Some(TestCounts { added, removed, in_vain: Vec::new() })
    }

    fn started_at(&self) -> Option<SystemTime> {
        Some(self.workspace.started_at)
    }
}

/// All files below the top folder, relative to the workspace's folder.
fn contents(top: &Path, folder: &Path) -> Contents {
    let mut open = vec![top.to_owned()];
    let mut files = Contents::new();
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                if entry.file_name() != ".git" {
                    open.push(path);
                }
                continue;
            }
            let name = relative_path(folder, &path);
            let bytes =
                if kind.is_file() { std::fs::read(&path).unwrap() } else { b"special".to_vec() };
            files.insert(name, bytes);
        }
    }
    files
}

/// The shortest relative path from a folder.
fn relative_path(folder: &Path, path: &Path) -> PathBuf {
    let shared =
        folder.components().zip(path.components()).take_while(|(one, other)| one == other).count();
    let climb = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    climb.chain(path.components().skip(shared)).collect()
}

fn open_contract() -> Contract {
    Contract::from_yaml("contract: acme/any\nversion: 1\nschema: { type: object }").unwrap()
}

fn tasks_contract() -> Contract {
    Contract::from_yaml(
        "contract: acme/tasks\nversion: 1\nframing: any-json\nfields: { tasks: [string] }",
    )
    .unwrap()
}

/// The verdict and the reason.
fn short(report: Option<ClaimReport>) -> (Option<Verdict>, String) {
    report.map_or((None, String::new()), |report| (Some(report.verdict), report.reason))
}

fn notes(report: &ClaimReport) -> Vec<&str> {
    report.evidence.iter().filter(|e| e.kind == "note").map(|e| e.text.as_str()).collect()
}

fn files(names: &[&str]) -> Value {
    json!({ "files": names })
}
