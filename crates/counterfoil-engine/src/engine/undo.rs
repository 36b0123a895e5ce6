//! Undoing what a run changed. It is recorded before the first file is written: a process that is
//! killed in between leaves a run that says it was undone, never one that can be reopened without
//! the work of its steps.

use super::Engine;
use crate::clock::wall;
use crate::driver::batch;
use crate::error::Error;
use crate::journal::Lease;
use counterfoil_flow::{DecidedBy, Event, RunState, Undone};
use counterfoil_workspace::workspaces::{self, MergeRecord};
use std::collections::BTreeSet;
use std::path::Path;

/// The most files that the event names.
const MAX_FILES: usize = 100;

impl Engine {
    /// Puts the files back that a run changed in a repository, or some workspaces and attempts of it,
    /// and records that. The run cannot be reopened then.
    ///
    /// # Errors
    ///
    /// There is no such run, it has not ended, another process drives it, its files cannot be read
    /// or written, or the journal cannot.
    pub fn undo(
        &self,
        run: &str,
        workspaces: Option<&[&str]>,
        repo: &Path,
        by: impl Into<DecidedBy>,
    ) -> Result<workspaces::Undone, Error> {
        let run = self.journal.resolve(run)?;
        // While it is held, no other process reopens the run.
        let (lease, run_state) = self.acquire_open_or_ended(&run)?;
        if run_state.ended.is_none() {
            lease.release()?;
            return Err(Error::NotEnded { run });
        }
        let by = by.into();
        let undone = self.workspaces(repo).undo_recorded(&run, workspaces, |records| {
            record_undo(&lease, run_state, records, by)
        })?;
        lease.release()?;
        Ok(undone)
    }
}

fn record_undo(
    lease: &Lease,
    mut run_state: RunState,
    records: &[MergeRecord],
    by: DecidedBy,
) -> Result<(), Error> {
    let known: BTreeSet<&String> =
        run_state.undone.iter().flat_map(|undone| &undone.steps).collect();
    // A process that recorded it was killed, and this one completes what it began.
    if records.iter().all(|record| known.contains(&record.id)) {
        return Ok(());
    }
    let mut steps: Vec<String> = Vec::new();
    for record in records {
        if !steps.contains(&record.id) {
            steps.push(record.id.clone());
        }
    }
    let files: BTreeSet<&String> =
        records.iter().flat_map(|record| &record.files).map(|file| &file.path).collect();
    let total = files.len() as u64;
    let files = files.into_iter().take(MAX_FILES).cloned().collect();
    let DecidedBy { by, from } = by;
    let event = Event::RunUndone(Box::new(Undone { by, from, steps, files, total }));
    let at = wall().max(run_state.last_at);
    run_state.apply(&event, at);
    let mut batch = batch(&[(event, at)], &run_state)?;
    batch.snapshot = Some(serde_json::to_vec(&run_state)?);
    lease.append_blocking(batch)?;
    Ok(())
}
