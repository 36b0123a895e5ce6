//! The phases of a feature, with tests first.

use super::{
    ONE, Pipeline, about, approved, commits, doc, done, failing, log, master, of, pipeline,
    planned, ready, status, with,
};
use crate::packs::scenario::Scenario;
use serde_json::json;

/// What the engine runs when somebody says that the tests pass: it looks for a word in a file.
const CHECK: &str = "[checks]\ntest = \"grep -q works src/a.rs\"\n";

#[test]
fn three_tdd_phases() {
    let ran = pipeline()
        .plan("a", &[], 1, 3)
        .tdd("a", "1/3")
        .tdd("a", "2/3")
        .tdd("a", "3/3")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"; 3]);
    for phase in 1..=3 {
        let prompt = ran.prompt(&format!("build/a/work/tdd#{phase}"), 1);
        assert!(
            prompt.contains(&format!("Build phase {phase} of 3 of the feature `a`, test first.")),
            "{prompt}"
        );
        assert!(prompt.contains("see them fail, then write the code"), "{prompt}");
        assert!(prompt.contains(&doc("a")), "{prompt}");
    }
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// 3/3\n");
}

#[test]
fn the_progress_of_each_phase_stands_in_the_todo_document() {
    let look = super::in_repository(&format!("cp {} .git/before-phase-2", doc("a")));
    let ran = pipeline()
        .plan("a", &[], 1, 2)
        .tdd("a", "1/2")
        .tdd("a", "2/2")
        .exec(&look)
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let before = ran.read(".git/before-phase-2");
    assert!(before.starts_with("# a\n\n## Progress\n\n- [x] phase 1/2 done on "), "{before}");
    let after = ran.read(&doc("a"));
    assert!(after.starts_with(&before), "{after}");
    let marks: Vec<&str> = after.lines().filter(|line| line.starts_with("- [x]")).collect();
    assert!(
        matches!(marks.as_slice(), [one, two] if one.contains("1/2") && two.contains("2/2")),
        "{after}"
    );
    assert_eq!(ran.git(&["show", &format!("HEAD:{}", doc("a"))]), after);
}

#[test]
fn a_phase_that_is_complete_with_passing_tests_leads_to_review() {
    let ran = planned().build("a").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let moves = ran.transitions();
    let expected = ["next-phase>tdd", "judge>next-phase", "next-phase>review", "review>merge-gate"];
    for step in expected.map(|step| format!("build/a/work: {step}")) {
        assert!(moves.contains(&step), "{step}: {moves:?}");
    }
}

#[test]
fn failing_tests_never_reach_review() {
    let mut scenario = planned();
    for _ in 0..3 {
        scenario = scenario.says("tdd-task-executor", failing("1/1"));
    }
    let ran = scenario.build("a").run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"; 3], "a phase has three attempts");
    assert_eq!(of(&ran, "build/a/work/review"), [""; 0]);
    assert_eq!(commits(&ran), [""; 0]);
    assert!(
        ran.reason().contains(
            "phase 1/1 is not done after three attempts: this test fails: adds_one; count again"
        ),
        "{}",
        ran.reason()
    );
}

#[test]
fn what_an_attempt_left_open_reaches_the_next_one_and_is_gone_in_the_next_phase() {
    let ran = pipeline()
        .plan("a", &[], 1, 2)
        .says("tdd-task-executor", failing("1/2"))
        .tdd("a", "1/2")
        .tdd("a", "2/2")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let told = ["- this test fails: adds_one", "- count again"];
    let has = |attempt: &str| told.map(|part| ran.prompt(attempt, 1).contains(part));
    assert_eq!(has("build/a/work/tdd#1"), [false, false]);
    assert_eq!(has("build/a/work/tdd#2"), [true, true]);
    assert_eq!(has("build/a/work/tdd#3"), [false, false]);
}

#[test]
fn each_phase_has_three_attempts() {
    let mut scenario = pipeline().plan("a", &[], 1, 2);
    for phase in ["1/2", "2/2"] {
        for _ in 0..2 {
            scenario = scenario.says("tdd-task-executor", failing(phase));
        }
        scenario = scenario.tdd("a", phase);
    }
    let ran = scenario.review("a", approved()).gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd").len(), 6);
}

#[test]
fn a_phase_that_is_not_complete_is_tried_again_also_if_its_tests_pass() {
    let half =
        with(done("1/1"), &json!({"phase_complete": false, "next_action": "write the other half"}));
    let ran = planned().says("tdd-task-executor", half).build("a").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"; 2]);
    assert!(ran.prompt("build/a/work/tdd#2", 1).contains("- write the other half"));
}

#[test]
fn tests_that_are_said_to_pass_and_do_not_never_reach_review() {
    let ran = planned()
        .file("counterfoil.toml", CHECK)
        .commit()
        .tdd("a", "1/1")
        .says("tdd-task-executor", done("1/1"))
        .when("the tests do not pass: ")
        .writes("src/a.rs", "// it works\n")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"; 2]);
    let claims = ran.attempt("build/a/work/tdd#1")["claims"].as_array().unwrap();
    let claim = claims.iter().find(|claim| claim["claim"] == "tests_passing").unwrap();
    assert_eq!(claim["verdict"], "refuted");
    let log = log(&master(&ran)).to_owned();
    assert!(log.contains("phase 1/1 is not done: ") && log.contains("exited with 1"), "{log}");
}

#[test]
fn a_phase_without_a_new_test_is_not_done() {
    let untested = with(done("1/1"), &json!({"tests_added": 0}));
    let ran = planned()
        .says("tdd-task-executor", untested)
        .writes("src/a.rs", "// a\n")
        .says("tdd-task-executor", done("1/1"))
        .when("- no test was added in this phase")
        .tests("a_1")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"; 2]);
}

#[test]
fn tests_that_only_running_shows_are_counted_by_the_check() {
    let check = "[checks]\ntest = \"n=$(cat src/*.rs | grep -c case!); \
        echo \\\"test result: ok. $((n+1)) passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\\\"\"\n";
    let ran = pipeline()
        .file("counterfoil.toml", check)
        .commit()
        .plan("a", &[], 1, 1)
        .says("tdd-task-executor", done("1/1"))
        .writes("src/a.rs", "case!(adds_one);\n")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"]);
}

#[test]
fn tests_that_only_pass_in_the_repository_are_found_before_an_agent_is_spent() {
    let ran = planned()
        .file(".gitignore", "node_modules\n")
        .file("counterfoil.toml", "[checks]\ntest = \"test -e node_modules/x\"\n")
        .commit()
        .file("node_modules/x", "")
        .build("a")
        .run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), [""; 0]);
    assert!(ran.reason().contains("pass in the repository and fail in a worktree"), "{ran:?}");
}

#[test]
fn a_block_for_another_phase_is_sent_back() {
    let ran = pipeline()
        .plan("a", &[], 1, 2)
        .says("tdd-task-executor", done("2/2"))
        .tdd("a", "1/2")
        .tdd("a", "2/2")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("build/a/work/tdd#1")["repairs_asked"], 1);
    let again = ran.prompt("build/a/work/tdd#1", 2);
    assert!(again.contains("which is 1/2"), "{again}");
}

/// Three features, of which the first has a blocker: `b` depends on it, `c` does not.
fn blocked() -> Scenario {
    let blocker = with(failing("1/1"), &json!({"blockers": ["there is no key for the service"]}));
    pipeline()
        .plan("a", &[], 1, 1)
        .plan("b", &["a"], 1, 1)
        .plan("c", &[], 2, 1)
        .says("tdd-task-executor", blocker)
        .when(&about("a"))
        .writes("src/a.rs", "// half\n")
        .build("c")
}

const THREE: [&str; 2] = ["--task", "a: Add a\nb: Add b\nc: Add c"];

#[test]
fn blockers_make_the_feature_blocked_its_dependants_are_skipped_and_the_others_go_on() {
    let ran = blocked().run(&THREE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"]);
    assert_eq!(of(&ran, "build/b/work/tdd"), [""; 0]);
    assert_eq!(commits(&ran), ["feat(c): Add c"]);
    let reason = ran.reason();
    let parts =
        ["a: phase 1/1: there is no key for the service", "b: not started, since 'a' is not done"];
    assert!(parts.iter().all(|part| reason.contains(part)) && !reason.contains("c:"), "{reason}");
    let master = master(&ran);
    assert_eq!(["a", "b", "c"].map(|slug| status(&master, slug)), ["Blocked", "Skipped", "Done"]);
    assert!(
        log(&master).contains("a: blocked, phase 1/1: there is no key for the service"),
        "{master}"
    );
}

#[test]
fn an_empty_list_of_blockers_is_none() {
    let none = with(done("1/1"), &json!({"blockers": []}));
    let ran = planned()
        .says("tdd-task-executor", none)
        .writes("src/a.rs", "// a\n")
        .tests("a_1")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn an_agent_that_fails_blocks_its_feature_and_the_others_go_on() {
    let ran = pipeline()
        .plan("a", &[], 1, 1)
        .plan("c", &[], 2, 1)
        .reply("tdd-task-executor")
        .when(&about("a"))
        .fails("permission")
        .build("c")
        .run(&["--task", "a: Add a\nc: Add c"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(&ran), ["feat(c): Add c"]);
}
