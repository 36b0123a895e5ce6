//! What is done to the history: commits, branches, stashes, merges.

use super::*;

#[test]
fn a_commit_of_what_was_there_is_no_change() {
    let lab = Lab::new();
    lab.write("a.rs", "edited\n");
    lab.write("new.rs", "new\n");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.commit("all of it");
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["commit", "-q", "--amend", "-m", "other words"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["reset", "-q", "HEAD~1"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["reset", "-q", "--soft", "HEAD~1"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
}

#[test]
fn what_was_changed_and_committed_is_a_change() {
    let lab = Lab::new();
    lab.write("mine.rs", "the user's\n");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.write("a.rs", "edited\n");
    lab.git(&["mv", "d.rs", "e.rs"]);
    lab.write("new.rs", "new\n");
    lab.chmod("src/b.rs", 0o755);
    lab.commit("work, and what was there");
    let expected = ["M a.rs", "D d.rs", "A e.rs", "A new.rs", "M src/b.rs", "R d.rs -> e.rs"];
    assert_eq!(changed(&mut tree, &before), expected);
    // Undone by a commit, it is none.
    lab.git(&["revert", "--no-edit", "HEAD"]);
    lab.write("mine.rs", "the user's\n");
    assert_eq!(changed(&mut tree, &before), no_changes());
}

#[test]
fn a_fingerprint_stays_when_nothing_does_change() {
    let lab = Lab::new();
    let mut tree = lab.tree();
    let first = tree.snapshot();
    assert!(first.id.is_some() && first.notes.is_empty(), "{first:?}");
    assert_eq!(tree.snapshot().id, first.id);
    lab.write("a.rs", "edited\n");
    let edited = tree.snapshot();
    assert_ne!(edited.id, first.id);
    lab.git(&["add", "a.rs"]);
    assert_eq!(tree.snapshot().id, edited.id);
    lab.git(&["checkout", "-q", "HEAD", "a.rs"]);
    assert_eq!(tree.snapshot().id, first.id);
    lab.git(&["commit", "-q", "--amend", "-m", "other words"]);
    assert_eq!(tree.snapshot().id, first.id);
    assert_eq!(lab.tree().snapshot().id, first.id);
    lab.chmod("a.rs", 0o755);
    assert_ne!(tree.snapshot().id, first.id);
}

#[test]
fn branches_stashes_and_resets_change_what_they_change() {
    let lab = Lab::new();
    lab.git(&["checkout", "-q", "-b", "other"]);
    lab.write("a.rs", "on the other branch\n");
    lab.write("only.rs", "only there\n");
    lab.commit("other");
    lab.git(&["checkout", "-q", "main"]);
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.git(&["checkout", "-q", "other"]);
    assert_eq!(changed(&mut tree, &before), ["M a.rs", "A only.rs"]);
    lab.git(&["checkout", "-q", "main"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(changed(&mut tree, &before), ["D d.rs"]);
    lab.git(&["reset", "-q", "--hard", "other"]);
    lab.write("a.rs", "a\n");
    assert_eq!(changed(&mut tree, &before), ["A only.rs"]);
    lab.git(&["stash", "-q"]);
    assert_eq!(changed(&mut tree, &before), ["M a.rs", "A only.rs"]);
    lab.git(&["stash", "pop", "-q"]);
    assert_eq!(changed(&mut tree, &before), ["A only.rs"]);
}

#[test]
fn a_branch_without_commits_has_no_files_of_its_own() {
    let lab = Lab::new();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.git(&["checkout", "-q", "--orphan", "fresh"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["rm", "-q", "-r", "--cached", "."]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.remove("a.rs");
    assert_eq!(changed(&mut tree, &before), ["D a.rs"]);
}

#[test]
fn a_repository_without_a_commit() {
    let lab = Lab::without_commit();
    lab.write("a.rs", "a\n");
    lab.write("b.rs", "b\n");
    lab.git(&["add", "b.rs"]);
    let mut tree = lab.tree();
    let before = tree.snapshot();
    assert!(before.id.is_some() && before.notes.is_empty(), "{before:?}");
    lab.write("a.rs", "A\n");
    lab.write("c.rs", "c\n");
    lab.remove("b.rs");
    assert_eq!(changed(&mut tree, &before), ["M a.rs", "D b.rs", "A c.rs"]);
    let before = tree.snapshot();
    lab.commit("first");
    assert_eq!(changed(&mut tree, &before), no_changes());
    assert!(tree.revision("HEAD~1").unwrap_err().contains("HEAD~1"));
}

#[test]
fn conflicts_are_looked_at() {
    let lab = Lab::new();
    lab.git(&["checkout", "-q", "-b", "other"]);
    lab.write("a.rs", "theirs\n");
    lab.remove("d.rs");
    lab.commit("theirs");
    lab.git(&["checkout", "-q", "main"]);
    lab.write("a.rs", "ours\n");
    lab.write("d.rs", "ours\n");
    lab.commit("ours");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    for how in ["merge", "rebase"] {
        assert!(!command(lab.path(), &[how, "other"]).output().unwrap().status.success());
        let during = tree.snapshot();
        assert_eq!(during.notes, no_changes());
        let names: Vec<_> = tree.changes(&before, &during).files.into_keys().collect();
        assert!(names.contains(&"a.rs".into()), "{how}: {names:?}");
        lab.write("a.rs", "solved\n");
        assert_eq!(changed(&mut tree, &during), ["M a.rs"], "{how}");
        let during = tree.snapshot();
        lab.git(&["add", "a.rs"]);
        assert_eq!(changed(&mut tree, &during), no_changes(), "{how}");
        lab.git(&[how, "--abort"]);
        assert_eq!(changed(&mut tree, &before), no_changes(), "{how}");
    }
}

#[test]
fn a_folder_inside_the_repository() {
    let lab = Lab::new();
    let mut tree = Tree::open(&lab.at("src"), Settings::default());
    assert_eq!(tree.top(), lab.path().canonicalize().unwrap());
    assert_eq!(tree.folder(), lab.at("src").canonicalize().unwrap());
    let before = tree.snapshot();
    lab.write("src/b.rs", "edited\n");
    lab.write("a.rs", "edited\n");
    lab.write("srcs/x", "new");
    lab.write("src/new", "new 2");
    let expected = ["M ../a.rs", "A ../srcs/x", "M b.rs", "A new"];
    assert_eq!(changed(&mut tree, &before), expected);
    assert_eq!(tree.content(&before, Path::new("../a.rs")).unwrap().unwrap(), b"a\n");
    let paths: Vec<PathBuf> = ["../a.rs", "../srcs/x", "b.rs", "new"].map(PathBuf::from).into();
    assert_eq!(tree.restore(&before, &paths), []);
    assert_eq!(changed(&mut tree, &before), no_changes());
    assert!(!lab.at("srcs").exists());
    // The folder itself stays although nothing is left in it.
    let lab = Lab::new();
    let empty = lab.at("empty");
    fs::create_dir(&empty).unwrap();
    let mut tree = Tree::open(&empty, Settings::default());
    let before = tree.snapshot();
    lab.write("empty/x", "x");
    assert_eq!(tree.restore(&before, &["x".into()]), []);
    assert!(empty.is_dir() && !empty.join("x").exists());
}

#[test]
fn a_revision_is_a_commit_in_the_work_tree() {
    let lab = Lab::new();
    lab.write("new.rs", "new\n");
    lab.write("a.rs", "edited\n");
    let mut tree = lab.tree();
    let base = tree.revision("HEAD~1").unwrap();
    let now = tree.snapshot();
    assert_eq!(told(&tree.changes(&base, &now)), ["M a.rs", "A d.rs", "A new.rs"]);
    assert_eq!(tree.content(&base, Path::new("a.rs")).unwrap().unwrap(), b"a\n");
    assert_eq!(tree.content(&base, Path::new("d.rs")).unwrap(), None);
    let head = tree.revision("HEAD").unwrap();
    assert_eq!(told(&tree.changes(&base, &head)), ["A d.rs"]);
    assert_eq!(told(&tree.changes(&now, &head)), ["M a.rs", "D new.rs"]);
    lab.git(&["stash", "-q", "-u"]);
    assert_eq!(lab.tree().snapshot().id, head.id);
    for bad in ["no-such", "--all", "", "HEAD:a.rs", "-n"] {
        let error = tree.revision(bad).unwrap_err();
        assert!(
            error.starts_with(&format!(
                "revision '{bad}' cannot be found: `git rev-parse` failed: "
            )),
            "{error}"
        );
    }
    let error = Lab::bare_folder().tree().revision("HEAD").unwrap_err();
    assert!(error.contains("not a git repository"), "{error}");
}

#[test]
fn a_worktree_is_looked_at_with_its_own_index() {
    let lab = Lab::new();
    let place = tempfile::tempdir().unwrap();
    let second = place.path().join("second");
    lab.git(&["worktree", "add", "-q", second.to_str().unwrap()]);
    let (mut first, mut tree) = (lab.tree(), Tree::open(&second, Settings::default()));
    let (before_first, before) = (first.snapshot(), tree.snapshot());
    fs::write(second.join("a.rs"), "edited\n").unwrap();
    git(&second, &["add", "a.rs"]);
    assert_eq!(changed(&mut tree, &before), ["M a.rs"]);
    assert_eq!(changed(&mut first, &before_first), no_changes());
}

#[test]
fn a_repository_of_sha256() {
    let lab = Lab::bare_folder();
    if !command(lab.path(), &["init", "-q", "--object-format=sha256"]).status().unwrap().success() {
        return;
    }
    lab.write("a", "a");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.write("b", "b");
    lab.commit("first");
    assert_eq!(changed(&mut tree, &before), ["A b"]);
    let mut fresh = lab.tree();
    let before = fresh.snapshot();
    lab.git(&["update-ref", "-d", "HEAD"]);
    assert_eq!(changed(&mut fresh, &before), no_changes());
}
