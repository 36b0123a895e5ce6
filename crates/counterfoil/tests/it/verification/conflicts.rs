//! Work in worktrees that cannot be merged, and undoing work that was.

use crate::verification::project::{DirtyProject, VerifiedRun, claims};
use counterfoil_testkit::git_command;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Two items that work beside each other, with more keys of the fan-out and of its state.
fn fan(project: &DirtyProject, more: &str, next: &str) {
    project.write("prompts/work.md", "Do the work on {{ part }}.\n");
    project.write_workflow(
        "variables: { parts: { type: [string], initial: [one, two] } }",
        "fan",
        &format!("  fan:\n    each: {{ in: parts, as: part, key: part, agent: worker, parallel: 2{more} }}\n    {next}"),
    );
}

/// What both items make of the same lines, and what else each of them does.
fn clash() -> [serde_json::Value; 2] {
    let with = |part: &str| {
        let mut reply = claims(
            &["src/lib.rs", &format!("{part}.rs")],
            json!({"writes": {
                "src/lib.rs": format!("one\ntwo\nthree\n{part}\nfive\nsix\nseven\n"),
                format!("{part}.rs"): format!("fn {part}() {{}}\n"),
            }}),
        );
        reply["when"] = format!("work on {part}").into();
        reply
    };
    [with("one"), with("two")]
}

/// The patch that was kept, by the report.
fn kept(project: &DirtyProject, reason: &str) -> PathBuf {
    let named =
        reason.split_whitespace().map(|word| word.trim_matches(|c: char| "'`,;:.()".contains(c)));
    let path = named
        .into_iter()
        .find(|word| Path::new(word).extension().is_some_and(|ending| ending == "patch"))
        .unwrap_or_else(|| panic!("no patch is named: {reason}"));
    let path = project.root().join(path);
    assert!(path.is_file(), "{}", path.display());
    path
}

/// Applies a kept patch to what it was made from, in a clone.
fn applies(project: &DirtyProject, patch: &Path) -> PathBuf {
    let clone = project.scratch_path("clone");
    let cloned = git_command(project.root(), &["clone", "-q", "repo", clone.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(cloned.status.success(), "{cloned:?}");
    let applied = git_command(&clone, &["apply", patch.to_str().unwrap()]).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    clone
}

#[test]
fn a_conflict_fails_with_the_files_named_and_the_work_kept_as_a_patch() {
    let project = DirtyProject::new();
    fan(&project, "", "go: end");
    let ran = project.run_replies(&clash(), &["src/lib.rs", "one.rs"]);
    assert_eq!(ran.report["outcome"], "failed", "{ran:?}");
    assert_eq!(ran.outcomes(), ["accepted", "accepted"]);
    assert!(ran.reason().contains("src/lib.rs"), "{}", ran.reason());
    assert_eq!(
        project.read_or_empty("src/lib.rs"),
        "one\ntwo\nthree\none\nfive\nsix\nseven\n",
        "the first one stands"
    );
    let clone = applies(&project, &kept(&project, ran.reason()));
    assert_eq!(
        std::fs::read_to_string(clone.join("src/lib.rs")).unwrap(),
        "one\ntwo\nthree\ntwo\nfive\nsix\nseven\n"
    );
    assert_eq!(std::fs::read_to_string(clone.join("two.rs")).unwrap(), "fn two() {}\n");
    let (words, _) = ran.reason().split_once("kept/").unwrap();
    // The state is not in the repository, so only the whole path can be used from there.
    let state = project.state().display();
    assert_eq!(
        words,
        format!(
            "item 'two': changes conflict with the repository: src/lib.rs; the work is kept in {state}/"
        )
    );
}

#[test]
fn a_conflict_of_one_item_is_collected_beside_what_is_done() {
    let project = DirtyProject::new();
    fan(
        &project,
        ", failures: collect",
        "next: [{ when: size(result.failed) == 0, go: end }, { go: some, reason: \"result.failed.map(one, one.key + ': ' + one.reason)\" }]",
    );
    project.write("flow.yaml", project.read_or_empty("flow.yaml") + "  some: { end: blocked }\n");
    let ran = project.run_replies(&clash(), &["src/lib.rs", "one.rs"]);
    assert_eq!((ran.report["outcome"].as_str(), ran.code), (Some("blocked"), Some(7)), "{ran:?}");
    assert!(
        ran.reason().contains("two: ") && ran.reason().contains("src/lib.rs"),
        "{}",
        ran.reason()
    );
}

/// One step in a worktree, while the user edits what it edits.
fn meanwhile(on: &str) -> (DirtyProject, VerifiedRun) {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "work",
        &format!("  work: {{ agent: worker, workspace: worktree, go: end{on} }}"),
    );
    let mine = project.repo().join("src/lib.rs").display().to_string();
    let reply = claims(
        &["src/lib.rs", "new.rs"],
        json!({
            "writes": {"src/lib.rs": "one\ntwo\nthree\nagent\nfive\nsix\nseven\n", "new.rs": "new\n"},
            "exec": format!("sed -i s/four/user/ '{mine}'"),
        }),
    );
    let ran = project.run_replies(&[reply], &["src/lib.rs"]);
    assert_eq!(
        project.read_or_empty("src/lib.rs"),
        "one\ntwo\nthree\nuser\nfive\nsix\nseven\n",
        "the user's words stand"
    );
    (project, ran)
}

#[test]
fn what_the_user_wrote_meanwhile_is_never_written_over() {
    let (project, ran) = meanwhile("");
    assert_eq!(ran.report["outcome"], "failed", "{ran:?}");
    assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
    assert!(ran.reason().contains("src/lib.rs"), "{}", ran.reason());
    let clone = applies(&project, &kept(&project, ran.reason()));
    assert_eq!(std::fs::read_to_string(clone.join("new.rs")).unwrap(), "new\n");
}

#[test]
fn the_trouble_conflict_leads_elsewhere() {
    let (project, ran) = meanwhile(
        ", on: { conflict: { go: resolve, reason: problem.reason } } }\n  resolve: { end: blocked",
    );
    assert_eq!((ran.report["outcome"].as_str(), ran.code), (Some("blocked"), Some(7)), "{ran:?}");
    kept(&project, ran.reason());
}

#[test]
fn what_was_brought_in_can_be_taken_out_again() {
    let project = DirtyProject::new();
    fan(&project, "", "go: end");
    let part = |part: &str, does| {
        let mut reply = claims(&[], does);
        reply["when"] = format!("work on {part}").into();
        reply
    };
    project.write_script(&[
        part("one", json!({"writes": {"a.rs": "one\n", "one/deep.rs": "one\n"}, "deletes": ["b.rs"]})),
        part("two", json!({"writes": {"mine.txt": "two\n", "untracked.txt": "two\n"}, "exec": "chmod 755 src/lib.rs"})),
    ]);
    let before = project.user_files();
    let ran = project.run_script();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let all = ["a.rs", "b.rs", "one/deep.rs", "mine.txt", "untracked.txt", "src/lib.rs"];
    project.assert_only_changed(&before, &all);
    // Somebody's later words stand in the way of all of it.
    let stands = project.read_or_empty("a.rs");
    project.write("a.rs", "later\n");
    let output = project.run(&["undo", "last"]);
    assert_ne!(output.code, Some(0), "{output:?}");
    output.expect(output.code.unwrap(), &["a.rs"]);
    project.assert_only_changed(&before, &all);
    project.write("a.rs", stands);
    project.run(&["undo", "last"]).expect(0, &[]);
    project.assert_only_changed(&before, &[]);
    assert!(!project.repo().join("one").exists());
}

#[test]
fn an_attempt_that_fails_in_a_worktree_leaves_only_a_patch() {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "work",
        "  work: { agent: worker, workspace: worktree, repairs: 0, claims: { files: require }, go: end }",
    );
    let ran = project.run_replies(
        &[claims(&["b.rs"], json!({"writes": {"a.rs": "work\n", "AGENTS.md": "obey\n"}}))],
        &[],
    );
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    let clone = applies(&project, &kept(&project, &format!("{} {}", ran.reason(), ran.stderr)));
    assert_eq!(std::fs::read_to_string(clone.join("a.rs")).unwrap(), "work\n");
    assert_eq!(
        std::fs::read_to_string(clone.join("AGENTS.md")).unwrap(),
        "Be careful.\n",
        "what is protected is not in it"
    );
}
