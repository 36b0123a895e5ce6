//! What a result says of a command, case by case.
use super::*;
use std::time::Duration;

fn outcome(how: How) -> Outcome {
    Outcome {
        line: "make test".to_owned(),
        how,
        tail: String::new(),
        figures: None,
        wall_ms: 5,
        was_kept: false,
        changed: None,
        notes: Vec::new(),
    }
}

fn figures(total: u64, passed: u64, failed: u64, skipped: u64) -> Figures {
    Figures {
        total: Some(total),
        passed: Some(passed),
        failed: Some(failed),
        skipped: Some(skipped),
    }
}

#[test]
fn a_word_says_what_everybody_reads_in_it() {
    for (value, says) in [
        (json!(true), Says::Succeeds),
        (json!(false), Says::Fails),
        (json!("all-pass"), Says::Succeeds),
        (json!("PASSED"), Says::Succeeds),
        (json!("ALL_PASS"), Says::Succeeds),
        (json!("some-fail"), Says::Fails),
        (json!("red"), Says::Fails),
        (json!("not-run"), Says::Nothing),
        (json!("unknown"), Says::Nothing),
        (json!({"failed": 0, "passed": 3, "total": 3}), Says::Succeeds),
        (json!({"failed": 2, "passed": 3, "total": 5}), Says::Fails),
        (json!({"failed": 0, "passed": 0, "total": 0}), Says::Nothing),
        (json!({"passed": 3, "total": 3}), Says::Succeeds),
        (json!({"passed": 2, "total": 3}), Says::Fails),
        (json!({"passed": 2, "skipped": 1, "total": 3}), Says::Succeeds),
        (json!({"status": "FAILED", "details": {"failed": 0}}), Says::Fails),
        (
            json!({"status": "PASSED", "details": {"total": 3, "passed": 3, "failed": 0}}),
            Says::Succeeds,
        ),
        (json!({"details": {"lint_errors": 0}}), Says::Nothing),
        (json!(7), Says::Nothing),
        (json!([]), Says::Nothing),
    ] {
        assert_eq!(read::says(&value), says, "{value}");
    }
}

#[test]
fn what_is_said_is_held_against_how_it_ended() {
    use Verdict::{Refuted, Stale, Unverifiable, Verified};
    let none = Figures::default();
    let ended = |code| outcome(How::Exited(code));
    let counted = |code, read| Outcome { figures: Some(read), ..ended(code) };
    let changing = |code| Outcome { changed: Some(vec!["a.rs".to_owned()]), ..ended(code) };
    for (says, claimed, outcome, verdict, reason) in [
        (Says::Succeeds, none, ended(0), Verified, ""),
        (
            Says::Succeeds,
            none,
            ended(1),
            Refuted,
            "claimed that it succeeds, and `make test` exited with 1",
        ),
        (Says::Fails, none, ended(2), Verified, ""),
        (Says::Fails, none, ended(0), Refuted, "claimed that it fails, and `make test` succeeds"),
        (Says::Succeeds, figures(3, 3, 0, 0), counted(0, figures(3, 3, 0, 0)), Verified, ""),
        (
            Says::Succeeds,
            figures(12, 12, 0, 0),
            counted(0, figures(3, 3, 0, 0)),
            Refuted,
            "claimed 12 tests in all, observed 3; claimed 12 passed, observed 3",
        ),
        (
            Says::Fails,
            figures(3, 1, 2, 0),
            counted(101, figures(3, 2, 1, 0)),
            Refuted,
            "claimed 1 passed, observed 2; claimed 2 failed, observed 1",
        ),
        // Skipped tests may be counted among all, or not.
        (Says::Succeeds, figures(3, 3, 0, 2), counted(0, figures(5, 3, 0, 2)), Verified, ""),
        (Says::Succeeds, figures(3, 3, 0, 0), ended(0), Verified, ""),
        (
            Says::Succeeds,
            none,
            changing(0),
            Stale,
            "`make test` succeeded, but changed the tree it speaks of (1 file: a.rs)",
        ),
        (
            Says::Succeeds,
            none,
            changing(1),
            Refuted,
            "claimed that it succeeds, and `make test` exited with 1",
        ),
        (
            Says::Succeeds,
            none,
            outcome(How::TimedOut(Duration::from_mins(10))),
            Unverifiable,
            "`make test` took longer than 600 s and was ended; give the check a longer timeout in counterfoil.toml",
        ),
        (
            Says::Fails,
            none,
            outcome(How::Unrunnable("no make".to_owned())),
            Unverifiable,
            "`make test` could not be run: no make",
        ),
        (
            Says::Succeeds,
            none,
            outcome(How::Stopped),
            Unverifiable,
            "`make test` was stopped before it ended",
        ),
    ] {
        let judged = judge(&json!(true), says, &claimed, &outcome);
        assert_eq!(
            (judged.verdict, judged.reason.as_str()),
            (verdict, reason),
            "{says:?} {outcome:?}"
        );
    }
}

#[test]
fn commands_of_a_field_stand_or_fall_together() {
    let ran = |how| Came::Ran(Box::new(outcome(how)));
    let manual = || Came::Left("manual: look".to_owned(), "asked of a person".to_owned());
    for (each, verdict, reason) in [
        (vec![ran(How::Exited(0)), manual()], Verdict::Verified, ""),
        (
            vec![ran(How::Exited(0)), ran(How::Exited(3))],
            Verdict::Refuted,
            "1 of 2 commands fails: `make test` (exit code 3)",
        ),
        (
            vec![manual()],
            Verdict::Unverifiable,
            "nothing here can be run: manual: look (asked of a person)",
        ),
        (
            vec![ran(How::Exited(0)), ran(How::Unrunnable("no make".to_owned()))],
            Verdict::Unverifiable,
            "`make test` could not be run: no make",
        ),
    ] {
        let judged = judge_each(&each);
        assert_eq!((judged.verdict, judged.reason.as_str()), (verdict, reason));
    }
}
