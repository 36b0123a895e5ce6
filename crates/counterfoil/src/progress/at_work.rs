//! The agents that are at work: how far each is, and when it last gave a sign of life.

use crate::render::{Pulse, time_so_far};
use counterfoil_agents::agent::AgentProgress;
use counterfoil_engine::ledger::program_name;
use counterfoil_flow::{RunState, Usage};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often it is looked for agents of which a line is due.
const TICK: Duration = Duration::from_millis(500);

/// An agent at work.
pub(super) struct AtWork {
    title: String,
    program: String,
    model: Option<String>,
    progress: AgentProgress,
    /// What it used in earlier replies of the attempt.
    before: Usage,
    started: Instant,
    last_sign: Instant,
    /// Since when the tool runs that runs now.
    call_since: Option<Instant>,
    /// When a line was last printed.
    last_line: Instant,
}

impl AtWork {
    /// An agent that starts now.
    pub(super) fn new(title: String, agent: &str, run: &RunState) -> Self {
        let assigned = run.agents.get(agent);
        let now = Instant::now();
        Self {
            title,
            program: assigned.map(|one| program_name(&one.spec)).unwrap_or_default(),
            model: assigned.and_then(|one| one.model.clone()),
            progress: AgentProgress::default(),
            before: Usage::default(),
            started: now,
            last_sign: now,
            call_since: None,
            last_line: now,
        }
    }

    /// It wrote something.
    pub(super) fn sign(&mut self) {
        self.last_sign = Instant::now();
    }

    /// It told how far it is.
    pub(super) fn on_progress(&mut self, progress: &AgentProgress) {
        self.sign();
        let is_same = self.progress.open_call == progress.open_call
            && self.progress.calls == progress.calls
            && self.call_since.is_some();
        self.call_since = match &progress.open_call {
            Some(_) if is_same => self.call_since,
            Some(_) => Some(Instant::now()),
            None => None,
        };
        self.progress.clone_from(progress);
    }

    /// Its reply ended, and it is asked again.
    pub(super) fn next_reply(&mut self, usage: Usage) {
        self.before += usage;
        self.progress =
            AgentProgress { model: self.progress.model.take(), ..AgentProgress::default() };
        self.call_since = None;
        self.sign();
    }

    /// What is known of it now.
    pub(super) fn pulse(&self) -> Pulse<'_> {
        Pulse {
            program: &self.program,
            model: self.model.as_deref(),
            progress: &self.progress,
            before: self.before,
            silent: self.last_sign.elapsed(),
            in_call: self.call_since.map(|since| since.elapsed()),
        }
    }

    /// A line for people who see no status line.
    fn line(&self) -> String {
        let elapsed = time_so_far(self.started.elapsed());
        let pulse = self.pulse();
        format!("· {}: {}, {elapsed}{}", self.title, pulse.who(), pulse.details())
    }
}

/// The agents at work, by attempt.
#[derive(Clone, Default)]
pub(super) struct Agents(Arc<Mutex<BTreeMap<String, AtWork>>>);

impl Agents {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, AtWork>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line for each agent at such intervals, until this value is dropped.
    pub(super) fn print_each(&self, interval: Duration, print: impl Fn(&str) + Send + 'static) {
        let agents = Arc::downgrade(&self.0);
        // Without the thread there are no such lines; nothing else depends on it.
        let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            while let Some(lines) = due_lines(&agents, interval) {
                for line in &lines {
                    print(line);
                }
                std::thread::sleep(TICK.min(interval));
            }
        });
    }
}

/// The lines that are due; none if nobody watches any more.
fn due_lines(
    agents: &Weak<Mutex<BTreeMap<String, AtWork>>>,
    interval: Duration,
) -> Option<Vec<String>> {
    let agents = Agents(agents.upgrade()?);
    let mut agents = agents.lock();
    let due = agents.values_mut().filter(|agent| agent.last_line.elapsed() >= interval);
    Some(
        due.map(|agent| {
            agent.last_line = Instant::now();
            agent.line()
        })
        .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_line_is_printed_at_intervals_until_nobody_watches() {
        let agents = Agents::default();
        let mut agent = AtWork::new("work: worker".to_owned(), "worker", &RunState::default());
        "claude".clone_into(&mut agent.program);
        let progress =
            AgentProgress { calls: 3, open_call: Some("Bash".to_owned()), ..Default::default() };
        agent.on_progress(&progress);
        agents.lock().insert("work#1".to_owned(), agent);
        let (sender, receiver) = mpsc::channel();
        agents.print_each(Duration::from_millis(20), move |line| {
            let _ = sender.send(line.to_owned());
        });
        for _ in 0..2 {
            let line = receiver.recv_timeout(Duration::from_mins(1)).unwrap();
            assert!(line.starts_with("· work: worker: claude, "), "{line}");
            assert!(line.contains("3 calls, Bash is running for "), "{line}");
        }
        drop(agents);
        // The thread ends, and with it the sender.
        while receiver.recv_timeout(Duration::from_mins(1)).is_ok() {}
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn a_call_runs_since_it_began() {
        let mut agent = AtWork::new("work".to_owned(), "worker", &RunState::default());
        let call = |calls: u64, tool: Option<&str>| AgentProgress {
            calls,
            open_call: tool.map(str::to_owned),
            ..Default::default()
        };
        agent.on_progress(&call(1, Some("Bash")));
        let began = agent.call_since;
        agent.on_progress(&call(1, Some("Bash")));
        assert_eq!(agent.call_since, began);
        agent.on_progress(&call(2, Some("Bash")));
        assert_ne!(agent.call_since, began);
        agent.on_progress(&call(2, None));
        assert_eq!(agent.call_since, None);
    }
}
