//! Appending events, alone and in groups.

use super::*;

#[test]
fn a_run_is_its_events() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(&folder.path().join("deep/state")).unwrap();
    let lease = start(&journal, "run-1");
    let last = lease.append_blocking(events_batch(&["second", "third"])).unwrap();
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
        let batch = Batch { summary: Some(summary.clone()), ..events_batch(&["second"]) };
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
    let again = journal.create(new_run("run-1"), events_batch(&["other"])).unwrap_err();
    assert_eq!(again, Error::Exists { run: "run-1".into() });
    assert_eq!(bodies(&journal.events("run-1", 1).unwrap()), ["first"]);
    for id in ["", "last", "..", ".x", "a/b", "a b", &"x".repeat(129)] {
        assert!(
            matches!(journal.create(new_run(id), Batch::default()), Err(Error::Name { .. })),
            "{id}"
        );
    }
}

#[test]
fn an_append_works_for_tasks_too_and_blocking_inside_a_runtime_does_not_panic() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let last = runtime.block_on(async {
        let lease = start(&journal, "run-1");
        lease.append(events_batch(&["second"])).await.unwrap();
        lease.append_blocking(events_batch(&["third"])).unwrap()
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
                    lease.append_blocking(events_batch(&["a", "b", "c"])).unwrap();
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
    // The lock delays the first transaction, so that the other requests become one group.
    let blocker = raw(folder.path());
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let before = journal.commits();
    let (first, second, third) = runtime.block_on(async {
        let unlock = async { blocker.execute_batch("COMMIT").unwrap() };
        let (first, second, third, ()) = tokio::join!(
            good.append(events_batch(&["one"])),
            fenced.append(events_batch(&["lost"])),
            good.append(events_batch(&["two"])),
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
                let events = batch
                    .iter()
                    .map(|(at, kind, body)| NewEvent { at: *at, kind: kind.clone().into(), body: body.clone() })
                    .collect();
                let last = lease.append_blocking(Batch { events, ..Batch::default() }).unwrap();
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
