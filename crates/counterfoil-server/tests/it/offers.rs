//! What pages offer to do with a run: what the server does, and else the command line for it.

use crate::runs::{self, Run, Sample};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{
    AttemptOutcome, Budget, Ended, Event, Form, Outcome, TransitionTaken, Usage, check,
};
use std::collections::BTreeMap;

const RESUME: &str = "data-post=\"/api/v1/runs/stopped/resume\"";

/// An interrupted run, and one that failed.
fn two_runs(site: &Site) {
    let journal = Journal::open(&site.state("state")).unwrap();
    Run::start(&journal, "stopped").rest();
    Run::start(&journal, "failed").end(Outcome::Failed);
}

#[test]
fn a_server_that_resumes_runs_offers_it() {
    let site = Site::start();
    two_runs(&site);
    for target in ["/", "/?view=needs-me", "/runs/stopped"] {
        let page = site.page(target);
        assert!(page.contains(RESUME), "{target}: {page}");
        assert!(page.contains("it waits to be resumed"), "{target}: {page}");
    }
    let page = site.page("/runs/failed");
    assert!(page.contains("data-action=\"/api/v1/runs/failed/resume\""), "{page}");
    assert!(!page.contains("this server does not do it"), "{page}");
}

/// A workflow with limits of its own.
const LIMITED: &str = "
workflow: limited
start: one
limits:
  tries: { max: 2, then: done }
states:
  one: { command: [make], next: [{ when: result.ok, go: one, counts: tries }, { go: done }] }
  done: { end: done }
";

#[test]
fn a_limit_of_a_workflow_is_raised_by_a_command() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let files: BTreeMap<String, String> = [("flow.yaml".to_owned(), LIMITED.to_owned())].into();
    let registry = counterfoil_contract::Registry::new();
    let bundle = check("flow.yaml", &files, &registry).unwrap().bundle.to_bytes().unwrap();
    let sample = Sample { bundle, ..Sample::default() };
    Run::of(&journal, "limited", &sample).end(Outcome::Exhausted);
    Run::start(&journal, "other").end(Outcome::Exhausted);
    let page = site.page("/runs/limited");
    assert!(page.contains("resume limited --because REASON --limit tries=N --state /"), "{page}");
    let page = site.page("/runs/other");
    assert!(!page.contains("--limit"), "{page}");
}

#[test]
fn a_run_that_used_up_a_part_of_its_budget_has_to_be_given_more_of_it() {
    let budgets = [
        ("max_cost", Budget { cost_usd: Some(1.5), ..Budget::default() }),
        ("max_time", Budget { time_ms: Some(4), ..Budget::default() }),
        ("max_attempts", Budget { attempts: Some(1), ..Budget::default() }),
        ("max_tokens", Budget { tokens: Some(30), ..Budget::default() }),
        ("max_iterations", Budget { iterations: Some(2), ..Budget::default() }),
    ];
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    for (needed, budget) in budgets {
        let mut run = Run::of(&journal, needed, &Sample { budget, ..Sample::default() });
        let mut ended = Ended::new("Work#1", AttemptOutcome::Accepted);
        ended.usage = Usage { input_tokens: 20, output_tokens: 10, cost_usd: 1.5, wall_ms: 4 };
        let taken = TransitionTaken {
            from: "one".to_owned(),
            to: "one".to_owned(),
            iteration: Some(3),
            ..TransitionTaken::default()
        };
        run.add(&[runs::attempt(&["Work"])]);
        run.later(100)
            .add(&[Event::AttemptEnded(Box::new(ended)), Event::TransitionTaken(Box::new(taken))]);
        run.end(Outcome::Failed);
        let page = site.page(&format!("/runs/{needed}"));
        for (name, _) in page
            .split("<input name=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('>').filter(|(input, _)| input.starts_with("max_")))
        {
            let is_needed = name.starts_with(needed);
            assert_eq!(name.contains(" required"), is_needed, "{needed}: {name}");
        }
        assert_eq!(page.matches("<input name=\"max_").count(), 5, "{page}");
        let part = needed.trim_start_matches("max_");
        assert!(page.contains(&format!("used up its limit of {part}.")), "{page}");
    }
}

#[test]
fn an_answered_run_says_so_and_can_be_resumed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "stopped");
    run.summary.outcome = Some("answered".to_owned());
    run.add(&[runs::tick()]);
    run.rest();
    for target in ["/?view=needs-me", "/runs/stopped", "/inbox"] {
        let page = site.page(target);
        assert!(page.contains("It was answered, and waits to be resumed."), "{target}: {page}");
        assert!(page.contains(RESUME), "{target}: {page}");
    }
}

#[test]
fn an_answered_run_with_an_optional_question_waits_to_be_resumed() {
    let site = Site::start();
    let (_journal, mut run) = runs::asking(&site.state("state"));
    for target in ["/inbox", "/runs/a"] {
        let page = site.page(target);
        assert!(!page.contains("(optional)") && !page.contains("resumed."), "{target}: {page}");
    }
    let mut note = runs::asked("note", "Anything else?", Form::Text);
    note.optional = true;
    let answered = Event::Answered {
        question: "ok".to_owned(),
        answer: "yes".to_owned(),
        by: "somebody".to_owned(),
        from: None,
    };
    run.summary.outcome = Some("answered".to_owned());
    run.add(&[Event::Asked { frame: String::new(), questions: vec![note] }, answered]);
    run.rest();
    for target in ["/inbox", "/runs/a"] {
        let page = site.page(target);
        for part in [
            "Anything else? <span class=\"mute\">(optional)</span>",
            "<p class=\"rests\">It was answered, and waits to be resumed.</p>",
            "data-post=\"/api/v1/runs/a/resume\"",
            "<strong class=\"pre\">yes</strong> <span class=\"mute\">answered by somebody,",
        ] {
            assert!(page.contains(part), "{target}: {part}: {page}");
        }
        assert!(!page.contains("May it go out?</p>"), "{target}: {page}");
    }
    let listed = |group: &str| site.api(&format!("/runs?group={group}"))["runs"].to_string();
    assert_eq!(listed("needs-answer"), "[]");
    assert!(listed("needs-person").contains("\"answered\""));
}

#[test]
fn the_inbox_resumes_a_run_that_needs_no_answer_any_more() {
    const RESUME: &str = "data-post=\"/api/v1/runs/a/resume\"";
    let answered = || Event::Answered {
        question: "ok".to_owned(),
        answer: "yes".to_owned(),
        by: "somebody".to_owned(),
        from: None,
    };
    let site = Site::start();
    let (_journal, mut run) = runs::asking(&site.state("state"));
    assert!(!site.page("/inbox").contains("/resume"), "it is driven, and asks");
    run.summary.outcome = Some("answered".to_owned());
    run.summary.questions = 0;
    run.add(&[answered()]);
    assert!(!site.page("/inbox").contains("/resume"), "it is driven");
    run.rest();
    let page = site.page("/inbox");
    assert_eq!(page.matches(RESUME).count(), 1, "{page}");
    assert_eq!(page.matches("It was answered, and waits to be resumed.").count(), 1, "{page}");
    assert!(!page.contains("class=\"question\"") && !page.contains("Inbox ("), "{page}");

    for site in [Site::beside_a_run(), Site::with(&["state"], false)] {
        let (_journal, mut run) = runs::asking(&site.state("state"));
        run.summary.outcome = Some("answered".to_owned());
        run.summary.questions = 0;
        run.add(&[answered()]);
        run.rest();
        let page = site.page("/inbox");
        assert!(page.contains("counterfoil resume a --state /"), "{page}");
        assert!(!page.contains("data-post"), "{page}");
    }
}

#[test]
fn the_inbox_resumes_no_run_with_a_question_that_has_to_be_answered() {
    let site = Site::start();
    let (_journal, mut run) = runs::asking(&site.state("state"));
    // The process died while it worked at something else.
    run.summary.outcome = None;
    run.add(&[runs::attempt(&["Other"])]);
    run.rest();
    let page = site.page("/inbox");
    assert!(page.contains("May it go out?") && !page.contains("/resume"), "{page}");
}

#[test]
fn a_run_that_is_driven_is_not_resumed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = Run::start(&journal, "stopped");
    for target in ["/", "/runs/stopped"] {
        let page = site.page(target);
        assert!(!page.contains(RESUME), "{target}: {page}");
        assert!(!page.contains("waits to be resumed"), "{target}: {page}");
    }
}

#[test]
fn a_server_beside_a_run_shows_the_commands_for_what_it_does_not_do() {
    let site = Site::beside_a_run();
    two_runs(&site);
    let list = site.page("/");
    assert!(!list.contains("/resume") && list.contains("it waits to be resumed"), "{list}");
    for (run, command) in [
        ("stopped", "counterfoil resume stopped --state /"),
        ("failed", "counterfoil resume failed --because REASON --state /"),
    ] {
        let page = site.page(&format!("/runs/{run}"));
        assert!(page.contains(command), "{page}");
        assert!(!page.contains("/resume\""), "{page}");
    }
    let page = site.page("/runs/stopped");
    assert!(page.contains("data-post=\"/api/v1/runs/stopped/cancel\""), "{page}");
}

#[test]
fn a_server_that_only_shows_runs_has_neither_forms_nor_buttons() {
    let site = Site::with(&["state"], false);
    let _run = runs::asking(&site.state("state"));
    for target in ["/runs/a", "/inbox"] {
        let page = site.page(target);
        for choice in ["yes", "no"] {
            let command =
                format!("<pre class=\"command\">counterfoil answer a ok {choice} --state /");
            assert!(page.contains(&command), "{command}: {page}");
        }
        assert!(!page.contains("name=\"answer\"") && !page.contains("data-post"), "{page}");
    }
    let page = site.page("/runs/a");
    assert!(page.contains("counterfoil cancel a --state /"), "{page}");
}
