//! A snapshot that was saved is as good as one that was not.

use super::*;

#[test]
fn a_later_process_sees_the_same_changes() {
    let repo = TestRepo::new();
    let keep = tempfile::tempdir().unwrap();
    repo.write("dirty.rs", "before\n");
    repo.write("a.rs", "edited before\n");
    repo.remove("d.rs");
    symlink("src", repo.at("link")).unwrap();
    fs::write(repo.at("").join(OsStr::from_bytes(b"not\xffutf8")), "bytes\n").unwrap();
    let open = || {
        let first_look = keep.path().join("first-look");
        let files = StartFiles { first_look, ignore_rules: keep.path().join("rules") };
        let content_store = Some(keep.path().join("contents"));
        let settings = Settings { content_store, start_files: Some(files), ..Settings::default() };
        Snapshotter::open(repo.path(), settings)
    };
    let mut first = open();
    let before = first.snapshot();
    let file = keep.path().join("saved/snapshot");
    before.save(&file).unwrap();

    repo.write("a.rs", "edited after\n");
    repo.write("src/b.rs", "edited after\n");
    repo.write("new.rs", "new\n");
    fs::remove_file(repo.at("link")).unwrap();
    // What was there before and is committed or ignored now did not change.
    repo.git(&["add", "dirty.rs"]);
    repo.git(&["commit", "-q", "-m", "dirty"]);
    let now = first.snapshot();
    let expected = first.changes(&before, &now);
    assert!(!expected.files.contains_key(Path::new("dirty.rs")), "{expected:?}");

    // Whatever the agent did to the repository: it is not asked.
    fs::remove_dir_all(repo.at(".git/refs")).unwrap();
    repo.write(".git/index", "broken");
    let mut second = open();
    let loaded = second.load(&file).unwrap();
    assert_eq!((&loaded.id, loaded.taken), (&before.id, before.taken));
    let now = second.snapshot();
    assert_eq!(second.changes(&loaded, &now), expected);
    assert_eq!(second.restore(&loaded, &[PathBuf::from("a.rs"), PathBuf::from("link")]), []);
    assert_eq!(fs::read_to_string(repo.at("a.rs")).unwrap(), "edited before\n");
    assert_eq!(fs::read_link(repo.at("link")).unwrap(), Path::new("src"));
}

#[test]
fn a_snapshot_of_another_repository_or_a_damaged_one_is_not_used() {
    let (repo, other) = (TestRepo::new(), TestRepo::new());
    let keep = tempfile::tempdir().unwrap();
    let file = keep.path().join("snapshot");
    repo.snapshotter().snapshot().save(&file).unwrap();
    assert!(other.snapshotter().load(&file).is_none());
    assert!(repo.snapshotter().load(&file).is_some());
    fs::write(&file, "{").unwrap();
    assert!(repo.snapshotter().load(&file).is_none());
    assert!(repo.snapshotter().load(&keep.path().join("nothing")).is_none());
}

#[test]
fn the_files_of_the_whole_work_tree_are_listed() {
    let repo = TestRepo::new();
    repo.write("made/new.rs", "new\n");
    repo.remove("d.rs");
    let mut tree = repo.snapshotter();
    let now = tree.snapshot();
    let files = tree.files_in(&now, tree.top());
    let has = |name: &str| files.iter().any(|path| path == Path::new(name));
    assert!(has("a.rs") && has("src/b.rs") && has("made/new.rs") && !has("d.rs"), "{files:?}");
}
