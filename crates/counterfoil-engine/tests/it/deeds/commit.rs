//! Committing.

use crate::deeds::scene::{Scene, git, play_in};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

/// A commit of these paths.
fn of(paths: &[&str]) -> String {
    format!("commit: {{ message: \"feat(a): it\", paths: {} }}", json!(paths))
}

fn output(value: &Value) -> &str {
    value["output"].as_str().unwrap()
}

/// Holds that nothing was committed, and gives what was said.
fn refused(scene: &Scene, value: &Value) -> String {
    assert_eq!(
        (&value["ok"], &value["commit"], &value["files"]),
        (&json!(false), &json!(""), &json!([]))
    );
    assert_eq!(scene.log(), ["x"]);
    output(value).to_owned()
}

#[test]
fn exactly_the_paths_are_committed_as_they_stand() {
    let scene = Scene::new(&[
        ("edited", "1\n"),
        ("gone", "1\n"),
        ("from", "a\nb\nc\n"),
        ("other", "1\n"),
        ("staged", "1\n"),
    ]);
    scene.write("edited", "2\n");
    scene.remove("gone");
    std::fs::rename(scene.path("from"), scene.path("to")).unwrap();
    scene.write("new/file", "1\n");
    scene.write("other", "2\n");
    scene.write("staged", "2\n");
    scene.git(&["add", "staged"]);
    scene.write("untracked", "1\n");
    scene.write("added", "1\n");
    scene.git(&["add", "added"]);
    let value = scene.play(&of(&["edited", "gone", "from", "to", "new/file"])).given();
    assert_eq!(scene.last(), ["M edited", "D from", "D gone", "A new/file", "A to"]);
    assert_eq!(value["files"], json!(["edited", "from", "gone", "new/file", "to"]));
    assert_eq!(
        (&value["ok"], value["commit"].as_str().unwrap()),
        (&json!(true), scene.git(&["rev-parse", "HEAD"]).trim())
    );
    let left = scene.git(&["status", "--porcelain", "--", ".", ":!.counterfoil"]);
    assert_eq!(
        left, "A  added\n M other\nM  staged\n?? untracked\n",
        "everything else is as it was"
    );
    assert_eq!(scene.log(), ["feat(a): it", "x"]);
}

#[test]
fn what_is_half_staged_is_committed_as_it_stands() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.write("a", "2\n");
    scene.git(&["add", "a"]);
    scene.write("a", "3\n");
    scene.play(&of(&["a"])).given();
    assert_eq!(scene.git(&["show", "HEAD:a"]), "3\n");
    assert_eq!(scene.git(&["status", "--porcelain", "-uno"]), "");
}

#[test]
fn the_message_has_a_trailer_that_names_the_visit() {
    let scene = Scene::new(&[]);
    scene.write("a", "1\n");
    let state = "commit: { message: \"feat: it\\n\\n# not a comment\\n\\nReviewed-by: Kim <kim@example.com>\\n\", paths: [a] }";
    let came = scene.play(state);
    let run = came.whole["run"].as_str().unwrap();
    let expected = format!(
        "feat: it\n\n# not a comment\n\nReviewed-by: Kim <kim@example.com>\nCounterfoil-Step: {run}/it/1\n"
    );
    assert_eq!(scene.git(&["log", "-1", "--format=%B"]).trim_end(), expected.trim_end());
    assert_eq!(scene.git(&["log", "-1", "--format=%an <%ae>"]), "Ann <ann@example.com>\n");
}

#[test]
fn nothing_to_commit_is_well_and_no_commit() {
    let scene = Scene::new(&[("a", "1\n"), ("back", "1\n"), ("forgotten", "1\n")]);
    scene.write("b", "1\n");
    // Staged, and put back since; and one that git was told to forget while it is still there.
    scene.write("back", "2\n");
    scene.git(&["add", "back"]);
    scene.write("back", "1\n");
    scene.git(&["rm", "-q", "--cached", "forgotten"]);
    let before = scene.index();
    for paths in [&[] as &[&str], &["a"], &["back"], &["forgotten"]] {
        let value = scene.play(&of(paths)).given();
        assert_eq!(
            value,
            json!({"ok": true, "commit": "", "files": [], "output": ""}),
            "{paths:?}"
        );
    }
    assert_eq!((scene.log(), scene.index()), (vec!["x".to_owned()], before));
}

#[test]
fn what_cannot_be_committed_is_left_out_with_a_note() {
    let lib = Scene::new(&[("lib.rs", "1\n")]);
    let scene = Scene::new(&[("a", "1\n"), (".gitignore", "*.log\n")]);
    scene.git(&["submodule", "--quiet", "add", lib.repo.to_str().unwrap(), "lib"]);
    scene.commit_all();
    scene.write("a", "2\n");
    scene.write("b.log", "1\n");
    scene.write("lib/lib.rs", "2\n");
    scene.write("inner/file", "1\n");
    git(&scene.path("inner"), &["init", "-q"]);
    std::os::unix::fs::symlink("..", scene.path("up")).unwrap();
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
    let value = scene.play(&of(&paths)).given();
    assert_eq!((&value["ok"], &value["files"]), (&json!(true), &json!(["a"])), "{value}");
    for note in [
        "'b.log' is left out: git ignores it",
        "'never' is left out: it is not there, and git does not know it",
        "'lib/lib.rs' is left out: it stands in a repository of its own",
        "'inner/' is left out: it is a repository of its own",
        "'up/x' is left out: it stands behind a symbolic link",
        "'../x' is left out: it is not a path in the repository",
        "'.git/config' is left out: it is not a path in the repository",
        "'.counterfoil/journal.db' is left out: runs are kept there",
    ] {
        assert!(output(&value).contains(note), "{note}: {value}");
    }
}

#[test]
fn a_submodule_is_committed_at_the_commit_it_stands_at() {
    let lib = Scene::new(&[("lib.rs", "1\n")]);
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["submodule", "--quiet", "add", lib.repo.to_str().unwrap(), "lib"]);
    scene.commit_all();
    scene.write("lib/lib.rs", "2\n");
    let dirty = scene.play(&of(&["lib"])).given();
    assert_eq!((&dirty["ok"], &dirty["commit"]), (&json!(true), &json!("")), "{dirty}");
    git(&scene.path("lib"), &["commit", "-q", "--allow-empty", "-m", "further"]);
    assert_eq!(scene.play(&of(&["lib"])).given()["files"], json!(["lib"]));
}

#[test]
fn a_folder_is_all_that_is_in_it_and_a_name_is_no_pattern() {
    let scene = Scene::new(&[("src/a", "1\n"), ("src/b", "1\n"), ("srcs", "1\n")]);
    scene.write("src/a", "2\n");
    scene.remove("src/b");
    scene.write("src/deep/new", "1\n");
    scene.write("srcs", "2\n");
    scene.write("*", "1\n");
    scene.write(":(glob)**", "1\n");
    assert_eq!(
        scene.play(&of(&["src/"])).given()["files"],
        json!(["src/a", "src/b", "src/deep/new"])
    );
    assert_eq!(scene.play(&of(&["*"])).given()["files"], json!(["*"]));
    assert_eq!(scene.play(&of(&[":(glob)**"])).given()["files"], json!([":(glob)**"]));
}

#[test]
fn names_can_be_any_bytes() {
    let scene = Scene::new(&[("a", "1\n")]);
    for name in [&b"d/caf\xe9"[..], b"d/line\nbreak", b"d/\"quote\"\t"] {
        scene.write(std::ffi::OsStr::from_bytes(name), "1\n");
    }
    let value = scene.play(&of(&["d"])).given();
    assert_eq!(value["files"], json!(["d/\"quote\"\t", "d/caf\u{fffd}", "d/line\nbreak"]));
    scene.write(std::ffi::OsStr::from_bytes(b"d/caf\xe9"), "2\n");
    assert_eq!(scene.play(&of(&["d/caf\u{fffd}"])).given()["files"], json!(["d/caf\u{fffd}"]));
}

#[test]
fn the_first_commit_of_a_repository_can_be_made() {
    let scene = Scene::unborn();
    scene.write("a", "1\n");
    scene.write("b", "1\n");
    scene.git(&["add", "b"]);
    assert_eq!(scene.play(&of(&["a"])).given()["files"], json!(["a"]));
    assert_eq!(scene.log(), ["feat(a): it"]);
    assert_eq!(scene.git(&["status", "--porcelain", "-uno"]), "A  b\n");
}

#[test]
fn a_head_on_no_branch_goes_on_alone() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["checkout", "-q", "--detach"]);
    scene.write("a", "2\n");
    scene.play(&of(&["a"])).given();
    assert_eq!(scene.log(), ["feat(a): it", "x"]);
    assert_eq!(scene.git(&["log", "--format=%s", "main"]), "x\n", "no branch is touched");
}

#[test]
fn hooks_run_and_one_that_fails_leaves_everything_as_it_was() {
    let scene = Scene::new(&[("a", "1\n"), ("staged", "1\n")]);
    scene.hook(
        "pre-commit",
        "echo 'lint: a is wrong' >&2; git diff --cached --name-only > .git/seen; exit 3",
    );
    scene.write("a", "2\n");
    scene.write("new", "1\n");
    scene.write("staged", "2\n");
    scene.git(&["add", "staged"]);
    let before = scene.index();
    let came = scene.play(&of(&["a", "new"]));
    assert!(refused(&scene, &came.value).contains("lint: a is wrong"), "{:?}", came.value);
    assert_eq!(
        std::fs::read_to_string(scene.path(".git/seen")).unwrap(),
        "a\nnew\n",
        "it saw what would be committed"
    );
    assert_eq!(scene.index(), before);
    let kept = came.whole["commands"][0]["replies"][0]["transcript"].as_str().unwrap();
    assert!(
        std::fs::read_to_string(scene.path(".counterfoil").join(kept)).unwrap().contains("lint")
    );
    scene.hook("pre-commit", "exit 0");
    scene.hook("commit-msg", "echo >> \"$1\"; echo 'Signed-off-by: hook' >> \"$1\"");
    assert_eq!(scene.play(&of(&["a", "new"])).given()["files"], json!(["a", "new"]));
    assert!(scene.git(&["log", "-1", "--format=%B"]).contains("Signed-off-by: hook"));
}

#[test]
fn a_hook_that_hangs_is_a_timeout_and_leaves_no_lock() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.hook("pre-commit", "exec sleep 300");
    scene.write("a", "2\n");
    scene.write("new", "1\n");
    let before = scene.index();
    let came = scene.play(&format!("{}, timeout: 1s", of(&["a", "new"])));
    assert_eq!(
        (came.outcome.as_str(), &came.whole["cause"]),
        ("timeout", &json!("timeout")),
        "{came:?}"
    );
    assert!(came.reason.contains("git commit") && came.reason.contains("1 s"), "{}", came.reason);
    assert!(!scene.path(".git/index.lock").exists());
    assert_eq!((scene.log(), scene.index()), (vec!["x".to_owned()], before));
}

#[test]
fn a_hook_that_hangs_behind_the_commit_does_not_undo_it() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.hook("post-commit", "exec sleep 300");
    scene.write("a", "2\n");
    let value = scene.play(&format!("{}, timeout: 1s", of(&["a"]))).given();
    assert_eq!((&value["ok"], &value["files"]), (&json!(true), &json!(["a"])), "{value}");
    assert!(output(&value).contains("the commit is made"), "{value}");
}

#[test]
fn a_commit_that_cannot_be_signed_is_not_made() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["config", "commit.gpgSign", "true"]);
    scene.git(&["config", "gpg.program", "false"]);
    scene.write("a", "2\n");
    let value = scene.play(&of(&["a"])).given();
    assert!(refused(&scene, &value).contains("gpg"), "{value}");
}

#[test]
fn an_index_that_somebody_holds_is_named() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.write("a", "2\n");
    scene.write(".git/index.lock", "");
    for paths in [&["a"] as &[&str], &["a", "new"]] {
        scene.write("new", "1\n");
        let value = scene.play(&of(paths)).given();
        assert!(refused(&scene, &value).contains("index.lock"), "{value}");
    }
    assert!(scene.path(".git/index.lock").exists(), "it is somebody's");
}

#[test]
fn a_merge_that_stopped_is_not_committed_in_part() {
    let scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
    scene.git(&["branch", "other"]);
    scene.write("b", "2\n");
    scene.commit_all();
    scene.git(&["checkout", "-q", "other"]);
    scene.git(&["merge", "-q", "--no-commit", "--no-ff", "main"]);
    scene.write("a", "2\n");
    let value = scene.play(&of(&["a"])).given();
    assert!(refused(&scene, &value).contains("partial commit during a merge"), "{value}");
}

#[test]
fn what_is_no_repository_or_no_message_blocks() {
    let why = Scene::bare().play(&of(&["a"])).blocked();
    assert!(why.contains("is not in a git repository"), "{why}");
    let why = Scene::new(&[]).play("commit: { message: ' ' }").blocked();
    assert!(why.contains("the message of the commit is empty"), "{why}");
}

#[test]
fn a_folder_of_a_repository_is_committed_by_its_own_names() {
    let scene = Scene::new(&[("part/a", "1\n"), ("a", "1\n")]);
    scene.write("part/a", "2\n");
    scene.write("part/new", "1\n");
    scene.write("a", "2\n");
    let value = play_in(&scene.path("part"), &of(&["a", "new"])).given();
    assert_eq!(value["files"], json!(["a", "new"]), "{value}");
    assert_eq!(scene.last(), ["M part/a", "A part/new"]);
}
