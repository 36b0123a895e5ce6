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
