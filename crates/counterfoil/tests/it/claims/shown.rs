//! The claims of one run: in its report, at its end, and in the table.

use crate::PROGRAM;
use crate::claims::journal::{
    RUN_START, attempt_ended, attempt_started, claim_report, files_claim, frame_opened,
    repair_asked, run_ended, run_started, tests_claim, write_runs,
};
use counterfoil::claim::{ClaimKind, ClaimPolicy, ClaimReport, Verdict};
use counterfoil_flow::{AttemptOutcome, Cause, Event, Outcome};
use counterfoil_testkit::TestProject;
use serde_json::json;

const RUN: &str = "0199b8a6-0000-7000-8000-000000000001";
const NO_CHECK: &str = "there is no check 'lint'; the claim stays not verified until there is one: \
                        add `lint = \"…\"` to [checks] in counterfoil.toml";

/// A run in which every verdict comes up: one claim is corrected, one goes stale, one is refuted to
/// the end.
fn a_night() -> TestProject {
    let project = TestProject::new(PROGRAM);
    let unverifiable = ClaimReport {
        reason: NO_CHECK.to_owned(),
        policy: ClaimPolicy::Record,
        ..claim_report("lint_clean", ClaimKind::Command, Verdict::Unverifiable)
    };
    let wrong = files_claim(
        &["src/a.rs", "src/b.rs", "src/c.rs"],
        &["src/a.rs", "src/b.rs"],
        "claimed 3 files, 1 of them did not change: src/c.rs",
    );
    let right = files_claim(&["src/a.rs", "src/b.rs"], &["src/a.rs", "src/b.rs"], "");
    let count = ClaimReport {
        claimed: json!(12),
        observed: json!(9),
        reason: "claimed 12, the list has 9".to_owned(),
        ..claim_report("tests_added", ClaimKind::Count, Verdict::Refuted)
    };
    write_runs(
        &project,
        [(
            RUN.to_owned(),
            RUN_START,
            vec![
                run_started(RUN, "nightly", "command:/opt/bin/agent -p", Some("large")),
                frame_opened("implement"),
                attempt_started("implement", 1),
                repair_asked("implement", 1, vec![wrong, tests_claim(Verdict::Verified)]),
                attempt_ended(
                    "implement",
                    1,
                    AttemptOutcome::Accepted,
                    vec![right, tests_claim(Verdict::Verified), unverifiable],
                    &["src/a.rs", "src/b.rs"],
                ),
                attempt_started("polish", 1),
                attempt_ended("polish", 1, AttemptOutcome::Accepted, vec![count], &["src/d.rs"]),
                run_ended(Outcome::Done, None),
            ],
        )],
    );
    project
}

#[test]
fn the_table_has_claimed_observed_verdict_evidence() {
    insta::assert_snapshot!("table", a_night().snapshot_verbatim(&["show", "last", "--claims"]));
}

#[test]
fn the_story_says_what_changed_and_what_does_not_hold() {
    let night = a_night();
    insta::assert_snapshot!("screen", night.snapshot_verbatim(&["show"]));
    insta::assert_snapshot!("story", night.snapshot_verbatim(&["show", "last", "--timeline"]));
    insta::assert_snapshot!("trouble", night.snapshot_verbatim(&["show", "last", "--trouble"]));
    insta::assert_snapshot!("step", night.snapshot_verbatim(&["show", "last", "polish"]));
}

#[test]
fn a_renamed_file_is_one_below_its_step_and_at_the_end() {
    let mut ended = attempt_ended("implement", 1, AttemptOutcome::Accepted, vec![], &[]);
    if let Event::AttemptEnded(ended) = &mut ended
        && let Some(changed) = &mut ended.changed
    {
        changed.renamed = vec![("test_calc.py".to_owned(), "sub/test_calc.py".to_owned())];
        changed.total = 1;
    }
    let events = vec![
        run_started(RUN, "nightly", "command:/opt/bin/agent -p", Some("large")),
        frame_opened("implement"),
        attempt_started("implement", 1),
        ended,
        run_ended(Outcome::Done, None),
    ];
    let project = TestProject::new(PROGRAM);
    write_runs(&project, [(RUN.to_owned(), RUN_START, events)]);
    let shown = project.run(&["show", "last", "--timeline"]).stdout;
    let names = "(test_calc.py to sub/test_calc.py)";
    assert!(shown.contains(&format!("files changed: 1 {names}\n")), "{shown}");
    assert!(shown.contains(&format!("\nfiles: 1 changed {names}\n")), "{shown}");
}

#[test]
fn a_claim_that_fails_a_run_is_explained_once_below_its_step_and_once_at_the_end() {
    let why = "claimed 2 files, 1 of them did not change: src/b.rs";
    let wrong = || vec![files_claim(&["src/a.rs", "src/b.rs"], &["src/a.rs"], why)];
    let reason = format!("refuted: files_changed: {why} (after 2 repairs)");
    let mut ended = attempt_ended("implement", 1, AttemptOutcome::Claim, wrong(), &["src/a.rs"]);
    if let Event::AttemptEnded(ended) = &mut ended {
        ended.reason.clone_from(&reason);
    }
    let events = vec![
        run_started(RUN, "nightly", "command:/opt/bin/agent -p", Some("large")),
        frame_opened("implement"),
        attempt_started("implement", 1),
        repair_asked("implement", 1, wrong()),
        repair_asked("implement", 1, wrong()),
        ended,
        Event::RunEnded {
            outcome: Outcome::Failed,
            cause: Some(Cause::Claim),
            reason,
            state: "implement".to_owned(),
            exit: None,
        },
    ];
    let project = TestProject::new(PROGRAM);
    write_runs(&project, [(RUN.to_owned(), RUN_START, events)]);
    for (arguments, times) in [
        (&["show"] as &[&str], 2),
        (&["show", "last", "--timeline"], 2),
        (&["show", "last", "--trouble"], 1),
    ] {
        let shown = project.run(arguments).stdout;
        assert_eq!(shown.matches(why).count(), times, "{arguments:?}\n{shown}");
    }
}

#[test]
fn programs_get_every_claim_and_the_summary() {
    let (code, shown) = a_night().code_and_json(&["show", "last", "--claims", "--format", "json"]);
    assert_eq!((code, &shown["run"]), (0, &json!(RUN)));
    assert_eq!(
        shown["summary"],
        json!({"made": 5, "verified": 1, "refuted": 1, "stale": 1, "unverifiable": 1, "corrected": 1,
            "unverifiable_because": [NO_CHECK]})
    );
    let claims = shown["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 6, "what was corrected is kept");
    let first = &claims[0];
    for (key, value) in [
        ("path", json!(["implement"])),
        ("agent", json!("worker")),
        ("player", json!("agent")),
        ("n", json!(1)),
        ("visit", json!(1)),
        ("attempt", json!(1)),
        ("reply", json!(1)),
        ("contract", json!("scene/fix@1")),
        ("claim", json!("files_changed")),
        ("verdict", json!("refuted")),
        ("standing", json!("refuted")),
        ("corrected", json!(true)),
        ("superseded", json!(true)),
        ("observed", json!(["src/a.rs", "src/b.rs"])),
    ] {
        assert_eq!(first[key], value, "{key}");
    }
    let stale = &claims[3];
    assert_eq!((&stale["verdict"], &stale["standing"]), (&json!("verified"), &json!("stale")));
    assert_eq!(stale["since"], "polish changed 1 file since");
}

#[test]
fn programs_get_what_went_wrong() {
    let night = a_night();
    let (code, shown) = night.code_and_json(&["show", "last", "--trouble", "--format", "json"]);
    assert_eq!((code, &shown["run"]), (0, &json!(RUN)));
    let all = shown["trouble"].as_array().unwrap();
    let all: Vec<(&str, &str)> = all
        .iter()
        .map(|one| (one["what"].as_str().unwrap(), one["claim"].as_str().unwrap()))
        .collect();
    assert_eq!(
        all,
        [("refuted", "files_changed"), ("refuted", "tests_added"), ("unverifiable", "lint_clean")]
    );
    let output = night.run(&["show", "last", "--timeline", "--format", "json"]);
    output.expect(2, &["`--events` prints every event as a line of JSON"]);
}

#[test]
fn a_run_without_claims_says_so() {
    let project = TestProject::new(PROGRAM);
    let events = vec![
        run_started(RUN, "quiet", "script:x", None),
        frame_opened("a"),
        run_ended(Outcome::Done, None),
    ];
    write_runs(&project, [(RUN.to_owned(), RUN_START, events)]);
    let shown = project.snapshot_verbatim(&["show", "last", "--claims"]);
    assert!(shown.contains("exit 0") && shown.contains("no claims were verified"), "{shown}");
    let (_, json) = project.code_and_json(&["show", "last", "--claims", "--format", "json"]);
    assert_eq!((&json["claims"], &json["summary"]["verified"]), (&json!([]), &json!(0)));
    let story = project.snapshot_verbatim(&["show", "last"]);
    assert!(!story.contains("claims:"), "{story}");
}

#[test]
fn the_journal_and_the_table_are_not_asked_for_at_once() {
    let output = a_night().command(&["show", "last", "--claims", "--events"]).output();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("cannot be used with"));
}

#[test]
fn what_an_agent_wrote_does_not_reach_the_terminal_as_it_is() {
    let project = TestProject::new(PROGRAM);
    let hostile = ClaimReport {
        claim: "files\u{1b}[2J".to_owned(),
        claimed: json!(["a\nb\u{1b}]0;x\u{7}", "\u{202e}sr.c", "x".repeat(5000)]),
        reason: "y\r\n".repeat(3000),
        ..claim_report("files", ClaimKind::FilesChanged, Verdict::Refuted)
    };
    let many = (0..200).map(|n| ClaimReport { claim: format!("c{n}"), ..hostile.clone() });
    let claims = many.chain([hostile.clone()]).collect();
    let events = vec![
        run_started(RUN, "w", "script:x", None),
        frame_opened("a"),
        attempt_started("a", 1),
        repair_asked("a", 1, vec![hostile.clone()]),
        attempt_ended("a", 1, AttemptOutcome::Accepted, claims, &["\u{1b}[31mred", "two\nlines"]),
        run_ended(Outcome::Done, None),
    ];
    write_runs(&project, [(RUN.to_owned(), RUN_START, events)]);
    for arguments in [
        &["show", "last"][..],
        &["show", "last", "--claims"],
        &["show", "last", "--timeline"],
        &["show", "last", "--trouble"],
        &["show", "last", "a"],
    ] {
        let shown = project.snapshot_verbatim(arguments);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{arguments:?}");
        assert!(!shown.contains('\u{202e}'), "{arguments:?}");
    }
    let table = project.snapshot_verbatim(&["show", "last", "--claims"]);
    let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 400, "a line is {widest} wide");
}
