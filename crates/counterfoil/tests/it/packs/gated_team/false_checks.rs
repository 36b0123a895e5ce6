//! Ways to a false done around checks: they fail, cannot run, are rewritten, or their tests are gone.

use super::false_done::{all_but, never_done, refused};
use super::{Team, acceptance, doc, done, ok, status_of, task, went};
use crate::packs::scenario::Scenario;
use serde_json::json;

#[test]
fn a_check_that_fails_is_not_talked_away() {
    let wanted = acceptance("cmd: test -f src/wanted.rs");
    let ran = refused("SpecAgent", |scenario| scenario.intake_with(&wanted));
    assert!(went(&ran, "INTEGRATE_RESULT>FIX_BUILD"), "{ran:?}");
    assert_eq!(status_of(&ran)["last_ci_result"], "red");
}

#[test]
fn a_check_of_the_project_that_the_work_breaks_holds_back() {
    for check in ["test", "lint", "build", "type-check"] {
        let base = Scenario::team()
            .file("counterfoil.toml", &format!("[checks]\n{check} = \"! test -f src/part.rs\"\n"))
            .commit();
        let ran = all_but("nobody", base, |scenario| scenario).play();
        never_done(&ran);
        assert!(went(&ran, "QA_RESULT>FIX_TESTS"), "{check}: {ran:?}");
        let status = status_of(&ran);
        assert_eq!(
            (&status["last_ci_result"], &status["last_failed_step"]),
            (&json!("red"), &json!(check))
        );
        // The next agent is given what the engine saw.
        assert!(ran.prompt("REVIEW#1", 1).contains(&format!("{check}: failed")), "{check}");
    }
}

#[test]
fn a_check_that_cannot_run_is_blocked_at_once() {
    for check in ["cmd: no-such-tool --test", "cmd: exit 127", "cmd: ./missing.sh"] {
        let mut checked = task("T-001", &[]);
        checked["checks"] = json!([check]);
        let ran = refused("Planner", |scenario| scenario.plan(std::slice::from_ref(&checked)));
        super::blocked(&ran, check);
        assert!(!went(&ran, "QA_RESULT>FIX_TESTS"), "{check}: {ran:?}");
        let status = status_of(&ran);
        assert_eq!(
            (&status["last_ci_result"], &status["last_failed_step"]),
            (&json!("red"), &json!(check))
        );
    }
}

#[test]
fn qa_that_ran_nothing_is_asked_what_it_ran() {
    let mut manual = task("T-001", &[]);
    manual["checks"] = json!(["manual: look at it"]);
    let ran = refused("Planner", |scenario| scenario.plan(std::slice::from_ref(&manual)));
    super::blocked(&ran, "what was run");
    assert_eq!(ran.attempt("QA#1")["repairs_asked"], 2, "{ran:?}");
}

#[test]
fn a_coder_that_rewrites_what_checks_it_is_found() {
    let easy = doc("acceptance.json", &acceptance("cmd: true"));
    let ran = refused("Coder", |scenario| {
        scenario.says("Coder", ok()).exec(&format!("echo '// x' >> src/part.rs; {easy}"))
    });
    super::blocked(&ran, "acceptance.json");
    assert!(ran.read(&super::session(&ran, "acceptance.json")).contains("test -f src/lib.rs"));
}

#[test]
fn tests_that_are_gone_need_a_persons_word() {
    let base = || {
        Scenario::team()
            .file("tests/one.rs", "#[test]\nfn one_is_one() {\n    assert_eq!(1, 1);\n}\n")
            .commit()
    };
    let removes = |scenario: Scenario| {
        scenario.says("Coder", ok()).exec("echo '// x' >> src/part.rs; rm -f tests/one.rs")
    };
    let scenario = all_but("Coder", base(), removes);
    let ran = scenario.play();
    never_done(&ran);
    let question = super::waits(&ran)["question"].as_str().unwrap();
    assert!(question.contains("one_is_one"), "{question}");
    assert!(!went(&ran, "IMPLEMENT>REVIEW"), "{ran:?}");
    // No: it goes back to the Coder. Yes: it goes on, and the report says so.
    let no = all_but("Coder", base(), removes)
        .answer("ASK_USER", "no")
        .answer("ASK_USER", "Put it back.")
        .play();
    never_done(&no);
    assert!(went(&no, "ANSWERED>FIX_REVIEW"), "{no:?}");
    // Nobody but that person can say that it is put right.
    let asked = super::waits(&no)["question"].as_str().unwrap();
    assert!(asked.contains("this is put right") && asked.contains("one_is_one"), "{asked}");
    assert!(no.prompt("FIX_REVIEW#1", 1).contains("Put it back."));
    let yes = all_but("Coder", base(), removes).answer("ASK_USER", "yes").play();
    done(&yes);
    assert!(yes.read(&super::session(&yes, "report.md")).contains("one_is_one"));
}
