//! The journal: events can be read back, one driver at a time may write, and no fault loses
//! recorded events.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use counterfoil_agents::transcript::{StoredTranscript, TranscriptError, TranscriptSink};
use counterfoil_engine::journal::{
    Batch, Error, Journal, Lease, NewEvent, NewRun, Settings, StoredEvent, Summary,
};
use proptest::prelude::*;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn event(kind: &'static str, body: &str) -> NewEvent {
    NewEvent { at: 1_700_000_000_000, kind: kind.into(), body: body.into() }
}

fn events_batch(bodies: &[&str]) -> Batch {
    Batch { events: bodies.iter().map(|body| event("note", body)).collect(), ..Batch::default() }
}

fn new_run(id: &str) -> NewRun<'_> {
    NewRun { id, workflow: "demo", version: 3, bundle: b"the workflow", at: 1_700_000_000_000 }
}

fn start(journal: &Journal, id: &str) -> Lease {
    journal.create(new_run(id), events_batch(&["first"])).unwrap()
}

fn bodies(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(|event| std::str::from_utf8(&event.body).unwrap()).collect()
}

/// Creates a transcript of a run.
fn transcript(journal: &Journal, run: &str, name: &str, cap: u64) -> Box<dyn TranscriptSink> {
    Box::new(journal.transcripts().create(run, name, cap).unwrap())
}

/// Settings with short timeouts.
fn quick() -> Settings {
    Settings { busy_timeout: Duration::from_millis(50), ..Settings::default() }
}

/// A direct connection to the journal file.
fn raw(folder: &Path) -> Connection {
    Connection::open(folder.join("journal.db")).unwrap()
}

/// Waits for an effect of another thread or process.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < until, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

mod writing;

mod leases;

mod resuming;

mod finding;

mod listing;

mod transcripts;

mod faults;

mod figures;

mod keys;
