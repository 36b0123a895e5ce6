//! The optional passes after the review.

use super::{ONE, Pipeline, log, master, of, planned, ready, reviewed, with};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::{Scenario, example};
use serde_json::{Value, json};

fn run(scenario: &Scenario, passes: &str) -> ScenarioRun {
    scenario.run(&["--task", "a: Add a", "--input", &format!("passes={passes}")])
}

fn simplified() -> Value {
    example("feature-pipeline/code-simplifier")
}

fn hunted(severity: &str) -> Value {
    with(
        example("feature-pipeline/silent-failure-hunter"),
        &json!({"severity": severity, "locations": ["src/a.rs:1 - dropped"]}),
    )
}

fn typed(score: u64) -> Value {
    json!({
        "types_analyzed": 2, "quality_score": score, "issues": ["an id is a plain string"],
        "recommendations": ["give the id a type"]
    })
}

#[test]
fn there_are_none_unless_they_are_asked_for() {
    let ran = reviewed().also_ejected().gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.transitions().contains(&"build/a/work: review>merge-gate".to_owned()),
        "{:?}",
        ran.transitions()
    );
}

#[test]
fn all_of_them_come_in_their_order() {
    let scenario = reviewed()
        .says("code-simplifier", simplified())
        .says("silent-failure-hunter", hunted("low"))
        .says("type-design-analyzer", typed(8))
        .gate("a", ready());
    let ran = run(&scenario, "type-design,simplify,silent-failure");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let moves = ran.transitions();
    let steps = ["review>simplify", "judge>hunt", "hunt>types", "types>merge-gate"];
    let at =
        steps.map(|step| moves.iter().position(|taken| *taken == format!("build/a/work: {step}")));
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{moves:?}");
}

#[test]
fn agents_names_are_good_too() {
    let scenario = reviewed()
        .says("code-simplifier", simplified())
        .says("silent-failure-hunter", hunted("low"))
        .says("type-design-analyzer", typed(8))
        .gate("a", ready());
    let ran =
        run(&scenario, r#"["code-simplifier", "silent-failure-hunter", "type-design-analyzer"]"#);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for state in ["simplify", "hunt", "types"] {
        assert_eq!(of(&ran, &format!("build/a/work/{state}")), ["accepted"], "{state}");
    }
}

#[test]
fn another_name_is_refused() {
    let ran = planned().build("a").run(&ONE);
    let refused = ran.run_command(&[
        "run",
        "feature-pipeline",
        "--task",
        "a",
        "--input",
        "passes=polish",
        "--agent",
        "script:../script.yaml",
    ]);
    assert_eq!(refused.code, Some(2));
    let words = refused.stderr;
    assert!(words.contains("'passes'") && words.contains("polish"), "{words}");
}

#[test]
fn a_pass_that_was_not_asked_for_does_not_come() {
    let scenario = reviewed().says("type-design-analyzer", typed(8)).gate("a", ready());
    let ran = run(&scenario, "type-design");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/simplify").len() + of(&ran, "build/a/work/hunt").len(), 0);
}

#[test]
fn what_was_simplified_is_committed() {
    let scenario = reviewed()
        .says("code-simplifier", simplified())
        .writes("src/a.rs", "// shorter\n")
        .gate("a", ready());
    let ran = run(&scenario, "simplify");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// shorter\n");
    assert!(log(&master(&ran)).contains("a: simplified, lines removed: 14"));
}

#[test]
fn high_and_critical_silent_failures_go_to_the_executor_once() {
    for severity in ["high", "critical"] {
        let scenario =
            reviewed().says("silent-failure-hunter", hunted(severity)).fix("a").gate("a", ready());
        let ran = run(&scenario, "silent-failure");
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert_eq!(of(&ran, "build/a/work/hunt"), ["accepted"], "it does not hunt again");
        let fix = ran.prompt("build/a/work/fix#1", 1);
        for part in [
            "- silent failure: src/a.rs:1 - dropped",
            "- recommended: hand the error to the caller",
        ] {
            assert!(fix.contains(part), "{part}: {fix}");
        }
    }
}

#[test]
fn lesser_silent_failures_are_recorded() {
    for severity in ["low", "medium"] {
        let scenario =
            reviewed().says("silent-failure-hunter", hunted(severity)).gate("a", ready());
        let ran = run(&scenario, "silent-failure");
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert_eq!(of(&ran, "build/a/work/fix"), [""; 0]);
        assert!(log(&master(&ran)).contains(&format!("a: silent failures: 1, {severity}")));
    }
}

#[test]
fn after_a_fix_of_the_hunt_the_types_are_looked_at() {
    let scenario = reviewed()
        .says("silent-failure-hunter", hunted("high"))
        .fix("a")
        .says("type-design-analyzer", typed(8))
        .gate("a", ready());
    let ran = run(&scenario, "silent-failure,type-design");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.transitions().contains(&"build/a/work: judge>types".to_owned()),
        "{:?}",
        ran.transitions()
    );
}

#[test]
fn a_bad_type_design_goes_to_the_executor_once() {
    let scenario = reviewed().says("type-design-analyzer", typed(4)).fix("a").gate("a", ready());
    let ran = run(&scenario, "type-design");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/types"), ["accepted"]);
    let fix = ran.prompt("build/a/work/fix#1", 1);
    assert!(fix.contains("- type design: an id is a plain string"), "{fix}");
}

#[test]
fn a_fair_type_design_is_recorded() {
    let scenario = reviewed().says("type-design-analyzer", typed(5)).gate("a", ready());
    let ran = run(&scenario, "type-design");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/fix"), [""; 0]);
    assert!(log(&master(&ran)).contains("a: type design: 5 of 10"));
}

#[test]
fn a_pass_without_a_block_blocks_the_feature() {
    let mut scenario = reviewed();
    for _ in 0..3 {
        scenario = scenario.raw("silent-failure-hunter", "I found nothing.");
    }
    let ran = run(&scenario.gate("a", ready()), "silent-failure");
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("a: hunt: "), "{}", ran.reason());
}

#[test]
fn failures_without_a_severity_are_refused_and_repaired() {
    let scenario = reviewed()
        .says("silent-failure-hunter", hunted("none"))
        .says("silent-failure-hunter", hunted("low"))
        .gate("a", ready());
    let ran = run(&scenario, "silent-failure");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt("build/a/work/hunt#1", 2).contains("but `severity` is none"));
}

#[test]
fn those_who_only_look_change_nothing() {
    let spoil = "echo '// spoilt' >> src/a.rs";
    let scenario = reviewed()
        .says("silent-failure-hunter", hunted("low"))
        .exec(spoil)
        .says("type-design-analyzer", typed(8))
        .exec(spoil)
        .gate("a", ready());
    let ran = run(&scenario, "silent-failure,type-design");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// 1/1\n");
}
