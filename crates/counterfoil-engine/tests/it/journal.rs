//! The journal: what is written can be read, one driver at a time, and no fault loses what was
//! journaled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use counterfoil_engine::journal::{
    Batch, Error, Event, Journal, Lease, NewRun, Row, Settings, Stored, Summary, Transcript,
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

fn row(kind: &'static str, body: &str) -> Row {
    Row { at: 1_700_000_000_000, kind: kind.into(), body: body.into() }
}

fn rows(bodies: &[&str]) -> Batch {
    Batch { rows: bodies.iter().map(|body| row("note", body)).collect(), ..Batch::default() }
}

fn new_run(id: &str) -> NewRun<'_> {
    NewRun { id, workflow: "demo", version: 3, bundle: b"the workflow", at: 1_700_000_000_000 }
}

fn start(journal: &Journal, id: &str) -> Lease {
    journal.create(new_run(id), rows(&["first"])).unwrap()
}

fn bodies(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| std::str::from_utf8(&event.body).unwrap()).collect()
}

/// Settings that do not make a test wait.
fn quick() -> Settings {
    Settings { busy_timeout: Duration::from_millis(50), ..Settings::default() }
}

/// The file behind the journal's back.
fn raw(folder: &Path) -> Connection {
    Connection::open(folder.join("journal.db")).unwrap()
}

/// Waits for something another thread or process does.
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

mod transcripts;

mod faults;

mod figures;
