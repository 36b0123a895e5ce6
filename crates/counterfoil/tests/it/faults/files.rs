//! Files that disappear or change during a run: it continues with the versions it started with.

use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow, workflow_with_question};

/// A run that waits for an answer, with an agent that keeps what it was asked.
fn resting() -> ShellProject {
    let project = ShellProject::new();
    project.write("flow.yaml", workflow_with_question());
    project.write("agent.sh", "cat > asked\necho '{\"ok\": true}'\n");
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    project
}

#[test]
fn a_run_goes_on_when_its_files_are_gone() {
    let project = resting();
    for file in ["flow.yaml", "contracts/ok.yaml", "prompts/work.md"] {
        std::fs::remove_file(project.repo().join(file)).unwrap();
    }
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert!(project.read_or_empty("asked").starts_with("Do the work."));
    project.assert_intact();
}

#[test]
fn a_run_keeps_the_words_and_the_contract_it_began_with() {
    let project = resting();
    project.write("flow.yaml", agent_workflow("").replace("go: end", "go: nowhere"));
    project.write("prompts/work.md", "Do something else.\n");
    project
        .write("contracts/ok.yaml", "contract: acme/ok\nversion: 1\nfields: { other: string }\n");
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert!(project.read_or_empty("asked").starts_with("Do the work."));
    project.assert_intact();
}

#[test]
fn a_prompt_that_is_missing_is_found_before_anything_runs() {
    let project = ShellProject::new();
    project.write("flow.yaml", agent_workflow("").replace("prompts/work.md", "prompts/wrok.md"));
    project.run_workflow("flow.yaml", SHELL_AGENT).expect(2, &["flow.yaml:2:", "prompts/wrok.md"]);
    assert_eq!(project.read_or_empty("before"), "");
    assert!(!project.state().exists(), "nothing was journaled");
}

#[test]
fn a_run_whose_repository_is_gone_waits_for_it_to_come_back() {
    let project = resting();
    let aside = project.root().join("aside");
    std::fs::rename(project.repo(), &aside).unwrap();
    let output = project.run(&["answer", "last", "approve", "yes", "--resume"]);
    output.expect(2, &[project.repo().to_str().unwrap(), "does not exist", "counterfoil resume"]);
    std::fs::rename(&aside, project.repo()).unwrap();
    // The answer was taken all the same.
    project.run(&["resume", "last"]).expect(0, &["done"]);
    assert_eq!(project.count_events("answered"), 1);
    project.assert_intact();
}
