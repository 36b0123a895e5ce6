//! Commands and checks that failed, and claims that stopped a run, in everything that shows a run. The
//! outcome of a command that failed is `accepted`, because the workflow decides what follows from it.

use crate::PROGRAM;
use crate::runs::project::{WorkflowProject, looping, replies};
use counterfoil_testkit::TestProject;

/// A workflow whose command fails, which ends like this.
fn failing(end: &str) -> String {
    format!(
        "
workflow: gated
start: test
states:
  test:
    command: [sh, -c, 'echo three tests failed >&2; exit 3']
    go: over
  over: {{ end: {end} }}
"
    )
}

fn report(project: &TestProject, arguments: &[&str], format: &str, code: i32) -> String {
    let output = project.run(&[arguments, &["--format", format]].concat());
    output.expect(code, &[]);
    output.stdout
}

#[test]
fn a_command_that_failed_is_shown_as_a_failure() {
    let project = WorkflowProject::new(&failing("blocked"), "");
    project.run(&["run", "flow.yaml"]).expect(7, &["✗ test: exit code 3"]);
    let step = project.run(&["show", "last", "test"]);
    step.expect(0, &["✗ test: command: failed: exit code 3: three tests failed", " --reply\n"]);
    assert!(!step.stdout.contains("accepted"), "{}", step.stdout);
    // A command has no prompt.
    assert!(!step.stdout.contains("--prompt"), "{}", step.stdout);
    let trouble = project.run(&["show", "last", "--trouble"]);
    trouble.expect(0, &["✗ test: command: failed: exit code 3: three tests failed\n"]);
    let junit = report(&project, &["run", "flow.yaml"], "junit", 7);
    let failure = "<failure message=\"exit code 3: three tests failed\" type=\"failed\"/>";
    assert!(junit.contains(failure) && junit.contains("failures=\"2\""), "{junit}");
    let github = report(&project, &["run", "flow.yaml"], "github", 7);
    let annotation = "::error title=test #1%3A failed::exit code 3: three tests failed\n";
    assert!(github.starts_with(annotation), "{github}");
}

#[test]
fn a_command_that_failed_is_no_success_in_a_run_that_is_done() {
    let project = WorkflowProject::new(&failing("done"), "");
    let junit = report(&project, &["run", "flow.yaml"], "junit", 0);
    let skipped = "<skipped message=\"failed: exit code 3: three tests failed\"/>";
    assert!(junit.contains(skipped) && junit.contains("failures=\"0\""), "{junit}");
    let github = report(&project, &["run", "flow.yaml"], "github", 0);
    let annotation = "::warning title=test #1%3A failed::exit code 3: three tests failed\n";
    assert!(github.starts_with(annotation), "{github}");
    project
        .run(&["show", "last", "--trouble"])
        .expect(0, &["✗ test: command: failed: exit code 3"]);
}

#[test]
fn a_command_that_succeeds_later_corrects_the_failure() {
    let flow = "
workflow: gated
limits: { rounds: { max: 3, then: over } }
start: test
states:
  test:
    command: [sh, -c, 'test -e ready || { touch ready; exit 1; }']
    next: [{ when: result.ok, go: over }, { go: test, counts: rounds }]
  over: { end: blocked }
";
    let project = WorkflowProject::new(flow, "");
    let ran = project.run(&["run", "flow.yaml"]);
    ran.expect(7, &[]);
    let ending = ran.stderr.rsplit("✗ blocked").next().unwrap_or_default();
    assert!(!ending.contains("test"), "{}", ran.stderr);
    let trouble = project.run(&["show", "last", "--trouble"]).stdout;
    assert!(trouble.starts_with("↺ test: command: failed: exit code 1"), "{trouble}");
    assert!(trouble.trim_end().ends_with("; a later attempt succeeded"), "{trouble}");
}

#[test]
fn checks_that_failed_are_shown_as_a_failure() {
    let flow = looping(3)
        .replace("limits: { rounds: { max: 3, then: over } }\n", "")
        .replace("agent: worker,", "agent: worker, checks: [unit],")
        .replace("when: result.ok,", "when: 'checks.unit.status == \"passed\"',")
        .replace("{ go: work, counts: rounds }", "{ go: over }");
    let project = WorkflowProject::new(&flow, &replies(&[r#"text: '{"ok": true}'"#]));
    project.write("counterfoil.toml", "[checks]\nunit = \"echo no; false\"\n");
    project.init_git();
    project.commit_all("base");
    assert_eq!(project.run_workflow().ended(), ("exhausted", None, 6));
    let step = project.run(&["show", "last", "work/checks"]);
    step.expect(0, &["✗ ", ": failed: unit failed: `echo no; false` exited with 1"]);
    assert!(!step.stdout.contains("accepted"), "{}", step.stdout);
    let trouble = project.run(&["show", "last", "--trouble"]);
    trouble.expect(0, &[": failed: unit failed: `echo no; false` exited with 1"]);
}

#[test]
fn a_command_that_failed_is_not_folded_as_finished() {
    let rounds = (0..25).map(|round| format!(r#"text: '{{"ok": false, "note": "{round}"}}'"#));
    let all: Vec<String> = rounds.chain([r#"text: '{"ok": true}'"#.to_owned()]).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let flow = looping(30)
        .replace("start: work", "start: first")
        .replace("states:\n", "states:\n  first: { command: ['false'], go: work }\n");
    let project = WorkflowProject::new(&flow, &replies(&all));
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("stty rows 20 cols 100; '{program}' show");
    let screen = project.command_of("script", &["-qefc", &line, "/dev/null"]).output().stdout;
    assert!(screen.contains("first: command: exit code 1"), "{screen}");
    assert!(screen.contains(" finished: work"), "{screen}");
}

/// A project whose agent claims that two checks pass: `lint`, in a field with this name, fails, and
/// `unit`, whose claim has this policy, cannot be run.
fn claiming(lint: &str, unit: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("counterfoil.toml", "[checks]\nlint = \"false\"\nunit = \"no-such-program\"\n");
    project.write(
        "contracts/fix.yaml",
        format!(
            "contract: acme/fix\nversion: 1\nfields: {{ {lint}: boolean, unit_passes: boolean }}\n\
             claims:\n  {lint}: {{ kind: command, check: lint }}\n  \
             unit_passes: {{ kind: command, check: unit, policy: {unit} }}\n"
        ),
    );
    project.write(
        "fix.yaml",
        "workflow: fix\nagents:\n  fixer: { contract: acme/fix, prompt: Fix it. }\n\
         contracts: [contracts]\nstart: fix\nstates:\n  \
         fix: { agent: fixer, repairs: 0, go: done }\n  done: { end: done }\n",
    );
    project.write(
        "script.yaml",
        format!(
            "replies:\n  - {{ agent: fixer, text: '{{\"{lint}\": true, \"unit_passes\": true}}' }}\n"
        ),
    );
    project.commit_all("start");
    project
}

const RUN: [&str; 4] = ["run", "fix.yaml", "--agent", "script:script.yaml"];

#[test]
fn the_claim_that_stopped_a_run_is_the_cause_and_not_one_that_is_only_recorded() {
    let project = claiming("lint_passes", "require");
    let github = report(&project, &RUN, "github", 3);
    let lines: Vec<&str> = github.lines().collect();
    assert_eq!(lines.len(), 3, "{github}");
    assert!(lines[0].starts_with("::error title=fix #1%3A lint_passes refuted::"), "{github}");
    let blocking = "::error title=fix #1%3A unit_passes unverifiable::";
    assert!(lines[1].starts_with(blocking), "{github}");
    assert!(lines[2].ends_with("::because of fix #1: unit_passes unverifiable"), "{github}");
    let junit = report(&project, &RUN, "junit", 3);
    assert!(junit.contains(" type=\"unverifiable\""), "{junit}");
    assert!(junit.contains("<skipped message=\"refuted: "), "{junit}");
}

#[test]
fn each_visit_has_the_annotations_of_its_claims() {
    let project = claiming("lint_passes", "ignore");
    let flow = project.read("fix.yaml");
    project.write(
        "fix.yaml",
        flow.replace("start: fix\n", "start: fix\nlimits: { rounds: { max: 1, then: done } }\n")
            .replace("go: done }", "next: [{ go: fix, counts: rounds }] }"),
    );
    project.write(
        "contracts/fix.yaml",
        "contract: acme/fix\nversion: 1\nfields: { files: [string] }\n\
         claims: { files: { kind: files-changed } }\n",
    );
    project.write(
        "script.yaml",
        "replies:\n  - { agent: fixer, writes: { a.txt: a }, text: '{\"files\": [\"b.txt\"]}' }\n  \
         - { agent: fixer, writes: { c.txt: c }, text: '{\"files\": [\"c.txt\"]}' }\n",
    );
    project.commit_all("files");
    let github = report(&project, &RUN, "github", 0);
    let refuted = "::warning title=fix #1%3A files refuted::";
    assert!(github.starts_with(refuted), "{github}");
    assert_eq!(github.matches(" refuted::").count(), 1, "{github}");
}

#[test]
fn a_field_with_the_name_of_a_claim_of_the_engine_keeps_its_annotation() {
    let project = claiming("protected", "ignore");
    let github = report(&project, &RUN, "github", 0);
    assert!(github.starts_with("::warning title=fix #1%3A protected refuted::"), "{github}");
}
