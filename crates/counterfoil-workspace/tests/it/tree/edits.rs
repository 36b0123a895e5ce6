//! What is done to files.

use super::*;
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

#[test]
fn sees_what_is_done_to_a_file() {
    type Act = fn(&Lab);
    let cases: [(&str, Act, &[&str]); 23] = [
        ("nothing", |_| {}, &[]),
        ("edit", |lab| lab.write("a.rs", "other\n"), &["M a.rs"]),
        ("edit of the same size", |lab| lab.write("a.rs", "x\n"), &["M a.rs"]),
        ("the same bytes again", |lab| lab.write("a.rs", "a\n"), &[]),
        ("edit with the old time", |lab| with_old_time(&lab.at("a.rs"), "x\n"), &["M a.rs"]),
        ("new", |lab| lab.write("new/er/e.rs", "e"), &["A new/er/e.rs"]),
        ("delete", |lab| lab.remove("a.rs"), &["D a.rs"]),
        (
            "delete a folder",
            |lab| fs::remove_dir_all(lab.at("src")).unwrap(),
            &["D src/b.rs", "D src/deep/c.rs"],
        ),
        (
            "rename",
            |lab| fs::rename(lab.at("a.rs"), lab.at("z.rs")).unwrap(),
            &["D a.rs", "A z.rs", "R a.rs -> z.rs"],
        ),
        (
            "rename by git",
            |lab| drop(lab.git(&["mv", "a.rs", "src/a.rs"])),
            &["D a.rs", "A src/a.rs", "R a.rs -> src/a.rs"],
        ),
        (
            "rename of a folder",
            |lab| fs::rename(lab.at("src"), lab.at("lib")).unwrap(),
            &[
                "A lib/b.rs",
                "A lib/deep/c.rs",
                "D src/b.rs",
                "D src/deep/c.rs",
                "R src/b.rs -> lib/b.rs",
                "R src/deep/c.rs -> lib/deep/c.rs",
            ],
        ),
        (
            "rename in case only",
            |lab| fs::rename(lab.at("a.rs"), lab.at("A.rs")).unwrap(),
            &["A A.rs", "D a.rs", "R a.rs -> A.rs"],
        ),
        ("mode", |lab| lab.chmod("a.rs", 0o755), &["M a.rs"]),
        ("mode that git does not know", |lab| lab.chmod("a.rs", 0o600), &[]),
        ("a new link", |lab| symlink("src", lab.at("to-folder")).unwrap(), &["A to-folder"]),
        (
            "a dangling link",
            |lab| symlink("/no/such/thing", lab.at("nowhere")).unwrap(),
            &["A nowhere"],
        ),
        (
            "a file becomes a link",
            |lab| {
                lab.remove("a.rs");
                symlink("d.rs", lab.at("a.rs")).unwrap();
            },
            &["M a.rs"],
        ),
        (
            "a file becomes a folder",
            |lab| {
                lab.remove("a.rs");
                lab.write("a.rs/inner", "x");
            },
            &["D a.rs", "A a.rs/inner"],
        ),
        (
            "a folder becomes a file",
            |lab| {
                fs::remove_dir_all(lab.at("src")).unwrap();
                lab.write("src", "x");
            },
            &["A src", "D src/b.rs", "D src/deep/c.rs"],
        ),
        (
            "a folder becomes a link to one just like it",
            |lab| {
                fs::rename(lab.at("src"), lab.at(".git/copy")).unwrap();
                symlink(".git/copy", lab.at("src")).unwrap();
            },
            &["A src", "D src/b.rs", "D src/deep/c.rs"],
        ),
        (
            "staged",
            |lab| {
                lab.write("a.rs", "staged\n");
                lab.git(&["add", "a.rs"]);
            },
            &["M a.rs"],
        ),
        (
            "staged and taken back in the work tree",
            |lab| {
                lab.write("a.rs", "staged\n");
                lab.git(&["add", "a.rs"]);
                lab.write("a.rs", "a\n");
            },
            &[],
        ),
        (
            "taken out of the index and left there",
            |lab| drop(lab.git(&["rm", "-q", "--cached", "a.rs"])),
            &[],
        ),
    ];
    let lab = Lab::new();
    for (name, act, expected) in cases {
        lab.begin_again();
        let mut tree = lab.tree();
        assert_eq!(during(&mut tree, || act(&lab)), expected, "{name}");
    }
}

#[test]
fn the_same_is_seen_of_files_that_were_dirty_before() {
    type Act = fn(&Lab);
    let cases: [(&str, Act, &[&str]); 9] = [
        ("nothing", |_| {}, &[]),
        ("edit", |lab| lab.write("a.rs", "edited once more\n"), &["M a.rs"]),
        ("edit of the same size", |lab| lab.write("a.rs", "EDITED\n"), &["M a.rs"]),
        ("edit with the old time", |lab| with_old_time(&lab.at("new.rs"), "NEW\n"), &["M new.rs"]),
        ("back to HEAD", |lab| drop(lab.git(&["checkout", "-q", "a.rs"])), &["M a.rs"]),
        ("mode", |lab| lab.chmod("new.rs", 0o755), &["M new.rs"]),
        ("delete", |lab| lab.remove("new.rs"), &["D new.rs"]),
        ("commit", |lab| lab.commit("what was there"), &[]),
        (
            "rename and commit",
            |lab| {
                fs::rename(lab.at("new.rs"), lab.at("newer.rs")).unwrap();
                lab.commit("renamed");
            },
            &["D new.rs", "A newer.rs", "R new.rs -> newer.rs"],
        ),
    ];
    let lab = Lab::new();
    for (name, act, expected) in cases {
        lab.begin_again();
        lab.write("a.rs", "edited\n");
        lab.write("new.rs", "new\n");
        lab.remove("d.rs");
        let mut tree = lab.tree();
        assert_eq!(during(&mut tree, || act(&lab)), expected, "{name}");
    }
}

/// Writes a file and puts its times back, as far as anyone can.
fn with_old_time(path: &Path, text: &str) {
    let old = path.metadata().unwrap().modified().unwrap();
    fs::write(path, text).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
}

#[test]
fn sees_edits_of_the_same_size_in_the_same_tick_again_and_again() {
    let lab = Lab::new();
    let mut tree = lab.tree();
    lab.write("new.rs", "0\n");
    let mut before = tree.snapshot();
    for round in 1..10 {
        let old = lab.at("new.rs").metadata().unwrap().modified().unwrap();
        for name in ["new.rs", "a.rs"] {
            fs::write(lab.at(name), format!("{round}\n")).unwrap();
            fs::File::options().write(true).open(lab.at(name)).unwrap().set_modified(old).unwrap();
        }
        let after = tree.snapshot();
        assert_eq!(told(&tree.changes(&before, &after)), ["M a.rs", "M new.rs"], "{round}");
        before = after;
    }
}

#[test]
fn what_is_remembered_of_a_settled_file_is_right() {
    let lab = Lab::new();
    let old = SystemTime::now() - Duration::from_hours(1);
    lab.write("new.rs", "one\n");
    let mut tree = lab.tree();
    let first = tree.snapshot();
    // Longer than the times take to settle: from here on the file is not read again unless it
    // changed.
    std::thread::sleep(Duration::from_millis(2100));
    let second = tree.snapshot();
    let third = tree.snapshot();
    assert_eq!(first.id, third.id);
    lab.write("new.rs", "two\n");
    fs::File::options().write(true).open(lab.at("new.rs")).unwrap().set_modified(old).unwrap();
    assert_eq!(changed(&mut tree, &second), ["M new.rs"]);
}

#[test]
fn names_are_bytes() {
    let lab = Lab::new();
    let long = "n".repeat(250);
    let mut names: Vec<PathBuf> = [
        "with space",
        "\"quoted\"",
        "back\\slash",
        "new\nline",
        "tab\t",
        "-dash",
        ":colon",
        "*glob?",
        " lead",
        "é",
    ]
    .map(PathBuf::from)
    .to_vec();
    names.push(PathBuf::from(OsStr::from_bytes(b"in\xffvalid\xfe")));
    names.push(PathBuf::from(&long).join(&long).join(&long).join("deep"));
    for name in &names {
        let path = lab.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name.as_os_str().as_bytes()).unwrap();
    }
    let keep = tempfile::tempdir().unwrap();
    let mut tree = lab.keeping(&keep);
    let untracked = tree.snapshot();
    lab.commit("odd names");
    let committed = tree.snapshot();
    assert_eq!(tree.changes(&untracked, &committed), Changes::default());
    // A tree that did not see them before they were committed has to ask git for them.
    let mut fresh = lab.tree();
    let clean = fresh.snapshot();
    lab.git(&["reset", "-q", "--soft", "HEAD~1"]);
    let soft = fresh.snapshot();
    assert_eq!(fresh.changes(&clean, &soft), Changes::default());
    lab.git(&["reset", "-q"]);
    let mixed = fresh.snapshot();
    assert_eq!(fresh.changes(&clean, &mixed), Changes::default());
    for (tree, before) in [(&mut tree, &untracked), (&mut fresh, &clean)] {
        for name in &names {
            fs::write(lab.path().join(name), "edited").unwrap();
        }
        let after = tree.snapshot();
        let changes = tree.changes(before, &after);
        assert_eq!(changes.files.len(), names.len());
        for name in &names {
            assert_eq!(changes.files.get(name), Some(&Change::Modified), "{name:?}");
            let then = tree.content(before, name).unwrap().unwrap();
            assert_eq!(then, name.as_os_str().as_bytes());
        }
        assert_eq!(tree.restore(before, &names), []);
        assert_eq!(changed(tree, before), no_changes());
    }
}

#[test]
fn a_link_changes_with_its_target_and_not_with_what_it_leads_to() {
    let lab = Lab::new();
    symlink("a.rs", lab.at("link")).unwrap();
    symlink("src", lab.at("folder")).unwrap();
    lab.commit("links");
    let mut tree = lab.tree();
    assert_eq!(during(&mut tree, || lab.write("src/b.rs", "edited")), ["M src/b.rs"]);
    let retarget = || {
        fs::remove_file(lab.at("link")).unwrap();
        symlink("d.rs", lab.at("link")).unwrap();
    };
    assert_eq!(during(&mut tree, retarget), ["M link"]);
    assert_eq!(
        during(&mut tree, || fs::rename(lab.at("link"), lab.at("src/link")).unwrap()),
        ["D link", "A src/link", "R link -> src/link"]
    );
    // Clean before, staged and moved by a reset: only git can tell that it is the same.
    lab.commit("moved");
    let mut fresh = lab.tree();
    assert_eq!(during(&mut fresh, || drop(lab.git(&["reset", "-q", "HEAD~1"]))), no_changes());
}

#[test]
fn a_pipe_and_a_socket_are_never_opened() {
    let lab = Lab::new();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    for name in ["pipe", "src/b.rs"] {
        let _ = fs::remove_file(lab.at(name));
        assert!(Command::new("mkfifo").arg(lab.at(name)).status().unwrap().success());
    }
    let _socket = UnixListener::bind(lab.at("socket")).unwrap();
    // Git does not list them; the one in the place of a file is seen there.
    assert_eq!(changed(&mut tree, &before), ["M src/b.rs"]);
    let folder = Lab::bare_folder();
    let mut tree = folder.tree();
    let before = tree.snapshot();
    assert!(Command::new("mkfifo").arg(folder.at("pipe")).status().unwrap().success());
    assert_eq!(changed(&mut tree, &before), ["A pipe"]);
}

#[test]
fn what_git_was_told_not_to_look_at_is_looked_at() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let lab = Lab::new();
        lab.git(&["update-index", flag, "a.rs", "d.rs"]);
        let mut tree = lab.tree();
        let before = tree.snapshot();
        lab.write("a.rs", "x\n");
        lab.remove("d.rs");
        assert_eq!(changed(&mut tree, &before), ["M a.rs", "D d.rs"], "{flag}");
        // Also when it is told so meanwhile.
        let lab = Lab::new();
        let mut tree = lab.tree();
        let before = tree.snapshot();
        lab.git(&["update-index", flag, "a.rs", "src/b.rs"]);
        lab.write("a.rs", "x\n");
        assert_eq!(changed(&mut tree, &before), ["M a.rs"], "{flag}");
        // What stands in the index is not what stands there.
        let lab = Lab::new();
        let mut tree = lab.tree();
        let before = tree.snapshot();
        lab.write("a.rs", "staged\n");
        lab.git(&["add", "a.rs"]);
        lab.git(&["update-index", flag, "a.rs"]);
        lab.write("a.rs", "a\n");
        assert_eq!(changed(&mut tree, &before), no_changes(), "{flag}");
    }
}

#[test]
fn a_sparse_checkout_misses_nothing_that_is_not_checked_out() {
    let lab = Lab::new();
    lab.git(&["sparse-checkout", "set", "src/deep"]);
    assert!(!lab.at("src/b.rs").exists() || lab.at("src/deep/c.rs").exists());
    let mut tree = lab.tree();
    let first = tree.revision("HEAD").unwrap();
    assert_eq!(changed(&mut tree, &first), no_changes());
    let before = tree.snapshot();
    lab.write("src/deep/c.rs", "x");
    assert_eq!(changed(&mut tree, &before), ["M src/deep/c.rs"]);
    lab.git(&["stash", "-q"]);
    lab.git(&["sparse-checkout", "disable"]);
    lab.git(&["sparse-checkout", "set", "--no-cone", "/d.rs"]);
    assert_eq!(changed(&mut tree, &before), ["D a.rs", "D src/b.rs", "D src/deep/c.rs"]);
}

#[test]
fn intent_to_add_and_staged_then_edited() {
    let lab = Lab::new();
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.write("meant.rs", "meant\n");
    lab.git(&["add", "-N", "meant.rs"]);
    lab.write("staged.rs", "one\n");
    lab.git(&["add", "staged.rs"]);
    lab.write("staged.rs", "two\n");
    lab.write("a.rs", "one\n");
    lab.git(&["add", "a.rs"]);
    lab.write("a.rs", "two\n");
    lab.write("never.rs", "x");
    lab.git(&["add", "never.rs"]);
    lab.remove("never.rs");
    assert_eq!(changed(&mut tree, &before), ["M a.rs", "A meant.rs", "A staged.rs"]);
    let before = tree.snapshot();
    lab.git(&["add", "-A"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["reset", "-q"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
}

#[test]
fn what_becomes_ignored_or_is_no_longer_is_no_change() {
    let lab = Lab::new();
    lab.write(".gitignore", "*.log\n");
    lab.commit("ignore");
    lab.write("seen.tmp", "x");
    lab.write("hidden.log", "x");
    lab.write("moved/x", "x");
    // So that its times are clearly older than the snapshot.
    std::thread::sleep(Duration::from_millis(2200));
    let mut tree = lab.tree();
    let before = tree.snapshot();
    lab.write(".gitignore", "*.tmp\n");
    lab.write("made.log", "x2");
    fs::rename(lab.at("moved"), lab.at("elsewhere")).unwrap();
    let after = tree.snapshot();
    let changes = tree.changes(&before, &after);
    let expected =
        ["M .gitignore", "A elsewhere/x", "A made.log", "D moved/x", "R moved/x -> elsewhere/x"];
    assert_eq!(told(&changes), expected);
    assert_eq!(
        changes.notes,
        ["hidden.log: ignored before and unchanged since, not counted as added"]
    );
    lab.write("seen.tmp", "y");
    assert_eq!(changed(&mut tree, &after), ["M seen.tmp"]);
}

#[test]
fn line_ends_and_filters_are_compared_as_git_does() {
    let lab = Lab::new();
    lab.write(".gitattributes", "*.txt text=auto\n*.up filter=up\n");
    lab.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    lab.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    lab.write("lines.txt", "one\r\ntwo\r\n");
    lab.write("loud.up", "LOUD\n");
    lab.commit("filtered");
    let mut tree = lab.tree();
    let before = tree.snapshot();
    assert_eq!(tree.content(&before, Path::new("loud.up")).unwrap().unwrap(), b"LOUD\n");
    // Dirty against the new HEAD, and the bytes are those of before.
    lab.git(&["reset", "-q", "--soft", "HEAD~1"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.git(&["reset", "-q"]);
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.write("loud.up", "QUIET\n");
    assert_eq!(changed(&mut tree, &before), ["M loud.up"]);
    assert_eq!(tree.restore(&before, &[PathBuf::from("loud.up")]), []);
    assert_eq!(fs::read(lab.at("loud.up")).unwrap(), b"LOUD\n");
}

#[test]
fn what_is_ours_and_what_is_noise_is_left_out() {
    let lab = Lab::new();
    let settings = Settings {
        without: [lab.at(".state"), lab.at("a.rs"), lab.at("not-yet/there")].into(),
        keep: Some(lab.at(".kept")),
        noise: vec!["*.pyc".into(), "out/".into(), "src/deep/**".into(), "[".into()],
    };
    let mut tree = Tree::open(lab.path(), settings);
    let before = tree.snapshot();
    assert_eq!(before.notes.len(), 1, "{:?}", before.notes);
    for name in [
        "a.rs",
        ".state/x",
        "not-yet/there",
        "x/y.pyc",
        "y.pyc",
        "p/out/z",
        "src/deep/c.rs",
        "later/x",
    ] {
        lab.write(name, "new");
    }
    tree.note_ours(lab.at("later"));
    let after = tree.snapshot();
    assert_eq!(told(&tree.changes(&before, &after)), no_changes());
    assert_eq!(before.id, after.id);
    lab.commit("also when committed");
    assert_eq!(changed(&mut tree, &before), no_changes());
    lab.write("later.rs", "x");
    assert_eq!(changed(&mut tree, &before), ["A later.rs"]);
}
