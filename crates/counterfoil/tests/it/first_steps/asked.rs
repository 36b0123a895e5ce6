//! At a terminal, people are asked: whether an agent returns what a contract of its name asks for,
//! and which fields of an example may be missing.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;

/// Runs the program on a terminal, with these lines typed.
fn at_terminal(project: &TestProject, arguments: &str, typed: &str) -> String {
    let line = format!("'{PROGRAM}' {arguments}");
    let mut command = project.command_of("script", &["-qec", &line, "/dev/null"]);
    let output = command.write_stdin(typed).output();
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn init_asks_before_it_binds_an_agent_to_one_of_our_contracts() {
    for (typed, binds) in [("y\ny\n", true), ("n\ny\n", false)] {
        let project = TestProject::new(PROGRAM);
        project.init_git();
        project.write(".claude/agents/qa.md", "---\nname: qa\n---\nYou check.\n");
        project.write("Makefile", "test:\n\ttrue\n");
        let shown = at_terminal(&project, "init", typed);
        assert!(
            shown.contains("Does the agent 'qa' return what the contract execution-loop/qa"),
            "{shown}"
        );
        let config = project.read("counterfoil.toml");
        assert!(config.contains("test = \"make test\""), "{config}");
        assert_eq!(config.contains("execution-loop/qa"), binds, "{config}");
    }
}

#[test]
fn new_asks_which_fields_may_be_missing() {
    let project = TestProject::new(PROGRAM);
    project.write("answer.json", r#"{"ok": true, "score": 1}"#);
    let shown = at_terminal(&project, "new contract gate --from-example answer.json", "score\n");
    assert!(shown.contains("fields of the example: ok, score"), "{shown}");
    let contract = project.read("contracts/gate.yaml");
    assert!(
        contract.contains("required:\n  - ok\n") && !contract.contains("  - score\n"),
        "{contract}"
    );
}

#[test]
fn a_wrong_answer_is_explained_and_asked_for_again() {
    let project = TestProject::new(PROGRAM);
    project.write("answer.json", r#"{"ok": true, "score": 1}"#);
    let new = "new contract gate --from-example answer.json";
    // The input ends before there is an answer.
    let shown = at_terminal(&project, new, "scor\n");
    assert!(shown.contains("no field 'scor'; did you mean 'score'?"), "{shown}");
    assert!(shown.contains("there is no answer"), "{shown}");
    assert!(!project.path("contracts").exists());
    let shown = at_terminal(&project, new, "scor\nscore\n");
    assert_eq!(shown.matches("Which of them may be missing?").count(), 2, "{shown}");
    let contract = project.read("contracts/gate.yaml");
    assert!(contract.contains("required:\n  - ok\n"), "{contract}");
}
