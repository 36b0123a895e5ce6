//! The story of a run: its events as lines, and under each what it gave, what was wrong, what a
//! guard saw, what was assigned.

use super::lines::{self, INDENT, Teller, Told};
use super::{claims, figures, headline, one_line, questions, said, short};
use counterfoil_engine::Report;
use counterfoil_engine::ledger::Entry;
use counterfoil_flow::{AttemptOutcome, Ended, Event, RunState, TransitionTaken, Workflow};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Hears a run and tells it.
pub(crate) struct Story<'a> {
    workflow: Option<&'a Workflow>,
    /// Where transcripts are.
    state: &'a Path,
    /// What commands need to find the run.
    place: String,
    teller: Teller,
    text: String,
    /// What could not be seen is said once.
    notes: BTreeSet<String>,
}

impl<'a> Story<'a> {
    pub(crate) fn new(workflow: Option<&'a Workflow>, state: &'a Path, place: String) -> Self {
        Self {
            workflow,
            state,
            place,
            teller: Teller::new(Told::Afterwards),
            text: String::new(),
            notes: BTreeSet::new(),
        }
    }

    pub(crate) fn hear(&mut self, event: &Event, at: i64, fold: &RunState) {
        let agent = match event {
            Event::AttemptEnded(ended) => self.teller.agent(&ended.attempt).map(str::to_owned),
            _ => None,
        };
        let Some(line) = self.teller.line(event, at, fold) else { return };
        let _ = writeln!(self.text, "{line}");
        let more = match event {
            Event::RepairAsked { reply, .. } => {
                said(self.state, &reply.transcript).into_iter().collect()
            }
            Event::AttemptEnded(ended) => self.ended(ended, agent.as_deref()),
            Event::TransitionTaken(moved) => moved_more(moved),
            _ => Vec::new(),
        };
        for line in more {
            let _ = writeln!(self.text, "{INDENT}{line}");
        }
    }

    /// The whole of it.
    pub(crate) fn told(mut self, report: &Report, entries: &[Entry]) -> String {
        for work in self.teller.at_work() {
            let _ = writeln!(self.text, "{INDENT}at work: {work}");
        }
        let mut text = self.text;
        if !report.variables.is_empty() {
            text.push_str("\nvariables:\n");
            for (name, value) in &report.variables {
                let _ = writeln!(text, "  {name} = {}", short(value));
            }
        }
        let _ =
            write!(text, "\n{}\n{}", headline(report, &self.place), questions(report, &self.place));
        let _ = writeln!(text, "{}", figures(report));
        text + &claims::summary(entries)
    }

    fn ended(&mut self, ended: &Ended, agent: Option<&str>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(value) = &ended.value {
            let role =
                self.workflow.zip(agent).and_then(|(workflow, agent)| workflow.agents.get(agent));
            match (role, agent) {
                (Some(role), _) => lines.push(one_line(&role.contract.show(value))),
                (None, Some(_)) => lines.push(short(value)),
                // What else a command said stands in its file.
                (None, None) => lines.extend(value.get("value").map(short)),
            }
        }
        let mut seen = BTreeSet::new();
        for violation in &ended.violations {
            let part = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
            let line =
                format!("{} {}: {}", part("code"), part("pointer"), one_line(part("message")));
            if seen.insert(line.clone()) {
                lines.push(line);
            }
        }
        lines.extend(claims::under(ended));
        for note in ended.changed.iter().flat_map(|changed| &changed.notes) {
            if self.notes.insert(note.clone()) {
                lines.push(format!("note: {}", one_line(note)));
            }
        }
        let refused =
            |value: &Value| agent.is_none() && value.get("ok") == Some(&Value::Bool(false));
        let failed =
            ended.outcome != AttemptOutcome::Accepted || ended.value.as_ref().is_some_and(refused);
        let reply = ended.reply.as_ref().filter(|_| failed);
        lines.extend(reply.and_then(|reply| said(self.state, &reply.transcript)));
        lines
    }
}

fn moved_more(moved: &TransitionTaken) -> Vec<String> {
    let mut lines = Vec::new();
    if moved.guard.is_some() && !moved.saw.is_empty() {
        lines.push(format!("saw {}", lines::saw(moved)));
    }
    lines.extend(moved.set.iter().map(|(name, value)| format!("{name} := {}", short(value))));
    if !moved.reason.is_empty() && moved.failure.is_none() {
        lines.push(format!("reason: {}", one_line(&moved.reason)));
    }
    lines
}
