//! Killed between any two steps: a repeated call finishes, a sweep cleans up, and the repository is
//! never left half folded.

use crate::workspace::scene::{RUN, Scene, Tree, all_files, set_mode, tree, write};
use counterfoil_workspace::workspace::{Error, Folded, FoldingState, Step, Workspaces};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

fn scene() -> Scene {
    static FIRST: OnceLock<Scene> = OnceLock::new();
    let first = FIRST.get_or_init(|| {
        Scene::new(&[("edited", "1\n2\n3\n4\n5\n"), ("gone/x", "1\n"), ("folder/f", "1\n")])
    });
    let scene = first.copy();
    scene.write("untracked", "1\n");
    scene
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
fn killed_at(scene: &Scene, n: usize) -> Workspaces {
    let left = Arc::new(AtomicUsize::new(n));
    Workspaces::new(&scene.state, &scene.repo).told(move |_| {
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

fn finished(scene: &Scene, worked: &Tree, before: &Tree) {
    let folded = scene.fold("a");
    assert_eq!((folded.changed, &folded.conflicts), (6, &vec![]));
    assert_eq!(&scene.tree(), worked);
    scene.assert_gone("a");
    let left: Vec<_> = all_files(&scene.repo)
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(scene.spaces.undo(RUN, None).unwrap().restored, 6);
    assert_eq!(&scene.tree(), before);
}

#[test]
fn opening_again_after_any_crash_gives_a_whole_workspace() {
    let kills = at_each_step(|n| {
        let scene = scene();
        let kept = scene.kept();
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.open(RUN, "a", &BTreeSet::new()).unwrap()).is_some();
        let folder = scene.open("a");
        assert_eq!(tree(&folder), scene.tree(), "killed at step {n}");
        assert_eq!(scene.spaces.discard(RUN, "a").unwrap(), None);
        assert_eq!(scene.kept(), kept, "killed at step {n}");
        scene.assert_gone("a");
        survived
    });
    assert_eq!(kills, 5);
}

#[test]
fn a_half_opened_workspace_is_swept() {
    at_each_step(|n| {
        let scene = scene();
        let kept = scene.kept();
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.open(RUN, "a", &BTreeSet::new()).unwrap()).is_some();
        let swept = scene.spaces.sweep(&|_, _| false);
        assert_eq!(swept.len(), 1, "killed at step {n}");
        assert_eq!((&*swept[0].id, &swept[0].kept, &swept[0].notes), ("a", &None, &vec![]));
        assert_eq!(scene.kept(), kept);
        assert!(all_files(&scene.state.join("bases")).is_empty());
        scene.assert_gone("a");
        assert!(scene.spaces.sweep(&|_, _| false).is_empty());
        survived
    });
}

#[test]
fn folding_again_after_any_crash_finishes_it() {
    let kills = at_each_step(|n| {
        let scene = scene();
        let before = scene.tree();
        let folder = scene.open("a");
        work(&folder);
        let mut worked = tree(&folder);
        worked.retain(|path, _| !path.starts_with("gone"));
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.fold(RUN, "a").unwrap()).is_some();
        // And once more on the way.
        survives(|| killed_at(&scene, 1).fold(RUN, "a").unwrap());
        finished(&scene, &worked, &before);
        survived
    });
    assert!(kills > 12, "{kills}");
}

#[test]
fn after_any_crash_of_a_fold_a_sweep_leaves_all_of_it_or_nothing() {
    at_each_step(|n| {
        let scene = scene();
        let (before, kept) = (scene.tree(), scene.kept());
        let folder = scene.open("a");
        work(&folder);
        let mut worked = tree(&folder);
        worked.retain(|path, _| !path.starts_with("gone"));
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.fold(RUN, "a").unwrap()).is_some();
        let swept = scene.spaces.sweep(&|_, _| false);
        let now = scene.tree();
        assert!(now == before || now == worked, "killed at step {n}: {now:?}");
        assert!(swept.iter().all(|swept| swept.notes.is_empty()), "{swept:?}");
        if now == before {
            let patch = scene.repo.join(swept[0].kept.as_ref().unwrap());
            crate::workspace::scene::git(
                &scene.repo,
                &["apply", "--check", patch.to_str().unwrap()],
            );
        }
        scene.assert_gone("a");
        assert_eq!(scene.kept(), kept, "killed at step {n}");
        survived
    });
}

#[test]
fn a_conflict_is_the_same_after_any_crash() {
    at_each_step(|n| {
        let scene = scene();
        let folder = scene.open("a");
        work(&folder);
        scene.write("edited", "other\n");
        let before = scene.tree();
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.fold(RUN, "a").unwrap()).is_some();
        let folded = scene.fold("a");
        assert_eq!(folded.conflicts, ["edited"]);
        assert_eq!(scene.tree(), before);
        assert_eq!(all_files(&scene.state.join("kept")).len(), 1, "killed at step {n}");
        scene.assert_gone("a");
        survived
    });
}

#[test]
fn undoing_again_after_any_crash_finishes_it() {
    at_each_step(|n| {
        let scene = scene();
        let before = scene.tree();
        for (id, text) in [("a", "one\n2\n3\n4\n5\n"), ("b", "one\n2\n3\n4\nfive\n")] {
            let folder = scene.open(id);
            if id == "a" {
                work(&folder);
            }
            write(&folder.join("edited"), text);
            scene.fold(id);
        }
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.undo(RUN, None).unwrap()).is_some();
        assert_eq!(scene.spaces.undo(RUN, None).unwrap().changed_since, Vec::<String>::new());
        assert_eq!(scene.tree(), before, "killed at step {n}");
        survived
    });
}

/// Folds, and lets the user write something at a step.
fn meanwhile(scene: &Scene, at: Step, path: &'static str, text: &'static str) -> Folded {
    let repo = scene.repo.clone();
    let spaces = Workspaces::new(&scene.state, &scene.repo).told(move |step| {
        if step == at {
            write(&repo.join(path), text);
        }
    });
    spaces.fold(RUN, "a").unwrap()
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
        let scene = scene();
        let before = scene.tree();
        let folder = scene.open("a");
        work(&folder);
        let folded = meanwhile(&scene, at, path, "the user's\n");
        assert_eq!(folded.conflicts, [path], "{at:?}");
        assert_eq!(scene.read(path), "the user's\n", "{at:?}");
        assert!(folded.kept.is_some());
        scene.assert_gone("a");
        if matches!(at, Step::Written(_)) {
            assert!(folded.changed >= written.min(2), "{at:?} {folded:?}");
            assert!(
                folded.notes.iter().any(|note| note.starts_with("already written")),
                "{folded:?}"
            );
            assert_eq!(scene.spaces.foldings(RUN)[0].state, FoldingState::Stopped);
            // What was written can be put back when the user's own is out of the way.
            assert_eq!(scene.spaces.undo(RUN, None).unwrap().changed_since, [path]);
            match before.get(Path::new(path)) {
                Some((_, bytes)) => write(&scene.repo.join(path), bytes),
                None => std::fs::remove_file(scene.repo.join(path)).unwrap(),
            }
            assert_eq!(scene.spaces.undo(RUN, None).unwrap().changed_since, Vec::<String>::new());
            let mut now = scene.tree();
            now.retain(|path, _| !path.starts_with("new"));
            assert_eq!(now, before);
        } else {
            assert_eq!(folded.changed, 0, "{at:?}");
        }
    }
}

#[test]
fn a_file_edited_after_a_crash_stops_the_rest() {
    let scene = scene();
    let folder = scene.open("a");
    work(&folder);
    let spaces = Workspaces::new(&scene.state, &scene.repo).told(|step| {
        if step == Step::Written(4) {
            resume_unwind(Box::new("killed"));
        }
    });
    assert!(survives(|| spaces.fold(RUN, "a")).is_none());
    assert!(matches!(scene.spaces.undo(RUN, None), Err(Error::Unfinished { .. })));
    assert!(matches!(scene.spaces.open(RUN, "a", &BTreeSet::new()), Err(Error::Unfinished { .. })));
    scene.write("untracked", "the user's\n");
    scene.write("edited", "the user's, too\n");
    let folded = scene.fold("a");
    insta::assert_debug_snapshot!(folded);
    assert_eq!(scene.read("untracked"), "the user's\n");
    assert!(!scene.repo.join("new").exists());
    assert_eq!(scene.fold("a"), folded);
}

#[test]
fn a_stopped_fold_stays_stopped_after_any_crash() {
    at_each_step(|n| {
        let scene = scene();
        let folder = scene.open("a");
        work(&folder);
        let spaces = Workspaces::new(&scene.state, &scene.repo).told(|step| {
            if step == Step::Written(2) {
                resume_unwind(Box::new("killed"));
            }
        });
        assert!(survives(|| spaces.fold(RUN, "a")).is_none());
        scene.write("edited", "the user's\n");
        let now = scene.tree();
        let spaces = killed_at(&scene, n);
        let survived = survives(|| spaces.fold(RUN, "a").unwrap()).is_some();
        let folded = scene.fold("a");
        assert_eq!(
            (folded.changed, folded.conflicts),
            (2, vec!["edited".to_owned()]),
            "killed at step {n}"
        );
        assert_eq!(scene.tree(), now);
        assert_eq!(all_files(&scene.state.join("kept")).len(), 1);
        scene.assert_gone("a");
        survived
    });
}
