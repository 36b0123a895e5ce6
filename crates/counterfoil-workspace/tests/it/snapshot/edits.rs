//! What is done to files.

use super::*;
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

#[test]
fn sees_what_is_done_to_a_file() {
    type Act = fn(&TestRepo);
    let cases: [(&str, Act, &[&str]); 23] = [
        ("nothing", |_| {}, &[]),
        ("edit", |repo| repo.write("a.rs", "other\n"), &["M a.rs"]),
        ("edit of the same size", |repo| repo.write("a.rs", "x\n"), &["M a.rs"]),
        ("the same bytes again", |repo| repo.write("a.rs", "a\n"), &[]),
        ("edit with the old time", |repo| with_old_time(&repo.at("a.rs"), "x\n"), &["M a.rs"]),
        ("new", |repo| repo.write("new/er/e.rs", "e"), &["A new/er/e.rs"]),
        ("delete", |repo| repo.remove("a.rs"), &["D a.rs"]),
        (
            "delete a folder",
            |repo| fs::remove_dir_all(repo.at("src")).unwrap(),
            &["D src/b.rs", "D src/deep/c.rs"],
        ),
        (
            "rename",
            |repo| fs::rename(repo.at("a.rs"), repo.at("z.rs")).unwrap(),
            &["D a.rs", "A z.rs", "R a.rs -> z.rs"],
        ),
        (
            "rename by git",
            |repo| drop(repo.git(&["mv", "a.rs", "src/a.rs"])),
            &["D a.rs", "A src/a.rs", "R a.rs -> src/a.rs"],
        ),
        (
            "rename of a folder",
            |repo| fs::rename(repo.at("src"), repo.at("lib")).unwrap(),
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
            |repo| fs::rename(repo.at("a.rs"), repo.at("A.rs")).unwrap(),
            &["A A.rs", "D a.rs", "R a.rs -> A.rs"],
        ),
        ("mode", |repo| repo.chmod("a.rs", 0o755), &["M a.rs"]),
        ("mode that git does not know", |repo| repo.chmod("a.rs", 0o600), &[]),
        ("a new link", |repo| symlink("src", repo.at("to-folder")).unwrap(), &["A to-folder"]),
        (
            "a dangling link",
            |repo| symlink("/no/such/thing", repo.at("nowhere")).unwrap(),
            &["A nowhere"],
        ),
        (
            "a file becomes a link",
            |repo| {
                repo.remove("a.rs");
                symlink("d.rs", repo.at("a.rs")).unwrap();
            },
            &["M a.rs"],
        ),
        (
            "a file becomes a folder",
            |repo| {
                repo.remove("a.rs");
                repo.write("a.rs/inner", "x");
            },
            &["D a.rs", "A a.rs/inner"],
        ),
        (
            "a folder becomes a file",
            |repo| {
                fs::remove_dir_all(repo.at("src")).unwrap();
                repo.write("src", "x");
            },
            &["A src", "D src/b.rs", "D src/deep/c.rs"],
        ),
        (
            "a folder becomes a link to one just like it",
            |repo| {
                fs::rename(repo.at("src"), repo.at(".git/copy")).unwrap();
                symlink(".git/copy", repo.at("src")).unwrap();
            },
            &["A src", "D src/b.rs", "D src/deep/c.rs"],
        ),
        (
            "staged",
            |repo| {
                repo.write("a.rs", "staged\n");
                repo.git(&["add", "a.rs"]);
            },
            &["M a.rs"],
        ),
        (
            "staged and taken back in the work tree",
            |repo| {
                repo.write("a.rs", "staged\n");
                repo.git(&["add", "a.rs"]);
                repo.write("a.rs", "a\n");
            },
            &[],
        ),
        (
            "taken out of the index and left there",
            |repo| drop(repo.git(&["rm", "-q", "--cached", "a.rs"])),
            &[],
        ),
    ];
    let repo = TestRepo::new();
    for (name, act, expected) in cases {
        repo.begin_again();
        let mut snapshotter = repo.snapshotter();
        assert_eq!(during(&mut snapshotter, || act(&repo)), expected, "{name}");
    }
}

#[test]
fn the_same_is_seen_of_files_that_were_dirty_before() {
    type Act = fn(&TestRepo);
    let cases: [(&str, Act, &[&str]); 9] = [
        ("nothing", |_| {}, &[]),
        ("edit", |repo| repo.write("a.rs", "edited once more\n"), &["M a.rs"]),
        ("edit of the same size", |repo| repo.write("a.rs", "EDITED\n"), &["M a.rs"]),
        (
            "edit with the old time",
            |repo| with_old_time(&repo.at("new.rs"), "NEW\n"),
            &["M new.rs"],
        ),
        ("back to HEAD", |repo| drop(repo.git(&["checkout", "-q", "a.rs"])), &["M a.rs"]),
        ("mode", |repo| repo.chmod("new.rs", 0o755), &["M new.rs"]),
        ("delete", |repo| repo.remove("new.rs"), &["D new.rs"]),
        ("commit", |repo| repo.commit("what was there"), &[]),
        (
            "rename and commit",
            |repo| {
                fs::rename(repo.at("new.rs"), repo.at("newer.rs")).unwrap();
                repo.commit("renamed");
            },
            &["D new.rs", "A newer.rs", "R new.rs -> newer.rs"],
        ),
    ];
    let repo = TestRepo::new();
    for (name, act, expected) in cases {
        repo.begin_again();
        repo.write("a.rs", "edited\n");
        repo.write("new.rs", "new\n");
        repo.remove("d.rs");
        let mut snapshotter = repo.snapshotter();
        assert_eq!(during(&mut snapshotter, || act(&repo)), expected, "{name}");
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
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    repo.write("new.rs", "0\n");
    let mut before = snapshotter.snapshot();
    for round in 1..10 {
        let old = repo.at("new.rs").metadata().unwrap().modified().unwrap();
        for name in ["new.rs", "a.rs"] {
            fs::write(repo.at(name), format!("{round}\n")).unwrap();
            fs::File::options().write(true).open(repo.at(name)).unwrap().set_modified(old).unwrap();
        }
        let after = snapshotter.snapshot();
        assert_eq!(told(&snapshotter.changes(&before, &after)), ["M a.rs", "M new.rs"], "{round}");
        before = after;
    }
}

#[test]
fn what_is_remembered_of_a_settled_file_is_right() {
    let repo = TestRepo::new();
    let old = SystemTime::now() - Duration::from_hours(1);
    repo.write("new.rs", "one\n");
    let mut snapshotter = repo.snapshotter();
    let first = snapshotter.snapshot();
    // Longer than the times take to settle: from here on the file is not read again unless it
    // changed.
    std::thread::sleep(Duration::from_millis(2100));
    let second = snapshotter.snapshot();
    let third = snapshotter.snapshot();
    assert_eq!(first.id, third.id);
    repo.write("new.rs", "two\n");
    fs::File::options().write(true).open(repo.at("new.rs")).unwrap().set_modified(old).unwrap();
    assert_eq!(changed(&mut snapshotter, &second), ["M new.rs"]);
}

#[test]
fn names_are_bytes() {
    let repo = TestRepo::new();
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
        let path = repo.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name.as_os_str().as_bytes()).unwrap();
    }
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let untracked = snapshotter.snapshot();
    repo.commit("odd names");
    let committed = snapshotter.snapshot();
    assert_eq!(snapshotter.changes(&untracked, &committed), Changes::default());
    // A tree that did not see them before they were committed has to ask git for them.
    let mut fresh = repo.snapshotter();
    let clean = fresh.snapshot();
    repo.git(&["reset", "-q", "--soft", "HEAD~1"]);
    let soft = fresh.snapshot();
    assert_eq!(fresh.changes(&clean, &soft), Changes::default());
    repo.git(&["reset", "-q"]);
    let mixed = fresh.snapshot();
    assert_eq!(fresh.changes(&clean, &mixed), Changes::default());
    for (snapshotter, before) in [(&mut snapshotter, &untracked), (&mut fresh, &clean)] {
        for name in &names {
            fs::write(repo.path().join(name), "edited").unwrap();
        }
        let after = snapshotter.snapshot();
        let changes = snapshotter.changes(before, &after);
        assert_eq!(changes.files.len(), names.len());
        for name in &names {
            assert_eq!(changes.files.get(name), Some(&Change::Modified), "{name:?}");
            let then = snapshotter.content(before, name).unwrap().unwrap();
            assert_eq!(then, name.as_os_str().as_bytes());
        }
        assert_eq!(snapshotter.restore(before, &names), []);
        assert_eq!(changed(snapshotter, before), no_changes());
    }
}

#[test]
fn a_link_changes_with_its_target_and_not_with_what_it_leads_to() {
    let repo = TestRepo::new();
    symlink("a.rs", repo.at("link")).unwrap();
    symlink("src", repo.at("folder")).unwrap();
    repo.commit("links");
    let mut snapshotter = repo.snapshotter();
    assert_eq!(during(&mut snapshotter, || repo.write("src/b.rs", "edited")), ["M src/b.rs"]);
    let retarget = || {
        fs::remove_file(repo.at("link")).unwrap();
        symlink("d.rs", repo.at("link")).unwrap();
    };
    assert_eq!(during(&mut snapshotter, retarget), ["M link"]);
    assert_eq!(
        during(&mut snapshotter, || fs::rename(repo.at("link"), repo.at("src/link")).unwrap()),
        ["D link", "A src/link", "R link -> src/link"]
    );
    // Clean before, staged and moved by a reset: only git can tell that it is the same.
    repo.commit("moved");
    let mut fresh = repo.snapshotter();
    assert_eq!(during(&mut fresh, || drop(repo.git(&["reset", "-q", "HEAD~1"]))), no_changes());
}

#[test]
fn a_pipe_and_a_socket_are_never_opened() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    for name in ["pipe", "src/b.rs"] {
        let _ = fs::remove_file(repo.at(name));
        assert!(Command::new("mkfifo").arg(repo.at(name)).status().unwrap().success());
    }
    let _socket = UnixListener::bind(repo.at("socket")).unwrap();
    // Git does not list them; the one in the place of a file is seen there.
    assert_eq!(changed(&mut snapshotter, &before), ["M src/b.rs"]);
    let folder = TestRepo::bare_folder();
    let mut snapshotter = folder.snapshotter();
    let before = snapshotter.snapshot();
    assert!(Command::new("mkfifo").arg(folder.at("pipe")).status().unwrap().success());
    assert_eq!(changed(&mut snapshotter, &before), ["A pipe"]);
}

#[test]
fn what_git_was_told_not_to_look_at_is_looked_at() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let repo = TestRepo::new();
        repo.git(&["update-index", flag, "a.rs", "d.rs"]);
        let mut snapshotter = repo.snapshotter();
        let before = snapshotter.snapshot();
        repo.write("a.rs", "x\n");
        repo.remove("d.rs");
        assert_eq!(changed(&mut snapshotter, &before), ["M a.rs", "D d.rs"], "{flag}");
        // Also when it is told so meanwhile.
        let repo = TestRepo::new();
        let mut snapshotter = repo.snapshotter();
        let before = snapshotter.snapshot();
        repo.git(&["update-index", flag, "a.rs", "src/b.rs"]);
        repo.write("a.rs", "x\n");
        assert_eq!(changed(&mut snapshotter, &before), ["M a.rs"], "{flag}");
        // The index and the work tree differ.
        let repo = TestRepo::new();
        let mut snapshotter = repo.snapshotter();
        let before = snapshotter.snapshot();
        repo.write("a.rs", "staged\n");
        repo.git(&["add", "a.rs"]);
        repo.git(&["update-index", flag, "a.rs"]);
        repo.write("a.rs", "a\n");
        assert_eq!(changed(&mut snapshotter, &before), no_changes(), "{flag}");
    }
}

#[test]
fn a_sparse_checkout_misses_nothing_that_is_not_checked_out() {
    let repo = TestRepo::new();
    repo.git(&["sparse-checkout", "set", "src/deep"]);
    assert!(!repo.at("src/b.rs").exists() || repo.at("src/deep/c.rs").exists());
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.write("src/deep/c.rs", "x");
    assert_eq!(changed(&mut snapshotter, &before), ["M src/deep/c.rs"]);
    repo.git(&["stash", "-q"]);
    repo.git(&["sparse-checkout", "disable"]);
    repo.git(&["sparse-checkout", "set", "--no-cone", "/d.rs"]);
    assert_eq!(changed(&mut snapshotter, &before), ["D a.rs", "D src/b.rs", "D src/deep/c.rs"]);
}

#[test]
fn intent_to_add_and_staged_then_edited() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    repo.write("meant.rs", "meant\n");
    repo.git(&["add", "-N", "meant.rs"]);
    repo.write("staged.rs", "one\n");
    repo.git(&["add", "staged.rs"]);
    repo.write("staged.rs", "two\n");
    repo.write("a.rs", "one\n");
    repo.git(&["add", "a.rs"]);
    repo.write("a.rs", "two\n");
    repo.write("never.rs", "x");
    repo.git(&["add", "never.rs"]);
    repo.remove("never.rs");
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs", "A meant.rs", "A staged.rs"]);
    let before = snapshotter.snapshot();
    repo.git(&["add", "-A"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.git(&["reset", "-q"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
}
