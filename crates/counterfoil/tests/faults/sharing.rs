//! Several of our processes at one run: one drives it, the others are told, and can leave messages.

use crate::house::{AGENT, House, LONG, Live, house_with, starting, until};

/// An agent that goes on as soon as it is let.
const PATIENT: &str = "touch up\nwhile [ ! -e go ]; do sleep 0.02; done\necho '{\"ok\": true}'\n";

fn up(house: &House) -> Live {
    let live = house.start(&starting("flow.yaml", AGENT));
    until(LONG, "the agent is up", || house.repo().join("up").exists().then_some(()));
    live
}

#[test]
fn a_second_driver_is_told_who_drives() {
    let house = house_with("", PATIENT);
    let live = up(&house);
    let driver = format!("driven by process {}", live.pid());
    house.run(&["resume", "last"]).expect(2, &[&driver, "wait for it, or end that process"]);
    assert_eq!(house.show()["outcome"], "running");
    house.file("go", "");
    live.end().expect(0, &[]);
    house.is_whole();
    assert_eq!(house.show()["attempts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_is_cancelled_from_another_process() {
    let house = house_with("", PATIENT);
    let live = up(&house);
    house.run(&["cancel", "last"]).expect(0, &["cancellation requested"]);
    let said = live.end();
    said.expect(130, &["cancelled by somebody"]);
    assert_eq!(said.report()["outcome"], "cancelled");
    house.is_whole();
    house.run(&["resume", "last"]).expect(2, &["ended as cancelled"]);
}

#[test]
fn a_question_is_answered_from_another_process_while_the_run_is_driven() {
    let house = House::new();
    house.file("agent.sh", PATIENT);
    house.file(
        "flow.yaml",
        "workflow: both\nagents: { worker: { contract: acme/ok, prompt: prompts/work.md } }\ncontracts: [contracts]\n\
         variables: { parts: { type: [string], initial: [ask, work] } }\nstart: before\nstates:\n\
         \x20 before: { command: [sh, -c, 'echo ran >> before'], go: both }\n\
         \x20 both: { each: { in: parts, as: part, key: part, parallel: 2, workspace: repository, run: one, with: { part: part } }, go: end }\n\
         \x20 end: { end: done }\n\
         workflows:\n\
         \x20 one:\n\
         \x20   inputs: { part: string }\n\
         \x20   start: which\n\
         \x20   states:\n\
         \x20     which: { next: [{ when: part == 'ask', go: approve }, { go: work }] }\n\
         \x20     approve: { ask: { question: Go on?, choices: [yes, no] }, go: end }\n\
         \x20     work: { agent: worker, go: end }\n\
         \x20     end: { end: done }\n",
    );
    let live = up(&house);
    let question = house.show()["questions"][0]["id"].as_str().unwrap().to_owned();
    house.run(&["answer", "last", &question, "perhaps"]).expect(2, &["one of yes, no"]);
    house.run(&["answer", "last", &question, "yes"]).expect(0, &["recorded"]);
    until(LONG, "its driver has taken the answer", || (house.count("answered") == 1).then_some(()));
    house.run(&["answer", "last", &question, "no"]).expect(2, &["is not open"]);
    house.file("go", "");
    let said = live.end();
    said.expect(0, &[]);
    assert_eq!(said.report()["outcome"], "done");
    house.is_whole();
}
