//! Workspaces of nobody go, and their work is kept.

use crate::workspaces::fixture::{RUN, TestRepo, git, write};

#[test]
fn only_what_belongs_to_nobody_goes() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let (kept, mine) = (fixture.kept(), fixture.open("mine"));
    write(&fixture.open("theirs").join("a"), "2\n");
    write(&fixture.open("idle").join("ignored"), "");
    std::fs::remove_file(fixture.workspaces.path(RUN, "idle").join("ignored")).unwrap();
    let swept = fixture.workspaces.sweep(&|run, id| run == RUN && id == "mine");
    let mut seen: Vec<_> =
        swept.iter().map(|swept| (&*swept.run, &*swept.id, swept.kept.is_some())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(RUN, "idle", false), (RUN, "theirs", true)]);
    assert!(mine.exists());
    assert_eq!(fixture.git(&["worktree", "list"]).lines().count(), 2);
    assert!(fixture.workspaces.sweep(&|_, _| true).is_empty());
    fixture.workspaces.discard(RUN, "mine").unwrap();
    assert_eq!(fixture.kept(), kept);
    assert!(fixture.workspaces.sweep(&|_, _| false).is_empty());
    assert_eq!(fixture.read("a"), "1\n");
}

#[test]
fn a_state_folder_that_is_not_there_is_not_made() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    assert!(fixture.workspaces.sweep(&|_, _| false).is_empty());
    assert!(!fixture.state.exists());
}

#[test]
fn other_worktrees_are_not_ours() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    fixture.git(&["worktree", "add", "-q", "--detach", "../theirs"]);
    fixture.git(&["worktree", "add", "-q", "--detach", "../unplugged"]);
    std::fs::remove_dir_all(fixture.home.join("unplugged")).unwrap();
    let kept = fixture.kept();
    let folder = fixture.open("a");
    write(&folder.join("a"), "2\n");
    fixture.workspaces.sweep(&|_, _| false);
    assert_eq!(fixture.kept(), kept);
}

#[test]
fn entries_and_folders_nothing_is_known_of() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let kept = fixture.kept();
    // Somebody removed the folder and the record; the entry is left.
    let folder = fixture.open("entry");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::remove_dir_all(fixture.state.join("bases")).unwrap();
    // Somebody removed the record only.
    let folder = fixture.open("folder");
    write(&folder.join("a"), "worked\n");
    std::fs::remove_dir_all(fixture.state.join("bases")).unwrap();
    // Killed before the first word was written.
    std::fs::create_dir_all(fixture.state.join("bases/01J/x_0")).unwrap();
    let swept = fixture.workspaces.sweep(&|_, _| true);
    assert_eq!(swept.len(), 2, "{swept:?}");
    let aside = swept.iter().find_map(|swept| swept.kept.as_ref()).unwrap();
    assert_eq!(std::fs::read_to_string(fixture.repo.join(aside).join("a")).unwrap(), "worked\n");
    assert_eq!(fixture.kept(), kept);
    assert!(fixture.workspaces.sweep(&|_, _| true).is_empty());
}

#[test]
fn a_damaged_record_is_said_and_nothing_of_it_removed() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let folder = fixture.open("a");
    write(&folder.join("a"), "worked\n");
    let base = fixture.state.join("bases/01J").join(folder.file_name().unwrap());
    write(&base.join("workspace.json"), "{\"version\": 1, ");
    let swept = fixture.workspaces.sweep(&|_, _| false);
    assert_eq!(swept.len(), 1);
    assert!(swept[0].notes[0].contains("workspace.json is damaged"), "{swept:?}");
    assert!(folder.join("a").exists());
    assert!(
        fixture.workspaces.merge_back(RUN, "a").unwrap_err().to_string().contains("is damaged")
    );
}

#[test]
fn one_that_git_half_made_goes() {
    let fixture = TestRepo::new(&[("a", "1\n")]);
    let kept = fixture.kept();
    let folder = fixture.open("a");
    let name = folder.file_name().unwrap();
    // As if git had been killed before it wrote where the worktree is.
    std::fs::remove_file(fixture.repo.join(".git/worktrees").join(name).join("gitdir")).unwrap();
    assert_eq!(fixture.workspaces.discard(RUN, "a").unwrap(), None);
    assert_eq!(fixture.kept(), kept);
    git(&fixture.repo, &["status"]);
}
