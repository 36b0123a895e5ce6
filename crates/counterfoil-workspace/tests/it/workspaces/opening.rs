//! A workspace stands exactly as the user's work tree does.

use crate::workspaces::fixture::{RUN, TestRepo, all_files, git, set_mode, tree, write};
use counterfoil_workspace::workspaces::{Error, Workspaces};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

fn dirty() -> TestRepo {
    let fixture = TestRepo::new(&[
        ("clean.txt", "clean\n"),
        ("edited.txt", "old\n"),
        ("deleted.txt", "old\n"),
        ("mode.sh", "echo\n"),
        ("folder/deep/file", "x\n"),
        ("was-file", "x\n"),
        ("was-folder/a", "x\n"),
        (".gitignore", "*.log\nbuild/\n"),
        ("tracked.txt", "x\n"),
    ]);
    write(&fixture.repo.join("tracked.log"), "tracked, and ignored\n");
    fixture.git(&["add", "-f", "tracked.log"]);
    fixture.git(&["commit", "-q", "-m", "y"]);
    fixture.write("edited.txt", "new\n");
    fixture.remove("deleted.txt");
    set_mode(&fixture.repo.join("mode.sh"), 0o755);
    fixture.write("staged.txt", "staged\n");
    fixture.git(&["add", "staged.txt"]);
    fixture.write("staged.txt", "and edited\n");
    fixture.write("new folder/ünï \"quoted\".txt", "new\n");
    fixture.write("ignored.log", "ignored\n");
    fixture.write("build/out", "ignored\n");
    fixture.remove("was-file");
    fixture.write("was-file/inside", "y\n");
    std::fs::remove_dir_all(fixture.repo.join("was-folder")).unwrap();
    std::os::unix::fs::symlink("folder", fixture.repo.join("was-folder")).unwrap();
    std::os::unix::fs::symlink("/nowhere", fixture.repo.join("dangling")).unwrap();
    fixture
}

#[test]
fn it_looks_as_the_users_does() {
    let fixture = dirty();
    write(&fixture.repo.join(OsStr::from_bytes(b"not\xffutf8\nand a newline")), "bytes\n");
    let (before, user) = (fixture.kept(), fixture.tree());
    let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, Vec::<String>::new());
    assert_eq!(opened.folder, fixture.workspaces.folder(RUN, "a"));
    let mut expected = user.clone();
    expected.remove(Path::new("ignored.log"));
    expected.remove(Path::new("build/out"));
    assert_eq!(tree(&opened.folder), expected);
    assert_eq!(fixture.tree(), user);

    // The same status, but that nothing is staged.
    let status = git(&opened.folder, &["status", "--porcelain"]);
    let of_user = fixture
        .git(&["status", "--porcelain"])
        .replace("AM staged.txt\n", "")
        .replace("?? .counterfoil/\n", "");
    assert_eq!(status.replace("?? staged.txt\n", ""), of_user);

    // Our entry apart, git has nothing new: not even an object.
    let mut during = fixture.kept();
    for ours in ["worktrees", "entries"] {
        during.insert(ours.to_owned(), before[ours].clone());
    }
    assert_eq!(during, before);
    assert_eq!(fixture.workspaces.discard(RUN, "a").unwrap(), None);
    assert_eq!(fixture.kept(), before);
    fixture.assert_gone("a");
}

#[test]
fn opening_again_changes_nothing() {
    let fixture = dirty();
    let folder = fixture.open("a");
    write(&folder.join("work"), "x");
    fixture.write("later", "x");
    assert_eq!(fixture.open("a"), folder);
    assert!(folder.join("work").exists());
    assert!(!folder.join("later").exists());
}

#[test]
fn what_is_ours_stays_out() {
    let fixture = TestRepo::new(&[("a", "1")]);
    fixture.write("report.md", "ours");
    fixture.write("out/x/y", "ours");
    fixture.write("outer", "theirs");
    let without = BTreeSet::from([fixture.repo.join("report.md"), PathBuf::from("out/x")]);
    let folder = fixture.workspaces.open(RUN, "a", &without).unwrap().folder;
    assert_eq!(tree(&folder).into_keys().collect::<Vec<_>>(), [PathBuf::from("a"), "outer".into()]);
    write(&folder.join("report.md"), "an agent's");
    write(&folder.join("out/x/z"), "an agent's");
    assert_eq!(fixture.merge("a").changed, 0);
    assert_eq!(fixture.read("report.md"), "ours");
}

#[test]
fn bytes_are_the_users_whatever_filters_say() {
    let fixture =
        TestRepo::new(&[("a.txt", "one\r\ntwo\r\n"), ("b.up", "lower\n"), ("c.txt", "$Id$\n")]);
    fixture.git(&["config", "core.autocrlf", "true"]);
    // A filter that would be noticed if anything of ours ran it.
    let ran = fixture.home.join("ran");
    let filter = format!("touch '{}'; tr a-z A-Z", ran.display());
    fixture.git(&["config", "filter.up.smudge", &filter]);
    fixture.git(&["config", "filter.up.clean", &filter]);
    fixture.write(
        ".gitattributes",
        "*.up filter=up\n*.txt text ident\nd.txt working-tree-encoding=UTF-16\n",
    );
    fixture.write("d.txt", "not UTF-16 at all");
    let user = fixture.tree();
    let folder = fixture.open("a");
    assert_eq!(tree(&folder), user);
    assert_eq!(fixture.merge("a").changed, 0);
    let folder = fixture.open("b");
    write(&folder.join("a.txt"), "one\r\nTWO\r\n");
    fixture.write("b.up", "changed\n");
    assert_eq!(fixture.merge("b").changed, 1);
    assert_eq!(fixture.read("a.txt"), "one\r\nTWO\r\n");
    assert_eq!(fixture.read("b.up"), "changed\n");
    assert!(!ran.exists(), "a filter was run");
}

#[test]
fn hooks_and_monitors_do_not_run() {
    let fixture = TestRepo::new(&[("a", "1")]);
    let ran = fixture.home.join("ran");
    let hook = format!("#!/bin/sh\ntouch '{}'\n", ran.display());
    for name in ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor"] {
        let path = fixture.repo.join(".git/hooks").join(name);
        write(&path, &hook);
        set_mode(&path, 0o755);
    }
    fixture.git(&[
        "config",
        "core.fsmonitor",
        fixture.repo.join(".git/hooks/fsmonitor").to_str().unwrap(),
    ]);
    let folder = fixture.open("a");
    write(&folder.join("a"), "2");
    assert_eq!(fixture.merge("a").changed, 1);
    assert!(!ran.exists());
}

#[test]
fn in_a_subfolder_agents_get_that() {
    let fixture = TestRepo::new(&[("top", "1"), ("sub/in/a", "1")]);
    let workspaces = Workspaces::new(&fixture.state, &fixture.repo.join("sub/in"));
    assert_eq!(workspaces.folder(RUN, "a"), workspaces.path(RUN, "a").join("sub/in"));
    let folder = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap().folder;
    assert_eq!(folder, workspaces.path(RUN, "a").join("sub/in"));
    write(&folder.join("a"), "2");
    write(&folder.join("../../top"), "2");
    fixture.write("top", "3");
    let merged = workspaces.merge_back(RUN, "a").unwrap();
    assert_eq!(merged.conflicts, ["../../top"]);
    assert_eq!(fixture.read("sub/in/a"), "1");
}

#[test]
fn a_folder_that_the_repository_ignores_is_copied() {
    let fixture = TestRepo::new(&[(".gitignore", "play/\n"), ("top", "1")]);
    fixture.write("play/a", "1");
    let workspaces = Workspaces::new(&fixture.home.join("state"), &fixture.repo.join("play"));
    let opened = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, ["the repository ignores the folder: this is a plain copy of it"]);
    write(&opened.folder.join("a"), "2");
    assert_eq!(workspaces.merge_back(RUN, "a").unwrap().changed, 1);
    assert_eq!(fixture.read("play/a"), "2");
}

/// Each state that a repository can be in: work is done and merged, and nothing else changes.
#[test]
fn any_state_of_a_repository_will_do() {
    type Prepare = fn(&TestRepo);
    let cases: [(&str, Prepare); 8] = [
        ("branch", |fixture| drop(fixture.git(&["checkout", "-q", "-b", "topic"]))),
        ("detached", |fixture| drop(fixture.git(&["checkout", "-q", "--detach"]))),
        ("locked index", |fixture| fixture.write(".git/index.lock", "")),
        ("stash", |fixture| {
            fixture.write("a", "stashed\n");
            fixture.git(&["stash", "-q"]);
        }),
        ("rebase", |fixture| {
            fixture.git(&["checkout", "-q", "-b", "topic"]);
            fixture.write("a", "topic\n");
            fixture.commit();
            fixture.git(&["checkout", "-q", "main"]);
            fixture.write("a", "main\n");
            fixture.commit();
            let rebase = crate::workspaces::fixture::command(&fixture.repo, &["rebase", "topic"])
                .output()
                .unwrap();
            assert!(!rebase.status.success());
        }),
        ("packed", |fixture| drop(fixture.git(&["gc", "-q"]))),
        ("worktree config", |fixture| {
            drop(fixture.git(&["config", "extensions.worktreeConfig", "true"]));
        }),
        ("a worktree of the user's that is gone", |fixture| {
            fixture.git(&["worktree", "add", "-q", "--detach", "../gone"]);
            std::fs::remove_dir_all(fixture.home.join("gone")).unwrap();
        }),
    ];
    for (name, prepare) in cases {
        let fixture = TestRepo::new(&[("a", "1\n"), ("b", "1\n")]);
        prepare(&fixture);
        let (kept, user) = (fixture.kept(), fixture.tree());
        let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
        assert_eq!(opened.notes, Vec::<String>::new(), "{name}");
        assert_eq!(tree(&opened.folder), user, "{name}");
        write(&opened.folder.join("b"), "2\n");
        let merged = fixture.merge("a");
        assert_eq!((merged.changed, merged.notes), (1, Vec::new()), "{name}");
        assert_eq!(fixture.read("b"), "2\n", "{name}");
        assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 1, "{name}");
        assert_eq!(fixture.tree(), user, "{name}");
        assert!(
            !fixture
                .repo
                .join(".git/worktrees")
                .join(fixture.workspaces.path(RUN, "a").file_name().unwrap())
                .exists()
        );
        assert_eq!(fixture.kept(), kept, "{name}");
    }
}

#[test]
fn sha256_and_shallow_repositories_will_do() {
    let origin = TestRepo::new(&[("a", "1\n")]);
    origin.write("a", "2\n");
    origin.commit();
    for arguments in [&["clone", "-q", "--depth=1"][..], &["init", "-q", "--object-format=sha256"]]
    {
        let fixture = TestRepo::bare();
        let mut words = arguments.to_vec();
        let from = format!("file://{}", origin.repo.display());
        if words[0] == "clone" {
            words.push(&from);
        }
        words.push(".");
        fixture.git(&words);
        fixture.write("b", "1\n2\n3\n4\n5\n");
        fixture.commit();
        let folder = fixture.open("a");
        write(&folder.join("b"), "one\n2\n3\n4\n5\n");
        fixture.write("b", "1\n2\n3\n4\nfive\n");
        assert_eq!(fixture.merge("a").changed, 1);
        assert_eq!(fixture.read("b"), "one\n2\n3\n4\nfive\n");
    }
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let fixture = TestRepo::new(&[("in/a", "1"), ("out/b", "1"), ("top", "1")]);
    fixture.git(&["sparse-checkout", "set", "in"]);
    let kept = fixture.kept();
    let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        ["the checkout is sparse, as in the repository; omitted tracked files: 1"]
    );
    assert!(!opened.folder.join("out").exists());
    assert_eq!(git(&opened.folder, &["status", "--porcelain"]), "");
    write(&opened.folder.join("in/a"), "2");
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(fixture.kept(), kept);
    assert!(!fixture.repo.join("out").exists());
}

#[test]
fn submodules_come_with_their_files() {
    let inner = TestRepo::new(&[("lib.rs", "1\n"), (".gitignore", "*.o\n")]);
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let from = inner.repo.to_str().unwrap();
    fixture.git(&["submodule", "--quiet", "add", from, "vendor/inner"]);
    fixture.git(&["submodule", "--quiet", "add", from, "vendor/empty"]);
    fixture.commit();
    fixture.git(&["submodule", "--quiet", "deinit", "-f", "vendor/empty"]);
    fixture.write("vendor/inner/lib.rs", "dirty\n");
    fixture.write("vendor/inner/x.o", "ignored\n");
    // A repository that is no submodule.
    fixture.write("own/file", "1\n");
    git(&fixture.repo.join("own"), &["init", "-q"]);
    let kept = fixture.kept();
    let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        ["own is a separate repository: its files are included, its history is not"]
    );
    assert_eq!(
        std::fs::read_to_string(opened.folder.join("vendor/inner/lib.rs")).unwrap(),
        "dirty\n"
    );
    assert!(!opened.folder.join("vendor/inner/x.o").exists());
    write(&opened.folder.join("vendor/inner/lib.rs"), "worked\n");
    write(&opened.folder.join("own/file"), "2\n");
    let merged = fixture.merge("a");
    assert_eq!((merged.changed, merged.conflicts), (2, Vec::new()));
    assert_eq!(fixture.read("vendor/inner/lib.rs"), "worked\n");
    assert_eq!(fixture.read("own/file"), "2\n");
    assert!(
        fixture.repo.join("own/.git").is_dir() && fixture.repo.join("vendor/inner/.git").exists()
    );
    assert_eq!(fixture.kept(), kept);
}

#[test]
fn without_a_commit_it_is_a_copy_with_a_repository_of_its_own() {
    let fixture = TestRepo::unborn();
    fixture.write("a", "1\n");
    fixture.write("x.log", "1\n");
    fixture.write(".gitignore", "*.log\n");
    fixture.git(&["add", "a"]);
    let kept = fixture.kept();
    let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        [
            "the repository has no commit yet: this is a plain copy of its files, in a new repository"
        ]
    );
    assert!(!opened.folder.join("x.log").exists());
    // Whatever git does there does not reach the user's index.
    git(&opened.folder, &["add", "-A"]);
    git(&opened.folder, &["commit", "-q", "-m", "agent's"]);
    write(&opened.folder.join("a"), "2\n");
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(fixture.read("a"), "2\n");
    assert_eq!(fixture.kept(), kept);
}

#[test]
fn outside_git_it_is_a_copy() {
    let fixture = TestRepo::bare();
    fixture.write("a", "1\n2\n3\n4\n5\n");
    fixture.write("skip/.gitignore", "*\n");
    fixture.write("skip/b", "1\n");
    fixture.write(".hidden", "1\n");
    let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, ["the folder is not in a git repository: this is a plain copy of it"]);
    assert_eq!(
        tree(&opened.folder).into_keys().collect::<Vec<_>>(),
        [PathBuf::from(".hidden"), "a".into()]
    );
    write(&opened.folder.join("a"), "one\n2\n3\n4\n5\n");
    fixture.write("a", "1\n2\n3\n4\nfive\n");
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(fixture.read("a"), "one\n2\n3\n4\nfive\n");
    let opened = fixture.open("b");
    std::fs::remove_file(opened.join("a")).unwrap();
    let patch = std::fs::read_to_string(
        fixture.repo.join(fixture.workspaces.discard(RUN, "b").unwrap().unwrap()),
    )
    .unwrap();
    assert!(patch.contains("deleted file mode"), "{patch}");
}

#[test]
fn a_bare_repository_is_a_folder_like_others() {
    let fixture = TestRepo::bare();
    fixture.git(&["init", "-q", "--bare"]);
    let workspaces = Workspaces::new(&fixture.home.join("state"), &fixture.repo);
    let opened = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        ["the repository has no work tree here: this is a plain copy of the folder"]
    );
    assert_eq!(workspaces.merge_back(RUN, "a").unwrap().changed, 0);
}

#[test]
fn a_state_folder_that_cannot_be_written_is_named() {
    let fixture = TestRepo::new(&[("a", "1"), ("file", "1")]);
    // Also for root, who may write anywhere.
    let workspaces = Workspaces::new(&fixture.repo.join("file/state"), &fixture.repo);
    let error = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("file/state")), "{error}");
    fixture.write(".counterfoil/worktrees", "in the way");
    let kept = fixture.kept();
    let error = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap_err().to_string();
    assert!(error.contains(".counterfoil/worktrees"), "{error}");
    assert_eq!(fixture.kept(), kept);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let fixture = TestRepo::bare();
    let workspaces = Workspaces::new(&fixture.state, &fixture.home.join("none"));
    let error = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap_err().to_string();
    assert!(error.starts_with("cannot find") && error.contains("/none"), "{error}");
}

#[test]
fn runs_and_items_do_not_meet() {
    let fixture = TestRepo::new(&[("a", "1")]);
    let ids = ["x/y", "x y", "x-y", "..", "", "ä"];
    let mut folders = BTreeSet::new();
    for run in ["r1", "r2"] {
        for id in ids {
            let folder = fixture.workspaces.open(run, id, &BTreeSet::new()).unwrap().folder;
            write(&folder.join(format!("{run}-{}", folders.len())), "x");
            folders.insert(folder);
        }
    }
    assert_eq!(folders.len(), 12);
    let mut changed = 0;
    for run in ["r1", "r2"] {
        for id in ids {
            changed += fixture.workspaces.merge_back(run, id).unwrap().changed;
        }
    }
    assert_eq!(changed, 12);
    assert_eq!(fixture.tree().len(), 13);
    assert!(!fixture.repo.join(".git/worktrees").exists());
}

#[test]
fn a_thousand_files_and_more_come_at_once() {
    let fixture = TestRepo::unborn();
    for n in 0..1_000 {
        write(&fixture.repo.join(format!("f{}/g{n}", n % 50)), format!("{n}\n"));
    }
    fixture.commit();
    let folder = fixture.open("a");
    assert_eq!(tree(&folder), fixture.tree());
    // Nothing that the repository has is kept twice.
    let loose = all_files(&fixture.state.join("bases")).into_iter().filter(|path| {
        path.components().any(|part| part.as_os_str() == "objects") && !path.ends_with("alternates")
    });
    assert_eq!(loose.count(), 0);
}

#[test]
fn without_git_it_is_a_copy_and_what_is_kept_are_files() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workspaces::opening::in_a_world_without_git", "--ignored"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && stdout.contains("1 passed"), "{stdout}");
}

#[test]
#[ignore = "run by the test above, where there is no git"]
fn in_a_world_without_git() {
    if std::env::var_os("PATH").is_some_and(|path| path != "/nonexistent") {
        return;
    }
    let fixture = TestRepo::bare();
    fixture.write("a", "1\n2\n3\n4\n5\n");
    fixture.write("b", "1\n");
    fixture.write("c", "1\n");
    let opened = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert!(opened.notes[0].starts_with("git is not installed"), "{:?}", opened.notes);
    write(&opened.folder.join("b"), "2\n");
    std::fs::remove_file(opened.folder.join("c")).unwrap();
    assert_eq!(fixture.merge("a").changed, 2);
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 2);
    let folder = fixture.open("b");
    write(&folder.join("a"), "one\n2\n3\n4\n5\n");
    std::fs::remove_file(folder.join("c")).unwrap();
    fixture.write("a", "1\n2\n3\n4\nfive\n");
    let merged = fixture.merge("b");
    assert_eq!(
        merged.notes,
        ["a was changed in both places, and git is not available to merge it"]
    );
    let kept = fixture.repo.join(merged.kept.unwrap());
    assert_eq!(std::fs::read_to_string(kept.join("files/a")).unwrap(), "one\n2\n3\n4\n5\n");
    assert_eq!(std::fs::read_to_string(kept.join("deleted")).unwrap(), "c\n");
}

#[test]
fn any_name_of_a_repository_will_do() {
    let fixture = TestRepo::bare();
    let repo = fixture.home.join(OsStr::from_bytes(b"a \"quoted\": name\nof \xff bytes"));
    write(&repo.join("ten"), "1\n2\n3\n4\n5\n");
    git(&repo, &["init", "-q"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "x"]);
    let workspaces = Workspaces::new(&repo.join(".counterfoil"), &repo);
    let opened = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, Vec::<String>::new());
    write(&opened.folder.join("ten"), "one\n2\n3\n4\n5\n");
    write(&repo.join("ten"), "1\n2\n3\n4\nfive\n");
    assert_eq!(workspaces.merge_back(RUN, "a").unwrap().changed, 1);
    assert_eq!(std::fs::read_to_string(repo.join("ten")).unwrap(), "one\n2\n3\n4\nfive\n");
    assert!(!repo.join(".git/worktrees").exists());
}

#[test]
fn a_worktree_of_the_users_has_workspaces_too() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    fixture.git(&["worktree", "add", "-q", "-b", "topic", "../linked"]);
    let linked = fixture.home.join("linked");
    write(&linked.join("b"), "1\n");
    let kept = fixture.kept();
    let workspaces = Workspaces::new(&linked.join(".counterfoil"), &linked);
    let folder = workspaces.open(RUN, "a", &BTreeSet::new()).unwrap().folder;
    assert_eq!(
        tree(&folder),
        tree(&linked).into_iter().filter(|(path, _)| path != Path::new(".git")).collect()
    );
    write(&folder.join("b"), "2\n");
    assert_eq!(workspaces.merge_back(RUN, "a").unwrap().changed, 1);
    assert_eq!(std::fs::read_to_string(linked.join("b")).unwrap(), "2\n");
    assert_eq!(fixture.kept(), kept);
}

#[test]
fn a_folder_outside_git_that_is_too_large_is_refused() {
    let fixture = TestRepo::bare();
    fixture.write("small", "1");
    std::fs::File::create(fixture.repo.join("large")).unwrap().set_len(5 << 30).unwrap();
    let error = fixture.workspaces.open(RUN, "a", &BTreeSet::new()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }));
    assert!(error.to_string().contains("has more than 4096 MiB"), "{error}");
    fixture.assert_gone("a");
}
