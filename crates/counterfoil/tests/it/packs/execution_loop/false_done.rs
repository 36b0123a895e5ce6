//! Ways to a false done: in each, one agent is wrong, lying, cut off, quoting, retracting, lazy or
//! talking about something else, and all others approve. There is one iteration, so a gate that
//! does not open ends the run as exhausted. None may end as done.

use super::{
    TASK, clean, complete, counted, dirty, failed, incomplete, kept, passed, scenario, work,
};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

type End = (&'static str, Option<&'static str>, i32);

/// The result breaks the contract or a rule of the gate in all three replies.
const REFUSED: End = ("failed", Some("contract"), 1);
/// A gate stays closed.
const CLOSED: End = ("exhausted", None, 6);
/// Only a person can accept it.
const ASKS: End = ("waiting", None, 4);

/// A way: its name, what the agents do, how the run ends, and what its report says about it.
type Way = (&'static str, Scenario, End, &'static str);

/// Plays each way with everybody else approving, more often than needed, so that no run ends
/// because the script does.
fn none_is_done<const N: usize>(ways: [Way; N]) {
    let mut wrong = Vec::new();
    for (name, mut scenario, end, because) in ways {
        for _ in 0..2 {
            scenario = scenario
                .says("qa", passed())
                .says("code-quality", clean())
                .says("manager", kept())
                .says("dod", complete("high"));
        }
        let ran = scenario.run(&[&TASK[..], &["--input", "max_iterations=1"]].concat());
        let said = ran.report.to_string();
        if ran.ended() != end || !said.contains(because) {
            wrong.push(format!("{name}: not {end:?} because of '{because}': {ran:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An agent says the same in its three replies.
fn thrice(scenario: Scenario, agent: &str, text: &str) -> Scenario {
    (0..3).fold(scenario, |scenario, _| scenario.raw(agent, text))
}

/// The implementer does its work, and QA says this, whatever it is asked.
fn qa_says(text: &str) -> Scenario {
    thrice(scenario().implements("2"), "qa", text)
}

/// The work passes QA, and code quality says this, whatever it is asked.
fn quality_says(result: &Value) -> Scenario {
    let scenario = scenario().implements("2").says("qa", passed());
    thrice(scenario, "code-quality", &result.to_string())
}

/// The work passes both gates, and the definition of done says this, whatever it is asked.
fn dod_says(result: &Value) -> Scenario {
    thrice(scenario().passes("2"), "dod", &result.to_string())
}

fn with(mut result: Value, field: &str, value: Value) -> Value {
    result[field] = value;
    result
}

/// QA passes, with one field changed.
fn passed_with(field: &str, value: Value) -> String {
    with(passed(), field, value).to_string()
}

fn tests(total: u64, passed: u64) -> Value {
    json!({"total": total, "passed": passed, "failed": 0})
}

/// The approving example that the agent of a contract is shown.
fn example(contract: &str) -> Value {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    contract.definition().examples[0].clone()
}

/// A project with a check.
fn project(name: &str, check: &str) -> Scenario {
    let check = json!(check);
    scenario().file("counterfoil.toml", &format!("[checks]\n{name} = {check}\n")).commit()
}

/// A project with as many tests as `cases.txt` has lines.
fn counting(cases: usize) -> Scenario {
    let count = "echo \"test result: ok. $(grep -c case cases.txt) passed; 0 failed; 0 ignored\"";
    project("test", count).file("cases.txt", &"case\n".repeat(cases)).commit()
}

/// A project whose linter shows each line that is marked as long.
fn linting(text: &str) -> Scenario {
    let lint = "! grep -Hn long src/lib.rs | sed 's/$/ E1 too long/' | grep .";
    project("lint", lint).file("src/lib.rs", text).commit()
}

/// An implementer that changes and lists these files, whatever it is asked.
fn implementer(scenario: Scenario, listed: &[&str], writes: &[(&str, &str)]) -> Scenario {
    let report = json!({"status": "success", "summary": "All of it", "files_changed": listed, "files_added": []});
    let mut scenario = scenario;
    for _ in 0..3 {
        scenario = scenario.says("implementer", report.clone());
        for (path, text) in writes {
            scenario = scenario.writes(path, text);
        }
    }
    scenario
}

/// The manager ticks something off in the README.
fn ticks_off(scenario: Scenario) -> Scenario {
    let ticked =
        json!({"updated": true, "artifacts_modified": ["README.md"], "summary": "Ticked it"});
    scenario
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", ticked)
        .writes("README.md", "- [x] two\n")
}

/// `src/lib.rs` with a function and its test.
const TESTED: &str =
    "pub fn one() -> u32 {\n    1\n}\n\n#[test]\nfn counts() {\n    assert_eq!(one(), 1);\n}\n";
const TWO: &str = "pub fn one() -> u32 {\n    2\n}\n";

#[test]
fn what_qa_says_is_not_enough() {
    none_is_done([
        ("checked nothing", qa_says(&passed_with("checks", json!([]))), REFUSED, "`checks` is empty"),
        (
            "checked something without a name",
            qa_says(&passed_with("checks", json!([{"criterion": " ", "passed": true}]))),
            REFUSED,
            "no `criterion`",
        ),
        ("ran no test", qa_says(&passed_with("test_results", tests(0, 0))), REFUSED, "no test passed"),
        (
            "all tests were skipped",
            qa_says(&passed_with("test_results", tests(9, 0))),
            REFUSED,
            "no test passed",
        ),
        (
            "approves, and says what must be fixed",
            qa_says(&passed_with("fix_info", json!("one() must not be 2"))),
            REFUSED,
            "says what must be fixed",
        ),
        (
            "counts tests that there are not",
            thrice(counting(2).implements("2"), "qa", &passed_with("test_results", tests(12, 12))),
            REFUSED,
            "differs from what the project's check",
        ),
        (
            "keeps quiet about tests that fail",
            project("test", "grep -q 1 src/lib.rs").implements("2"),
            CLOSED,
            "the evidence is against it",
        ),
        (
            "reports tests that fail as passing",
            project("test", "grep -q 1 src/lib.rs").implements("2").says("qa", counted()),
            CLOSED,
            "the evidence is against it",
        ),
        (
            "does not mention that it does not build",
            project("build", "grep -q 1 src/lib.rs").implements("2"),
            CLOSED,
            "build: `grep -q 1 src/lib.rs` exited with 1",
        ),
        (
            "passes tests that failed before and still do",
            project("test", "grep -q 9 src/lib.rs").implements("2"),
            ASKS,
            "still fails",
        ),
        (
            "is content with more failures than before",
            project(
                "test",
                "echo \"test result: FAILED. 1 passed; $(grep -c . src/lib.rs) failed; 0 ignored\"; exit 1",
            )
            .implements("1\n    + 1"),
            CLOSED,
            "the evidence is against it",
        ),
        (
            "quotes the example",
            qa_says(&example("execution-loop/qa").to_string()),
            REFUSED,
            "qa",
        ),
        (
            "takes it back in the same reply",
            qa_says(&format!("{}\n\nWait, no:\n\n{}", passed(), failed("it is 2"))),
            REFUSED,
            "two valid results that differ",
        ),
        (
            "takes it back with a result that breaks the contract",
            qa_says(&format!("{}\n\nWait, no:\n\n{}", passed(), passed_with("dod_achieved", json!("no")))),
            REFUSED,
            "/dod_achieved",
        ),
        (
            "is cut off",
            qa_says("{\"dod_achieved\": true, \"checks\": [{\"criterion\": \"it counts\", \"passed\": true}"),
            REFUSED,
            "qa",
        ),
        (
            "says so in words",
            qa_says("All criteria are met: dod_achieved is true."),
            REFUSED,
            "qa",
        ),
    ]);
}

/// A finding that nobody reads where it stands.
fn critical() -> Value {
    json!([{"severity": "critical", "message": "SQL injection in the login"}])
}

#[test]
fn what_nobody_reads_is_refused() {
    let beside = |result: Value, field: &str| with(result, field, critical());
    let inside = |mut result: Value, at: &str, value: Value| {
        *result.pointer_mut(at).unwrap() = value;
        result
    };
    let check = json!({"criterion": "it counts", "passed": true, "problems": critical()});
    none_is_done([
        (
            "QA reports findings beside its verdict",
            qa_says(&beside(passed(), "findings").to_string()),
            REFUSED,
            "`findings` is not part of the contract",
        ),
        (
            "QA reports findings in an object of its own",
            qa_says(&with(passed(), "metadata", json!({"blocking": critical()})).to_string()),
            REFUSED,
            "`metadata` is not part of the contract",
        ),
        (
            "QA reports findings inside of a check",
            qa_says(&inside(passed(), "/checks", json!([check])).to_string()),
            REFUSED,
            "`problems` is not part of the contract",
        ),
        (
            "code quality reports vulnerabilities beside its verdict",
            quality_says(&beside(clean(), "vulnerabilities")),
            REFUSED,
            "`vulnerabilities` is not part of the contract",
        ),
        (
            "code quality reports a verdict in another field",
            quality_says(&with(clean(), "approved", json!(false))),
            REFUSED,
            "`approved` is not part of the contract",
        ),
        (
            "the definition of done has open points in another field",
            dod_says(&beside(complete("high"), "blockers")),
            REFUSED,
            "`blockers` is not part of the contract",
        ),
    ]);
}

#[test]
fn what_is_left_out_when_the_result_is_asked_for_again_is_missed() {
    let then = |first: &str, clean: Value| {
        let scenario = scenario().implements("2").raw("qa", first);
        scenario.says("qa", clean.clone()).says("qa", clean)
    };
    none_is_done([
        (
            "QA reports findings beside its verdict",
            then(&with(passed(), "findings", critical()).to_string(), passed()),
            REFUSED,
            "reported a problem in `findings`",
        ),
        (
            "QA says that it failed, with a field that is wrong",
            then(&with(failed("it counts"), "checks", json!("none")).to_string(), passed()),
            REFUSED,
            "reported a problem in",
        ),
    ]);
}

#[test]
fn what_the_implementer_says_is_not_enough() {
    let skipped = TESTED.replace("#[test]\n", "#[test]\n#[ignore]\n");
    let script = ("checks/test.sh", "grep -q 1 src/lib.rs\n");
    let both = with(clean(), "files_analyzed", json!(["src/lib.rs", script.0]));
    none_is_done([
        (
            "changed nothing",
            implementer(scenario(), &[], &[]),
            ASKS,
            "the implementer changed no file",
        ),
        (
            "changed nothing, and the manager ticks it off",
            ticks_off(implementer(scenario(), &[], &[])),
            ASKS,
            "the implementer changed no file",
        ),
        (
            "lists a file that it did not change",
            implementer(scenario(), &["src/lib.rs"], &[]),
            CLOSED,
            "did not change: src/lib.rs",
        ),
        (
            "hides a file",
            implementer(scenario(), &["src/lib.rs"], &[("src/lib.rs", TWO), ("README.md", "-\n")]),
            CLOSED,
            "1 more was modified: README.md",
        ),
        (
            "removes a test",
            implementer(
                scenario().file("src/lib.rs", TESTED).commit(),
                &["src/lib.rs"],
                &[("src/lib.rs", TWO)],
            ),
            ASKS,
            "1 test was removed: counts",
        ),
        (
            "skips a test",
            implementer(
                scenario().file("src/lib.rs", TESTED).commit(),
                &["src/lib.rs"],
                &[("src/lib.rs", skipped.as_str())],
            ),
            ASKS,
            "tests are gone",
        ),
        (
            "makes the test script succeed",
            implementer(
                project("test", "sh checks/test.sh").file(script.0, script.1).commit(),
                &["src/lib.rs", script.0],
                &[("src/lib.rs", TWO), (script.0, "exit 0\n")],
            )
            .says("qa", passed())
            .says("code-quality", both),
            CLOSED,
            "weakened check: checks/test.sh changed since the run began",
        ),
        (
            "gives the project another check",
            project("test", "grep -q 1 src/lib.rs")
                .implements("2")
                .writes("counterfoil.toml", "[checks]\ntest = \"true\"\n"),
            CLOSED,
            "the evidence is against it",
        ),
        (
            "takes cases out of a test",
            implementer(
                counting(3),
                &["src/lib.rs", "cases.txt"],
                &[("src/lib.rs", TWO), ("cases.txt", "case\n")],
            ),
            ASKS,
            "fewer tests pass than before the run began: 1 instead of 3",
        ),
        ("works where there are no tests", counting(0).implements("2"), ASKS, "but it ran no test"),
    ]);
}

#[test]
fn what_code_quality_says_is_not_enough() {
    let listed = dirty(&[("src/lib.rs", 2)], "break the line")["issues"].clone();
    // What can be read of the list is not used: it would be a pass with one warning.
    let warning =
        json!({"file": "src/lib.rs", "code": "W1", "message": "long", "severity": "warning"});
    let half = json!([warning, {"file": "src/lib.rs", "severity": "error"}]);
    none_is_done([
        (
            "lists an error that cannot be read",
            quality_says(&with(clean(), "issues", half)),
            REFUSED,
            "/issues/1/message",
        ),
        (
            "passes with an error in its list",
            quality_says(&with(clean(), "issues", listed)),
            CLOSED,
            "1 of 1 errors block",
        ),
        (
            "read nothing",
            quality_says(&with(clean(), "files_analyzed", json!([]))),
            REFUSED,
            "lacks files that changed",
        ),
        (
            "read another file",
            quality_says(&with(clean(), "files_analyzed", json!(["README.md"]))),
            REFUSED,
            "lacks files that changed",
        ),
        (
            "approves, and says what must be fixed",
            quality_says(&with(clean(), "fix_info", json!("Annotate one()"))),
            REFUSED,
            "says what must be fixed",
        ),
        (
            "finds an error beside the changed line",
            quality_says(&dirty(&[("src/lib.rs", 1)], "break the line")),
            CLOSED,
            "1 of 1 errors block",
        ),
        (
            "names a place that is not there",
            quality_says(&dirty(&[("src/libs.rs", 1)], "break the line")),
            CLOSED,
            "1 of 1 errors block",
        ),
        (
            "counts more errors than it lists",
            quality_says(&with(
                dirty(&[("README.md", 1)], "break the lines"),
                "blocking_issues_count",
                json!(3),
            )),
            CLOSED,
            "it failed as a whole",
        ),
        (
            "failed, and lists nothing",
            quality_says(&dirty(&[], "it does not compile")),
            CLOSED,
            "it failed as a whole",
        ),
        (
            "passes what the linter does not",
            linting("pub fn one() -> u32 {\n    1\n}\n").implements("2 // long"),
            CLOSED,
            "the evidence is against it: lint",
        ),
        (
            "passes a new error among old ones",
            linting("pub fn one() -> u32 { // long\n    1\n}\n")
                .says("implementer", work("Made it 2"))
                .writes("src/lib.rs", "pub fn one() -> u32 { // long\n    2 // long\n}\n"),
            CLOSED,
            "a check shows more than before",
        ),
    ]);
}

#[test]
fn what_the_manager_and_dod_say_is_not_enough() {
    let none = json!({"user_stories_total": 0, "user_stories_done": 0, "phases_total": 0, "phases_done": 0});
    none_is_done([
        (
            "the manager breaks what passed",
            ticks_off(project("test", "grep -q Play README.md").implements("2")),
            CLOSED,
            "not complete, a check fails",
        ),
        (
            "the manager takes a test away",
            scenario()
                .file("docs/test_it.py", "def test_it():\n    assert True\n")
                .commit()
                .implements("2")
                .says("qa", passed())
                .says("code-quality", clean())
                .says("manager", kept())
                .deletes("docs/test_it.py"),
            ASKS,
            "tests went missing",
        ),
        (
            "dod counted nothing",
            dod_says(&with(complete("high"), "summary", none)),
            REFUSED,
            "counts neither stories nor phases",
        ),
        (
            "dod is complete with something left",
            dod_says(&with(complete("high"), "remaining_items", json!(["US-2"]))),
            REFUSED,
            "`remaining_items` is not empty",
        ),
        ("dod quotes the example", dod_says(&example("execution-loop/dod")), REFUSED, "dod"),
        ("dod does not know", dod_says(&complete("low")), ASKS, "confidence is low"),
    ]);
}

#[test]
fn a_look_at_the_last_iteration_alone_is_not_enough() {
    let two = json!({"status": "success", "summary": "Two", "files_changed": [], "files_added": ["src/two.rs"]});
    let only = with(clean(), "files_analyzed", json!(["src/two.rs"])).to_string();
    let scenario = scenario()
        .passes("2")
        .says("dod", incomplete(&["the second"]))
        .says("implementer", two)
        .writes("src/two.rs", "pub fn two() {}\n")
        .says("qa", passed());
    let ran = thrice(scenario, "code-quality", &only).plays();
    assert_eq!(ran.ended(), REFUSED, "{ran:?}");
    assert!(ran.prompt("code-quality#2", 2).contains("src/lib.rs"), "{ran:?}");
}
