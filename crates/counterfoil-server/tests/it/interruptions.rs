//! Runs whose process died: nothing of them is shown as work that goes on.

use crate::runs::{Run, Sample, attempt, now};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{Event, Resumed, Usage};

const HOUR: i64 = 3_600_000;

/// A run of which a process died while it worked at two steps, five seconds after the first of them
/// had started.
fn left(journal: &Journal) -> Run {
    let sample = Sample { at: now() - 2 * HOUR, ..Sample::default() };
    let mut run = Run::of(journal, "a", &sample);
    run.add(&[attempt(&["Work"])]).later(4_999).add(&[attempt(&["Other"])]);
    run
}

/// The same run, which another process took up an hour later.
fn taken_up(journal: &Journal) -> Run {
    let mut run = left(journal);
    let resumed = Resumed { by: "ann".to_owned(), ..Resumed::default() };
    let lost = |attempt: &str| Event::AttemptLost {
        attempt: attempt.to_owned(),
        usage: Usage::default(),
        changed: Vec::new(),
    };
    run.later(HOUR).add(&[Event::RunResumed(Box::new(resumed)), lost("Work#1"), lost("Other#1")]);
    run
}

#[test]
fn an_interrupted_run_is_not_at_work() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    left(&journal).rest();
    let page = site.page("/runs/a");
    for is_missing in ["data-elapsed", "data-worked", "at work", "At work", "class=\"pulse\""] {
        assert!(!page.contains(is_missing), "{is_missing}: {page}");
    }
    let marks = page.matches("‖</span> interrupted").count();
    assert_eq!(marks, 3, "of the run and of its two attempts: {page}");
    assert!(page.contains("its driver process exited"), "{page}");
    assert!(page.contains("data-label=\"Took\">5 s</td>"), "{page}");
    let page = site.page("/runs/a/attempts/Work%231");
    assert!(page.contains("‖</span> interrupted") && !page.contains("at work"), "{page}");
    assert!(page.contains("<p class=\"reason\">its driver process exited</p>"), "{page}");
    assert!(page.contains("<dt>Took</dt><dd>5 s</dd>") && !page.contains("data-elapsed"), "{page}");
    assert!(!site.page("/").contains("data-worked"));
}

#[test]
fn the_time_of_a_run_at_work_counts_on() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = left(&journal);
    for target in ["/", "/runs/a"] {
        let page = site.page(target);
        assert_eq!(page.matches(" data-worked>").count(), 1, "{target}: {page}");
    }
    assert!(site.page("/runs/a").contains("data-worked>5 s</time>"));
    let page = site.page("/runs/a/attempts/Work%231");
    let (_, took) = page.split_once("<dt>Took</dt><dd>").unwrap();
    assert!(took.starts_with("<time datetime=") && page.contains(" data-elapsed>"), "{page}");
}

#[test]
fn the_time_until_a_run_is_taken_up_again_is_no_work() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = taken_up(&journal);
    let page = site.page("/runs/a");
    assert!(page.contains("data-label=\"Took\">5 s</td>"), "{page}");
    assert!(page.contains("data-label=\"Took\">0 ms</td>"), "{page}");
    assert!(!page.contains("data-label=\"Took\">1 h"), "{page}");
    let page = site.page("/runs/a/attempts/Work%231");
    assert!(page.contains("<dt>Took</dt><dd>5 s</dd>"), "{page}");
}

#[test]
fn what_was_interrupted_stays_so_when_the_run_is_taken_up_again() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = taken_up(&journal);
    let page = site.page("/runs/a");
    let marks = page.matches("‖</span> interrupted").count();
    assert_eq!(marks, 4, "two rows, and two times what went wrong: {page}");
    assert!(!page.contains("cancelled"), "{page}");
    assert!(page.contains("Only the 2 with trouble"), "{page}");
    for target in ["/runs/a/attempts/Work%231", "/health/attempts"] {
        let page = site.page(target);
        assert!(page.contains("‖</span> interrupted"), "{target}: {page}");
        assert!(!page.contains("cancelled") && !page.contains("</span> failed"), "{page}");
    }
}

#[test]
fn nothing_more_is_expected_of_an_interrupted_attempt() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = left(&journal);
    let target = "/runs/a/attempts/Work%231";
    let page = site.page(target);
    assert!(page.contains("There is no reply yet."), "{page}");
    assert!(page.contains("What it changes is shown when it has ended."), "{page}");
    let is_over = |page: &str| {
        page.contains("There is no reply.")
            && page.contains("It was interrupted before it was observed what changed.")
    };
    let lost = Event::AttemptLost {
        attempt: "Work#1".to_owned(),
        usage: Usage::default(),
        changed: vec![],
    };
    run.add(&[lost]);
    let page = site.page(target);
    assert!(is_over(&page), "{page}");
    run.rest();
    let page = site.page("/runs/a/attempts/Other%231");
    assert!(is_over(&page), "{page}");
}
