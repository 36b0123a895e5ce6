//! Whether agents are at work: events tell nothing between the beginning and the end of an attempt.

use crate::runs::{self, Run, Sample, attempt};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use std::fs::File;
use std::time::{Duration, SystemTime};

/// Where an attempt at work writes its first reply.
const GROWING: &str = "transcripts/a/Work_1.1";

/// A run whose attempt began so many minutes ago.
fn at_work(site: &Site, minutes: i64) -> (Journal, Run) {
    let journal = Journal::open(&site.state("state")).unwrap();
    let at = runs::now() - minutes * 60_000;
    let mut run = Run::of(&journal, "a", &Sample { at, ..Sample::default() });
    run.add(&[attempt(&["Work"])]);
    (journal, run)
}

/// Lets the agent have written last so many minutes ago.
fn wrote(site: &Site, minutes: u64) {
    runs::write(&site.state("state"), GROWING, "I work.\n");
    let at = SystemTime::now() - Duration::from_secs(minutes * 60);
    let file = File::options().write(true).open(site.state("state").join(GROWING)).unwrap();
    file.set_modified(at).unwrap();
}

#[test]
fn a_run_is_silent_if_neither_it_nor_its_agent_told_anything() {
    for (began, last, silent) in [
        (9, None, false),
        (25, None, true),
        (25, Some(0), false),
        (25, Some(9), false),
        (25, Some(11), true),
    ] {
        let site = Site::start();
        let _run = at_work(&site, began);
        if let Some(minutes) = last {
            wrote(&site, minutes);
        }
        let html = site.page("/");
        assert_eq!(html.contains("silent for"), silent, "{began} {last:?}: {html}");
        if last == Some(11) {
            assert!(html.contains("silent for 11 min"), "{html}");
        }
    }
}

#[test]
fn the_page_of_a_run_says_when_its_agent_wrote_last() {
    const WORDS: &str = "last activity of the agent";
    let site = Site::start();
    let (_journal, _run) = at_work(&site, 25);
    assert!(!site.page("/runs/a").contains(WORDS));
    wrote(&site, 11);
    let html = site.page("/runs/a");
    let (_, after) = html.split_once(WORDS).unwrap();
    let (_, rest) = after.split_once("datetime=\"").unwrap();
    let (time, _) = rest.split_once('"').unwrap();
    // It is made again when the agent goes on, without an event.
    let (_, rest) = html.split_once("hx-sse:connect=\"").unwrap();
    let address = rest.split_once('"').unwrap().0.replace("&amp;", "&").replace("&#38;", "&");
    let mut stream = site.get(&address).follow();
    wrote(&site, 0);
    let message = stream.next();
    assert!(message.data.contains(WORDS) && !message.data.contains(time), "{message:?}");
}
