//! Grandchildren that an agent leaves in sessions of their own: whatever ends the attempt, they end
//! too.

use crate::house::{AGENT, LONG, carrying, house_with, starting, until};

/// Two daemons: one keeps the pipes open, one closes them.
const DAEMONS: &str = "setsid sleep 300 &\nsetsid sleep 300 > /dev/null 2>&1 &\n";

#[test]
fn nothing_is_left_after_a_normal_end() {
    let house = house_with("", &format!("{DAEMONS}echo '{{\"ok\": true}}'\n"));
    house.ends(AGENT, 0, "done", None, &[]);
}

#[test]
fn nothing_is_left_after_a_timeout() {
    let house =
        house_with("timeout: 1s, retries: { timeout: 0 }", &format!("{DAEMONS}sleep 300\n"));
    house.ends(AGENT, 124, "failed", Some("timeout"), &["took too long"]);
}

#[test]
fn nothing_is_left_after_we_were_killed_and_the_run_is_taken_up() {
    let house = house_with("", &format!("{DAEMONS}touch up\nsleep 300\n"));
    let live = house.start(&starting("flow.yaml", AGENT));
    until(LONG, "the agent is up", || house.repo().join("up").exists().then_some(()));
    let run = house.show()["run"].as_str().unwrap().to_owned();
    assert!(live.kill());
    assert!(carrying(&run).len() >= 3, "they outlive us: {:?}", carrying(&run));
    assert_eq!(house.show()["outcome"], "interrupted");
    house.file("agent.sh", "ls -1 > /dev/null; echo '{\"ok\": true}'\n");
    house.run(&["resume", "last"]).expect(0, &["its process died"]);
    house.is_whole();
}

#[test]
fn nothing_is_left_after_a_killed_run_is_cancelled_rather_than_taken_up() {
    let house = house_with("", &format!("{DAEMONS}touch up\nsleep 300\n"));
    let live = house.start(&starting("flow.yaml", AGENT));
    until(LONG, "the agent is up", || house.repo().join("up").exists().then_some(()));
    assert!(live.kill());
    house.run(&["cancel", "last"]).expect(0, &["cancelled"]);
    house.is_whole();
    house.run(&["resume", "last"]).expect(2, &["ended as cancelled", "start a new one"]);
}
