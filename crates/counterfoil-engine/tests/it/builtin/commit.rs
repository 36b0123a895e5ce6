//! The built-in step `commit`.

use crate::builtin::project::{Project, git, run_step_in};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

/// A commit of these paths.
fn commit_of(paths: &[&str]) -> String {
    format!("commit: {{ message: \"feat(a): it\", paths: {} }}", json!(paths))
}

fn output(value: &Value) -> &str {
    value["output"].as_str().unwrap()
}

/// Asserts that nothing was committed, and returns the output.
fn refused(project: &Project, value: &Value) -> String {
    assert_eq!(
        (&value["ok"], &value["commit"], &value["files"]),
        (&json!(false), &json!(""), &json!([]))
    );
    assert_eq!(project.log(), ["x"]);
    output(value).to_owned()
}

#[test]
fn exactly_the_paths_are_committed_as_they_stand() {
    let project = Project::new(&[
        ("edited", "1\n"),
        ("gone", "1\n"),
        ("from", "a\nb\nc\n"),
        ("other", "1\n"),
        ("staged", "1\n"),
    ]);
    project.write("edited", "2\n");
    project.remove("gone");
    std::fs::rename(project.path("from"), project.path("to")).unwrap();
    project.write("new/file", "1\n");
    project.write("other", "2\n");
    project.write("staged", "2\n");
    project.git(&["add", "staged"]);
    project.write("untracked", "1\n");
    project.write("added", "1\n");
    project.git(&["add", "added"]);
    let value = project.run_step(&commit_of(&["edited", "gone", "from", "to", "new/file"])).value();
    assert_eq!(project.last(), ["M edited", "D from", "D gone", "A new/file", "A to"]);
    assert_eq!(value["files"], json!(["edited", "from", "gone", "new/file", "to"]));
    assert_eq!(
        (&value["ok"], value["commit"].as_str().unwrap()),
        (&json!(true), project.git(&["rev-parse", "HEAD"]).trim())
    );
    let left = project.git(&["status", "--porcelain", "--", ".", ":!.counterfoil"]);
    assert_eq!(
        left, "A  added\n M other\nM  staged\n?? untracked\n",
        "everything else is as it was"
    );
    assert_eq!(project.log(), ["feat(a): it", "x"]);
}

#[test]
fn what_is_half_staged_is_committed_as_it_stands() {
    let project = Project::new(&[("a", "1\n")]);
    project.write("a", "2\n");
    project.git(&["add", "a"]);
    project.write("a", "3\n");
    project.run_step(&commit_of(&["a"])).value();
    assert_eq!(project.git(&["show", "HEAD:a"]), "3\n");
    assert_eq!(project.git(&["status", "--porcelain", "-uno"]), "");
}

#[test]
fn the_message_has_a_trailer_that_names_the_visit() {
    let project = Project::new(&[]);
    project.write("a", "1\n");
    let state = "commit: { message: \"feat: it\\n\\n# not a comment\\n\\nReviewed-by: Kim <kim@example.com>\\n\", paths: [a] }";
    let step_result = project.run_step(state);
    let run = step_result.whole["run"].as_str().unwrap();
    let expected = format!(
        "feat: it\n\n# not a comment\n\nReviewed-by: Kim <kim@example.com>\nCounterfoil-Step: {run}/it/1\n"
    );
    assert_eq!(project.git(&["log", "-1", "--format=%B"]).trim_end(), expected.trim_end());
    assert_eq!(project.git(&["log", "-1", "--format=%an <%ae>"]), "Ann <ann@example.com>\n");
}

#[test]
fn nothing_to_commit_is_well_and_no_commit() {
    let project = Project::new(&[("a", "1\n"), ("back", "1\n"), ("forgotten", "1\n")]);
    project.write("b", "1\n");
    // A staged file that was restored, and one that was removed from the index but still exists.
    project.write("back", "2\n");
    project.git(&["add", "back"]);
    project.write("back", "1\n");
    project.git(&["rm", "-q", "--cached", "forgotten"]);
    let before = project.index();
    for paths in [&[] as &[&str], &["a"], &["back"], &["forgotten"]] {
        let value = project.run_step(&commit_of(paths)).value();
        assert_eq!(
            value,
            json!({"ok": true, "commit": "", "files": [], "output": ""}),
            "{paths:?}"
        );
    }
    assert_eq!((project.log(), project.index()), (vec!["x".to_owned()], before));
}

#[test]
fn what_cannot_be_committed_is_left_out_with_a_note() {
    let lib = Project::new(&[("lib.rs", "1\n")]);
    let project = Project::new(&[("a", "1\n"), (".gitignore", "*.log\n")]);
    project.git(&["submodule", "--quiet", "add", lib.repo.to_str().unwrap(), "lib"]);
    project.commit_all();
    project.write("a", "2\n");
    project.write("b.log", "1\n");
    project.write("lib/lib.rs", "2\n");
    project.write("inner/file", "1\n");
    git(&project.path("inner"), &["init", "-q"]);
    std::os::unix::fs::symlink("..", project.path("up")).unwrap();
    let paths = [
        "a",
        "b.log",
        "never",
        "lib/lib.rs",
        "inner",
        "up/x",
        "../x",
        ".git/config",
        ".counterfoil/journal.db",
    ];
    let value = project.run_step(&commit_of(&paths)).value();
    assert_eq!((&value["ok"], &value["files"]), (&json!(true), &json!(["a"])), "{value}");
    for note in [
        "'b.log' is left out: git ignores it",
        "'never' is left out: it does not exist, and git does not track it",
        "'lib/lib.rs' is left out: it is in a nested repository",
        "'inner/' is left out: it is a nested repository",
        "'up/x' is left out: it is behind a symbolic link",
        "'../x' is left out: it is not a path in the repository",
        "'.git/config' is left out: it is not a path in the repository",
        "'.counterfoil/journal.db' is left out: runs are kept there",
    ] {
        assert!(output(&value).contains(note), "{note}: {value}");
    }
}

#[test]
fn a_submodule_is_committed_at_the_commit_it_stands_at() {
    let lib = Project::new(&[("lib.rs", "1\n")]);
    let project = Project::new(&[("a", "1\n")]);
    project.git(&["submodule", "--quiet", "add", lib.repo.to_str().unwrap(), "lib"]);
    project.commit_all();
    project.write("lib/lib.rs", "2\n");
    let dirty = project.run_step(&commit_of(&["lib"])).value();
    assert_eq!((&dirty["ok"], &dirty["commit"]), (&json!(true), &json!("")), "{dirty}");
    git(&project.path("lib"), &["commit", "-q", "--allow-empty", "-m", "further"]);
    assert_eq!(project.run_step(&commit_of(&["lib"])).value()["files"], json!(["lib"]));
}

#[test]
fn a_folder_is_all_that_is_in_it_and_a_name_is_no_pattern() {
    let project = Project::new(&[("src/a", "1\n"), ("src/b", "1\n"), ("srcs", "1\n")]);
    project.write("src/a", "2\n");
    project.remove("src/b");
    project.write("src/deep/new", "1\n");
    project.write("srcs", "2\n");
    project.write("*", "1\n");
    project.write(":(glob)**", "1\n");
    assert_eq!(
        project.run_step(&commit_of(&["src/"])).value()["files"],
        json!(["src/a", "src/b", "src/deep/new"])
    );
    assert_eq!(project.run_step(&commit_of(&["*"])).value()["files"], json!(["*"]));
    assert_eq!(project.run_step(&commit_of(&[":(glob)**"])).value()["files"], json!([":(glob)**"]));
}

#[test]
fn names_can_be_any_bytes() {
    let project = Project::new(&[("a", "1\n")]);
    for name in [&b"d/caf\xe9"[..], b"d/line\nbreak", b"d/\"quote\"\t"] {
        project.write(std::ffi::OsStr::from_bytes(name), "1\n");
    }
    let value = project.run_step(&commit_of(&["d"])).value();
    assert_eq!(value["files"], json!(["d/\"quote\"\t", "d/caf\u{fffd}", "d/line\nbreak"]));
    project.write(std::ffi::OsStr::from_bytes(b"d/caf\xe9"), "2\n");
    assert_eq!(
        project.run_step(&commit_of(&["d/caf\u{fffd}"])).value()["files"],
        json!(["d/caf\u{fffd}"])
    );
}

#[test]
fn the_first_commit_of_a_repository_can_be_made() {
    let project = Project::unborn();
    project.write("a", "1\n");
    project.write("b", "1\n");
    project.git(&["add", "b"]);
    assert_eq!(project.run_step(&commit_of(&["a"])).value()["files"], json!(["a"]));
    assert_eq!(project.log(), ["feat(a): it"]);
    assert_eq!(project.git(&["status", "--porcelain", "-uno"]), "A  b\n");
}

#[test]
fn a_head_on_no_branch_goes_on_alone() {
    let project = Project::new(&[("a", "1\n")]);
    project.git(&["checkout", "-q", "--detach"]);
    project.write("a", "2\n");
    project.run_step(&commit_of(&["a"])).value();
    assert_eq!(project.log(), ["feat(a): it", "x"]);
    assert_eq!(project.git(&["log", "--format=%s", "main"]), "x\n", "no branch is touched");
}

#[test]
fn hooks_run_and_one_that_fails_leaves_everything_as_it_was() {
    let project = Project::new(&[("a", "1\n"), ("staged", "1\n")]);
    project.hook(
        "pre-commit",
        "echo 'lint: a is wrong' >&2; git diff --cached --name-only > .git/seen; exit 3",
    );
    project.write("a", "2\n");
    project.write("new", "1\n");
    project.write("staged", "2\n");
    project.git(&["add", "staged"]);
    let before = project.index();
    let step_result = project.run_step(&commit_of(&["a", "new"]));
    assert!(
        refused(&project, &step_result.value).contains("lint: a is wrong"),
        "{:?}",
        step_result.value
    );
    assert_eq!(
        std::fs::read_to_string(project.path(".git/seen")).unwrap(),
        "a\nnew\n",
        "it saw what would be committed"
    );
    assert_eq!(project.index(), before);
    let kept = step_result.whole["commands"][0]["replies"][0]["transcript"].as_str().unwrap();
    assert!(
        std::fs::read_to_string(project.path(".counterfoil").join(kept)).unwrap().contains("lint")
    );
    project.hook("pre-commit", "exit 0");
    project.hook("commit-msg", "echo >> \"$1\"; echo 'Signed-off-by: hook' >> \"$1\"");
    assert_eq!(project.run_step(&commit_of(&["a", "new"])).value()["files"], json!(["a", "new"]));
    assert!(project.git(&["log", "-1", "--format=%B"]).contains("Signed-off-by: hook"));
}

#[test]
fn a_hook_that_hangs_is_a_timeout_and_leaves_no_lock() {
    let project = Project::new(&[("a", "1\n")]);
    project.hook("pre-commit", "exec sleep 300");
    project.write("a", "2\n");
    project.write("new", "1\n");
    let before = project.index();
    let step_result = project.run_step(&format!("{}, timeout: 1s", commit_of(&["a", "new"])));
    assert_eq!(
        (step_result.outcome.as_str(), &step_result.whole["cause"]),
        ("timeout", &json!("timeout")),
        "{step_result:?}"
    );
    assert!(
        step_result.reason.contains("git commit") && step_result.reason.contains("1 s"),
        "{}",
        step_result.reason
    );
    assert!(!project.path(".git/index.lock").exists());
    assert_eq!((project.log(), project.index()), (vec!["x".to_owned()], before));
}

#[test]
fn a_hook_that_hangs_behind_the_commit_does_not_undo_it() {
    let project = Project::new(&[("a", "1\n")]);
    project.hook("post-commit", "exec sleep 300");
    project.write("a", "2\n");
    let value = project.run_step(&format!("{}, timeout: 1s", commit_of(&["a"]))).value();
    assert_eq!((&value["ok"], &value["files"]), (&json!(true), &json!(["a"])), "{value}");
    assert!(output(&value).contains("the commit is made"), "{value}");
}

#[test]
fn a_commit_that_cannot_be_signed_is_not_made() {
    let project = Project::new(&[("a", "1\n")]);
    project.git(&["config", "commit.gpgSign", "true"]);
    project.git(&["config", "gpg.program", "false"]);
    project.write("a", "2\n");
    let value = project.run_step(&commit_of(&["a"])).value();
    assert!(refused(&project, &value).contains("gpg"), "{value}");
}

#[test]
fn an_index_that_somebody_holds_is_named() {
    let project = Project::new(&[("a", "1\n")]);
    project.write("a", "2\n");
    project.write(".git/index.lock", "");
    for paths in [&["a"] as &[&str], &["a", "new"]] {
        project.write("new", "1\n");
        let value = project.run_step(&commit_of(paths)).value();
        assert!(refused(&project, &value).contains("index.lock"), "{value}");
    }
    assert!(project.path(".git/index.lock").exists(), "it is somebody's");
}

#[test]
fn a_merge_that_stopped_is_not_committed_in_part() {
    let project = Project::new(&[("a", "1\n"), ("b", "1\n")]);
    project.git(&["branch", "other"]);
    project.write("b", "2\n");
    project.commit_all();
    project.git(&["checkout", "-q", "other"]);
    project.git(&["merge", "-q", "--no-commit", "--no-ff", "main"]);
    project.write("a", "2\n");
    let value = project.run_step(&commit_of(&["a"])).value();
    assert!(refused(&project, &value).contains("partial commit during a merge"), "{value}");
}

#[test]
fn what_is_no_repository_or_no_message_blocks() {
    let why = Project::bare().run_step(&commit_of(&["a"])).blocked();
    assert!(why.contains("is not in a git repository"), "{why}");
    let why = Project::new(&[]).run_step("commit: { message: ' ' }").blocked();
    assert!(why.contains("the message of the commit is empty"), "{why}");
}

#[test]
fn a_folder_of_a_repository_is_committed_by_its_own_names() {
    let project = Project::new(&[("part/a", "1\n"), ("a", "1\n")]);
    project.write("part/a", "2\n");
    project.write("part/new", "1\n");
    project.write("a", "2\n");
    let value = run_step_in(&project.path("part"), &commit_of(&["a", "new"])).value();
    assert_eq!(value["files"], json!(["a", "new"]), "{value}");
    assert_eq!(project.last(), ["M part/a", "A part/new"]);
}
