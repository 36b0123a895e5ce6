//! A resumed run continues with its counts, its feedback and its waiting agents.

use super::{ASKED, analysis, envelope, feedback, finding, good, play, then_all_goes_well, worked};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;

/// A full run whose analysis finds something twice; `plan` hangs in the middle of the second round.
fn struck(delay: u64) -> Scenario {
    let found = || envelope("analyze", &analysis(&[finding("HIGH", "design_flaw")]));
    let scenario = play().built_in_only();
    let scenario =
        good(good(scenario, "plan").says("analyze", found()), "plan").says("analyze", found());
    let scenario = good(scenario, "plan").writes("specs/search/hung.md", "here\n").delay(delay);
    then_all_goes_well(scenario.says("analyze", found()))
}

#[test]
fn a_kill_in_the_middle_of_a_round_resets_no_count() {
    let arguments = [&ASKED[..], &["--input", "size=full"]].concat();
    let mut live = struck(60_000).start(&arguments);
    live.wait_until("the second round began", |project| {
        let transcripts = project.path(".counterfoil/transcripts");
        std::fs::read_dir(transcripts).is_ok_and(|mut runs| {
            runs.any(|run| run.is_ok_and(|run| run.path().join("plan_3.1.prompt").exists()))
        })
    });
    let killed = ScenarioRun::show(live.kill());
    let ran = struck(0).resume(&killed, &[]);
    // The third finding is one too many: both rounds were counted.
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["decide"]), "{ran:?}");
    let last = worked(&ran).iter().filter(|name| *name == "plan").count();
    assert_eq!(last, 4, "only what was in flight was done again: {:?}", ran.attempts());
    assert_eq!(feedback(&ran, "plan#4")["iteration"], 2);
    let ran = ran.answer_and_resume("decide", "proceed");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn a_run_that_waits_goes_on_and_repeats_nothing() {
    let scenario = super::AGENTS.into_iter().fold(play(), good);
    let ran = scenario.run(&ASKED);
    assert_eq!(ran.questions(), ["approve"]);
    let ran = ran.answer_and_resume("approve", "proceed");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        worked(&ran),
        ["specify", "clarify", "plan", "tasks", "implement", "test", "review"]
    );
}
