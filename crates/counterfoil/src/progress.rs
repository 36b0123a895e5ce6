//! The progress of a run: live status lines on a terminal, plain lines elsewhere.

mod at_work;

use at_work::{Agents, AtWork};

use crate::output;
use crate::render::{EventFormatter, OutputMode, time_so_far, usage_suffix};
use counterfoil_agents::agent::AgentProgress;
use counterfoil_contract::text::{escape_control, escape_names, truncate};
use counterfoil_engine::RunObserver;
use counterfoil_flow::{Event, RunState, Usage, Workflow};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most characters of what an agent says that its status line shows.
const MAX_ACTIVITY_CHARS: usize = 200;

/// How often a line tells what an agent is doing where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_mins(1);

/// Receives the progress of a run.
pub(crate) trait ProgressSink: Send + Sync {
    /// Prints one line.
    fn line(&self, text: &str);
    /// The observer to attach to the run.
    fn observer(&self) -> Arc<dyn RunObserver>;
    /// Learns from an event of an earlier process.
    fn on_past_event(&self, event: &Event);
    /// Removes all live status lines.
    fn close(&self);
}

/// Progress on stderr: live if it is a terminal.
pub(crate) fn to_stderr() -> Arc<dyn ProgressSink> {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    if output::stderr_is_terminal() && !is_dumb {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let formatter = EventFormatter::new(OutputMode::Live, output::stderr_line_style());
        let state = LiveState { formatter, attempts: BTreeMap::new(), run: None };
        let state = Mutex::new(state);
        let display = LiveProgress { bars, has_lines: AtomicBool::new(false), state };
        Arc::new(LiveSink { display: Arc::new(display) })
    } else {
        let formatter = EventFormatter::new(OutputMode::Live, output::stderr_line_style());
        let progress = LineProgress { formatter: Mutex::new(formatter), agents: Agents::default() };
        Arc::new(PlainSink { progress: Arc::new(progress) })
    }
}

/// Only warnings, for output that programs read.
pub(crate) fn warnings_only() -> Arc<dyn ProgressSink> {
    Arc::new(WarningSink)
}

struct WarningSink;

impl ProgressSink for WarningSink {
    fn line(&self, _: &str) {}

    fn observer(&self) -> Arc<dyn RunObserver> {
        Arc::new(WarningSink)
    }

    fn on_past_event(&self, _: &Event) {}

    fn close(&self) {}
}

impl RunObserver for WarningSink {
    fn on_event(&self, _: &Event, _: i64, _: &RunState) {}

    fn on_activity(&self, _: &str, _: &str) {}

    fn on_notice(&self, line: &str) {
        output::write_message("warning", line);
    }
}

struct PlainSink {
    progress: Arc<LineProgress>,
}

impl ProgressSink for PlainSink {
    fn line(&self, text: &str) {
        print_line(text);
    }

    fn observer(&self) -> Arc<dyn RunObserver> {
        self.progress.agents.print_each(LINE_INTERVAL, print_line);
        self.progress.clone()
    }

    fn on_past_event(&self, event: &Event) {
        lock(&self.progress.formatter).on_past_event(event);
    }

    fn close(&self) {}
}

fn print_line(text: &str) {
    output::write_stderr(&format!("{text}\n"));
}

/// Prints one or more lines for each event.
struct LineProgress {
    formatter: Mutex<EventFormatter>,
    agents: Agents,
}

impl RunObserver for LineProgress {
    fn on_run_attached(&self, workflow: &Arc<Workflow>) {
        lock(&self.formatter).set_workflow(workflow.clone());
    }

    fn on_event(&self, event: &Event, at: i64, run: &RunState) {
        if let Some(line) = lock(&self.formatter).event_lines(event, at, run) {
            print_line(&line);
        }
        match event {
            Event::AttemptStarted { attempt, agent: Some(agent), .. } => {
                let title = lock(&self.formatter).title(attempt);
                self.agents.lock().insert(attempt.clone(), AtWork::new(title, agent, run));
            }
            Event::RepairAsked { attempt, usage, .. } => {
                if let Some(agent) = self.agents.lock().get_mut(attempt) {
                    agent.next_reply(*usage);
                }
            }
            Event::AttemptEnded(ended) => drop(self.agents.lock().remove(&ended.attempt)),
            Event::AttemptLost { attempt, .. } => drop(self.agents.lock().remove(attempt)),
            _ => {}
        }
    }

    fn on_activity(&self, attempt: &str, _: &str) {
        if let Some(agent) = self.agents.lock().get_mut(attempt) {
            agent.sign();
        }
    }

    fn on_agent_progress(&self, attempt: &str, progress: &AgentProgress) {
        if let Some(agent) = self.agents.lock().get_mut(attempt) {
            agent.on_progress(progress);
        }
    }

    fn on_notice(&self, line: &str) {
        output::write_message("warning", line);
    }
}

struct LiveSink {
    display: Arc<LiveProgress>,
}

/// A status line for each attempt in progress and one for the run, below the lines of past events.
struct LiveProgress {
    bars: MultiProgress,
    /// Whether a line was printed above the status lines.
    has_lines: AtomicBool,
    state: Mutex<LiveState>,
}

struct LiveState {
    formatter: EventFormatter,
    attempts: BTreeMap<String, AttemptStatus>,
    /// The status line of the run, below those of its attempts.
    run: Option<ProgressBar>,
}

/// The status line of an attempt in progress.
struct AttemptStatus {
    bar: ProgressBar,
    title: String,
    repairs: u32,
    /// What is known of the agent.
    agent: Arc<Mutex<AtWork>>,
}

impl AttemptStatus {
    fn label(&self) -> String {
        let repairs = match self.repairs {
            0 => String::new(),
            1 => ", 1 repair requested".to_owned(),
            count => format!(", {count} repairs requested"),
        };
        // The elapsed time and what the agent does are parts of the template.
        escape_control(&format!("{}{repairs}", self.title))
    }
}

impl ProgressSink for LiveSink {
    fn line(&self, text: &str) {
        self.display.print(text);
    }

    fn observer(&self) -> Arc<dyn RunObserver> {
        self.display.clone()
    }

    fn on_past_event(&self, event: &Event) {
        lock(&self.display.state).formatter.on_past_event(event);
    }

    fn close(&self) {
        // The library leaves the cursor at the end of the last line that it printed. If it printed
        // none, the cursor is where it was.
        if self.display.has_lines.load(Ordering::Relaxed) {
            let _ = self.display.bars.println("");
        }
        let _ = self.display.bars.clear();
    }
}

impl LiveProgress {
    /// Prints a line above the status lines.
    fn print(&self, line: &str) {
        self.has_lines.store(true, Ordering::Relaxed);
        let _ = self.bars.println(output::live_line(line));
    }

    /// A new status line, above another one or at the bottom.
    fn spinner(&self, style: ProgressStyle, above: Option<&ProgressBar>) -> ProgressBar {
        let bar = ProgressBar::new_spinner().with_style(style);
        let bar = match above {
            Some(below) => self.bars.insert_before(below, bar),
            None => self.bars.add(bar),
        };
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    /// Updates the status line of the run.
    fn update_run(&self, state: &mut LiveState, run: &RunState) {
        if run.ended.is_some() || run.is_resting() {
            if let Some(bar) = state.run.take() {
                bar.finish_and_clear();
            }
            return;
        }
        if run.frames.is_empty() {
            return;
        }
        let bar = state.run.get_or_insert_with(|| self.spinner(style("  {msg}, {time}"), None));
        let iteration = if run.iterations > 1 {
            format!(", iteration {}", run.iterations)
        } else {
            String::new()
        };
        let usage = usage_suffix(&Usage { wall_ms: 0, ..run.usage });
        let place = format!("{} in '{}'{iteration}{usage}", run.workflow, run.current_state());
        bar.set_message(escape_control(&place));
    }
}

impl RunObserver for LiveProgress {
    fn on_run_attached(&self, workflow: &Arc<Workflow>) {
        lock(&self.state).formatter.set_workflow(workflow.clone());
    }

    fn on_event(&self, event: &Event, at: i64, run: &RunState) {
        let mut state = lock(&self.state);
        let line = state.formatter.event_lines(event, at, run);
        self.update_run(&mut state, run);
        match event {
            Event::AttemptStarted { attempt, agent, .. } => {
                let title = state.formatter.title(attempt);
                let name = agent.as_deref().unwrap_or_default();
                let known = Arc::new(Mutex::new(AtWork::new(title.clone(), name, run)));
                let bar = self.spinner(attempt_style(&known), state.run.as_ref());
                let status = AttemptStatus { bar, title, repairs: 0, agent: known };
                status.bar.set_prefix(status.label());
                state.attempts.insert(attempt.clone(), status);
                // The status line replaces the line of this event.
                return;
            }
            Event::RepairAsked { attempt, usage, .. } => {
                if let Some(status) = state.attempts.get_mut(attempt) {
                    status.repairs += 1;
                    lock(&status.agent).next_reply(*usage);
                    status.bar.set_prefix(status.label());
                    status.bar.set_message("");
                }
            }
            Event::AttemptEnded(ended) => state.close(&ended.attempt),
            Event::AttemptLost { attempt, .. } => state.close(attempt),
            _ => {}
        }
        drop(state);
        if let Some(line) = line {
            self.print(&line);
        }
    }

    fn on_activity(&self, attempt: &str, line: &str) {
        let state = lock(&self.state);
        if let Some(status) = state.attempts.get(attempt) {
            lock(&status.agent).sign();
            status.bar.set_message(escape_control(&truncate(line, MAX_ACTIVITY_CHARS)));
        }
    }

    fn on_agent_progress(&self, attempt: &str, progress: &AgentProgress) {
        if let Some(status) = lock(&self.state).attempts.get(attempt) {
            lock(&status.agent).on_progress(progress);
        }
    }

    fn on_notice(&self, line: &str) {
        self.print(&format!("warning: {}", escape_names(line)));
    }
}

/// A style from a template, in which `{time}` is the time since the status line began.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .with_key("time", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&time_so_far(state.elapsed()));
        })
}

/// The status line of an attempt: what it is, how long it takes, and what its agent does.
fn attempt_style(agent: &Arc<Mutex<AtWork>>) -> ProgressStyle {
    let (who, what) = (agent.clone(), agent.clone());
    style("{spinner} {prefix}{who}, {time}{what}  {wide_msg:.dim}")
        .with_key("who", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let who = lock(&who).pulse().who();
            let _ = if who.is_empty() { Ok(()) } else { write!(out, " ({who})") };
        })
        .with_key("what", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&lock(&what).pulse().details());
        })
}

impl LiveState {
    fn close(&mut self, attempt: &str) {
        if let Some(status) = self.attempts.remove(attempt) {
            status.bar.finish_and_clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
