//! What is not part of a snapshot: ignored files, our own, and noise.

use super::*;

#[test]
fn the_ignore_rules_are_those_of_the_first_look() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "*.log\n!kept.log\n/out/\n");
    repo.write("src/.gitignore", "*.o\n!kept.o\n");
    repo.commit("ignore");
    repo.write(".git/info/exclude", "mine.*\n");
    for name in ["hidden.log", "kept.log", "out/x", "src/out/x", "src/x.o", "src/kept.o", "mine.x"]
    {
        repo.write(name, "x");
    }
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    let everything = ["hidden.log", "kept.log", "out/x", "src/out/x", "src/x.o", "mine.x", "a.rs"];
    let ignored = |snapshotter: &mut Snapshotter| {
        let paths: Vec<PathBuf> = everything.map(PathBuf::from).into();
        snapshotter.ignored(&paths).into_iter().collect::<Vec<PathBuf>>()
    };
    let expected = ["hidden.log", "mine.x", "out/x", "src/x.o"].map(PathBuf::from);
    assert_eq!(ignored(&mut snapshotter), expected);
    // New rules hide nothing, by whatever way they come, and old ones still hold.
    repo.write(".gitignore", "*\n");
    repo.write("src/.gitignore", "*\n");
    repo.write("deep/.gitignore", "*\n");
    repo.write(".git/info/exclude", "*\n");
    repo.git(&["config", "core.excludesFile", repo.at(".gitignore").to_str().unwrap()]);
    for name in ["new.rs", "src/new.rs", "deep/new.rs", "hidden.log", "src/x.o", "mine.x"] {
        repo.write(name, "new");
    }
    repo.write("kept.log", "edited");
    let expected = [
        "M .gitignore",
        "A deep/.gitignore",
        "A deep/new.rs",
        "M kept.log",
        "A new.rs",
        "M src/.gitignore",
        "A src/new.rs",
    ];
    assert_eq!(changed(&mut snapshotter, &before), expected);
    let ignored = ignored(&mut snapshotter);
    assert_eq!(ignored, ["hidden.log", "mine.x", "out/x", "src/x.o"].map(PathBuf::from));
}

#[test]
fn folders_of_one_repository_share_the_rules_of_the_first() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "*.log\n");
    repo.commit("ignore");
    let state = tempfile::tempdir().unwrap();
    let open = |folder: &Path, name: &str| {
        let first_look = state.path().join(name);
        let files = StartFiles { first_look, ignore_rules: state.path().join("rules") };
        Snapshotter::open(folder, Settings { start_files: Some(files), ..Settings::default() })
    };
    open(repo.path(), "first").snapshot();
    // A rule that is committed meanwhile, and so part of another work tree.
    repo.write(".gitignore", "*.rs\n");
    repo.commit("hide");
    let place = tempfile::tempdir().unwrap();
    let second = place.path().join("second");
    repo.git(&["worktree", "add", "-q", "-d", second.to_str().unwrap()]);
    let mut snapshotter = open(&second, "second");
    let before = snapshotter.snapshot();
    fs::write(second.join("new.rs"), "new").unwrap();
    fs::write(second.join("new.log"), "new").unwrap();
    assert_eq!(changed(&mut snapshotter, &before), ["A new.rs"]);
}

#[test]
fn watched_files_count_though_git_ignores_them() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "notes/\nout/\n");
    repo.write("notes/kept", "committed");
    repo.git(&["add", "-f", "notes/kept"]);
    repo.commit("ignore");
    for name in ["notes/old", "notes/gone", "out/x"] {
        repo.write(name, name);
    }
    let mut snapshotter = repo.snapshotter();
    let unwatched = snapshotter.snapshot();
    repo.write("notes/old", "edited");
    assert!(changed(&mut snapshotter, &unwatched).is_empty());
    snapshotter.watch(Path::new("notes"));
    let before = snapshotter.snapshot();
    assert_eq!(
        snapshotter.content(&before, Path::new("notes/kept")).unwrap().unwrap(),
        b"committed"
    );
    repo.write("notes/old", "again");
    repo.write("notes/[new]", "new");
    repo.write("out/x", "edited");
    fs::remove_file(repo.at("notes/gone")).unwrap();
    assert_eq!(
        changed(&mut snapshotter, &before),
        ["A notes/[new]", "D notes/gone", "M notes/old"]
    );
}

#[test]
fn what_is_ours_and_what_is_noise_is_left_out() {
    let repo = TestRepo::new();
    let settings = Settings {
        excluded: [repo.at(".state"), repo.at("a.rs"), repo.at("not-yet/there")].into(),
        content_store: Some(repo.at(".kept")),
        unreported: vec!["*.pyc".into(), "out/".into(), "src/deep/**".into(), "[".into()],
        start_files: None,
    };
    let mut snapshotter = Snapshotter::open(repo.path(), settings);
    let before = snapshotter.snapshot();
    assert_eq!(before.notes.len(), 1, "{:?}", before.notes);
    for name in [
        "a.rs",
        ".state/x",
        "not-yet/there",
        "x/y.pyc",
        "y.pyc",
        "p/out/z",
        "src/deep/new.rs",
        "later/x",
    ] {
        repo.write(name, "new");
    }
    snapshotter.exclude(repo.at("later"));
    let after = snapshotter.snapshot();
    assert_eq!(told(&snapshotter.changes(&before, &after)), no_changes());
    assert_eq!(before.id, after.id);
    repo.commit("also when committed");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.write("later.rs", "x");
    // A file that git tracks is no noise, wherever it is.
    repo.write("src/deep/c.rs", "edited");
    assert_eq!(changed(&mut snapshotter, &before), ["A later.rs", "M src/deep/c.rs"]);
}
