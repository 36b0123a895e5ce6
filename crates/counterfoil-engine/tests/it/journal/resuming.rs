//! The journal: resuming.

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
