//! Journals with a key: what another program alters, cuts off or replaces is noticed, although it
//! knows the format and can compute every digest that needs no key.

use super::*;
use counterfoil_engine::journal::{Notice, RunFilter, RunGroup, RunOrder};

/// A state folder and a folder for keys.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn keys(&self) -> PathBuf {
        self.root.path().join("keys")
    }

    fn settings(&self) -> Settings {
        Settings { keys: Some(self.keys()), ..Settings::default() }
    }

    fn open(&self) -> Result<Journal, Error> {
        Journal::open_with(&self.state(), self.settings())
    }

    fn read(&self) -> Result<Journal, Error> {
        Journal::open_to_read_with(&self.state(), &self.settings())
    }

    /// A journal with a run of five events, closed.
    fn with_run(self) -> Self {
        let journal = self.open().unwrap();
        assert_eq!(journal.notices(), []);
        let lease = start(&journal, "run-1");
        let summary = Summary { outcome: Some("failed".to_owned()), ..Summary::default() };
        let batch = events_batch(&["two", "three", "four", "five"]);
        let batch = Batch { summary: Some(summary), snapshot: Some(b"state".to_vec()), ..batch };
        lease.append_blocking(batch).unwrap();
        drop((lease, journal));
        self
    }

    /// Alters the journal with SQL, as another program would.
    fn alter(&self, sql: &str) {
        raw(&self.state()).execute_batch(sql).unwrap();
    }

    /// The only folder of a key.
    fn key_folder(&self) -> PathBuf {
        let folders = fs::read_dir(self.keys()).unwrap().map(|entry| entry.unwrap().path());
        let found: Vec<PathBuf> = folders.filter(|path| !path.ends_with("folders")).collect();
        let [one] = found.as_slice() else { panic!("{found:?}") };
        one.clone()
    }

    /// Copies the journal and its log aside, and puts the copy back.
    fn save(&self) -> TempDir {
        let saved = TempDir::new().unwrap();
        copy_journal(&self.state(), saved.path());
        saved
    }

    fn put_back(&self, saved: &TempDir) {
        for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
            let _ = fs::remove_file(self.state().join(name));
        }
        copy_journal(saved.path(), &self.state());
    }
}

fn copy_journal(from: &Path, to: &Path) {
    for name in ["journal.db", "journal.db-wal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Replaces the chain of a run by one whose digests are computed without a key.
const WITHOUT_KEY: &str = "UPDATE runs SET keyed = 0, code = NULL;";

#[test]
fn a_run_is_read_back_and_continued_with_its_key() {
    let place = Place::new().with_run();
    let journal = place.open().unwrap();
    assert_eq!(journal.verify("run-1").unwrap(), 5);
    let (lease, acquired) = journal.acquire("run-1").unwrap();
    assert_eq!(acquired.snapshot.unwrap().body, b"state");
    assert_eq!(lease.append_blocking(events_batch(&["six"])).unwrap(), 6);
    drop((lease, journal));
    assert_eq!(place.read().unwrap().verify("run-1").unwrap(), 6);
    assert!(!place.read().unwrap().run("run-1").unwrap().altered);
}

#[test]
fn the_key_is_for_its_owner_only_and_not_in_the_state_folder() {
    let place = Place::new().with_run();
    let key = place.key_folder();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.keys()), 0o700);
    assert_eq!(mode(&key), 0o700);
    for name in ["key.json", "heads"] {
        assert_eq!(mode(&key.join(name)), 0o600, "{name}");
    }
}

#[test]
fn an_altered_event_is_found_whatever_is_computed_anew() {
    for sql in [
        "UPDATE events SET body = x'ff' WHERE seq = 3",
        "UPDATE events SET at = 7 WHERE seq = 3",
        "DELETE FROM events WHERE seq = 3",
        "INSERT INTO events SELECT run, 6, at, kind, body, digest FROM events WHERE seq = 5",
        "DELETE FROM events WHERE seq = 5; UPDATE runs SET next_seq = 5, digest = (SELECT digest FROM events WHERE seq = 4)",
        WITHOUT_KEY,
    ] {
        let place = Place::new().with_run();
        place.alter(sql);
        let read = place.read().unwrap();
        let error = read.verify("run-1").unwrap_err();
        assert!(matches!(error, Error::Broken { .. } | Error::Behind { .. }), "{sql}: {error}");
    }
}

/// The same digests as those of a journal without a key, for the whole chain: the run then differs
/// from a genuine one without a key in nothing but its number.
#[test]
fn a_run_that_is_written_without_the_key_is_refused() {
    let place = Place::new().with_run();
    let other = TempDir::new().unwrap();
    let forged = Journal::open(other.path()).unwrap();
    drop(start(&forged, "run-2"));
    drop(forged);
    place.alter(&format!(
        "ATTACH '{}' AS forged;
         INSERT INTO runs SELECT 2, id, workflow, version, bundle, created_at, updated_at, 'done',
             cause, state, reason, iterations, input_tokens, output_tokens, cost_usd, wall_ms,
             questions, next_seq, digest, epoch, holder, pid, started, boot, namespace, since,
             heartbeat, 0, NULL FROM forged.runs;
         INSERT INTO events SELECT 2, seq, at, kind, body, digest FROM forged.events;",
        other.path().join("journal.db").display()
    ));
    let journal = place.read().unwrap();
    let error = journal.verify("run-2").unwrap_err().to_string();
    assert!(error.contains("was not written with the key"), "{error}");
    assert_eq!(
        journal.run("run-2").unwrap_err().to_string().split(';').next().unwrap(),
        "run run-2 was altered by another program"
    );
    let runs = journal.runs(None).unwrap();
    let altered: Vec<_> = runs.iter().map(|run| (run.id.as_str(), run.altered)).collect();
    assert_eq!(altered, [("run-2", true), ("run-1", false)]);
}

#[test]
fn an_altered_row_of_a_run_is_found() {
    for column in
        ["outcome = 'done'", "reason = 'all is well'", "workflow = 'other'", "cost_usd = 0.5"]
    {
        let place = Place::new().with_run();
        place.alter(&format!("UPDATE runs SET {column}"));
        let journal = place.read().unwrap();
        assert!(journal.runs(None).unwrap()[0].altered, "{column}");
        assert!(matches!(journal.run("run-1"), Err(Error::Altered { .. })), "{column}");
        drop(journal);
        let journal = place.open().unwrap();
        assert!(matches!(journal.acquire("run-1"), Err(Error::Altered { .. })), "{column}");
    }
}

#[test]
fn an_altered_run_has_no_other_outcome_and_stays_in_its_group() {
    let place = Place::new().with_run();
    place.alter("UPDATE runs SET reason = 'all is well'");
    let journal = place.read().unwrap();
    let listed = |group, outcomes: &[&str]| {
        let outcomes = outcomes.iter().map(|&outcome| outcome.to_owned()).collect();
        let filter = RunFilter { group, outcomes, ..RunFilter::default() };
        let page = journal.runs_page(&filter, RunOrder::default(), None, 10).unwrap();
        assert!(page.runs.iter().all(|run| run.altered && run.outcome() == "altered"));
        page.runs.len()
    };
    assert_eq!(listed(RunGroup::Failed, &[]), 1);
    assert_eq!(listed(RunGroup::All, &["altered"]), 1);
    assert_eq!(listed(RunGroup::All, &["failed"]), 0);
    assert_eq!(journal.run_counts().unwrap().failed, 1);
}

#[test]
fn an_altered_snapshot_is_not_used() {
    let place = Place::new().with_run();
    place.alter("UPDATE snapshots SET body = x'ff'");
    let (_lease, acquired) = place.open().unwrap().acquire("run-1").unwrap();
    assert_eq!(acquired.snapshot, None);
}

#[test]
fn a_message_that_another_program_wrote_is_refused() {
    let place = Place::new().with_run();
    let journal = place.open().unwrap();
    let (lease, _) = journal.acquire("run-1").unwrap();
    journal.send_message("run-1", "answer", b"yes", 7).unwrap();
    let [message] = lease.messages().unwrap().try_into().unwrap();
    assert_eq!((message.kind.as_str(), message.body.as_slice()), ("answer", &b"yes"[..]));
    for sql in [
        "INSERT INTO inbox (run, at, kind, body) VALUES (1, 7, 'answer', x'796573')",
        "INSERT INTO inbox (run, at, kind, body, code) SELECT 1, at, kind, body, code FROM inbox",
        "UPDATE inbox SET body = x'6e6f'",
    ] {
        place.alter(sql);
        let error = lease.messages().unwrap_err();
        assert!(matches!(error, Error::Altered { .. }), "{sql}: {error}");
        place.alter("DELETE FROM inbox WHERE id > 1");
    }
}

#[test]
fn a_log_that_is_cut_off_is_noticed() {
    let place = Place::new();
    let journal = place.open().unwrap();
    let lease = start(&journal, "run-1");
    lease.append_blocking(events_batch(&["two"])).unwrap();
    // What a process that is killed leaves: the events are in the log.
    let crashed = place.save();
    lease.append_blocking(events_batch(&["three"])).unwrap();
    let whole = place.save();
    drop((lease, journal));

    place.put_back(&whole);
    assert_eq!(place.read().unwrap().verify("run-1").unwrap(), 3);
    for cut in ["gone", "shorter", "older"] {
        place.put_back(&whole);
        let log = place.state().join("journal.db-wal");
        match cut {
            "gone" => fs::remove_file(&log).unwrap(),
            "shorter" => {
                let length = fs::metadata(&log).unwrap().len();
                fs::File::options().write(true).open(&log).unwrap().set_len(length - 1).unwrap();
            }
            _ => place.put_back(&crashed),
        }
        // Nothing is left of the journal without its log.
        let error = match place.open() {
            Err(error) => error,
            Ok(journal) => journal.verify("run-1").unwrap_err(),
        };
        assert!(matches!(error, Error::Behind { .. } | Error::Replaced { .. }), "{cut}: {error}");
    }
}

#[test]
fn an_older_copy_of_the_journal_is_noticed() {
    let place = Place::new().with_run();
    let older = place.save();
    let journal = place.open().unwrap();
    let lease = start(&journal, "run-2");
    drop((lease, journal));
    place.put_back(&older);
    for error in [place.open().unwrap_err(), place.read().unwrap_err()] {
        assert_eq!(
            error.to_string().split(':').next().unwrap(),
            "the journal ends with run number 1, although run number 2 was recorded"
        );
    }
    // The way out that the message names.
    fs::remove_file(place.key_folder().join("heads")).unwrap();
    assert_eq!(place.open().unwrap().verify("run-1").unwrap(), 5);
}

#[test]
fn another_journal_in_the_same_place_is_refused() {
    let place = Place::new().with_run();
    let other = Place::new().with_run();
    let without_key = TempDir::new().unwrap();
    drop(start(&Journal::open(without_key.path()).unwrap(), "run-1"));
    let saved = place.save();
    for from in [other.state(), without_key.path().to_owned()] {
        place.put_back(&TempDir::new().unwrap());
        copy_journal(&from, &place.state());
        for error in [place.open().unwrap_err(), place.read().unwrap_err()] {
            assert!(matches!(error, Error::Replaced { .. }), "{error}");
        }
    }
    place.put_back(&saved);
    assert_eq!(place.open().unwrap().verify("run-1").unwrap(), 5);
}

#[test]
fn a_journal_that_is_gone_is_said_once() {
    let place = Place::new().with_run();
    fs::remove_dir_all(place.state()).unwrap();
    let error = counterfoil_engine::journal::refuse_lost(&place.state(), Some(&place.keys()));
    assert!(matches!(error, Err(Error::Lost { .. })), "{error:?}");
    let journal = place.open().unwrap();
    let path = place.state().join("journal.db");
    assert_eq!(journal.notices(), [Notice::LostBefore { path, runs: 1 }]);
    drop(start(&journal, "run-2"));
    drop(journal);
    assert_eq!(place.open().unwrap().notices(), []);
    place.key_folder();
}

#[test]
fn without_its_key_a_journal_is_read_unchecked_and_not_continued() {
    let place = Place::new().with_run();
    fs::remove_dir_all(place.keys()).unwrap();
    let journal = place.read().unwrap();
    assert!(matches!(journal.notices(), [Notice::MissingKey { .. }]), "{:?}", journal.notices());
    assert_eq!(journal.events("run-1", 1).unwrap().len(), 5);
    assert!(matches!(place.open(), Err(Error::Key { .. })));
    // Without a folder for keys it is the same, and nobody expects a key.
    assert_eq!(Journal::open_to_read(&place.state()).unwrap().notices(), []);
    assert!(matches!(Journal::open(&place.state()), Err(Error::Key { .. })));
}

#[test]
fn a_state_folder_can_be_moved_and_a_copy_of_it_only_read() {
    let place = Place::new().with_run();
    let moved = place.root.path().join("moved");
    fs::rename(place.state(), &moved).unwrap();
    let journal = Journal::open_with(&moved, place.settings()).unwrap();
    assert_eq!(journal.verify("run-1").unwrap(), 5);
    drop(journal);

    let copy = place.root.path().join("copy");
    fs::create_dir(&copy).unwrap();
    copy_journal(&moved, &copy);
    let read = Journal::open_to_read_with(&copy, &place.settings()).unwrap();
    assert_eq!(read.verify("run-1").unwrap(), 5);
    let error = Journal::open_with(&copy, place.settings()).unwrap_err();
    assert!(matches!(error, Error::Copy { .. }), "{error}");
}

#[test]
fn if_no_key_can_be_stored_that_is_said() {
    let place = Place::new();
    fs::write(place.keys(), "a file").unwrap();
    let journal = place.open().unwrap();
    assert!(matches!(journal.notices(), [Notice::NoKey { .. }]), "{:?}", journal.notices());
    drop(start(&journal, "run-1"));
    drop(journal);
    // With a folder for keys, the next runs have one, and this run stays readable.
    fs::remove_file(place.keys()).unwrap();
    let journal = place.open().unwrap();
    assert_eq!(journal.notices(), []);
    drop(start(&journal, "run-2"));
    assert_eq!(journal.verify("run-1").unwrap(), 1);
    assert_eq!(journal.verify("run-2").unwrap(), 1);
    drop(journal);
    place.alter("UPDATE runs SET keyed = 0 WHERE id = 'run-2'");
    assert!(place.read().unwrap().verify("run-2").is_err());
}

/// A journal of the first version has no columns for keys.
#[test]
fn a_journal_of_the_first_version_is_read_and_gets_a_key() {
    let place = Place::new();
    let journal = Journal::open(&place.state()).unwrap();
    let lease = start(&journal, "run-1");
    drop((lease, journal));
    place.alter(
        "DROP TABLE journal;
         ALTER TABLE runs DROP COLUMN keyed;
         ALTER TABLE runs DROP COLUMN code;
         ALTER TABLE inbox DROP COLUMN code;
         INSERT INTO inbox (run, at, kind, body) VALUES (1, 7, 'answer', x'796573');
         PRAGMA user_version = 1;",
    );
    let read = place.read().unwrap();
    assert_eq!(read.verify("run-1").unwrap(), 1);
    assert_eq!(read.run("run-1").unwrap().workflow, "demo");
    drop(read);

    let journal = place.open().unwrap();
    let (lease, _) = journal.acquire("run-1").unwrap();
    assert_eq!(lease.messages().unwrap().len(), 1, "a message from before is genuine");
    assert_eq!(lease.append_blocking(events_batch(&["two"])).unwrap(), 2);
    assert_eq!(journal.verify("run-1").unwrap(), 2);
    drop(start(&journal, "run-2"));
    drop((lease, journal));
    assert_eq!(place.read().unwrap().verify("run-2").unwrap(), 1);
}

/// Processes that append to the same journal never disturb a reader: positions are written after the
/// events they are about.
#[test]
fn readers_see_no_run_behind_while_it_grows() {
    let place = Place::new();
    let journal = place.open().unwrap();
    let lease = start(&journal, "run-1");
    let reader = place.read().unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..200 {
                lease.append_blocking(events_batch(&["more"])).unwrap();
            }
        });
        while reader.verify("run-1").unwrap() < 201 {
            reader.run("run-1").unwrap();
        }
    });
}
