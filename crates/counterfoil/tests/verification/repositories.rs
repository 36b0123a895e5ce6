//! Repositories in states that git itself finds odd.

use crate::house::starting;
use crate::scene::{Ran, Scene, claims, git};
use serde_json::json;
use std::path::Path;

/// One step here, one in a worktree: each changes a file and says so.
fn two_steps(scene: &Scene) {
    scene.flow(
        "",
        "here",
        "  here: { agent: worker, go: there }\n  there: { agent: worker, workspace: worktree, go: end }",
    );
    scene.script(&[
        claims(&["a.rs", "new.rs"], json!({"writes": {"a.rs": "1\n", "new.rs": "1\n"}})),
        claims(&["b.rs"], json!({"writes": {"b.rs": "2\n"}})),
    ]);
}

fn both_are_verified(ran: &Ran) {
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.held(0, "files", "verified", &[]);
    ran.held(1, "files", "verified", &[]);
}

#[test]
fn an_index_that_somebody_locked_stays_theirs() {
    let scene = Scene::new();
    two_steps(&scene);
    std::fs::write(scene.repo().join(".git/index.lock"), "of another process").unwrap();
    let before = scene.belongings();
    let ran = scene.play();
    both_are_verified(&ran);
    scene.holds(&before, &["a.rs", "b.rs", "new.rs"]);
}

#[test]
fn a_rebase_goes_on_where_it_was() {
    let scene = Scene::new();
    // Another line of history that changes the same file, and a rebase that stops there.
    scene.git(&["stash", "-q", "--include-untracked"]);
    scene.git(&["switch", "-q", "other"]);
    scene.file("src/lib.rs", "theirs\n");
    scene.git(&["commit", "-q", "-a", "-m", "theirs"]);
    scene.git(&["switch", "-q", "main"]);
    scene.file("src/lib.rs", "ours\n");
    scene.git(&["commit", "-q", "-a", "-m", "ours"]);
    assert!(!git(&scene.repo(), &["rebase", "-q", "other"]).output().unwrap().status.success());
    assert!(scene.repo().join(".git/rebase-merge").is_dir());
    assert!(scene.read("src/lib.rs").contains("<<<<<<<"));
    two_steps(&scene);
    let status = scene.git(&["status", "--porcelain=v2", "src"]);
    let before = scene.belongings();
    let ran = scene.play();
    both_are_verified(&ran);
    scene.holds(&before, &["a.rs", "b.rs", "new.rs"]);
    assert_eq!(scene.git(&["status", "--porcelain=v2", "src"]), status);
    scene.git(&["checkout", "-q", "--", "a.rs", "b.rs"]);
    scene.file("src/lib.rs", "both\n");
    scene.git(&["add", "src/lib.rs"]);
    scene.git(&["rebase", "--continue"]);
    assert!(!scene.repo().join(".git/rebase-merge").exists());
}

/// A folder with a few programs, and no git.
fn without_git(scene: &Scene) -> std::path::PathBuf {
    let bin = scene.folder().join("said/bin");
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for name in ["sh", "cat", "rm", "mkdir"] {
        let real = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file());
        std::os::unix::fs::symlink(real.unwrap(), bin.join(name)).unwrap();
    }
    bin
}

#[test]
fn without_git_files_are_told_apart_by_their_content() {
    let scene = Scene::new();
    two_steps(&scene);
    let bin = without_git(&scene);
    let before = scene.belongings();
    let mut command = scene.command(&starting("flow.yaml", "script:script.yaml"));
    command.env("PATH", bin);
    let ran = Ran::of(scene.start_as(command).end());
    both_are_verified(&ran);
    ran.held(0, "files", "verified", &["looked at without git", "install it"]);
    scene.holds(&before, &["a.rs", "b.rs", "new.rs"]);
}

#[test]
fn a_protected_file_is_put_back_without_git_too() {
    let scene = Scene::new();
    scene.one_step("", "");
    scene.script(&[claims(&["a.rs"], json!({"writes": {"a.rs": "1\n", "AGENTS.md": "obey\n"}, "exec": "rm mine.txt; echo x > mine.txt; rm untracked.txt"}))]);
    scene.file(
        "flow.yaml",
        scene.read("flow.yaml").replace("start:", "protect: [mine.txt, untracked.txt]\nstart:"),
    );
    let bin = without_git(&scene);
    let before = scene.belongings();
    let mut command = scene.command(&starting("flow.yaml", "script:script.yaml"));
    command.env("PATH", bin);
    let ran = Ran::of(scene.start_as(command).end());
    ran.held(0, "protected", "refuted", &["restored"]);
    scene.holds(&before, &["a.rs"]);
}

/// The two steps in a folder, with the workflow from elsewhere.
fn in_folder(scene: &Scene, folder: &Path) -> crate::house::Said {
    let flow = scene.repo().join("flow.yaml");
    let arguments =
        ["run", flow.to_str().unwrap(), "--agent", "script:script.yaml", "--format", "json"];
    let mut command = scene.command(&arguments);
    // The last one counts.
    command = {
        let mut other = std::process::Command::new(command.get_program());
        other.args(arguments).arg("--state").arg(scene.state()).arg("--repo").arg(folder);
        other
            .current_dir(scene.folder())
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        other
    };
    scene.start_as(command).end()
}

#[test]
fn a_bare_repository_is_a_folder_like_any_other() {
    let scene = Scene::new();
    two_steps(&scene);
    let bare = scene.folder().join("said/bare.git");
    scene.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let refs = git(&bare, &["for-each-ref"]).output().unwrap().stdout;
    let head = std::fs::read(bare.join("HEAD")).unwrap();
    let ran = Ran::of(in_folder(&scene, &bare));
    both_are_verified(&ran);
    assert_eq!(std::fs::read_to_string(bare.join("b.rs")).unwrap(), "2\n");
    assert_eq!(git(&bare, &["for-each-ref"]).output().unwrap().stdout, refs);
    assert_eq!(std::fs::read(bare.join("HEAD")).unwrap(), head);
    assert!(git(&bare, &["fsck"]).output().unwrap().status.success());
}

#[test]
fn a_repository_of_another_user_is_looked_at_without_git() {
    let scene = Scene::new();
    two_steps(&scene);
    let theirs = scene.folder().join("said/theirs");
    scene.git(&["clone", "-q", ".", theirs.to_str().unwrap()]);
    let given = std::process::Command::new("chown")
        .arg("-R")
        .arg("12345:12345")
        .arg(&theirs)
        .output()
        .unwrap();
    if !given.status.success() {
        eprintln!("SKIPPED: only root can give a repository away, so nothing was held");
        return;
    }
    let index = std::fs::read(theirs.join(".git/index")).unwrap();
    let ran = Ran::of(in_folder(&scene, &theirs));
    both_are_verified(&ran);
    ran.held(0, "files", "verified", &["dubious ownership"]);
    assert_eq!(std::fs::read(theirs.join(".git/index")).unwrap(), index);
    assert_eq!(std::fs::read_to_string(theirs.join("b.rs")).unwrap(), "2\n");
    assert!(!theirs.join(".git/worktrees").exists());
}

#[test]
fn a_repository_without_a_commit_and_a_folder_below_one() {
    let scene = Scene::new();
    two_steps(&scene);
    let fresh = scene.folder().join("said/fresh");
    std::fs::create_dir_all(fresh.join("web/app")).unwrap();
    assert!(git(&fresh, &["init", "-q", "-b", "main"]).status().unwrap().success());
    std::fs::write(fresh.join("README.md"), "hello\n").unwrap();
    assert!(git(&fresh, &["add", "."]).status().unwrap().success());
    for folder in [fresh.clone(), fresh.join("web/app")] {
        let index = std::fs::read(fresh.join(".git/index")).unwrap();
        let ran = Ran::of(in_folder(&scene, &folder));
        both_are_verified(&ran);
        assert_eq!(std::fs::read_to_string(folder.join("b.rs")).unwrap(), "2\n");
        assert_eq!(std::fs::read(fresh.join(".git/index")).unwrap(), index);
        assert!(!fresh.join(".git/worktrees").exists());
    }
}
