//! What a driver gets when it acquires a run: the snapshot and the messages.

use super::*;

#[test]
fn a_resume_reads_only_what_is_behind_the_snapshot() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let lease = start(&journal, "run-1");
    for run_state in ["run_state of 2", "run_state of 3"] {
        lease
            .append_blocking(Batch { snapshot: Some(run_state.into()), ..events_batch(&["more"]) })
            .unwrap();
    }
    lease.append_blocking(events_batch(&["behind"])).unwrap();
    lease.release().unwrap();
    let (_lease, acquired) = journal.acquire("run-1").unwrap();
    let snapshot = acquired.snapshot.unwrap();
    assert_eq!((snapshot.seq, snapshot.body.as_slice()), (3, b"run_state of 3".as_slice()));
    assert_eq!(bodies(&journal.events("run-1", snapshot.seq + 1).unwrap()), ["behind"]);
}

#[test]
fn a_snapshot_that_is_not_what_was_stored_is_passed_over() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let lease = start(&journal, "run-1");
    lease
        .append_blocking(Batch { snapshot: Some(b"run_state".to_vec()), ..Batch::default() })
        .unwrap();
    lease.release().unwrap();
    raw(folder.path()).execute("UPDATE snapshots SET body = x'00'", []).unwrap();
    assert_eq!(journal.acquire("run-1").unwrap().1.snapshot, None);
}

#[test]
fn messages_wait_for_whoever_drives_and_leave_with_the_batch_that_consumes_them() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
    let lease = start(&one, "run-1");
    let other = start(&one, "run-2");
    assert!(lease.messages().unwrap().is_empty());
    assert!(lease.messages().unwrap().is_empty(), "nothing new, nothing asked");
    let id = two.send_message("run-1", "answer", b"42", 7).unwrap();
    let posted = lease.messages().unwrap();
    assert_eq!(posted.len(), 1);
    assert_eq!(
        (posted[0].id, posted[0].at, posted[0].kind.as_str(), posted[0].body.as_slice()),
        (id, 7, "answer", b"42".as_slice())
    );
    assert_eq!(lease.messages().unwrap(), posted, "looking does not consume");
    assert!(other.messages().unwrap().is_empty());
    other.append_blocking(Batch { consumed: vec![id], ..Batch::default() }).unwrap();
    assert_eq!(lease.messages().unwrap(), posted, "another run's messages cannot be consumed");
    lease.append_blocking(Batch { consumed: vec![id], ..events_batch(&["answered"]) }).unwrap();
    assert!(lease.messages().unwrap().is_empty());

    lease.release().unwrap();
    two.send_message("run-1", "cancel", b"", 8).unwrap();
    two.send_message("run-1", "cancel", b"again", 9).unwrap();
    assert_eq!(
        two.send_message("none", "cancel", b"", 8),
        Err(Error::NoRun { run: "none".into() })
    );
    let (lease, _) = one.acquire("run-1").unwrap();
    assert_eq!(
        lease.messages().unwrap().iter().map(|posted| posted.at).collect::<Vec<_>>(),
        [8, 9]
    );
    one.send_message("run-1", "answer", b"from the same handle", 10).unwrap();
    assert_eq!(lease.messages().unwrap().len(), 3);
}
