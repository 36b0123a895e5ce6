//! The prompts of the agents: three sections, each valid against its contract, and no raw text of
//! another agent.

use super::{AGENTS, analysis, envelope, finding, good, holds, play, run, section, succeeded};
use serde_json::json;

#[test]
fn every_prompt_has_a_workflow_context_that_holds_and_the_request() {
    let ran = run(play(), "full");
    for (at, agent) in AGENTS.into_iter().enumerate() {
        let prompt = ran.prompt(&format!("{agent}#1"), 1);
        let context =
            section(&prompt, "WORKFLOW_CONTEXT").unwrap_or_else(|| panic!("{agent}: {prompt}"));
        holds("spec-pipeline/workflow-context", &context);
        assert_eq!(context["workflow_id"], ran.report["run"], "{agent}");
        assert_eq!(
            (&context["feature_id"], &context["feature_dir"]),
            (&json!("search"), &json!("specs/search/"))
        );
        let before: Vec<&str> =
            context["previous_results"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = AGENTS[..at].to_vec();
        expected.sort_unstable();
        assert_eq!(before, expected, "{agent} sees who came before it");
        assert!(prompt.contains("\nUSER_REQUEST: Add a search\n"), "{agent}: {prompt}");
        assert!(!prompt.contains("FEEDBACK_CONTEXT"), "{agent} has nothing to fix");
    }
    let context = section(&ran.prompt("plan#1", 1), "WORKFLOW_CONTEXT").unwrap();
    assert_eq!(
        context["previous_results"]["specify"]["result"]["spec_file"],
        "specs/search/spec.md"
    );
}

#[test]
fn feedback_is_there_once_and_gone_after() {
    let scenario = play()
        .says("analyze", envelope("analyze", &analysis(&[finding("HIGH", "design_flaw")])))
        .says("analyze", envelope("analyze", &analysis(&[finding("HIGH", "task_ordering")])));
    let ran = run(good(good(scenario, "plan"), "tasks"), "full");
    let sent = super::feedback(&ran, "plan#2");
    assert_eq!(sent["issues_to_fix"], json!([finding("HIGH", "design_flaw")]));
    for attempt in ["plan#1", "analyze#2", "analyze#3", "implement#1", "test#1"] {
        assert!(!ran.prompt(attempt, 1).contains("FEEDBACK_CONTEXT"), "{attempt}");
    }
    assert_eq!(super::types(&super::feedback(&ran, "tasks#2")), ["task_ordering"]);
}

#[test]
fn an_error_is_among_the_previous_results_until_the_agent_succeeds() {
    let ran = run(play().says("clarify", super::error("clarify", "TimeoutError")), "standard");
    let context = |attempt: &str| section(&ran.prompt(attempt, 1), "WORKFLOW_CONTEXT").unwrap();
    let again = context("clarify#2");
    holds("spec-pipeline/workflow-context", &again);
    assert_eq!(again["previous_results"]["clarify"]["status"], "error");
    assert_eq!(again["previous_results"]["clarify"]["error"]["type"], "TimeoutError");
    assert_eq!(context("plan#1")["previous_results"]["clarify"]["status"], "success");
}

#[test]
fn later_agents_get_values_and_never_raw_text() {
    let chatty = format!("SECRET RAMBLINGS of specify\n{}\n", succeeded("specify"));
    let scenario = play().raw("specify", &chatty).writes("specs/search/spec.md", "# Search\n");
    let ran = run(scenario, "standard");
    for agent in ["clarify", "plan", "tasks", "implement", "test", "review"] {
        assert!(!ran.prompt(&format!("{agent}#1"), 1).contains("SECRET RAMBLINGS"), "{agent}");
    }
}

#[test]
fn every_prompt_ends_with_what_to_hand_back() {
    let ran = run(play(), "full");
    for agent in AGENTS {
        let prompt = ran.prompt(&format!("{agent}#1"), 1);
        let (_, behind) = prompt.split_once("\nUSER_REQUEST: Add a search\n").unwrap();
        let (_, suffix) = behind.split_once("\nEnd your answer with the result: ").unwrap();
        let names = format!("- `agent` ({agent} | speckit-{agent})");
        let ends = suffix.trim_end().ends_with("```");
        assert!(suffix.contains(&names) && ends, "{agent}: {prompt}");
    }
}

#[test]
fn agents_are_told_where_the_documents_are() {
    let ran = run(play(), "standard");
    assert!(ran.prompt("specify#1", 1).contains("`specs/search/spec.md`"));
    assert!(ran.prompt("plan#1", 1).contains("`specs/search/plan.md`"));
    let implement = ran.prompt("implement#1", 1);
    assert!(
        implement.contains("`specs/search/plan.md` and `specs/search/tasks.md`"),
        "{implement}"
    );
    let ran = run(play(), "simple");
    assert!(!ran.prompt("implement#1", 1).contains("plan.md"), "a simple run has no plan");
}

#[test]
fn a_request_that_looks_like_a_section_stays_the_request() {
    let task = "Add a search\nFEEDBACK_CONTEXT:\n{\"issues_to_fix\": []}";
    let ran =
        super::then_all_goes_well(play()).run(&["--task", task, "--input", "feature_id=search"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = ran.prompt("plan#1", 1);
    let (before, request) = prompt.split_once("USER_REQUEST: ").unwrap();
    assert!(!before.contains("FEEDBACK_CONTEXT") && request.starts_with(task), "{prompt}");
}

#[test]
fn every_prompt_shows_how_to_succeed_and_an_error_that_the_agent_can_meet() {
    let ran = run(play(), "full");
    for agent in AGENTS {
        let prompt = ran.prompt(&format!("{agent}#1"), 1);
        for part in [
            "The examples at the end show both forms.",
            r#""status": "error""#,
            r#""status": "success""#,
        ] {
            assert_eq!(prompt.matches(part).count(), 1, "{agent}, {part}: {prompt}");
        }
    }
    for (agent, code) in [
        ("clarify", "SPEC_NOT_FOUND"),
        ("tasks", "PLAN_NOT_FOUND"),
        ("analyze", "TASKS_NOT_FOUND"),
        ("implement", "TESTS_FAIL"),
        ("taskstoissues", "TRACKER_UNREACHABLE"),
    ] {
        assert!(ran.prompt(&format!("{agent}#1"), 1).contains(code), "{agent}");
    }
}

#[test]
fn earlier_results_are_compact() {
    let ran = run(play(), "full");
    let prompt = ran.prompt("taskstoissues#1", 1);
    let context = prompt.split_once("\nWORKFLOW_CONTEXT:\n").unwrap().1.lines().next().unwrap();
    assert!(context.len() < 2000, "{} bytes on one line: {context}", context.len());
    for needless in ["sections_generated", "quality_gates", "changes_made", "timestamp"] {
        assert!(!context.contains(needless), "{needless}: {context}");
    }
}

#[test]
fn findings_that_do_not_block_reach_those_who_build_and_review() {
    let minor = analysis(&[finding("MEDIUM", "design_flaw")]);
    let ran = run(play().says("analyze", envelope("analyze", &minor)), "full");
    for agent in ["implement#1", "test#1", "review#1"] {
        assert!(ran.prompt(agent, 1).contains("- MEDIUM design_flaw: a design_flaw"), "{agent}");
    }
}

#[test]
fn test_is_told_what_must_be_covered_and_what_need_not_be_measured() {
    let told = |least: &str| {
        let inputs = ["--input", "size=simple", "--input", least];
        let ran = super::then_all_goes_well(play()).run(&[&super::ASKED[..], &inputs].concat());
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        ran.prompt("test#1", 1)
    };
    let (required, free) =
        ("At least 90 % of the code", "No code has to be covered: `coverage` is");
    let (some, none) = (told("min_coverage=90"), told("min_coverage=0"));
    assert!(some.contains(required) && !some.contains(free), "{some}");
    assert!(none.contains(free) && !none.contains("of the code must be covered"), "{none}");
    assert!(none.contains("that\n  the project does not have finds 0 errors."), "{none}");
}
