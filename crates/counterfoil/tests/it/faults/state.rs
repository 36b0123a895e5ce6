//! Damaged state directories: each is refused with a message and left unchanged.

use crate::shell_project::{SHELL_AGENT, ShellProject, workflow_with_question};
use counterfoil_testkit::CommandOutput;
use std::path::PathBuf;

/// A run that waits for an answer, and its journal.
fn resting() -> (ShellProject, PathBuf) {
    let project = ShellProject::new();
    project.write("flow.yaml", workflow_with_question());
    project.write("agent.sh", "echo '{\"ok\": true}'\n");
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    let journal = project.state().join("journal.db");
    (project, journal)
}

/// What each command that meets the journal says to it.
fn all_who_look(project: &ShellProject) -> [CommandOutput; 4] {
    [
        project.run(&["show", "last"]),
        project.run(&["resume", "last"]),
        project.run(&["answer", "last", "approve", "yes", "--resume"]),
        project.run(&["cancel", "last"]),
    ]
}

#[test]
fn an_event_that_is_not_as_it_was_written_is_named() {
    let (project, journal) = resting();
    let mut bytes = std::fs::read(&journal).unwrap();
    let word = b"{\"attempt-started\":";
    let at =
        bytes.windows(word.len()).position(|window| window == word).expect("an event to damage");
    bytes[at + word.len() + 12] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let damaged = std::fs::read(&journal).unwrap();
    for output in [project.run(&["show", "last"]), project.run(&["show", "last", "--events"])] {
        output.expect(9, &["event 3 of run", "is damaged", "all events before it are intact"]);
    }
    assert_eq!(std::fs::read(&journal).unwrap(), damaged, "it was left as it is");
}

#[test]
fn damage_anywhere_is_an_error_or_harmless_but_never_a_crash() {
    let (project, journal) = resting();
    let good = std::fs::read(&journal).unwrap();
    let before = project.run(&["show", "last", "--events"]).stdout;
    for page in 0..good.len() / 4096 {
        let mut bytes = good.clone();
        for byte in &mut bytes[page * 4096 + 100..page * 4096 + 140] {
            *byte = !*byte;
        }
        std::fs::write(&journal, &bytes).unwrap();
        let output = project.run(&["show", "last", "--events"]);
        match output.code {
            Some(0) => assert_eq!(output.stdout, before, "page {page} was believed"),
            // A header that is damaged says another version.
            Some(2) => output.expect(2, &["journal"]),
            _ => output.expect(9, &["journal"]),
        }
        assert!(!output.stderr.contains("panicked"), "{output:?}");
    }
    std::fs::write(&journal, &good).unwrap();
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn a_journal_that_was_cut_off_is_damaged_and_not_empty() {
    let (project, journal) = resting();
    let good = std::fs::read(&journal).unwrap();
    for length in [good.len() / 2, 4096, 50] {
        std::fs::write(&journal, &good[..length]).unwrap();
        for output in all_who_look(&project) {
            output.expect(9, &["journal.db", "damaged", "restore it from a backup"]);
        }
        assert_eq!(
            std::fs::metadata(&journal).unwrap().len(),
            length as u64,
            "it was left as it is"
        );
    }
    std::fs::write(&journal, &good).unwrap();
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn a_journal_of_which_nothing_is_left_is_destroyed() {
    let (project, journal) = resting();
    let good = std::fs::read(&journal).unwrap();
    for (begin, why) in [
        (&b""[..], "it is empty"),
        (&good[..10], "it is not a SQLite file"),
        (&b"\x9e\x01 random bytes \xff"[..], "it is not a SQLite file"),
    ] {
        std::fs::write(&journal, begin).unwrap();
        let mut outputs = all_who_look(&project).to_vec();
        outputs.push(project.run(&["runs"]));
        outputs.push(project.run(&["receipt", "last", "--output", "."]));
        outputs.push(project.run_workflow("flow.yaml", SHELL_AGENT));
        for output in outputs {
            output.expect(9, &["journal.db is destroyed", why, "restore it from a backup"]);
        }
        assert_eq!(std::fs::read(&journal).unwrap(), begin, "it was left as it is");
    }
    std::fs::write(&journal, &good).unwrap();
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn a_damaged_run_is_named_among_the_others() {
    let (project, journal) = resting();
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    project.run(&["runs"]).expect(0, &["waiting"]);
    let sql = rusqlite::Connection::open(&journal).unwrap();
    sql.execute_batch("UPDATE events SET at = at + 1 WHERE run = 1 AND seq = 3").unwrap();
    drop(sql);
    project.run(&["runs"]).expect(9, &["waiting", "damaged", "event 3 of run"]);
    let output = project.run(&["runs", "--format", "json"]);
    assert_eq!(output.code, Some(9), "{output:?}");
    let runs = output.json();
    let outcomes = [&runs[0]["outcome"], &runs[1]["outcome"]];
    assert_eq!(outcomes, ["waiting", "damaged"], "{runs:#}");
}

#[test]
fn a_journal_of_a_newer_version_is_left_to_it() {
    let (project, journal) = resting();
    let mut bytes = std::fs::read(&journal).unwrap();
    // Where SQLite keeps the user's version.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&journal, &bytes).unwrap();
    for output in all_who_look(&project) {
        output.expect(2, &["journal.db", "version 99", "upgrade the program"]);
    }
    project.run_workflow("flow.yaml", SHELL_AGENT).expect(2, &["version 99"]);
    assert_eq!(std::fs::read(&journal).unwrap(), bytes, "it was left as it is");
}

#[test]
fn a_state_folder_that_is_a_file_is_named() {
    let project = ShellProject::new();
    project.write("flow.yaml", workflow_with_question());
    std::fs::write(project.state(), "somebody's file").unwrap();
    project
        .run_workflow("flow.yaml", SHELL_AGENT)
        .expect(2, &[project.state().to_str().unwrap(), "it is a file", "name another"]);
    project.run(&["show", "last"]).expect(2, &["there are no runs in", "start one"]);
    assert_eq!(std::fs::read_to_string(project.state()).unwrap(), "somebody's file");
    assert_eq!(project.read_or_empty("before"), "");
}
