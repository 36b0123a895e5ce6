//! The prompts of the agents: an input that satisfies its contract, with all the files to read.

use super::{Team, doc, done, folder, holds, ok, task};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// The input in a prompt.
fn input(ran: &ScenarioRun, attempt: &str) -> Value {
    let prompt = ran.prompt(attempt, 1);
    let start =
        prompt.find("\n{\n").unwrap_or_else(|| panic!("{attempt} was sent no input: {prompt}"));
    let mut values = serde_json::Deserializer::from_str(&prompt[start..]).into_iter::<Value>();
    let value =
        values.next().unwrap().unwrap_or_else(|error| panic!("{attempt}: {error}\n{prompt}"));
    holds("gated-team/input", &value.to_string());
    value
}

/// The files of the session that an attempt was asked to read.
fn context(ran: &ScenarioRun, attempt: &str) -> Vec<String> {
    let folder = format!("{}/", folder(ran));
    let files = input(ran, attempt)["task"]["context_files"].as_array().unwrap().clone();
    files
        .iter()
        .map(|file| file.as_str().unwrap().strip_prefix(&folder).unwrap().to_owned())
        .collect()
}

fn whole() -> ScenarioRun {
    let scenario = Scenario::team().intake().design();
    let scenario = scenario.says("Designer", ok()).exec(&doc("design-specs/list.md", "# The list"));
    let scenario = scenario
        .plan(&[task("T-001", &[])])
        .codes()
        .says("Reviewer", super::held_back("No."))
        .codes();
    let scenario = scenario.passes(&["Reviewer", "QA", "Security"]).released();
    let ran = scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "ui=true"]);
    done(&ran);
    ran
}

#[test]
fn every_dispatch_holds_to_the_input_contract() {
    let ran = whole();
    for attempt in super::asked(&ran) {
        let sent = input(&ran, &attempt);
        assert_eq!(sent["repo_state"]["branch"], "main", "{attempt}");
        assert!(!sent["tools_available"].as_array().unwrap().is_empty(), "{attempt}");
    }
    assert_eq!(input(&ran, "INTAKE#1")["task"]["id"], "meta");
    assert_eq!(input(&ran, "INTAKE#1")["task"]["goal"], "Add parts");
    let task = input(&ran, "IMPLEMENT#1")["task"].clone();
    assert_eq!(task["id"], "T-001");
    assert_eq!(task["goal"], "Part T-001 is there");
    assert_eq!(task["acceptance_checks"], json!(["cmd: test -f src/lib.rs"]));
    assert_eq!(task["constraints"], json!(["done when: it is there"]));
    assert_eq!(input(&ran, "INTEGRATE#1")["task"]["id"], "meta");
}

#[test]
fn required_context_of_each_agent() {
    let ran = whole();
    let table: &[(&str, &[&str])] = &[
        ("INTAKE#1", &[]),
        ("DESIGN#1", &["spec.md", "acceptance.json"]),
        ("DESIGN_UI#1", &["spec.md", "acceptance.json", "architecture.md"]),
        ("PLAN#1", &["spec.md", "acceptance.json", "architecture.md", "design-specs/list.md"]),
        ("IMPLEMENT#1", &["spec.md", "architecture.md", "tasks.yaml", "design-specs/list.md"]),
        ("REVIEW#1", &["spec.md", "architecture.md", "tasks.yaml", "design-specs/list.md"]),
        ("FIX_REVIEW#1", &["spec.md", "architecture.md", "tasks.yaml", "design-specs/list.md"]),
        ("QA#1", &["spec.md", "acceptance.json", "tasks.yaml", "design-specs/list.md"]),
        ("SECURITY#1", &["architecture.md", "tasks.yaml"]),
        ("INTEGRATE#1", &["tasks.yaml", "acceptance.json"]),
        ("RELEASE#1", &["spec.md", "acceptance.json", "architecture.md", "tasks.yaml"]),
        ("RELEASE_REPORT#1", &["tasks.yaml", "acceptance.json"]),
    ];
    for (attempt, files) in table {
        assert_eq!(context(&ran, attempt), *files, "{attempt}");
    }
}

#[test]
fn the_files_of_the_session_are_listed_as_they_come() {
    let ran = whole();
    let listed = |attempt: &str| input(&ran, attempt)["artifact_list"].as_array().unwrap().len();
    assert_eq!(
        ["INTAKE#1", "DESIGN#1", "DESIGN_UI#1", "PLAN#1", "IMPLEMENT#1"].map(listed),
        [0, 2, 3, 4, 5]
    );
}

#[test]
fn those_who_only_read_are_given_no_tools_to_write() {
    let ran = whole();
    for attempt in ["REVIEW#1", "SECURITY#1"] {
        let tools = input(&ran, attempt)["tools_available"].to_string();
        assert!(
            !tools.contains("write_file") && !tools.contains("apply_patch"),
            "{attempt}: {tools}"
        );
    }
}

#[test]
fn what_the_agents_hand_back_is_asked_for_by_the_contract() {
    let ran = whole();
    let contract = counterfoil_packs::registry_for("gated-team").get("gated-team/output").unwrap();
    let example = format!("{:#}", contract.shown_examples().last().unwrap());
    // The suffix that the contract makes stands at the end of every prompt.
    for attempt in super::asked(&ran) {
        let prompt = ran.prompt(&attempt, 1);
        let (_, suffix) = prompt
            .rsplit_once("\nAnswer with one JSON object and nothing else: no fence, ")
            .unwrap_or_else(|| panic!("{attempt}: {prompt}"));
        assert!(suffix.contains("- `meets_definition_of_done` (boolean"), "{attempt}: {suffix}");
        assert!(suffix.trim_end().ends_with(&example), "{attempt}: {suffix}");
    }
}

/// What an agent reads cannot be observed; what it is told can.
#[test]
fn everybody_is_told_to_read_all_that_there_is() {
    let ran = whole();
    for attempt in super::asked(&ran) {
        let told = ran.prompt(&attempt, 1).contains("Read every file in `context_files` before");
        assert_eq!(told, !context(&ran, &attempt).is_empty(), "{attempt}");
    }
    assert!(ran.prompt("IMPLEMENT#1", 1).contains("a design-spec is followed to the letter"));
    assert!(ran.prompt("QA#1", 1).contains("its checks and its design-specs say"));
    assert!(ran.prompt("REVIEW#1", 1).contains("follow its design-specs to the letter"));
    for attempt in ["INTAKE#1", "DESIGN#1", "DESIGN_UI#1", "RELEASE#1"] {
        let prompt = ran.prompt(attempt, 1).replace('\n', " ");
        assert!(prompt.contains("Plain Markdown, to the point."), "{attempt}");
    }
}

#[test]
fn the_architect_may_write_its_decisions_down() {
    let pages = doc("architecture.md", "# Architecture") + &doc("adr/0001.md", "# One file");
    let scenario = Scenario::team().intake().says("Architect", ok()).exec(&pages);
    let ran = scenario.says("Planner", super::status("FAIL", "enough")).play();
    super::blocked(&ran, "enough");
    let adr = format!("{}/adr/", folder(&ran));
    assert!(ran.prompt("DESIGN#1", 1).contains(&format!("a page in `{adr}`")));
    assert_eq!(ran.read(&format!("{adr}0001.md")), "# One file\n");
    assert_eq!(ran.attempt("DESIGN#1")["repairs_asked"], 0);
}

#[test]
fn the_lean_coder_reads_what_there_is() {
    let scenario = Scenario::team().intake().codes().passes(&["Reviewer", "QA"]).released();
    let ran =
        scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "path=lean"]);
    done(&ran);
    assert_eq!(context(&ran, "IMPLEMENT#1"), ["spec.md", "acceptance.json", "tasks.yaml"]);
    assert_eq!(context(&ran, "RELEASE#1"), ["spec.md", "acceptance.json", "tasks.yaml"]);
}

/// Who must report BLOCKED because of what: each is told only what it can judge.
#[test]
fn each_role_is_told_when_to_block() {
    let ran = whole();
    let (missing, tests, key_tests, issue, other) = (
        "if a file in `context_files` is missing",
        "nothing that could run the tests",
        "key tests that are missing",
        "high or critical security issue",
        "something that is not what the specification says",
    );
    let table: &[(&str, &[&str])] = &[
        ("INTAKE#1", &[issue]),
        ("DESIGN#1", &[missing, issue]),
        ("DESIGN_UI#1", &[missing]),
        ("PLAN#1", &[missing]),
        ("IMPLEMENT#1", &[missing, tests, issue, other]),
        ("FIX_REVIEW#1", &[missing, tests, issue, other]),
        ("REVIEW#1", &[missing, key_tests, issue, other]),
        ("QA#1", &[missing, tests, key_tests, issue, other]),
        ("SECURITY#1", &[missing, issue]),
        ("INTEGRATE#1", &[missing, tests]),
        ("RELEASE#1", &[missing]),
        ("RELEASE_REPORT#1", &[missing, tests]),
    ];
    for (attempt, told) in table {
        let sent = ran.prompt(attempt, 1);
        let start = sent.find("Report BLOCKED, never OK").unwrap();
        let rules = sent[start..].split("\n\n").next().unwrap().replace('\n', " ");
        for rule in [missing, tests, key_tests, issue, other] {
            assert_eq!(rules.contains(rule), told.contains(&rule), "{attempt}, {rule}: {rules}");
        }
    }
}
