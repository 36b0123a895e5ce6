//! What a recording holds of a run, from its events.

use super::{Attempt, Rule, Violated};
use counterfoil_contract::expr::{Expression, Scope};
use counterfoil_flow::{
    AssignedAgent, AttemptWork, BoundRule, Command, Event, Reply, RunState, Usage, Workflow, decide,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An attempt, and the files of its replies where the run keeps them.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// What is known of it; without replies.
    pub attempt: Attempt,
    /// Its replies.
    pub replies: Vec<Reply>,
}

/// Hears the events of a run.
pub struct Gatherer<'w> {
    /// Tells by which rules a result was judged; without it, nobody can.
    workflow: Option<&'w Workflow>,
    fold: RunState,
    players: BTreeMap<String, AssignedAgent>,
    gathered: Vec<Gathered>,
    index: BTreeMap<String, usize>,
}

impl<'w> Gatherer<'w> {
    /// For a run of this workflow.
    pub fn new(workflow: Option<&'w Workflow>) -> Self {
        Self {
            workflow,
            fold: RunState::default(),
            players: BTreeMap::new(),
            gathered: Vec::new(),
            index: BTreeMap::new(),
        }
    }

    /// Takes an event.
    pub fn hear(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunStarted(started) => self.players.extend(started.agents.clone()),
            Event::RunResumed { agents, .. } => self.players.extend(agents.clone()),
            Event::AttemptStarted { attempt, path, agent: Some(agent), n, contract, .. } => {
                let rules = self.rules(attempt);
                self.index.insert(attempt.clone(), self.gathered.len());
                let attempt = Attempt {
                    path: path.clone(),
                    n: *n,
                    agent: agent.clone(),
                    player: self.players.get(agent).cloned(),
                    contract: contract.clone(),
                    rules,
                    ..Attempt::default()
                };
                self.gathered.push(Gathered { attempt, replies: Vec::new() });
            }
            Event::RepairAsked { attempt, reply, usage, .. } => {
                if let Some(gathered) = self.of(attempt) {
                    gathered.add(Some(reply), usage);
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some(gathered) = self.of(&ended.attempt) {
                    gathered.add(ended.reply.as_ref(), &ended.usage);
                    let attempt = &mut gathered.attempt;
                    attempt.came.outcome = Some(ended.outcome.name().to_owned());
                    attempt.came.value.clone_from(&ended.value);
                    attempt.came.violations =
                        ended.violations.iter().filter_map(violated).collect();
                    attempt.reason.clone_from(&ended.reason);
                }
            }
            _ => {}
        }
        self.fold.apply(event, at);
    }

    /// The attempts that ended, in the order they started, and how many did not.
    pub fn gathered(self) -> (Vec<Gathered>, usize) {
        let all = self.gathered.len();
        let ended: Vec<Gathered> = self
            .gathered
            .into_iter()
            .filter(|gathered| gathered.attempt.came.outcome.is_some())
            .collect();
        let open = all - ended.len();
        (ended, open)
    }

    fn of(&mut self, attempt: &str) -> Option<&mut Gathered> {
        let at = *self.index.get(attempt)?;
        self.gathered.get_mut(at)
    }

    /// The rules that hold for an attempt which is about to start: the run stands as it did when
    /// that was decided.
    fn rules(&self, attempt: &str) -> Vec<Rule> {
        let Some(workflow) = self.workflow else { return Vec::new() };
        let start = decide(workflow, &self.fold).into_iter().find_map(|command| match command {
            Command::StartAttempt(start) if start.attempt == attempt => Some(start),
            _ => None,
        });
        match start.map(|start| start.work) {
            Some(AttemptWork::Agent(work)) => work.rules.iter().map(rule).collect(),
            _ => Vec::new(),
        }
    }
}

impl Gathered {
    fn add(&mut self, reply: Option<&Reply>, usage: &Usage) {
        self.replies.extend(reply.cloned());
        self.attempt.came.usage += *usage;
    }
}

/// A rule with its values as its expression saw them: where a field that may be missing is, null
/// stands in its place.
fn rule(held: &BoundRule) -> Rule {
    let known = held.known.iter().map(|(name, value, ty)| {
        let scope = Scope::for_variable(name, ty.clone());
        let seen = Expression::compile(name, &scope)
            .ok()
            .and_then(|expression| expression.evaluate(&[(name.as_str(), value, ty)]).ok());
        (name.clone(), seen.unwrap_or_else(|| value.clone()))
    });
    Rule {
        id: held.id.clone(),
        check: held.check.source().to_owned(),
        message: held.message.clone(),
        at: held.at.clone(),
        known: known.collect::<Map<String, Value>>(),
    }
}

fn violated(violation: &Value) -> Option<Violated> {
    let text =
        |key: &str| violation.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let violated =
        Violated { code: text("code"), pointer: text("pointer"), message: text("message") };
    (!violated.code.is_empty()).then_some(violated)
}
