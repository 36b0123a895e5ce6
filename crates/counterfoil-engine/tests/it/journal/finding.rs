//! Finding runs by id, prefix or age.

use super::*;

#[test]
fn runs_are_listed_the_newest_first() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    for (id, at) in [("b", 2), ("c", 3), ("a", 1)] {
        journal.create(NewRun { at, ..new_run(id) }, Batch::default()).unwrap();
    }
    let ids =
        |limit| journal.runs(limit).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
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
    assert_eq!(error.to_string(), "'0190' is ambiguous: 0190-a, 0190-b; use a longer prefix");
    for n in 0..10 {
        drop(start(&journal, &format!("0190-c{n}")));
    }
    let Error::Ambiguous { candidates, more, .. } = journal.resolve("").unwrap_err() else {
        panic!()
    };
    assert_eq!((candidates.len(), more), (10, true));
}

#[test]
fn a_visit_can_end_early() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let lease = start(&journal, "run-1");
    let many: Vec<NewEvent> = (0..1500).map(|n| event("note", &n.to_string())).collect();
    lease.append_blocking(Batch { events: many, ..Batch::default() }).unwrap();
    let mut seen = Vec::new();
    let shown = journal.visit("run-1", 2, |event| {
        // The journal can be queried during a visit.
        assert_eq!(journal.run("run-1").unwrap().last_seq, 1501);
        seen.push(event.seq);
        if seen.len() == 700 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(shown.unwrap(), 700);
    assert!(seen.into_iter().eq(2..702));
    assert_eq!(journal.verify("run-1").unwrap(), 1501);
}
