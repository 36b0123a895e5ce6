//! Ctrl-C and SIGTERM: the first asks, the second does not; either way the run can be taken up
//! again.

use crate::house::{AGENT, House, LONG, Live, Said, house_with, starting, until};
use std::time::{Duration, Instant};

/// An agent that is asked to end and does not.
const STUBBORN: &str = "trap '' TERM INT\necho up >> up\nwhile :; do sleep 0.1; done\n";
/// An agent that is asked to end and does.
const POLITE: &str =
    "trap 'echo bye >> bye; exit 0' TERM\necho up >> up\nwhile :; do sleep 0.05; done\n";

/// A run that is started for people to watch, once its agent is up.
fn up(house: &House) -> Live {
    let live = house.start(&starting("flow.yaml", AGENT)[..4]);
    until(LONG, "the agent is up", || (!house.read("up").is_empty()).then_some(()));
    live
}

/// Holds that the run was stopped and can go on.
fn goes_on(house: &House, said: &Said) {
    said.expect(130, &["cancelled", "counterfoil resume"]);
    house.is_whole();
    let report = house.show();
    assert_eq!(report["outcome"], "cancelled");
    assert_eq!(report["attempts"][0]["outcome"], "cancelled");
    assert_eq!(house.count("run-stopped"), 1);
    assert_eq!(house.count("run-ended"), 0);
    house.file("agent.sh", "echo '{\"ok\": true}'\n");
    house.run(&["resume", "last"]).expect(0, &["done"]);
    house.is_whole();
}

#[test]
fn ctrl_c_asks_the_agent_to_end_and_the_run_goes_on_later() {
    for signal in ["INT", "TERM"] {
        let house = house_with("", POLITE);
        let live = up(&house);
        live.signal(signal);
        let said = live.end();
        assert_eq!(house.read("bye"), "bye\n", "{signal}: it was not asked");
        goes_on(&house, &said);
    }
}

#[test]
fn an_agent_that_does_not_listen_is_killed_after_its_grace() {
    let house = house_with("", STUBBORN);
    let live = up(&house);
    let began = Instant::now();
    live.signal("INT");
    let said = live.end();
    assert!(began.elapsed() > Duration::from_secs(4), "it had no grace: {:?}", began.elapsed());
    goes_on(&house, &said);
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let house = house_with("", STUBBORN);
    let live = up(&house);
    live.signal("INT");
    until(LONG, "the first is heard", || {
        live.so_far().contains("stopping: waiting for agents").then_some(())
    });
    let began = Instant::now();
    live.signal("INT");
    let said = live.end();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    said.expect(130, &["stopping immediately"]);
    goes_on(&house, &said);
}
