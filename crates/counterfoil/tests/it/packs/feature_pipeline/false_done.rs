//! Ways to a false done: each row is a way in which an agent can be wrong, lying, cut off, quoting,
//! retracting, lazy or talking about something else. None ends as done, and nothing is committed.
//!
//! Behind the wrong replies of a row stand those that would finish the feature, so that a gate which
//! lets one of them pass ends the run as done.

use super::{
    Pipeline, about, approved, coded, commits, doc, done, draft, failing, pipeline, planned,
    planning, ready, refused, rejected, reviewed, todo, with,
};
use crate::packs::scenario::{Scenario, framed};
use counterfoil::Framing;
use serde_json::{Value, json};

/// Runs a scenario whose feature `a` must not be done. The reason must name `why`.
#[track_caller]
fn is_never_done(scenario: &Scenario, passes: &str, why: &str) {
    let passes = format!("passes={passes}");
    let ran = scenario.run(&["--task", "a: Add a", "--input", &passes]);
    let (outcome, _, code) = ran.ended();
    assert!(outcome != "done" && code != 0, "{ran:?}");
    assert!(!commits(&ran).iter().any(|subject| subject.starts_with("feat(")), "{ran:?}");
    let questions = ran.report["questions"].to_string();
    let told = format!("{}\n{questions}", ran.reason());
    assert!(told.contains(why), "it ended for another reason than '{why}': {told}\n{ran:?}");
}

/// One test for each row: the way, the scenario, the passes, and what the end says.
macro_rules! ways {
    ($($way:ident: $scenario:expr, $passes:literal, $why:literal;)*) => {
        $(#[test] fn $way() { is_never_done(&$scenario, $passes, $why); })*
    };
}

ways! {
    // Plans.
    a_planner_that_writes_nothing:
        thrice(pipeline(), "todo-doc-generator", &todo("a", &[], 1, 1)).build("a"),
        "", "it has no plan: no plan was written";
    a_planner_that_writes_an_empty_plan:
        pipeline().says("todo-doc-generator", todo("a", &[], 1, 1)).writes(&draft("a"), " \n\n").build("a"),
        "", "the plan that was written is empty";
    a_planner_that_leaves_the_plan_of_an_earlier_run_in_place:
        thrice(earlier_plan(), "todo-doc-generator", &with(todo("a", &[], 1, 1), &json!({"path": doc("a")}))).build("a"),
        "", "no plan was written";
    a_planner_that_plans_another_feature:
        thrice(pipeline(), "todo-doc-generator", &todo("b", &[], 1, 1)).build("a"),
        "", "it has no plan: ";
    a_plan_that_is_cut_off:
        thrice_raw(pipeline(), "todo-doc-generator", &cut_off(&todo("a", &[], 1, 1))).build("a"),
        "", "it has no plan: ";

    // Phases.
    an_executor_that_adds_no_test:
        thrice_writing(planned(), &with(done("1/1"), &json!({"tests_added": 0}))).build("a"),
        "", "no test was added in this phase";
    an_executor_that_counts_tests_which_are_nowhere:
        thrice_writing(planned(), &with(done("1/1"), &json!({"tests_added": 3}))).build("a"),
        "", "no test was added in this phase";
    an_executor_that_does_nothing_in_the_second_phase:
        thrice(pipeline().plan("a", &[], 1, 2).tdd("a", "1/2"), "tdd-task-executor", &done("2/2")).build("a"),
        "", "phase 2/2 is not done";
    an_executor_that_does_nothing:
        thrice(shell_project(), "tdd-task-executor", &done("1/1")).build("a"),
        "", "nothing was changed in this phase";
    an_executor_whose_test_is_a_comment:
        scripted("tests/run.sh", &format!("{SCRIPT}# and sub\n")).build("a"),
        "", "no file of tests has more lines that run something";
    an_executor_whose_test_only_prints:
        scripted("tests/run.sh", &format!("{SCRIPT}echo 'sub works'\n")).build("a"),
        "", "no file of tests has more lines that run something";
    an_executor_that_empties_the_script_of_tests:
        scripted("tests/run.sh", "#!/bin/sh\necho ok\n").build("a"),
        "", "no file of tests has more lines that run something";
    an_executor_that_exchanges_a_test_for_another:
        scripted("tests/run.sh", &SCRIPT.replace("add 1 2", "sub 4 1")).build("a"),
        "", "no file of tests has more lines that run something";
    an_executor_that_comments_in_the_script_of_the_check:
        scripted("check.sh", &format!("{SCRIPT}# and sub\n")).build("a"),
        "", "no file of tests has more lines that run something";
    an_executor_that_writes_about_tests:
        writes_about_tests().build("a"),
        "", "no file of tests has more lines that run something";
    an_executor_that_takes_its_work_back:
        takes_its_work_back().build("a"),
        "", "nothing was changed in this phase";
    an_executor_whose_tests_fail:
        thrice_writing(checked("test = \"grep -q works src/a.rs\""), &done("1/1")).build_it("a"),
        "", "the tests do not pass: ";
    an_executor_whose_check_runs_no_test:
        checked("test = \"echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'\"")
            .tdd("a", "1/1").tdd("a", "1/1").tdd("a", "1/1").build("a"),
        "", "ran no test";
    an_executor_that_removes_a_test:
        removes_a_test(),
        "", "1 test was removed";
    an_executor_that_redefines_the_check:
        thrice_writing_also(
            checked("test = \"grep -q works src/a.rs\""), &done("1/1"),
            ("counterfoil.toml", "[checks]\ntest = \"true\"\n"),
        ).build_it("a"),
        "", "the tests do not pass: ";
    an_executor_that_breaks_what_lint_allowed:
        thrice_writing(checked("lint = \"! test -e src/a.rs\""), &done("1/1")).build_it("a"),
        "", "`lint` passed before: ";
    an_executor_that_breaks_the_build:
        thrice_writing(checked("build = \"! test -e src/a.rs\""), &done("1/1")).build_it("a"),
        "", "`build` passed before: ";
    an_executor_that_answers_for_another_phase:
        thrice(pipeline().plan("a", &[], 1, 2), "tdd-task-executor", &done("2/2")).build("a"),
        "", "phase 1 of 2: ";
    an_executor_that_is_complete_with_failing_tests:
        thrice(planned(), "tdd-task-executor", &with(failing("1/1"), &json!({"phase_complete": true}))).build("a"),
        "", "phase 1 of 1: ";
    an_executor_that_is_done_and_says_that_tests_fail:
        thrice_writing(planned(), &with(done("1/1"), &json!({"tests_passing": false, "next_action": "see why"}))).build("a"),
        "", "see why";
    an_executor_that_is_done_and_has_a_blocker:
        planned().says("tdd-task-executor", with(done("1/1"), &json!({"blockers": ["there is no key"]})))
            .writes("src/a.rs", "// a\n").tests("a_1").review("a", approved()).gate("a", ready()),
        "", "there is no key";
    an_executor_that_quotes_the_example:
        thrice_raw(pipeline().plan("a", &[], 1, 2), "tdd-task-executor", &shown("feature-pipeline/tdd-task-executor")).build("a"),
        "", "phase 1 of 2: ";
    an_executor_that_retracts:
        thrice_raw(planned(), "tdd-task-executor", &retracted(&done("1/1"), &failing("1/1"))).build("a"),
        "", "phase 1 of 1: ";
    an_executor_whose_process_fails:
        planned().reply("tdd-task-executor").when(&about("a")).fails("permission").build("a"),
        "", "phase 1 of 1: ";

    // Reviews.
    a_reviewer_that_only_talks:
        thrice_raw(coded(), "code-reviewer", "Looks good to me. approved: true, recommendation: approve.").gate("a", ready()),
        "", "a: review: ";
    a_reviewer_that_approves_major_issues:
        thrice(coded(), "code-reviewer", &with(approved(), &json!({"issues_total": 1, "major": ["it loses notes"]}))).gate("a", ready()),
        "", "a: review: ";
    a_reviewer_that_approves_what_is_hardly_tested:
        thrice(coded(), "code-reviewer", &with(approved(), &json!({"test_coverage": "insufficient"}))).gate("a", ready()),
        "", "a: review: ";
    a_reviewer_that_says_two_things:
        thrice_raw(coded(), "code-reviewer", &retracted(&rejected("no"), &approved())).gate("a", ready()),
        "", "a: review: ";
    a_review_that_is_cut_off:
        thrice_raw(coded(), "code-reviewer", &cut_off(&approved())).gate("a", ready()),
        "", "a: review: ";
    a_reviewer_that_is_not_listened_to:
        coded().review("a", rejected("1")).fix("a").review("a", rejected("2")).fix("a").review("a", rejected("3")).gate("a", ready()),
        "", "has said no three times";

    a_reviewer_with_blocking_issues_in_a_field_of_its_own:
        thrice(coded(), "code-reviewer", &with(approved(), &json!({"blocking": ["SQL injection in the login"]}))).gate("a", ready()),
        "", "`blocking` is not part of the contract";
    a_reviewer_with_a_finding_between_its_fields:
        thrice_raw(coded(), "code-reviewer",
            &framed(Framing::OutputBlock, &approved()).replacen("issues_total:", "CRITICAL: SQL injection in the login\nissues_total:", 1)).gate("a", ready()),
        "", "`CRITICAL` is not part of the contract";

    // A problem that is left out when the result is asked for again.
    a_reviewer_that_leaves_out_what_it_said_in_a_field_of_its_own:
        then_clean(coded(), "code-reviewer", &block(&with(approved(), &json!({"blocking": ["SQL injection in the login"]}))), &approved()).gate("a", ready()),
        "", "reported a problem in `blocking`";
    a_reviewer_that_leaves_out_what_contradicts_its_approval:
        then_clean(coded(), "code-reviewer", &block(&with(approved(), &json!({"issues_total": 1, "critical": ["SQL injection in the login"]}))), &approved()).gate("a", ready()),
        "", "reported a problem in `critical`";
    a_reviewer_that_leaves_out_what_was_cut_off:
        then_clean(coded(), "code-reviewer", &cut_off(&rejected("it loses notes")), &approved()).gate("a", ready()),
        "", "reported a problem in `approved`";
    a_merge_gate_that_leaves_out_what_blocks:
        then_clean(reviewed(), "review-pr", &block(&with(ready(), &json!({"blocking_issues": ["it is not linked"]}))), &ready()),
        "", "reported a problem in `blocking_issues`";

    // Passes.
    a_hunter_with_failures_in_a_field_of_its_own:
        thrice(reviewed(), "silent-failure-hunter", &with(hunted(0, "none"), &json!({"swallowed_errors": ["src/a.rs:3"]}))).gate("a", ready()),
        "silent-failure", "`swallowed_errors` is not part of the contract";
    types_with_critical_problems_in_a_field_of_their_own:
        thrice(reviewed(), "type-design-analyzer", &json!({
            "types_analyzed": 2, "quality_score": 9, "issues": null, "recommendations": null, "critical": ["a password is a plain text"]
        })).gate("a", ready()),
        "type-design", "`critical` is not part of the contract";
    a_simplifier_that_breaks_the_tests:
        thrice_fixing(
            checked("test = \"! grep -q broken src/a.rs\"").tdd("a", "1/1").review("a", approved())
                .says("code-simplifier", simplified()).writes("src/a.rs", "// broken\n"),
        ).gate("a", ready()),
        "simplify", "not fixed after three attempts: the tests do not pass: ";
    a_hunter_that_names_no_place:
        thrice(reviewed(), "silent-failure-hunter", &hunted(2, "low")).gate("a", ready()),
        "silent-failure", "a: hunt: ";
    a_hunter_that_found_nothing_critical_and_says_critical:
        thrice(reviewed(), "silent-failure-hunter", &hunted(0, "critical")).gate("a", ready()),
        "silent-failure", "a: hunt: ";
    a_bad_score_without_a_reason:
        thrice(reviewed(), "type-design-analyzer", &json!({
            "types_analyzed": 2, "quality_score": 2, "issues": null, "recommendations": null
        })).gate("a", ready()),
        "type-design", "a: types: ";

    // The merge gate.
    a_merge_gate_that_read_nothing:
        thrice(reviewed(), "review-pr", &with(ready(), &json!({"files_reviewed": 0}))),
        "", "a: merge gate: ";
    a_merge_gate_that_ran_no_tests:
        thrice(reviewed(), "review-pr", &with(ready(), &json!({"test_status": "not-run"}))),
        "", "a: merge gate: ";
    a_merge_gate_that_is_ready_with_blocking_issues:
        thrice(reviewed(), "review-pr", &with(ready(), &json!({"blocking_issues": ["it is not linked"]}))),
        "", "a: merge gate: ";
    a_merge_gate_with_critical_findings_in_a_field_of_its_own:
        thrice(reviewed(), "review-pr", &with(ready(), &json!({"critical": ["SQL injection in the login"]}))),
        "", "`critical` is not part of the contract";
    a_merge_gate_that_quotes_the_example:
        thrice_raw(reviewed(), "review-pr", &shown("feature-pipeline/review-pr")),
        "", "a: merge gate: ";
    a_merge_gate_that_changes_its_mind:
        thrice_raw(reviewed(), "review-pr", &retracted(&ready(), &refused("no"))),
        "", "a: merge gate: ";
    a_merge_gate_that_saw_tests_fail:
        reviewed()
            .gate("a", some_fail("1")).fix("a").gate("a", some_fail("2")).fix("a").gate("a", some_fail("3"))
            .fix("a").gate("a", ready()),
        "", "has said no three times";
    a_fix_that_answers_for_another_phase:
        thrice(pipeline().plan("a", &[], 1, 2).tdd("a", "1/2").tdd("a", "2/2").review("a", rejected("no")),
            "tdd-task-executor", &done("1/2")).review("a", approved()).gate("a", ready()),
        "", "a: fix: ";
}

/// The rest of a build, behind wrong replies.
trait Rest {
    /// As [`Pipeline::build`], with a code file that no check objects to.
    fn build_it(self, slug: &str) -> Self;
}

impl Rest for Scenario {
    fn build_it(self, slug: &str) -> Self {
        self.says("tdd-task-executor", done("1/1"))
            .when(&about(slug))
            .writes("src/a.rs", "// it works\n")
            .tests("a_9")
            .review(slug, approved())
            .gate(slug, ready())
    }
}

/// A reply, as often as it is asked for: with both repairs, or three attempts.
fn thrice(scenario: Scenario, agent: &str, result: &Value) -> Scenario {
    thrice_raw(scenario, agent, &block(result))
}

fn thrice_raw(mut scenario: Scenario, agent: &str, text: &str) -> Scenario {
    for _ in 0..3 {
        scenario = scenario.raw(agent, text);
        if agent == "todo-doc-generator" {
            scenario = scenario.when(&planning("a"));
        }
    }
    scenario
}

fn block(result: &Value) -> String {
    framed(Framing::OutputBlock, result)
}

/// A reply that is not accepted, and a clean result whenever the agent is asked again.
fn then_clean(scenario: Scenario, agent: &str, text: &str, clean: &Value) -> Scenario {
    scenario.raw(agent, text).says(agent, clean.clone()).says(agent, clean.clone())
}

/// The executor writes code and no test.
fn thrice_writing(mut scenario: Scenario, result: &Value) -> Scenario {
    for round in 0..3 {
        scenario = scenario
            .says("tdd-task-executor", result.clone())
            .writes("src/a.rs", &format!("// {round}\n"));
    }
    scenario
}

/// The executor writes code, a test and another file.
fn thrice_writing_also(mut scenario: Scenario, result: &Value, other: (&str, &str)) -> Scenario {
    for round in 0..3 {
        scenario = scenario
            .says("tdd-task-executor", result.clone())
            .writes("src/a.rs", &format!("// {round}\n"))
            .writes(other.0, other.1)
            .tests("a_1");
    }
    scenario
}

/// The executor says three times that it fixed something, and did not.
fn thrice_fixing(scenario: Scenario) -> Scenario {
    thrice(scenario, "tdd-task-executor", &with(done("1/1"), &json!({"tests_added": 0})))
}

/// A project with a check.
fn checked(check: &str) -> Scenario {
    let scenario = pipeline().file("counterfoil.toml", &format!("[checks]\n{check}\n")).commit();
    scenario.plan("a", &[], 1, 1)
}

/// A project in a language whose tests nobody can count.
fn shell_project() -> Scenario {
    let scenario =
        pipeline().git(&["rm", "-q", "src/lib.rs"]).file("run.sh", "echo one\n").commit();
    scenario.plan("a", &[], 1, 1)
}

/// A script of tests, which no agent and no engine can count.
const SCRIPT: &str = "#!/bin/sh\nset -e\n[ \"$(sh calc.sh add 1 2)\" = 3 ]\n";

/// A shell project whose check runs a script of tests. The executor adds to the code, and this is what it makes of the
/// script, as often as it is asked.
fn scripted(script: &str, becomes: &str) -> Scenario {
    let scenario = shell_project_with(script);
    let said = with(done("1/1"), &json!({"files_changed": ["calc.sh", script]}));
    (0..3).fold(scenario, |scenario, _| {
        scenario
            .says("tdd-task-executor", said.clone())
            .writes(
                "calc.sh",
                "case $1 in add) echo $(($2 + $3));; sub) echo $(($2 - $3));; esac\n",
            )
            .writes(script, becomes)
    })
}

fn shell_project_with(script: &str) -> Scenario {
    pipeline()
        .git(&["rm", "-q", "src/lib.rs"])
        .file("calc.sh", "case $1 in add) echo $(($2 + $3));; esac\n")
        .file(script, SCRIPT)
        .file("counterfoil.toml", &format!("[checks]\ntest = \"sh {script}\"\n"))
        .commit()
        .plan("a", &[], 1, 1)
}

/// The executor describes tests and writes none.
fn writes_about_tests() -> Scenario {
    let said = with(done("1/1"), &json!({"files_created": ["tests/plan.md"]}));
    (0..3).fold(shell_project_with("check.sh"), |scenario, _| {
        scenario.says("tdd-task-executor", said.clone()).writes("tests/plan.md", "sub 3 1 is 2\n")
    })
}

/// The first attempt writes something, and the others take it away and are content.
fn takes_its_work_back() -> Scenario {
    let half = json!({"phase_complete": false, "files_created": ["tests/more.sh"], "next_action": "go on"});
    let none = with(done("1/1"), &json!({"tests_added": 0}));
    let scenario = shell_project()
        .says("tdd-task-executor", with(done("1/1"), &half))
        .writes("tests/more.sh", "sh run.sh\n")
        .says("tdd-task-executor", none.clone())
        .deletes("tests/more.sh");
    scenario.says("tdd-task-executor", none)
}

/// A repository that already has a plan for `a`.
fn earlier_plan() -> Scenario {
    pipeline().file(&doc("a"), "# a, last year\n").commit()
}

/// A project with a test that the executor takes away, also when it is asked again.
fn removes_a_test() -> Scenario {
    let scenario = pipeline()
        .file("tests/old.rs", "#[test]\nfn old() {\n    assert!(true);\n}\n")
        .commit()
        .plan("a", &[], 1, 1)
        .tdd("a", "1/1")
        .deletes("tests/old.rs");
    thrice(scenario, "tdd-task-executor", &done("1/1")).review("a", approved()).gate("a", ready())
}

/// A block without its end.
fn cut_off(result: &Value) -> String {
    framed(Framing::OutputBlock, result).replace("---END---\n", "")
}

/// A block, second thoughts, and another block.
fn retracted(first: &Value, second: &Value) -> String {
    let [first, second] = [first, second].map(|one| framed(Framing::OutputBlock, one));
    format!("{first}\nWait, that is not right.\n\n{second}")
}

fn some_fail(issue: &str) -> Value {
    with(refused(issue), &json!({"test_status": "some-fail"}))
}

fn simplified() -> Value {
    json!({
        "simplified": true, "files_modified": ["src/a.rs"], "lines_removed": 1, "complexity_reduction": "low",
        "changes_summary": "one line less"
    })
}

fn hunted(found: u64, severity: &str) -> Value {
    json!({"silent_failures_found": found, "locations": null, "severity": severity, "recommendations": null})
}

/// The example that approves, as agents are shown it.
fn shown(contract: &str) -> String {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    framed(Framing::OutputBlock, &contract.definition().examples[0]).replace('"', "")
}

#[test]
fn the_replies_that_stand_behind_them_finish_the_feature() {
    for scenario in
        [planned().build("a"), checked("test = \"grep -q works src/a.rs\"").build_it("a")]
    {
        let ran = scenario.run(&["--task", "a: Add a"]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert_eq!(commits(&ran).last().map(String::as_str), Some("feat(a): Add a"));
    }
}

#[test]
fn a_script_that_the_check_runs_is_a_test_if_it_runs_more() {
    for script in ["check.sh", "tests/run.sh"] {
        let more = format!("{SCRIPT}[ \"$(sh calc.sh sub 3 1)\" = 2 ]\n");
        let scenario = scripted(script, &more).review("a", approved()).gate("a", ready());
        let ran = scenario.built_in_only().run(&["--task", "a: Add a"]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        let prompt = ran.prompt("build/a/work/tdd#1", 1);
        assert!(prompt.contains("or in a script which that command names"), "{prompt}");
    }
}

#[test]
fn nothing_is_no_blocker() {
    for word in ["nothing", "No", "n/a."] {
        let none = json!({"blockers": [word], "files_created": ["src/a.rs", "tests/a_1.rs"]});
        let scenario = planned()
            .says("tdd-task-executor", with(done("1/1"), &none))
            .writes("src/a.rs", "// a\n")
            .tests("a_1")
            .review("a", approved())
            .gate("a", ready());
        let ran = scenario.built_in_only().run(&["--task", "a: Add a"]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    }
}
