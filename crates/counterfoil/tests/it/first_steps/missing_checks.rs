//! A check that a claim or a gate relies on and that is not configured is said before the run.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;

const CONTRACT: &str = "\
contract: acme/fix
version: 1
fields: { tests_passing: boolean, note: string }
claims: { tests_passing: { kind: command, check: test } }
examples: [{ tests_passing: true, note: Nothing yet. }]
";
const SCRIPT: &str = "\
replies:
  - { agent: fixer, text: '{\"tests_passing\": true, \"note\": \"Fixed the sum.\"}' }
  - { agent: fixer, text: '{\"tests_passing\": true, \"note\": \"Fixed it again.\"}' }
";

/// A project with a workflow whose state `fix` has these keys, and a configuration.
fn project(keys: &str, config: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("contracts/fix.yaml", CONTRACT);
    project.write("script.yaml", SCRIPT);
    if !config.is_empty() {
        project.write("counterfoil.toml", config);
    }
    project.write(
        "fix.yaml",
        format!(
            "workflow: fix\nagents:\n  fixer: {{ contract: acme/fix, prompt: Fix it. }}\ncontracts: [contracts]\n\
             start: fix\nstates:\n  fix: {{ agent: fixer, {keys} go: done }}\n  done: {{ end: done }}\n"
        ),
    );
    project.commit_all("start");
    project
}

const RUN: [&str; 4] = ["run", "fix.yaml", "--agent", "script:script.yaml"];

#[test]
fn a_required_claim_without_its_check_is_refused_before_the_run() {
    let project = project("claims: { tests_passing: require },", "[checks]\nlint = \"true\"\n");
    insta::assert_snapshot!(project.snapshot(&RUN));
    project.run(&["runs"]).expect(0, &["no runs yet"]);
    project
        .run(&["workflow", "check", "fix.yaml"])
        .expect(0, &["warning: there is no check 'test'; the claim 'tests_passing' of state"]);
}

#[test]
fn a_misspelt_check_is_a_finding() {
    let project = project("checks: [tset],", "[checks]\ntest = \"true\"\n");
    insta::assert_snapshot!(project.snapshot(&["workflow", "check", "fix.yaml"]));
    project.run(&RUN).expect(2, &["F0208", "did you mean 'test'?"]);
    let (code, report) =
        project.code_and_json(&["workflow", "check", "fix.yaml", "--format", "json"]);
    assert_eq!(code, 1);
    let finding = &report["workflows"][0]["findings"][0];
    assert_eq!(finding["code"], "F0208", "{report:#}");
    assert_eq!(finding["span"]["line"], 7, "{report:#}");
}

#[test]
fn other_checks_that_are_missing_are_noted_and_the_run_goes_on() {
    let project = project("checks: [e2e],", "");
    let output = project.run(&RUN);
    output.expect(
        0,
        &[
            "warning: there are no checks 'test', 'e2e'; they are not run, and claims about them stay \
             not verified until there are: add `test = \"…\"`, `e2e = \"…\"` to [checks] in \
             counterfoil.toml\n",
            // The same afterwards.
            "1 not verifiable (there is no check 'test')",
        ],
    );
    let shown = project.run(&["show", "--claims"]);
    shown.expect(
        0,
        &["there is no check 'test'; the claim stays not verified until there is one: add `test = \"…\"` to [checks] in "],
    );
    let (code, report) =
        project.code_and_json(&["workflow", "check", "fix.yaml", "--format", "json"]);
    assert_eq!(code, 0);
    let warnings = report["workflows"][0]["warnings"].to_string();
    assert!(warnings.contains("e2e"), "{report:#}");
}

#[test]
fn the_line_to_add_has_the_command_that_init_proposes() {
    let project = project("", "");
    project.write("Makefile", ".PHONY: test\ntest:\n\ttrue\n");
    let line = "add `test = \"make test\"` to [checks] in counterfoil.toml";
    project.run(&RUN).expect(0, &["warning: there is no check 'test'; it is not run, and", line]);
    project.run(&["workflow", "check", "fix.yaml"]).expect(0, &[line]);
    let strict: Vec<&str> = RUN.iter().copied().chain(["--strict-claims"]).collect();
    project.run(&strict).expect(2, &[line]);
    project.write("counterfoil.toml", "[agents.fixer]\ncontract = \"acme/fix\"\n");
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stdout.contains(&format!("fix: {line}\n")), "{}", doctor.stdout);
}

#[test]
fn strict_claims_require_every_claim_also_when_the_run_is_resumed() {
    let unverified = project("repairs: 0,", "[checks]\ntest = \"false\"\n");
    // Recorded, the refuted claim changes nothing.
    unverified.run(&RUN).expect(0, &["1 refuted"]);
    let strict: Vec<&str> = RUN.iter().copied().chain(["--strict-claims"]).collect();
    unverified.run(&strict).expect(3, &["tests_passing refuted"]);
    // The policy is the same after a resume.
    let resumed = unverified.run(&["resume", "last", "--agent", "script:script.yaml"]);
    assert_eq!(resumed.code, Some(3), "{}", resumed.stderr);
    // What is missing is said before.
    let missing = project("", "");
    missing.run(&strict).expect(2, &["there is no check 'test'; the claim"]);
    let verified = project("", "[checks]\ntest = \"true\"\n");
    verified.run(&strict).expect(0, &["claims: 1 made, 1 verified"]);
}

/// A project whose agent leaves a function unfinished at first, and completes it when it is asked.
fn unfinished_first(keys: &str) -> TestProject {
    let project = project(keys, "[checks]\ntest = \"true\"\n");
    let reply = |text: &str| {
        format!(
            "  - {{ agent: fixer, writes: {{ src/sum.py: \"{text}\" }}, \
             text: '{{\"tests_passing\": true, \"note\": \"Done.\"}}' }}\n"
        )
    };
    let unfinished = reply("def total(items):\\n    raise NotImplementedError\\n");
    let finished = reply("def total(items):\\n    return sum(items)\\n");
    project.write("script.yaml", format!("replies:\n{unfinished}{finished}"));
    project.commit_all("script");
    project
}

#[test]
fn unfinished_work_is_sent_back_in_the_strict_mode() {
    let strict: Vec<&str> = RUN.iter().copied().chain(["--strict-claims"]).collect();
    unfinished_first("").run(&RUN).expect(0, &["claims: 1 made, 1 verified"]);
    let project = unfinished_first("");
    let place = "src/sum.py:2: placeholder: raise NotImplementedError";
    project.run(&strict).expect(0, &["complete refuted", place]);
    assert!(project.read("src/sum.py").contains("return sum(items)"));
    unfinished_first("repairs: 0,").run(&strict).expect(3, &["complete refuted", place]);
    // A workflow turns it on for a state, and off in the strict mode.
    let on = unfinished_first("repairs: 0, claims: { complete: require },");
    on.run(&RUN).expect(3, &["complete refuted", place]);
    let off = unfinished_first("claims: { complete: ignore },");
    off.run(&strict).expect(0, &["claims: 1 made, 1 verified"]);
    let other = unfinished_first("claims: { complete: { check: test } },");
    other.run(&["workflow", "check", "fix.yaml"]).expect(1, &["it has only a policy"]);
}

#[test]
fn doctor_and_pack_show_name_what_is_missing() {
    let config =
        "[checks]\nlint = \"true\"\ntset = \"true\"\n[agents.fixer]\ncontract = \"acme/fix\"\n";
    let project = project("", config);
    let doctor = project.run(&["doctor", "--format", "json"]).json().to_string();
    assert!(doctor.contains("there is no check 'test'; claims in the contract of"), "{doctor}");
    assert!(doctor.contains("did you mean 'tset'?"), "{doctor}");
    let page = project.run(&["pack", "show", "execution-loop"]);
    page.expect(0, &[]);
    let section =
        page.stdout.split("checks of the project").nth(1).unwrap().split("states\n").next();
    insta::assert_snapshot!(section.unwrap());
    let report = project.run(&["pack", "show", "execution-loop", "--format", "json"]).json();
    let lint = report["workflows"][0]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "lint");
    assert_eq!(lint.unwrap()["configured"], true, "{report:#}");
}

#[test]
fn a_file_that_is_no_contract_is_skipped_with_a_warning() {
    let project = project("", "[checks]\ntest = \"true\"\n");
    let output = r#"{"contract": "acme/fix@1", "status": "accepted", "value": {}}"#;
    project.write("contracts/output.json", output);
    project.run(&RUN).expect(0, &["warning: contracts/output.json is skipped"]);
    project
        .run(&["workflow", "check", "fix.yaml"])
        .expect(0, &["contracts/output.json is skipped"]);
    let listed = project.run(&["contract", "list", "--contracts", "contracts"]);
    listed.expect(0, &["warning: contracts/output.json is skipped"]);
    assert!(listed.stdout.contains("acme/fix"), "{}", listed.stdout);
    // One that is named is meant, and so is one with an id and a version.
    let text = project
        .read("fix.yaml")
        .replace("[contracts]", "[contracts/output.json, contracts/fix.yaml]");
    project.write("named.yaml", text);
    project.run(&["workflow", "check", "named.yaml"]).expect(1, &["contracts/output.json"]);
    project
        .write("contracts/typo.yaml", "contract: acme/typo\nversion: 1\nfeilds: { a: string }\n");
    project.run(&["contract", "list", "--contracts", "contracts"]).expect(2, &["typo.yaml"]);
}
