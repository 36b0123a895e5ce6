//! Artifacts are written after the journal: a kill between the two must not leave them behind for
//! ever. Taking them away while the run rests is what such a kill looks like from here.

use crate::house::{AGENT, House, asking_first};

pub(crate) const ARTIFACTS: &str = "artifacts:\n\
    \x20 - { path: out/status.md, template: '{{ run.outcome }} at {{ run.state }}' }\n\
    \x20 - { path: out/log.md, template: \"{{ run.updated }} {{ run.from }} to {{ run.state }}\\n\", append: true }\n";

fn resting() -> House {
    let house = House::new();
    house.file("flow.yaml", asking_first() + ARTIFACTS);
    house.file("agent.sh", "cp out/status.md seen 2> /dev/null; echo '{\"ok\": true}'\n");
    assert_eq!(house.work("flow.yaml", AGENT).code, Some(4));
    assert_eq!(house.read("out/status.md"), "waiting at approve");
    house
}

/// The log without its times.
fn logged(house: &House) -> Vec<String> {
    house
        .read("out/log.md")
        .lines()
        .map(|line| line.split_once(' ').unwrap().1.to_owned())
        .collect()
}

#[test]
fn what_a_kill_kept_from_being_written_is_written_when_the_run_is_taken_up() {
    let house = resting();
    let log = house.read("out/log.md");
    assert_eq!(logged(&house).last().unwrap(), "before to approve");
    house.file(
        "out/log.md",
        log.rsplit_once('\n').unwrap().0.rsplit_once('\n').unwrap().0.to_owned() + "\n",
    );
    house.file("out/status.md", "running at before");
    // It only waits again, but what was missing is there, to the letter.
    assert_eq!(house.run(&["resume", "last"]).code, Some(4));
    assert_eq!(house.read("out/log.md"), log);
    assert_eq!(house.read("out/status.md"), "waiting at approve");
}

#[test]
fn what_was_written_is_not_written_twice() {
    let house = resting();
    let log = house.read("out/log.md");
    for _ in 0..2 {
        assert_eq!(house.run(&["resume", "last"]).code, Some(4));
        assert_eq!(house.read("out/log.md"), log);
    }
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    let lines = logged(&house);
    let unique: std::collections::BTreeSet<&String> = lines.iter().collect();
    assert_eq!(lines.len(), unique.len(), "{lines:?}");
}

#[test]
fn the_last_of_them_is_not_lost_either() {
    let house = resting();
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    let log = house.read("out/log.md");
    house.file("out/status.md", "running at work");
    house.run(&["resume", "last"]).expect(2, &["ended as done"]);
    assert_eq!(house.read("out/status.md"), "done at end");
    assert_eq!(house.read("out/log.md"), log);
}

#[test]
fn an_old_run_does_not_write_over_what_a_newer_one_shows() {
    let house = resting();
    let old = house.show()["run"].as_str().unwrap().to_owned();
    house.run(&["answer", &old, "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert_eq!(house.work("flow.yaml", AGENT).code, Some(4));
    house.run(&["resume", &old]).expect(2, &["ended as done"]);
    assert_eq!(house.read("out/status.md"), "waiting at approve");
}

#[test]
fn a_run_that_is_cancelled_while_nobody_drives_it_shows_that() {
    let house = resting();
    house.run(&["cancel", "last"]).expect(0, &["cancelled"]);
    assert_eq!(house.read("out/status.md"), "cancelled at approve");
}
