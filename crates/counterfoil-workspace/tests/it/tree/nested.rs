//! Repositories in repositories.

use super::*;

/// A repository with a submodule `sub`, which has a submodule `inner`.
fn with_submodules() -> (Lab, Lab, Lab) {
    let (inner, sub, lab) = (Lab::new(), Lab::new(), Lab::new());
    sub.git(&["submodule", "add", "-q", inner.path().to_str().unwrap(), "inner"]);
    sub.commit("with a submodule");
    lab.git(&["submodule", "add", "-q", sub.path().to_str().unwrap(), "sub"]);
    lab.git(&["submodule", "update", "-q", "--init", "--recursive"]);
    lab.commit("with a submodule");
    (lab, sub, inner)
}

#[test]
fn files_of_submodules_are_seen_by_name() {
    let (lab, ..) = with_submodules();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    assert!(before.notes.is_empty(), "{before:?}");
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.write("sub/a.rs", "edited\n");
    lab.write("sub/new.rs", "new\n");
    lab.write("sub/inner/src/b.rs", "edited\n");
    let expected = ["M sub/a.rs", "M sub/inner/src/b.rs", "A sub/new.rs"];
    assert_eq!(changed(&mut tree, &before), expected);
    let dirty = tree.snapshot();
    for folder in ["sub/inner", "sub", "."] {
        git(&lab.at(folder), &["add", "-A"]);
        git(&lab.at(folder), &["commit", "-q", "-m", "work"]);
        assert_eq!(changed(&mut tree, &before), expected, "{folder}");
        assert_eq!(changed(&mut tree, &dirty), no_changes(), "{folder}");
    }
    // A tree that sees them as clean finds the same by the commits.
    let mut fresh = lab.tree();
    let after = fresh.snapshot();
    assert_eq!(told(&fresh.changes(&before, &after)), expected);
    let base = fresh.revision("HEAD~1").unwrap();
    assert_eq!(told(&fresh.changes(&base, &after)), expected);
    assert_eq!(fresh.content(&before, Path::new("sub/a.rs")).unwrap().unwrap(), b"a\n");
    let paths: Vec<PathBuf> = expected.map(|line| PathBuf::from(&line[2..])).into();
    assert_eq!(fresh.restore(&before, &paths), []);
    assert_eq!(changed(&mut fresh, &before), no_changes());
}

#[test]
fn a_submodule_comes_and_goes() {
    let (lab, ..) = with_submodules();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.git(&["submodule", "deinit", "-q", "-f", "sub"]);
    let gone = changed(&mut tree, &before);
    assert!(
        gone.contains(&"D sub/a.rs".to_owned()) && gone.contains(&"D sub/inner/a.rs".to_owned()),
        "{gone:?}"
    );
    let without = tree.snapshot();
    lab.git(&["submodule", "update", "-q", "--init", "--recursive"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    let come = changed(&mut tree, &without);
    assert!(come.contains(&"A sub/a.rs".to_owned()) && come.len() == gone.len(), "{come:?}");
    fs::remove_dir_all(lab.at("sub")).unwrap();
    lab.write("sub", "a file in its place");
    let replaced = changed(&mut tree, &before);
    assert!(
        replaced.contains(&"A sub".to_owned()) && replaced.contains(&"D sub/d.rs".to_owned()),
        "{replaced:?}"
    );
}

#[test]
fn a_broken_submodule_does_not_hide_the_rest() {
    let (lab, ..) = with_submodules();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.write("sub/.git", "gitdir: /nowhere\n");
    lab.write("a.rs", "edited\n");
    lab.write("sub/a.rs", "edited\n");
    let after = tree.snapshot();
    assert!(!after.notes.is_empty());
    let changes = told(&tree.changes(&before, &after));
    assert!(changes.contains(&"M a.rs".to_owned()), "{changes:?}");
    assert!(changes.contains(&"M sub/a.rs".to_owned()), "{changes:?} {:?}", after.notes);
    assert!(!changes.contains(&"M sub/d.rs".to_owned()), "{changes:?}");
}

#[test]
fn a_repository_that_git_does_not_know_is_what_is_in_it() {
    let lab = Lab::new();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    fs::create_dir(lab.at("own")).unwrap();
    git(&lab.at("own"), &["init", "-q"]);
    lab.write("own/x.rs", "x\n");
    assert_eq!(changed(&mut tree, &before), ["A own/x.rs"]);
    git(&lab.at("own"), &["add", "-A"]);
    git(&lab.at("own"), &["commit", "-q", "-m", "inside"]);
    assert_eq!(changed(&mut tree, &before), ["A own/x.rs"]);
    let with = tree.snapshot();
    lab.write("own/x.rs", "X\n");
    assert_eq!(changed(&mut tree, &with), ["M own/x.rs"]);
    lab.write("own/x.rs", "x\n");
    // Added as it is, it becomes a submodule without a name.
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "embedded"]);
    assert_eq!(changed(&mut tree, &with), no_changes());
    fs::remove_dir_all(lab.at("own")).unwrap();
    assert_eq!(changed(&mut tree, &with), ["D own/x.rs"]);
}
