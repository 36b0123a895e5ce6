//! The limit on the size of files (`ulimit -f`): whichever file reaches it, the program says so and
//! exits with a code of its own, and the run goes on when the limit is raised.

use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow, run_arguments};
use counterfoil_testkit::{CommandOutput, TestCommand};

const AGENT: &str = "echo '{\"ok\": true}'\n";
const NO_ROOM: i32 = 122;

/// The program with a limit on the size of files, in bytes.
fn limited<S: AsRef<str>>(project: &ShellProject, limit: u64, arguments: &[S]) -> TestCommand {
    let mut plain = project.command(arguments);
    let mut limited = project.command_of("prlimit", &[format!("--fsize={limit}")]);
    limited.arg("--").arg(crate::PROGRAM).args(plain.as_std().get_args());
    limited
}

/// Runs the program with a limit. It prints into pipes, to which the limit does not apply.
fn run_limited<S: AsRef<str>>(
    project: &ShellProject,
    limit: u64,
    arguments: &[S],
) -> CommandOutput {
    limited(project, limit, arguments).output()
}

/// A run of `flow.yaml` with a limit.
fn run_workflow_limited(project: &ShellProject, limit: u64) -> CommandOutput {
    run_limited(project, limit, &run_arguments("flow.yaml", SHELL_AGENT))
}

/// Two artifacts: a file that is replaced, and one that grows by as much, in KiB, at each transition.
pub(super) fn large_artifacts(kib: usize) -> String {
    let line = "x".repeat(1023);
    format!(
        "artifacts:\n\
         \x20 - {{ path: out/log.md, append: true, template: \"{{{{ run.from }}}} to {{{{ run.state }}}}\\n\
         {{% for i in range({kib}) %}}{line}\\n{{% endfor %}}\" }}\n\
         \x20 - {{ path: out/status.md, template: \"{{{{ run.state }}}}\\n{{% for i in range({kib}) %}}{line}\\n{{% endfor %}}\" }}\n"
    )
}

/// Asserts that the artifacts of a run that is done are complete, with nothing twice.
pub(super) fn assert_large_artifacts(project: &ShellProject, kib: usize) {
    let log = project.read_or_empty("out/log.md");
    let (long, heads): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| line.len() == 1023);
    let mut unique = heads.clone();
    unique.dedup();
    assert!(heads.len() >= 2 && heads == unique, "{heads:?}");
    assert_eq!(*heads.last().unwrap(), "work to end");
    assert_eq!(long.len(), heads.len() * kib, "{heads:?}");
    let status = project.read_or_empty("out/status.md");
    assert_eq!((status.lines().next(), status.lines().count()), (Some("end"), kib + 1));
}

#[test]
fn whatever_the_limit_the_run_can_be_completed_without_it() {
    let mut limited = 0;
    for limit in [0, 1, 4096, 33_000, 50_000, 80_000, 120_000, 180_000, 4_000_000] {
        let project = ShellProject::with_agent("", AGENT);
        let output = run_workflow_limited(&project, limit);
        if output.code != Some(0) {
            limited += 1;
            output.expect(
                NO_ROOM,
                &[
                    "no file may become larger than",
                    "`ulimit -f`",
                    "raise that limit",
                    "and continue",
                ],
            );
        }
        let has_run =
            project.state().join("journal.db").metadata().is_ok_and(|file| file.len() > 0)
                && project.run(&["runs", "--format", "json"]).stdout.contains("\"run\"");
        if !has_run {
            project.run_workflow("flow.yaml", SHELL_AGENT).expect(0, &[]);
        } else if output.code != Some(0) {
            project.run(&["resume", "last"]).expect(0, &["done"]);
        }
        assert_eq!(project.read_or_empty("before"), "ran\n", "limit {limit}: a step was repeated");
        project.assert_intact();
    }
    assert!(limited >= 4, "only {limited} of the limits were reached");
}

#[test]
fn an_answer_that_reaches_the_limit_is_not_the_agents_fault() {
    let flood = "head -c 3000000 /dev/zero | tr '\\0' ' '\n".to_owned() + AGENT;
    let project = ShellProject::with_agent("", &flood);
    run_workflow_limited(&project, 1_500_000).expect(
        NO_ROOM,
        &["larger than 1500000 bytes (`ulimit -f`)", "transcripts", "raise that limit"],
    );
    assert_eq!(project.count_events("attempt-ended"), 1, "only the command before it has ended");
    project.run(&["resume", "last"]).expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn an_artifact_that_reaches_the_limit_is_written_later_and_never_by_half() {
    // The replaced file fits and the growing one does not, or neither does. Then the first command is
    // interrupted, and repeated.
    for (kib, limit, is_interrupted) in [(900, 1_500_000, false), (1500, 1_200_000, true)] {
        let project = ShellProject::with_agent("", AGENT);
        project.write("flow.yaml", agent_workflow("") + &large_artifacts(kib));
        run_workflow_limited(&project, limit)
            .expect(NO_ROOM, &["`ulimit -f`", "repo/out/", "raise that limit"]);
        // It stays resumable under the same limit, and says the same.
        run_limited(&project, limit, &["resume", "last"]).expect(NO_ROOM, &["repo/out/"]);
        let after = project.run(&["resume", "last"]);
        assert!(
            matches!(after.code, Some(0)) || after.stderr.contains("ended as done"),
            "{}",
            after.to_block()
        );
        assert_large_artifacts(&project, kib);
        if !is_interrupted {
            project.assert_intact();
        }
    }
}

#[test]
fn a_person_that_answers_beyond_the_limit_is_told() {
    let project = ShellProject::new();
    project.write("flow.yaml", crate::shell_project::workflow_with_question());
    project.write("agent.sh", AGENT);
    assert_eq!(project.run_workflow("flow.yaml", SHELL_AGENT).code, Some(4));
    run_limited(&project, 0, &["answer", "last", "approve", "yes"])
        .expect(NO_ROOM, &["`ulimit -f`", "raise that limit"]);
    assert_eq!(project.show_last()["outcome"], "waiting");
    project.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert_eq!(project.count_events("answered"), 1);
    project.assert_intact();
}

#[test]
fn an_output_that_reaches_the_limit_does_not_kill_the_program() {
    let project = ShellProject::with_agent("", AGENT);
    let output = project.start_command(&mut limited(&project, 100, &["--help"])).wait();
    output.expect(NO_ROOM, &["File too large"]);
    assert_eq!(output.stdout.len(), 100);
}

#[test]
fn output_that_is_lost_is_no_success() {
    let project = ShellProject::with_agent("", AGENT);
    for arguments in [&["--version"][..], &["--help"], &["check", "--help"]] {
        let mut command = project.command(arguments);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = command.as_std().stdout(full).status().unwrap();
        assert_eq!(status.code(), Some(NO_ROOM), "{arguments:?}");
    }
}
