//! Putting back what stood there.

use super::*;

#[test]
fn puts_back_bytes_modes_links_and_absence() {
    let lab = Lab::new();
    symlink("a.rs", lab.at("link")).unwrap();
    lab.commit("link");
    lab.write("mine.rs", "the user's\n");
    lab.write("run.sh", "#!/bin/sh\n");
    lab.chmod("run.sh", 0o750);
    lab.remove("d.rs");
    let keep = tempfile::tempdir().unwrap();
    let mut tree = lab.keeping(&keep);
    let (before, was) = (tree.snapshot(), lab.everything());
    lab.write("mine.rs", "the agent's\n");
    lab.remove("run.sh");
    lab.write("d.rs", "back again\n");
    fs::remove_dir_all(lab.at("src")).unwrap();
    lab.write("src", "a file");
    lab.remove("a.rs");
    lab.write("a.rs/x/y", "a folder");
    lab.remove("link");
    lab.write("link", "a file");
    lab.write("new/folder/x", "x");
    let after = tree.snapshot();
    let changes = tree.changes(&before, &after);
    let mut paths: Vec<PathBuf> = changes.files.into_keys().collect();
    assert_eq!(paths.len(), 10, "{paths:?}");
    assert_eq!(tree.restore(&before, &paths), []);
    assert_eq!(changed(&mut tree, &before), no_changes());
    assert_eq!(lab.everything(), was);
    // And forward again, in any order, since the second look kept what it saw.
    paths.reverse();
    assert_eq!(tree.restore(&after, &paths), []);
    assert_eq!(changed(&mut tree, &after), no_changes());
}

#[test]
fn what_was_committed_meanwhile_is_put_back_in_the_work_tree_only() {
    let lab = Lab::new();
    let keep = tempfile::tempdir().unwrap();
    let mut tree = lab.keeping(&keep);
    let before = tree.snapshot();
    lab.write("a.rs", "agent\n");
    lab.git(&["rm", "-q", "d.rs"]);
    lab.commit("agent");
    let head = lab.git(&["rev-parse", "HEAD"]);
    assert_eq!(tree.restore(&before, &["a.rs".into(), "d.rs".into(), "never.rs".into()]), []);
    assert_eq!(changed(&mut tree, &before), no_changes());
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn no_link_is_followed_and_nothing_outside_is_touched() {
    let lab = Lab::new();
    let outside = Lab::bare_folder();
    outside.write("b.rs", "outside\n");
    outside.write("deep/c.rs", "outside\n");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    fs::remove_dir_all(lab.at("src")).unwrap();
    symlink(outside.path(), lab.at("src")).unwrap();
    lab.write("ok", "x");
    let paths: Vec<PathBuf> =
        ["src/b.rs", "src/new", "/etc/passwd", "../x", "", "..", "src/../../y"]
            .map(PathBuf::from)
            .into();
    let failed = tree.restore(&before, &paths);
    let names: Vec<&PathBuf> = failed.iter().map(|(path, _)| path).collect();
    // There is nothing to do for what was not there and is not there.
    let expected = ["/etc/passwd", "../x", "", "..", "src/../../y", "src/b.rs"].map(PathBuf::from);
    assert_eq!(names, expected.iter().collect::<Vec<_>>(), "{failed:?}");
    assert_eq!(failed[5].1, "src is not a folder, and a link is not followed");
    assert_eq!(fs::read(outside.at("b.rs")).unwrap(), b"outside\n");
    assert!(lab.at("src").is_symlink() && lab.at("ok").exists());
    // With the link named too, all is put back.
    let paths = ["src/b.rs", "src", "src/deep/c.rs"].map(PathBuf::from);
    assert_eq!(tree.restore(&before, &paths), []);
    assert_eq!(fs::read(outside.at("b.rs")).unwrap(), b"outside\n");
    assert_eq!(fs::read(lab.at("src/b.rs")).unwrap(), b"b\n");
}

#[test]
fn a_folder_with_something_in_it_is_not_removed() {
    let lab = Lab::new();
    lab.write(".gitignore", "*.log\n");
    lab.commit("ignore");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.remove("a.rs");
    lab.write("a.rs/precious.log", "ignored");
    let failed = tree.restore(&before, &["a.rs".into()]);
    assert!(failed[0].1.starts_with("a folder stands there that cannot be removed"), "{failed:?}");
    assert!(lab.at("a.rs/precious.log").exists());
}

#[test]
fn what_was_not_kept_is_said() {
    let lab = Lab::new();
    lab.write("mine.rs", "the user's\n");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    // It still stands there.
    assert_eq!(tree.content(&before, Path::new("mine.rs")).unwrap().unwrap(), b"the user's\n");
    lab.write("mine.rs", "the agent's\n");
    let error = tree.content(&before, Path::new("mine.rs")).unwrap_err();
    assert_eq!(error.to_string(), "not kept: git does not have it, and it has changed since");
    assert_eq!(tree.restore(&before, &["mine.rs".into()]).len(), 1);
    assert_eq!(fs::read(lab.at("mine.rs")).unwrap(), b"the agent's\n");
    assert_eq!(tree.content(&before, Path::new("no.rs")).unwrap(), None);
    assert!(tree.content(&before, Path::new("/etc/passwd")).is_err());
}

#[test]
fn what_was_kept_and_spoilt_is_not_believed() {
    let lab = Lab::new();
    lab.write("mine.rs", "the user's\n");
    let keep = tempfile::tempdir().unwrap();
    let mut tree = lab.keeping(&keep);
    let before = tree.snapshot();
    let folder = fs::read_dir(keep.path()).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::write(kept, "spoilt").unwrap();
    lab.write("mine.rs", "the agent's\n");
    let error = tree.content(&before, Path::new("mine.rs")).unwrap_err();
    assert_eq!(error.to_string(), "what was kept of it has been changed");
    assert_eq!(fs::read(lab.at("mine.rs")).unwrap(), b"the agent's\n");
}

#[test]
fn a_large_file_is_kept_in_pieces() {
    let lab = Lab::new();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(lab.at("large"), &bytes).unwrap();
    let keep = tempfile::tempdir().unwrap();
    let mut tree = lab.keeping(&keep);
    let before = tree.snapshot();
    lab.remove("large");
    assert_eq!(tree.restore(&before, &["large".into()]), []);
    assert!(fs::read(lab.at("large")).unwrap() == bytes);
}
