//! Watching a run as it goes: a live tree on a terminal, plain lines elsewhere.

use crate::{output, tell};
use countersign_engine::{Unwatched, Watcher};
use countersign_flow::{Event, Fold};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where lines about a run go.
pub(crate) trait Lines: Send + Sync {
    /// One line.
    fn line(&self, text: &str);
    /// Whoever sees the run.
    fn watcher(&self) -> Arc<dyn Watcher>;
    /// Nothing moves any more.
    fn close(&self);
}

/// Lines on stderr: live if it is a terminal.
pub(crate) fn on_stderr() -> Arc<dyn Lines> {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    if std::io::stderr().is_terminal() && !dumb {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        Arc::new(Live { inner: Arc::new(Tree { bars, open: Mutex::default() }) })
    } else {
        Arc::new(Plain)
    }
}

/// No lines.
pub(crate) fn nowhere() -> Arc<dyn Lines> {
    Arc::new(Nowhere)
}

struct Nowhere;

impl Lines for Nowhere {
    fn line(&self, _: &str) {}

    fn watcher(&self) -> Arc<dyn Watcher> {
        Arc::new(Unwatched)
    }

    fn close(&self) {}
}

struct Plain;

impl Lines for Plain {
    fn line(&self, text: &str) {
        output::words(&format!("{text}\n"));
    }

    fn watcher(&self) -> Arc<dyn Watcher> {
        Arc::new(Plain)
    }

    fn close(&self) {}
}

impl Watcher for Plain {
    fn event(&self, event: &Event, at: i64, fold: &Fold) {
        if let Some(line) = tell::event(event, at, fold) {
            self.line(&line);
        }
    }

    fn activity(&self, _: &str, _: &str) {}
}

struct Live {
    inner: Arc<Tree>,
}

/// A line for each attempt in flight, with what happened above it.
struct Tree {
    bars: MultiProgress,
    open: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Lines for Live {
    fn line(&self, text: &str) {
        let _ = self.inner.bars.println(text);
    }

    fn watcher(&self) -> Arc<dyn Watcher> {
        self.inner.clone()
    }

    fn close(&self) {
        let _ = self.inner.bars.clear();
    }
}

impl Watcher for Tree {
    fn event(&self, event: &Event, at: i64, fold: &Fold) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::AttemptStarted { attempt, path, agent, n, .. } => {
                let bar = self.bars.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg:.dim}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                bar.set_prefix(tell::started(path, agent.as_deref(), *n));
                bar.enable_steady_tick(Duration::from_millis(120));
                open.insert(attempt.clone(), bar);
                return;
            }
            Event::AttemptEnded(ended) => {
                if let Some(bar) = open.remove(&ended.attempt) {
                    bar.finish_and_clear();
                }
            }
            Event::AttemptLost { attempt } => {
                if let Some(bar) = open.remove(attempt) {
                    bar.finish_and_clear();
                }
            }
            _ => {}
        }
        drop(open);
        if let Some(line) = tell::event(event, at, fold) {
            let _ = self.bars.println(line);
        }
    }

    fn activity(&self, attempt: &str, line: &str) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = open.get(attempt) {
            // Control characters of an agent must not reach the terminal.
            let clean: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
            bar.set_message(clean);
        }
    }
}
