//! Leases: acquiring, renewing, losing and releasing them.

use super::*;

/// The environment variable with the folder for the helper process.
const HOLD: &str = "JOURNAL_TEST_HOLD";

#[test]
fn two_handles_cannot_hold_one_run() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
    let lease = start(&one, "run-1");
    for journal in [&one, &two] {
        let error = journal.acquire("run-1").unwrap_err();
        let Error::AlreadyDriven { run, pid, since } = &error else { panic!("{error}") };
        assert_eq!((run.as_str(), *pid), ("run-1", std::process::id()));
        assert!(*since > 0);
    }
    assert!(two.run("run-1").unwrap().driver.unwrap().live);
    lease.release().unwrap();
    let (lease, _) = two.acquire("run-1").unwrap();
    assert_eq!(lease.epoch(), 2);
    drop(lease);
    wait_until("a dropped lease is given back", || two.run("run-1").unwrap().driver.is_none());
    assert_eq!(one.acquire("run-1").unwrap().0.epoch(), 3);
    assert_eq!(one.acquire("none").unwrap_err(), Error::NoRun { run: "none".into() });
}

#[test]
fn a_holder_who_was_replaced_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (Journal::open(folder.path()).unwrap(), Journal::open(folder.path()).unwrap());
    let old = start(&one, "run-1");
    let message = one.send_message("run-1", "answer", b"yes", 1).unwrap();
    raw(folder.path()).execute("UPDATE runs SET heartbeat = heartbeat - 40000", []).unwrap();
    assert!(!two.run("run-1").unwrap().driver.unwrap().live);
    let (new, _) = two.acquire("run-1").unwrap();
    let batch = Batch {
        snapshot: Some(b"old".to_vec()),
        summary: Some(Summary { state: "old".into(), ..Summary::default() }),
        consumed: vec![message],
        ..events_batch(&["old"])
    };
    let fenced = Error::Fenced { run: "run-1".into(), epoch: 1 };
    assert_eq!(old.append_blocking(batch), Err(fenced.clone()));
    assert_eq!(new.append_blocking(events_batch(&["new"])).unwrap(), 2);
    assert_eq!(bodies(&two.events("run-1", 1).unwrap()), ["first", "new"]);
    assert_eq!(two.run("run-1").unwrap().summary.state, "");
    assert_eq!(new.messages().unwrap().len(), 1);
    assert_eq!(
        old.release(),
        Err(fenced),
        "giving back what was lost does not take it from the new holder"
    );
    assert_eq!(new.append_blocking(events_batch(&["newer"])).unwrap(), 3);
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

    // There must be no heartbeat between making it stale and acquiring it.
    let file = raw(folder.path());
    file.execute("UPDATE runs SET boot = 'an earlier one' WHERE id = 'lost'", []).unwrap();
    let (taken, _) = two.acquire("lost").unwrap();
    let (at_take, other) = (beat("lost"), beat("kept"));
    wait_until("more heartbeats", || beat("kept") > other + 50);
    assert_eq!(beat("lost"), at_take, "the first holder's heartbeat does not count for the second");
    assert_eq!(taken.append_blocking(events_batch(&["mine"])).unwrap(), 2);
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
    // The next heartbeat finds no lease to renew. That has no visible effect, so the test waits.
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
        let (taken, _) = two.acquire("run-1").unwrap_or_else(|error| panic!("{change}: {error}"));
        assert!(one.acquire("run-1").is_err());
        std::mem::forget(taken);
    }
    // In another namespace the process cannot be found: only the age of the heartbeat counts.
    let file = raw(folder.path());
    file.execute("UPDATE runs SET namespace = 'pid:[1]', pid = 2147483647", []).unwrap();
    assert!(matches!(two.acquire("run-1"), Err(Error::AlreadyDriven { pid: 2_147_483_647, .. })));
    file.execute("UPDATE runs SET heartbeat = heartbeat + 20000", []).unwrap();
    assert!(matches!(two.acquire("run-1"), Err(Error::AlreadyDriven { .. })));
    file.execute("UPDATE runs SET heartbeat = heartbeat + 90000", []).unwrap();
    two.acquire("run-1").unwrap();
}

#[test]
#[ignore = "not a test: the process that the next one kills"]
fn holding_process() {
    let Ok(folder) = std::env::var(HOLD) else { return };
    let journal = Journal::open(Path::new(&folder)).unwrap();
    let lease = start(&journal, "run-1");
    lease.append_blocking(events_batch(&["from the child"])).unwrap();
    fs::write(Path::new(&folder).join("ready"), "").unwrap();
    // Ends with the kill, or when the test ends.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

fn holding_child(folder: &Path) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal::leases::holding_process", "--ignored", "--nocapture"])
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
    let held = journal.acquire("run-1").unwrap_err();
    assert!(matches!(held, Error::AlreadyDriven { pid, .. } if pid == child.id()), "{held}");
    assert!(held.to_string().contains("end that process"), "{held}");
    child.kill().unwrap();
    // The process is still a zombie here; a zombie holds no lease.
    wait_until("the kill", || !journal.run("run-1").unwrap().driver.unwrap().live);
    let (lease, acquired) = journal.acquire("run-1").unwrap();
    child.wait().unwrap();
    assert_eq!((lease.epoch(), acquired.info.last_seq), (2, 2));
    assert_eq!(bodies(&journal.events("run-1", 1).unwrap()), ["first", "from the child"]);
    assert_eq!(lease.append_blocking(events_batch(&["went on"])).unwrap(), 3);
}
