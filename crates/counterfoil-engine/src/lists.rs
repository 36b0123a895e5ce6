//! What lists show of runs: a line for each run, the questions that are open, the claims, the events.

use crate::journal::{RunInfo, StoredEvent};
use crate::ledger::{self, Entry, Totals};
use crate::run_report::{Question, Reopening, RunReport};
use counterfoil_flow::{AnswerError, Event, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A run in the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunListItem {
    /// The run's id.
    pub run: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The version of the workflow.
    pub version: u32,
    /// The outcome of the run, as in its report, but `interrupted` if a signal stopped the run;
    /// `altered` if another program wrote to the journal, and `damaged` if `counterfoil runs` finds
    /// that an event is damaged or missing.
    pub outcome: String,
    /// The cause of a failure.
    pub cause: Option<String>,
    /// The current state, or the last one.
    pub state: String,
    /// The reason for the outcome, as text.
    pub reason: String,
    /// The number of iterations of the main loop.
    pub iterations: u64,
    /// The number of open questions.
    pub questions: u64,
    /// How often the run was reopened after it had ended.
    pub reopened: u64,
    /// The person or program that reopened it last.
    pub reopened_by: Option<String>,
    /// The person or program that undid what it changed last.
    pub undone_by: Option<String>,
    /// When the run started, in milliseconds since 1970.
    pub started_at: i64,
    /// The time of the last event, in milliseconds since 1970.
    pub updated_at: i64,
    /// The total usage.
    pub usage: Usage,
}

/// What happened to a run after it had ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AfterEnd {
    /// How often it was reopened, and the last time.
    pub reopened: Option<(u64, Reopening)>,
    /// The person or program that undid what it changed last.
    pub undone_by: Option<String>,
}

impl AfterEnd {
    /// The kinds of events that it needs.
    pub const KINDS: [&'static str; 2] = ["run-reopened", "run-undone"];

    /// Adds the next event.
    pub fn on_event(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunReopened(reopened) => {
                let times = self.reopened.as_ref().map_or(0, |(times, _)| *times);
                self.reopened = Some((times + 1, Reopening::new(reopened, at)));
            }
            Event::RunUndone(undone) => self.undone_by = Some(undone.by.clone()),
            _ => {}
        }
    }

    /// What happened, in words that follow the outcome of the run.
    pub fn words(&self) -> Vec<&'static str> {
        words_after_end(self.reopened.is_some(), self.undone_by.is_some())
    }
}

fn words_after_end(is_reopened: bool, is_undone: bool) -> Vec<&'static str> {
    let words = [(is_reopened, "reopened"), (is_undone, "undone")];
    words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect()
}

impl RunListItem {
    /// The item of a run.
    pub fn new(run: &RunInfo, after: &AfterEnd) -> Self {
        let reopened = after.reopened.as_ref();
        let summary = &run.summary;
        Self {
            run: run.id.clone(),
            workflow: run.workflow.clone(),
            version: run.version,
            outcome: outcome(run).to_owned(),
            cause: summary.cause.clone(),
            state: summary.state.clone(),
            reason: summary.reason.clone(),
            iterations: summary.iterations,
            questions: summary.questions,
            reopened: reopened.map_or(0, |(times, _)| *times),
            reopened_by: reopened.map(|(_, last)| last.by.clone()),
            undone_by: after.undone_by.clone(),
            started_at: run.created_at,
            updated_at: run.updated_at,
            usage: usage(run),
        }
    }
}

impl RunListItem {
    /// What happened to the run after it had ended, in words that follow its outcome.
    pub fn words_after_end(&self) -> Vec<&'static str> {
        words_after_end(self.reopened > 0, self.undone_by.is_some())
    }
}

/// What a run has used so far, by its summary.
pub fn usage(run: &RunInfo) -> Usage {
    let summary = &run.summary;
    Usage {
        input_tokens: summary.input_tokens,
        output_tokens: summary.output_tokens,
        cost_usd: summary.cost_usd,
        wall_ms: summary.wall_ms,
    }
}

/// The outcome of a run; `running` or `interrupted` if it has none.
pub fn outcome(run: &RunInfo) -> &str {
    run.outcome()
}

/// The open questions of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenQuestions {
    /// The run's id.
    pub run: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The questions.
    pub questions: Vec<Question>,
}

impl OpenQuestions {
    /// The open questions of a run, if it has any.
    pub fn of(report: &RunReport) -> Option<Self> {
        (!report.questions.is_empty()).then(|| Self {
            run: report.run.clone(),
            workflow: report.workflow.clone(),
            questions: report.questions.clone(),
        })
    }
}

/// What a name stands for among the ids of open questions or the paths of steps: the one that it is,
/// else all those of which it is a part. A name is ambiguous if there are several.
pub fn named<'a>(ids: impl Iterator<Item = &'a str>, name: &str) -> Vec<&'a str> {
    let matching: Vec<&str> = ids
        .filter(|id| {
            // The number of a repeated question can be left out, and so can the path before its name.
            let plain = id.rsplit_once('#').map_or(*id, |(plain, _)| plain);
            *id == name
                || plain
                    .strip_suffix(name)
                    .is_some_and(|path| path.is_empty() || path.ends_with(['/', '.']))
                // It can also be named by the state that runs the sub-workflow with the question.
                || plain.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        })
        .collect();
    match matching.iter().find(|id| **id == name) {
        Some(exact) => vec![*exact],
        None => matching,
    }
}

/// The id of the open question that a name stands for.
///
/// # Errors
///
/// No open question has this name, or several have it.
pub fn question_id<'a>(
    open: impl Iterator<Item = &'a str>,
    name: &str,
) -> Result<&'a str, AnswerError> {
    let open: Vec<&str> = open.collect();
    let owned = |ids: &[&str]| -> Vec<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
    match named(open.iter().copied(), name).as_slice() {
        [one] => Ok(*one),
        [] => Err(AnswerError::NotOpen { question: name.to_owned(), open: owned(&open) }),
        several => {
            Err(AnswerError::Ambiguous { question: name.to_owned(), matching: owned(several) })
        }
    }
}

/// The claims of a run, or of a step of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClaimList {
    /// The run's id.
    pub run: String,
    /// The claims, in the order in which they were verified.
    pub claims: Vec<Entry>,
    /// The number of claims by verdict.
    pub summary: Totals,
}

impl ClaimList {
    /// The claims of a run, with their number.
    pub fn new(run: &str, claims: Vec<Entry>) -> Self {
        Self { run: run.to_owned(), summary: ledger::totals(&claims), claims }
    }
}

/// An event of a run as one flat object.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventLine {
    /// The number of the event in the run, from 1 without gaps.
    pub seq: u64,
    /// The time of the event, in milliseconds since 1970.
    pub at: i64,
    /// The kind of the event.
    pub kind: String,
    /// The fields of the kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub fields: Map<String, Value>,
}

impl EventLine {
    /// An event of the journal, whose fields are nested below its kind there.
    pub fn new(stored: &StoredEvent) -> Self {
        let body: Option<Map<String, Value>> = serde_json::from_slice(&stored.body).ok();
        let fields = match body.and_then(|mut body| body.remove(&stored.kind)) {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Self { seq: stored.seq, at: stored.at, kind: stored.kind.clone(), fields }
    }
}
