//! A run of a server: its events, and the run as they tell it.

use super::client::{Client, Problem, segment};
use crate::command::show::Source;
use crate::output;
use anyhow::{Context as _, Result, anyhow, bail};
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{RunReplica, RunReport};
use counterfoil_flow::{Bundle, Event, RunState, Workflow, reload};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The events that are asked for at once.
const PAGE: usize = 1000;
/// The most events of a run. Without a limit, an answer might never end.
const MAX_EVENTS: u64 = 1_000_000;
/// The longest id of a run.
const MAX_ID: usize = 200;

/// An event as the server sends it: one flat object.
pub(super) type Line = Map<String, Value>;

/// A page of events.
#[derive(Deserialize)]
struct EventsPage {
    events: Vec<Line>,
    /// The number of the last event that is recorded.
    last: u64,
}

/// What events do not tell of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Standing {
    /// The id of the run.
    pub(super) run: String,
    outcome: String,
    /// Whether a process drives it.
    pub(super) driven: bool,
    /// The number of its last event.
    #[serde(default)]
    pub(super) seq: u64,
}

impl Standing {
    /// Whether a process that takes it up has something to do.
    pub(super) fn can_go_on(&self) -> bool {
        matches!(self.outcome.as_str(), "running" | "answered" | "interrupted")
    }
}

/// How a run stands, by its id, a prefix of it, or `last`.
pub(super) fn standing(client: &Client, run: &str) -> Result<Standing> {
    let standing: Standing = client.get(&format!("/runs/{}", segment(run)))?;
    checked_id(&standing.run)?;
    Ok(standing)
}

/// The id of a run, which is a part of the commands that are printed.
pub(super) fn checked_id(run: &str) -> Result<&str> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    if run.is_empty() || run.len() > MAX_ID || run.starts_with('-') || !run.chars().all(is_plain) {
        bail!("the server names a run with an id that none has");
    }
    Ok(run)
}

/// A line of JSON for each event of a run.
pub(super) fn print_lines(client: &Client, run: &str) -> Result<()> {
    each_page(client, run, 0, |page| {
        let mut lines = String::new();
        for line in &page {
            lines += &serde_json::to_string(line)?;
            lines.push('\n');
        }
        output::write_json_lines(&lines)
    })?;
    Ok(())
}

/// Visits the events of a run after a number, in pages. Returns the number of the last one.
pub(super) fn each_page(
    client: &Client,
    run: &str,
    mut after: u64,
    mut visit: impl FnMut(Vec<Line>) -> Result<()>,
) -> Result<u64> {
    loop {
        let path = format!("/runs/{}/events?after={after}&limit={PAGE}", segment(run));
        let EventsPage { events, last } = client.get(&path)?;
        if events.is_empty() {
            return Ok(after);
        }
        for event in &events {
            if seq(event)? != after + 1 {
                bail!("the server left out events of the run");
            }
            after += 1;
        }
        visit(events)?;
        if after >= last {
            return Ok(after);
        }
        if after >= MAX_EVENTS {
            bail!("the run has more than {MAX_EVENTS} events; look at it where it is");
        }
    }
}

/// The number of an event.
pub(super) fn seq(line: &Line) -> Result<u64> {
    line.get("seq").and_then(Value::as_u64).context("the server sent an event without a number")
}

/// An event and its time. In a journal its fields are nested below its kind.
pub(super) fn event(mut line: Line) -> Result<(Event, i64)> {
    let number = seq(&line)?;
    let at = line.get("at").and_then(Value::as_i64);
    let Some(Value::String(kind)) = line.shift_remove("kind") else {
        bail!("the server sent an event without a kind")
    };
    let at = at.context("the server sent an event without a time")?;
    for own in ["seq", "at"] {
        line.shift_remove(own);
    }
    let body = Map::from_iter([(kind.clone(), Value::Object(line))]);
    // As from a journal: from text.
    let event = serde_json::from_slice(&serde_json::to_vec(&body)?).map_err(|error| {
        anyhow!(
            "event {number} ('{kind}') cannot be read: {error}; the server may have another version \
             than this program ({})",
            env!("CARGO_PKG_VERSION")
        )
    })?;
    Ok((event, at))
}

/// A run with all its events.
pub(super) struct RemoteRun<'a> {
    client: &'a Client,
    events: Vec<(Event, i64)>,
    replica: RunReplica,
}

impl<'a> RemoteRun<'a> {
    /// The run as it is now.
    pub(super) fn fetch(client: &'a Client, standing: &Standing) -> Result<Self> {
        let (mut events, mut replica) = (Vec::new(), RunReplica::default());
        each_page(client, &standing.run, 0, |page| {
            for line in page {
                let (event, at) = event(line)?;
                replica.apply(&event, at);
                events.push((event, at));
            }
            Ok(())
        })?;
        if replica.run_state().run != standing.run {
            bail!("the server sent the events of another run");
        }
        Ok(Self { client, events, replica })
    }

    pub(super) fn run_state(&self) -> &RunState {
        self.replica.run_state()
    }

    pub(super) fn claims(&self) -> Vec<Entry> {
        self.replica.claims()
    }

    pub(super) fn report(&self, standing: &Standing) -> RunReport {
        report(&self.replica, standing)
    }

    /// The workflow, if the server hands it out.
    fn bundle(&self) -> Result<Option<Vec<u8>>> {
        let path = format!("/runs/{}/bundle", segment(&self.run_state().run));
        match self.client.get_bytes(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Problem>().is_some_and(Problem::is_not_found)
}

/// The report of a run of which the events were read.
pub(super) fn report(replica: &RunReplica, standing: &Standing) -> RunReport {
    replica.report(standing.driven, standing.outcome == "answered")
}

impl Source for RemoteRun<'_> {
    fn each_event(&self, visit: &mut dyn FnMut(&Event, i64)) -> Result<()> {
        for (event, at) in &self.events {
            visit(event, *at);
        }
        Ok(())
    }

    fn workflow(&self) -> Option<Arc<Workflow>> {
        // It only says how results are displayed.
        let bytes = self.bundle().ok()??;
        if Bundle::hash(&bytes) != self.run_state().bundle {
            return None;
        }
        reload(&Bundle::from_bytes(&bytes).ok()?).ok().map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(value: Value) -> Line {
        match value {
            Value::Object(line) => line,
            _ => Map::new(),
        }
    }

    #[test]
    fn an_event_is_read_as_in_the_journal() {
        let sent = line(json!({"seq": 3, "at": 7, "kind": "time-skipped", "ms": 20}));
        let (event, at) = event(sent).unwrap();
        assert_eq!((event, at), (Event::TimeSkipped { ms: 20 }, 7));
    }

    #[test]
    fn an_event_that_is_none_is_an_error() {
        for sent in [
            json!({}),
            json!({"seq": 3, "kind": "time-skipped", "ms": 20}),
            json!({"seq": 3, "at": 7}),
            json!({"seq": 3, "at": 7, "kind": "of-tomorrow"}),
            json!({"seq": -1, "at": 7, "kind": "time-skipped", "ms": 20}),
        ] {
            assert!(event(line(sent)).is_err());
        }
    }

    #[test]
    fn an_id_is_part_of_commands_and_has_nothing_that_a_shell_reads() {
        assert!(checked_id("019a-b.c_D").is_ok());
        for id in ["", "a b", "a;b", "$(x)", "--state", "a\n", "ä", &"a".repeat(300)] {
            assert!(checked_id(id).is_err(), "{id}");
        }
    }
}
