//! What an attempt changed: the differences of its files, beside its result and beside questions.

use crate::runs::{self, Run, attempt};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, ChangedFiles, Ended, Event};
use counterfoil_workspace::Workspaces;
use counterfoil_workspace::snapshot::FileAt;
use counterfoil_workspace::workspaces::StepChanges;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PAGE: &str = "/runs/a/attempts/Work%231";
const RAW: &str = "/api/v1/runs/a/attempts/Work%231/diff";
const FRAGMENT: &str = "/fragments/runs/a/attempts/Work%231/diff";

fn ended(changed: Option<ChangedFiles>) -> Event {
    let ended = Ended::new("Work#1".to_owned(), AttemptOutcome::Accepted);
    Event::AttemptEnded(Box::new(Ended { changed, ..ended }))
}

fn added(files: &[(String, String)]) -> ChangedFiles {
    ChangedFiles {
        added: files.iter().map(|(path, _)| path.clone()).collect(),
        total: files.len() as u64,
        ..ChangedFiles::default()
    }
}

/// A run that asks a question after an attempt that wrote these files.
fn wrote(site: &Site, files: &[(String, String)]) -> (Journal, Run) {
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    let top = site.folder().join("repository");
    std::fs::create_dir_all(&top).unwrap();
    for (path, text) in files {
        runs::write(&top, path, text);
    }
    let before = |paths: &[&Path]| -> Vec<std::io::Result<Option<FileAt>>> {
        paths.iter().map(|_| Ok(None)).collect()
    };
    let changes = StepChanges {
        top: &top,
        files: files.iter().map(|(path, _)| PathBuf::from(path)).collect(),
        before: &before,
        existed: BTreeSet::new(),
    };
    Workspaces::new(&state, &top).record_step("a", "Work#1", &changes).unwrap();
    run.add(&[attempt(&["Work"]), ended(Some(added(files)))]);
    runs::ask(&mut run, "ok", "May it go out?");
    (journal, run)
}

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[test]
fn the_page_shows_files_with_counts_and_lines_with_signs() {
    let site = Site::start();
    let _run = wrote(&site, &[file("src/a.rs", "one\ntwo\n"), file("b.bin", "\0")]);
    let html = site.page(PAGE);
    for part in
        [">src/a.rs<", ">+2<", ">2 lines added<", "class=\"added\">+one</span>", "no text", RAW]
    {
        assert!(html.contains(part), "{part} in {html}");
    }
    let raw = site.get(RAW).send().expect(200);
    assert_eq!(raw.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(raw.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(
        raw.text(),
        "Binary files /dev/null and b/b.bin differ\n--- /dev/null\n+++ b/src/a.rs\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
}

#[test]
fn the_inbox_loads_the_difference_when_it_is_opened() {
    let site = Site::start();
    let _run = wrote(&site, &[file("src/a.rs", "one\ntwo\n")]);
    let html = site.page("/inbox");
    assert!(html.contains(&format!("hx-get=\"{FRAGMENT}\"")), "{html}");
    assert!(html.contains(&format!("href=\"{PAGE}#diff\"")), "{html}");
    assert!(!html.contains("+one"), "{html}");
    let part = site.page(FRAGMENT);
    assert!(part.contains("class=\"added\">+one</span>"), "{part}");
    assert!(!part.contains("<html"), "{part}");
    let missing = site.get("/fragments/runs/a/attempts/Other%231/diff").send().expect(404);
    assert!(missing.text().contains("has no attempt"), "{}", missing.text());
}

#[test]
fn files_and_lines_beyond_the_bounds_are_counted() {
    let site = Site::start();
    let mut files: Vec<_> = (0..120).map(|n| file(&format!("f{n:03}"), "x\n")).collect();
    files[0].1 = "x\n".repeat(1000);
    files[1].1 = "x".repeat(600 << 10);
    let _run = wrote(&site, &files);
    let html = site.page(PAGE);
    for part in
        ["and 20 more files", "and 601 more lines", "too large to compare here: 614400 bytes"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains(">120</span>"));
    let part = site.page(FRAGMENT);
    assert!(part.contains("and 100 more files") && part.contains("and 921 more lines"), "{part}");
    assert!(!site.get(RAW).send().expect(200).text().contains("left out"));
}

#[test]
fn names_and_lines_are_shown_and_not_obeyed() {
    let site = Site::start();
    let attack = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[31m";
    let _run = wrote(&site, &[file(attack, attack)]);
    for target in [PAGE, FRAGMENT, "/inbox"] {
        let html = site.page(target);
        for raw in ["<img", "\u{202e}", "\u{1b}"] {
            assert!(!html.contains(raw), "{raw:?} in {target}: {html}");
        }
    }
    assert!(site.page(PAGE).contains("alert(1)"));
}

#[test]
fn a_page_says_why_there_is_no_difference() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&[attempt(&["Work"])]);
    assert!(site.page(PAGE).contains("What it changes is shown when it has ended."));
    run.add(&[ended(None)]);
    assert!(site.page(PAGE).contains("It was not observed what changed: there is no snapshot."));
    site.get(RAW).send().expect_problem(404, "not-found");
}

#[test]
fn a_record_that_was_removed_leaves_the_names() {
    let site = Site::start();
    let _run = wrote(&site, &[file("src/a.rs", "one\n")]);
    assert!(site.page(PAGE).contains("+one"));
    std::fs::remove_dir_all(site.state("state").join("undo")).unwrap();
    let html = site.page(PAGE);
    assert!(html.contains("There is no record of the contents."), "{html}");
    assert!(html.contains("src/a.rs") && !html.contains("+one"), "{html}");
}

#[test]
fn an_attempt_that_changed_nothing_says_so() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&[attempt(&["Work"]), ended(Some(ChangedFiles::default()))]);
    assert!(site.page(PAGE).contains("No files were changed."));
}
