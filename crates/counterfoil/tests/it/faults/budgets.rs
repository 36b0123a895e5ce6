//! Budgets of a run and of one attempt, and attempts that are running when a budget is exceeded.

use crate::shell_project::{SHELL_AGENT, ShellProject, agent_workflow, run_arguments};
use counterfoil_testkit::{TIMEOUT, wait_until};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A script that finds something else each time, three times, at this price.
const PAID: &str = r#"
replies:
  - { agent: worker, text: '{"ok": false, "note": "a"}', usage: { input_tokens: 60, output_tokens: 40, cost_usd: 0.5 } }
  - { agent: worker, text: '{"ok": false, "note": "b"}', usage: { input_tokens: 60, output_tokens: 40, cost_usd: 0.5 } }
  - { agent: worker, text: '{"ok": false, "note": "c"}', usage: { input_tokens: 60, output_tokens: 40, cost_usd: 0.5 } }
  - { agent: worker, text: '{"ok": true}', usage: { input_tokens: 60, output_tokens: 40, cost_usd: 0.5 } }
"#;

/// A loop that goes round until the agent is content, at most ten times.
fn rounds(more: &str) -> ShellProject {
    let project = ShellProject::new();
    let next = "work: { agent: worker, next: [{ when: result.ok, go: end }, { go: work, counts: rounds }] }";
    project.write(
        "flow.yaml",
        agent_workflow("").replace("work: { agent: worker, go: end }", next)
            + "limits: { rounds: { max: 10, then: end } }\n"
            + more,
    );
    project.write("script.yaml", PAID);
    project
}

/// Runs the loop and asserts that it exceeded its budget for this reason, after so many attempts.
fn out_of_budget(project: &ShellProject, flags: &[&str], words: &str, attempts: usize) {
    let mut arguments = run_arguments("flow.yaml", "script:repo/script.yaml").to_vec();
    arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let output = project.run(&arguments);
    output.expect(6, &[words]);
    let report = output.json();
    assert_eq!(
        (&report["outcome"], &report["cause"]),
        (&Value::from("budget"), &Value::Null),
        "{output:?}"
    );
    assert!(report["reason"].as_str().unwrap().contains(words), "{}", report["reason"]);
    assert_eq!(report["attempts"].as_array().unwrap().len(), attempts, "{output:?}");
    project.assert_intact();
}

/// As [`out_of_budget`], and the run cannot be reopened with the same budget.
fn out_of_budget_for_good(project: &ShellProject, flags: &[&str], words: &str, attempts: usize) {
    out_of_budget(project, flags, words, attempts);
    project.run(&["resume", "last"]).expect(2, &["would end as budget again at once", "--max-"]);
}

#[test]
fn without_a_budget_the_loop_ends_by_itself() {
    let project = rounds("");
    let output = project.run_workflow("flow.yaml", "script:repo/script.yaml");
    output.expect(0, &[]);
    assert_eq!(output.json()["usage"]["input_tokens"], 240);
}

#[test]
fn tokens_are_counted_over_the_whole_run() {
    out_of_budget_for_good(&rounds(""), &["--max-tokens", "200"], "200 of 200 tokens are used", 2);
    out_of_budget_for_good(&rounds(""), &["--max-tokens", "250"], "and the run had 50 left", 3);
}

#[test]
fn cost_is_counted_over_the_whole_run() {
    out_of_budget_for_good(&rounds(""), &["--max-cost", "1.50"], "$1.50 of $1.50 are spent", 3);
}

#[test]
fn the_workflow_sets_budgets_too_and_the_command_line_wins() {
    out_of_budget_for_good(&rounds("budget: { tokens: 100 }\n"), &[], "100 of 100 tokens", 1);
    out_of_budget_for_good(
        &rounds("budget: { tokens: 100 }\n"),
        &["--max-tokens", "200"],
        "200 of 200 tokens",
        2,
    );
}

#[test]
fn attempts_and_iterations_are_budgets_as_well() {
    // The command before is an attempt as well.
    out_of_budget_for_good(
        &rounds("budget: { attempts: 3 }\n"),
        &[],
        "3 of 3 attempts were started",
        2,
    );
    out_of_budget_for_good(
        &rounds("iterations: rounds\nbudget: { iterations: 2 }\n"),
        &[],
        "iteration 3 would be more than 2",
        2,
    );
}

#[test]
fn one_attempt_has_a_budget_of_its_own() {
    let project = rounds("");
    let flow = project
        .read_or_empty("flow.yaml")
        .replace("work: { agent: worker,", "work: { agent: worker, budget: { tokens: 50 },");
    project.write("flow.yaml", flow);
    let words = "this step used 100 tokens, and its limit is 50";
    out_of_budget(&project, &[], words, 1);
    // The step may do better another time, so the run can be reopened.
    project.run(&["resume", "last"]).expect(6, &["reopened in 'work'", words]);
}

#[test]
fn time_runs_out_while_an_agent_is_at_work() {
    let project = ShellProject::with_agent("", "sleep 300\n");
    let mut arguments = run_arguments("flow.yaml", SHELL_AGENT).to_vec();
    arguments.extend(["--max-time".to_owned(), "1s".to_owned()]);
    let began = Instant::now();
    let output = project.run(&arguments);
    let took = began.elapsed();
    output.expect(6, &["1 s"]);
    let report = output.json();
    assert_eq!(report["outcome"], "budget");
    assert_eq!(report["attempts"][0]["outcome"], "cancelled");
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(10), "{took:?}");
    project.assert_intact();
}

#[test]
fn time_is_counted_over_kills_and_resumes_but_not_while_nobody_works() {
    let project = ShellProject::with_agent("", "touch up; sleep 300\n");
    let mut arguments = run_arguments("flow.yaml", SHELL_AGENT).to_vec();
    arguments.extend(["--max-time".to_owned(), "3s".to_owned()]);
    let live = project.start(&arguments);
    wait_until(TIMEOUT, "the agent is up", || project.repo().join("up").exists().then_some(()));
    assert!(live.kill());
    // Longer than the budget, and nobody is at work: it must not count, or there would be no second
    // attempt.
    std::thread::sleep(Duration::from_millis(3100));
    let began = Instant::now();
    let output = project.run(&["resume", "last", "--format", "json"]);
    output.expect(6, &["3 s"]);
    // What the first life used does count.
    assert!(began.elapsed() > Duration::from_millis(100), "{:?}", began.elapsed());
    assert_eq!(output.json()["attempts"].as_array().unwrap().len(), 2);
    project.assert_intact();
}
