//! Putting back what stood there.

use super::*;

#[test]
fn puts_back_bytes_modes_links_and_absence() {
    let repo = TestRepo::new();
    symlink("a.rs", repo.at("link")).unwrap();
    repo.commit("link");
    repo.write("mine.rs", "the user's\n");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.chmod("run.sh", 0o750);
    repo.remove("d.rs");
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let (before, was) = (snapshotter.snapshot(), repo.everything());
    repo.write("mine.rs", "the agent's\n");
    repo.remove("run.sh");
    repo.write("d.rs", "back again\n");
    fs::remove_dir_all(repo.at("src")).unwrap();
    repo.write("src", "a file");
    repo.remove("a.rs");
    repo.write("a.rs/x/y", "a folder");
    repo.remove("link");
    repo.write("link", "a file");
    repo.write("new/folder/x", "x");
    let after = snapshotter.snapshot();
    let changes = snapshotter.changes(&before, &after);
    let mut paths: Vec<PathBuf> = changes.files.into_keys().collect();
    assert_eq!(paths.len(), 10, "{paths:?}");
    assert_eq!(snapshotter.restore(&before, &paths), []);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    assert_eq!(repo.everything(), was);
    // And forward again, in any order, since the second look kept what it saw.
    paths.reverse();
    assert_eq!(snapshotter.restore(&after, &paths), []);
    assert_eq!(changed(&mut snapshotter, &after), no_changes());
}

#[test]
fn a_file_that_had_another_mode_than_in_the_index_is_put_back() {
    let repo = TestRepo::new();
    repo.chmod("a.rs", 0o755);
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let (before, was) = (snapshotter.snapshot(), repo.everything());
    repo.remove("a.rs");
    repo.write("a.rs", "edited\n");
    assert_eq!(snapshotter.restore(&before, &["a.rs".into()]), []);
    assert_eq!(repo.everything(), was);
}

#[test]
fn what_was_committed_meanwhile_is_put_back_in_the_work_tree_only() {
    let repo = TestRepo::new();
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let before = snapshotter.snapshot();
    repo.write("a.rs", "agent\n");
    repo.git(&["rm", "-q", "d.rs"]);
    repo.commit("agent");
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        snapshotter.restore(&before, &["a.rs".into(), "d.rs".into(), "never.rs".into()]),
        []
    );
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn no_link_is_followed_and_nothing_outside_is_touched() {
    let repo = TestRepo::new();
    let outside = TestRepo::bare_folder();
    outside.write("b.rs", "outside\n");
    outside.write("deep/c.rs", "outside\n");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    fs::remove_dir_all(repo.at("src")).unwrap();
    symlink(outside.path(), repo.at("src")).unwrap();
    repo.write("ok", "x");
    let paths: Vec<PathBuf> =
        ["src/b.rs", "src/new", "/etc/passwd", "../x", "", "..", "src/../../y"]
            .map(PathBuf::from)
            .into();
    let failed = snapshotter.restore(&before, &paths);
    let names: Vec<&PathBuf> = failed.iter().map(|(path, _)| path).collect();
    // There is nothing to do for what was not there and is not there.
    let expected = ["/etc/passwd", "../x", "", "..", "src/../../y", "src/b.rs"].map(PathBuf::from);
    assert_eq!(names, expected.iter().collect::<Vec<_>>(), "{failed:?}");
    assert_eq!(failed[5].1, "src is not a folder, and links are not followed");
    assert_eq!(fs::read(outside.at("b.rs")).unwrap(), b"outside\n");
    assert!(repo.at("src").is_symlink() && repo.at("ok").exists());
    // With the link named too, all is put back.
    let paths = ["src/b.rs", "src", "src/deep/c.rs"].map(PathBuf::from);
    assert_eq!(snapshotter.restore(&before, &paths), []);
    assert_eq!(fs::read(outside.at("b.rs")).unwrap(), b"outside\n");
    assert_eq!(fs::read(repo.at("src/b.rs")).unwrap(), b"b\n");
}

#[test]
fn a_folder_with_something_in_it_is_not_removed() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "*.log\n");
    repo.commit("ignore");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.remove("a.rs");
    repo.write("a.rs/precious.log", "ignored");
    let failed = snapshotter.restore(&before, &["a.rs".into()]);
    assert!(failed[0].1.starts_with("it is a folder now that cannot be removed"), "{failed:?}");
    assert!(repo.at("a.rs/precious.log").exists());
}

#[test]
fn what_was_not_kept_is_said() {
    let repo = TestRepo::new();
    repo.write("mine.rs", "the user's\n");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    // It still exists.
    assert_eq!(
        snapshotter.content(&before, Path::new("mine.rs")).unwrap().unwrap(),
        b"the user's\n"
    );
    repo.write("mine.rs", "the agent's\n");
    let error = snapshotter.content(&before, Path::new("mine.rs")).unwrap_err();
    assert_eq!(error.to_string(), "not stored: git does not have it, and it has changed since");
    assert_eq!(snapshotter.restore(&before, &["mine.rs".into()]).len(), 1);
    assert_eq!(fs::read(repo.at("mine.rs")).unwrap(), b"the agent's\n");
    assert_eq!(snapshotter.content(&before, Path::new("no.rs")).unwrap(), None);
    assert!(snapshotter.content(&before, Path::new("/etc/passwd")).is_err());
}

#[test]
fn what_was_kept_and_spoilt_is_not_believed() {
    let repo = TestRepo::new();
    repo.write("mine.rs", "the user's\n");
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let before = snapshotter.snapshot();
    let folder = fs::read_dir(keep.path()).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::write(kept, "spoilt").unwrap();
    repo.write("mine.rs", "the agent's\n");
    let error = snapshotter.content(&before, Path::new("mine.rs")).unwrap_err();
    assert_eq!(error.to_string(), "its stored content is corrupt");
    assert_eq!(fs::read(repo.at("mine.rs")).unwrap(), b"the agent's\n");
}

#[test]
fn a_large_file_is_kept_in_pieces() {
    let repo = TestRepo::new();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(repo.at("large"), &bytes).unwrap();
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let before = snapshotter.snapshot();
    repo.remove("large");
    assert_eq!(snapshotter.restore(&before, &["large".into()]), []);
    assert!(fs::read(repo.at("large")).unwrap() == bytes);
}
