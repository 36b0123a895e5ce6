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

/// Two items work beside each other. The second one is done and waits for the first one to be merged,
/// which changes what the second one made.
#[test]
fn work_in_the_worktree_of_another_item_is_seen_and_not_merged() {
    let project = DirtyProject::new();
    project.write("prompts/work.md", "Do the work on {{ part }}.\n");
    project.write_workflow(
        "variables: { parts: { type: [string], initial: [one, two] } }",
        "fan",
        "  fan: { each: { in: parts, as: part, key: part, agent: worker, parallel: 2 }, go: end }",
    );
    let item = |part: &str, exec: &str| {
        let reply = json!({"exec": format!("echo {part} > {part}.rs; {exec}")});
        let mut reply = replies(&json!({"files": [format!("{part}.rs")]}), reply);
        reply["when"] = format!("work on {part}").into();
        reply
    };
    let waits = format!(
        "for n in $(seq 300); do '{}' show last --state '{}' --format json | grep -q accepted && break; sleep 0.1; done; \
         for other in \"$(dirname \"$PWD\")\"/*/two.rs; do echo evil > \"$(dirname \"$other\")/evil.rs\"; done",
        crate::PROGRAM,
        project.state().display()
    );
    project.write_script(&[item("one", &waits), item("two", "true")]);
    let ran = project.run_script();
    assert_eq!(ran.outcomes(), ["accepted", "accepted"], "{ran:?}");
    let said = "changed in this worktree while no step worked in it: evil.rs";
    assert_eq!(ran.report["outcome"], "blocked", "{:#}", ran.report);
    assert!(ran.reason().contains(said), "{:#}", ran.report);
    assert_eq!(project.read_or_empty("one.rs"), "one\n");
    assert!(!project.path("two.rs").exists() && !project.path("evil.rs").exists());
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

#[test]
fn the_next_step_does_not_use_the_configuration_that_a_worktree_wrote_elsewhere() {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", "[checks]\ntest = \"false\"\n");
    project.git(&["add", "counterfoil.toml"]);
    project.git(&["commit", "-q", "--no-verify", "-m", "checks", "counterfoil.toml"]);
    project.write_workflow(
        "",
        "one",
        "  one: { agent: worker, workspace: worktree, go: two }\n  two: { agent: worker, repairs: 0, go: end }",
    );
    let config = project.path("counterfoil.toml");
    let exec = format!("printf '[checks]\\ntest = \"true\"\\n' > '{}'", config.display());
    let claim = json!({"files": [], "tests_pass": true});
    project.write_script(&[
        replies(&json!({"files": []}), json!({"exec": exec})),
        replies(&claim, json!({})),
    ]);
    let ran = project.run_script();
    assert_eq!(ran.verdict(1, "tests_pass"), "refuted", "{ran:?}");
}
