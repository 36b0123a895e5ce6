//! What is done to the history: commits, branches, stashes, merges.

use super::*;
use std::time::Duration;

#[test]
fn a_commit_of_what_was_there_is_no_change() {
    let repo = TestRepo::new();
    repo.write("a.rs", "edited\n");
    repo.write("new.rs", "new\n");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.commit("all of it");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.git(&["commit", "-q", "--amend", "-m", "other words"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.git(&["reset", "-q", "HEAD~1"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.git(&["reset", "-q", "--soft", "HEAD~1"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
}

#[test]
fn what_was_changed_and_committed_is_a_change() {
    let repo = TestRepo::new();
    repo.write("mine.rs", "the user's\n");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.write("a.rs", "edited\n");
    repo.git(&["mv", "d.rs", "e.rs"]);
    repo.write("new.rs", "new\n");
    repo.chmod("src/b.rs", 0o755);
    repo.commit("work, and what was there");
    let expected = ["M a.rs", "D d.rs", "A e.rs", "A new.rs", "M src/b.rs", "R d.rs -> e.rs"];
    assert_eq!(changed(&mut snapshotter, &before), expected);
    // Undone by a commit, it is none.
    repo.git(&["revert", "--no-edit", "HEAD"]);
    repo.write("mine.rs", "the user's\n");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
}

#[test]
fn a_fingerprint_stays_when_nothing_does_change() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let first = snapshotter.snapshot();
    assert!(first.id.is_some() && first.notes.is_empty(), "{first:?}");
    assert_eq!(snapshotter.snapshot().id, first.id);
    repo.write("a.rs", "edited\n");
    let edited = snapshotter.snapshot();
    assert_ne!(edited.id, first.id);
    repo.git(&["add", "a.rs"]);
    assert_eq!(snapshotter.snapshot().id, edited.id);
    repo.git(&["checkout", "-q", "HEAD", "a.rs"]);
    assert_eq!(snapshotter.snapshot().id, first.id);
    repo.git(&["commit", "-q", "--amend", "-m", "other words"]);
    assert_eq!(snapshotter.snapshot().id, first.id);
    assert_eq!(repo.snapshotter().snapshot().id, first.id);
    repo.chmod("a.rs", 0o755);
    assert_ne!(snapshotter.snapshot().id, first.id);
}

#[test]
fn branches_stashes_and_resets_change_what_they_change() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write("a.rs", "on the other branch\n");
    repo.write("only.rs", "only there\n");
    repo.commit("other");
    repo.git(&["checkout", "-q", "main"]);
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.git(&["checkout", "-q", "other"]);
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs", "A only.rs"]);
    repo.git(&["checkout", "-q", "main"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(changed(&mut snapshotter, &before), ["D d.rs"]);
    repo.git(&["reset", "-q", "--hard", "other"]);
    repo.write("a.rs", "a\n");
    assert_eq!(changed(&mut snapshotter, &before), ["A only.rs"]);
    repo.git(&["stash", "-q"]);
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs", "A only.rs"]);
    repo.git(&["stash", "pop", "-q"]);
    assert_eq!(changed(&mut snapshotter, &before), ["A only.rs"]);
}

#[test]
fn a_branch_without_commits_has_no_files_of_its_own() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.git(&["checkout", "-q", "--orphan", "fresh"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.git(&["rm", "-q", "-r", "--cached", "."]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.remove("a.rs");
    assert_eq!(changed(&mut snapshotter, &before), ["D a.rs"]);
}

#[test]
fn a_repository_without_a_commit() {
    let repo = TestRepo::without_commit();
    repo.write("a.rs", "a\n");
    repo.write("b.rs", "b\n");
    repo.git(&["add", "b.rs"]);
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    assert!(before.id.is_some() && before.notes.is_empty(), "{before:?}");
    repo.write("a.rs", "A\n");
    repo.write("c.rs", "c\n");
    repo.remove("b.rs");
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs", "D b.rs", "A c.rs"]);
    let before = snapshotter.snapshot();
    repo.commit("first");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    let error = Revision::open(repo.path(), Settings::default(), "HEAD~1").unwrap_err();
    assert!(error.to_string().contains("HEAD~1"));
}

#[test]
fn conflicts_are_looked_at() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write("a.rs", "theirs\n");
    repo.remove("d.rs");
    repo.commit("theirs");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a.rs", "ours\n");
    repo.write("d.rs", "ours\n");
    repo.commit("ours");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    for how in ["merge", "rebase"] {
        assert!(!command(repo.path(), &[how, "other"]).output().unwrap().status.success());
        let during = snapshotter.snapshot();
        assert_eq!(during.notes, no_changes());
        let names: Vec<_> = snapshotter.changes(&before, &during).files.into_keys().collect();
        assert!(names.contains(&"a.rs".into()), "{how}: {names:?}");
        repo.write("a.rs", "solved\n");
        assert_eq!(changed(&mut snapshotter, &during), ["M a.rs"], "{how}");
        let during = snapshotter.snapshot();
        repo.git(&["add", "a.rs"]);
        assert_eq!(changed(&mut snapshotter, &during), no_changes(), "{how}");
        repo.git(&[how, "--abort"]);
        assert_eq!(changed(&mut snapshotter, &before), no_changes(), "{how}");
    }
}

#[test]
fn a_folder_inside_the_repository() {
    let repo = TestRepo::new();
    let mut snapshotter = Snapshotter::open(&repo.at("src"), Settings::default());
    assert_eq!(snapshotter.top(), repo.path().canonicalize().unwrap());
    assert_eq!(snapshotter.folder(), repo.at("src").canonicalize().unwrap());
    let before = snapshotter.snapshot();
    repo.write("src/b.rs", "edited\n");
    repo.write("a.rs", "edited\n");
    repo.write("srcs/x", "new");
    repo.write("src/new", "new 2");
    let expected = ["M ../a.rs", "A ../srcs/x", "M b.rs", "A new"];
    assert_eq!(changed(&mut snapshotter, &before), expected);
    assert_eq!(snapshotter.content(&before, Path::new("../a.rs")).unwrap().unwrap(), b"a\n");
    let paths: Vec<PathBuf> = ["../a.rs", "../srcs/x", "b.rs", "new"].map(PathBuf::from).into();
    assert_eq!(snapshotter.restore(&before, &paths), []);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    assert!(!repo.at("srcs").exists());
    // The folder itself stays although nothing is left in it.
    let repo = TestRepo::new();
    let empty = repo.at("empty");
    fs::create_dir(&empty).unwrap();
    let mut snapshotter = Snapshotter::open(&empty, Settings::default());
    let before = snapshotter.snapshot();
    repo.write("empty/x", "x");
    assert_eq!(snapshotter.restore(&before, &["x".into()]), []);
    assert!(empty.is_dir() && !empty.join("x").exists());
}

fn revision(repo: &TestRepo, name: &str) -> Revision {
    Revision::open(repo.path(), Settings::default(), name).unwrap()
}

#[test]
fn a_revision_is_a_commit_in_the_work_tree() {
    let repo = TestRepo::new();
    repo.write("new.rs", "new\n");
    repo.write("a.rs", "edited\n");
    let Revision { mut snapshotter, snapshot: base, committed_at, .. } = revision(&repo, "HEAD~1");
    assert!(committed_at.is_some());
    let now = snapshotter.snapshot();
    assert_eq!(told(&snapshotter.changes(&base, &now)), ["M a.rs", "A d.rs", "A new.rs"]);
    assert_eq!(snapshotter.content(&base, Path::new("a.rs")).unwrap().unwrap(), b"a\n");
    assert_eq!(snapshotter.content(&base, Path::new("d.rs")).unwrap(), None);
    let head = revision(&repo, "HEAD").snapshot;
    assert_eq!(told(&snapshotter.changes(&base, &head)), ["A d.rs"]);
    assert_eq!(told(&snapshotter.changes(&now, &head)), ["M a.rs", "D new.rs"]);
    repo.git(&["stash", "-q", "-u"]);
    assert_eq!(repo.snapshotter().snapshot().id, head.id);
    for bad in ["no-such", "--all", "", "HEAD:a.rs", "-n"] {
        let error = Revision::open(repo.path(), Settings::default(), bad).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "revision '{bad}' cannot be found: git knows no such commit"
            )),
            "{error}"
        );
    }
    let folder = TestRepo::bare_folder();
    let error = Revision::open(folder.path(), Settings::default(), "HEAD").unwrap_err().to_string();
    assert!(error.contains("not a git repository"), "{error}");
}

#[test]
fn nothing_but_the_commit_is_believed_of_a_revision() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "*.log\n");
    repo.write("kept.log", "x");
    repo.commit("ignore");
    std::thread::sleep(Duration::from_millis(1100));
    // The index says that nothing changed, and all ignore rules hide everything.
    repo.git(&["update-index", "--assume-unchanged", "a.rs"]);
    repo.git(&["update-index", "--skip-worktree", "d.rs"]);
    repo.write("a.rs", "edited\n");
    repo.write("src/b.rs", "edited\n");
    repo.git(&["add", "src/b.rs"]);
    repo.write(".gitignore", "*\n");
    repo.write(".git/info/exclude", "*\n");
    repo.write(".git/mine", "*\n");
    repo.git(&["config", "core.excludesFile", repo.at(".git/mine").to_str().unwrap()]);
    repo.write(".gitattributes", "* filter=hide\n");
    repo.git(&["config", "filter.hide.clean", "echo hidden"]);
    repo.write("new.rs", "new\n");
    let Revision { mut snapshotter, snapshot: base, .. } = revision(&repo, "HEAD");
    let expected = ["A .gitattributes", "M .gitignore", "M a.rs", "A new.rs", "M src/b.rs"];
    assert_eq!(changed(&mut snapshotter, &base), expected);
    let notes = [
        "info/exclude was written since the base, so its rules are not used",
        "core.excludesFile is set in the configuration of the repository, where an agent can set it, so its rules are not used",
    ];
    assert_eq!(base.notes, notes);
}

/// An agent may have configured them. Where modes, links and cases are kept, they count.
#[test]
fn what_the_file_system_can_do_is_tried_out_for_a_revision() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "*.log\n");
    std::os::unix::fs::symlink("a.rs", repo.at("link")).unwrap();
    repo.commit("link");
    for (key, value) in
        [("core.fileMode", "false"), ("core.symlinks", "false"), ("core.ignoreCase", "true")]
    {
        repo.git(&["config", key, value]);
    }
    let names = || {
        let Revision { mut snapshotter, snapshot: base, .. } = revision(&repo, "HEAD");
        let now = snapshotter.snapshot();
        snapshotter.changes(&base, &now).files.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(names(), Vec::<PathBuf>::new());
    let before = fs::read_dir(repo.at(".git")).unwrap().count();
    repo.chmod("a.rs", 0o755);
    repo.remove("link");
    repo.write("link", "a.rs");
    repo.write("new.LOG", "x");
    let expected = ["a.rs", "link", "new.LOG"].map(PathBuf::from);
    assert_eq!(names(), expected);
    assert_eq!(fs::read_dir(repo.at(".git")).unwrap().count(), before);
    // Nothing can be tried out in a folder that cannot be written.
    repo.chmod(".git", 0o555);
    let in_work_tree = names();
    repo.chmod("", 0o555);
    let nowhere = names();
    repo.chmod("", 0o755);
    repo.chmod(".git", 0o755);
    assert_eq!((in_work_tree.as_slice(), nowhere.as_slice()), (&expected[..], &expected[..]));
}

#[test]
fn a_commit_that_was_tampered_with_is_not_believed() {
    for object in ["HEAD", "HEAD^{tree}", "HEAD:src", "HEAD:src/b.rs"] {
        let repo = TestRepo::new();
        let object = repo.git(&["rev-parse", object]);
        let other = repo.git(&["rev-parse", "HEAD~1^{tree}"]);
        let path = |oid: &str| repo.at(&format!(".git/objects/{}/{}", &oid[..2], &oid[2..]));
        fs::remove_file(path(&object)).unwrap();
        fs::copy(path(&other), path(&object)).unwrap();
        let opened = Revision::open(repo.path(), Settings::default(), "HEAD");
        let error = match opened {
            Err(error) => error.to_string(),
            Ok(opened) => {
                let content = opened.snapshotter.content(&opened.snapshot, Path::new("src/b.rs"));
                content.unwrap_err().to_string()
            }
        };
        let is_refused = ["is damaged", "failed: ", "git knows no such commit"];
        assert!(is_refused.iter().any(|why| error.contains(why)), "{error}");
    }
}

#[test]
fn a_worktree_is_looked_at_with_its_own_index() {
    let repo = TestRepo::new();
    let place = tempfile::tempdir().unwrap();
    let second = place.path().join("second");
    repo.git(&["worktree", "add", "-q", second.to_str().unwrap()]);
    let (mut first, mut snapshotter) =
        (repo.snapshotter(), Snapshotter::open(&second, Settings::default()));
    let (before_first, before) = (first.snapshot(), snapshotter.snapshot());
    fs::write(second.join("a.rs"), "edited\n").unwrap();
    git(&second, &["add", "a.rs"]);
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs"]);
    assert_eq!(changed(&mut first, &before_first), no_changes());
}

#[test]
fn a_repository_of_sha256() {
    let repo = TestRepo::bare_folder();
    if !command(repo.path(), &["init", "-q", "--object-format=sha256"]).status().unwrap().success()
    {
        return;
    }
    repo.write("a", "a");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.write("b", "b");
    repo.commit("first");
    assert_eq!(changed(&mut snapshotter, &before), ["A b"]);
    let mut fresh = repo.snapshotter();
    let before = fresh.snapshot();
    repo.git(&["update-ref", "-d", "HEAD"]);
    assert_eq!(changed(&mut fresh, &before), no_changes());
}
