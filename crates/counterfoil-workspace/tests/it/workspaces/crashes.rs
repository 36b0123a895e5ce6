//! Killed between any two steps: a repeated call completes the operation, a sweep cleans up, and
//! the repository is never left half merged.

use crate::workspaces::fixture::{RUN, TestRepo, Tree, all_files, set_mode, tree, write};
use counterfoil_workspace::workspaces::{Error, MergeOutcome, MergeRecordState, Step, Workspaces};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

fn fixture() -> TestRepo {
    static FIRST: OnceLock<TestRepo> = OnceLock::new();
    let first = FIRST.get_or_init(|| {
        TestRepo::new(&[("edited", "1\n2\n3\n4\n5\n"), ("gone/x", "1\n"), ("folder/f", "1\n")])
    });
    let fixture = first.copy();
    fixture.write("untracked", "1\n");
    fixture
}

fn work(folder: &Path) {
    write(&folder.join("edited"), "one\n2\n3\n4\n5\n");
    std::fs::remove_file(folder.join("gone/x")).unwrap();
    std::fs::remove_dir_all(folder.join("folder")).unwrap();
    write(&folder.join("folder"), "a file now\n");
    write(&folder.join("new/deep"), "1\n");
    set_mode(&folder.join("untracked"), 0o755);
}

/// As `kill -9` does, nothing is tidied up: unwinding runs no code of ours that touches the disk.
fn killed_at(fixture: &TestRepo, n: usize) -> Workspaces {
    let left = Arc::new(AtomicUsize::new(n));
    Workspaces::new(&fixture.state, &fixture.repo).with_step_hook(move |_| {
        if left.fetch_sub(1, Ordering::SeqCst) == 0 {
            resume_unwind(Box::new("killed"));
        }
    })
}

/// Runs something until it survives, killing it one step later each time. Returns how often it was
/// killed.
fn at_each_step(mut run: impl FnMut(usize) -> bool) -> usize {
    (0..200).find(|n| run(*n)).expect("it never ended")
}

fn survives<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok()
}

fn finished(fixture: &TestRepo, worked: &Tree, before: &Tree) {
    let merged = fixture.merge("a");
    assert_eq!((merged.changed, &merged.conflicts), (6, &vec![]));
    assert_eq!(&fixture.tree(), worked);
    fixture.assert_gone("a");
    let left: Vec<_> = all_files(&fixture.repo)
        .into_iter()
        .filter(|path| [".part", ".tmp"].iter().any(|end| path.to_string_lossy().ends_with(end)))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().restored, 6);
    assert_eq!(&fixture.tree(), before);
}

#[test]
fn opening_again_after_any_crash_gives_a_whole_workspace() {
    let kills = at_each_step(|n| {
        let fixture = fixture();
        let kept = fixture.kept();
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.open(RUN, "a", &BTreeSet::new()).unwrap()).is_some();
        let folder = fixture.open("a");
        assert_eq!(tree(&folder), fixture.tree(), "killed at step {n}");
        assert_eq!(fixture.workspaces.discard(RUN, "a").unwrap(), None);
        assert_eq!(fixture.kept(), kept, "killed at step {n}");
        fixture.assert_gone("a");
        survived
    });
    assert_eq!(kills, 5);
}

#[test]
fn a_half_opened_workspace_is_swept() {
    at_each_step(|n| {
        let fixture = fixture();
        let kept = fixture.kept();
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.open(RUN, "a", &BTreeSet::new()).unwrap()).is_some();
        let swept = fixture.workspaces.sweep(&|_, _| false);
        assert_eq!(swept.len(), 1, "killed at step {n}");
        assert_eq!((&*swept[0].id, &swept[0].kept, &swept[0].notes), ("a", &None, &vec![]));
        assert_eq!(fixture.kept(), kept);
        assert!(all_files(&fixture.state.join("bases")).is_empty());
        fixture.assert_gone("a");
        assert!(fixture.workspaces.sweep(&|_, _| false).is_empty());
        survived
    });
}

#[test]
fn merging_again_after_any_crash_finishes_it() {
    let kills = at_each_step(|n| {
        let fixture = fixture();
        let before = fixture.tree();
        let folder = fixture.open("a");
        work(&folder);
        let mut worked = tree(&folder);
        worked.retain(|path, _| !path.starts_with("gone"));
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.merge_back(RUN, "a").unwrap()).is_some();
        // And once more on the way.
        survives(|| killed_at(&fixture, 1).merge_back(RUN, "a").unwrap());
        finished(&fixture, &worked, &before);
        survived
    });
    assert!(kills > 12, "{kills}");
}

#[test]
fn after_any_crash_of_a_merge_a_sweep_leaves_all_of_it_or_nothing() {
    at_each_step(|n| {
        let fixture = fixture();
        let (before, kept) = (fixture.tree(), fixture.kept());
        let folder = fixture.open("a");
        work(&folder);
        let mut worked = tree(&folder);
        worked.retain(|path, _| !path.starts_with("gone"));
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.merge_back(RUN, "a").unwrap()).is_some();
        let swept = fixture.workspaces.sweep(&|_, _| false);
        let now = fixture.tree();
        assert!(now == before || now == worked, "killed at step {n}: {now:?}");
        assert!(swept.iter().all(|swept| swept.notes.is_empty()), "{swept:?}");
        if now == before {
            let patch = fixture.repo.join(swept[0].kept.as_ref().unwrap());
            crate::workspaces::fixture::git(
                &fixture.repo,
                &["apply", "--check", patch.to_str().unwrap()],
            );
        }
        fixture.assert_gone("a");
        assert_eq!(fixture.kept(), kept, "killed at step {n}");
        survived
    });
}

#[test]
fn a_conflict_is_the_same_after_any_crash() {
    at_each_step(|n| {
        let fixture = fixture();
        let folder = fixture.open("a");
        work(&folder);
        fixture.write("edited", "other\n");
        let before = fixture.tree();
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.merge_back(RUN, "a").unwrap()).is_some();
        let merged = fixture.merge("a");
        assert_eq!(merged.conflicts, ["edited"]);
        assert_eq!(fixture.tree(), before);
        assert_eq!(all_files(&fixture.state.join("kept")).len(), 1, "killed at step {n}");
        fixture.assert_gone("a");
        survived
    });
}

#[test]
fn undoing_again_after_any_crash_finishes_it() {
    at_each_step(|n| {
        let fixture = fixture();
        let before = fixture.tree();
        for (id, text) in [("a", "one\n2\n3\n4\n5\n"), ("b", "one\n2\n3\n4\nfive\n")] {
            let folder = fixture.open(id);
            if id == "a" {
                work(&folder);
            }
            write(&folder.join("edited"), text);
            fixture.merge(id);
        }
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.undo(RUN, None).unwrap()).is_some();
        assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().changed_since, Vec::<String>::new());
        assert_eq!(fixture.tree(), before, "killed at step {n}");
        survived
    });
}

/// Folds, and lets the user write something at a step.
fn meanwhile(fixture: &TestRepo, at: Step, path: &'static str, text: &'static str) -> MergeOutcome {
    let repo = fixture.repo.clone();
    let workspaces = Workspaces::new(&fixture.state, &fixture.repo).with_step_hook(move |step| {
        if step == at {
            write(&repo.join(path), text);
        }
    });
    workspaces.merge_back(RUN, "a").unwrap()
}

#[test]
fn what_the_user_writes_meanwhile_is_never_overwritten() {
    // (when, where): before anything was written, in the middle, to a file yet to come and one that
    // comes new.
    for (at, path, written) in [
        (Step::Compared, "edited", 0),
        (Step::Imaged, "edited", 0),
        (Step::Decided, "edited", 0),
        (Step::Decided, "new/deep", 0),
        (Step::Written(1), "edited", 1),
        (Step::Written(3), "new/deep", 4),
        (Step::Written(2), "untracked", 5),
    ] {
        let fixture = fixture();
        let before = fixture.tree();
        let folder = fixture.open("a");
        work(&folder);
        let merged = meanwhile(&fixture, at, path, "the user's\n");
        assert_eq!(merged.conflicts, [path], "{at:?}");
        assert_eq!(fixture.read(path), "the user's\n", "{at:?}");
        assert!(merged.kept.is_some());
        fixture.assert_gone("a");
        if matches!(at, Step::Written(_)) {
            assert!(merged.changed >= written.min(2), "{at:?} {merged:?}");
            assert!(
                merged
                    .notes
                    .iter()
                    .any(|note| note.starts_with("these files were already written")),
                "{merged:?}"
            );
            assert_eq!(fixture.workspaces.merge_records(RUN)[0].state, MergeRecordState::Stopped);
            // The merge did not write the user's file, so it is not in the way of an undo and stays.
            let undone = fixture.workspaces.undo(RUN, None).unwrap();
            assert_eq!((undone.restored, undone.changed_since), (merged.changed, vec![]), "{at:?}");
            assert_eq!(fixture.read(path), "the user's\n", "{at:?}");
            match before.get(Path::new(path)) {
                Some((_, bytes)) => write(&fixture.repo.join(path), bytes),
                None => std::fs::remove_file(fixture.repo.join(path)).unwrap(),
            }
            let mut now = fixture.tree();
            now.retain(|path, _| !path.starts_with("new"));
            assert_eq!(now, before);
        } else {
            assert_eq!(merged.changed, 0, "{at:?}");
            assert_eq!(fixture.workspaces.merge_records(RUN), [], "{at:?}");
        }
    }
}

#[test]
fn a_file_edited_after_a_crash_stops_the_rest() {
    let fixture = fixture();
    let folder = fixture.open("a");
    work(&folder);
    let workspaces = Workspaces::new(&fixture.state, &fixture.repo).with_step_hook(|step| {
        if step == Step::Written(4) {
            resume_unwind(Box::new("killed"));
        }
    });
    assert!(survives(|| workspaces.merge_back(RUN, "a")).is_none());
    assert!(matches!(fixture.workspaces.undo(RUN, None), Err(Error::Unfinished { .. })));
    assert!(matches!(
        fixture.workspaces.open(RUN, "a", &BTreeSet::new()),
        Err(Error::Unfinished { .. })
    ));
    fixture.write("untracked", "the user's\n");
    fixture.write("edited", "the user's, too\n");
    let merged = fixture.merge("a");
    insta::assert_debug_snapshot!(merged);
    assert_eq!(fixture.read("untracked"), "the user's\n");
    assert!(!fixture.repo.join("new").exists());
    assert_eq!(fixture.merge("a"), merged);
    assert_eq!(recorded(&fixture), ["edited", "folder", "folder/f", "gone/x"]);
    assert_eq!(fixture.workspaces.undo(RUN, None).unwrap().changed_since, ["edited"]);
}

/// The files that undo would restore.
fn recorded(fixture: &TestRepo) -> Vec<String> {
    let records = fixture.workspaces.merge_records(RUN);
    records.into_iter().flat_map(|record| record.files).map(|file| file.path).collect()
}

/// Begins to merge the work, and is killed at a step.
fn killed_merge(fixture: &TestRepo, at: Step) {
    work(&fixture.open("a"));
    let workspaces = Workspaces::new(&fixture.state, &fixture.repo).with_step_hook(move |step| {
        if step == at {
            resume_unwind(Box::new("killed"));
        }
    });
    assert!(survives(|| workspaces.merge_back(RUN, "a")).is_none());
}

#[test]
fn undo_of_a_stopped_merge_restores_what_the_merge_wrote_and_nothing_else() {
    let fixture = fixture();
    let mut expected = fixture.tree();
    killed_merge(&fixture, Step::Written(2));
    // The second file happens to be as the merge would have written it.
    fixture.write("untracked", "the user's\n");
    fixture.write("new/deep", "1\n");
    let merged = fixture.merge("a");
    assert_eq!((merged.changed, merged.conflicts), (2, vec!["untracked".to_owned()]));
    assert_eq!(recorded(&fixture), ["folder/f", "gone/x"]);
    let undone = fixture.workspaces.undo(RUN, None).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (2, vec![]));
    let now = fixture.tree();
    for path in ["untracked", "new/deep"] {
        expected.insert(path.into(), now[Path::new(path)].clone());
    }
    assert_eq!(now, expected);
    assert_eq!((&*fixture.read("untracked"), &*fixture.read("new/deep")), ("the user's\n", "1\n"));
}

#[test]
fn undo_after_a_killed_merge_was_discarded_restores_what_it_wrote() {
    for (at, written) in [(Step::Decided, 0), (Step::Written(2), 2), (Step::Written(5), 5)] {
        let fixture = fixture();
        let before = fixture.tree();
        killed_merge(&fixture, at);
        fixture.write("untracked", "the user's\n");
        assert!(fixture.workspaces.discard(RUN, "a").unwrap().is_some());
        assert_eq!(recorded(&fixture).len(), written, "{at:?}");
        assert_eq!(fixture.workspaces.merge_records(RUN).len(), written.min(1), "{at:?}");
        let undone = fixture.workspaces.undo(RUN, None).unwrap();
        assert_eq!((undone.restored, undone.changed_since), (written as u64, vec![]), "{at:?}");
        assert_eq!(fixture.read("untracked"), "the user's\n", "{at:?}");
        fixture.write("untracked", "1\n");
        assert_eq!(fixture.tree(), before, "{at:?}");
    }
}

#[test]
fn a_sweep_rolls_back_what_a_killed_merge_wrote_whatever_else_was_edited() {
    let fixture = fixture();
    let before = fixture.tree();
    killed_merge(&fixture, Step::Written(2));
    fixture.write("untracked", "the user's\n");
    let swept = fixture.workspaces.sweep(&|_, _| false);
    assert_eq!((swept.len(), &swept[0].notes), (1, &vec![]));
    assert_eq!(fixture.read("untracked"), "the user's\n");
    fixture.write("untracked", "1\n");
    assert_eq!(fixture.tree(), before);
}

#[test]
fn whenever_a_merge_is_killed_undo_restores_what_it_wrote_and_nothing_else() {
    at_each_step(|n| {
        let fixture = fixture();
        let before = fixture.tree();
        work(&fixture.open("a"));
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.merge_back(RUN, "a").unwrap()).is_some();
        let is_written = fixture.tree()[Path::new("untracked")].0 & 0o100 != 0;
        fixture.write("untracked", "the user's\n");
        fixture.merge("a");
        let undone = fixture.workspaces.undo(RUN, None).unwrap();
        if is_written {
            assert_eq!(undone.changed_since, ["untracked"], "killed at step {n}");
            return survived;
        }
        assert_eq!(undone.changed_since, Vec::<String>::new(), "killed at step {n}");
        fixture.write("untracked", "1\n");
        assert_eq!(fixture.tree(), before, "killed at step {n}");
        survived
    });
}

#[test]
fn a_stopped_merge_stays_stopped_after_any_crash() {
    at_each_step(|n| {
        let fixture = fixture();
        let folder = fixture.open("a");
        work(&folder);
        let workspaces = Workspaces::new(&fixture.state, &fixture.repo).with_step_hook(|step| {
            if step == Step::Written(2) {
                resume_unwind(Box::new("killed"));
            }
        });
        assert!(survives(|| workspaces.merge_back(RUN, "a")).is_none());
        fixture.write("edited", "the user's\n");
        let now = fixture.tree();
        let workspaces = killed_at(&fixture, n);
        let survived = survives(|| workspaces.merge_back(RUN, "a").unwrap()).is_some();
        let merged = fixture.merge("a");
        assert_eq!(
            (merged.changed, merged.conflicts),
            (2, vec!["edited".to_owned()]),
            "killed at step {n}"
        );
        assert_eq!(fixture.tree(), now);
        assert_eq!(all_files(&fixture.state.join("kept")).len(), 1);
        fixture.assert_gone("a");
        survived
    });
}
