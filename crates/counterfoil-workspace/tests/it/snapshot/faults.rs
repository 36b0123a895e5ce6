//! What is in the way: git that is missing, refuses or hangs; repositories that are locked, broken
//! or not there.

use super::*;
use counterfoil_workspace::snapshot::{Git, Since};
use std::os::unix::fs::chown;
use std::time::{Duration, SystemTime};

fn with_git(folder: &Path, program: &Path, limit: Duration) -> Snapshotter {
    Snapshotter::open_with(folder, Settings::default(), Git { program: program.into(), limit })
}

/// A program in the place of git.
fn script(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("git");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// The same as with git, by content; and why.
fn falls_back(repo: &TestRepo, snapshotter: &mut Snapshotter, words: &str) {
    let before = snapshotter.snapshot();
    assert!(before.id.is_some());
    assert!(before.notes.iter().any(|note| note.contains(words)), "{:?}", before.notes);
    repo.write("a.rs", "x\n");
    repo.write("new.rs", "x");
    repo.write("seen.rs", "y\n");
    assert_eq!(changed(snapshotter, &before), ["M a.rs", "A new.rs", "A seen.rs"]);
    let after = snapshotter.snapshot();
    assert_ne!(before.id, after.id);
    fs::rename(repo.at("seen.rs"), repo.at("src/seen.rs")).unwrap();
    assert_eq!(
        changed(snapshotter, &after),
        ["D seen.rs", "A src/seen.rs", "R seen.rs -> src/seen.rs"]
    );
}

#[test]
fn without_git_files_are_told_apart_by_content() {
    let repo = TestRepo::new();
    let mut snapshotter = with_git(repo.path(), Path::new("no-such-git"), Duration::from_secs(5));
    assert!(!snapshotter.is_git());
    falls_back(
        &repo,
        &mut snapshotter,
        "git is not installed (`no-such-git` was not found on the PATH)",
    );
}

#[test]
fn outside_a_repository_files_are_told_apart_by_content() {
    let repo = TestRepo::bare_folder();
    repo.write("a.rs", "a\n");
    repo.write("src/b.rs", "b\n");
    repo.write(".gitignore", "out/\n*.log\n");
    let mut snapshotter = repo.snapshotter();
    falls_back(&repo, &mut snapshotter, "not a git repository");
    let before = snapshotter.snapshot();
    repo.write("out/x", "ignored");
    repo.write("src/x.log", "ignored");
    repo.write(".hidden", "seen");
    symlink("a.rs", repo.at("link")).unwrap();
    repo.chmod("a.rs", 0o755);
    assert_eq!(changed(&mut snapshotter, &before), ["A .hidden", "M a.rs", "A link"]);
    for (name, ignored) in
        [("out/x", true), ("out", true), ("src/x.log", true), ("a.rs", false), ("src", false)]
    {
        assert_eq!(snapshotter.is_ignored(Path::new(name)), ignored, "{name}");
    }
}

#[test]
fn git_that_hangs_is_ended_with_what_it_started() {
    let repo = TestRepo::new();
    let mark = tempfile::tempdir().unwrap();
    let pid = mark.path().join("pid");
    // Its child holds the pipes open and would live on.
    let text = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let slow = script(&text);
    let mut snapshotter =
        with_git(repo.path(), &slow.path().join("git"), Duration::from_millis(300));
    assert!(!snapshotter.is_git());
    falls_back(&repo, &mut snapshotter, "`git rev-parse` was killed: it took longer than 0.3 s");
    let pid: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let gone = || {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !gone() && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone(), "the child of git still runs");
}

#[test]
fn git_that_hangs_later_is_done_without() {
    let repo = TestRepo::new();
    let slow = script("case \"$*\" in *diff-files*) sleep 600;; esac\nexec git \"$@\"");
    let mut snapshotter = with_git(repo.path(), &slow.path().join("git"), Duration::from_secs(1));
    let before = snapshotter.snapshot();
    assert!(before.notes.iter().any(|note| note.contains("was killed")), "{:?}", before.notes);
    repo.write("a.rs", "x\n");
    let after = snapshotter.snapshot();
    assert_eq!(told(&snapshotter.changes(&before, &after)), ["M a.rs"]);
}

#[test]
fn a_lock_on_the_index_is_neither_waited_for_nor_touched() {
    let repo = TestRepo::new();
    repo.write(".git/index.lock", "somebody's");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    assert!(before.notes.is_empty());
    repo.write("a.rs", "x\n");
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs"]);
    assert_eq!(fs::read(repo.at(".git/index.lock")).unwrap(), b"somebody's");
}

#[test]
fn a_corrupt_index_is_done_without() {
    let repo = TestRepo::new();
    repo.write(".git/index", "this is not an index");
    let mut snapshotter = repo.snapshotter();
    falls_back(&repo, &mut snapshotter, "`git ls-files` failed: ");
}

#[test]
fn whatever_becomes_of_the_repository_changes_are_seen() {
    type Break<'a> = (&'a str, &'a dyn Fn(&TestRepo));
    let breaks: [Break; 9] = [
        ("an index that is broken", &|repo| repo.write(".git/index", "this is not an index")),
        ("an index that is gone", &|repo| repo.remove(".git/index")),
        ("a repository that is gone", &|repo| fs::remove_dir_all(repo.at(".git")).unwrap()),
        ("a repository that is elsewhere", &|repo| {
            fs::rename(repo.at(".git"), repo.at(".git2")).unwrap();
            fs::create_dir(repo.at(".git")).unwrap();
        }),
        ("a format of the future", &|repo| {
            repo.git(&["config", "core.repositoryFormatVersion", "99"]);
        }),
        ("a work tree elsewhere", &|repo| {
            repo.git(&["config", "core.worktree", "/nowhere"]);
        }),
        ("a tree that is missing", &|repo| {
            let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
            repo.remove(&format!(".git/objects/{}/{}", &tree[..2], &tree[2..]));
        }),
        ("settings that cannot be read", &|repo| repo.write(".git/config", "[broken")),
        ("an index that lies", &|repo| {
            repo.git(&["add", "-A"]);
            repo.git(&["commit", "-q", "-m", "hidden"]);
        }),
    ];
    for (what, break_it) in breaks {
        let repo = TestRepo::new();
        repo.write("mine.rs", "the user's");
        let keep = tempfile::tempdir().unwrap();
        let mut snapshotter = repo.keeping(&keep);
        let before = snapshotter.snapshot();
        repo.write("a.rs", "x\n");
        repo.write("new.rs", "x");
        repo.remove("d.rs");
        repo.write("mine.rs", "the agent's");
        break_it(&repo);
        let after = snapshotter.snapshot();
        assert_eq!(after.notes, before.notes, "{what}");
        let files = told(&snapshotter.changes(&before, &after));
        let expected = ["M a.rs", "D d.rs", "M mine.rs", "A new.rs"];
        let moved = files.iter().filter(|line| !line.contains(".git2"));
        assert_eq!(moved.collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>(), "{what}");
    }
}

#[test]
fn a_repository_that_vanishes_is_not_replaced_by_the_one_around_it() {
    let outer = TestRepo::new();
    fs::create_dir(outer.at("in")).unwrap();
    let inner = outer.at("in");
    git(&inner, &["init", "-q"]);
    fs::write(inner.join("a"), "a").unwrap();
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-q", "-m", "x"]);
    let mut snapshotter = Snapshotter::open(&inner, Settings::default());
    let before = snapshotter.snapshot();
    fs::remove_dir_all(inner.join(".git")).unwrap();
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    fs::write(inner.join("a"), "b").unwrap();
    assert_eq!(changed(&mut snapshotter, &before), ["M a"]);
    // Its content went with it.
    let failed = snapshotter.restore(&before, &["a".into()]);
    assert_eq!(failed.len(), 1, "{failed:?}");
}

#[test]
fn a_bare_repository_is_a_folder() {
    let repo = TestRepo::bare_folder();
    repo.git(&["init", "-q", "--bare"]);
    let mut snapshotter = repo.snapshotter();
    assert!(!snapshotter.is_git());
    let before = snapshotter.snapshot();
    assert!(before.notes[0].contains("which has no work tree"), "{:?}", before.notes);
    assert_eq!(during(&mut snapshotter, || repo.write("description", "edited")), ["M description"]);
}

#[test]
fn a_repository_of_another_user_is_looked_at_by_content_with_a_way_out() {
    let repo = TestRepo::new();
    if chown(repo.path(), Some(12345), Some(12345)).is_err() {
        return; // Only root can give a folder away.
    }
    chown(repo.at(".git"), Some(12345), Some(12345)).unwrap();
    let settings = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null; unset SUDO_UID";
    let strict = script(&format!("{settings}\nexec git \"$@\""));
    let mut snapshotter = with_git(repo.path(), &strict.path().join("git"), Duration::from_mins(1));
    falls_back(&repo, &mut snapshotter, "detected dubious ownership in repository");
    let note = &snapshotter.snapshot().notes[0];
    assert!(note.contains("git config --global --add safe.directory "), "{note}");
}

#[test]
fn a_huge_file_is_not_read() {
    let repo = TestRepo::new();
    let file = fs::File::create(repo.at("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let before = snapshotter.snapshot();
    assert_eq!(before.notes, ["huge: larger than 256 MiB, compared by size and times"]);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    file.set_len((1 << 40) + 1).unwrap();
    repo.remove("a.rs");
    let other = fs::File::create(repo.at("d.rs")).unwrap();
    other.set_len(1 << 40).unwrap();
    fs::File::create(repo.at("huge too")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(changed(&mut snapshotter, &before), ["D a.rs", "M d.rs", "M huge", "A huge too"]);
    assert!(
        snapshotter
            .content(&before, Path::new("huge"))
            .unwrap_err()
            .to_string()
            .starts_with("not stored")
    );
    let failed = snapshotter.restore(&before, &["huge".into()]);
    assert_eq!(failed.len(), 1);
    assert!(repo.at("huge").exists());
}

#[test]
fn too_many_files_without_git_say_nothing() {
    let repo = TestRepo::bare_folder();
    for at in 0..20 {
        let file = fs::File::create(repo.at(&format!("sparse{at}"))).unwrap();
        file.set_len(250 << 20).unwrap();
    }
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    assert_eq!(before.id, None);
    assert!(before.notes[1].contains("too much to read"), "{:?}", before.notes);
    let after = snapshotter.snapshot();
    let changes = snapshotter.changes(&before, &after);
    assert!(
        changes.files.is_empty() && changes.notes.last().unwrap().contains("cannot be determined")
    );
    assert!(snapshotter.content(&before, Path::new("sparse0")).is_err());
}

#[test]
fn fifty_thousand_untracked_files() {
    let repo = TestRepo::new();
    for folder in 0..50 {
        fs::create_dir(repo.at(&format!("f{folder}"))).unwrap();
        for file in 0..1000 {
            fs::write(repo.at(&format!("f{folder}/{file}")), format!("{folder} {file}")).unwrap();
        }
    }
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    assert!(before.notes.is_empty(), "{:?}", before.notes);
    repo.write("f7/77", "77 7");
    fs::rename(repo.at("f9/9"), repo.at("f9/nine")).unwrap();
    fs::remove_dir_all(repo.at("f3")).unwrap();
    let after = snapshotter.snapshot();
    let changes = snapshotter.changes(&before, &after);
    assert_eq!(changes.files.len(), 1003);
    assert_eq!(changes.files[Path::new("f7/77")], Change::Modified);
    assert_eq!(changes.renamed, [("f9/9".into(), "f9/nine".into())]);
}

#[test]
fn what_cannot_be_read_is_told_apart_by_its_times() {
    let repo = TestRepo::new();
    repo.write("secret", "x");
    repo.chmod("secret", 0o000);
    let readable = fs::read(repo.at("secret")).is_ok();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    // Root reads everything.
    assert_eq!(before.notes.is_empty(), readable, "{:?}", before.notes);
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.chmod("secret", 0o600);
    repo.write("secret", "y");
    assert_eq!(changed(&mut snapshotter, &before), ["M secret"]);
}

#[test]
fn files_that_come_and_go_meanwhile_do_no_harm() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                for at in 0..30 {
                    let path = repo.at(&format!("busy{at}"));
                    match (round + at) % 4 {
                        0 => drop(fs::write(&path, "x".repeat(round % 7000))),
                        1 => drop(fs::remove_file(&path)),
                        2 => drop(fs::create_dir(&path)),
                        _ => drop(fs::remove_dir(&path)),
                    }
                }
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..10 {
            let after = snapshotter.snapshot();
            let changes = snapshotter.changes(&before, &after);
            assert!(
                changes.files.keys().all(|path| path.to_string_lossy().starts_with("busy")),
                "{changes:?}"
            );
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn hooks_and_monitors_are_not_run_and_settings_of_an_agent_do_not_blind_us() {
    let repo = TestRepo::new();
    repo.write(".git/hooks/ran", "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../ran\"\n");
    repo.chmod(".git/hooks/ran", 0o755);
    fs::copy(repo.at(".git/hooks/ran"), repo.at(".git/hooks/post-index-change")).unwrap();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    let hook = repo.at(".git/hooks/ran");
    for (key, value) in [
        ("core.fsmonitor", hook.to_str().unwrap()),
        ("core.trustctime", "false"),
        ("core.checkStat", "minimal"),
        ("core.fileMode", "false"),
        ("core.ignoreCase", "true"),
        ("core.symlinks", "false"),
        ("status.showUntrackedFiles", "no"),
        ("diff.ignoreSubmodules", "all"),
        ("core.untrackedCache", "true"),
        ("core.pager", hook.to_str().unwrap()),
        ("diff.external", hook.to_str().unwrap()),
    ] {
        repo.git(&["config", key, value]);
    }
    repo.chmod("a.rs", 0o755);
    repo.write("new.rs", "x");
    let old = repo.at("d.rs").metadata().unwrap().modified().unwrap();
    repo.write("d.rs", "x\n");
    fs::File::options().write(true).open(repo.at("d.rs")).unwrap().set_modified(old).unwrap();
    fs::rename(repo.at("src/b.rs"), repo.at("src/B.rs")).unwrap();
    let expected =
        ["M a.rs", "M d.rs", "A new.rs", "A src/B.rs", "D src/b.rs", "R src/b.rs -> src/B.rs"];
    assert_eq!(changed(&mut snapshotter, &before), expected);
    assert!(!repo.at("ran").exists());
}

#[test]
fn a_commit_that_stands_in_for_head_hides_nothing() {
    let repo = TestRepo::new();
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.write("a.rs", "edited\n");
    repo.commit("edited");
    let edited = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["reset", "-q", "--soft", &head]);
    repo.git(&["replace", &head, &edited]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(changed(&mut snapshotter, &before), ["M a.rs"]);
}

#[test]
fn ignored_files_are_told_by_their_times() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "*.log\nout/\n");
    repo.write("old.log", "x");
    repo.write("touched.log", "x");
    std::thread::sleep(Duration::from_millis(50));
    let when = SystemTime::now();
    std::thread::sleep(Duration::from_millis(50));
    repo.write("touched.log", "y");
    repo.write("out/new", "x");
    let mut snapshotter = repo.snapshotter();
    for (name, since) in [
        ("old.log", Since::Untouched),
        ("touched.log", Since::Modified),
        ("out/new", Since::Added),
        ("none.log", Since::Absent),
        ("out/new/below", Since::Absent),
    ] {
        assert_eq!(snapshotter.since(Path::new(name), when), since, "{name}");
    }
    let odd = [
        ":odd.log",
        "new\nline.log",
        "out/new",
        "out",
        "a.rs",
        "no.rs",
        "../x.log",
        "/etc/passwd",
        "./old.log",
    ];
    let ignored = snapshotter.ignored(&odd.map(PathBuf::from));
    let expected = [":odd.log", "new\nline.log", "out/new", "out", "./old.log"].map(PathBuf::from);
    assert_eq!(ignored, expected.into());
    fs::create_dir(repo.at("own")).unwrap();
    git(&repo.at("own"), &["init", "-q"]);
    repo.write("own/.gitignore", "*.tmp\n");
    // A repository that was there at the first look has its own rules.
    let both = ["own/x.tmp", "own/x.log", "y.tmp", "y.log"].map(PathBuf::from);
    let expected = |names: [&str; 2]| names.map(PathBuf::from).into();
    assert_eq!(snapshotter.ignored(&both), expected(["own/x.log", "y.log"]));
    assert_eq!(repo.snapshotter().ignored(&both), expected(["own/x.tmp", "y.log"]));
    assert!(
        snapshotter.is_ignored(Path::new("old.log")) && !snapshotter.is_ignored(Path::new("a.rs"))
    );
}
