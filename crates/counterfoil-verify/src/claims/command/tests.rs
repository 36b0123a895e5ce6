//! What a result claim of a command, case by case.
use super::*;
use crate::claims::runner::Unfinished;
use std::time::Duration;

fn outcome(status: CheckStatus) -> CheckOutcome {
    CheckOutcome {
        line: "make test".to_owned(),
        status,
        tail: String::new(),
        excerpt: String::new(),
        figures: None,
        without_pass: None,
        wall_ms: 5,
        from_cache: false,
        put_back: None,
        fails_only_with: None,
        way_out: None,
        said_idle: Vec::new(),
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

/// Claims all of these figures.
fn claimed_counts(figures: &Figures) -> ClaimedCounts {
    let each = [Figure::Total, Figure::Passed, Figure::Failed, Figure::Skipped];
    let stated = |figure| Some((figure, ClaimedNumber::Count(figures.get(figure)?)));
    ClaimedCounts {
        counts: each.into_iter().filter_map(stated).collect(),
        ..ClaimedCounts::default()
    }
}

#[test]
fn a_word_says_what_everybody_reads_in_it() {
    for (value, claim) in [
        (json!(true), CommandClaim::Succeeds),
        (json!(false), CommandClaim::Fails),
        (json!("all-pass"), CommandClaim::Succeeds),
        (json!("PASSED"), CommandClaim::Succeeds),
        (json!("ALL_PASS"), CommandClaim::Succeeds),
        (json!("some-fail"), CommandClaim::Fails),
        (json!("red"), CommandClaim::Fails),
        (json!("not-run"), CommandClaim::Unstated),
        (json!("unknown"), CommandClaim::Unstated),
        (json!({"failed": 0, "passed": 3, "total": 3}), CommandClaim::Succeeds),
        (json!({"failed": 2, "passed": 3, "total": 5}), CommandClaim::Fails),
        (json!({"failed": 0, "passed": 0, "total": 0}), CommandClaim::Unstated),
        (json!({"passed": 3, "total": 3}), CommandClaim::Succeeds),
        (json!({"passed": 2, "total": 3}), CommandClaim::Fails),
        (json!({"passed": 2, "skipped": 1, "total": 3}), CommandClaim::Succeeds),
        (json!({"status": "FAILED", "details": {"failed": 0}}), CommandClaim::Fails),
        (
            json!({"status": "PASSED", "details": {"total": 3, "passed": 3, "failed": 0}}),
            CommandClaim::Succeeds,
        ),
        (json!({"details": {"lint_errors": 0}}), CommandClaim::Unclear),
        (json!({"state": "pass"}), CommandClaim::Succeeds),
        (json!({"verdict": "pass"}), CommandClaim::Succeeds),
        (json!({"ran": 2, "ok_count": 2}), CommandClaim::Unclear),
        (json!({"status": "2/2 passed"}), CommandClaim::Succeeds),
        (json!([{"name": "a", "status": "pass"}]), CommandClaim::Succeeds),
        (json!([{"status": "pass"}, {"status": "fail"}]), CommandClaim::Fails),
        (json!(["not-run", "looks right"]), CommandClaim::Unclear),
        (json!({}), CommandClaim::Unstated),
        (json!({"notes": "", "details": {}}), CommandClaim::Unstated),
        (json!({"failed": 0}), CommandClaim::Succeeds),
        (json!({"failed": 7.5}), CommandClaim::Fails),
        (json!({"failed": true}), CommandClaim::Fails),
        (json!({"failed": null, "passed": null}), CommandClaim::Unstated),
        (json!({"passed": 9999}), CommandClaim::Counts),
        (json!({"passed": "9,999"}), CommandClaim::Counts),
        (json!({"passed": -5}), CommandClaim::Counts),
        (json!({"passed": "yes"}), CommandClaim::Succeeds),
        (json!({"total": 9999}), CommandClaim::Counts),
        (json!({"failed": 0, "passed": 0, "total": 9999}), CommandClaim::Counts),
        (json!({"passed": u64::MAX, "skipped": 1, "total": 3}), CommandClaim::Succeeds),
        (json!({"status": "not-run", "passed": 0, "failed": 0}), CommandClaim::Unstated),
        (json!({"status": "not-run", "passed": 9999}), CommandClaim::Counts),
        (json!(7), CommandClaim::Unclear),
        (json!([]), CommandClaim::Unstated),
    ] {
        assert_eq!(extract::command_claim(&value), claim, "{value}");
    }
}

#[test]
fn what_is_said_is_held_against_how_it_ended() {
    use Verdict::{Refuted, Stale, Unverifiable, Verified};
    let none = Figures::default();
    let ended = |code| outcome(CheckStatus::Exited(code));
    let counted = |code, read| CheckOutcome { figures: Some(read), ..ended(code) };
    let idle =
        |read: Figures| CheckOutcome { without_pass: read.without_pass(), ..counted(0, read) };
    let changing = |code| CheckOutcome { changed: Some(vec!["a.rs".to_owned()]), ..ended(code) };
    for (claim, claimed, outcome, verdict, reason) in [
        (CommandClaim::Succeeds, none, ended(0), Verified, ""),
        (
            CommandClaim::Succeeds,
            none,
            ended(1),
            Refuted,
            "claimed to succeed, but `make test` exited with 1",
        ),
        (CommandClaim::Fails, none, ended(2), Verified, ""),
        (CommandClaim::Fails, none, ended(0), Refuted, "claimed to fail, but `make test` succeeds"),
        (
            CommandClaim::Succeeds,
            figures(3, 3, 0, 0),
            counted(0, figures(3, 3, 0, 0)),
            Verified,
            "",
        ),
        (
            CommandClaim::Succeeds,
            figures(12, 12, 0, 0),
            counted(0, figures(3, 3, 0, 0)),
            Refuted,
            "claimed 12 tests in total, observed 3; claimed 12 passed, observed 3",
        ),
        (
            CommandClaim::Fails,
            figures(3, 1, 2, 0),
            counted(101, figures(3, 2, 1, 0)),
            Refuted,
            "claimed 1 passed, observed 2; claimed 2 failed, observed 1",
        ),
        // Skipped tests may be counted among all, or not.
        (
            CommandClaim::Succeeds,
            figures(3, 3, 0, 2),
            counted(0, figures(5, 3, 0, 2)),
            Verified,
            "",
        ),
        (
            CommandClaim::Succeeds,
            figures(3, 3, 0, 0),
            ended(0),
            Unverifiable,
            "`make test` prints no figures in a known format to compare the counts with; configure a report for it",
        ),
        // A check that passes says that nothing failed.
        (CommandClaim::Succeeds, Figures { failed: Some(0), ..none }, ended(0), Verified, ""),
        (
            CommandClaim::Counts,
            Figures { passed: Some(3), ..none },
            counted(1, figures(4, 3, 1, 0)),
            Verified,
            "",
        ),
        (
            CommandClaim::Counts,
            Figures { passed: Some(9999), ..none },
            counted(0, figures(3, 3, 0, 0)),
            Refuted,
            "claimed 9999 passed, observed 3",
        ),
        // The counts that are stated may be right. That the check succeeds says nothing.
        (
            CommandClaim::Succeeds,
            none,
            idle(figures(2, 0, 0, 2)),
            Unverifiable,
            "`make test` exited with 0, but no test passed: 2 skipped of 2",
        ),
        (
            CommandClaim::Succeeds,
            figures(0, 0, 0, 0),
            idle(figures(0, 0, 0, 0)),
            Unverifiable,
            "`make test` exited with 0, but it ran no test",
        ),
        (
            CommandClaim::Succeeds,
            figures(2, 2, 0, 0),
            idle(figures(2, 0, 0, 2)),
            Refuted,
            "claimed 2 passed, observed 0; claimed 0 skipped, observed 2",
        ),
        (
            CommandClaim::Counts,
            Figures { passed: Some(0), ..none },
            idle(figures(2, 0, 0, 2)),
            Verified,
            "",
        ),
        (
            CommandClaim::Succeeds,
            none,
            changing(0),
            Stale,
            "`make test` succeeded, but changed the files that it checks (1 file: a.rs)",
        ),
        (
            CommandClaim::Succeeds,
            none,
            changing(1),
            Refuted,
            "claimed to succeed, but `make test` exited with 1",
        ),
        (
            CommandClaim::Succeeds,
            none,
            outcome(CheckStatus::TimedOut(Duration::from_mins(10))),
            Unverifiable,
            "`make test` took longer than 10 min and was stopped; give the check a longer timeout in counterfoil.toml",
        ),
        (
            CommandClaim::Fails,
            none,
            outcome(CheckStatus::CouldNotRun("no make".to_owned())),
            Unverifiable,
            "`make test` could not be run: no make",
        ),
        (
            CommandClaim::Succeeds,
            none,
            outcome(CheckStatus::Idle("make ran nothing".to_owned())),
            Unverifiable,
            "`make test` exited with 0, but make ran nothing",
        ),
        (
            CommandClaim::Succeeds,
            none,
            outcome(CheckStatus::Unfinished(Unfinished::NoSummary)),
            Unverifiable,
            "`make test` exited with 0 and printed no summary, so its tests did not end in good order",
        ),
        (
            CommandClaim::Fails,
            none,
            outcome(CheckStatus::Unfinished(Unfinished::HasFailures)),
            Unverifiable,
            "`make test` exited with 0, but its summary says that tests failed",
        ),
        (
            CommandClaim::Succeeds,
            none,
            outcome(CheckStatus::Stopped),
            Unverifiable,
            "`make test` was stopped before it ended",
        ),
    ] {
        let assessment = assess(&json!(true), claim, &claimed_counts(&claimed), &outcome);
        assert_eq!(
            (assessment.verdict, assessment.reason.as_str()),
            (verdict, reason),
            "{claim:?} {outcome:?}"
        );
    }
}

#[test]
fn commands_of_a_field_stand_or_fall_together() {
    let ran = |status| FieldCommandRun::Ran(Box::new(outcome(status)));
    let manual =
        || FieldCommandRun::NotRun("manual: look".to_owned(), "a task for a person".to_owned());
    for (each, verdict, reason) in [
        (vec![ran(CheckStatus::Exited(0)), manual()], Verdict::Verified, ""),
        (
            vec![ran(CheckStatus::Exited(0)), ran(CheckStatus::Exited(3))],
            Verdict::Refuted,
            "1 of 2 commands fails: `make test` (exit code 3)",
        ),
        (
            vec![manual()],
            Verdict::Unverifiable,
            "no command can be run: manual: look (a task for a person)",
        ),
        (
            vec![ran(CheckStatus::Exited(0)), ran(CheckStatus::CouldNotRun("no make".to_owned()))],
            Verdict::Unverifiable,
            "`make test` could not be run: no make",
        ),
        (
            vec![ran(CheckStatus::Exited(0)), ran(CheckStatus::Idle("why".to_owned()))],
            Verdict::Unverifiable,
            "`make test` exited with 0, but why",
        ),
        (
            vec![ran(CheckStatus::Exited(0)), FieldCommandRun::OverLimit("false".to_owned())],
            Verdict::Unverifiable,
            "at most 100 commands of a field are run, so 1 more was not run: `false`",
        ),
        (
            vec![ran(CheckStatus::Exited(1)), FieldCommandRun::OverLimit("false".to_owned())],
            Verdict::Refuted,
            "1 of 1 command fails: `make test` (exit code 1)",
        ),
    ] {
        let assessment = assess_each(&each);
        assert_eq!((assessment.verdict, assessment.reason.as_str()), (verdict, reason));
    }
}
