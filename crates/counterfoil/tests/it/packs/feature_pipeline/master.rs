//! MASTER.md shows the current state after every event, and after a kill.

use super::{
    ONE, Pipeline, approved, coded, doc, failing, log, master, of, pipeline, ready, rejected,
    status,
};
use crate::packs::run::ScenarioRun;

/// Has a reply keep MASTER.md as it finds it, under a number.
fn keep(n: usize) -> String {
    super::in_repository(&format!("cp .claude/features/MASTER.md .git/master-{n}"))
}

fn kept(ran: &ScenarioRun, n: usize) -> String {
    ran.read(&format!(".git/master-{n}"))
}

#[test]
fn it_has_a_title_a_table_a_legend_and_a_log() {
    let ran = pipeline()
        .plan("a", &["b"], 1, 2)
        .plan("b", &[], 2, 1)
        .build("b")
        .tdd("a", "1/2")
        .tdd("a", "2/2")
        .review("a", approved())
        .gate("a", ready())
        .run(&["--task", "a: Add a\nb: Add b"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let master = master(&ran);
    let lines: Vec<&str> = master.lines().collect();
    assert_eq!(lines[0], "# Features");
    assert!(
        lines[2].starts_with("Generated: 2") && lines[3].starts_with("Status: done"),
        "{master}"
    );
    let table = [
        "| # | Feature | Status | TODO Doc | Dependencies | Phases |",
        "|---|---|---|---|---|---|",
        "| 1 | b | Done | .claude/features/b-TODO.md | none | 1/1 |",
        "| 2 | a | Done | .claude/features/a-TODO.md | b | 2/2 |",
    ];
    assert_eq!(lines[5..9], table, "{master}");
    assert!(master.find("## Legend").unwrap() < master.find("## Progress log").unwrap());
    for word in ["Pending", "Planned", "In progress", "Done", "Blocked", "Skipped"] {
        assert!(master.split("## Legend").nth(1).unwrap().contains(word), "{word}");
    }
}

#[test]
fn it_is_right_after_every_event_and_its_log_only_grows() {
    let ran = pipeline()
        .plan("a", &[], 1, 2)
        .plan("b", &["a"], 1, 1)
        .tdd("a", "1/2")
        .exec(&keep(0))
        .says("tdd-task-executor", failing("2/2"))
        .exec(&keep(1))
        .tdd("a", "2/2")
        .exec(&keep(2))
        .review("a", rejected("the name says nothing"))
        .exec(&keep(3))
        .fix_after("a", "2/2")
        .exec(&keep(4))
        .review("a", approved())
        .exec(&keep(5))
        .gate("a", ready())
        .exec(&keep(6))
        .tdd("b", "1/1")
        .exec(&keep(7))
        .review("b", approved())
        .gate("b", ready())
        .run(&["--task", "a: Add a\nb: Add b"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let expected = [
        ("In progress (tdd)", "0/2", "order: a, b"),
        ("In progress (tdd)", "1/2", "a: phase 1/2 done, tests added: 1"),
        (
            "In progress (tdd)",
            "1/2",
            "a: phase 2/2 is not done: this test fails: adds_one; count again",
        ),
        ("In progress (review)", "2/2", "a: phase 2/2 done, tests added: 1"),
        ("In progress (fix)", "2/2", "a: review 1 rejected, issues: 1"),
        ("In progress (review)", "2/2", "a: fixed, tests added: 0"),
        ("In progress (merge-gate)", "2/2", "a: review 2 approved"),
        ("Done", "2/2", "a: committed as "),
    ];
    let mut before = String::new();
    for (n, (wanted, phases, last)) in expected.into_iter().enumerate() {
        let now = kept(&ran, n);
        assert_eq!(status(&now, "a"), wanted, "{n}: {now}");
        let row = now.lines().find(|line| line.contains("| a |")).unwrap();
        assert!(row.ends_with(&format!("| {phases} |")), "{n}: {row}");
        assert_eq!(
            status(&now, "b"),
            if n < 7 { "Pending" } else { "In progress (tdd)" },
            "{n}: {now}"
        );
        let log = log(&now);
        assert!(log.lines().last().unwrap().contains(last), "{n}: {log}");
        assert!(
            log.starts_with(&before),
            "{n}: the log is not the earlier one and more:\n{before}\n--\n{log}"
        );
        before = log.to_owned();
    }
    let end = master(&ran);
    assert!(log(&end).starts_with(&before), "{end}");
    assert_eq!(["a", "b"].map(|slug| status(&end, slug)), ["Done", "Done"]);
}

#[test]
fn it_says_that_a_person_is_waited_for() {
    let mut scenario = coded();
    for round in 1..=3 {
        scenario = scenario.review("a", rejected("no"));
        if round < 3 {
            scenario = scenario.fix("a");
        }
    }
    let ran = scenario.run(&ONE);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let waiting = master(&ran);
    assert!(waiting.contains("Status: waiting"), "{waiting}");
    assert_eq!(status(&waiting, "a"), "In progress (decide)");
    let ran = ran.answer_and_resume("decide", "skip");
    let after = master(&ran);
    assert!(log(&after).starts_with(log(&waiting)) && after.contains("Status: blocked"), "{after}");
}

#[test]
fn a_refused_list_leaves_none() {
    let ran = pipeline().run(&["--task", " "]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(!ran.path(".claude/features/MASTER.md").exists());
}

#[test]
fn kill_and_resume_in_the_middle_of_a_review_iteration() {
    let scenario = coded()
        .built_in_only()
        .review("a", rejected("issue 1"))
        .fix("a")
        .review("a", rejected("issue 2"))
        .exec(&super::in_repository(
            "if [ ! -e .git/second-review ]; then : > .git/second-review; sleep 60; fi",
        ))
        .fix("a")
        .review("a", rejected("issue 3"));
    let mut live = scenario.start(&ONE);
    live.wait_for_file(".git/second-review");
    let project = live.kill();
    let before = ScenarioRun::show(project);
    let log_before = log(&master(&before)).to_owned();
    assert!(log_before.ends_with("a: fixed, tests added: 0"), "{log_before}");
    let ran = before.resume(&[]);
    // The counts are those of before: the third rejection asks, and what was done is not done
    // again.
    assert_eq!(ran.ended(), ("waiting", None, 4), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"]);
    assert_eq!(of(&ran, "build/a/work/fix"), ["accepted"; 2]);
    assert_eq!(
        of(&ran, "build/a/work/review").iter().filter(|outcome| *outcome == "accepted").count(),
        3
    );
    assert_eq!(of(&ran, "plan/a/write"), ["accepted"]);
    let master = master(&ran);
    assert!(log(&master).starts_with(&log_before), "{master}");
    assert!(log(&master).contains("a: review 3 rejected"), "{master}");
    assert_eq!(ran.read(&doc("a")).matches("- [x] phase 1/1").count(), 1);
}
