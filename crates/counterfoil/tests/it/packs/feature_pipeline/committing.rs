//! A feature that is ready becomes exactly one commit.

use super::{
    ONE, Pipeline, about, approved, commits, doc, done, log, master, pipeline, planned, ready,
    reviewed, status,
};
use crate::packs::run::ScenarioRun;

const TWO: [&str; 2] = ["--task", "a: Add a\nb: Add b"];

#[test]
fn one_commit_for_each_feature_and_never_a_push() {
    // The upstream is a bare repository beside the copy that the run is in.
    let ran = pipeline()
        .git(&["init", "-q", "--bare", ".upstream.git"])
        .file(".gitignore", ".upstream.git\n")
        .commit()
        .git(&["remote", "add", "origin", "./.upstream.git"])
        .git(&["push", "-q", "--set-upstream", "origin", "main"])
        .plan("a", &[], 1, 2)
        .plan("b", &["a"], 1, 1)
        .tdd("a", "1/2")
        .tdd("a", "2/2")
        .review("a", super::rejected("the name says nothing"))
        .fix_after("a", "2/2")
        .review("a", approved())
        .gate("a", ready())
        .build("b")
        .run(&TWO);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(commits(&ran)[1..], ["feat(a): Add a", "feat(b): Add b"]);
    let (ahead, upstream) =
        (["rev-list", "--count", "origin/main..HEAD"], ["ls-remote", "origin", "main"]);
    assert_eq!(ran.git(&ahead).trim(), "2");
    let base = ran.git(&["rev-parse", "HEAD~2"]);
    assert_eq!(ran.git(&upstream).split_whitespace().next(), Some(base.trim()), "somebody pushed");
}

#[test]
fn a_commit_holds_what_was_changed_for_the_feature_and_its_todo_document() {
    let ran = planned()
        .file("mine.txt", "not yours\n")
        .file("README.md", "# Mine\n")
        .build("a")
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let files = ran.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), [doc("a").as_str(), "src/a.rs", "tests/a_1.rs"]);
    let left = ran.git(&["status", "--short"]);
    assert!(left.contains(" M README.md") && left.contains("?? mine.txt"), "{left}");
}

#[test]
fn what_was_written_before_a_kill_is_in_the_commit_too() {
    let waits = super::in_repository("if [ ! -e .git/began ]; then : > .git/began; sleep 60; fi");
    let scenario = planned()
        .built_in_only()
        .says("tdd-task-executor", done("1/1"))
        .writes("src/a.rs", "// a\n")
        .tests("a_1")
        .exec(&waits);
    let mut live = scenario.review("a", approved()).gate("a", ready()).start(&ONE);
    live.wait_for_file(".git/began");
    let ran = ScenarioRun::show(live.kill()).resume(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let files = ran.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), [doc("a").as_str(), "src/a.rs", "tests/a_1.rs"]);
}

#[test]
fn files_that_were_deleted_are_deleted_in_the_commit() {
    let ran = planned()
        .says("tdd-task-executor", done("1/1"))
        .deletes("src/lib.rs")
        .tests("a_1")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.git(&["show", "--name-status", "--format=", "HEAD"]).contains("D\tsrc/lib.rs"));
}

#[test]
fn a_long_text_is_short_in_the_subject_and_whole_below() {
    let text =
        "Let people who have lost their key ask for another one by mail, twice a day at most";
    let ran = planned().build("a").run(&["--task", &format!("a: {text}")]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let message = ran.git(&["log", "-1", "--format=%B"]);
    let (subject, body) = message.split_once("\n\n").unwrap();
    assert_eq!(subject, "feat(a): Let people who have lost their key ask for another one by m…");
    assert!(body.starts_with(text), "{body}");
}

#[test]
fn a_hook_that_refuses_the_commit_blocks_the_feature() {
    let ran = reviewed()
        .file(".git/hooks/pre-commit", "#!/bin/sh\necho 'a ticket is missing'\nexit 1\n")
        .git(&["-c", "alias.allow=!chmod +x .git/hooks/pre-commit", "allow"])
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("a ticket is missing"), "{}", ran.reason());
    assert_eq!(commits(&ran), [""; 0]);
    assert_eq!(status(&master(&ran), "a"), "Blocked");
}

#[test]
fn a_gate_that_is_not_passed_commits_nothing() {
    let ran = reviewed().gate("a", super::refused("no")).fix("a").run(&ONE);
    assert_eq!(commits(&ran), [""; 0], "{ran:?}");
}

#[test]
fn the_log_names_the_commit() {
    let ran = planned().build("a").run(&ONE);
    let head = ran.git(&["rev-parse", "HEAD"]);
    let master = master(&ran);
    assert!(log(&master).contains(&format!("a: committed as {}", head.trim())), "{master}");
}

#[test]
fn a_feature_begins_where_the_last_one_was_committed() {
    let ran = pipeline()
        .plan("a", &[], 1, 1)
        .plan("b", &["a"], 1, 1)
        .build("a")
        .says("tdd-task-executor", done("1/1"))
        .when(&about("b"))
        .exec("git log -1 --format=%s > src/b.rs")
        .tests("b_1")
        .review("b", approved())
        .gate("b", ready())
        .run(&TWO);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.read("src/b.rs"), "feat(a): Add a\n");
}
