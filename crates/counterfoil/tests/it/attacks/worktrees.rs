//! Agents that leave the worktree they work in.

use super::DirtyProject;
use crate::verification::project::replies;
use serde_json::json;

#[test]
fn work_outside_of_the_worktree_is_seen() {
    for (what, exec, said) in [
        (
            "the main work tree",
            "echo evil > \"$MAIN/b.rs\"",
            "changed outside of the worktree while it worked, by it or by somebody else: b.rs",
        ),
        (
            "its refs",
            "git update-ref refs/heads/other HEAD~0 && git branch evil",
            "refs moved while it worked, by it or by somebody else: refs/heads/evil",
        ),
        (
            "its refs, when git cannot be asked",
            "git branch evil; echo '[broken' >> \"$MAIN/.git/config\"",
            "whether refs moved while it worked is not known",
        ),
    ] {
        let project = DirtyProject::new();
        project.write_workflow(
            "",
            "work",
            "  work: { agent: worker, workspace: worktree, go: end }",
        );
        let exec = exec.replace("$MAIN", &project.repo().display().to_string());
        let reply = json!({"exec": format!("echo new > a.rs; {exec}")});
        project.write_script(&[replies(&json!({"files": ["a.rs"]}), reply)]);
        let ran = project.run_script();
        assert!(
            ran.report["attempts"][0]["changed"]["notes"].to_string().contains(said),
            "{what}: {ran:?}"
        );
    }
}

#[test]
fn honest_work_in_a_worktree_is_not_remarked_on() {
    let project = DirtyProject::new();
    project.write_workflow("", "work", "  work: { agent: worker, workspace: worktree, go: end }");
    let reply = json!({"exec": "echo new > a.rs"});
    project.write_script(&[replies(&json!({"files": ["a.rs"]}), reply)]);
    let ran = project.run_script();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(!ran.report.to_string().contains("somebody else"), "{ran:?}");
}
