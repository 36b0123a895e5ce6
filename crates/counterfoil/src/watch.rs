//! Watching a run as it goes: a live tree on a terminal, plain lines elsewhere.

use crate::{output, tell};
use counterfoil_engine::Watcher;
use counterfoil_flow::{Event, RunState, Usage, Workflow};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
        Arc::new(Live { inner: Arc::new(Tree { bars, shown: Mutex::default() }) })
    } else {
        Arc::new(Plain)
    }
}

/// No lines but remarks: what somebody must hear even if only a program reads the rest.
pub(crate) fn remarks() -> Arc<dyn Lines> {
    Arc::new(Remarks)
}

struct Remarks;

impl Lines for Remarks {
    fn line(&self, _: &str) {}

    fn watcher(&self) -> Arc<dyn Watcher> {
        Arc::new(Remarks)
    }

    fn close(&self) {}
}

impl Watcher for Remarks {
    fn event(&self, _: &Event, _: i64, _: &RunState) {}

    fn activity(&self, _: &str, _: &str) {}

    fn remark(&self, line: &str) {
        output::words(&format!("warning: {line}\n"));
    }
}

struct Plain;

impl Lines for Plain {
    fn line(&self, text: &str) {
        output::words(&format!("{text}\n"));
    }

    fn watcher(&self) -> Arc<dyn Watcher> {
        Arc::new(Telling::default())
    }

    fn close(&self) {}
}

/// Tells each event that is worth a line.
#[derive(Default)]
struct Telling {
    teller: Mutex<tell::Teller>,
}

impl Watcher for Telling {
    fn takes_up(&self, workflow: &Arc<Workflow>) {
        locked(&self.teller).knows(workflow.clone());
    }

    fn event(&self, event: &Event, at: i64, fold: &RunState) {
        if let Some(line) = locked(&self.teller).lines(event, at, fold) {
            Plain.line(&line);
        }
    }

    fn activity(&self, _: &str, _: &str) {}

    fn remark(&self, line: &str) {
        Plain.line(&format!("warning: {line}"));
    }
}

struct Live {
    inner: Arc<Tree>,
}

/// A line for each attempt in flight and one for the run, with what happened above them.
struct Tree {
    bars: MultiProgress,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    teller: tell::Teller,
    open: BTreeMap<String, Working>,
    /// The run itself, below its attempts.
    whole: Option<ProgressBar>,
}

/// An attempt in flight.
struct Working {
    bar: ProgressBar,
    title: String,
    repairs: u32,
    spent: Usage,
}

impl Working {
    fn name(&self) -> String {
        let repairs = match self.repairs {
            0 => String::new(),
            1 => ", 1 repair asked".to_owned(),
            more => format!(", {more} repairs asked"),
        };
        // Its time stands beside it already.
        format!("{}{repairs}{}", self.title, tell::cost(&Usage { wall_ms: 0, ..self.spent }))
    }
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

impl Tree {
    fn spinner(&self, template: &str, above: Option<&ProgressBar>) -> ProgressBar {
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new_spinner()
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let bar = match above {
            Some(below) => self.bars.insert_before(below, bar),
            None => self.bars.add(bar),
        };
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    fn whole(&self, shown: &mut Shown, fold: &RunState) {
        if fold.ended.is_some() || fold.is_resting() {
            if let Some(bar) = shown.whole.take() {
                bar.finish_and_clear();
            }
            return;
        }
        if fold.frames.is_empty() {
            return;
        }
        let bar = shown.whole.get_or_insert_with(|| self.spinner("  {msg}, {elapsed}", None));
        let round = if fold.iterations > 1 {
            format!(", iteration {}", fold.iterations)
        } else {
            String::new()
        };
        let spent = tell::cost(&Usage { wall_ms: 0, ..fold.usage });
        bar.set_message(format!("{} at '{}'{round}{spent}", fold.workflow, fold.current_state()));
    }
}

impl Watcher for Tree {
    fn takes_up(&self, workflow: &Arc<Workflow>) {
        locked(&self.shown).teller.knows(workflow.clone());
    }

    fn event(&self, event: &Event, at: i64, fold: &RunState) {
        let mut shown = locked(&self.shown);
        let line = shown.teller.lines(event, at, fold);
        self.whole(&mut shown, fold);
        match event {
            Event::AttemptStarted { attempt, path, agent, n, builtin, .. } => {
                let title = tell::title(&path.join("/"), agent.as_deref(), builtin.as_ref(), *n);
                let bar = self.spinner(
                    "{spinner} {prefix}, {elapsed}  {wide_msg:.dim}",
                    shown.whole.as_ref(),
                );
                let working = Working { bar, title, repairs: 0, spent: Usage::default() };
                working.bar.set_prefix(working.name());
                shown.open.insert(attempt.clone(), working);
                // Its bar says so; the line would only repeat it.
                return;
            }
            Event::RepairAsked { attempt, usage, .. } => {
                if let Some(working) = shown.open.get_mut(attempt) {
                    working.repairs += 1;
                    working.spent += *usage;
                    working.bar.set_prefix(working.name());
                    working.bar.set_message("");
                }
            }
            Event::AttemptEnded(ended) => shown.close(&ended.attempt),
            Event::AttemptLost { attempt, .. } => shown.close(attempt),
            _ => {}
        }
        drop(shown);
        if let Some(line) = line {
            let _ = self.bars.println(line);
        }
    }

    fn activity(&self, attempt: &str, line: &str) {
        let shown = locked(&self.shown);
        if let Some(working) = shown.open.get(attempt) {
            // Control characters of an agent must not reach the terminal.
            let clean: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
            working.bar.set_message(clean);
        }
    }

    fn remark(&self, line: &str) {
        let _ = self.bars.println(format!("warning: {line}"));
    }
}

impl Shown {
    fn close(&mut self, attempt: &str) {
        if let Some(working) = self.open.remove(attempt) {
            working.bar.finish_and_clear();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
