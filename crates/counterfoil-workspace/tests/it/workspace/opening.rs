//! A workspace stands exactly as the user's work tree does.

use crate::workspace::scene::{RUN, Scene, all_files, git, set_mode, tree, write};
use counterfoil_workspace::workspace::{Error, Workspaces};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

fn dirty() -> Scene {
    let scene = Scene::new(&[
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
    write(&scene.repo.join("tracked.log"), "tracked, and ignored\n");
    scene.git(&["add", "-f", "tracked.log"]);
    scene.git(&["commit", "-q", "-m", "y"]);
    scene.write("edited.txt", "new\n");
    scene.remove("deleted.txt");
    set_mode(&scene.repo.join("mode.sh"), 0o755);
    scene.write("staged.txt", "staged\n");
    scene.git(&["add", "staged.txt"]);
    scene.write("staged.txt", "and edited\n");
    scene.write("new folder/ünï \"quoted\".txt", "new\n");
    scene.write("ignored.log", "ignored\n");
    scene.write("build/out", "ignored\n");
    scene.remove("was-file");
    scene.write("was-file/inside", "y\n");
    std::fs::remove_dir_all(scene.repo.join("was-folder")).unwrap();
    std::os::unix::fs::symlink("folder", scene.repo.join("was-folder")).unwrap();
    std::os::unix::fs::symlink("/nowhere", scene.repo.join("dangling")).unwrap();
    scene
}

#[test]
fn it_looks_as_the_users_does() {
    let scene = dirty();
    write(&scene.repo.join(OsStr::from_bytes(b"not\xffutf8\nand a newline")), "bytes\n");
    let (before, user) = (scene.kept(), scene.tree());
    let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, Vec::<String>::new());
    assert_eq!(opened.folder, scene.spaces.folder(RUN, "a"));
    let mut expected = user.clone();
    expected.remove(Path::new("ignored.log"));
    expected.remove(Path::new("build/out"));
    assert_eq!(tree(&opened.folder), expected);
    assert_eq!(scene.tree(), user);

    // The same status, but that nothing is staged.
    let status = git(&opened.folder, &["status", "--porcelain"]);
    let of_user = scene
        .git(&["status", "--porcelain"])
        .replace("AM staged.txt\n", "")
        .replace("?? .counterfoil/\n", "");
    assert_eq!(status.replace("?? staged.txt\n", ""), of_user);

    // Our entry apart, git has nothing new: not even an object.
    let mut during = scene.kept();
    for ours in ["worktrees", "entries"] {
        during.insert(ours.to_owned(), before[ours].clone());
    }
    assert_eq!(during, before);
    assert_eq!(scene.spaces.discard(RUN, "a").unwrap(), None);
    assert_eq!(scene.kept(), before);
    scene.assert_gone("a");
}

#[test]
fn opening_again_changes_nothing() {
    let scene = dirty();
    let folder = scene.open("a");
    write(&folder.join("work"), "x");
    scene.write("later", "x");
    assert_eq!(scene.open("a"), folder);
    assert!(folder.join("work").exists());
    assert!(!folder.join("later").exists());
}

#[test]
fn what_is_ours_stays_out() {
    let scene = Scene::new(&[("a", "1")]);
    scene.write("report.md", "ours");
    scene.write("out/x/y", "ours");
    scene.write("outer", "theirs");
    let without = BTreeSet::from([scene.repo.join("report.md"), PathBuf::from("out/x")]);
    let folder = scene.spaces.open(RUN, "a", &without).unwrap().folder;
    assert_eq!(tree(&folder).into_keys().collect::<Vec<_>>(), [PathBuf::from("a"), "outer".into()]);
    write(&folder.join("report.md"), "an agent's");
    write(&folder.join("out/x/z"), "an agent's");
    assert_eq!(scene.fold("a").changed, 0);
    assert_eq!(scene.read("report.md"), "ours");
}

#[test]
fn bytes_are_the_users_whatever_filters_say() {
    let scene =
        Scene::new(&[("a.txt", "one\r\ntwo\r\n"), ("b.up", "lower\n"), ("c.txt", "$Id$\n")]);
    scene.git(&["config", "core.autocrlf", "true"]);
    // A filter that would be noticed if anything of ours ran it.
    let ran = scene.home.join("ran");
    let filter = format!("touch '{}'; tr a-z A-Z", ran.display());
    scene.git(&["config", "filter.up.smudge", &filter]);
    scene.git(&["config", "filter.up.clean", &filter]);
    scene.write(
        ".gitattributes",
        "*.up filter=up\n*.txt text ident\nd.txt working-tree-encoding=UTF-16\n",
    );
    scene.write("d.txt", "not UTF-16 at all");
    let user = scene.tree();
    let folder = scene.open("a");
    assert_eq!(tree(&folder), user);
    assert_eq!(scene.fold("a").changed, 0);
    let folder = scene.open("b");
    write(&folder.join("a.txt"), "one\r\nTWO\r\n");
    scene.write("b.up", "changed\n");
    assert_eq!(scene.fold("b").changed, 1);
    assert_eq!(scene.read("a.txt"), "one\r\nTWO\r\n");
    assert_eq!(scene.read("b.up"), "changed\n");
    assert!(!ran.exists(), "a filter was run");
}

#[test]
fn hooks_and_monitors_do_not_run() {
    let scene = Scene::new(&[("a", "1")]);
    let ran = scene.home.join("ran");
    let hook = format!("#!/bin/sh\ntouch '{}'\n", ran.display());
    for name in ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor"] {
        let path = scene.repo.join(".git/hooks").join(name);
        write(&path, &hook);
        set_mode(&path, 0o755);
    }
    scene.git(&[
        "config",
        "core.fsmonitor",
        scene.repo.join(".git/hooks/fsmonitor").to_str().unwrap(),
    ]);
    let folder = scene.open("a");
    write(&folder.join("a"), "2");
    assert_eq!(scene.fold("a").changed, 1);
    assert!(!ran.exists());
}

#[test]
fn in_a_subfolder_agents_get_that() {
    let scene = Scene::new(&[("top", "1"), ("sub/in/a", "1")]);
    let spaces = Workspaces::new(&scene.state, &scene.repo.join("sub/in"));
    assert_eq!(spaces.folder(RUN, "a"), spaces.path(RUN, "a").join("sub/in"));
    let folder = spaces.open(RUN, "a", &BTreeSet::new()).unwrap().folder;
    assert_eq!(folder, spaces.path(RUN, "a").join("sub/in"));
    write(&folder.join("a"), "2");
    write(&folder.join("../../top"), "2");
    scene.write("top", "3");
    let folded = spaces.fold(RUN, "a").unwrap();
    assert_eq!(folded.conflicts, ["../../top"]);
    assert_eq!(scene.read("sub/in/a"), "1");
}

#[test]
fn a_folder_that_the_repository_ignores_is_copied() {
    let scene = Scene::new(&[(".gitignore", "play/\n"), ("top", "1")]);
    scene.write("play/a", "1");
    let spaces = Workspaces::new(&scene.home.join("state"), &scene.repo.join("play"));
    let opened = spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, ["the repository ignores the folder: this is a plain copy of it"]);
    write(&opened.folder.join("a"), "2");
    assert_eq!(spaces.fold(RUN, "a").unwrap().changed, 1);
    assert_eq!(scene.read("play/a"), "2");
}

/// Each kind of repository that git can be in, worked in and folded, with nothing of it changed.
#[test]
fn any_state_of_a_repository_will_do() {
    type Prepare = fn(&Scene);
    let cases: [(&str, Prepare); 8] = [
        ("branch", |scene| drop(scene.git(&["checkout", "-q", "-b", "topic"]))),
        ("detached", |scene| drop(scene.git(&["checkout", "-q", "--detach"]))),
        ("locked index", |scene| scene.write(".git/index.lock", "")),
        ("stash", |scene| {
            scene.write("a", "stashed\n");
            scene.git(&["stash", "-q"]);
        }),
        ("rebase", |scene| {
            scene.git(&["checkout", "-q", "-b", "topic"]);
            scene.write("a", "topic\n");
            scene.commit();
            scene.git(&["checkout", "-q", "main"]);
            scene.write("a", "main\n");
            scene.commit();
            let rebase = crate::workspace::scene::command(&scene.repo, &["rebase", "topic"])
                .output()
                .unwrap();
            assert!(!rebase.status.success());
        }),
        ("packed", |scene| drop(scene.git(&["gc", "-q"]))),
        ("worktree config", |scene| {
            drop(scene.git(&["config", "extensions.worktreeConfig", "true"]))
        }),
        ("a worktree of the user's that is gone", |scene| {
            scene.git(&["worktree", "add", "-q", "--detach", "../gone"]);
            std::fs::remove_dir_all(scene.home.join("gone")).unwrap();
        }),
    ];
    for (name, prepare) in cases {
        let scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
        prepare(&scene);
        let (kept, user) = (scene.kept(), scene.tree());
        let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
        assert_eq!(opened.notes, Vec::<String>::new(), "{name}");
        assert_eq!(tree(&opened.folder), user, "{name}");
        write(&opened.folder.join("b"), "2\n");
        let folded = scene.fold("a");
        assert_eq!((folded.changed, folded.notes), (1, Vec::new()), "{name}");
        assert_eq!(scene.read("b"), "2\n", "{name}");
        assert_eq!(scene.spaces.undo(RUN, None).unwrap().restored, 1, "{name}");
        assert_eq!(scene.tree(), user, "{name}");
        assert!(
            !scene
                .repo
                .join(".git/worktrees")
                .join(scene.spaces.path(RUN, "a").file_name().unwrap())
                .exists()
        );
        assert_eq!(scene.kept(), kept, "{name}");
    }
}

#[test]
fn sha256_and_shallow_repositories_will_do() {
    let origin = Scene::new(&[("a", "1\n")]);
    origin.write("a", "2\n");
    origin.commit();
    for arguments in [&["clone", "-q", "--depth=1"][..], &["init", "-q", "--object-format=sha256"]]
    {
        let scene = Scene::bare();
        let mut words = arguments.to_vec();
        let from = format!("file://{}", origin.repo.display());
        if words[0] == "clone" {
            words.push(&from);
        }
        words.push(".");
        scene.git(&words);
        scene.write("b", "1\n2\n3\n4\n5\n");
        scene.commit();
        let folder = scene.open("a");
        write(&folder.join("b"), "one\n2\n3\n4\n5\n");
        scene.write("b", "1\n2\n3\n4\nfive\n");
        assert_eq!(scene.fold("a").changed, 1);
        assert_eq!(scene.read("b"), "one\n2\n3\n4\nfive\n");
    }
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let scene = Scene::new(&[("in/a", "1"), ("out/b", "1"), ("top", "1")]);
    scene.git(&["sparse-checkout", "set", "in"]);
    let kept = scene.kept();
    let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        ["the checkout is sparse, here as in the repository; tracked files that are not there: 1"]
    );
    assert!(!opened.folder.join("out").exists());
    assert_eq!(git(&opened.folder, &["status", "--porcelain"]), "");
    write(&opened.folder.join("in/a"), "2");
    assert_eq!(scene.fold("a").changed, 1);
    assert_eq!(scene.kept(), kept);
    assert!(!scene.repo.join("out").exists());
}

#[test]
fn submodules_come_with_their_files() {
    let inner = Scene::new(&[("lib.rs", "1\n"), (".gitignore", "*.o\n")]);
    let scene = Scene::new(&[("a", "1\n")]);
    let from = inner.repo.to_str().unwrap();
    scene.git(&["submodule", "--quiet", "add", from, "vendor/inner"]);
    scene.git(&["submodule", "--quiet", "add", from, "vendor/empty"]);
    scene.commit();
    scene.git(&["submodule", "--quiet", "deinit", "-f", "vendor/empty"]);
    scene.write("vendor/inner/lib.rs", "dirty\n");
    scene.write("vendor/inner/x.o", "ignored\n");
    // A repository that is no submodule.
    scene.write("own/file", "1\n");
    git(&scene.repo.join("own"), &["init", "-q"]);
    let kept = scene.kept();
    let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        ["own is a repository of its own: its files are here, its history is not"]
    );
    assert_eq!(
        std::fs::read_to_string(opened.folder.join("vendor/inner/lib.rs")).unwrap(),
        "dirty\n"
    );
    assert!(!opened.folder.join("vendor/inner/x.o").exists());
    write(&opened.folder.join("vendor/inner/lib.rs"), "worked\n");
    write(&opened.folder.join("own/file"), "2\n");
    let folded = scene.fold("a");
    assert_eq!((folded.changed, folded.conflicts), (2, Vec::new()));
    assert_eq!(scene.read("vendor/inner/lib.rs"), "worked\n");
    assert_eq!(scene.read("own/file"), "2\n");
    assert!(scene.repo.join("own/.git").is_dir() && scene.repo.join("vendor/inner/.git").exists());
    assert_eq!(scene.kept(), kept);
}

#[test]
fn without_a_commit_it_is_a_copy_with_a_repository_of_its_own() {
    let scene = Scene::unborn();
    scene.write("a", "1\n");
    scene.write("x.log", "1\n");
    scene.write(".gitignore", "*.log\n");
    scene.git(&["add", "a"]);
    let kept = scene.kept();
    let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        [
            "the repository has no commit yet: this is a plain copy of its files, in a repository of its own"
        ]
    );
    assert!(!opened.folder.join("x.log").exists());
    // Whatever git does there does not reach the user's index.
    git(&opened.folder, &["add", "-A"]);
    git(&opened.folder, &["commit", "-q", "-m", "agent's"]);
    write(&opened.folder.join("a"), "2\n");
    assert_eq!(scene.fold("a").changed, 1);
    assert_eq!(scene.read("a"), "2\n");
    assert_eq!(scene.kept(), kept);
}

#[test]
fn outside_git_it_is_a_copy() {
    let scene = Scene::bare();
    scene.write("a", "1\n2\n3\n4\n5\n");
    scene.write("skip/.gitignore", "*\n");
    scene.write("skip/b", "1\n");
    scene.write(".hidden", "1\n");
    let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, ["the folder is in no git repository: this is a plain copy of it"]);
    assert_eq!(
        tree(&opened.folder).into_keys().collect::<Vec<_>>(),
        [PathBuf::from(".hidden"), "a".into()]
    );
    write(&opened.folder.join("a"), "one\n2\n3\n4\n5\n");
    scene.write("a", "1\n2\n3\n4\nfive\n");
    assert_eq!(scene.fold("a").changed, 1);
    assert_eq!(scene.read("a"), "one\n2\n3\n4\nfive\n");
    let opened = scene.open("b");
    std::fs::remove_file(opened.join("a")).unwrap();
    let patch =
        std::fs::read_to_string(scene.repo.join(scene.spaces.discard(RUN, "b").unwrap().unwrap()))
            .unwrap();
    assert!(patch.contains("deleted file mode"), "{patch}");
}

#[test]
fn a_bare_repository_is_a_folder_like_others() {
    let scene = Scene::bare();
    scene.git(&["init", "-q", "--bare"]);
    let spaces = Workspaces::new(&scene.home.join("state"), &scene.repo);
    let opened = spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(
        opened.notes,
        ["the repository has no work tree here: this is a plain copy of the folder"]
    );
    assert_eq!(spaces.fold(RUN, "a").unwrap().changed, 0);
}

#[test]
fn a_state_folder_that_cannot_be_written_is_named() {
    let scene = Scene::new(&[("a", "1"), ("file", "1")]);
    // Also for root, who may write anywhere.
    let spaces = Workspaces::new(&scene.repo.join("file/state"), &scene.repo);
    let error = spaces.open(RUN, "a", &BTreeSet::new()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("file/state")), "{error}");
    scene.write(".counterfoil/worktrees", "in the way");
    let kept = scene.kept();
    let error = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap_err().to_string();
    assert!(error.contains(".counterfoil/worktrees"), "{error}");
    assert_eq!(scene.kept(), kept);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let scene = Scene::bare();
    let spaces = Workspaces::new(&scene.state, &scene.home.join("none"));
    let error = spaces.open(RUN, "a", &BTreeSet::new()).unwrap_err().to_string();
    assert!(error.starts_with("cannot find") && error.contains("/none"), "{error}");
}

#[test]
fn runs_and_items_do_not_meet() {
    let scene = Scene::new(&[("a", "1")]);
    let ids = ["x/y", "x y", "x-y", "..", "", "ä"];
    let mut folders = BTreeSet::new();
    for run in ["r1", "r2"] {
        for id in ids {
            let folder = scene.spaces.open(run, id, &BTreeSet::new()).unwrap().folder;
            write(&folder.join(format!("{run}-{}", folders.len())), "x");
            folders.insert(folder);
        }
    }
    assert_eq!(folders.len(), 12);
    let mut changed = 0;
    for run in ["r1", "r2"] {
        for id in ids {
            changed += scene.spaces.fold(run, id).unwrap().changed;
        }
    }
    assert_eq!(changed, 12);
    assert_eq!(scene.tree().len(), 13);
    assert!(!scene.repo.join(".git/worktrees").exists());
}

#[test]
fn a_thousand_files_and_more_come_at_once() {
    let scene = Scene::unborn();
    for n in 0..1_000 {
        write(&scene.repo.join(format!("f{}/g{n}", n % 50)), format!("{n}\n"));
    }
    scene.commit();
    let folder = scene.open("a");
    assert_eq!(tree(&folder), scene.tree());
    // Nothing that the repository has is kept twice.
    let loose = all_files(&scene.state.join("bases")).into_iter().filter(|path| {
        path.components().any(|part| part.as_os_str() == "objects") && !path.ends_with("alternates")
    });
    assert_eq!(loose.count(), 0);
}

#[test]
fn without_git_it_is_a_copy_and_what_is_kept_are_files() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "opening::in_a_world_without_git", "--ignored"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

#[test]
#[ignore = "run by the test above, where there is no git"]
fn in_a_world_without_git() {
    if std::env::var_os("PATH").is_some_and(|path| path != "/nonexistent") {
        return;
    }
    let scene = Scene::bare();
    scene.write("a", "1\n2\n3\n4\n5\n");
    scene.write("b", "1\n");
    scene.write("c", "1\n");
    let opened = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert!(opened.notes[0].starts_with("git is not installed"), "{:?}", opened.notes);
    write(&opened.folder.join("b"), "2\n");
    std::fs::remove_file(opened.folder.join("c")).unwrap();
    assert_eq!(scene.fold("a").changed, 2);
    assert_eq!(scene.spaces.undo(RUN, None).unwrap().restored, 2);
    let folder = scene.open("b");
    write(&folder.join("a"), "one\n2\n3\n4\n5\n");
    std::fs::remove_file(folder.join("c")).unwrap();
    scene.write("a", "1\n2\n3\n4\nfive\n");
    let folded = scene.fold("b");
    assert_eq!(folded.notes, ["a was changed in both places, and there is no git to merge with"]);
    let kept = scene.repo.join(folded.kept.unwrap());
    assert_eq!(std::fs::read_to_string(kept.join("files/a")).unwrap(), "one\n2\n3\n4\n5\n");
    assert_eq!(std::fs::read_to_string(kept.join("deleted")).unwrap(), "c\n");
}

#[test]
fn any_name_of_a_repository_will_do() {
    let scene = Scene::bare();
    let repo = scene.home.join(OsStr::from_bytes(b"a \"quoted\": name\nof \xff bytes"));
    write(&repo.join("ten"), "1\n2\n3\n4\n5\n");
    git(&repo, &["init", "-q"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "x"]);
    let spaces = Workspaces::new(&repo.join(".counterfoil"), &repo);
    let opened = spaces.open(RUN, "a", &BTreeSet::new()).unwrap();
    assert_eq!(opened.notes, Vec::<String>::new());
    write(&opened.folder.join("ten"), "one\n2\n3\n4\n5\n");
    write(&repo.join("ten"), "1\n2\n3\n4\nfive\n");
    assert_eq!(spaces.fold(RUN, "a").unwrap().changed, 1);
    assert_eq!(std::fs::read_to_string(repo.join("ten")).unwrap(), "one\n2\n3\n4\nfive\n");
    assert!(!repo.join(".git/worktrees").exists());
}

#[test]
fn a_worktree_of_the_users_has_workspaces_too() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["worktree", "add", "-q", "-b", "topic", "../linked"]);
    let linked = scene.home.join("linked");
    write(&linked.join("b"), "1\n");
    let kept = scene.kept();
    let spaces = Workspaces::new(&linked.join(".counterfoil"), &linked);
    let folder = spaces.open(RUN, "a", &BTreeSet::new()).unwrap().folder;
    assert_eq!(
        tree(&folder),
        tree(&linked).into_iter().filter(|(path, _)| path != Path::new(".git")).collect()
    );
    write(&folder.join("b"), "2\n");
    assert_eq!(spaces.fold(RUN, "a").unwrap().changed, 1);
    assert_eq!(std::fs::read_to_string(linked.join("b")).unwrap(), "2\n");
    assert_eq!(scene.kept(), kept);
}

#[test]
fn a_folder_outside_git_that_is_too_large_is_refused() {
    let scene = Scene::bare();
    scene.write("small", "1");
    std::fs::File::create(scene.repo.join("large")).unwrap().set_len(5 << 30).unwrap();
    let error = scene.spaces.open(RUN, "a", &BTreeSet::new()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }));
    assert!(error.to_string().contains("has more than 4096 MiB"), "{error}");
    scene.assert_gone("a");
}
