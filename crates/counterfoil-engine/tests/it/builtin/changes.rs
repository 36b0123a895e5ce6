//! The built-in step `changes`.

use crate::builtin::project::{Project, git, run_step_in};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

const SINCE_HEAD: &str = "changes: { since: \"'HEAD'\" }";

/// Each file as `change path +added -removed lines`, with further properties.
fn files(value: &Value) -> Vec<String> {
    let one = |file: &Value| {
        let text = |name: &str| file[name].as_str().unwrap().to_owned();
        let mut words =
            vec![text("change"), text("path"), format!("+{} -{}", file["added"], file["removed"])];
        let ranges = file["lines"].as_array().unwrap().iter();
        let lines: Vec<String> =
            ranges.map(|range| format!("{}-{}", range["from"], range["to"])).collect();
        words.extend(Some(lines.join(",")).filter(|lines| !lines.is_empty()));
        words.extend(file.get("old_path").map(|old| format!("from {}", old.as_str().unwrap())));
        words.extend((file["binary"] == true).then(|| "binary".to_owned()));
        words.join(" ")
    };
    value["files"].as_array().unwrap().iter().map(one).collect()
}

fn text(value: &Value) -> String {
    value["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chunk| chunk["text"].as_str().unwrap())
        .collect()
}

#[test]
fn everything_that_differs_from_the_revision_is_seen() {
    let project = Project::new(&[
        ("kept", "1\n"),
        ("edited", "1\n2\n3\n4\n"),
        ("gone", "x\n"),
        ("old/name", "a\nb\nc\nd\n"),
        (".gitignore", "ignored\n"),
    ]);
    let base = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
    project.write("edited", "1\ntwo\n3\n4\n5\n6\n");
    project.remove("gone");
    std::fs::rename(project.path("old/name"), project.path("new-name")).unwrap();
    project.write("untracked/file", "a\nb");
    project.write("empty", "");
    project.write("ignored", "not seen");
    project.write("staged", "s\n");
    project.git(&["add", "staged"]);
    project.write("staged", "s\nmore\n");
    let before = project.index();
    let value = project.run_step("changes: {}").value();
    assert_eq!(
        files(&value),
        [
            "modified edited +3 -1 2-2,5-6",
            "added empty +0 -0",
            "deleted gone +0 -1",
            "renamed new-name +0 -0 from old/name",
            "added staged +2 -0 1-2",
            "added untracked/file +2 -0 1-2",
        ]
    );
    assert_eq!(
        (&value["base"], &value["added"], &value["removed"]),
        (&json!(base), &json!(7), &json!(2))
    );
    assert_eq!(value["chunks"].as_array().unwrap().len(), 1);
    assert!(
        text(&value).contains("+two\n") && text(&value).contains("\\ No newline at end of file")
    );
    assert_eq!(project.index(), before, "the user's index is as it was");
    assert!(!project.path(".git/index.lock").exists());
}

#[test]
fn an_edit_is_seen_that_leaves_size_and_time_as_they_were() {
    let project = Project::new(&[("a", "1\n")]);
    let written = std::fs::metadata(project.path("a")).unwrap().modified().unwrap();
    project.write("a", "2\n");
    std::fs::File::options()
        .append(true)
        .open(project.path("a"))
        .unwrap()
        .set_modified(written)
        .unwrap();
    project.write("b", "1\n");
    assert_eq!(
        files(&project.run_step(SINCE_HEAD).value()),
        ["modified a +1 -1 1-1", "added b +1 -0 1-1"]
    );
}

#[test]
fn nothing_that_differs_is_no_chunk() {
    let value = Project::new(&[("a", "1\n")]).run_step(SINCE_HEAD).value();
    assert_eq!(
        (&value["files"], &value["chunks"], &value["added"]),
        (&json!([]), &json!([]), &json!(0))
    );
}

#[test]
fn chunks_hold_whole_files_in_their_order() {
    let project = Project::new(&[("a", "1\n")]);
    for name in ["b", "c", "d"] {
        project.write(name, "x".repeat(100) + "\n");
    }
    project.write("e", "y".repeat(2000) + "\n");
    project.write("f", "1\n");
    let value = project.run_step("changes: { since: \"'HEAD'\", split: 130 }").value();
    let chunks: Vec<_> = value["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chunk| (chunk["number"].clone(), chunk["files"].clone()))
        .collect();
    assert_eq!(
        chunks,
        [
            (json!(1), json!(["b", "c"])),
            (json!(2), json!(["d"])),
            (json!(3), json!(["e"])),
            (json!(4), json!(["f"]))
        ]
    );
    for chunk in value["chunks"].as_array().unwrap() {
        assert_eq!(chunk["tokens"], json!(chunk["text"].as_str().unwrap().len().div_ceil(4)));
    }
    let blocked = project.run_step("changes: { split: 0 }").blocked();
    assert!(blocked.contains("a chunk cannot have 0 tokens"), "{blocked}");
}

#[test]
fn a_revision_need_not_be_one_that_came_before() {
    let project = Project::new(&[("a", "1\n")]);
    project.git(&["checkout", "-q", "--orphan", "other"]);
    project.write("a", "2\n");
    project.commit_all();
    let value = project.run_step("changes: { since: \"'main'\" }").value();
    assert_eq!(files(&value), ["modified a +1 -1 1-1"]);
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let project = Project::unborn();
    project.write("a", "1\n");
    for state in ["changes: {}", SINCE_HEAD] {
        let value = project.run_step(state).value();
        assert_eq!(
            (files(&value), &value["base"]),
            (vec!["added a +1 -0 1-1".to_owned()], &json!("")),
            "{state}"
        );
    }
    assert_eq!(project.git(&["ls-files"]), "");
}

#[test]
fn what_cannot_be_compared_blocks() {
    let why = Project::bare().run_step("changes: {}").blocked();
    assert!(why.contains("is not in a git repository"), "{why}");
    let project = Project::new(&[("a", "1\n")]);
    for since in ["no-such-branch", "--output=x", "HEAD..HEAD", "HEAD:a"] {
        let why = project.run_step(&format!("changes: {{ since: \"'{since}'\" }}")).blocked();
        assert!(why.contains(&format!("'{since}' is not a revision")), "{why}");
    }
    project.write("large", "a line of text\n".repeat(600_000));
    let why = project.run_step("changes: {}").blocked();
    assert!(why.contains("larger than 8 MiB"), "{why}");
}

#[test]
fn files_that_are_no_text_are_told_and_not_shown() {
    let project = Project::new(&[("image", "\0\u{1}\u{2}")]);
    project.write("image", b"\0\x01\x03");
    project.write("new", b"\0");
    assert_eq!(
        files(&project.run_step(SINCE_HEAD).value()),
        ["modified image +0 -0 binary", "added new +0 -0 binary"]
    );
}

#[test]
fn carriage_returns_and_text_like_a_patch_are_lines_like_others() {
    let project = Project::new(&[("crlf", "1\r\n2\r\n3\r\n"), ("patch", "")]);
    project.write("crlf", "1\r\n2\rx\r\n3\r\n");
    project.write(
        "patch",
        "diff --git a/x b/x\n@@ -1 +1 @@\nBinary files x and y differ\n--- a\n+++ b\n",
    );
    let value = project.run_step(SINCE_HEAD).value();
    assert_eq!(files(&value), ["modified crlf +1 -1 2-2", "modified patch +5 -0 1-5"]);
}

#[test]
fn names_can_be_any_bytes() {
    let project = Project::new(&[("a", "1\n")]);
    let odd: [&[u8]; 4] = [b"caf\xe9", b"line\nbreak", b"quote\"\\tab\t", b" lead and trail "];
    for (at, name) in odd.iter().enumerate() {
        project.write(std::ffi::OsStr::from_bytes(name), "x\n".repeat(at + 1));
    }
    project.write(":(glob)*", "y\n");
    let value = project.run_step(SINCE_HEAD).value();
    assert_eq!(
        files(&value),
        [
            "added  lead and trail  +4 -0 1-4",
            "added :(glob)* +1 -0 1-1",
            "added caf\u{fffd} +1 -0 1-1",
            "added line\nbreak +2 -0 1-2",
            "added quote\"\\tab\t +3 -0 1-3",
        ]
    );
}

#[test]
fn modes_links_and_submodules_are_changes() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let lib = Project::new(&[("lib.rs", "1\n")]);
    let project = Project::new(&[("run.sh", "echo\n"), ("file", "text\n")]);
    project.git(&["submodule", "--quiet", "add", lib.repo.to_str().unwrap(), "lib"]);
    project.commit_all();
    std::fs::set_permissions(project.path("run.sh"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    project.remove("file");
    symlink("run.sh", project.path("file")).unwrap();
    git(&project.path("lib"), &["commit", "-q", "--allow-empty", "-m", "further"]);
    let value = project.run_step(SINCE_HEAD).value();
    assert_eq!(
        files(&value),
        ["modified file +1 -1 1-1", "modified lib +1 -1", "modified run.sh +0 -0"]
    );
    assert!(text(&value).contains("+Subproject commit "), "{}", text(&value));
}

#[test]
fn a_merge_that_stopped_is_seen_as_its_files_stand() {
    let project = Project::new(&[("a", "1\n"), ("b", "1\n")]);
    project.write(".gitignore", "b\n");
    project.commit_all();
    for (branch, text) in [("one", "one\n"), ("two", "two\n")] {
        project.git(&["checkout", "-q", "-b", branch, "main"]);
        project.write("a", text);
        project.write("b", text);
        project.git(&["commit", "-q", "-am", branch]);
    }
    let merged = std::panic::catch_unwind(|| project.git(&["merge", "-q", "one"]));
    assert!(merged.is_err(), "it conflicts");
    project.write("b", "settled\n");
    let before = project.git(&["ls-files", "--unmerged"]);
    let value = project.run_step(SINCE_HEAD).value();
    assert_eq!(files(&value), ["modified a +4 -0 1-1,3-5", "modified b +1 -1 1-1"]);
    assert_eq!(project.git(&["ls-files", "--unmerged"]), before, "it is not settled for the user");
}

#[test]
fn settings_of_the_user_do_not_change_what_is_seen() {
    let project = Project::new(&[("src/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"), ("top", "1\n")]);
    let edit = || {
        project.write("src/a", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        project.write("src/new", "1\n");
        project.write("top", "2\n");
    };
    edit();
    let plain = project.run_step(SINCE_HEAD).value();
    project.write(".git/order", "top\n");
    for (key, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.context", "0"),
        ("diff.external", "false"),
        ("diff.renames", "copies"),
        ("diff.orderFile", ".git/order"),
        ("diff.algorithm", "patience"),
        ("diff.submodule", "log"),
        ("color.ui", "always"),
        ("core.quotePath", "true"),
        ("status.showUntrackedFiles", "no"),
    ] {
        project.git(&["config", key, value]);
    }
    assert_eq!(project.run_step(SINCE_HEAD).value(), plain);
}

#[test]
fn a_folder_of_a_repository_is_looked_at_by_itself() {
    let project = Project::new(&[("part/a", "1\n"), ("other/b", "1\n")]);
    project.write("part/a", "2\n");
    project.write("part/new", "1\n");
    project.write("other/b", "2\n");
    project.write("other/new", "1\n");
    let value = run_step_in(&project.path("part"), SINCE_HEAD).value();
    assert_eq!(files(&value), ["modified a +1 -1 1-1", "added new +1 -0 1-1"]);
}

#[test]
fn a_repository_inside_is_left_alone() {
    let project = Project::new(&[("a", "1\n")]);
    project.write("inner/file", "1\n");
    git(&project.path("inner"), &["init", "-q"]);
    project.write("b", "1\n");
    assert_eq!(files(&project.run_step(SINCE_HEAD).value()), ["added b +1 -0 1-1"]);
}
