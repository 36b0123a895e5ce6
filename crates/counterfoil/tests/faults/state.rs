//! State folders that are no longer what was written: each is refused in words, and left as it is.

use crate::house::{AGENT, House, Said, asking_first};
use std::path::PathBuf;

/// A run that waits for an answer, and its journal.
fn resting() -> (House, PathBuf) {
    let house = House::new();
    house.file("flow.yaml", asking_first());
    house.file("agent.sh", "echo '{\"ok\": true}'\n");
    assert_eq!(house.work("flow.yaml", AGENT).code, Some(4));
    let journal = house.state().join("journal.db");
    (house, journal)
}

/// What each command that meets the journal says to it.
fn all_who_look(house: &House) -> [Said; 4] {
    [
        house.run(&["show", "last"]),
        house.run(&["resume", "last"]),
        house.run(&["answer", "last", "approve", "yes", "--resume"]),
        house.run(&["cancel", "last"]),
    ]
}

#[test]
fn an_event_that_is_not_as_it_was_written_is_named() {
    let (house, journal) = resting();
    let mut bytes = std::fs::read(&journal).unwrap();
    let word = b"{\"attempt-started\":";
    let at =
        bytes.windows(word.len()).position(|window| window == word).expect("an event to damage");
    bytes[at + word.len() + 12] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let damaged = std::fs::read(&journal).unwrap();
    for said in [house.run(&["show", "last"]), house.run(&["show", "last", "--events"])] {
        said.expect(
            2,
            &["event 3 of run", "is not as it was written", "every event before it is intact"],
        );
    }
    assert_eq!(std::fs::read(&journal).unwrap(), damaged, "it was left as it is");
}

#[test]
fn damage_anywhere_is_an_error_or_harmless_but_never_a_crash() {
    let (house, journal) = resting();
    let good = std::fs::read(&journal).unwrap();
    let before = house.run(&["show", "last", "--events"]).out;
    for page in 0..good.len() / 4096 {
        let mut bytes = good.clone();
        for byte in &mut bytes[page * 4096 + 100..page * 4096 + 140] {
            *byte = !*byte;
        }
        std::fs::write(&journal, &bytes).unwrap();
        let said = house.run(&["show", "last", "--events"]);
        match said.code {
            Some(0) => assert_eq!(said.out, before, "page {page} was believed"),
            _ => said.expect(2, &["journal"]),
        }
        assert!(!said.err.contains("panicked"), "{said:?}");
    }
    std::fs::write(&journal, &good).unwrap();
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    house.is_whole();
}

#[test]
fn a_journal_that_was_cut_off_is_damaged_and_not_empty() {
    let (house, journal) = resting();
    let good = std::fs::read(&journal).unwrap();
    for length in [good.len() / 2, 4096, 50] {
        std::fs::write(&journal, &good[..length]).unwrap();
        for said in all_who_look(&house) {
            said.expect(2, &["journal.db", "damaged", "restore it from a copy"]);
        }
        assert_eq!(
            std::fs::metadata(&journal).unwrap().len(),
            length as u64,
            "it was left as it is"
        );
    }
    std::fs::write(&journal, &good).unwrap();
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    house.is_whole();
}

#[test]
fn a_journal_of_a_newer_version_is_left_to_it() {
    let (house, journal) = resting();
    let mut bytes = std::fs::read(&journal).unwrap();
    // Where SQLite keeps the user's version.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&journal, &bytes).unwrap();
    for said in all_who_look(&house) {
        said.expect(2, &["journal.db", "version 99", "upgrade the program"]);
    }
    house.work("flow.yaml", AGENT).expect(2, &["version 99"]);
    assert_eq!(std::fs::read(&journal).unwrap(), bytes, "it was left as it is");
}

#[test]
fn a_state_folder_that_is_a_file_is_named() {
    let house = House::new();
    house.file("flow.yaml", asking_first());
    std::fs::write(house.state(), "somebody's file").unwrap();
    house
        .work("flow.yaml", AGENT)
        .expect(2, &[house.state().to_str().unwrap(), "it is a file", "name another"]);
    house.run(&["show", "last"]).expect(2, &["there are no runs in", "start one"]);
    assert_eq!(std::fs::read_to_string(house.state()).unwrap(), "somebody's file");
    assert_eq!(house.read("before"), "");
}
