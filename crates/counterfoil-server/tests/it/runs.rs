//! Runs, made of events as an engine records them.

use counterfoil_engine::journal::{Batch, Journal, Lease, NewEvent, NewRun, Summary};
use counterfoil_flow::{
    AskedQuestion, AttemptOutcome, Budget, Bundle, DECIDE, Ended, Event, Form, Outcome, Reply,
    Started,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// What a new run is.
#[derive(Clone, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) workflow: &'a str,
    pub(crate) bundle: Vec<u8>,
    pub(crate) task: &'a str,
    pub(crate) at: i64,
    pub(crate) budget: Budget,
}

impl Default for Sample<'_> {
    fn default() -> Self {
        Self {
            workflow: "demo",
            bundle: b"{}".to_vec(),
            task: "Fix the test",
            at: now(),
            budget: Budget::default(),
        }
    }
}

/// A run that this process drives.
#[derive(Debug)]
pub(crate) struct Run {
    lease: Lease,
    at: i64,
    pub(crate) summary: Summary,
}

impl Run {
    /// A run with its first event, and its main frame.
    pub(crate) fn start(journal: &Journal, id: &str) -> Self {
        Self::of(journal, id, &Sample::default())
    }

    pub(crate) fn of(journal: &Journal, id: &str, sample: &Sample<'_>) -> Self {
        let Sample { workflow, bundle, task, at, budget } = sample;
        let inputs: Map<String, Value> = [("task".to_owned(), json!(task))].into_iter().collect();
        let started = Event::RunStarted(Box::new(Started {
            run: id.to_owned(),
            workflow: (*workflow).to_owned(),
            version: 1,
            bundle: Bundle::hash(bundle),
            decide: DECIDE,
            inputs,
            agents: BTreeMap::new(),
            budget: budget.clone(),
            repo: "/repo".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let summary = Summary { state: "one".to_owned(), ..Summary::default() };
        let new = NewRun { id, workflow, version: 1, bundle, at: *at };
        let batch = Batch {
            events: vec![stored(&started, *at), stored(&opened("one"), *at)],
            summary: Some(summary.clone()),
            ..Batch::default()
        };
        let lease = journal.create(new, batch).unwrap();
        Self { lease, at: *at, summary }
    }

    /// Records events.
    pub(crate) fn add(&mut self, events: &[Event]) -> &mut Self {
        self.at += 1;
        let batch = Batch {
            events: events.iter().map(|event| stored(event, self.at)).collect(),
            summary: Some(self.summary.clone()),
            ..Batch::default()
        };
        self.lease.append_blocking(batch).unwrap();
        self
    }

    /// Lets time pass before the next event.
    pub(crate) fn later(&mut self, ms: i64) -> &mut Self {
        self.at += ms;
        self
    }

    /// Ends the run.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.summary.outcome = Some(outcome.name().to_owned());
        self.summary.questions = 0;
        self.add(&[Event::RunEnded {
            outcome,
            cause: None,
            reason: self.summary.reason.clone(),
            state: "done".to_owned(),
            exit: None,
        }]);
        self.rest();
    }

    /// Ends the work of this process.
    pub(crate) fn rest(self) {
        self.lease.release().unwrap();
    }
}

fn stored(event: &Event, at: i64) -> NewEvent {
    NewEvent { at, kind: event.kind().into(), body: serde_json::to_vec(event).unwrap() }
}

pub(crate) fn opened(state: &str) -> Event {
    Event::FrameOpened {
        frame: String::new(),
        parent: None,
        machine: String::new(),
        item: None,
        state: state.to_owned(),
        inputs: Map::new(),
        variables: Map::new(),
        counts: BTreeMap::new(),
        iteration: None,
    }
}

/// The first attempt at a path.
pub(crate) fn attempt(path: &[&str]) -> Event {
    Event::AttemptStarted {
        attempt: format!("{}#1", path.join("/")),
        frame: String::new(),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        agent: Some("coder".to_owned()),
        n: 1,
        contract: None,
        builtin: None,
    }
}

/// The end of the first attempt at a path, with a reply.
pub(crate) fn replied(path: &[&str], reply: Reply) -> Event {
    let mut ended = Ended::new(format!("{}#1", path.join("/")), AttemptOutcome::Accepted);
    ended.value = Some(json!({"answer": "it works"}));
    ended.reply = Some(reply);
    Event::AttemptEnded(Box::new(ended))
}

/// A reply whose text is in a file of its own.
pub(crate) fn reply(transcript: &str, text: &str) -> Reply {
    Reply {
        transcript: transcript.to_owned(),
        sha256: hex::encode(Sha256::digest("")),
        status: "accepted".to_owned(),
        text: Some(text.to_owned()),
        ..Reply::default()
    }
}

/// A question for a yes or a no.
pub(crate) fn question(id: &str, text: &str) -> Event {
    let form = Form::Choices(vec!["yes".to_owned(), "no".to_owned()]);
    Event::Asked { frame: String::new(), questions: vec![asked(id, text, form)] }
}

pub(crate) fn asked(id: &str, text: &str, form: Form) -> AskedQuestion {
    AskedQuestion {
        id: id.to_owned(),
        name: "ok".to_owned(),
        question: text.to_owned(),
        form,
        optional: false,
    }
}

/// A state of the run that goes on. It changes nothing but the number of its events.
pub(crate) fn tick() -> Event {
    Event::TimeSkipped { ms: 0 }
}

/// The run `a` of a state folder, with an attempt that replied and an open question `ok`.
pub(crate) fn asking(state: &Path) -> (Journal, Run) {
    let journal = Journal::open(state).unwrap();
    let mut run = Run::start(&journal, "a");
    write(state, "transcripts/a/one.text", "0123456789");
    write(state, "transcripts/a/one.prompt", "What are the digits?");
    let said = reply("transcripts/a/one", "transcripts/a/one.text");
    run.add(&[attempt(&["Work"]), replied(&["Work"], said)]);
    ask(&mut run, "ok", "May it go out?");
    (journal, run)
}

/// Lets a run ask a question.
pub(crate) fn ask(run: &mut Run, id: &str, text: &str) {
    run.summary.outcome = Some("waiting".to_owned());
    run.summary.questions = 1;
    run.add(&[question(id, text)]);
}

/// Writes a file of a state folder.
pub(crate) fn write(state: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = state.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A batch with one event, of another holder of the right to drive a run.
pub(crate) fn batch(event: &Event) -> Batch {
    Batch { events: vec![stored(event, now())], ..Batch::default() }
}
