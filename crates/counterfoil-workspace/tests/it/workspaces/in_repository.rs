//! Worktrees in the repository of a state folder that is elsewhere: their folder is there only as
//! long as they are.

use crate::workspaces::fixture::{RUN, TestRepo, all_files, write};
use counterfoil_workspace::workspaces::{Error, Workspaces};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FOLDER: &str = ".counterfoil";

/// The workspaces of a state folder outside of the repository, by its name.
fn workspaces(fixture: &TestRepo, state: &str) -> Workspaces {
    let folder = fixture.repo.join(FOLDER).join(format!("worktrees_{state}"));
    Workspaces::new(&fixture.home.join(state), &fixture.repo).with_worktrees(&folder)
}

fn open(workspaces: &Workspaces, id: &str) -> PathBuf {
    workspaces.open(RUN, id, &BTreeSet::new()).unwrap().folder
}

fn status(fixture: &TestRepo) -> String {
    fixture.git(&["status", "--porcelain", "--untracked-files=all"])
}

#[test]
fn the_folder_goes_with_the_last_worktree_however_that_ends() {
    type End = fn(&Workspaces, &str);
    let ends: [(&str, End); 3] = [
        ("merge", |workspaces, id| drop(workspaces.merge_back(RUN, id).unwrap())),
        ("discard", |workspaces, id| drop(workspaces.discard(RUN, id).unwrap())),
        ("sweep", |workspaces, id| drop(workspaces.sweep(&|_, open| open != id))),
    ];
    for (name, end) in ends {
        let fixture = TestRepo::new(&[("a", "1\n")]);
        let (kept, workspaces) = (fixture.kept(), workspaces(&fixture, "state"));
        for id in ["one", "two"] {
            write(&open(&workspaces, id).join(id), "work\n");
        }
        assert_eq!(status(&fixture), "", "{name}: git ignores the folder");
        end(&workspaces, "one");
        assert!(workspaces.path(RUN, "two").join("two").exists(), "{name}");
        assert!(!status(&fixture).contains(FOLDER), "{name}: git still ignores the folder");
        end(&workspaces, "two");
        assert!(!fixture.repo.join(FOLDER).exists(), "{name}");
        assert_eq!(fixture.kept(), kept, "{name}");
    }
}

#[test]
fn a_workspace_that_cannot_be_opened_leaves_no_folder() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let workspaces = workspaces(&fixture, "state");
    let failed = workspaces.open_with_work(RUN, "one", &BTreeSet::new(), "missing.patch");
    assert!(failed.is_err());
    assert!(!fixture.repo.join(FOLDER).exists());
    // One that is in use stays.
    let folder = open(&workspaces, "two");
    assert!(workspaces.open_with_work(RUN, "one", &BTreeSet::new(), "missing.patch").is_err());
    assert!(folder.join("a").exists());
    assert_eq!(status(&fixture), "");
}

#[test]
fn what_a_kill_left_goes_with_the_next_sweep() {
    type Leave = fn(&Path);
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let workspaces = workspaces(&fixture, "state");
    let folder = fixture.repo.join(FOLDER).join("worktrees_state");
    let left: [(&str, Leave); 4] = [
        ("a run's folder", |folder| std::fs::create_dir_all(folder.join(RUN)).unwrap()),
        ("an ignore file", |folder| write(&folder.join(".gitignore"), "*\n")),
        ("a part of one", |folder| write(&folder.join(".counterfoil-x1.tmp"), "")),
        ("nothing", |folder| std::fs::create_dir_all(folder).unwrap()),
    ];
    for (name, leave) in left {
        leave(&folder);
        assert!(workspaces.sweep(&|_, _| true).is_empty(), "{name}");
        assert!(!fixture.repo.join(FOLDER).exists(), "{name}");
    }
}

#[test]
fn what_is_not_ours_stays() {
    let foreign = [
        ".gitignore",
        "init.json",
        "worktrees_other/.gitignore",
        "worktrees_state/note",
        "worktrees_state/01J/note",
        "worktrees_state/.gitignore",
    ];
    for path in foreign {
        let fixture = TestRepo::new(&[("a", "1\n")]);
        let workspaces = workspaces(&fixture, "state");
        open(&workspaces, "one");
        let file = fixture.repo.join(FOLDER).join(path);
        write(&file, "# mine\n*\n");
        workspaces.discard(RUN, "one").unwrap();
        workspaces.sweep(&|_, _| false);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n*\n", "{path}");
        let in_ours = path.starts_with("worktrees_state");
        let folder = fixture.repo.join(FOLDER).join("worktrees_state");
        assert_eq!(folder.join(".gitignore").exists(), in_ours, "{path}");
    }
}

#[test]
fn nothing_is_removed_behind_a_link() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let (workspaces, elsewhere) = (workspaces(&fixture, "state"), fixture.home.join("elsewhere"));
    write(&elsewhere.join(".gitignore"), "*\n");
    std::fs::create_dir(fixture.repo.join(FOLDER)).unwrap();
    let link = fixture.repo.join(FOLDER).join("worktrees_state");
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    workspaces.sweep(&|_, _| false);
    assert!(elsewhere.join(".gitignore").exists() && link.is_symlink());
}

/// Each state folder has its own lock, so only the file system is between them.
#[test]
fn two_state_folders_begin_and_end_at_once() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let kept = fixture.kept();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let hands: Vec<_> = ["one", "two"]
            .into_iter()
            .flat_map(|state| [(state, 0), (state, 1)])
            .map(|(state, hand)| {
                let workspaces = workspaces(&fixture, state);
                scope.spawn(move || {
                    let mut wrong = Vec::new();
                    for n in 0..10 {
                        let id = format!("{hand}/{n}");
                        match workspaces.open(RUN, &id, &BTreeSet::new()) {
                            Ok(opened) => {
                                let around = opened.folder.ancestors().nth(2).unwrap();
                                if !around.join(".gitignore").exists() {
                                    wrong.push(format!("{state} {id}: git does not ignore it"));
                                }
                            }
                            // Git itself may fail where two add to its list at once without a
                            // common lock.
                            Err(error) if !matches!(error, Error::Git(_)) => {
                                wrong.push(format!("{state} {id}: {error}"));
                            }
                            Err(_) => continue,
                        }
                        let ended = workspaces.discard(RUN, &id);
                        wrong.extend(ended.err().map(|error| format!("{state} {id}: {error}")));
                    }
                    wrong
                })
            })
            .collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    let left = all_files(&fixture.repo.join(FOLDER));
    assert!(!fixture.repo.join(FOLDER).exists(), "{left:?}");
    assert_eq!(fixture.kept(), kept);
}
