//! Repositories in unusual states.

use crate::shell_project::run_arguments;
use crate::verification::project::{DirtyProject, VerifiedRun, claims};
use counterfoil_testkit::{CommandOutput, TestCommand, git_command, report_skip};
use serde_json::json;
use std::path::Path;

/// One step here, one in a worktree: each changes a file and says so.
fn two_steps(project: &DirtyProject) {
    project.write_workflow(
        "",
        "here",
        "  here: { agent: worker, go: there }\n  there: { agent: worker, workspace: worktree, go: end }",
    );
    project.write_script(&[
        claims(&["a.rs", "new.rs"], json!({"writes": {"a.rs": "1\n", "new.rs": "1\n"}})),
        claims(&["b.rs"], json!({"writes": {"b.rs": "2\n"}})),
    ]);
}

fn both_are_verified(ran: &VerifiedRun) {
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.assert_claim(0, "files", "verified", &[]);
    ran.assert_claim(1, "files", "verified", &[]);
}

#[test]
fn an_index_that_somebody_locked_stays_theirs() {
    let project = DirtyProject::new();
    two_steps(&project);
    std::fs::write(project.repo().join(".git/index.lock"), "of another process").unwrap();
    let before = project.user_files();
    let ran = project.run_script();
    both_are_verified(&ran);
    project.assert_only_changed(&before, &["a.rs", "b.rs", "new.rs"]);
}

#[test]
fn a_rebase_goes_on_where_it_was() {
    let project = DirtyProject::new();
    // Another line of history that changes the same file, and a rebase that stops there.
    project.git(&["stash", "-q", "--include-untracked"]);
    project.git(&["switch", "-q", "other"]);
    project.write("src/lib.rs", "theirs\n");
    project.git(&["commit", "-q", "-a", "-m", "theirs"]);
    project.git(&["switch", "-q", "main"]);
    project.write("src/lib.rs", "ours\n");
    project.git(&["commit", "-q", "-a", "-m", "ours"]);
    assert!(
        !git_command(project.repo(), &["rebase", "-q", "other"]).output().unwrap().status.success()
    );
    assert!(project.repo().join(".git/rebase-merge").is_dir());
    assert!(project.read_or_empty("src/lib.rs").contains("<<<<<<<"));
    two_steps(&project);
    let status = project.git(&["status", "--porcelain=v2", "src"]);
    let before = project.user_files();
    let ran = project.run_script();
    both_are_verified(&ran);
    project.assert_only_changed(&before, &["a.rs", "b.rs", "new.rs"]);
    assert_eq!(project.git(&["status", "--porcelain=v2", "src"]), status);
    project.git(&["checkout", "-q", "--", "a.rs", "b.rs"]);
    project.write("src/lib.rs", "both\n");
    project.git(&["add", "src/lib.rs"]);
    project.git(&["rebase", "--continue"]);
    assert!(!project.repo().join(".git/rebase-merge").exists());
}

/// A folder with a few programs, and no git.
fn without_git(project: &DirtyProject) -> std::path::PathBuf {
    let bin = project.scratch_path("bin");
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
    let project = DirtyProject::new();
    two_steps(&project);
    let bin = without_git(&project);
    let before = project.user_files();
    let mut command = project.command(&run_arguments("flow.yaml", "script:script.yaml"));
    command.env("PATH", bin);
    let ran = VerifiedRun::from(project.start_command(&mut command).wait());
    both_are_verified(&ran);
    ran.assert_claim(0, "files", "verified", &["git could not be used", "compared by content"]);
    project.assert_only_changed(&before, &["a.rs", "b.rs", "new.rs"]);
}

#[test]
fn a_protected_file_is_put_back_without_git_too() {
    let project = DirtyProject::new();
    project.write_one_step("", "");
    project.write_script(&[claims(&["a.rs"], json!({"writes": {"a.rs": "1\n", "AGENTS.md": "obey\n"}, "exec": "rm mine.txt; echo x > mine.txt; rm untracked.txt"}))]);
    project.write(
        "flow.yaml",
        project
            .read_or_empty("flow.yaml")
            .replace("start:", "protect: [mine.txt, untracked.txt]\nstart:"),
    );
    let bin = without_git(&project);
    let before = project.user_files();
    let mut command = project.command(&run_arguments("flow.yaml", "script:script.yaml"));
    command.env("PATH", bin);
    let ran = VerifiedRun::from(project.start_command(&mut command).wait());
    ran.assert_claim(0, "protected", "refuted", &["restored"]);
    project.assert_only_changed(&before, &["a.rs"]);
}

/// The two steps in a folder, with the workflow from elsewhere.
fn in_folder(project: &DirtyProject, folder: &Path) -> CommandOutput {
    let flow = project.repo().join("flow.yaml");
    let arguments =
        ["run", flow.to_str().unwrap(), "--agent", "script:script.yaml", "--format", "json"];
    let mut command = TestCommand::new(crate::PROGRAM);
    command.env("XDG_DATA_HOME", project.data());
    command.args(arguments).arg("--state").arg(project.state()).arg("--repo").arg(folder);
    command.current_dir(project.root());
    project.start_command(&mut command).wait()
}

#[test]
fn a_bare_repository_is_a_folder_like_any_other() {
    let project = DirtyProject::new();
    two_steps(&project);
    let bare = project.scratch_path("bare.git");
    project.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let refs = git_command(&bare, &["for-each-ref"]).output().unwrap().stdout;
    let head = std::fs::read(bare.join("HEAD")).unwrap();
    let ran = VerifiedRun::from(in_folder(&project, &bare));
    both_are_verified(&ran);
    assert_eq!(std::fs::read_to_string(bare.join("b.rs")).unwrap(), "2\n");
    assert_eq!(git_command(&bare, &["for-each-ref"]).output().unwrap().stdout, refs);
    assert_eq!(std::fs::read(bare.join("HEAD")).unwrap(), head);
    assert!(git_command(&bare, &["fsck"]).output().unwrap().status.success());
}

#[test]
fn a_repository_of_another_user_is_looked_at_without_git() {
    let project = DirtyProject::new();
    two_steps(&project);
    let theirs = project.scratch_path("theirs");
    project.git(&["clone", "-q", ".", theirs.to_str().unwrap()]);
    let given = std::process::Command::new("chown")
        .arg("-R")
        .arg("12345:12345")
        .arg(&theirs)
        .output()
        .unwrap();
    if !given.status.success() {
        report_skip("only root can change the owner of a repository");
        return;
    }
    let index = std::fs::read(theirs.join(".git/index")).unwrap();
    let ran = VerifiedRun::from(in_folder(&project, &theirs));
    both_are_verified(&ran);
    ran.assert_claim(0, "files", "verified", &["dubious ownership"]);
    assert_eq!(std::fs::read(theirs.join(".git/index")).unwrap(), index);
    assert_eq!(std::fs::read_to_string(theirs.join("b.rs")).unwrap(), "2\n");
    assert!(!theirs.join(".git/worktrees").exists());
}

#[test]
fn a_repository_without_a_commit_and_a_folder_below_one() {
    let project = DirtyProject::new();
    two_steps(&project);
    let fresh = project.scratch_path("fresh");
    std::fs::create_dir_all(fresh.join("web/app")).unwrap();
    assert!(git_command(&fresh, &["init", "-q", "-b", "main"]).status().unwrap().success());
    std::fs::write(fresh.join("README.md"), "hello\n").unwrap();
    assert!(git_command(&fresh, &["add", "."]).status().unwrap().success());
    for folder in [fresh.clone(), fresh.join("web/app")] {
        let index = std::fs::read(fresh.join(".git/index")).unwrap();
        let ran = VerifiedRun::from(in_folder(&project, &folder));
        both_are_verified(&ran);
        assert_eq!(std::fs::read_to_string(folder.join("b.rs")).unwrap(), "2\n");
        assert_eq!(std::fs::read(fresh.join(".git/index")).unwrap(), index);
        assert!(!fresh.join(".git/worktrees").exists());
    }
}
