//! Runs a check in the workspace: a process tree of its own, no input, bounded time and output,
//! nothing left behind.

use super::cache::{self, Kept};
use super::scene::Scene;
use super::{Figures, World};
use crate::config::{Check, Run};
use counterfoil_contract::claim::Evidence;
use counterfoil_process::{
    Cause, Clocks, Environment, Exit, Output, Spawn, SpawnError, Watch, supervise,
};
use counterfoil_workspace::tree::Changes;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The end of the output that stands in the evidence.
const TAIL: usize = 4 << 10;
/// The end of each stream in which figures are looked for.
const HEARD: usize = 1 << 20;
/// What a shell says of a program that cannot be executed, and of one that is not there.
const UNRUNNABLE: [i32; 2] = [126, 127];

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// With this code.
    Exited(i32),
    /// It took longer than this.
    TimedOut(Duration),
    /// It could not be run, and why.
    Unrunnable(String),
    /// It was told to stop.
    Stopped,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What was run.
    pub(super) line: String,
    pub(super) how: How,
    /// The end of what it said.
    pub(super) tail: String,
    pub(super) figures: Option<Figures>,
    pub(super) wall_ms: u64,
    /// Whether it was run before, on the same tree.
    pub(super) was_kept: bool,
    /// Files it changed; none if it left the tree as it was.
    pub(super) changed: Option<Vec<String>>,
    /// What could not be read, and other remarks.
    pub(super) notes: Vec<String>,
}

impl Outcome {
    /// The outcome as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        let how = match &self.how {
            How::Exited(code) => format!("`{}` exited with {code}", self.line),
            How::TimedOut(after) => {
                format!("`{}` took longer than {}", self.line, super::shown::seconds(*after))
            }
            How::Unrunnable(why) => format!("`{}` could not be run: {why}", self.line),
            How::Stopped => format!("`{}` was stopped", self.line),
        };
        let took = match (&self.how, self.was_kept) {
            (How::Exited(_), true) => " (run before on the same tree)".to_owned(),
            (How::Exited(_), false) => {
                format!(" after {:.1} s", Duration::from_millis(self.wall_ms).as_secs_f64())
            }
            _ => String::new(),
        };
        let figures = self
            .figures
            .map(|figures| format!("; tests: {}", figures.in_words()))
            .unwrap_or_default();
        Evidence {
            exit_code: match self.how {
                How::Exited(code) => Some(code),
                _ => None,
            },
            output: self.tail.clone(),
            ..Evidence::new("command", format!("{how}{took}{figures}"))
        }
    }
}

/// Runs a check, or finds what came of it when it was last run on this tree. Claims of one result
/// that name the same check share one run of it, unless it changed the tree.
pub(super) async fn run(check: &Check, scene: &mut Scene, world: &mut World<'_>) -> Outcome {
    // An earlier check may have changed the tree: what is true now counts.
    let tree = world.observer.tree_id();
    scene.tree.clone_from(&tree);
    let same = |(other, on, _): &&(Check, Option<String>, Outcome)| other == check && *on == tree;
    if let Some((.., outcome)) = scene.ran.iter().find(same) {
        return outcome.clone();
    }
    let outcome = run_on(tree.clone(), check, scene, world).await;
    if outcome.how != How::Stopped && outcome.changed.is_none() {
        scene.ran.push((check.clone(), tree, outcome.clone()));
    }
    outcome
}

async fn run_on(
    tree: Option<String>,
    check: &Check,
    scene: &Scene,
    world: &mut World<'_>,
) -> Outcome {
    let line = check.run.to_string();
    let bare = |how: How| Outcome {
        line: line.clone(),
        how,
        tail: String::new(),
        figures: None,
        wall_ms: 0,
        was_kept: false,
        changed: None,
        notes: Vec::new(),
    };
    if !world.commands {
        return bare(How::Unrunnable("commands are not run here".to_owned()));
    }
    let place = match (world.cache, &tree) {
        (Some(folder), Some(tree)) => Some(cache::place(folder, check, world.folder, tree)),
        _ => None,
    };
    if let Some(kept) = place.as_deref().and_then(cache::get) {
        return Outcome {
            how: How::Exited(kept.exit_code),
            tail: kept.tail,
            figures: kept.figures,
            wall_ms: kept.wall_ms,
            was_kept: true,
            ..bare(How::Stopped)
        };
    }
    let before = world.observer.changes().cloned();
    let mut hearing = Hearing::default();
    let spawn = Spawn {
        argv: check.run.argv().into_iter().map(Into::into).collect(),
        cwd: world.folder.to_owned(),
        environment: Environment::Inherit,
        // Nobody watches, and nobody answers.
        extra: [
            ("NO_COLOR", "1"),
            ("TERM", "dumb"),
            ("CARGO_TERM_COLOR", "never"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into(),
        stdin: Vec::new(),
        marker: world.marker.clone(),
        clocks: Clocks { total: Some(check.timeout), ..Clocks::default() },
    };
    let started = std::time::SystemTime::now();
    let ended = supervise(spawn, &mut hearing, world.stop.clone()).await;
    let mut outcome = Outcome { tail: hearing.tail(), ..bare(How::Stopped) };
    match ended {
        Ok(ended) => {
            outcome.wall_ms = u64::try_from(ended.wall.as_millis()).unwrap_or(u64::MAX);
            outcome.how = match (ended.cause, ended.exit) {
                (Cause::Stopped, _) => How::Stopped,
                (Cause::Startup | Cause::Idle | Cause::Total, _) => How::TimedOut(check.timeout),
                (Cause::Finished | Cause::Finishing | Cause::Watcher, Exit::Code(code)) => {
                    How::Exited(code)
                }
                (Cause::Finished | Cause::Finishing | Cause::Watcher, Exit::Signal(signal)) => {
                    How::Exited(128 + signal)
                }
            };
            if ended.left_behind > 0 {
                let left = super::shown::number(ended.left_behind, "process");
                outcome.notes.push(format!("it left {left} running, and they were killed"));
            }
        }
        Err(error) => outcome.how = not_started(&error, check, before.as_ref().ok(), scene),
    }
    if let How::Exited(code) = outcome.how
        && UNRUNNABLE.contains(&code)
        && !is_of_the_step(&check.run, before.as_ref().ok(), scene)
    {
        outcome.how = How::Unrunnable(match hearing.last_line() {
            Some(last) => {
                format!(
                    "a program is missing or cannot be executed ({last}); install it or put it on PATH"
                )
            }
            None => "a program is missing or cannot be executed; install it or put it on PATH"
                .to_owned(),
        });
    }
    outcome.figures = hearing.figures();
    if let Some(report) = &check.report {
        match report_figures(report, started, scene) {
            Ok(figures) => outcome.figures = Some(figures),
            Err(why) => outcome
                .notes
                .push(format!("its report {} cannot be used: {why}", super::shown::plain(report))),
        }
    }
    let after = world.observer.tree_id();
    if tree != after {
        outcome.changed = changed(before.as_ref().ok(), world.observer.changes().ok(), scene);
    }
    if let (How::Exited(code), Some(place), None) = (&outcome.how, place, &outcome.changed) {
        let kept = Kept {
            exit_code: *code,
            tail: outcome.tail.clone(),
            figures: outcome.figures,
            wall_ms: outcome.wall_ms,
        };
        // It is only run again then.
        if let Err(error) = cache::put(&place, &kept) {
            tracing::debug!(%error, place = %place.display(), "the outcome of a check was not kept");
        }
    }
    outcome
}

/// A program that is not there makes the check useless, unless it is the step that took it away.
fn not_started(error: &SpawnError, check: &Check, changes: Option<&Changes>, scene: &Scene) -> How {
    let of_the_program = matches!(
        error,
        SpawnError::Missing { .. }
            | SpawnError::IsFolder { .. }
            | SpawnError::NotExecutable { .. }
            | SpawnError::NoInterpreter { .. }
    );
    if of_the_program && is_of_the_step(&check.run, changes, scene) {
        return How::Exited(127);
    }
    How::Unrunnable(error.to_string())
}

/// Whether the program that a check begins with is a file of the workspace that the step changed.
fn is_of_the_step(run: &Run, changes: Option<&Changes>, scene: &Scene) -> bool {
    let word = match run {
        Run::Line(line) => shlex::split(line).and_then(|words| words.into_iter().next()),
        Run::Argv(argv) => argv.first().cloned(),
    };
    let Some(word) = word.filter(|word| word.contains('/')) else { return false };
    let super::path::Meant::Inside(path, _) = scene.frame.meant(&word) else { return false };
    changes.is_some_and(|changes| changes.files.contains_key(&path))
}

fn report_figures(
    report: &str,
    started: std::time::SystemTime,
    scene: &Scene,
) -> Result<Figures, String> {
    let super::path::Meant::Inside(path, _) = scene.frame.meant(report) else {
        return Err("it is outside of the workspace".to_owned());
    };
    let written = super::look::written(&scene.frame, &path).ok_or("it is not there")?;
    // Clocks of file systems are coarse.
    if written + Duration::from_secs(2) < started {
        return Err("the check did not write it".to_owned());
    }
    Figures::of_report(&super::look::read(&scene.frame, &path)?.bytes)
}

/// The files that a check changed; none if they are all noise.
fn changed(
    before: Option<&Changes>,
    after: Option<&Changes>,
    scene: &Scene,
) -> Option<Vec<String>> {
    let (Some(before), Some(after)) = (before, after) else { return Some(Vec::new()) };
    let paths = before.files.keys().chain(after.files.keys());
    let mut differ: Vec<&PathBuf> =
        paths.filter(|path| before.files.get(*path) != after.files.get(*path)).collect();
    differ.sort();
    differ.dedup();
    if differ.is_empty() {
        // What had changed before was changed again.
        return Some(Vec::new());
    }
    let named = |path: &&PathBuf| !scene.is_noise(path.as_path());
    let names: Vec<String> =
        differ.into_iter().filter(named).map(|path| super::shown::path(Path::new(path))).collect();
    (!names.is_empty()).then_some(names)
}

/// Hears a check: the end of it for people, more of it for figures.
#[derive(Default)]
struct Hearing {
    tail: Vec<u8>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Watch for Hearing {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let (bytes, stream) = match output {
            Output::Stdout(bytes) => (bytes, &mut self.stdout),
            Output::Stderr(bytes) => (bytes, &mut self.stderr),
        };
        keep_end(stream, bytes, HEARD);
        keep_end(&mut self.tail, bytes, TAIL);
        ControlFlow::Continue(())
    }
}

/// Adds to an end that is kept. It grows to twice its length before it is cut, so that each byte
/// moves once.
fn keep_end(end: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(most)..];
    end.extend_from_slice(bytes);
    if end.len() > 2 * most {
        end.drain(..end.len() - most);
    }
}

impl Hearing {
    fn tail(&self) -> String {
        let cut = self.tail.len().saturating_sub(TAIL);
        // Not in the middle of a character.
        let from = (cut..self.tail.len()).find(|at| self.tail[*at] & 0xc0 != 0x80).unwrap_or(cut);
        let text = String::from_utf8_lossy(&self.tail[from..]).replace("\r\n", "\n");
        let lines = text.split('\n').map(|line| {
            let line = super::figures::plain(line);
            line.chars().filter(|c| *c == '\t' || !c.is_control()).collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn last_line(&self) -> Option<String> {
        let tail = self.tail();
        let last = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(super::shown::cut(last, 200))
    }

    fn figures(&self) -> Option<Figures> {
        let end = |stream: &'_ Vec<u8>| stream.len().saturating_sub(HEARD);
        let (stdout, stderr) =
            (&self.stdout[end(&self.stdout)..], &self.stderr[end(&self.stderr)..]);
        Figures::of_output(stdout).or_else(|| Figures::of_output(stderr))
    }
}
