//! The timeline of a run: its events as lines, with results, violations, guard values and
//! assignments below them.

use super::event_lines::{EventFormatter, INDENT, OutputMode};
use super::lines;
use super::run_summary::{Ending, output_file};
use super::text::{one_line, truncate_json};
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::event_text::guard_values;
use counterfoil_engine::ledger::program_name;
use counterfoil_flow::{AttemptOutcome, Ended, Event, RunState, TransitionTaken, Workflow};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Collects the events of a run and renders them.
pub(crate) struct Timeline<'a> {
    workflow: Option<&'a Workflow>,
    /// The folder with the transcripts; none if they are on another machine.
    state: Option<&'a Path>,
    style: Style,
    formatter: EventFormatter,
    text: String,
    /// The notes printed so far; each is printed once.
    notes: BTreeSet<String>,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(
        workflow: Option<&'a Workflow>,
        state: Option<&'a Path>,
        style: Style,
    ) -> Self {
        Self {
            workflow,
            state,
            style,
            formatter: EventFormatter::new(OutputMode::Timeline, style),
            text: String::new(),
            notes: BTreeSet::new(),
        }
    }

    /// Adds the next event.
    pub(crate) fn on_event(&mut self, event: &Event, at: i64, run: &RunState) {
        let agent = match event {
            Event::AttemptEnded(ended) => self.formatter.agent(&ended.attempt).map(str::to_owned),
            _ => None,
        };
        let Some(line) = self.formatter.event_line(event, at, run) else { return };
        let _ = writeln!(self.text, "{line}");
        let details = self.formatter.details(event);
        let details = match event {
            Event::RepairAsked { reply, .. } => {
                details.into_iter().chain(output_file(self.state, &reply.transcript)).collect()
            }
            Event::AttemptEnded(ended) => {
                let program = program_line(ended, agent.as_deref(), run);
                let details = self.attempt_details(ended, agent.as_deref(), details);
                program.into_iter().chain(details).collect()
            }
            Event::TransitionTaken(transition) => transition_details(transition),
            _ => Vec::new(),
        };
        for line in details {
            let _ = writeln!(self.text, "{}", lines::line(INDENT, &line, self.style));
        }
    }

    /// The whole timeline, with the outcome at its end.
    pub(crate) fn finish(self, ending: &Ending<'_>) -> String {
        let mut text = self.text;
        for attempt in self.formatter.open_attempts() {
            let _ = writeln!(text, "{INDENT}in progress: {attempt}");
        }
        let report = ending.report;
        if !report.variables.is_empty() {
            text.push_str("\nvariables:\n");
            for (name, value) in &report.variables {
                let _ = writeln!(text, "  {name} = {}", truncate_json(value));
            }
        }
        text + "\n" + &ending.render()
    }

    /// The lines below an attempt that ended; `further` are those that every view of a run has.
    fn attempt_details(
        &mut self,
        ended: &Ended,
        agent: Option<&str>,
        further: Vec<String>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(value) = &ended.value {
            let role =
                self.workflow.zip(agent).and_then(|(workflow, agent)| workflow.agents.get(agent));
            match (role, agent) {
                (Some(role), _) => lines.push(one_line(&role.contract.display_line(value))),
                (None, Some(_)) => lines.push(truncate_json(value)),
                // The output of a command is in its transcript.
                (None, None) => lines.extend(value.get("value").map(truncate_json)),
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
        lines.extend(further);
        for note in ended.changed.iter().flat_map(|changed| &changed.notes) {
            if self.notes.insert(note.clone()) {
                lines.push(format!("note: {}", one_line(note)));
            }
        }
        let command_failed =
            |value: &Value| agent.is_none() && value.get("ok") == Some(&Value::Bool(false));
        let failed = ended.outcome != AttemptOutcome::Accepted
            || ended.value.as_ref().is_some_and(command_failed);
        let reply = ended.reply.as_ref().filter(|_| failed);
        lines.extend(reply.and_then(|reply| output_file(self.state, &reply.transcript)));
        lines
    }
}

/// The program that worked in a conversation: so that one can look at it with the program itself.
pub(super) fn program_line(ended: &Ended, agent: Option<&str>, run: &RunState) -> Option<String> {
    let reply = ended.reply.as_ref()?;
    let conversation = one_line(reply.conversation.as_ref()?);
    let assigned = run.agents.get(agent?)?;
    let version = assigned.version.as_ref().map(|version| format!(" {version}"));
    let model = reply.model.as_ref().or(assigned.model.as_ref());
    let model = model.map(|model| format!(", model {}", one_line(model)));
    Some(format!(
        "{}{}{}, result by {}, conversation {conversation}",
        program_name(&assigned.spec),
        version.unwrap_or_default(),
        model.unwrap_or_default(),
        reply.channel.name(),
    ))
}

fn transition_details(transition: &TransitionTaken) -> Vec<String> {
    let mut lines = Vec::new();
    if transition.guard.is_some() && !transition.saw.is_empty() {
        lines.push(format!("with {}", guard_values(transition)));
    }
    lines.extend(
        transition.set.iter().map(|(name, value)| format!("{name} := {}", truncate_json(value))),
    );
    if !transition.reason.is_empty() && transition.failure.is_none() {
        lines.push(format!("reason: {}", one_line(&transition.reason)));
    }
    lines
}
