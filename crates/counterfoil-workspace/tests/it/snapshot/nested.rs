//! Repositories in repositories.

use super::*;

/// A repository with a submodule `sub`, which has a submodule `inner`.
fn with_submodules() -> (TestRepo, TestRepo, TestRepo) {
    let (inner, sub, repo) = (TestRepo::new(), TestRepo::new(), TestRepo::new());
    sub.git(&["submodule", "add", "-q", inner.path().to_str().unwrap(), "inner"]);
    sub.commit("with a submodule");
    repo.git(&["submodule", "add", "-q", sub.path().to_str().unwrap(), "sub"]);
    repo.git(&["submodule", "update", "-q", "--init", "--recursive"]);
    repo.commit("with a submodule");
    (repo, sub, inner)
}

#[test]
fn files_of_submodules_are_seen_by_name() {
    let (repo, ..) = with_submodules();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    assert!(before.notes.is_empty(), "{before:?}");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.write("sub/a.rs", "edited\n");
    repo.write("sub/new.rs", "new\n");
    repo.write("sub/inner/src/b.rs", "edited\n");
    let expected = ["M sub/a.rs", "M sub/inner/src/b.rs", "A sub/new.rs"];
    assert_eq!(changed(&mut snapshotter, &before), expected);
    let dirty = snapshotter.snapshot();
    for folder in ["sub/inner", "sub", "."] {
        git(&repo.at(folder), &["add", "-A"]);
        git(&repo.at(folder), &["commit", "-q", "-m", "work"]);
        assert_eq!(changed(&mut snapshotter, &before), expected, "{folder}");
        assert_eq!(changed(&mut snapshotter, &dirty), no_changes(), "{folder}");
    }
    // A tree that sees them as clean finds the same by the commits.
    let mut fresh = repo.snapshotter();
    let after = fresh.snapshot();
    assert_eq!(told(&fresh.changes(&before, &after)), expected);
    let Revision { mut snapshotter, snapshot: base, .. } =
        Revision::open(repo.path(), Settings::default(), "HEAD~1").unwrap();
    assert_eq!(changed(&mut snapshotter, &base), expected);
    assert_eq!(fresh.content(&before, Path::new("sub/a.rs")).unwrap().unwrap(), b"a\n");
    let paths: Vec<PathBuf> = expected.map(|line| PathBuf::from(&line[2..])).into();
    assert_eq!(fresh.restore(&before, &paths), []);
    assert_eq!(changed(&mut fresh, &before), no_changes());
}

#[test]
fn a_submodule_comes_and_goes() {
    let (repo, ..) = with_submodules();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.git(&["submodule", "deinit", "-q", "-f", "sub"]);
    let gone = changed(&mut snapshotter, &before);
    assert!(
        gone.contains(&"D sub/a.rs".to_owned()) && gone.contains(&"D sub/inner/a.rs".to_owned()),
        "{gone:?}"
    );
    let without = snapshotter.snapshot();
    repo.git(&["submodule", "update", "-q", "--init", "--recursive"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    let come = changed(&mut snapshotter, &without);
    assert!(come.contains(&"A sub/a.rs".to_owned()) && come.len() == gone.len(), "{come:?}");
    fs::remove_dir_all(repo.at("sub")).unwrap();
    repo.write("sub", "a file in its place");
    let replaced = changed(&mut snapshotter, &before);
    assert!(
        replaced.contains(&"A sub".to_owned()) && replaced.contains(&"D sub/d.rs".to_owned()),
        "{replaced:?}"
    );
}

#[test]
fn a_broken_submodule_does_not_hide_the_rest() {
    let (repo, ..) = with_submodules();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.write("sub/.git", "gitdir: /nowhere\n");
    repo.write("a.rs", "edited\n");
    repo.write("sub/a.rs", "edited\n");
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs", "M sub/a.rs"]);
    // One that is broken from the start is compared by content.
    let mut fresh = repo.snapshotter();
    let before = fresh.snapshot();
    assert!(before.notes[0].starts_with("sub: git could not be used"), "{:?}", before.notes);
    repo.write("sub/a.rs", "again\n");
    assert_eq!(changed(&mut fresh, &before), ["M sub/a.rs"]);
}

#[test]
fn a_repository_that_git_does_not_know_is_what_is_in_it() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    fs::create_dir(repo.at("own")).unwrap();
    git(&repo.at("own"), &["init", "-q"]);
    repo.write("own/x.rs", "x\n");
    assert_eq!(changed(&mut snapshotter, &before), ["A own/x.rs"]);
    git(&repo.at("own"), &["add", "-A"]);
    git(&repo.at("own"), &["commit", "-q", "-m", "inside"]);
    assert_eq!(changed(&mut snapshotter, &before), ["A own/x.rs"]);
    let with = snapshotter.snapshot();
    repo.write("own/x.rs", "X\n");
    assert_eq!(changed(&mut snapshotter, &with), ["M own/x.rs"]);
    repo.write("own/x.rs", "x\n");
    // Added as it is, it becomes a submodule without a name.
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "embedded"]);
    assert_eq!(changed(&mut snapshotter, &with), no_changes());
    fs::remove_dir_all(repo.at("own")).unwrap();
    assert_eq!(changed(&mut snapshotter, &with), ["D own/x.rs"]);
}
