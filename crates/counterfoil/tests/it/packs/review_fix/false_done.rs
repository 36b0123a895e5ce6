//! Ways to a false done: a reviewer or a fixer is wrong, lying, cut off, quoting, retracting, lazy or
//! talks about something else. None of them may end as done.

use super::{
    FIXED, FIXER, GARBAGE, READ, REVIEWER, finding, found, ledger, nothing, one_file, outcomes,
    three_files,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};
use std::sync::LazyLock;

const CODE_REVIEWER: &str = "code-reviewer";
const BY_IT: [&str; 2] = ["--input", "reviewer=code-reviewer"];
/// A project whose tests pass while `src/lib.rs` has a function `one`.
const CHECKS: &str = "[checks]\ntest = \"grep -q 'fn one' src/lib.rs\"\n";

/// Asserts that a run did not end as done, did not approve, and says why.
#[track_caller]
pub(super) fn not_done(
    scenario: Scenario,
    arguments: &[&str],
    code: i32,
    words: &str,
) -> ScenarioRun {
    let ran = scenario.built_in_only().run(arguments);
    let (outcome, _, exit) = ran.ended();
    assert_ne!(outcome, "done", "{ran:?}");
    assert_eq!(exit, code, "{ran:?}");
    assert_ne!(ran.variables()["recommendation"], "approve", "{ran:?}");
    assert!(ran.reason().contains(words), "{words}: {}", ran.reason());
    ran
}

/// One test for each way: the scenario, the arguments, the exit code, and words of the reason.
macro_rules! ways {
    ($($way:ident: $scenario:expr, $arguments:expr, $code:expr, $words:expr;)*) => {
        $(
            #[test]
            fn $way() {
                not_done($scenario, &$arguments, $code, $words);
            }
        )*
    };
}
pub(super) use ways;

ways! {
    // A reviewer that gives no review.
    prose_that_approves: three_times(GARBAGE), [], 7, "not reviewed";
    json_outside_of_a_fence: three_times(&nothing().to_string()), [], 7, "not reviewed";
    a_review_that_is_cut_off: three_times(&CUT_OFF.replace("FENCE", "```")), [], 7, "not reviewed";
    a_copy_of_the_example: three_times(&fenced(&example())), [], 7, "not reviewed";
    an_approval_inside_of_a_thought:
        three_times(&format!("<think>\n{}\n</think>\nFine.", fenced(&nothing()))), [], 7, "not reviewed";
    // One that did not read what it approves.
    a_review_without_the_files_it_read:
        thrice(&json!({"groups": []})), [], 7, "`files_reviewed` must list every file of the chunk";
    a_review_of_other_files:
        thrice(&json!({"groups": [], "files_reviewed": ["README.md"]})), [], 7, "src/lib.rs";
    a_review_of_one_file_of_three:
        (0..3).fold(three_files(), |scenario, _| scenario.says(REVIEWER, json!({"groups": [], "files_reviewed": ["src/b.rs"]}))),
        [], 7, "src/a.rs, src/b.rs, src/c.rs";
    a_count_of_files_that_is_too_small:
        (0..3).fold(three_files(), |scenario, _| scenario.says(CODE_REVIEWER, review(&json!({"files_reviewed": 2})))),
        BY_IT, 7, "`files_reviewed` is less than the 3";
    a_success_with_errors:
        one_file().says(CODE_REVIEWER, review(&json!({"errors": ["src/lib.rs cannot be opened"]}))), BY_IT, 7, "src/lib.rs cannot be opened";
    // One that says something, and not in the findings.
    a_group_without_findings:
        thrice(&json!({"groups": [{"description": "SQL injection in the login", "findings": []}], "files_reviewed": READ})),
        [], 7, "a group has no findings";
    // One that says it where nobody reads it. What it says is kept as a finding that cannot be read.
    critical_findings_beside_an_approval:
        thrice(&json!({"groups": [], "files_reviewed": READ, "findings": [CRITICAL.clone()]})), [], 8, "1 open; not reviewed: src/lib.rs";
    critical_findings_in_an_object_that_nobody_knows:
        thrice(&json!({"groups": [], "files_reviewed": READ, "review": {"blocking": [CRITICAL.clone()]}})), [], 8, "1 open; not reviewed: src/lib.rs";
    a_critical_finding_inside_of_a_minor_one: thrice(&hidden_in_a_minor_one()), [], 8, "1 open; not reviewed: src/lib.rs";
    issues_beside_the_findings_of_the_code_reviewer:
        by_code_reviewer(&json!({"issues": [CRITICAL.clone()]})), BY_IT, 8, "1 open; not reviewed: src/lib.rs";
    a_verdict_beside_the_findings_of_the_code_reviewer:
        by_code_reviewer(&json!({"approved": false})), BY_IT, 7, "`approved` is not part of the contract";
    a_critical_finding_in_the_metadata:
        by_code_reviewer(&json!({"metadata": {"blocking": [CRITICAL.clone()]}})), BY_IT, 8, "1 open; not reviewed: src/lib.rs";
    a_rejection_in_the_metadata: by_code_reviewer(&json!({"metadata": {"verdict": "request changes"}})), BY_IT, 7, "not reviewed";
    a_critical_finding_in_the_output: by_code_reviewer(&json!({"output": "CRITICAL: SQL injection in the login"})), BY_IT, 7, "not reviewed";
    an_approval_quoted_before_a_critical_finding:
        one_file()
            .raw(REVIEWER, &format!("It would be wrong to say\n\n{}\nThis is it:\n\n{}", fenced(&nothing()), fenced(&critical())))
            .says(REVIEWER, critical())
            .says(FIXER, outcomes(&[("c1-F001", "blocked")])),
        [], 8, "request-changes";
    // One that leaves a finding out when it is asked to repair its review.
    a_finding_of_a_review_that_is_cut_off: then_nothing(&cut_off_after(&critical())), [], 8, "request-changes: 1 findings";
    a_finding_of_a_review_outside_of_a_fence: then_nothing(&critical().to_string()), [], 8, "request-changes: 1 findings";
    a_finding_in_one_of_two_reviews:
        then_nothing(&format!("{}Or rather:\n\n{}", fenced(&critical()), fenced(&nothing()))), [], 8, "request-changes: 1 findings";
    a_finding_of_a_review_that_breaks_after_it:
        then_nothing(&fenced(&critical()).replace("\"files_reviewed\"", "files_reviewed:")), [], 8, "request-changes: 1 findings";
    // A fixer that fixes nothing.
    fixed_without_any_change: critical_and_fixer(9, |one| one), [], 8, "1 deferred";
    fixed_by_a_change_of_something_else:
        critical_and_fixer(9, |one| one.writes("README.md", "# Better\n")), [], 8, "request-changes";
    fixed_under_another_id:
        (0..9).fold(one_critical(), |scenario, _| scenario.says(FIXER, outcomes(&[("F001", "fixed")]))), [], 8, "1 deferred";
    a_fixer_that_fails_every_time:
        (0..3).fold(one_critical(), |scenario, _| scenario.reply(FIXER).fails("agent")), [], 8, "1 deferred";
    // A finding that is said to be fixed and reported again as if it were another, less important one.
    found_again_under_its_id_in_another_case: found_again(&json!({"id": "C1-F001", "severity": "minor"})), [], 8, "1 findings, 0 fixed, 1 blocked";
    found_again_under_its_id_and_a_blank: found_again(&json!({"id": "c1-F001 ", "severity": "minor"})), [], 8, "1 findings, 0 fixed, 1 blocked";
    found_again_under_its_id_in_another_file:
        found_again(&json!({"id": "c1-F001", "file": "src/other.rs", "severity": "minor"})), [], 8, "1 findings, 0 fixed, 1 blocked";
    found_again_a_line_lower: found_again(&json!({"id": "F001", "line": 2, "severity": "minor"})), [], 8, "1 findings, 0 fixed, 1 blocked";
    found_again_in_a_range_of_lines: found_again(&json!({"id": "F005", "line": "2-3", "severity": "minor"})), [], 8, "1 findings, 0 fixed, 1 blocked";
    found_again_with_other_punctuation:
        found_again(&json!({"id": "F001", "severity": "minor", "issue": "f001 is wrong, in `src/lib.rs`!"})), [], 8, "1 findings, 0 fixed, 1 blocked";
    // A change that nobody can review.
    nothing_changed: Scenario::new("review-fix"), [], 7, "nothing changed since the merge base";
    a_base_that_is_the_last_commit:
        Scenario::new("review-fix").git(&["checkout", "-q", "-b", "topic"]).file("src/lib.rs", "pub fn two() {}\n").commit(),
        ["--input", "base=HEAD"], 7, "nothing changed since HEAD, so nothing was reviewed";
    a_branch_without_anything_to_compare_with:
        one_file().git(&["branch", "-m", "main", "work"]), [], 7, "name the revision to compare with; --input base=REVISION names another base";
    a_major_finding_where_major_fails:
        one_file().says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")])).says(FIXER, outcomes(&[("c1-F001", "blocked")])),
        ["--fail-on", "major"], 8, "comment: 1 findings";
}

/// A finding that nobody reads where it stands.
static CRITICAL: LazyLock<Value> =
    LazyLock::new(|| json!({"severity": "critical", "message": "SQL injection in the login"}));

/// A minor finding with a critical one inside.
fn hidden_in_a_minor_one() -> Value {
    let mut minor = finding("F001", "src/lib.rs", "minor");
    minor["also"] = CRITICAL.clone();
    found(&[minor])
}

/// The code reviewer gives this beside an approval, as often as it is asked.
fn by_code_reviewer(more: &Value) -> Scenario {
    (0..3).fold(one_file(), |scenario, _| scenario.says(CODE_REVIEWER, review(more)))
}

#[test]
fn what_may_be_said_beside_the_findings_is_no_reason_to_ask() {
    let more =
        json!({"metadata": {"base": "main", "critical": 0}, "output": "No critical issues."});
    let ran = one_file().says(CODE_REVIEWER, review(&more)).run(&BY_IT);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn a_reviewer_that_says_it_in_a_field_of_the_contract_when_asked_gets_through() {
    let ran = one_file()
        .says(
            REVIEWER,
            json!({"groups": [], "files_reviewed": READ, "verdict": "approve", "notes": []}),
        )
        .says(REVIEWER, json!({"groups": [], "files_reviewed": READ, "notes": []}))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = ran.prompt("review/1/unified-reviewer#1", 1);
    assert_eq!(prompt.matches("A result with other fields is refused").count(), 1, "{prompt}");
    let asked = ran.prompt("review/1/unified-reviewer#1", 2);
    assert!(asked.contains("leave out `verdict`"), "{asked}");
    assert!(!asked.contains("`notes`"), "an empty field says nothing: {asked}");
}

/// A review that ends in the middle of a finding.
const CUT_OFF: &str =
    "FENCEjson\n{\"groups\": [{\"description\": \"keys\", \"findings\": [{\"id\": \"F001\", \"seve";

fn fenced(result: &Value) -> String {
    format!("```json\n{result:#}\n```\n")
}

/// What the prompt shows as an example.
fn example() -> Value {
    let id = "review-fix/grouped-review-result";
    counterfoil_packs::registry_for(id).get(id).unwrap().definition().examples[0].clone()
}

/// A reviewer that replies with this text to the prompt and both repair prompts.
fn three_times(text: &str) -> Scenario {
    (0..3).fold(one_file(), |scenario, _| scenario.raw(REVIEWER, text))
}

/// A reviewer that replies with this text, and then with reviews that found nothing.
fn then_nothing(text: &str) -> Scenario {
    one_file().raw(REVIEWER, text).says(REVIEWER, nothing()).says(REVIEWER, nothing())
}

/// A review in a fence that ends after its first finding.
fn cut_off_after(review: &Value) -> String {
    let text = fenced(review);
    let end = text.find('}').unwrap();
    text[..=end].to_owned()
}

/// A reviewer that gives this result to the prompt and both repair prompts.
fn thrice(result: &Value) -> Scenario {
    three_times(&fenced(result))
}

/// A review of the other reviewer that found nothing, with something else in it.
fn review(more: &Value) -> Value {
    let mut review =
        json!({"success": true, "findings": [], "files_reviewed": 1, "summary": "All good"});
    for (field, value) in more.as_object().unwrap() {
        review[field] = value.clone();
    }
    review
}

fn critical() -> Value {
    found(&[finding("F001", "src/lib.rs", "critical")])
}

fn one_critical() -> Scenario {
    one_file().says(REVIEWER, critical())
}

/// One critical finding that is said to be fixed; the second look reports it again, with this changed, and then nobody can fix it.
fn found_again(changed: &Value) -> Scenario {
    let mut again = finding("F001", "src/lib.rs", "critical");
    for (name, value) in changed.as_object().unwrap() {
        again[name] = value.clone();
    }
    one_critical()
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, found(&[again]))
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
}

/// One critical finding, and a fixer that says "fixed" each time.
fn critical_and_fixer(times: usize, act: impl Fn(Scenario) -> Scenario) -> Scenario {
    let say = |scenario: Scenario| act(scenario.says(FIXER, outcomes(&[("c1-F001", "fixed")])));
    let scenario = (0..times).fold(one_critical(), |scenario, _| say(scenario));
    // Whatever the reviewers look at again, they find nothing.
    (0..3).fold(scenario, |scenario, _| scenario.says(REVIEWER, nothing()))
}

/// A finding whose severity is not one.
fn malformed(severity: &str) -> Value {
    finding("F002", "src/lib.rs", severity)
}

#[test]
fn a_finding_that_stays_malformed_while_the_others_are_fixed() {
    let both = || found(&[finding("F001", "src/lib.rs", "major"), malformed("blocker")]);
    let scenario = (0..3).fold(one_file(), |scenario, _| scenario.says(REVIEWER, both()));
    let scenario = scenario
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing());
    let ran = not_done(scenario, &[], 7, "cannot be read: c1-unread-1");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-unread-1 open 0"]);
    let report = ran.json(&super::of_report(&ran, "report.json"));
    assert_eq!(report["accounts"]["total"], 2);
    let issue = report["findings"][1]["finding"]["issue"].as_str().unwrap();
    assert!(
        issue.contains("\"severity\":\"blocker\"") && issue.contains("F002 is wrong"),
        "{issue}"
    );
}

#[test]
fn a_minor_finding_that_stays_malformed_is_no_approval_either() {
    let mut minor = malformed("minor");
    minor.as_object_mut().unwrap().remove("line");
    let bad = found(&[finding("F001", "src/lib.rs", "minor"), minor]);
    let scenario = (0..3).fold(one_file(), |scenario, _| scenario.says(REVIEWER, bad.clone()));
    let scenario = scenario
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing());
    let ran = not_done(scenario, &["--fail-on", "never"], 7, "cannot be read: c1-unread-1");
    assert_eq!(ran.variables()["recommendation"], "comment");
}

#[test]
fn a_malformed_finding_that_is_left_out_of_the_repaired_result() {
    let scenario = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor"), malformed("HIGH")]))
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor")]))
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing());
    let ran = not_done(scenario, &[], 7, "cannot be read: c1-unread-1");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-unread-1 open 0"]);
}

#[test]
fn a_readable_finding_of_a_refused_reply_that_is_left_out_of_the_next() {
    let critical = finding("F001", "src/lib.rs", "critical");
    let scenario = then_nothing(&fenced(&found(&[critical, malformed("HIGH")])));
    let ran = not_done(scenario, &[], 8, "request-changes: 2 findings, 0 fixed");
    assert_eq!(ledger(&ran), ["c1-unread-1 open 0", "c1-unread-2 open 0"]);
}

#[test]
fn a_finding_in_a_reply_that_stays_broken_while_the_others_are_fixed() {
    let broken = "```json\n{\"groups\": [{\"description\": \"d\", \"findings\": [{\"issue\": \"the lock \"leaks\" here\"}]}]}\n```\n";
    let scenario = (0..3)
        .fold(three_files(), |scenario, _| scenario.raw(REVIEWER, broken).when("file: src/b.rs"));
    let scenario = scenario
        .says(REVIEWER, found(&[finding("F001", "src/a.rs", "major")]))
        .when("file: src/a.rs")
        .says(REVIEWER, nothing())
        .when("file: src/c.rs")
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/a.rs", "pub fn a() { good() }\n");
    let scenario = (0..3).fold(scenario, |scenario, _| scenario.says(REVIEWER, nothing()));
    let ran = not_done(scenario, &super::SMALL, 7, "the lock \"leaks\" here");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c2-unread-1 open 0"]);
    // The next reviewer of the file is shown it.
    let again = ran.prompt("rereview/5/unified-reviewer#1", 1);
    assert!(again.contains("unreadable report 1") && again.contains("the lock"), "{again}");
}

#[test]
fn a_malformed_finding_of_a_reviewer_that_fails_when_it_is_asked_again() {
    let scenario = three_files()
        .says(REVIEWER, found(&[malformed("HIGH")]))
        .when("file: src/b.rs")
        .reply(REVIEWER)
        .fails("agent")
        .when("file: src/b.rs")
        .says(REVIEWER, found(&[finding("F001", "src/a.rs", "major")]))
        .when("file: src/a.rs")
        .says(REVIEWER, nothing())
        .when("file: src/c.rs")
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/a.rs", "pub fn a() { good() }\n");
    let scenario = (0..3).fold(scenario, |scenario, _| scenario.says(REVIEWER, nothing()));
    let ran = not_done(scenario, &super::SMALL, 7, "F002 is wrong");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c2-unread-1 open 0"]);
}

#[test]
fn a_malformed_remark_of_the_code_reviewer_that_is_taken_back() {
    let remark = json!({"severity": "critical", "file": "src/lib.rs", "message": "Overflow"});
    let scenario = one_file()
        .says(CODE_REVIEWER, review(&json!({"findings": [remark]})))
        .says(CODE_REVIEWER, review(&json!({})));
    let ran = not_done(scenario, &BY_IT, 8, "1 open");
    assert_eq!(ledger(&ran), ["c1-unread-1 open 0"]);
}

#[test]
fn a_repaired_finding_is_no_second_one() {
    let mut repaired = malformed("critical");
    repaired["issue"] = json!("the same in other words");
    let ran = one_file()
        .says(REVIEWER, found(&[malformed("HIGH")]))
        .says(REVIEWER, found(&[repaired]))
        .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F002 fixed 1"]);
}

#[test]
fn a_fixed_finding_that_every_review_finds_again() {
    let scenario = (0..3).fold(one_critical(), |scenario, at| {
        scenario
            .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
            .writes("src/lib.rs", &format!("pub fn one() -> u32 {{\n    {at}0\n}}\n"))
            .says(REVIEWER, found(&[finding("c1-F001", "b/src/lib.rs", "critical")]))
    });
    let ran = not_done(scenario, &[], 8, "1 open");
    assert_eq!(ledger(&ran), ["c1-F001 open 3"]);
}

#[test]
fn a_minor_finding_that_turns_out_to_be_critical() {
    let scenario = (0..3).fold(
        one_file().says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor")])),
        |scenario, at| {
            scenario
                .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
                .writes("src/lib.rs", &format!("pub fn one() -> u32 {{\n    {at}0\n}}\n"))
                .says(REVIEWER, found(&[finding("c1-F001", "src/lib.rs", "critical")]))
        },
    );
    not_done(scenario, &[], 8, "request-changes: 1 findings");
}

#[test]
fn fixes_that_break_the_tests() {
    let scenario = one_file()
        .file("counterfoil.toml", CHECKS)
        .says(REVIEWER, json!({"groups": [{"description": "name", "findings": [finding("F001", "src/lib.rs", "minor")]}], "files_reviewed": ["src/lib.rs", "counterfoil.toml"]}))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", "pub fn two() -> u32 {\n    2\n}\n");
    // The reviewers are content; the fixers say that it is fixed, and it is not.
    let scenario = (0..3).fold(scenario, |scenario, at| {
        scenario
            .says(
                REVIEWER,
                json!({"groups": [], "files_reviewed": ["src/lib.rs", "counterfoil.toml"]}),
            )
            .says(FIXER, outcomes(&[("check-test", "fixed")]))
            .when("check-test")
            .writes("src/lib.rs", &format!("pub fn two() -> u32 {{\n    2{at}\n}}\n"))
    });
    let ran = not_done(scenario, &[], 8, "failing checks: test");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "check-test open 2"]);
    let sent = ran.prompt("fix/check-test/fix#1", 1);
    assert!(sent.contains("the check `test` passed before the fixes"), "{sent}");
    assert!(
        ran.prompt("rereview/2/unified-reviewer#1", 1)
            .contains("These fail with the change as it is now")
    );
}

#[test]
fn a_fixer_that_removes_a_test() {
    let tests = "def test_one():\n    assert 1 == 1\n\ndef test_two():\n    assert 2 == 2\n";
    let scenario = Scenario::new("review-fix")
        .file("test_calc.py", tests)
        .commit()
        .file("src/lib.rs", "pub fn one() -> u32 {\n    2\n}\n")
        .says(REVIEWER, critical());
    let scenario = (0..9).fold(scenario, |scenario, _| {
        scenario
            .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
            .writes("src/lib.rs", FIXED)
            .writes("test_calc.py", "def test_one():\n    assert 1 == 1\n")
    });
    let read = json!({"groups": [], "files_reviewed": ["src/lib.rs", "test_calc.py"]});
    let scenario = (0..3).fold(scenario, |scenario, _| scenario.says(REVIEWER, read.clone()));
    let ran = not_done(scenario, &[], 8, "1 deferred");
    let asked = ran.prompt("fix/c1-g1/fix#1", 2);
    assert!(asked.contains("removed"), "{asked}");
    assert_eq!(ran.read("test_calc.py"), tests, "such work is not taken over");
    assert!(super::excuses(&ran, "c1-F001")[0].contains(".patch"), "{ran:?}");
}

#[test]
fn a_second_reviewer_that_fails() {
    let scenario = one_critical()
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .reply(REVIEWER)
        .fails("agent");
    not_done(scenario, &[], 7, "not reviewed, so not approved");
}

#[test]
fn fixers_that_take_the_change_back_do_not_earn_an_approval() {
    let ran = one_critical()
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")
        .run(&[]);
    assert_eq!(ran.variables()["recommendation"], "comment", "{ran:?}");
    assert!(ran.reason().contains("nothing is left of the change"), "{}", ran.reason());
}
