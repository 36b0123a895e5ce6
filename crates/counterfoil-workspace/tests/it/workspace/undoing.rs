//! What folding changed can be put back, whole.

use crate::workspace::scene::{RUN, Scene, set_mode, write};
use counterfoil_workspace::workspace::FoldingState;
use std::os::unix::fs::PermissionsExt;

fn folded(scene: &Scene, id: &str, files: &[(&str, &str)]) {
    let folder = scene.open(id);
    for (path, text) in files {
        write(&folder.join(path), text);
    }
    assert_eq!(scene.fold(id).changed, files.len() as u64);
}

#[test]
fn one_or_all_of_a_run() {
    let scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
    set_mode(&scene.repo.join("a"), 0o600);
    let before = scene.tree();
    folded(&scene, "x", &[("a", "2\n"), ("new/x", "1\n")]);
    let between = scene.tree();
    folded(&scene, "y", &[("a", "3\n"), ("b", "2\n")]);
    let undone = scene.spaces.undo(RUN, Some("y")).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (2, vec![]));
    assert_eq!(scene.tree(), between);
    // Again: there is nothing left to do.
    assert_eq!(scene.spaces.undo(RUN, Some("y")).unwrap().restored, 0);
    assert_eq!(scene.spaces.undo(RUN, None).unwrap().restored, 2);
    assert_eq!(scene.tree(), before);
    assert!(scene.spaces.foldings(RUN).iter().all(|folding| folding.state == FoldingState::Undone));
    assert_eq!(scene.spaces.undo("another", None).unwrap().restored, 0);
}

#[test]
fn all_of_a_run_newest_first() {
    let scene = Scene::new(&[("a", "1\n")]);
    let before = scene.tree();
    for n in 2..12 {
        folded(
            &scene,
            &format!("item {n}"),
            &[("a", &format!("{n}\n")), (&format!("f{n}/g"), "x")],
        );
    }
    let undone = scene.spaces.undo(RUN, None).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (11, vec![]));
    assert_eq!(scene.tree(), before);
}

#[test]
fn what_was_changed_since_is_named_and_nothing_is_half_undone() {
    let scene = Scene::new(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    folded(&scene, "x", &[("a", "2\n"), ("b", "2\n"), ("c", "2\n")]);
    scene.write("c", "mine\n");
    scene.remove("a");
    let before = scene.tree();
    let undone = scene.spaces.undo(RUN, None).unwrap();
    assert_eq!((undone.restored, undone.changed_since), (0, vec!["a".to_owned(), "c".to_owned()]));
    assert_eq!(scene.tree(), before);
    // Folded over by a later one, the older one alone cannot go.
    scene.write("a", "2\n");
    scene.write("c", "2\n");
    folded(&scene, "y", &[("b", "3\n")]);
    assert_eq!(scene.spaces.undo(RUN, Some("x")).unwrap().changed_since, ["b"]);
    assert_eq!(scene.spaces.undo(RUN, None).unwrap().restored, 3);
    assert_eq!(scene.read("b"), "1\n");
}

#[test]
fn folders_come_and_go_as_they_were() {
    let scene = Scene::new(&[("a/b/only", "1\n")]);
    std::fs::create_dir_all(scene.repo.join("empty/one")).unwrap();
    set_mode(&scene.repo.join("a/b"), 0o700);
    let before = scene.tree();
    let folder = scene.open("x");
    std::fs::remove_file(folder.join("a/b/only")).unwrap();
    write(&folder.join("empty/one/new"), "1\n");
    write(&folder.join("p/q/r"), "1\n");
    assert_eq!(scene.fold("x").changed, 3);
    assert!(!scene.repo.join("a").exists());
    assert_eq!(scene.spaces.undo(RUN, None).unwrap().restored, 3);
    assert_eq!(scene.tree(), before);
    assert!(!scene.repo.join("p").exists());
    assert_eq!(scene.repo.join("a/b").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn an_id_that_is_used_again_can_be_undone_twice() {
    let scene = Scene::new(&[("a", "1\n")]);
    folded(&scene, "x", &[("a", "2\n")]);
    folded(&scene, "x", &[("a", "3\n")]);
    assert_eq!(scene.spaces.foldings(RUN).len(), 2);
    assert_eq!(scene.spaces.undo(RUN, Some("x")).unwrap().restored, 1);
    assert_eq!(scene.read("a"), "1\n");
}
