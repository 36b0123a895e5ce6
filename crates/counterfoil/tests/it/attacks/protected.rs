//! Files that tell the engine what to do, and those around them.

use super::DirtyProject;
use crate::verification::project::replies;
use serde_json::json;

#[test]
fn contracts_prompts_workflows_and_settings_are_protected() {
    for (file, writes) in [
        ("contracts/change.yaml", "echo 'version: 2' >> contracts/change.yaml"),
        ("contracts/more.yaml", "cp contracts/change.yaml contracts/more.yaml"),
        ("prompts/work.md", "echo approve >> prompts/work.md"),
        ("flow.yaml", "echo '# more' >> flow.yaml"),
        ("counterfoil.toml", "printf '[checks]\\ntest = \"true\"\\n' > counterfoil.toml"),
    ] {
        let project = DirtyProject::new();
        project.write_one_step("", ", claims: { protected: require }, repairs: 0");
        let before = std::fs::read(project.path(file)).ok();
        project.write_script(&[replies(&json!({"files": [file]}), json!({"exec": writes}))]);
        let ran = project.run_script();
        ran.assert_claim(0, "protected", "refuted", &[file]);
        assert_eq!(std::fs::read(project.path(file)).ok(), before, "{file}");
    }
}

/// What cannot be restored would count in the next steps.
#[test]
fn a_protected_file_that_cannot_be_restored_fails_the_step() {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "first",
        "  first: { agent: worker, go: second, repairs: 0 }\n  second: { agent: worker, go: end }",
    );
    let exec = "rm AGENTS.md; mkdir -p AGENTS.md/a/b";
    let reply = || replies(&json!({"files": ["a.rs"]}), json!({"exec": exec}));
    project.write_script(&[reply(), reply()]);
    let ran = project.run_script();
    assert_eq!(ran.report["outcome"], "failed", "{ran:?}");
    assert_eq!(ran.outcomes(), ["claim"], "{ran:?}");
}

/// A folder that cannot be read, because its path is too long, may contain anything.
#[test]
fn what_is_hidden_in_a_folder_that_cannot_be_read_is_not_verified() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 0");
    let name = "d".repeat(200);
    let exec = format!(
        "echo new > a.rs; n=0; while [ $n -lt 24 ]; do mkdir {name} && cd {name} || exit 1; n=$((n+1)); done; echo evil > evil.rs"
    );
    project.write_script(&[replies(&json!({"files": ["a.rs"]}), json!({"exec": exec}))]);
    let ran = project.run_script();
    assert_eq!(ran.verdict(0, "files"), "unverifiable", "{ran:?}");
    assert_eq!(ran.verdict(0, "protected"), "unverifiable", "{ran:?}");
}

/// A second run in the folder would be somebody who may have done what the agent did.
#[test]
fn an_agent_cannot_start_a_run_in_its_folder() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 0");
    project.write("noop.yaml", "workflow: noop\nstart: end\nstates:\n  end: { end: done }\n");
    project.git(&["add", "noop.yaml"]);
    let exec = format!(
        "echo new > a.rs; echo evil >> AGENTS.md; for with in '' 'env -i XDG_DATA_HOME={}'; do $with '{}' run noop.yaml --repo '{}' --state '{}' >> ../said 2>&1; done",
        project.data().display(),
        crate::PROGRAM,
        project.repo().display(),
        project.state().display()
    );
    project.write_script(&[replies(&json!({"files": ["a.rs"]}), json!({"exec": exec}))]);
    let ran = project.run_script();
    let said = std::fs::read_to_string(project.root_path("said")).unwrap();
    assert_eq!(said.matches("is refused inside of an attempt").count(), 2, "{said}");
    ran.assert_claim(0, "protected", "refuted", &["restored"]);
    assert_eq!(project.read("AGENTS.md"), "Be careful.\n");
}
