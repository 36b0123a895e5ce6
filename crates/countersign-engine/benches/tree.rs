//! Snapshots against `git status`, in repositories made here: 10,000 and 100,000 files, committed, 50 of them edited and 50
//! new ones. Prints one JSON object a line.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use countersign_engine::tree::{Settings, Tree};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const TOUCHED: usize = 50;

fn main() {
    let folder = std::env::var("BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    for files in [10_000, 100_000] {
        let folder = tempfile::tempdir_in(&folder).unwrap();
        make(folder.path(), files);
        measure(folder.path(), files);
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@bench", "-c", "gc.auto=0"]);
    command.args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    assert!(command.stdout(Stdio::null()).status().unwrap().success(), "git {arguments:?}");
}

fn path(at: usize) -> String {
    format!("part{}/module{}/file{at}.rs", at / 5000, at / 100)
}

/// A repository with its edits, whose times are old enough that nobody has to doubt them.
fn make(folder: &Path, files: usize) {
    git(folder, &["init", "-q"]);
    for at in 0..files {
        let path = folder.join(path(at));
        if at % 100 == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("pub fn number() -> usize {{\n    {at}\n}}\n").repeat(1 + at % 20)).unwrap();
    }
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "all"]);
    std::thread::sleep(Duration::from_secs(2));
    git(folder, &["update-index", "-q", "--refresh"]);
    edit(folder, files, 0);
    for at in 0..TOUCHED {
        fs::write(folder.join(format!("part0/new{at}.rs")), format!("new {at}\n").repeat(100)).unwrap();
    }
    std::thread::sleep(Duration::from_secs(3));
}

fn edit(folder: &Path, files: usize, round: usize) {
    for at in (0..TOUCHED).map(|at| (at * files / TOUCHED + round) % files) {
        fs::write(folder.join(path(at)), format!("edited {round}\n").repeat(100)).unwrap();
    }
}

fn measure(folder: &Path, files: usize) {
    let mut times: [Vec<Duration>; 4] = Default::default();
    let timed = |times: &mut Vec<Duration>, act: &mut dyn FnMut()| {
        let began = Instant::now();
        act();
        times.push(began.elapsed());
    };
    let mut tree = Tree::open(folder, Settings::default());
    tree.snapshot();
    // In turns, so that what else the machine does falls on all alike.
    for _ in 0..ROUNDS {
        timed(&mut times[0], &mut || git(folder, &["--no-optional-locks", "status", "--porcelain"]));
        timed(&mut times[1], &mut || drop(tree.snapshot()));
        timed(&mut times[2], &mut || {
            Tree::open(folder, Settings::default()).snapshot();
        });
    }
    let before = tree.snapshot();
    for round in 1..=ROUNDS {
        edit(folder, files, round);
        let after = tree.snapshot();
        timed(&mut times[3], &mut || drop(tree.changes(&before, &after)));
    }
    let [status, again, first, changes] = times.map(median);
    println!(
        "{}",
        json!({
            "name": format!("snapshot-{files}-files"),
            "git_status_ms": status, "snapshot_ms": again, "first_snapshot_ms": first, "changes_ms": changes,
            "snapshot_by_status": again / status, "first_by_status": first / status,
        })
    );
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
