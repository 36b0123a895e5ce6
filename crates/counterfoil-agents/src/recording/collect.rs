//! Collects the attempts of a run from its events.

use super::{Attempt, RecordedViolation, Rule};
use counterfoil_contract::expr::{Expression, Scope};
use counterfoil_contract::policy::UnknownFields;
use counterfoil_flow::{
    AssignedAgent, AttemptWork, BoundRule, Command, Event, QuotedValue, Reply, RunState, Usage,
    Workflow, decide,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An attempt, with references to the transcripts of its replies.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedAttempt {
    /// The attempt, without replies.
    pub attempt: Attempt,
    /// The replies, as the run recorded them.
    pub replies: Vec<Reply>,
}

/// Collects attempts from the events of a run.
pub struct Recorder<'w> {
    /// The workflow, which has the rules of each step. Without it no rules are recorded.
    workflow: Option<&'w Workflow>,
    state: RunState,
    assigned: BTreeMap<String, AssignedAgent>,
    collected: Vec<CollectedAttempt>,
    index: BTreeMap<String, usize>,
}

impl<'w> Recorder<'w> {
    /// Creates a recorder for a run of a workflow.
    pub fn new(workflow: Option<&'w Workflow>) -> Self {
        Self {
            workflow,
            state: RunState::default(),
            assigned: BTreeMap::new(),
            collected: Vec::new(),
            index: BTreeMap::new(),
        }
    }

    /// Processes the next event of the run.
    pub fn on_event(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunStarted(started) => self.assigned.extend(started.agents.clone()),
            Event::RunResumed(resumed) => self.assigned.extend(resumed.agents.clone()),
            Event::RunReopened(reopened) => self.assigned.extend(reopened.agents.clone()),
            Event::AttemptStarted { attempt, path, agent: Some(agent), n, contract, .. } => {
                let (rules, quotes) = self.rules_and_quotes(attempt);
                self.index.insert(attempt.clone(), self.collected.len());
                let attempt = Attempt {
                    path: path.clone(),
                    n: *n,
                    agent: agent.clone(),
                    assigned: self.assigned.get(agent).cloned(),
                    contract: contract.clone(),
                    unknown_fields: self.unknown_fields(agent),
                    rules,
                    quotes,
                    ..Attempt::default()
                };
                self.collected.push(CollectedAttempt { attempt, replies: Vec::new() });
            }
            Event::RepairAsked { attempt, reply, usage, .. } => {
                if let Some(collected) = self.find(attempt) {
                    collected.add(Some(reply), usage);
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some(collected) = self.find(&ended.attempt) {
                    collected.add(ended.reply.as_ref(), &ended.usage);
                    let attempt = &mut collected.attempt;
                    attempt.result.outcome = Some(ended.outcome.name().to_owned());
                    attempt.result.value.clone_from(&ended.value);
                    attempt.result.violations =
                        ended.violations.iter().filter_map(violated).collect();
                    attempt.reason.clone_from(&ended.reason);
                }
            }
            _ => {}
        }
        self.state.apply(event, at);
    }

    /// The attempts that ended, in the order they started, and the number of unfinished attempts.
    pub fn finish(self) -> (Vec<CollectedAttempt>, usize) {
        let all = self.collected.len();
        let ended: Vec<CollectedAttempt> = self
            .collected
            .into_iter()
            .filter(|collected| collected.attempt.result.outcome.is_some())
            .collect();
        let open = all - ended.len();
        (ended, open)
    }

    /// What the workflow says of unknown fields in the results of an agent.
    fn unknown_fields(&self, agent: &str) -> UnknownFields {
        let role = self.workflow.and_then(|workflow| workflow.agents.get(agent));
        role.map(|role| role.contract.policy().unknown_fields).unwrap_or_default()
    }

    fn find(&mut self, attempt: &str) -> Option<&mut CollectedAttempt> {
        let at = *self.index.get(attempt)?;
        self.collected.get_mut(at)
    }

    /// The rules for an attempt that is about to start, and the values that its prompt contains.
    /// The run state is the one in which the start was decided.
    fn rules_and_quotes(&self, attempt: &str) -> (Vec<Rule>, Vec<QuotedValue>) {
        let Some(workflow) = self.workflow else { return (Vec::new(), Vec::new()) };
        let start = decide(workflow, &self.state).into_iter().find_map(|command| match command {
            Command::StartAttempt(start) if start.attempt == attempt => Some(start),
            _ => None,
        });
        match start.map(|start| start.work) {
            Some(AttemptWork::Agent(work)) => (work.rules.iter().map(rule).collect(), work.quotes),
            _ => (Vec::new(), Vec::new()),
        }
    }
}

impl CollectedAttempt {
    fn add(&mut self, reply: Option<&Reply>, usage: &Usage) {
        self.replies.extend(reply.cloned());
        self.attempt.result.usage += *usage;
    }
}

/// A rule with the values that its expression used. A missing optional field is null.
fn rule(bound: &BoundRule) -> Rule {
    let known = bound.known.iter().map(|(name, value, ty)| {
        let scope = Scope::for_variable(name, ty.clone());
        let evaluated = Expression::compile(name, &scope)
            .ok()
            .and_then(|expression| expression.evaluate(&[(name.as_str(), value, ty)]).ok());
        (name.clone(), evaluated.unwrap_or_else(|| value.clone()))
    });
    Rule {
        id: bound.id.clone(),
        check: bound.check.source().to_owned(),
        message: bound.message.clone(),
        at: bound.at.clone(),
        known: known.collect::<Map<String, Value>>(),
    }
}

fn violated(violation: &Value) -> Option<RecordedViolation> {
    let text =
        |key: &str| violation.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let violated = RecordedViolation {
        code: text("code"),
        pointer: text("pointer"),
        message: text("message"),
    };
    (!violated.code.is_empty()).then_some(violated)
}
