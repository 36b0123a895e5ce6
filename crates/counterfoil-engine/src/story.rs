//! The story of a run: how it stands, its attempts, its way through the states and why it went so.

use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_flow::{
    BuiltinStep, Cause, ChangedFiles, Event, Form, Outcome, Reply, RunState, TransitionTaken, Usage,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a run stands, as programs read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its id.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// How it ended; `waiting` for an answer, `running`, or `interrupted` if nobody drives it.
    pub outcome: String,
    /// Why it failed.
    pub cause: Option<Cause>,
    /// Where it stands.
    pub state: String,
    /// Why, in words.
    pub reason: String,
    /// Visits of the main loop.
    pub iterations: u64,
    /// Agent sessions, in the order they started.
    pub attempts: Vec<Attempt>,
    /// Commands that the workflow ran, and what the engine did itself.
    pub commands: Vec<Attempt>,
    /// The questions that are open.
    pub questions: Vec<Question>,
    /// What it remembers.
    pub variables: Map<String, Value>,
    /// What it cost.
    pub usage: Usage,
    /// The transitions that were taken, and why.
    pub path: Vec<Step>,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// When the last thing happened.
    pub updated_at: i64,
}

/// An agent session, a command, or something that the engine did itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// State, or state, item key, inner state.
    pub path: Vec<String>,
    /// The item, by key.
    pub item: Option<String>,
    /// Who.
    pub agent: Option<String>,
    /// What the engine did itself; none for an agent or a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "deed")]
    pub builtin: Option<BuiltinStep>,
    /// Which attempt of this path.
    pub n: u32,
    /// How it ended; null while it runs.
    pub outcome: Option<String>,
    /// What it had to hand back.
    pub contract: Option<String>,
    /// What it handed back.
    pub value: Option<Value>,
    /// What was wrong with its last reply.
    pub violations: Vec<Value>,
    /// What became of its claims.
    pub claims: Vec<ClaimReport>,
    /// What became of the claims of replies before the last, by the number of the reply.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub earlier_claims: BTreeMap<u32, Vec<ClaimReport>>,
    /// What it changed.
    pub changed: Option<ChangedFiles>,
    /// How often the result was asked for again.
    pub repairs_asked: u32,
    /// What it said.
    pub replies: Vec<Reply>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended so, in words.
    pub reason: String,
    /// When it started.
    pub started_at: i64,
    /// When it ended.
    pub ended_at: Option<i64>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// The words.
    pub question: String,
    /// What can be answered; empty for a free text.
    pub choices: Vec<String>,
    /// The form of the answer, if it has one.
    pub pattern: Option<String>,
    /// Whether it can stay open.
    pub optional: bool,
}

/// A transition that was taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// When.
    pub at: i64,
    /// What.
    #[serde(flatten)]
    pub moved: TransitionTaken,
}

/// How a run stands.
pub(crate) struct Standing {
    /// None while it runs.
    pub(crate) outcome: Option<&'static str>,
    pub(crate) cause: Option<Cause>,
    pub(crate) state: String,
    pub(crate) reason: String,
}

/// How a run stands, from what is known of it.
pub(crate) fn standing(fold: &RunState) -> Standing {
    match (&fold.ended, &fold.stopped) {
        (Some(ended), _) => Standing {
            outcome: Some(ended.outcome.name()),
            cause: ended.cause,
            state: ended.state.clone(),
            reason: ended.reason.clone(),
        },
        (None, Some(stopped)) => Standing {
            outcome: Some(Outcome::Cancelled.name()),
            cause: None,
            state: fold.current_state(),
            reason: stopped.clone(),
        },
        (None, None) => {
            let waiting = fold.is_resting();
            let asked: Vec<&str> =
                fold.open_questions().map(|(_, open)| open.question.as_str()).collect();
            Standing {
                outcome: waiting.then_some("waiting"),
                cause: None,
                state: fold.current_state(),
                reason: if waiting { asked.join("; ") } else { String::new() },
            }
        }
    }
}

/// Hears the events of a run and tells its story.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    attempts: Vec<Attempt>,
    index: BTreeMap<String, usize>,
    /// The item that a frame is or belongs to.
    items: BTreeMap<String, Option<String>>,
    path: Vec<Step>,
}

impl Teller {
    pub(crate) fn hear(&mut self, event: &Event, at: i64) {
        match event {
            Event::FrameOpened { frame, parent, item, .. } => {
                let above =
                    parent.as_ref().and_then(|parent| self.items.get(parent).cloned().flatten());
                self.items.insert(frame.clone(), item.clone().or(above));
            }
            Event::AttemptStarted { attempt, frame, path, agent, n, contract, builtin } => {
                self.index.insert(attempt.clone(), self.attempts.len());
                self.attempts.push(Attempt {
                    path: path.clone(),
                    item: self.items.get(frame).cloned().flatten(),
                    agent: agent.clone(),
                    builtin: builtin.clone(),
                    n: *n,
                    outcome: None,
                    contract: contract.clone(),
                    value: None,
                    violations: Vec::new(),
                    claims: Vec::new(),
                    earlier_claims: BTreeMap::new(),
                    changed: None,
                    repairs_asked: 0,
                    replies: Vec::new(),
                    usage: Usage::default(),
                    reason: String::new(),
                    started_at: at,
                    ended_at: None,
                });
            }
            Event::RepairAsked { attempt, reply, usage, claims } => {
                if let Some(attempt) = self.attempt(attempt) {
                    attempt.repairs_asked += 1;
                    let claims = told(claims);
                    if !claims.is_empty() {
                        attempt.earlier_claims.insert(attempt.repairs_asked, claims);
                    }
                    attempt.replies.push(reply.clone());
                    attempt.usage += *usage;
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some(attempt) = self.attempt(&ended.attempt) {
                    attempt.outcome = Some(ended.outcome.name().to_owned());
                    attempt.value.clone_from(&ended.value);
                    attempt.violations.clone_from(&ended.violations);
                    attempt.claims = told(&ended.claims);
                    attempt.changed.clone_from(&ended.changed);
                    attempt.replies.extend(ended.reply.clone());
                    attempt.usage += ended.usage;
                    attempt.reason.clone_from(&ended.reason);
                    attempt.ended_at = Some(at);
                }
            }
            Event::AttemptLost { attempt, .. } => {
                if let Some(attempt) = self.attempt(attempt) {
                    attempt.outcome = Some("cancelled".to_owned());
                    "the process that drove it died".clone_into(&mut attempt.reason);
                    attempt.ended_at = Some(at);
                }
            }
            Event::TransitionTaken(moved) => self.path.push(Step { at, moved: (**moved).clone() }),
            _ => {}
        }
    }

    fn attempt(&mut self, id: &str) -> Option<&mut Attempt> {
        let at = *self.index.get(id)?;
        self.attempts.get_mut(at)
    }

    pub(crate) fn report(self, fold: &RunState, live: bool) -> Report {
        let standing = standing(fold);
        let (attempts, commands) =
            self.attempts.into_iter().partition(|attempt| attempt.agent.is_some());
        let questions = fold.open_questions().map(|(id, open)| {
            let (choices, pattern) = match &open.form {
                Form::Choices(choices) => (choices.clone(), None),
                Form::Pattern(pattern) => (Vec::new(), Some(pattern.clone())),
                Form::Text => (Vec::new(), None),
            };
            Question {
                id: id.clone(),
                question: open.question.clone(),
                choices,
                pattern,
                optional: open.optional,
            }
        });
        let outcome = standing.outcome.unwrap_or(if live { "running" } else { "interrupted" });
        Report {
            run: fold.run.clone(),
            workflow: fold.workflow.clone(),
            outcome: outcome.to_owned(),
            cause: standing.cause,
            state: standing.state,
            reason: standing.reason,
            iterations: fold.iterations,
            attempts,
            commands,
            questions: questions.collect(),
            variables: fold.frames.get("").map(|frame| frame.variables.clone()).unwrap_or_default(),
            usage: fold.usage,
            path: self.path,
            started_at: fold.started_at,
            updated_at: fold.last_at,
        }
    }
}

/// The claims without what we hold against every step where nothing speaks against it.
fn told(claims: &[ClaimReport]) -> Vec<ClaimReport> {
    let is_told = |claim: &&ClaimReport| !claim.is_own() || claim.verdict != Verdict::Verified;
    claims.iter().filter(is_told).cloned().collect()
}
