//! Faults: full disks, read-only folders, damaged files.

use super::*;
use counterfoil_workspace::NoRoom;

/// A temporary file system, unmounted after the test. `None` if mounting is not allowed.
struct Mount(TempDir);

impl Mount {
    fn new(size: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(folder))
    }

    fn make_read_only(&self) {
        let done =
            Command::new("mount").args(["-o", "remount,ro"]).arg(self.0.path()).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// A state folder that is prepared by `fill` and then read-only. Root ignores permissions, so it
/// needs a mount.
fn read_only(fill: impl FnOnce(&Path), test: impl FnOnce(&Path)) {
    if let Some(mount) = Mount::new("4m") {
        let state = mount.0.path().join("state");
        fs::create_dir(&state).unwrap();
        fill(&state);
        mount.make_read_only();
        test(&state);
    } else {
        let folder = TempDir::new().unwrap();
        fill(folder.path());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
        if fs::write(folder.path().join("probe"), "").is_ok() {
            println!("skipped: neither mounting nor taking away permissions works here");
        } else {
            test(folder.path());
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A journal of 2000 events, closed.
fn long_run(folder: &Path) -> PathBuf {
    let journal = Journal::open(folder).unwrap();
    let lease = start(&journal, "run-1");
    let events =
        (2..=2000).map(|n| event("note", &format!("event {n:05} {}", "x".repeat(200)))).collect();
    lease.append_blocking(Batch { events, ..Batch::default() }).unwrap();
    folder.join("journal.db")
}

/// The number of visited events, and the result of the visit.
fn visit(journal: &Journal) -> (u64, Result<u64, Error>) {
    let mut shown = 0;
    let end = journal.visit("run-1", 1, |_| {
        shown += 1;
        ControlFlow::Continue(())
    });
    (shown, end)
}

#[test]
fn a_folder_that_is_a_file_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    fs::write(&file, "mine").unwrap();
    let error = Journal::open(&file).unwrap_err();
    assert_eq!(error, Error::Folder { path: file.clone(), why: "it is a file".into() });
    assert!(matches!(Journal::open(&file.join("below")), Err(Error::Folder { .. })));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn a_folder_that_cannot_be_written_can_be_read() {
    let fill = |state: &Path| {
        let journal = Journal::open(state).unwrap();
        start(&journal, "run-1").release().unwrap();
    };
    read_only(fill, |state| {
        assert!(matches!(Journal::open(state), Err(Error::ReadOnly { .. })));
        let journal = Journal::open_to_read(state).unwrap();
        assert_eq!(bodies(&journal.events("run-1", 1).unwrap()), ["first"]);
        assert_eq!(journal.runs(None).unwrap().len(), 1);
        assert!(matches!(journal.acquire("run-1"), Err(Error::ReadOnly { .. })));
        assert!(matches!(journal.send_message("run-1", "x", b"", 0), Err(Error::ReadOnly { .. })));
    });
    read_only(
        |_| {},
        |state| {
            assert!(matches!(Journal::open(state), Err(Error::ReadOnly { .. })));
            assert!(matches!(Journal::open(&state.join("new")), Err(Error::ReadOnly { .. })));
            assert!(matches!(Journal::open_to_read(state), Err(Error::Missing { .. })));
        },
    );
}

#[test]
fn a_log_that_was_not_carried_over_is_never_read_past() {
    // A copy of an open journal, whose events are all in the log.
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let _lease = start(&journal, "run-1");
    let copy = |state: &Path| {
        for name in ["journal.db", "journal.db-wal"] {
            fs::copy(folder.path().join(name), state.join(name)).unwrap();
        }
    };
    read_only(copy, |state| match Journal::open_to_read(state) {
        Ok(journal) => assert_eq!(bodies(&journal.events("run-1", 1).unwrap()), ["first"]),
        Err(error) => assert_eq!(error, Error::Log { path: state.join("journal.db") }),
    });
}

#[test]
fn reading_goes_on_beside_the_writer() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let lease = start(&journal, "run-1");
    let reader = Journal::open_to_read(folder.path()).unwrap();
    lease.append_blocking(events_batch(&["second"])).unwrap();
    assert_eq!(bodies(&reader.events("run-1", 1).unwrap()), ["first", "second"]);
    assert!(matches!(
        reader.create(new_run("run-2"), Batch::default()),
        Err(Error::ReadOnly { .. })
    ));
}

#[test]
fn a_full_disk_fails_the_append_and_loses_nothing() {
    let Some(mount) = Mount::new("1m") else {
        println!("skipped: mounting is not allowed here; see the next test");
        return;
    };
    let state = mount.0.path().join("state");
    let journal = Journal::open(&state).unwrap();
    let lease = start(&journal, "run-1");
    let filler = mount.0.path().join("filler");
    let big = "x".repeat(20_000);
    assert!(fs::write(&filler, vec![0; 2 << 20]).is_err(), "the disk is full now");
    let mut kept = 1;
    let error = (0..100)
        .find_map(|_| lease.append_blocking(events_batch(&[&big])).map(|last| kept = last).err())
        .expect("it fails in the end");
    assert_eq!(error, Error::Full { path: state.join("journal.db"), why: NoRoom::Disk });
    assert_eq!(journal.verify("run-1").unwrap(), kept);
    let mut transcript = transcript(&journal, "run-1", "t", 1 << 30);
    assert!(matches!(transcript.write(big.as_bytes()), Err(TranscriptError::Full { .. })));

    fs::remove_file(&filler).unwrap();
    assert_eq!(lease.append_blocking(events_batch(&[&big])).unwrap(), kept + 1);
    transcript.write(b"goes on").unwrap();
    let stored = transcript.finish().unwrap();
    assert!(journal.transcripts().read(&stored).unwrap().ends_with(b"goes on"));
    drop((lease, journal));
    assert_eq!(Journal::open(&state).unwrap().verify("run-1").unwrap(), kept + 1);
}

#[test]
fn what_does_not_fit_fails_alone_and_the_rest_goes_on() {
    let folder = TempDir::new().unwrap();
    let settings = Settings { page_limit: Some(60), ..Settings::default() };
    let journal = Journal::open_with(folder.path(), settings).unwrap();
    let lease = start(&journal, "run-1");
    let huge = "x".repeat(1 << 20);
    // A lock delays the writer, so that all appends are one group.
    let blocker = raw(folder.path());
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answers = runtime.block_on(async {
        let unlock = async { blocker.execute_batch("COMMIT").unwrap() };
        let small = || lease.append(events_batch(&["small"]));
        tokio::join!(small(), small(), lease.append(events_batch(&[&huge])), small(), unlock)
    });
    let full = Err(Error::Full { path: folder.path().join("journal.db"), why: NoRoom::Disk });
    assert_eq!(answers, (Ok(2), Ok(3), full, Ok(4), ()));
    assert_eq!(journal.verify("run-1").unwrap(), 4);
    drop((lease, journal));
    let journal = Journal::open(folder.path()).unwrap();
    let (lease, _) = journal.acquire("run-1").unwrap();
    assert_eq!(lease.append_blocking(events_batch(&[&huge])).unwrap(), 5, "there is room again");
}

#[test]
fn a_changed_event_is_found_and_the_ones_before_it_can_be_read() {
    let folder = TempDir::new().unwrap();
    let path = long_run(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(11).position(|window| window == b"event 01234").unwrap();
    bytes[at + 50] ^= 1;
    fs::write(&path, bytes).unwrap();

    let journal = Journal::open(folder.path()).unwrap();
    let (shown, end) = visit(&journal);
    assert_eq!(shown, 1233);
    let error = end.unwrap_err();
    assert!(matches!(&error, Error::Broken { run, seq: 1234, .. } if run == "run-1"), "{error}");
    assert!(error.to_string().contains("all events before it are intact"), "{error}");
    assert!(journal.events("run-1", 1).is_err());
    assert_eq!(journal.events("run-1", 1235).unwrap().len(), 766);
}

#[test]
fn missing_inserted_and_moved_events_are_found() {
    let cases = [
        ("DELETE FROM events WHERE run = 1 AND seq = 2", 2),
        ("DELETE FROM events WHERE run = 1 AND seq = 3", 3),
        ("DELETE FROM events WHERE run = 1", 1),
        ("UPDATE events SET at = at + 1 WHERE run = 1 AND seq = 2", 2),
        ("UPDATE events SET kind = 'other' WHERE run = 1 AND seq = 2", 2),
        ("UPDATE events SET digest = zeroblob(16) WHERE run = 1 AND seq = 3", 3),
        ("UPDATE events SET seq = 9 WHERE run = 1 AND seq = 2", 2),
        ("UPDATE runs SET next_seq = 3 WHERE number = 1", 2),
        ("UPDATE runs SET next_seq = 9 WHERE number = 1", 4),
        ("UPDATE runs SET digest = zeroblob(16) WHERE number = 1", 3),
        ("UPDATE runs SET digest = zeroblob(3) WHERE number = 1", 1),
        (
            "INSERT INTO events SELECT run, 4, at, kind, body, digest FROM events WHERE run = 1 AND seq = 3",
            4,
        ),
        // Events of a run that differs only in its id.
        ("DELETE FROM events WHERE run = 1; UPDATE events SET run = 1 WHERE run = 2", 1),
        (
            "INSERT INTO events SELECT run, 4, at, kind, body, digest FROM events WHERE run = 1 AND seq = 3; \
          UPDATE runs SET next_seq = 5 WHERE number = 1",
            4,
        ),
    ];
    for (change, broken) in cases {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        for run in ["run-1", "run-2"] {
            start(&journal, run).append_blocking(events_batch(&["second", "third"])).unwrap();
        }
        raw(folder.path()).execute_batch(change).unwrap();
        let error = journal.verify("run-1").unwrap_err();
        assert!(matches!(error, Error::Broken { seq, .. } if seq == broken), "{change}: {error}");
    }
}

#[test]
fn a_damaged_page_is_found_when_it_is_read() {
    // The page may be an interior page: then some of the events before it are lost, too.
    for (event, least) in [(1234, 900), (2000, 1700), (2, 0)] {
        let folder = TempDir::new().unwrap();
        let path = long_run(folder.path());
        let mut bytes = fs::read(&path).unwrap();
        let text = format!("event {event:05}");
        let at = bytes.windows(11).position(|window| window == text.as_bytes()).unwrap();
        let page = at - at % 4096;
        bytes[page..page + 4096].fill(0xff);
        fs::write(&path, bytes).unwrap();
        let journal = Journal::open(folder.path()).expect("opening does not read everything");
        let (shown, end) = visit(&journal);
        assert!((least..event).contains(&shown), "{event}: {shown}");
        assert!(matches!(end, Err(Error::Broken { seq, .. }) if seq == shown + 1), "{end:?}");
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = long_run(folder.path());
    for size in [100_000, 4096, 50] {
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size).unwrap();
        assert!(matches!(Journal::open(folder.path()), Err(Error::Damaged { .. })), "{size}");
        assert!(
            matches!(Journal::open_to_read(folder.path()), Err(Error::Damaged { .. })),
            "{size}"
        );
        assert_eq!(fs::metadata(&path).unwrap().len(), size, "it was left as it is");
    }
}

#[test]
fn what_is_not_a_journal_is_left_untouched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let refused = |why: &str| {
        let before = fs::read(&path).unwrap();
        for open in [Journal::open, Journal::open_to_read] {
            let error = open(folder.path()).unwrap_err();
            assert!(matches!(error, Error::NotAJournal { .. }), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    };
    fs::write(&path, "notes\n".repeat(100)).unwrap();
    refused("it is not a SQLite file");

    fs::remove_file(&path).unwrap();
    raw(folder.path()).execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE mine (x)").unwrap();
    fs::write(folder.path().join(".gitignore"), "").unwrap();
    refused("another program");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no file was left beside it");
    raw(folder.path()).execute_batch("PRAGMA application_id = 7").unwrap();
    refused("another program");

    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    start(&Journal::open(folder.path()).expect("an empty file is nobody's"), "run-1")
        .release()
        .unwrap();
}

#[test]
fn a_newer_journal_is_left_untouched() {
    let folder = TempDir::new().unwrap();
    let path = long_run(folder.path());
    raw(folder.path()).execute_batch("PRAGMA user_version = 9").unwrap();
    let before = fs::read(&path).unwrap();
    for open in [Journal::open, Journal::open_to_read] {
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error, Error::Newer { path: path.clone(), found: 9, known: 2 });
        assert!(error.to_string().contains("upgrade"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_lock_of_another_process_is_waited_for_and_named_when_it_lasts() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open_with(folder.path(), quick()).unwrap();
    let patient = Journal::open(folder.path()).unwrap();
    let (lease, other) = (start(&journal, "run-1"), start(&patient, "run-2"));
    let blocker = raw(folder.path());
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = lease.append_blocking(events_batch(&["lost"])).unwrap_err();
    assert_eq!(error, Error::Busy { path: folder.path().join("journal.db") });
    assert_eq!(journal.verify("run-1").unwrap(), 1, "reading does not wait");

    let (sent, waiting) = mpsc::channel();
    std::thread::scope(|scope| {
        let patient = scope.spawn(move || {
            sent.send(()).unwrap();
            other.append_blocking(events_batch(&["late"]))
        });
        waiting.recv().unwrap();
        blocker.execute_batch("COMMIT").unwrap();
        assert_eq!(patient.join().unwrap().unwrap(), 2);
    });
    assert_eq!(lease.append_blocking(events_batch(&["kept"])).unwrap(), 2);
}

#[test]
fn a_folder_that_is_deleted_is_noticed() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("state");
    let journal = Journal::open(&state).unwrap();
    let lease = start(&journal, "run-1");
    fs::remove_dir_all(&state).unwrap();
    let gone = Error::Gone { path: state.join("journal.db") };
    assert_eq!(lease.append_blocking(events_batch(&["lost"])), Err(gone.clone()));
    assert_eq!(journal.events("run-1", 1), Err(gone.clone()));
    // A new file at the same path is not the same journal.
    let second = Journal::open(&state).unwrap();
    assert_eq!(lease.append_blocking(events_batch(&["lost"])), Err(gone));
    assert!(second.runs(None).unwrap().is_empty());
}

#[test]
fn many_may_open_a_new_journal_at_once() {
    let folder = TempDir::new().unwrap();
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (together, folder) = (&together, folder.path());
            scope.spawn(move || {
                together.wait();
                let journal = Journal::open(folder).unwrap();
                start(&journal, &format!("run-{n}")).release().unwrap();
            });
        }
    });
    assert_eq!(Journal::open(folder.path()).unwrap().runs(None).unwrap().len(), 8);
}
