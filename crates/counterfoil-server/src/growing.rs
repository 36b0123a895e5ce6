//! Runs that are driven, as far as they were read. When one has gone on, only its new events are read.

use counterfoil_engine::{Engine, Error};
use counterfoil_flow::Event;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The most runs that are kept.
const MAX_RUNS: usize = 64;
/// The most events of which something is kept, over all runs but the one that was read last.
const MAX_EVENTS: u64 = 300_000;

/// Collects something of a run from its events.
pub(crate) trait Collector: Default {
    /// Whether it needs the events of a kind.
    fn wants(kind: &str) -> bool;

    /// Adds the next event.
    fn on_event(&mut self, event: &Event, at: i64);
}

/// A run: its state folder and its id.
type RunKey = (PathBuf, String);

/// What was collected of the runs that go on, those that were read last in front.
#[derive(Debug)]
pub(crate) struct GrowingRuns<T> {
    kept: Mutex<VecDeque<Kept<T>>>,
}

#[derive(Debug)]
struct Kept<T> {
    key: RunKey,
    seq: u64,
    run: Arc<Mutex<Growing<T>>>,
}

/// A run as far as it was read.
#[derive(Debug)]
struct Growing<T> {
    /// That of the journal which was read: another one may have its place by now.
    engine: Engine,
    run: String,
    seq: u64,
    collected: T,
}

impl<T> Default for GrowingRuns<T> {
    fn default() -> Self {
        Self { kept: Mutex::default() }
    }
}

impl<T: Collector> GrowingRuns<T> {
    /// Reads a run and looks at what was collected. It is kept if the run `goes_on`.
    pub(crate) fn read<R>(
        &self,
        engine: &Engine,
        run: &str,
        goes_on: bool,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Error> {
        let key = (engine.journal().folder().to_owned(), run.to_owned());
        if let Some(known) = self.find(&key) {
            let mut growing = known.lock().unwrap_or_else(PoisonError::into_inner);
            if growing.read_on().is_ok() {
                let (looked, seq) = (look(&growing.collected), growing.seq);
                drop(growing);
                self.keep(Kept { key, seq, run: known });
                return Ok(looked);
            }
            // Reading it from the beginning tells what is wrong, if it is not that the journal was
            // replaced.
            self.forget(&key);
        }
        let (engine, run) = (engine.clone(), run.to_owned());
        let mut growing = Growing { engine, run, seq: 0, collected: T::default() };
        growing.read_on()?;
        let looked = look(&growing.collected);
        if goes_on {
            let (seq, run) = (growing.seq, Arc::new(Mutex::new(growing)));
            self.keep(Kept { key, seq, run });
        }
        Ok(looked)
    }

    fn find(&self, key: &RunKey) -> Option<Arc<Mutex<Growing<T>>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.key == *key).map(|kept| Arc::clone(&kept.run))
    }

    fn forget(&self, key: &RunKey) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.key != *key);
    }

    fn keep(&self, run: Kept<T>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.key != run.key);
        kept.push_front(run);
        kept.truncate(MAX_RUNS);
        let mut events = 0;
        let mut is_first = true;
        kept.retain(|run| {
            events += run.seq;
            std::mem::take(&mut is_first) || events <= MAX_EVENTS
        });
    }
}

impl<T: Collector> Growing<T> {
    fn read_on(&mut self) -> Result<(), Error> {
        let Self { engine, run, seq, collected } = self;
        *seq = engine.read_events(run, *seq + 1, T::wants, |event, at| {
            collected.on_event(&event, at);
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_engine::journal::{Batch, Journal, Lease, NewEvent, NewRun};

    /// The numbers of the events, and how often it began.
    #[derive(Debug, Default)]
    struct Times(Vec<i64>);

    impl Collector for Times {
        fn wants(kind: &str) -> bool {
            kind == "attempt-lost"
        }

        fn on_event(&mut self, _: &Event, at: i64) {
            self.0.push(at);
        }
    }

    fn batch(at: i64) -> Batch {
        let body = br#"{"attempt-lost":{"attempt":"a"}}"#.to_vec();
        let event = NewEvent { at, kind: "attempt-lost".into(), body };
        Batch { events: vec![event], ..Batch::default() }
    }

    fn create(journal: &Journal, run: &str, at: i64) -> Lease {
        let new = NewRun { id: run, workflow: "flow", version: 1, bundle: b"{}", at };
        journal.create(new, batch(at)).unwrap()
    }

    fn times(runs: &GrowingRuns<Times>, engine: &Engine, run: &str) -> Vec<i64> {
        runs.read(engine, run, true, |times| times.0.clone()).unwrap()
    }

    #[test]
    fn only_new_events_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lease = create(&journal, "a", 1);
        let engine = Engine::open_to_read(folder.path(), None).unwrap();
        let runs = GrowingRuns::default();
        assert_eq!(times(&runs, &engine, "a"), [1]);
        // An event that was read is not read again.
        let file = rusqlite::Connection::open(folder.path().join("journal.db")).unwrap();
        file.execute("UPDATE events SET at = 7", ()).unwrap();
        lease.append_blocking(batch(2)).unwrap();
        assert_eq!(times(&runs, &engine, "a"), [1, 2]);
        assert_eq!(times(&runs, &engine, "a"), [1, 2]);
        assert_eq!(runs.kept.lock().unwrap()[0].seq, 2);
    }

    #[test]
    fn what_is_damaged_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lease = create(&journal, "a", 1);
        let engine = Engine::open_to_read(folder.path(), None).unwrap();
        let runs = GrowingRuns::default();
        assert_eq!(times(&runs, &engine, "a"), [1]);
        lease.append_blocking(batch(2)).unwrap();
        let file = rusqlite::Connection::open(folder.path().join("journal.db")).unwrap();
        file.execute("UPDATE events SET at = 7 WHERE seq = 2", ()).unwrap();
        assert!(runs.read(&engine, "a", true, |_: &Times| ()).is_err());
        assert!(runs.kept.lock().unwrap().is_empty());
    }

    #[test]
    fn a_run_that_rests_is_not_kept_and_memory_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let names: Vec<String> = (0..MAX_RUNS + 2).map(|at| format!("run-{at:03}")).collect();
        let _leases: Vec<Lease> = names.iter().map(|name| create(&journal, name, 1)).collect();
        let engine = Engine::open_to_read(folder.path(), None).unwrap();
        let runs = GrowingRuns::<Times>::default();
        runs.read(&engine, &names[0], false, |_| ()).unwrap();
        assert!(runs.kept.lock().unwrap().is_empty());
        for name in &names {
            times(&runs, &engine, name);
        }
        assert_eq!(runs.kept.lock().unwrap().len(), MAX_RUNS);
        runs.kept.lock().unwrap()[0].seq = MAX_EVENTS;
        runs.read(&engine, &names[0], true, |_| ()).unwrap();
        assert_eq!(runs.kept.lock().unwrap().len(), 1);
    }
}
