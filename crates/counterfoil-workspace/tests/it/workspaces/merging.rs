//! How work comes back: three looks at each path, and all of it or nothing.

use crate::workspaces::fixture::{RUN, TestRepo, command, git, set_mode, tree, write};
use counterfoil_workspace::workspaces::{Error, Workspaces};
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn every_kind_of_change_comes_back() {
    let fixture = TestRepo::new(&[
        ("edited", "1\n"),
        ("deleted/only", "1\n"),
        ("old name", "moved\n"),
        ("mode", "1\n"),
        ("to-link", "1\n"),
        ("to-folder", "1\n"),
        ("to-file/a/b", "1\n"),
        ("to-file/c", "1\n"),
    ]);
    symlink("edited", fixture.repo.join("link")).unwrap();
    symlink("deleted", fixture.repo.join("to-real")).unwrap();
    fixture.commit();
    set_mode(&fixture.repo.join("edited"), 0o640);
    let folder = fixture.open("a");
    write(&folder.join("edited"), "2\n");
    std::fs::remove_file(folder.join("deleted/only")).unwrap();
    std::fs::create_dir(folder.join("new")).unwrap();
    std::fs::rename(folder.join("old name"), folder.join("new/näme\n")).unwrap();
    set_mode(&folder.join("mode"), 0o755);
    std::fs::remove_file(folder.join("to-link")).unwrap();
    symlink("mode", folder.join("to-link")).unwrap();
    std::fs::remove_file(folder.join("to-folder")).unwrap();
    write(&folder.join("to-folder/x"), "2\n");
    std::fs::remove_dir_all(folder.join("to-file")).unwrap();
    write(&folder.join("to-file"), "2\n");
    std::fs::remove_file(folder.join("link")).unwrap();
    symlink("/nowhere/at/all", folder.join("link")).unwrap();
    std::fs::remove_file(folder.join("to-real")).unwrap();
    write(&folder.join("to-real/x"), "2\n");
    let mut expected = tree(&folder);
    // Who else may read a file is the user's business.
    expected.get_mut(Path::new("edited")).unwrap().0 = 0o100_640;
    expected.retain(|path, _| !path.starts_with("deleted"));
    let before = fixture.tree();

    let merged = fixture.merge("a");
    assert_eq!((merged.conflicts, merged.kept, merged.notes), (vec![], None, vec![]));
    assert_eq!(merged.changed, 14);
    assert_eq!(fixture.tree(), expected);
    assert!(
        !fixture.repo.join("deleted").exists(),
        "a folder goes with its last file, as with git"
    );
    fixture.assert_gone("a");
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 14);
    assert_eq!(fixture.tree(), before);
}

#[test]
fn what_git_did_in_the_workspace_does_not_matter() {
    let fixture = TestRepo::new(&[("a", "1\n"), ("b", "1\n")]);
    let user = fixture.kept();
    let folder = fixture.open("a");
    write(&folder.join("a"), "2\n");
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-q", "-m", "agent's"]);
    write(&folder.join("b"), "2\n");
    git(&folder, &["add", "b"]);
    std::fs::remove_file(folder.join(".git")).unwrap();
    write(&folder.join(".git"), "gitdir: /nowhere\n");
    let merged = fixture.merge("a");
    assert_eq!(merged.changed, 2);
    assert_eq!(merged.notes.len(), 1);
    assert!(
        merged.notes[0]
            .ends_with("was committed in the workspace; its files are merged, the commit is not"),
        "{:?}",
        merged.notes
    );
    assert_eq!((fixture.read("a"), fixture.read("b")), ("2\n".to_owned(), "2\n".to_owned()));
    let now = fixture.kept();
    for name in ["index", "HEAD", "refs", "config", "worktrees", "entries", "logs/HEAD"] {
        assert_eq!(now[name], user[name], "{name}");
    }
}

#[test]
fn ignored_files_stay_behind() {
    let fixture = TestRepo::new(&[(".gitignore", "*.log\n"), ("a", "1\n")]);
    fixture.write(".git/info/exclude", "secret\n");
    let folder = fixture.open("a");
    write(&folder.join("x.log"), "1");
    write(&folder.join("secret"), "1");
    write(&folder.join("target/.gitignore"), "*\n");
    write(&folder.join("target/out"), "1");
    assert_eq!(fixture.merge("a").changed, 0);
    assert_eq!(fixture.tree().len(), 2);
}

#[test]
fn a_repository_made_inside_gives_its_files() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let folder = fixture.open("a");
    write(&folder.join("lib/x"), "1\n");
    git(&folder.join("lib"), &["init", "-q"]);
    // Settings of the agent's are not read.
    let ran = fixture.home.join("ran");
    git(&folder.join("lib"), &["config", "core.fsmonitor", &format!("touch {}", ran.display())]);
    let merged = fixture.merge("a");
    insta::assert_debug_snapshot!(merged);
    assert_eq!(fixture.read("lib/x"), "1\n");
    assert!(!fixture.repo.join("lib/.git").exists() && !ran.exists());
}

/// A path at the opening, in the workspace, in the repository; what comes of it. `-` is nothing.
#[test]
fn two_changes_meet() {
    let cases = [
        ("1", "2", "1", Ok("2")),
        ("1", "1", "3", Ok("3")),
        ("1", "2", "2", Ok("2")),
        ("1", "-", "1", Ok("-")),
        ("1", "-", "-", Ok("-")),
        ("-", "1", "1", Ok("1")),
        ("-", "1", "-", Ok("1")),
        ("1", "2", "3", Err("was changed in both places, and the changes overlap")),
        ("1", "-", "3", Err("was deleted in the workspace and changed in the repository")),
        ("1", "2", "-", Err("was changed in the workspace and deleted in the repository")),
        ("-", "1", "2", Err("was added in both places with different content")),
        ("1\0", "2\0", "3\0", Err("was changed in both places, and cannot be merged as text")),
    ];
    let set = |folder: &Path, text: &str| match text {
        "-" => drop(std::fs::remove_file(folder.join("f"))),
        text => write(&folder.join("f"), text),
    };
    for (was, worked, stands, outcome) in cases {
        let fixture = TestRepo::new(&[("other", "1")]);
        set(&fixture.repo, was);
        let folder = fixture.open("a");
        set(&folder, worked);
        write(&folder.join("other"), "2");
        set(&fixture.repo, stands);
        let before = fixture.tree();
        let merged = fixture.merge("a");
        let case = format!("{was} {worked} {stands}");
        match outcome {
            Ok(text) => {
                assert_eq!(merged.conflicts, Vec::<String>::new(), "{case}");
                assert_eq!(
                    std::fs::read_to_string(fixture.repo.join("f")).unwrap_or("-".to_owned()),
                    text,
                    "{case}"
                );
                assert_eq!(fixture.read("other"), "2", "{case}");
            }
            Err(why) => {
                assert_eq!(merged.conflicts, ["f"], "{case}");
                assert_eq!(merged.notes, [format!("f {why}")], "{case}");
                assert_eq!(merged.changed, 0, "{case}");
                assert_eq!(fixture.tree(), before, "{case}");
                let patch = fixture.repo.join(merged.kept.unwrap());
                assert!(std::fs::read_to_string(patch).unwrap().contains("b/other"), "{case}");
            }
        }
        fixture.assert_gone("a");
    }
}

#[test]
fn changes_apart_are_merged() {
    let fixture = TestRepo::new(&[("ten", TEN)]);
    let folder = fixture.open("a");
    write(&folder.join("ten"), TEN.replace("1\n2", "one\n2"));
    set_mode(&folder.join("ten"), 0o755);
    fixture.write("ten", &TEN.replace("9\n", "nine\n"));
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(fixture.read("ten"), TEN.replace("1\n2", "one\n2").replace("9\n", "nine\n"));
    assert_eq!(tree(&fixture.repo)[Path::new("ten")].0, 0o100_755);
}

#[test]
fn items_merge_one_after_the_other() {
    let fixture = TestRepo::new(&[("ten", TEN), ("both", "1\n")]);
    let (a, b, c) = (fixture.open("a"), fixture.open("b"), fixture.open("c"));
    write(&a.join("ten"), TEN.replace("2\n", "two\n"));
    write(&b.join("ten"), TEN.replace("8\n", "eight\n"));
    write(&c.join("both"), "c\n");
    write(&b.join("both"), "b\n");
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(fixture.merge("b").changed, 2);
    let merged = fixture.merge("c");
    assert_eq!(merged.conflicts, ["both"]);
    assert_eq!(fixture.read("ten"), TEN.replace("2\n", "two\n").replace("8\n", "eight\n"));
    // Asked again, the answer is the same.
    assert_eq!(fixture.merge("c"), merged);
    assert_eq!(fixture.merge("a").changed, 1);
    let records = fixture.workspaces.merge_records(RUN);
    let shown: Vec<_> =
        records.iter().map(|record| (&record.id, record.state, &record.files)).collect();
    insta::assert_debug_snapshot!(shown);
}

#[test]
fn folders_and_links_in_the_way_are_conflicts() {
    type Act = fn(&Path);
    // What the agent does, what the user does.
    let cases: [(&str, Act, Act, &str); 7] = [
        (
            "folder for a new file",
            |folder| write(&folder.join("x"), "1"),
            |repo| write(&repo.join("x/y"), "1"),
            "x",
        ),
        (
            "file for a new folder",
            |folder| write(&folder.join("x/y"), "1"),
            |repo| write(&repo.join("x"), "1"),
            "x/y",
        ),
        (
            "a link that leads out",
            |folder| write(&folder.join("x/y"), "1"),
            |repo| symlink(repo.parent().unwrap(), repo.join("x")).unwrap(),
            "x/y",
        ),
        (
            "a link in place of a folder",
            |folder| write(&folder.join("d/f"), "2"),
            |repo| {
                std::fs::rename(repo.join("d"), repo.parent().unwrap().join("d")).unwrap();
                symlink("../d", repo.join("d")).unwrap();
            },
            "d/f",
        ),
        (
            "a folder that is not empty",
            |folder| {
                std::fs::remove_dir_all(folder.join("d")).unwrap();
                write(&folder.join("d"), "1");
            },
            |repo| write(&repo.join("d/ignored.log"), "1"),
            "d",
        ),
        (
            "an empty folder of the user's",
            |folder| {
                std::fs::remove_dir_all(folder.join("d")).unwrap();
                write(&folder.join("d"), "1");
            },
            |repo| std::fs::create_dir(repo.join("d/empty")).unwrap(),
            "d",
        ),
        (
            "a pipe",
            |folder| write(&folder.join("p"), "1"),
            |repo| {
                let path = repo.join("p");
                assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
            },
            "p",
        ),
    ];
    for (name, agent, user, conflict) in cases {
        let fixture = TestRepo::new(&[("d/f", "1"), (".gitignore", "*.log\n")]);
        let folder = fixture.open("a");
        agent(&folder);
        user(&fixture.repo);
        let (before, around) = (fixture.tree(), tree(&fixture.home));
        let merged = fixture.merge("a");
        assert_eq!(merged.conflicts, [conflict], "{name}");
        assert_eq!(fixture.tree(), before, "{name}");
        let outside = |tree: crate::workspaces::fixture::Tree| {
            tree.into_iter().filter(|(path, _)| !path.starts_with("repo")).collect::<Vec<_>>()
        };
        assert_eq!(outside(tree(&fixture.home)), outside(around), "{name}");
        assert!(merged.kept.is_some(), "{name}");
    }
}

#[test]
fn a_kept_patch_applies_to_what_the_workspace_began_from() {
    let fixture =
        TestRepo::new(&[("text", TEN), ("gone", "1\n"), ("bin", "\0\u{1}"), ("mode", "1\n")]);
    fixture.write("dirty", "uncommitted\n");
    symlink("text", fixture.repo.join("link")).unwrap();
    let folder = fixture.open("a");
    let twin = fixture.home.join("twin");
    let at_opening = fixture.tree();
    for (path, (mode, bytes)) in &at_opening {
        if *mode == 0o120_000 {
            symlink("text", twin.join(path)).unwrap();
        } else {
            write(&twin.join(path), bytes);
        }
    }
    write(&folder.join("text"), TEN.replace("5\n", "five\r\n"));
    std::fs::remove_file(folder.join("gone")).unwrap();
    write(&folder.join("bin"), "\0\u{2}\u{3}");
    set_mode(&folder.join("mode"), 0o755);
    write(&folder.join("dirty"), "worked");
    write(&folder.join("new/\"quoted\" ü\n"), "1\n");
    std::fs::remove_file(folder.join("link")).unwrap();
    symlink("mode", folder.join("link")).unwrap();
    let worked = tree(&folder);
    let kept = fixture.workspaces.discard(RUN, "a").unwrap().unwrap();
    assert_eq!(fixture.tree(), at_opening);
    let patch = fixture.repo.join(&kept);
    assert!(kept.starts_with(".counterfoil/kept/01J/a_"), "{kept}");
    git(&twin, &["init", "-q"]);
    git(&twin, &["apply", patch.to_str().unwrap()]);
    assert_eq!(tree(&twin), worked);
    // And once more gives the same.
    assert_eq!(fixture.workspaces.discard(RUN, "a").unwrap().unwrap(), kept);
    assert!(matches!(fixture.workspaces.merge_back(RUN, "a"), Err(Error::NotOpen { .. })));
    // An id that is used again overwrites nothing.
    let folder = fixture.open("a");
    write(&folder.join("text"), "other");
    let other = fixture.workspaces.discard(RUN, "a").unwrap().unwrap();
    assert_ne!(other, kept);
    assert!(patch.exists());
}

#[test]
fn a_workspace_that_somebody_removed_deletes_nothing() {
    let fixture = TestRepo::new(&[("a", "1")]);
    let folder = fixture.open("a");
    std::fs::remove_dir_all(&folder).unwrap();
    let error = fixture.workspaces.merge_back(RUN, "a").unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert_eq!(fixture.read("a"), "1");
    assert_eq!(fixture.workspaces.discard(RUN, "a").unwrap(), None);
    fixture.assert_gone("a");
}

#[test]
fn nothing_is_merged_that_was_never_opened() {
    let fixture = TestRepo::new(&[("a", "1")]);
    let error = fixture.workspaces.merge_back(RUN, "a").unwrap_err().to_string();
    assert_eq!(error, "there is no open workspace 'a' of run 01J");
    assert!(matches!(fixture.workspaces.discard(RUN, "a"), Err(Error::NotOpen { .. })));
}

#[test]
fn folders_without_the_right_to_write_are_removed_as_well() {
    let fixture = TestRepo::new(&[("a", "1")]);
    let folder = fixture.open("a");
    write(&folder.join("deep/er/file"), "1");
    set_mode(&folder.join("deep/er"), 0o500);
    set_mode(&folder.join("deep"), 0o500);
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(fixture.read("deep/er/file"), "1");
    fixture.assert_gone("a");
}

#[test]
fn a_base_that_was_pruned_is_a_conflict_not_a_guess() {
    let fixture = TestRepo::new(&[("ten", TEN), ("other", "1\n")]);
    let folder = fixture.open("a");
    write(&folder.join("ten"), TEN.replace("2\n", "two\n"));
    fixture.write("ten", &TEN.replace("8\n", "eight\n"));
    let blob = fixture.git(&["rev-parse", "HEAD:ten"]);
    let (folder, name) = blob.trim().split_at(2);
    std::fs::remove_file(fixture.repo.join(".git/objects").join(folder).join(name)).unwrap();
    let merged = fixture.merge("a");
    assert_eq!(merged.conflicts, ["ten"]);
    assert_eq!(fixture.read("ten"), TEN.replace("8\n", "eight\n"));
    // There is no patch against what is gone, but there is the work.
    let kept = fixture.repo.join(merged.kept.unwrap());
    assert_eq!(
        std::fs::read_to_string(kept.join("files/ten")).unwrap(),
        TEN.replace("2\n", "two\n")
    );
    fixture.assert_gone("a");
}

#[test]
fn many_merge_at_once() {
    let fixture = TestRepo::new(&[("ten", TEN)]);
    let ids: Vec<_> = (1..=8).map(|n| format!("item {n}")).collect();
    std::thread::scope(|scope| {
        for (n, id) in ids.iter().enumerate() {
            let fixture = &fixture;
            scope.spawn(move || {
                // As another process would have it.
                let workspaces = Workspaces::new(&fixture.state, &fixture.repo);
                let folder = workspaces.open(RUN, id, &BTreeSet::new()).unwrap().folder;
                write(&folder.join(format!("of-{n}")), "1");
                assert_eq!(workspaces.merge_back(RUN, id).unwrap().changed, 1);
            });
        }
    });
    assert_eq!(fixture.tree().len(), 9);
    assert_eq!(fixture.workspaces.merge_records(RUN).len(), 8);
    let status = command(&fixture.repo, &["status", "--porcelain", "--", "ten"]).output().unwrap();
    assert!(status.stdout.is_empty());
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 8);
    assert_eq!(fixture.tree().len(), 1);
}

#[test]
fn nothing_is_written_into_gits_own_folder() {
    let fixture = TestRepo::new(&[("a", "1\n"), ("sub/a", "1\n")]);
    let kept = fixture.kept();
    let folder = fixture.open("a");
    for path in [".GIT/hooks/x", "sub/.git/hooks/post-checkout", "sub/.Git", "other/.git/config"] {
        write(&folder.join(path), "hostile\n");
    }
    write(&folder.join("sub/a"), "2\n");
    assert_eq!(fixture.merge("a").changed, 1);
    assert_eq!(
        fixture.tree().into_keys().collect::<Vec<_>>(),
        [Path::new("a"), Path::new("sub/a")]
    );
    assert_eq!(fixture.kept(), kept);
}

#[test]
fn a_link_inside_the_workspace_is_not_followed() {
    let fixture = TestRepo::new(&[("d/f", "1\n"), ("d/g", "1\n")]);
    write(&fixture.home.join("outside/f"), "secret\n");
    let folder = fixture.open("a");
    std::fs::remove_dir_all(folder.join("d")).unwrap();
    symlink(fixture.home.join("outside"), folder.join("d")).unwrap();
    let merged = fixture.merge("a");
    assert_eq!((merged.changed, merged.conflicts), (3, vec![]));
    assert_eq!(std::fs::read_link(fixture.repo.join("d")).unwrap(), fixture.home.join("outside"));
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 3);
    assert_eq!(fixture.read("d/f"), "1\n");
    assert_eq!(std::fs::read_to_string(fixture.home.join("outside/f")).unwrap(), "secret\n");
}

#[test]
fn by_products_that_git_does_not_track_never_conflict() {
    let fixture = TestRepo::new(&[("a", "1\n"), ("b", "1\n"), ("tracked.cache", "1\n")]);
    fixture.write("old.cache", "1\n");
    let (one, other) = (fixture.open("one"), fixture.open("other"));
    let third = fixture.open("third");
    write(&one.join("a"), "one\n");
    write(&other.join("b"), "other\n");
    write(&third.join("tracked.cache"), "third\n");
    for (folder, text) in [(&one, "one\n"), (&other, "other\n")] {
        write(&folder.join("old.cache"), text);
        write(&folder.join("new [1].cache"), text);
    }
    let merge = |id: &str| {
        let is_by_product = |path: &Path| path.extension().is_some_and(|end| end == "cache");
        fixture.workspaces.merge_back_around(RUN, id, &is_by_product).unwrap()
    };
    assert_eq!(merge("one").changed, 3);
    let merged = merge("other");
    assert_eq!((merged.changed, merged.conflicts, merged.kept), (1, vec![], None));
    let stays =
        "was changed in both places; it is a by-product, so it stays as it is in the repository";
    assert_eq!(merged.notes, [format!("new [1].cache {stays}"), format!("old.cache {stays}")]);
    let files = ["a", "b", "old.cache", "new [1].cache"].map(|file| fixture.read(file));
    assert_eq!(files, ["one\n", "other\n", "one\n", "one\n"]);
    // Undone as any merge, and without a trace of what was not merged.
    assert_eq!(fixture.workspaces.undo(RUN, Some("other")).unwrap().restored, 1);
    assert_eq!((fixture.read("b"), fixture.read("old.cache")), ("1\n".into(), "one\n".into()));

    // A file that git tracks is work, whatever its name.
    fixture.write("tracked.cache", "user\n");
    assert_eq!(merge("third").conflicts, ["tracked.cache"]);
    assert_eq!(fixture.read("tracked.cache"), "user\n");
}

#[test]
fn a_merge_of_by_products_alone_writes_nothing() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let folder = fixture.open("one");
    write(&folder.join("x.cache"), "one\n");
    fixture.write("x.cache", "user\n");
    let merged = fixture.workspaces.merge_back_around(RUN, "one", &|_| true).unwrap();
    assert_eq!((merged.changed, merged.conflicts.len(), merged.notes.len()), (0, 0, 1));
    assert_eq!(fixture.read("x.cache"), "user\n");
    fixture.assert_gone("one");
}
