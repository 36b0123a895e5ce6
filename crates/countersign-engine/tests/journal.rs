//! The journal: what is written can be read, one driver at a time, and no fault loses what was journaled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use countersign_engine::journal::{
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

mod writing {
    use super::*;

    #[test]
    fn a_run_is_its_events() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(&folder.path().join("deep/state")).unwrap();
        let lease = start(&journal, "run-1");
        let last = lease.append_blocking(rows(&["second", "third"])).unwrap();
        assert_eq!((last, lease.epoch(), lease.run()), (3, 1, "run-1"));

        let events = journal.events("run-1", 1).unwrap();
        assert_eq!(bodies(&events), ["first", "second", "third"]);
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(bodies(&journal.events("run-1", 3).unwrap()), ["third"]);
        assert!(journal.events("run-1", 4).unwrap().is_empty());
        assert!(journal.events("run-1", u64::MAX).unwrap().is_empty());
        assert_eq!(journal.verify("run-1").unwrap(), 3);
        assert_eq!(fs::read_to_string(journal.folder().join(".gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn everything_is_there_after_opening_again() {
        let folder = TempDir::new().unwrap();
        let summary = Summary {
            outcome: Some("done".into()),
            cause: Some("all green".into()),
            state: "ended".into(),
            reason: "tests pass".into(),
            iterations: 4,
            input_tokens: 5,
            output_tokens: u64::MAX >> 1,
            cost_usd: 0.25,
            wall_ms: 7,
            questions: 1,
        };
        {
            let journal = Journal::open(folder.path()).unwrap();
            let lease = start(&journal, "run-1");
            let batch = Batch { summary: Some(summary.clone()), ..rows(&["second"]) };
            lease.append_blocking(batch).unwrap();
            lease.release().unwrap();
        }
        let journal = Journal::open(folder.path()).unwrap();
        let info = journal.run("run-1").unwrap();
        assert_eq!((info.workflow.as_str(), info.version, info.last_seq), ("demo", 3, 2));
        assert_eq!((info.summary, info.driver), (summary, None));
        assert_eq!(journal.bundle(&info.bundle).unwrap(), b"the workflow");
        assert!(matches!(journal.bundle("00"), Err(Error::Bundle { .. })));
    }

    #[test]
    fn a_bundle_is_stored_once() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let (_one, _two) = (start(&journal, "run-1"), start(&journal, "run-2"));
        let count: i64 =
            raw(folder.path()).query_row("SELECT count(*) FROM bundles", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn an_id_is_used_once_and_can_name_a_folder() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let _lease = start(&journal, "run-1");
        let again = journal.create(new_run("run-1"), rows(&["other"])).unwrap_err();
        assert_eq!(again, Error::Exists { run: "run-1".into() });
        assert_eq!(bodies(&journal.events("run-1", 1).unwrap()), ["first"]);
        for id in ["", "last", "..", ".x", "a/b", "a b", &"x".repeat(129)] {
            assert!(matches!(journal.create(new_run(id), Batch::default()), Err(Error::Name { .. })), "{id}");
        }
    }

    #[test]
    fn an_append_works_for_tasks_too_and_blocking_inside_a_runtime_does_not_panic() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let last = runtime.block_on(async {
            let lease = start(&journal, "run-1");
            lease.append(rows(&["second"])).await.unwrap();
            lease.append_blocking(rows(&["third"])).unwrap()
        });
        assert_eq!(last, 3);
    }

    #[test]
    fn callers_who_come_together_share_commits() {
        const CALLERS: usize = 16;
        const APPENDS: usize = 200;
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let leases: Vec<Lease> = (0..CALLERS).map(|n| start(&journal, &format!("run-{n}"))).collect();
        let before = journal.commits();
        let together = Barrier::new(CALLERS);
        std::thread::scope(|scope| {
            for lease in &leases {
                scope.spawn(|| {
                    together.wait();
                    for _ in 0..APPENDS {
                        lease.append_blocking(rows(&["a", "b", "c"])).unwrap();
                    }
                });
            }
        });
        let commits = journal.commits() - before;
        assert!(commits <= (CALLERS * APPENDS) as u64 / 2, "{commits} commits");
        for n in 0..CALLERS {
            assert_eq!(journal.verify(&format!("run-{n}")).unwrap(), 1 + 3 * APPENDS as u64);
        }
    }

    #[test]
    fn whoever_fails_in_a_group_fails_alone() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let (good, fenced) = (start(&journal, "good"), start(&journal, "fenced"));
        raw(folder.path()).execute("UPDATE runs SET epoch = 9 WHERE id = 'fenced'", []).unwrap();
        // The lock keeps the writer from its first transaction, so that the rest waits and becomes one group.
        let blocker = raw(folder.path());
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let before = journal.commits();
        let (first, second, third) = runtime.block_on(async {
            let unlock = async { blocker.execute_batch("COMMIT").unwrap() };
            let (first, second, third, ()) = tokio::join!(
                good.append(rows(&["one"])),
                fenced.append(rows(&["lost"])),
                good.append(rows(&["two"])),
                unlock
            );
            (first, second, third)
        });
        assert_eq!((first, third), (Ok(2), Ok(3)));
        assert_eq!(second, Err(Error::Fenced { run: "fenced".into(), epoch: 1 }));
        assert!(journal.commits() - before <= 2, "they were one group");
        assert_eq!(bodies(&journal.events("good", 1).unwrap()), ["first", "one", "two"]);
        assert_eq!(bodies(&journal.events("fenced", 1).unwrap()), ["first"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn what_is_read_is_what_was_written(
            batches in prop::collection::vec(
                (0..4_usize, prop::collection::vec((any::<i64>(), "[a-z.é]{0,6}", prop::collection::vec(any::<u8>(), 0..300)), 0..5)),
                0..24,
            )
        ) {
            let folder = TempDir::new().unwrap();
            let mut written: BTreeMap<String, Vec<(i64, String, Vec<u8>)>> = BTreeMap::new();
            {
                let journal = Journal::open(folder.path()).unwrap();
                let leases: Vec<Lease> = (0..4)
                    .map(|n| journal.create(new_run(&format!("run-{n}")), Batch::default()).unwrap())
                    .collect();
                for (run, batch) in &batches {
                    let lease = &leases[*run];
                    let so_far = written.entry(lease.run().to_owned()).or_default();
                    so_far.extend(batch.iter().cloned());
                    let rows = batch
                        .iter()
                        .map(|(at, kind, body)| Row { at: *at, kind: kind.clone().into(), body: body.clone() })
                        .collect();
                    let last = lease.append_blocking(Batch { rows, ..Batch::default() }).unwrap();
                    prop_assert_eq!(last, so_far.len() as u64);
                }
            }
            let journal = Journal::open(folder.path()).unwrap();
            for n in 0..4 {
                let run = format!("run-{n}");
                let events = journal.events(&run, 1).unwrap();
                prop_assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64));
                prop_assert_eq!(journal.verify(&run).unwrap(), events.len() as u64);
                let read: Vec<_> = events.into_iter().map(|event| (event.at, event.kind, event.body)).collect();
                prop_assert_eq!(read, written.get(&run).cloned().unwrap_or_default());
            }
        }
    }
}

mod leases {
    use super::*;

    /// Where a second process of this test finds the journal whose run it is to hold.
    const HOLD: &str = "JOURNAL_TEST_HOLD";

    #[test]
    fn two_handles_cannot_hold_one_run() {
        let folder = TempDir::new().unwrap();
        let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
        let lease = start(&one, "run-1");
        for journal in [&one, &two] {
            let error = journal.take("run-1").unwrap_err();
            let Error::Held { run, pid, since } = &error else { panic!("{error}") };
            assert_eq!((run.as_str(), *pid), ("run-1", std::process::id()));
            assert!(*since > 0);
        }
        assert!(two.run("run-1").unwrap().driver.unwrap().live);
        lease.release().unwrap();
        let (lease, _) = two.take("run-1").unwrap();
        assert_eq!(lease.epoch(), 2);
        drop(lease);
        wait_until("a dropped lease is given back", || two.run("run-1").unwrap().driver.is_none());
        assert_eq!(one.take("run-1").unwrap().0.epoch(), 3);
        assert_eq!(one.take("none").unwrap_err(), Error::NoRun { run: "none".into() });
    }

    #[test]
    fn a_holder_who_was_replaced_changes_nothing() {
        let folder = TempDir::new().unwrap();
        let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
        let old = start(&one, "run-1");
        let message = one.post("run-1", "answer", b"yes", 1).unwrap();
        raw(folder.path()).execute("UPDATE runs SET heartbeat = heartbeat - 40000", []).unwrap();
        assert!(!two.run("run-1").unwrap().driver.unwrap().live);
        let (new, _) = two.take("run-1").unwrap();
        let batch = Batch {
            snapshot: Some(b"old".to_vec()),
            summary: Some(Summary { state: "old".into(), ..Summary::default() }),
            consumed: vec![message],
            ..rows(&["old"])
        };
        let fenced = Error::Fenced { run: "run-1".into(), epoch: 1 };
        assert_eq!(old.append_blocking(batch), Err(fenced.clone()));
        assert_eq!(new.append_blocking(rows(&["new"])).unwrap(), 2);
        assert_eq!(bodies(&two.events("run-1", 1).unwrap()), ["first", "new"]);
        assert_eq!(two.run("run-1").unwrap().summary.state, "");
        assert_eq!(new.posted().unwrap().len(), 1);
        assert_eq!(
            old.release(),
            Err(fenced),
            "giving back what was lost does not take it from the new holder"
        );
        assert_eq!(new.append_blocking(rows(&["newer"])).unwrap(), 3);
    }

    #[test]
    fn heartbeats_keep_a_lease_fresh_and_never_bring_one_back() {
        let folder = TempDir::new().unwrap();
        let settings = Settings { heartbeat: Duration::from_millis(10), ..Settings::default() };
        let one = Journal::open_with(folder.path(), settings).unwrap();
        let two = Journal::open(folder.path()).unwrap();
        let (_kept, _lost) = (start(&one, "kept"), start(&one, "lost"));
        let beat = |run: &str| two.run(run).unwrap().driver.unwrap().heartbeat;
        let first = beat("kept");
        wait_until("a heartbeat", || beat("kept") > first);

        // Between making it stale and taking it there must be no heartbeat.
        let file = raw(folder.path());
        file.execute("UPDATE runs SET boot = 'an earlier one' WHERE id = 'lost'", []).unwrap();
        let (taken, _) = two.take("lost").unwrap();
        let (at_take, other) = (beat("lost"), beat("kept"));
        wait_until("more heartbeats", || beat("kept") > other + 50);
        assert_eq!(beat("lost"), at_take, "the first holder's heartbeat does not count for the second");
        assert_eq!(taken.append_blocking(rows(&["mine"])).unwrap(), 2);
    }

    #[test]
    fn a_lease_that_cannot_be_given_back_is_given_back_later() {
        let folder = TempDir::new().unwrap();
        let settings = Settings { heartbeat: Duration::from_millis(10), ..quick() };
        let journal = Journal::open_with(folder.path(), settings).unwrap();
        let (_kept, released, dropped) =
            (start(&journal, "kept"), start(&journal, "released"), start(&journal, "dropped"));
        let blocker = raw(folder.path());
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        drop(dropped);
        assert!(matches!(released.release(), Err(Error::Busy { .. })));
        blocker.execute_batch("COMMIT").unwrap();
        for run in ["released", "dropped"] {
            wait_until(run, || journal.run(run).unwrap().driver.is_none());
        }
        assert!(journal.run("kept").unwrap().driver.unwrap().live);
    }

    #[test]
    fn without_leases_nothing_is_written_by_the_clock() {
        let folder = TempDir::new().unwrap();
        let settings = Settings { heartbeat: Duration::from_millis(1), ..Settings::default() };
        let journal = Journal::open_with(folder.path(), settings).unwrap();
        start(&journal, "run-1").release().unwrap();
        // One more tick finds that there is nothing left to keep fresh. Nothing tells that nothing happens: time must
        // pass.
        let after_release = journal.commits();
        std::thread::sleep(Duration::from_millis(60));
        assert!(journal.commits() <= after_release + 1);
    }

    #[test]
    fn a_lease_from_before_a_restart_or_of_a_reused_process_id_is_free() {
        let folder = TempDir::new().unwrap();
        let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
        let _lease = start(&one, "run-1");
        for change in ["boot = 'another'", "started = started + 1", "pid = 2147483647"] {
            raw(folder.path()).execute(&format!("UPDATE runs SET {change}"), []).unwrap();
            let (taken, _) = two.take("run-1").unwrap_or_else(|error| panic!("{change}: {error}"));
            assert!(one.take("run-1").is_err());
            std::mem::forget(taken);
        }
        // In another namespace the process cannot be looked up: only time tells, as far as the clock can be trusted.
        let file = raw(folder.path());
        file.execute("UPDATE runs SET namespace = 'pid:[1]', pid = 2147483647", []).unwrap();
        assert!(matches!(two.take("run-1"), Err(Error::Held { pid: 2_147_483_647, .. })));
        file.execute("UPDATE runs SET heartbeat = heartbeat + 20000", []).unwrap();
        assert!(matches!(two.take("run-1"), Err(Error::Held { .. })));
        file.execute("UPDATE runs SET heartbeat = heartbeat + 90000", []).unwrap();
        two.take("run-1").unwrap();
    }

    #[test]
    #[ignore = "not a test: the process that the next one kills"]
    fn holding_process() {
        let Ok(folder) = std::env::var(HOLD) else { return };
        let journal = Journal::open(Path::new(&folder)).unwrap();
        let lease = start(&journal, "run-1");
        lease.append_blocking(rows(&["from the child"])).unwrap();
        fs::write(Path::new(&folder).join("ready"), "").unwrap();
        // Ends with the kill, or with the test that would have killed it.
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
    }

    fn holding_child(folder: &Path) -> Child {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "leases::holding_process", "--ignored", "--nocapture"])
            .env(HOLD, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the child holds the run", || folder.join("ready").exists());
        child
    }

    #[test]
    fn killing_the_holder_frees_the_run_at_once_and_loses_nothing() {
        let folder = TempDir::new().unwrap();
        let mut child = holding_child(folder.path());
        let journal = Journal::open(folder.path()).unwrap();
        let held = journal.take("run-1").unwrap_err();
        assert!(matches!(held, Error::Held { pid, .. } if pid == child.id()), "{held}");
        assert!(held.to_string().contains("end that process"), "{held}");
        child.kill().unwrap();
        // Not waited for yet: what is left of the process holds nothing.
        wait_until("the kill", || !journal.run("run-1").unwrap().driver.unwrap().live);
        let (lease, standing) = journal.take("run-1").unwrap();
        child.wait().unwrap();
        assert_eq!((lease.epoch(), standing.info.last_seq), (2, 2));
        assert_eq!(bodies(&journal.events("run-1", 1).unwrap()), ["first", "from the child"]);
        assert_eq!(lease.append_blocking(rows(&["went on"])).unwrap(), 3);
    }
}

mod resuming {
    use super::*;

    #[test]
    fn a_resume_reads_only_what_is_behind_the_snapshot() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lease = start(&journal, "run-1");
        for fold in ["fold of 2", "fold of 3"] {
            lease.append_blocking(Batch { snapshot: Some(fold.into()), ..rows(&["more"]) }).unwrap();
        }
        lease.append_blocking(rows(&["behind"])).unwrap();
        lease.release().unwrap();
        let (_lease, standing) = journal.take("run-1").unwrap();
        let snapshot = standing.snapshot.unwrap();
        assert_eq!((snapshot.seq, snapshot.body.as_slice()), (3, b"fold of 3".as_slice()));
        assert_eq!(bodies(&journal.events("run-1", snapshot.seq + 1).unwrap()), ["behind"]);
    }

    #[test]
    fn a_snapshot_that_is_not_what_was_stored_is_passed_over() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lease = start(&journal, "run-1");
        lease.append_blocking(Batch { snapshot: Some(b"fold".to_vec()), ..Batch::default() }).unwrap();
        lease.release().unwrap();
        raw(folder.path()).execute("UPDATE snapshots SET body = x'00'", []).unwrap();
        assert_eq!(journal.take("run-1").unwrap().1.snapshot, None);
    }

    #[test]
    fn messages_wait_for_whoever_drives_and_leave_with_the_batch_that_consumes_them() {
        let folder = TempDir::new().unwrap();
        let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
        let lease = start(&one, "run-1");
        let other = start(&one, "run-2");
        assert!(lease.posted().unwrap().is_empty());
        assert!(lease.posted().unwrap().is_empty(), "nothing new, nothing asked");
        let id = two.post("run-1", "answer", b"42", 7).unwrap();
        let posted = lease.posted().unwrap();
        assert_eq!(posted.len(), 1);
        assert_eq!(
            (posted[0].id, posted[0].at, posted[0].kind.as_str(), posted[0].body.as_slice()),
            (id, 7, "answer", b"42".as_slice())
        );
        assert_eq!(lease.posted().unwrap(), posted, "looking does not consume");
        assert!(other.posted().unwrap().is_empty());
        other.append_blocking(Batch { consumed: vec![id], ..Batch::default() }).unwrap();
        assert_eq!(lease.posted().unwrap(), posted, "another run's messages cannot be consumed");
        lease.append_blocking(Batch { consumed: vec![id], ..rows(&["answered"]) }).unwrap();
        assert!(lease.posted().unwrap().is_empty());

        lease.release().unwrap();
        two.post("run-1", "cancel", b"", 8).unwrap();
        two.post("run-1", "cancel", b"again", 9).unwrap();
        assert_eq!(two.post("none", "cancel", b"", 8), Err(Error::NoRun { run: "none".into() }));
        let (lease, _) = one.take("run-1").unwrap();
        assert_eq!(lease.posted().unwrap().iter().map(|posted| posted.at).collect::<Vec<_>>(), [8, 9]);
        one.post("run-1", "answer", b"from the same handle", 10).unwrap();
        assert_eq!(lease.posted().unwrap().len(), 3);
    }
}

mod finding {
    use super::*;

    #[test]
    fn runs_are_listed_the_newest_first() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        for (id, at) in [("b", 2), ("c", 3), ("a", 1)] {
            journal.create(NewRun { at, ..new_run(id) }, Batch::default()).unwrap();
        }
        let ids = |limit| journal.runs(limit).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
        assert_eq!(ids(None), ["c", "b", "a"]);
        assert_eq!(ids(Some(2)), ["c", "b"]);
        assert_eq!(journal.resolve("last").unwrap(), "c");
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_if_it_is_the_only_one() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.resolve("last"), Err(Error::NoRun { run: "last".into() }));
        for id in ["0190-a", "0190-b", "0191", "0191-x"] {
            drop(start(&journal, id));
        }
        assert_eq!(journal.resolve("0190-b").unwrap(), "0190-b");
        assert_eq!(journal.resolve("0191").unwrap(), "0191", "a whole id wins");
        assert_eq!(journal.resolve("0191-").unwrap(), "0191-x");
        assert_eq!(journal.resolve("02"), Err(Error::NoRun { run: "02".into() }));
        let error = journal.resolve("0190").unwrap_err();
        assert_eq!(error.to_string(), "'0190' could be 0190-a, 0190-b; give more of the id");
        for n in 0..10 {
            drop(start(&journal, &format!("0190-c{n}")));
        }
        let Error::Ambiguous { candidates, more, .. } = journal.resolve("").unwrap_err() else { panic!() };
        assert_eq!((candidates.len(), more), (10, true));
    }

    #[test]
    fn a_visit_can_end_early() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lease = start(&journal, "run-1");
        let many: Vec<Row> = (0..1500).map(|n| row("note", &n.to_string())).collect();
        lease.append_blocking(Batch { rows: many, ..Batch::default() }).unwrap();
        let mut seen = Vec::new();
        let shown = journal.visit("run-1", 2, |event| {
            // The journal can be asked while it is being read.
            assert_eq!(journal.run("run-1").unwrap().last_seq, 1501);
            seen.push(event.seq);
            if seen.len() == 700 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(shown.unwrap(), 700);
        assert!(seen.into_iter().eq(2..702));
        assert_eq!(journal.verify("run-1").unwrap(), 1501);
    }
}

mod transcripts {
    use super::*;

    #[test]
    fn a_transcript_streams_to_a_file_and_is_known_by_its_hash() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let mut transcript = Transcript::create(&journal, "run-1", "step 1/try.jsonl", 1000).unwrap();
        transcript.write(b"hello ").unwrap();
        let path = folder.path().join("transcripts/run-1/step_1_try.jsonl");
        assert_eq!(fs::read(&path).unwrap(), b"hello ", "what streamed in can be followed");
        transcript.write(b"world").unwrap();
        let stored = transcript.finish().unwrap();
        let expected = Stored {
            path: "transcripts/run-1/step_1_try.jsonl".into(),
            sha256: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9".into(),
            bytes: 11,
            truncated_at: None,
        };
        assert_eq!(stored, expected);
        assert_eq!(journal.read_transcript(&stored).unwrap(), b"hello world");
        let json = serde_json::to_string(&stored).unwrap();
        assert_eq!(serde_json::from_str::<Stored>(&json).unwrap(), stored);

        for changed in ["hello World", "hello world!", "hello"] {
            fs::write(&path, changed).unwrap();
            assert!(matches!(journal.read_transcript(&stored), Err(Error::Transcript { .. })), "{changed}");
        }
        fs::remove_file(&path).unwrap();
        assert!(journal.read_transcript(&stored).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn beyond_its_cap_a_transcript_is_counted_and_not_written() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let mut transcript = Transcript::create(&journal, "run-1", "long", 5).unwrap();
        for _ in 0..3 {
            transcript.write(b"abcd").unwrap();
        }
        let stored = transcript.finish().unwrap();
        assert_eq!((stored.bytes, stored.truncated_at), (12, Some(5)));
        assert_eq!(journal.read_transcript(&stored).unwrap(), b"abcda");
    }

    #[test]
    fn names_stay_inside_the_folder_and_nothing_is_written_over() {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        for (name, file) in
            [("../../x", "_.._.._x"), ("..", "_.."), ("", "_"), ("a", "a"), ("a", "a-2"), ("é", "_-2")]
        {
            let stored = Transcript::create(&journal, "run-1", name, 0).unwrap().finish().unwrap();
            assert_eq!(stored.path, format!("transcripts/run-1/{file}"));
        }
        let long = Transcript::create(&journal, "run-1", &"x".repeat(5000), 0).unwrap().finish().unwrap();
        assert!(long.path.len() < 150);
        assert!(matches!(Transcript::create(&journal, "../x", "a", 0), Err(Error::Name { .. })));
        for path in
            ["journal.db", "/etc/passwd", "transcripts/../journal.db", "transcripts/run-1/../../journal.db"]
        {
            let stored = Stored { path: path.into(), ..long.clone() };
            assert!(
                journal.read_transcript(&stored).unwrap_err().to_string().contains("not among"),
                "{path}"
            );
        }
    }
}

mod faults {
    use super::*;

    /// A file system of its own, gone with the test. None where mounting is not allowed.
    struct Mount(TempDir);

    impl Mount {
        fn new(size: &str) -> Option<Self> {
            let folder = TempDir::new().unwrap();
            let options = format!("size={size}");
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).stderr(Stdio::null());
            mount.status().is_ok_and(|status| status.success()).then_some(Self(folder))
        }

        fn make_read_only(&self) {
            let done = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0.path()).status().unwrap();
            assert!(done.success());
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0.path()).status();
        }
    }

    /// A state folder, prepared by `fill`, that then cannot be written. Root may write anywhere, so it needs a mount.
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
        let rows = (2..=2000).map(|n| row("note", &format!("event {n:05} {}", "x".repeat(200)))).collect();
        lease.append_blocking(Batch { rows, ..Batch::default() }).unwrap();
        folder.join("journal.db")
    }

    /// How many events a visit shows, and how it ends.
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
            assert!(matches!(journal.take("run-1"), Err(Error::ReadOnly { .. })));
            assert!(matches!(journal.post("run-1", "x", b"", 0), Err(Error::ReadOnly { .. })));
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
        lease.append_blocking(rows(&["second"])).unwrap();
        assert_eq!(bodies(&reader.events("run-1", 1).unwrap()), ["first", "second"]);
        assert!(matches!(reader.create(new_run("run-2"), Batch::default()), Err(Error::ReadOnly { .. })));
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
            .find_map(|_| lease.append_blocking(rows(&[&big])).map(|last| kept = last).err())
            .expect("it fails in the end");
        assert_eq!(error, Error::Full { path: state.join("journal.db") });
        assert_eq!(journal.verify("run-1").unwrap(), kept);
        let mut transcript = Transcript::create(&journal, "run-1", "t", 1 << 30).unwrap();
        assert!(matches!(transcript.write(big.as_bytes()), Err(Error::Full { .. })));

        fs::remove_file(&filler).unwrap();
        assert_eq!(lease.append_blocking(rows(&[&big])).unwrap(), kept + 1);
        transcript.write(b"goes on").unwrap();
        let stored = transcript.finish().unwrap();
        assert!(journal.read_transcript(&stored).unwrap().ends_with(b"goes on"));
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
        // Held up by a lock, so that the small ones and the huge one are one group.
        let blocker = raw(folder.path());
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers = runtime.block_on(async {
            let unlock = async { blocker.execute_batch("COMMIT").unwrap() };
            let small = || lease.append(rows(&["small"]));
            tokio::join!(small(), small(), lease.append(rows(&[&huge])), small(), unlock)
        });
        let full = Err(Error::Full { path: folder.path().join("journal.db") });
        assert_eq!(answers, (Ok(2), Ok(3), full, Ok(4), ()));
        assert_eq!(journal.verify("run-1").unwrap(), 4);
        drop((lease, journal));
        let journal = Journal::open(folder.path()).unwrap();
        let (lease, _) = journal.take("run-1").unwrap();
        assert_eq!(lease.append_blocking(rows(&[&huge])).unwrap(), 5, "there is room again");
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
        assert!(error.to_string().contains("every event before it is intact"), "{error}");
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
            // Events of a run that is the same in all but its name.
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
                start(&journal, run).append_blocking(rows(&["second", "third"])).unwrap();
            }
            raw(folder.path()).execute_batch(change).unwrap();
            let error = journal.verify("run-1").unwrap_err();
            assert!(matches!(error, Error::Broken { seq, .. } if seq == broken), "{change}: {error}");
        }
    }

    #[test]
    fn a_damaged_page_is_found_when_it_is_read() {
        // A page may be one that leads to others: then some of the events before it in the file are lost with it.
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
            assert!(matches!(Journal::open_to_read(folder.path()), Err(Error::Damaged { .. })), "{size}");
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
        refused("does not begin like a SQLite file");

        fs::remove_file(&path).unwrap();
        raw(folder.path()).execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE mine (x)").unwrap();
        fs::write(folder.path().join(".gitignore"), "").unwrap();
        refused("another program");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no file was left beside it");
        raw(folder.path()).execute_batch("PRAGMA application_id = 7").unwrap();
        refused("another program");

        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        start(&Journal::open(folder.path()).expect("an empty file is nobody's"), "run-1").release().unwrap();
    }

    #[test]
    fn a_newer_journal_is_left_untouched() {
        let folder = TempDir::new().unwrap();
        let path = long_run(folder.path());
        raw(folder.path()).execute_batch("PRAGMA user_version = 9").unwrap();
        let before = fs::read(&path).unwrap();
        for open in [Journal::open, Journal::open_to_read] {
            let error = open(folder.path()).unwrap_err();
            assert_eq!(error, Error::Newer { path: path.clone(), found: 9, known: 1 });
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
        let error = lease.append_blocking(rows(&["lost"])).unwrap_err();
        assert_eq!(error, Error::Busy { path: folder.path().join("journal.db") });
        assert_eq!(journal.verify("run-1").unwrap(), 1, "reading does not wait");

        let (sent, waiting) = mpsc::channel();
        std::thread::scope(|scope| {
            let patient = scope.spawn(move || {
                sent.send(()).unwrap();
                other.append_blocking(rows(&["late"]))
            });
            waiting.recv().unwrap();
            blocker.execute_batch("COMMIT").unwrap();
            assert_eq!(patient.join().unwrap().unwrap(), 2);
        });
        assert_eq!(lease.append_blocking(rows(&["kept"])).unwrap(), 2);
    }

    #[test]
    fn a_folder_that_is_deleted_is_noticed() {
        let folder = TempDir::new().unwrap();
        let state = folder.path().join("state");
        let journal = Journal::open(&state).unwrap();
        let lease = start(&journal, "run-1");
        fs::remove_dir_all(&state).unwrap();
        let gone = Error::Gone { path: state.join("journal.db") };
        assert_eq!(lease.append_blocking(rows(&["lost"])), Err(gone.clone()));
        assert_eq!(journal.events("run-1", 1), Err(gone.clone()));
        // Another in its place is not the same.
        let second = Journal::open(&state).unwrap();
        assert_eq!(lease.append_blocking(rows(&["lost"])), Err(gone));
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
}

/// Figures, not judgements: `cargo test --test journal -- --ignored --nocapture figures`.
mod figures {
    use super::*;
    use std::io::Write;

    fn batch() -> Batch {
        let summary = Summary { state: "working".into(), iterations: 3, ..Summary::default() };
        let body = "x".repeat(150);
        Batch { summary: Some(summary), ..rows(&[&body, &body, &body]) }
    }

    fn took(work: impl FnOnce()) -> Duration {
        let begin = Instant::now();
        work();
        begin.elapsed()
    }

    fn spread(mut times: Vec<Duration>) -> String {
        times.sort();
        let at = |percent: usize| times[times.len() * percent / 100];
        format!("p10 {:?}, p50 {:?}, p90 {:?}, p99 {:?}", at(10), at(50), at(90), at(99))
    }

    #[test]
    #[ignore = "measures, and judges nothing"]
    fn figures() {
        let folder =
            TempDir::new_in(std::env::var("JOURNAL_FIGURES_IN").unwrap_or("/var/tmp".into())).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lease = start(&journal, "one");
        // Turn by turn, because what a disk takes differs from one second to the next on a machine that is shared.
        let mut probe = fs::File::create(folder.path().join("probe")).unwrap();
        let (mut appends, mut syncs) = (Vec::new(), Vec::new());
        for _ in 0..30 {
            for _ in 0..100 {
                appends.push(took(|| assert!(lease.append_blocking(batch()).is_ok())));
            }
            for _ in 0..100 {
                syncs.push(took(|| probe.write_all(&[7; 12_288]).and_then(|()| probe.sync_all()).unwrap()));
            }
        }
        println!("one append of 3 events: {}", spread(appends));
        println!("12 KiB and a bare fsync: {}", spread(syncs));

        let leases: Vec<Lease> = (0..16).map(|n| start(&journal, &format!("run-{n}"))).collect();
        let (before, begin) = (journal.commits(), Instant::now());
        std::thread::scope(|scope| {
            for lease in &leases {
                scope.spawn(|| (0..500).for_each(|_| assert!(lease.append_blocking(batch()).is_ok())));
            }
        });
        let rate = 8000.0 / begin.elapsed().as_secs_f64();
        println!("16 callers: {rate:.0} appends/s in {} commits for 8000", journal.commits() - before);
        let begin = Instant::now();
        for _ in 0..10_000 {
            assert!(lease.posted().unwrap().is_empty());
        }
        println!("a look at an inbox where nothing happened: {:?}", begin.elapsed() / 10_000);
        drop(leases);

        std::thread::scope(|scope| {
            for part in 0..16 {
                let journal = &journal;
                scope.spawn(move || (0..625).for_each(|n| drop(start(journal, &format!("many-{part}-{n}")))));
            }
        });
        let begin = Instant::now();
        let count = journal.runs(None).unwrap().len();
        println!("listing {count} runs: {:?}", begin.elapsed());
        let begin = Instant::now();
        assert_eq!(journal.runs(Some(20)).unwrap().len(), 20);
        println!("listing the newest 20: {:?}", begin.elapsed());

        let lease = start(&journal, "long");
        for n in 0..100 {
            let rows = (0..1000).map(|n| row("note", &format!("{n} {}", "x".repeat(150)))).collect();
            let snapshot = (n == 98).then(|| vec![7; 10_000]);
            lease.append_blocking(Batch { rows, snapshot, ..Batch::default() }).unwrap();
        }
        lease.release().unwrap();
        let begin = Instant::now();
        let (_lease, standing) = journal.take("long").unwrap();
        let taken = begin.elapsed();
        let events = journal.events("long", standing.snapshot.unwrap().seq + 1).unwrap();
        println!(
            "taking a run of {} events: {taken:?}, with the {} behind the snapshot {:?}",
            standing.info.last_seq,
            events.len(),
            begin.elapsed()
        );
        let begin = Instant::now();
        println!("verifying {} events: {:?}", journal.verify("long").unwrap(), begin.elapsed());
        let begin = Instant::now();
        let again = Journal::open(folder.path()).unwrap();
        println!("opening: {:?}", begin.elapsed());
        drop(again);
    }
}
