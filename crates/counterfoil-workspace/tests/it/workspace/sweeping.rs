//! Workspaces of nobody go, and their work is kept.

use crate::workspace::scene::{RUN, Scene, git, write};

#[test]
fn only_what_belongs_to_nobody_goes() {
    let scene = Scene::new(&[("a", "1\n")]);
    let (kept, mine) = (scene.kept(), scene.open("mine"));
    write(&scene.open("theirs").join("a"), "2\n");
    write(&scene.open("idle").join("ignored"), "");
    std::fs::remove_file(scene.spaces.path(RUN, "idle").join("ignored")).unwrap();
    let swept = scene.spaces.sweep(&|run, id| run == RUN && id == "mine");
    let mut seen: Vec<_> =
        swept.iter().map(|swept| (&*swept.run, &*swept.id, swept.kept.is_some())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(RUN, "idle", false), (RUN, "theirs", true)]);
    assert!(mine.exists());
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 2);
    assert!(scene.spaces.sweep(&|_, _| true).is_empty());
    scene.spaces.discard(RUN, "mine").unwrap();
    assert_eq!(scene.kept(), kept);
    assert!(scene.spaces.sweep(&|_, _| false).is_empty());
    assert_eq!(scene.read("a"), "1\n");
}

#[test]
fn a_state_folder_that_is_not_there_is_not_made() {
    let scene = Scene::new(&[("a", "1\n")]);
    assert!(scene.spaces.sweep(&|_, _| false).is_empty());
    assert!(!scene.state.exists());
}

#[test]
fn other_worktrees_are_not_ours() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["worktree", "add", "-q", "--detach", "../theirs"]);
    scene.git(&["worktree", "add", "-q", "--detach", "../unplugged"]);
    std::fs::remove_dir_all(scene.home.join("unplugged")).unwrap();
    let kept = scene.kept();
    let folder = scene.open("a");
    write(&folder.join("a"), "2\n");
    scene.spaces.sweep(&|_, _| false);
    assert_eq!(scene.kept(), kept);
}

#[test]
fn entries_and_folders_nothing_is_known_of() {
    let scene = Scene::new(&[("a", "1\n")]);
    let kept = scene.kept();
    // Somebody removed the folder and the record; the entry is left.
    let folder = scene.open("entry");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::remove_dir_all(scene.state.join("bases")).unwrap();
    // Somebody removed the record only.
    let folder = scene.open("folder");
    write(&folder.join("a"), "worked\n");
    std::fs::remove_dir_all(scene.state.join("bases")).unwrap();
    // Killed before the first word was written.
    std::fs::create_dir_all(scene.state.join("bases/01J/x_0")).unwrap();
    let swept = scene.spaces.sweep(&|_, _| true);
    assert_eq!(swept.len(), 2, "{swept:?}");
    let aside = swept.iter().find_map(|swept| swept.kept.as_ref()).unwrap();
    assert_eq!(std::fs::read_to_string(scene.repo.join(aside).join("a")).unwrap(), "worked\n");
    assert_eq!(scene.kept(), kept);
    assert!(scene.spaces.sweep(&|_, _| true).is_empty());
}

#[test]
fn a_damaged_record_is_said_and_nothing_of_it_removed() {
    let scene = Scene::new(&[("a", "1\n")]);
    let folder = scene.open("a");
    write(&folder.join("a"), "worked\n");
    let base = scene.state.join("bases/01J").join(folder.file_name().unwrap());
    write(&base.join("workspace.json"), "{\"version\": 1, ");
    let swept = scene.spaces.sweep(&|_, _| false);
    assert_eq!(swept.len(), 1);
    assert!(swept[0].notes[0].contains("workspace.json is damaged"), "{swept:?}");
    assert!(folder.join("a").exists());
    assert!(scene.spaces.fold(RUN, "a").unwrap_err().to_string().contains("is damaged"));
}

#[test]
fn one_that_git_half_made_goes() {
    let scene = Scene::new(&[("a", "1\n")]);
    let kept = scene.kept();
    let folder = scene.open("a");
    let name = folder.file_name().unwrap();
    // As if git had been killed before it wrote where the worktree is.
    std::fs::remove_file(scene.repo.join(".git/worktrees").join(name).join("gitdir")).unwrap();
    assert_eq!(scene.spaces.discard(RUN, "a").unwrap(), None);
    assert_eq!(scene.kept(), kept);
    git(&scene.repo, &["status"]);
}
