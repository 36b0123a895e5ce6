//! Programs that an agent makes git run: hooks, filters, signing programs, trailers.

use super::DirtyProject;
use crate::verification::project::replies;
use counterfoil_testkit::write_executable;
use serde_json::json;

/// A step that runs commands, and then a commit of a.rs.
fn commits(project: &DirtyProject, exec: &str) -> serde_json::Value {
    project.write_workflow(
        "",
        "work",
        "  work: { agent: worker, go: keep }\n  keep: { commit: { message: Work, paths: [a.rs] }, go: end }",
    );
    project.write_script(&[replies(&json!({"files": ["a.rs"]}), json!({"exec": exec}))]);
    project.run_script().report.clone()
}

/// What the hooks that ran left behind.
fn traces(project: &DirtyProject) -> String {
    std::fs::read_to_string(project.root_path("hook-ran")).unwrap_or_default()
}

#[test]
fn a_program_that_an_agent_adds_to_git_is_not_run() {
    for (name, adds) in [
        (
            "a hook",
            "printf '#!/bin/sh\\ntouch ../evil\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg",
        ),
        (
            "a hook of many bytes",
            "printf '#!/bin/sh\\ntouch ../evil\\nexit 0\\n' > .git/hooks/commit-msg; truncate -s 300M .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg",
        ),
        (
            "a hook among many files",
            "for n in $(seq 1500); do : > .git/hooks/aaa$n; done; printf '#!/bin/sh\\ntouch ../evil\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg",
        ),
        (
            "a folder of hooks",
            "mkdir ../h; printf '#!/bin/sh\\ntouch ../evil\\n' > ../h/pre-commit; chmod +x ../h/pre-commit; git config core.hooksPath ../h",
        ),
        (
            "a signing program",
            "printf '#!/bin/sh\\ntouch ../evil\\nexit 1\\n' > ../sign; chmod +x ../sign; git config gpg.program \"$PWD/../sign\"; git config commit.gpgSign true",
        ),
        (
            "a filter",
            "git config filter.x.clean 'touch ../evil; cat'; echo '* filter=x' > .git/info/attributes",
        ),
        (
            "a filter that is required",
            "git config filter.x.process 'touch ../evil'; git config filter.x.required true; echo '* filter=x' > .git/info/attributes",
        ),
        (
            "a trailer",
            "git config trailer.x.cmd 'touch ../evil'; git config trailer.counterfoil-step.command 'touch ../evil'",
        ),
        (
            "included settings",
            "printf '[filter \"y\"]\\n clean = touch ../evil; cat\\n' > ../inc; git config include.path \"$PWD/../inc\"; echo '* filter=y' > .git/info/attributes",
        ),
        (
            "a monitor",
            "printf '#!/bin/sh\\ntouch ../evil\\n' > ../mon; chmod +x ../mon; git config core.fsmonitor \"$PWD/../mon\"",
        ),
    ] {
        let project = DirtyProject::new();
        let report = commits(&project, &format!("echo new > a.rs; {adds}"));
        assert!(!project.root_path("evil").exists(), "{name}: {report:#}");
        assert_eq!(report["outcome"], "done", "{name}: {report:#}");
        // The user's own hook is run.
        assert!(traces(&project).contains("pre-commit"), "{name}: {}", traces(&project));
        assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Work", "{name}: {report:#}");
    }
}

#[test]
fn a_hook_that_an_agent_changed_keeps_the_work_from_being_committed() {
    for changes in [
        "echo 'exit 0' > .git/hooks/pre-commit",
        "rm .git/hooks/pre-commit",
        "chmod -x .git/hooks/pre-commit",
        "echo 'touch ../evil' >> .git/hooks/pre-commit",
    ] {
        let project = DirtyProject::new();
        let head = project.git(&["rev-parse", "HEAD"]);
        let report = commits(&project, &format!("echo new > a.rs; {changes}"));
        assert_ne!(report["outcome"], "done", "{changes}: {report:#}");
        assert!(
            report.to_string().contains("hooks changed since the run began: pre-commit"),
            "{report:#}"
        );
        assert_eq!(project.git(&["rev-parse", "HEAD"]), head, "{changes}");
    }
}

#[test]
fn the_users_own_programs_are_run() {
    let project = DirtyProject::new();
    write_executable(
        &project.path(".git/hooks/commit-msg"),
        "#!/bin/sh\n. \"$(dirname \"$0\")/helper\"\necho \"$helped\" >> ../hook-ran\n",
    );
    project.write(".git/hooks/helper", "helped=helped\n");
    let report = commits(
        &project,
        "echo new > a.rs; printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    );
    assert_eq!(report["outcome"], "done", "{report:#}");
    assert!(traces(&project).contains("helped"), "{}", traces(&project));
    assert!(
        report
            .to_string()
            .contains("hooks that are new since the run began were not run: post-commit"),
        "{report:#}"
    );
}

/// A hook that is as it was may run what is beside it.
#[test]
fn a_file_beside_a_hook_that_an_agent_changed_keeps_the_work_from_being_committed() {
    let project = DirtyProject::new();
    write_executable(
        &project.path(".git/hooks/commit-msg"),
        "#!/bin/sh\n. \"$(dirname \"$0\")/helper\"\n",
    );
    project.write(".git/hooks/helper", ":\n");
    let report = commits(&project, "echo new > a.rs; echo 'touch ../evil' > .git/hooks/helper");
    assert!(!project.root_path("evil").exists(), "{report:#}");
    assert_ne!(report["outcome"], "done", "{report:#}");
    assert!(report.to_string().contains("hooks changed since the run began: helper"), "{report:#}");
}

/// The settings of another git folder are not those that were looked at.
#[test]
fn nothing_is_committed_to_another_git_folder() {
    let evil = "printf '#!/bin/sh\\ntouch ../evil\\n'";
    for exchanges in [
        format!(
            "mv .git ../git; ln -s ../git .git; {evil} > ../git/hooks/commit-msg; chmod +x ../git/hooks/commit-msg"
        ),
        format!(
            "mv .git ../git; echo 'gitdir: ../git' > .git; {evil} > ../git/hooks/commit-msg; chmod +x ../git/hooks/commit-msg"
        ),
        format!(
            "cp -a .git ../git; echo \"$PWD/../git\" > .git/commondir; {evil} > ../git/hooks/commit-msg; chmod +x ../git/hooks/commit-msg"
        ),
    ] {
        let project = DirtyProject::new();
        let report = commits(&project, &format!("echo new > a.rs; {exchanges}"));
        assert!(!project.root_path("evil").exists(), "{exchanges}: {report:#}");
        assert_ne!(report["outcome"], "done", "{exchanges}: {report:#}");
    }
}

/// Where there was no repository, its hooks are new.
#[test]
fn the_hooks_of_a_repository_that_an_agent_makes_are_not_run() {
    let project = DirtyProject::new();
    std::fs::remove_dir_all(project.path(".git")).unwrap();
    let report = commits(
        &project,
        "git init -q; echo new > a.rs; mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ../evil\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg",
    );
    assert!(!project.root_path("evil").exists(), "{report:#}");
}

/// An agent, a person who is asked, and a commit of a.rs.
fn asks(project: &DirtyProject, exec: &str) {
    project.write_workflow(
        "",
        "work",
        "  work: { agent: worker, go: approve }\n  approve: { ask: { question: \"Well?\", choices: [\"yes\"] }, go: keep }\n  keep: { commit: { message: Work, paths: [a.rs] }, go: end }",
    );
    let exec = format!("echo new > a.rs; {exec}");
    project.write_script(&[replies(&json!({"files": ["a.rs"]}), json!({"exec": exec}))]);
    assert_eq!(project.run_script().ended().2, 4);
}

/// The process that commits need not be the one that the agent worked for.
#[test]
fn a_hook_is_not_run_by_a_process_that_resumes_the_run() {
    let project = DirtyProject::new();
    asks(
        &project,
        "printf '#!/bin/sh\\ntouch ../evil\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg",
    );
    let answered = project.run(&["answer", "last", "approve", "yes", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(!project.root_path("evil").exists(), "{answered:?}");
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Work");
}

#[test]
fn a_hook_that_an_agent_removed_is_missed_by_a_process_that_resumes_the_run() {
    let project = DirtyProject::new();
    asks(&project, "rm .git/hooks/pre-commit");
    let answered = project.run(&["answer", "last", "approve", "yes", "--resume"]);
    assert_ne!(answered.code, Some(0), "{answered:?}");
    assert_ne!(project.git(&["log", "-1", "--format=%s"]).trim(), "Work");
}

/// What a person does to the hooks while no agent is at work counts.
#[test]
fn a_person_may_change_the_hooks_while_the_run_waits() {
    let project = DirtyProject::new();
    asks(&project, "true");
    std::fs::remove_file(project.path(".git/hooks/pre-commit")).unwrap();
    write_executable(
        &project.path(".git/hooks/commit-msg"),
        "#!/bin/sh\necho asked >> ../hook-ran\n",
    );
    let answered = project.run(&["answer", "last", "approve", "yes", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(traces(&project).contains("asked"), "{}", traces(&project));
}

/// Git runs filters also when worktrees are made and merged.
#[test]
fn a_filter_is_not_run_for_a_worktree() {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "first",
        "  first: { agent: worker, go: second }\n  second: { agent: worker, workspace: worktree, go: end }",
    );
    let adds = "git config filter.x.clean 'touch ../evil; cat'; git config filter.x.smudge 'touch ../evil; cat'; git config filter.x.process 'touch ../evil'; echo '* filter=x' > .git/info/attributes";
    project.write_script(&[
        replies(&json!({"files": ["a.rs"]}), json!({"exec": format!("echo new > a.rs; {adds}")})),
        replies(&json!({"files": ["b.rs"]}), json!({"exec": "echo new > b.rs"})),
    ]);
    let ran = project.run_script();
    assert!(!project.root_path("evil").exists(), "{ran:?}");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(project.read("b.rs"), "new\n");
}
