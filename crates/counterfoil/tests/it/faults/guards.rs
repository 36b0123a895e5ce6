//! Guards that fail at run time, because the checker could not know the values.

use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow};

/// A run whose agent returns this result, which a guard then evaluates.
fn guarded(guard: &str, result: &str) -> ShellProject {
    let project = ShellProject::new();
    project.write(
        "contracts/ok.yaml",
        "contract: acme/ok\nversion: 1\nfields: { n: integer, list: [string] }\nexamples: [{ n: 1, list: [] }]\n",
    );
    let next =
        format!("work: {{ agent: worker, next: [{{ when: '{guard}', go: end }}, {{ go: end }}] }}");
    project
        .write("flow.yaml", agent_workflow("").replace("work: { agent: worker, go: end }", &next));
    project.write("agent.sh", format!("echo '{result}'\n"));
    project
}

#[test]
fn a_guard_that_divides_by_zero_says_so() {
    let project = guarded("10 / result.n > 1", r#"{"n": 0, "list": []}"#);
    let report =
        project.assert_run_ends(SHELL_AGENT, 1, "failed", None, &["10 / result.n > 1", "zero"]);
    assert_eq!(report["state"], "work");
    // The result itself was good, and is kept.
    assert_eq!(report["attempts"][0]["outcome"], "accepted");
}

#[test]
fn a_guard_that_looks_past_the_end_of_a_list_says_so() {
    let project = guarded("result.list[3] == \"x\"", r#"{"n": 1, "list": ["a"]}"#);
    let report = project.assert_run_ends(SHELL_AGENT, 1, "failed", None, &["result.list[3]"]);
    assert_eq!(report["attempts"][0]["outcome"], "accepted");
}
