//! `claims stats`: refutation rates over all runs.

use crate::PROGRAM;
use crate::claims::journal::{
    RUN_START, attempt_ended, attempt_started, files_claim, frame_opened, repair_asked, run_ended,
    run_started, tests_claim, write_runs,
};
use counterfoil::claim::Verdict;
use counterfoil_flow::{AttemptOutcome, Cause, Event, Outcome};
use counterfoil_testkit::TestProject;
use serde_json::json;

const DAY: i64 = 86_400_000;

fn run(n: i64, workflow: &str, model: &str, events: Vec<Event>) -> (String, i64, Vec<Event>) {
    let id = format!("run-{n}");
    let mut all = vec![
        run_started(&id, workflow, "command:/opt/bin/agent -p", Some(model)),
        frame_opened("fix"),
    ];
    all.extend(events);
    all.push(run_ended(Outcome::Done, None));
    (id, RUN_START + n * DAY, all)
}

/// Two models on four days: the small one is refuted, and corrects itself once.
fn four_days() -> TestProject {
    let wrong = || {
        files_claim(&["a.rs", "b.rs"], &["a.rs"], "claimed 2 files, 1 of them did not change: b.rs")
    };
    let right = || files_claim(&["a.rs"], &["a.rs"], "");
    let good = || {
        let claims = vec![right(), tests_claim(Verdict::Verified)];
        vec![
            attempt_started("fix", 1),
            attempt_ended("fix", 1, AttemptOutcome::Accepted, claims, &["a.rs"]),
        ]
    };
    let corrected = vec![
        attempt_started("fix", 1),
        repair_asked("fix", 1, vec![]),
        repair_asked("fix", 1, vec![wrong(), tests_claim(Verdict::Verified)]),
        attempt_ended(
            "fix",
            1,
            AttemptOutcome::Accepted,
            vec![right(), tests_claim(Verdict::Refuted)],
            &["a.rs"],
        ),
    ];
    let lost = vec![
        attempt_started("fix", 1),
        attempt_ended(
            "fix",
            1,
            AttemptOutcome::Claim,
            vec![wrong(), tests_claim(Verdict::Unverifiable)],
            &[],
        ),
    ];
    let project = TestProject::new(PROGRAM);
    write_runs(
        &project,
        [
            run(0, "nightly", "large", good()),
            run(1, "nightly", "small", corrected),
            run(2, "nightly", "small", lost),
            run(3, "weekly", "large", good()),
        ],
    );
    project
}

#[test]
fn the_tables_say_who_to_trust_with_what() {
    let project = four_days();
    insta::assert_snapshot!("stats", project.snapshot_verbatim(&["claims", "stats"]));
    insta::assert_snapshot!(
        "stats_by_model",
        project.snapshot_verbatim(&["claims", "stats", "--by", "player,model"])
    );
}

#[test]
fn claims_alone_shows_the_statistics() {
    let project = four_days();
    for arguments in [&[] as &[&str], &["--by", "player,model"], &["--format", "json"]] {
        let alone = project.run(&[&["claims"][..], arguments].concat());
        alone.expect(0, &[]);
        let stats = project.run(&[&["claims", "stats"][..], arguments].concat());
        assert_eq!(alone.stdout, stats.stdout, "{arguments:?}");
    }
}

#[test]
fn no_name_is_broken_at_a_terminal_of_80_columns() {
    let project = four_days();
    let mut command = project.command::<&str>(&[]);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let line = format!("stty rows 40 cols 80; '{program}' claims stats");
    let mut terminal = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    let shown = terminal.output().stdout.replace('\r', "");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    for lines in [
        "CONTRACT, FIELD, AGENT, PLAYER\n         REFUTED  VERIFIED  STALE  UNVERIFIABLE  CORRECTED\n",
        "scene/fix@1, files_changed, worker, agent\n    \
         2 of 5 (40%)         3      0             0          1\n",
        "scene/fix@1, worker, agent\n    1 of 6 (17%)         4         3  0.7 each",
    ] {
        assert!(shown.contains(lines), "{lines}\n{shown}");
    }
}

#[test]
fn spreadsheets_get_a_line_for_each_group() {
    let project = four_days();
    insta::assert_snapshot!(
        "stats_csv",
        project.snapshot_verbatim(&["claims", "stats", "--format", "csv", "--by", "field,model"])
    );
}

#[test]
fn programs_get_counts_and_rates() {
    let project = four_days();
    let (code, all) =
        project.code_and_json(&["claims", "stats", "--by", "model", "--format", "json"]);
    assert_eq!((code, &all["runs"], &all["by"]), (0, &json!(4), &json!(["model"])));
    let groups = all["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    // Those who are refuted most come first.
    let expected = json!({
        "model": "small", "attempts": 2, "accepted": 1, "lost_to_claim": 1, "replies": 4, "violations": 1,
        "violation_rate": 0.25, "repairs": 2, "repairs_per_accepted": 2.0, "claims": 6, "verified": 2, "refuted": 3,
        "stale": 0, "unverifiable": 1, "refutation_rate": 0.6, "corrected": 1, "codes": {"C0301": 1},
    });
    assert_eq!(groups[0], expected);
    assert_eq!(
        (&groups[1]["model"], &groups[1]["refutation_rate"]),
        (&json!("large"), &json!(0.0))
    );
}

#[test]
fn runs_are_chosen_by_workflow_and_time() {
    let project = four_days();
    for (arguments, runs) in [
        (&["--workflow", "weekly"][..], 1),
        (&["--since", "2026-01-04"], 2),
        (&["--since", "2026-01-04T04:00Z"], 1),
        (&["--since", "2026-01-03", "--workflow", "nightly"], 2),
        (&["--since", "2030-01-01"], 0),
        (&["--workflow", "other"], 0),
    ] {
        let (code, all) =
            project.code_and_json(&[&["claims", "stats", "--format", "json"], arguments].concat());
        assert_eq!((code, &all["runs"]), (0, &json!(runs)), "{arguments:?}");
    }
    let output = project.command(&["claims", "stats", "--since", "yesterday"]).output();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("a date such as"));
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let empty = TestProject::new(PROGRAM);
    let none = empty.snapshot_verbatim(&["claims", "stats"]);
    assert!(none.contains("exit 0") && none.contains("there are no runs in"), "{none}");
    assert!(!empty.path(".counterfoil/journal.db").exists(), "looking makes no journal");
    let csv = empty.snapshot_verbatim(&["claims", "stats", "--format", "csv"]);
    assert!(csv.contains("contract,field,agent,player,attempts"), "{csv}");
    let project = four_days();
    let other = project.snapshot_verbatim(&["claims", "stats", "--workflow", "other"]);
    assert!(other.contains("there are no runs of 'other'; available: nightly, weekly"), "{other}");
    let later = project.snapshot_verbatim(&["claims", "stats", "--since", "2030-01-01"]);
    assert!(later.contains("no run has started since then"), "{later}");
}

#[test]
fn a_damaged_run_does_not_take_the_others_away() {
    let project = four_days();
    let unreadable = vec![
        run_started("odd", "nightly", "command:agent", None),
        Event::AttemptLost {
            attempt: "x".to_owned(),
            usage: counterfoil_flow::Usage::default(),
            changed: Vec::new(),
        },
        run_ended(Outcome::Failed, Some(Cause::Claim)),
    ];
    write_runs(&project, [("odd".to_owned(), RUN_START, unreadable)]);
    let journal = std::fs::read(project.path(".counterfoil/journal.db")).unwrap();
    let broken = replaced(&journal, b"{\"attempt-lost\":", b"{\"attempt-lust\":");
    assert_ne!(broken, journal, "the event stands in the file");
    std::fs::write(project.path(".counterfoil/journal.db"), broken).unwrap();
    let output =
        project.command(&["claims", "stats", "--by", "model", "--format", "json"]).output();
    let words = output.stderr.clone();
    assert_eq!(output.code, Some(9), "{words}");
    assert!(words.contains("run odd is only counted in part"), "{words}");
    let all: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(all["groups"].as_array().unwrap().len(), 2);
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    while let Some(at) = out.windows(from.len()).position(|window| window == from) {
        out[at..at + from.len()].copy_from_slice(to);
    }
    out
}

/// Prints how long it takes: `cargo test --release -p counterfoil --test claims -- --ignored
/// --nocapture ten_thousand`.
#[test]
#[ignore = "measures"]
fn ten_thousand_runs() {
    let project = TestProject::new(PROGRAM);
    let events = |n: i64| {
        let claims = || vec![files_claim(&["a.rs"], &["a.rs"], ""), tests_claim(Verdict::Verified)];
        let rounds = (1..=3).flat_map(|round| {
            [
                attempt_started("fix", round),
                attempt_ended("fix", round, AttemptOutcome::Accepted, claims(), &["a.rs"]),
            ]
        });
        run(n % 300, "nightly", "large", rounds.collect())
    };
    write_runs(&project, (0..10_000).map(|n| (format!("run-{n}"), RUN_START, events(n).2)));
    let began = std::time::Instant::now();
    let (_, all) = project.code_and_json(&["claims", "stats", "--format", "json"]);
    println!("10,000 runs of 9 events in {:?}", began.elapsed());
    assert_eq!((&all["runs"], &all["groups"][0]["attempts"]), (&json!(10_000), &json!(30_000)));
}

/// What the commands say of themselves.
#[test]
fn help() {
    let project = TestProject::new(PROGRAM);
    for (name, arguments) in
        [("help_stats", &["claims", "stats", "--help"][..]), ("help_verify", &["verify", "--help"])]
    {
        insta::assert_snapshot!(name, project.snapshot_verbatim(arguments));
    }
}
