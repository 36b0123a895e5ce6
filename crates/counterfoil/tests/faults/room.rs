//! Disks without room, and disks that cannot be written: small ones of our own, where they can be
//! mounted.

use crate::house::{AGENT, House, LONG, house_with, starting, until, work};
use std::path::PathBuf;
use std::process::Command;

/// A small disk as the state folder of a house; gone with it.
struct Disk {
    at: PathBuf,
}

impl Disk {
    /// None where nothing can be mounted: that is said loudly, because the test then holds nothing.
    fn in_house(house: &House, size: &str) -> Option<Self> {
        let at = house.state();
        std::fs::create_dir_all(&at).unwrap();
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { at }),
            other => {
                eprintln!("SKIPPED: no disk can be mounted here, so nothing was held: {other:?}");
                None
            }
        }
    }

    fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.at).status().unwrap();
        assert!(status.success(), "{options}");
    }

    /// Takes all the room there is.
    fn fill(&self) {
        use std::io::Write;
        let mut filler = std::fs::File::create(self.at.join("filler")).unwrap();
        while filler.write_all(&[0; 1024]).is_ok() {}
        while filler.write_all(&[0]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.at.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// An agent that has said what it has to say, and ends when it is let: only the journal still needs
/// room.
const PATIENT: &str = "echo '{\"ok\": true}'\ntouch up\nwhile [ ! -e go ]; do sleep 0.02; done\n";

#[test]
fn a_full_disk_stops_the_run_and_room_lets_it_go_on() {
    let house = house_with("", PATIENT);
    let Some(disk) = Disk::in_house(&house, "1m") else { return };
    let live = house.start(&starting("flow.yaml", AGENT));
    until(LONG, "the agent is up", || house.repo().join("up").exists().then_some(()));
    disk.fill();
    house.file("go", "");
    live.end().expect(2, &["no room is left", disk.at.to_str().unwrap(), "make room and go on"]);
    disk.make_room();
    house.run(&["resume", "last"]).expect(0, &["done"]);
    house.is_whole();
}

#[test]
fn room_that_is_made_in_time_is_enough() {
    let house = house_with("", PATIENT);
    let Some(disk) = Disk::in_house(&house, "1m") else { return };
    let mut live = house.start(&starting("flow.yaml", AGENT));
    until(LONG, "the agent is up", || house.repo().join("up").exists().then_some(()));
    disk.fill();
    let attempt = house.show()["run"].as_str().unwrap().to_owned();
    house.file("go", "");
    until(LONG, "the agent has answered", || {
        crate::house::carrying(&attempt).is_empty().then_some(())
    });
    assert!(live.is_alive(), "it waits for room");
    disk.make_room();
    live.end().expect(0, &[]);
    house.is_whole();
}

#[test]
fn an_answer_that_fills_the_disk_is_not_the_agents_fault() {
    let house = house_with("", "head -c 4000000 /dev/zero\n");
    let Some(disk) = Disk::in_house(&house, "2m") else { return };
    let said = house.work("flow.yaml", AGENT);
    said.expect(2, &["no room is left", disk.at.to_str().unwrap(), "make room and go on"]);
    house.file("agent.sh", "echo '{\"ok\": true}'\n");
    disk.remount("size=8m");
    house.run(&["resume", "last"]).expect(0, &["done"]);
    house.is_whole();
}

#[test]
fn a_command_whose_output_fills_the_disk_is_run_again_when_there_is_room() {
    let house = house_with("", "echo '{\"ok\": true}'\n");
    house.file(
        "flow.yaml",
        work("").replace("before'], go: work", "before'], go: flood")
            + "  flood: { command: [sh, flood.sh], next: [{ when: result.ok, go: work }, { go: lost }] }\n  lost: { end: failed }\n",
    );
    house.file("flood.sh", "[ -e small ] || head -c 4000000 /dev/zero\n");
    let Some(disk) = Disk::in_house(&house, "2m") else { return };
    house.work("flow.yaml", AGENT).expect(2, &["no room is left", "make room and go on"]);
    house.file("small", "");
    disk.remount("size=8m");
    house.run(&["resume", "last"]).expect(0, &["done"]);
    house.is_whole();
}

#[test]
fn a_state_folder_that_cannot_be_written_can_still_be_read() {
    let house = house_with("", "echo '{\"ok\": true}'\n");
    house.file("flow.yaml", crate::house::asking_first());
    let Some(disk) = Disk::in_house(&house, "4m") else { return };
    assert_eq!(house.work("flow.yaml", AGENT).code, Some(4));
    disk.remount("ro");
    for arguments in [
        &["answer", "last", "approve", "yes", "--resume"][..],
        &["resume", "last"],
        &["cancel", "last"],
    ] {
        house.run(arguments).expect(2, &["journal.db", "cannot be written", "allow writing there"]);
    }
    house.work("flow.yaml", AGENT).expect(2, &["cannot be written"]);
    assert_eq!(house.show()["outcome"], "waiting");
    disk.remount("rw");
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    house.is_whole();
}
