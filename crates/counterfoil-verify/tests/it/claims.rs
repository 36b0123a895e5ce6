//! Claims held against real folders, real git and real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod catalogue;
mod checks;
mod commits;
mod configs;
mod kinds;
mod paths;

use counterfoil_contract::Contract;
use counterfoil_contract::claim::{Claim, ClaimReport, EffectiveClaim, Verdict};
use counterfoil_process::Stop;
use counterfoil_verify::claims::{Config, Observer, Since, World, verify};
use counterfoil_workspace::tree::{Change, Changes};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;

type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// A workspace in a folder of its own.
struct Stage {
    place: tempfile::TempDir,
    before: Contents,
    config: Config,
    /// What git would ignore, and what became of it.
    ignored: BTreeMap<PathBuf, Since>,
    tests: Option<(u64, u64)>,
    blind: Option<String>,
    began: SystemTime,
    folder: PathBuf,
    findings: Option<Value>,
    commands: bool,
}

impl Stage {
    /// With these files before the step.
    fn with(files: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("repo");
        std::fs::create_dir(&top).unwrap();
        let mut stage = Self {
            folder: top,
            place,
            before: Contents::new(),
            config: Config::default(),
            ignored: BTreeMap::new(),
            tests: None,
            blind: None,
            began: SystemTime::now(),
            findings: None,
            commands: true,
        };
        for (path, text) in files {
            stage.write(path, text);
        }
        stage.begin();
        stage
    }

    fn top(&self) -> PathBuf {
        self.place.path().join("repo")
    }

    fn cache(&self) -> PathBuf {
        self.place.path().join("state/checks")
    }

    /// The step begins here.
    fn begin(&mut self) {
        self.before = contents(&self.top(), &self.folder);
        self.began = SystemTime::now();
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
        self.config = Config::parse(text).unwrap();
        self
    }

    /// Holds one claim of a result.
    fn hold(&self, field: &str, claim: Claim, value: &Value) -> Option<ClaimReport> {
        let mut reports = self.hold_all(&[(field, claim)], value);
        assert!(reports.len() <= 1);
        reports.pop()
    }

    fn hold_all(&self, claims: &[(&str, Claim)], value: &Value) -> Vec<ClaimReport> {
        let contract = open_contract();
        let held: Vec<EffectiveClaim> = claims
            .iter()
            .map(|(field, claim)| EffectiveClaim {
                name: Claim::name(field),
                field: (*field).to_owned(),
                claim: claim.clone(),
                findings: self.findings.clone(),
            })
            .collect();
        self.run(&held, &contract, value)
    }

    fn run(&self, held: &[EffectiveClaim], contract: &Contract, value: &Value) -> Vec<ClaimReport> {
        let (_keep, stop) = watch::channel(Stop::No);
        self.run_until(held, contract, value, stop)
    }

    fn run_until(
        &self,
        held: &[EffectiveClaim],
        contract: &Contract,
        value: &Value,
        stop: watch::Receiver<Stop>,
    ) -> Vec<ClaimReport> {
        let mut observer = Looking { stage: self, changes: Changes::default() };
        let tasks = Arc::new(tasks_contract());
        let contracts = move |id: &str| (id == "acme/tasks").then(|| tasks.clone());
        let (cache, top) = (self.cache(), self.top());
        let ours = BTreeSet::from([self.folder.join("report.ours.md")]);
        let mut world = World {
            folder: &self.folder,
            top: &top,
            observer: &mut observer,
            config: &self.config,
            contracts: &contracts,
            cache: Some(&cache),
            stop,
            marker: format!("claims-{}", uuid()),
            ours: &ours,
            commands: self.commands,
            since: "the step began",
            company: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(verify(held, contract, value, &mut world))
    }
}

fn uuid() -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Compares whole folders: slow, and right.
struct Looking<'a> {
    stage: &'a Stage,
    changes: Changes,
}

impl Observer for Looking<'_> {
    fn changes(&mut self) -> Result<&Changes, String> {
        if let Some(why) = &self.stage.blind {
            return Err(why.clone());
        }
        let (before, now) = (&self.stage.before, contents(&self.stage.top(), &self.stage.folder));
        let ignored = |path: &&PathBuf| !self.stage.ignored.contains_key(*path);
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
        self.changes = Changes { files, renamed, notes: Vec::new() };
        Ok(&self.changes)
    }

    fn since(&mut self, path: &Path) -> Since {
        self.stage.ignored.get(path).copied().unwrap_or(Since::Untouched)
    }

    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        paths.iter().filter(|path| self.stage.ignored.contains_key(*path)).cloned().collect()
    }

    fn tree_id(&mut self) -> Option<String> {
        if self.stage.blind.is_some() {
            return None;
        }
        Some(format!("{:?}", contents(&self.stage.top(), &self.stage.folder)))
    }

    fn tests(&mut self) -> Option<(u64, u64)> {
        self.stage.tests
    }

    fn began(&self) -> Option<SystemTime> {
        Some(self.stage.began)
    }
}

/// Every file below the top, as it is called from the folder.
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
            let name = seen_from(folder, &path);
            let bytes =
                if kind.is_file() { std::fs::read(&path).unwrap() } else { b"special".to_vec() };
            files.insert(name, bytes);
        }
    }
    files
}

/// A path as it is called from a folder: the shortest way.
fn seen_from(folder: &Path, path: &Path) -> PathBuf {
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

/// The verdict and why.
fn short(report: Option<ClaimReport>) -> (Option<Verdict>, String) {
    report.map_or((None, String::new()), |report| (Some(report.verdict), report.reason))
}

fn notes(report: &ClaimReport) -> Vec<&str> {
    report.evidence.iter().filter(|e| e.kind == "note").map(|e| e.text.as_str()).collect()
}

fn files(names: &[&str]) -> Value {
    json!({ "files": names })
}
