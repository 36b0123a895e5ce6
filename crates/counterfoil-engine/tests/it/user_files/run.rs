//! A run of a random workflow, and the checks after it.

use crate::dice::Dice;
use crate::user_files::actor::{Actor, FileActions, Log, throw};
use crate::user_files::content::{Content, Contents, alike, differences, merged};
use crate::user_files::user::{Belongings, Kind, User};
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_engine::{AgentAssignments, Engine, NoopObserver, RunReport, StartOptions};
use counterfoil_flow::{Budget, Event, Workflow, check};
use counterfoil_process::StopRequest;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const CONTRACT: &str = "contract: t/work\nversion: 1\nfields: { files: [string] }\n\
                        claims:\n  files: { kind: files-changed }\nexamples: [{ files: [] }]\n";

/// What agents may write in a workflow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    Anything,
    OnlySrc,
    Nothing,
}

/// A workflow and its permissions.
struct Play {
    text: String,
    may: May,
    guarded: bool,
}

impl Play {
    fn throw(dice: &mut Dice) -> Self {
        let may = dice.weigh(&[(7, May::Anything), (2, May::OnlySrc), (1, May::Nothing)]);
        let guarded = dice.percent(50);
        let policy = |dice: &mut Dice| *dice.pick(&["record", "require", "ignore"]);
        let access = if may == May::Nothing { ", access: read-only" } else { "" };
        let mut text = format!(
            "workflow: play\nagents: {{ worker: {{ contract: t/work, prompt: \"Work.\"{access}, repairs: {}, \
             retries: {{ transport: {}, timeout: 0 }} }} }}\ncontracts: [work.yaml]\n",
            dice.below(3),
            dice.below(2)
        );
        if may == May::OnlySrc {
            text.push_str("writes: [src]\n");
        }
        if guarded {
            text.push_str("protect: [\"guarded/**\", guarded]\n");
        }
        let _ = writeln!(
            text,
            "protection: {}\ntests: {}",
            dice.pick(&["record", "require"]),
            policy(dice)
        );
        let step = |dice: &mut Dice, next: &str| {
            let place = *dice.pick(&["", ", workspace: worktree", ", workspace: repository"]);
            let on = if dice.percent(60) {
                format!(", on: {{ any: {{ go: {next} }} }}")
            } else {
                String::new()
            };
            format!(
                "{{ agent: worker{place}, claims: {{ files: {} }}{on}, go: {next} }}",
                policy(dice)
            )
        };
        match dice.below(10) {
            0..=4 => {
                text.push_str("start: s0\nstates:\n");
                let _ = writeln!(text, "  s0: {}\n  s1: {}", step(dice, "s1"), step(dice, "end"));
            }
            5..=7 => {
                let parallel = dice.between(2, 3);
                let failures = *dice.pick(&["collect", "stop"]);
                let _ = writeln!(
                    text,
                    "variables: {{ parts: {{ type: [string], initial: [a, b, c] }} }}\nstart: fan\nstates:\n  fan:\n    \
                     each: {{ in: parts, as: part, key: part, agent: worker, parallel: {parallel}, failures: {failures}, \
                     workspace: worktree }}\n    on: {{ any: {{ go: end }} }}\n    go: end"
                );
            }
            _ => {
                let on = if dice.percent(50) { ", on: { any: { go: end } }" } else { "" };
                let _ = writeln!(
                    text,
                    "start: sub\nstates:\n  sub: {{ run: both, workspace: worktree{on}, go: end }}\n  end: {{ end: done }}\n\
                     workflows:\n  both:\n    start: one\n    states:\n      one: {{ agent: worker, go: two }}\n      \
                     two: {{ agent: worker, go: done }}\n      done: {{ end: done }}"
                );
                return Self { text, may, guarded };
            }
        }
        text.push_str("  end: { end: done }\n");
        Self { text, may, guarded }
    }

    fn workflow(&self) -> Workflow {
        let files = BTreeMap::from([
            ("play.yaml".to_owned(), self.text.clone()),
            ("work.yaml".to_owned(), CONTRACT.to_owned()),
        ]);
        check("play.yaml", &files, &counterfoil_contract::Registry::new())
            .unwrap_or_else(|why| panic!("{why}\n{}", self.text))
    }

    /// Whether agents must not write a path, relative to the folder of the run.
    fn refuses(&self, path: &Path) -> bool {
        let begins = |name: &str| path.starts_with(name);
        let below = path.strip_prefix("..").unwrap_or(path);
        below.iter().any(|part| part == "AGENTS.md")
            || below.starts_with(".github")
            || (self.guarded && begins("guarded"))
            || match self.may {
                May::Anything => false,
                May::OnlySrc => !begins("src"),
                May::Nothing => true,
            }
    }
}

/// The figures of all runs, which show that the test covers something.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) attempts: u64,
    pub(crate) merged_workspaces: u64,
    pub(crate) merged: u64,
    pub(crate) conflicts: u64,
    pub(crate) dropped: u64,
    pub(crate) kept: u64,
    pub(crate) put_back: u64,
    pub(crate) stopped: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.attempts += other.attempts;
        self.merged_workspaces += other.merged_workspaces;
        self.merged += other.merged;
        self.conflicts += other.conflicts;
        self.dropped += other.dropped;
        self.kept += other.kept;
        self.put_back += other.put_back;
        self.stopped += other.stopped;
    }
}

/// Performs one run and checks its effects.
pub(crate) fn run(
    runtime: &tokio::runtime::Runtime,
    user: &User,
    engine: &Engine,
    seed: u64,
) -> Tally {
    let mut dice = Dice::new(seed);
    user.work(&mut dice, seed);
    let play = Play::throw(&mut dice);
    let log = Arc::new(Log::default());
    let below = user.repo.strip_prefix(&user.top).unwrap().to_owned();
    let commits = matches!(user.kind, Kind::Repository | Kind::Below);
    let actor = Actor { seed: throw(seed, &"agents"), log: log.clone(), below, commits };
    let before = user.belongings();
    let options = StartOptions {
        workflow: play.workflow(),
        inputs: Map::new(),
        budget: Budget::default(),
        agents: AgentAssignments::new().with("worker", "in-process", Arc::new(actor)),
        repo: user.repo.clone(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let (stop, stopped) = watch::channel(StopRequest::None);
    let interrupted = dice.percent(5).then(|| Duration::from_millis(dice.below(150)));
    let report = runtime.block_on(async {
        tokio::spawn(async move {
            if let Some(after) = interrupted {
                tokio::time::sleep(after).await;
                let _ = stop.send(StopRequest::Graceful);
            }
            stop.closed().await;
        });
        engine.start(options, Arc::new(NoopObserver), stopped).await.unwrap()
    });
    let mut tally = Tally::default();
    *tally.outcomes.entry(report.outcome.clone()).or_default() += 1;
    tally.attempts += report.attempts.len() as u64;
    let broken = report.attempts.iter().find(|attempt| attempt.reason.contains("panicked"));
    assert!(broken.is_none(), "the agent of the test broke: {broken:?}");
    if engine.run_state(&report.run).unwrap().ended.is_none() {
        tally.stopped += 1;
        engine.cancel(&report.run, AgentEnvironment::default(), "the test").unwrap();
    }
    let actions = std::mem::take(&mut *log.actions.lock().unwrap());
    let audit =
        Audit { user, play: &play, before: &before, actions: &actions, report: &report, engine };
    audit.check(tally)
}

struct Audit<'a> {
    user: &'a User,
    play: &'a Play,
    before: &'a Belongings,
    actions: &'a [FileActions],
    report: &'a RunReport,
    engine: &'a Engine,
}

impl Audit<'_> {
    fn fail(&self, why: &str) -> ! {
        panic!(
            "{why}\nin a {:?}, {}\n{:#?}\n{}",
            self.user.kind, self.report.run, self.actions, self.play.text
        )
    }

    /// Compares the files with the actions of the agents and the events of the run.
    fn check(&self, mut tally: Tally) -> Tally {
        let mut expected = self.before.files.clone();
        let mut touched: BTreeSet<PathBuf> = BTreeSet::new();
        let mut over: BTreeSet<String> = BTreeSet::new();
        let mut events = Vec::new();
        self.engine.each_event(&self.report.run, 1, |event, _| events.push(event)).unwrap();
        for event in &events {
            match event {
                Event::AttemptEnded(ended) => {
                    over.insert(ended.attempt.clone());
                    self.in_place(Some(&ended.attempt), &mut expected, &mut touched);
                }
                Event::WorkspaceMerged { workspace, conflicts, kept, .. }
                    if !conflicts.is_empty() =>
                {
                    tally.conflicts += 1;
                    tally.kept += u64::from(self.is_kept(workspace, kept.as_deref()));
                }
                Event::WorkspaceMerged { workspace, .. } => {
                    tally.merged_workspaces += 1;
                    tally.merged += self.apply_workspace(workspace, &mut expected, &mut touched);
                }
                Event::WorkspaceDropped { workspace, kept, .. } => {
                    tally.dropped += 1;
                    tally.kept += u64::from(self.is_kept(workspace, kept.as_deref()));
                }
                Event::WorkspaceFailed { reason, .. } => self.fail(reason),
                _ => {}
            }
        }
        let started: BTreeSet<&String> =
            self.actions.iter().map(|action| &action.attempt).collect();
        if let Some(lost) = started.into_iter().find(|attempt| !over.contains(*attempt)) {
            self.fail(&format!("the journal does not say how {lost} ended"));
        }
        tally.put_back += self.check_backups();
        let now = self.user.belongings();
        // Files that agents touched are compared as git does; all others byte by byte.
        let mut files = now.files.clone();
        for path in &touched {
            if let (Some(is), Some(wanted)) = (files.get_mut(path), expected.get(path))
                && is.is_like(wanted)
            {
                is.clone_from(wanted);
            }
        }
        for (what, one, other) in [
            ("files", &expected, &files),
            ("git's files", &self.before.git, &now.git),
            ("what is outside", &self.before.outside, &now.outside),
        ] {
            let differ = differences(one, other);
            if !differ.is_empty() {
                self.fail(&format!("{what}: {}", differ.join("\n")));
            }
        }
        // An agent may commit in a worktree of its own, so there may be more.
        if let Some(lost) = self.before.objects.difference(&now.objects).next() {
            self.fail(&format!("the object {} is gone", lost.display()));
        }
        let left = crate::user_files::content::contents(&self.user.state.join("worktrees"), &[]);
        if !left.is_empty() {
            self.fail(&format!("worktrees are left: {:?}", left.keys()));
        }
        // With the state elsewhere, only worktrees are in this folder.
        let folder = self.user.top.join(".counterfoil");
        if !self.user.state.starts_with(&self.user.top) && folder.exists() {
            let left = crate::user_files::content::contents(&folder, &[]);
            self.fail(&format!("the folder of the worktrees is left: {:?}", left.keys()));
        }
        tally
    }

    /// Converts a path relative to the top into one relative to the folder of the run.
    fn seen_from_folder(&self, path: &Path) -> PathBuf {
        let below = self.user.repo.strip_prefix(&self.user.top).unwrap();
        match path.strip_prefix(below) {
            Ok(inside) => inside.to_owned(),
            Err(_) => below.iter().map(|_| "..").collect::<PathBuf>().join(path),
        }
    }

    fn is_refused(&self, path: &Path) -> bool {
        self.play.refuses(&self.seen_from_folder(path))
    }

    /// Applies the actions of an attempt in the repository itself, except forbidden ones.
    fn in_place(
        &self,
        attempt: Option<&str>,
        expected: &mut Contents,
        touched: &mut BTreeSet<PathBuf>,
    ) {
        let here = self.actions.iter().filter(|action| action.folder == self.user.repo);
        for action in here.filter(|action| attempt.is_none_or(|attempt| action.attempt == attempt))
        {
            for (path, content) in &action.left {
                // Snapshots do not include ignored files.
                if self.is_refused(path) && !self.user.ignores(path) {
                    continue;
                }
                touched.insert(path.clone());
                match content {
                    Some(content) => drop(expected.insert(path.clone(), content.clone())),
                    None => drop(expected.remove(path)),
                }
            }
        }
    }

    /// The content of the touched files of a workspace, before and after.
    fn worked(&self, workspace: &str) -> BTreeMap<PathBuf, (Option<Content>, Option<Content>)> {
        let folder = self.engine.workspaces(&self.user.repo).folder(&self.report.run, workspace);
        let mut worked = BTreeMap::new();
        for action in self.actions.iter().filter(|action| action.folder == folder) {
            for (path, content) in &action.left {
                if !self.is_refused(path) && !self.user.ignores(path) {
                    worked.insert(path.clone(), (action.base.get(path).cloned(), content.clone()));
                }
            }
        }
        worked.retain(|_, (base, worked)| !alike(base.as_ref(), worked.as_ref()));
        worked
    }

    /// Applies the work in a workspace to the expected content of the repository. Returns the
    /// number of merged files.
    fn apply_workspace(
        &self,
        workspace: &str,
        expected: &mut Contents,
        touched: &mut BTreeSet<PathBuf>,
    ) -> u64 {
        let mut merges = 0;
        for (path, (base, worked)) in self.worked(workspace) {
            let current = expected.get(&path).cloned();
            touched.insert(path.clone());
            let result = if alike(current.as_ref(), base.as_ref()) {
                worked
            } else if alike(current.as_ref(), worked.as_ref()) {
                current
            } else {
                merges += 1;
                Some(self.merge(&path, base.as_ref(), current.as_ref(), worked.as_ref()))
            };
            match result {
                Some(content) => drop(expected.insert(path, content)),
                None => drop(expected.remove(&path)),
            }
        }
        merges
    }

    fn merge(
        &self,
        path: &Path,
        base: Option<&Content>,
        current: Option<&Content>,
        worked: Option<&Content>,
    ) -> Content {
        let (
            Some(Content::File { bytes: base, mode: base_mode }),
            Some(Content::File { bytes: current, mode: current_mode }),
            Some(Content::File { bytes: worked, mode: worked_mode }),
        ) = (base, current, worked)
        else {
            self.fail(&format!(
                "{} was written over: it should have been a conflict",
                path.display()
            ));
        };
        let mode =
            if current_mode & 0o100 == base_mode & 0o100 { worked_mode } else { current_mode };
        if let Some(bytes) = merged(base, current, worked) {
            return Content::File { bytes, mode: *mode };
        }
        // In this case it is enough that no line of either side is lost.
        let Some(Content::File { bytes, .. }) = Content::at(&self.user.top.join(path)) else {
            self.fail(&format!("{} is gone", path.display()));
        };
        let lines = |text: &[u8]| -> BTreeSet<Vec<u8>> {
            text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        let (was, is) = (lines(base), lines(&bytes));
        for side in [current, worked] {
            if lines(side).difference(&was).any(|line| !is.contains(line)) {
                self.fail(&format!("lines of {} are lost", path.display()));
            }
        }
        Content::File { bytes, mode: *mode }
    }

    /// Whether the work in a workspace that was not merged is kept in a patch.
    fn is_kept(&self, workspace: &str, kept: Option<&str>) -> bool {
        let worked = self.worked(workspace);
        let Some(kept) = kept else {
            if !worked.is_empty() {
                self.fail(&format!("the work of '{workspace}' is lost: {:?}", worked.keys()));
            }
            return false;
        };
        let path = self.user.state.parent().unwrap().join(kept);
        let text: Vec<u8> = if path.is_dir() {
            crate::user_files::content::contents(&path, &[])
                .values()
                .flat_map(|content| content.bytes().to_vec())
                .collect()
        } else {
            std::fs::read(&path)
                .unwrap_or_else(|error| self.fail(&format!("{}: {error}", path.display())))
        };
        for (path, (base, worked)) in worked {
            // Only files with a new text, not those that were moved or had their mode changed.
            let Some(Content::File { bytes, .. }) = worked else { continue };
            let own = bytes.split(|byte| *byte == b'\n').rfind(|line| line.starts_with(b"by "));
            let Some(line) = own.filter(|line| base.is_none_or(|base| !has(base.bytes(), line)))
            else {
                continue;
            };
            if !has(&text, line) {
                self.fail(&format!("{} is not in {kept}", path.display()));
            }
        }
        true
    }

    /// Checks that forbidden writes were backed up: the last content that each attempt left at a
    /// path. Content that an attempt overwrote itself need not be kept.
    fn check_backups(&self) -> u64 {
        let aside = crate::user_files::content::contents(
            &self.user.state.join("set-aside").join(&self.report.run),
            &[],
        );
        let mut last = BTreeMap::new();
        for action in self.actions {
            for (path, content) in &action.left {
                last.insert((&action.attempt, path), (action, content));
            }
        }
        last.retain(|(_, path), _| self.is_refused(path) && !self.user.ignores(path));
        for ((_, path), (action, content)) in &last {
            let Some(content) = content else { continue };
            let same = action.base.get(*path).is_some_and(|base| base.is_like(content));
            let place = strip(&self.seen_from_folder(path));
            if !same
                && !aside.iter().any(|(at, kept)| at.ends_with(&place) && kept.is_like(content))
            {
                self.fail(&format!(
                    "what stood at {} is lost; set aside: {:?}",
                    path.display(),
                    aside.keys()
                ));
            }
        }
        last.len() as u64
    }
}

fn strip(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect()
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}
