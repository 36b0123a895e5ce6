//! The sweep after a supervisor was killed.

use super::*;

/// Prints the output it receives.
pub(super) struct Say;
impl OutputSink for Say {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        if let Output::Stdout(chunk) = output {
            println!("pids {}", String::from_utf8_lossy(chunk).replace('\n', " "));
        }
        ControlFlow::Continue(())
    }
}

/// The supervisor of the next test, in a process of its own.
#[tokio::test]
#[ignore = "started by a_sweep_kills_what_a_killed_supervisor_left"]
async fn supervisor_to_be_killed() {
    let Ok(marker) = std::env::var("TEST_MARKER") else { return };
    let stubborn = STUBBORN.replace("echo ready; ", "");
    run(ChildSpec { marker, ..shell(&format!("echo $$; {stubborn} & wait")) }, &mut Say).await;
}

#[test]
fn a_sweep_kills_what_a_killed_supervisor_left() {
    let marker = unique();
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "process::sweeping::supervisor_to_be_killed", "--nocapture"])
        .env("TEST_MARKER", &marker)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pids: Vec<i32> = Vec::new();
    for line in BufReader::new(supervisor.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, said)) = line.split_once("pids ") {
            pids.extend(said.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
        }
        if pids.len() == 2 {
            break;
        }
    }
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(pids.len() == 2 && pids.iter().all(|pid| !dead(*pid)), "{pids:?}");
    assert!(sweep(&marker).killed >= 2);
    assert!(pids.iter().all(|pid| dead(*pid)), "{pids:?}");
    assert_eq!(sweep(&marker).killed, 0);
}

#[test]
fn a_sweep_kills_the_marked_with_their_descendants_and_nobody_else() {
    let (mine, longer) = (unique(), unique());
    let start = |variable: &str, value: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; env -i sleep 60 & echo $!; wait"]);
        let mut child = command.env(variable, value).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().parse::<i32>().unwrap())
    };
    let (mut marked, grandchild) = start(MARKER, &mine);
    let others = [
        start(MARKER, &longer),
        start(MARKER, &format!("{mine}0")),
        start("OTHER", &format!("{MARKER}={mine}")),
        start(&format!("X{MARKER}"), &mine),
    ];
    assert_eq!(sweep(&mine).killed, 2);
    assert_eq!(
        marked.wait().unwrap().signal(),
        Some(9),
        "its own parent still learns how it ended"
    );
    assert!(dead(grandchild));
    for (mut other, grandchild) in others {
        assert!(other.try_wait().unwrap().is_none() && !dead(grandchild));
        other.kill().unwrap();
        other.wait().unwrap();
        let grandchild = rustix::process::Pid::from_raw(grandchild).unwrap();
        rustix::process::kill_process(grandchild, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn a_sweep_without_a_marker_kills_nobody() {
    let mut child = Command::new("sleep").arg("60").env(MARKER, "").spawn().unwrap();
    assert_eq!(sweep("").killed, 0);
    assert_eq!(sweep("a\0b").killed, 0);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

// Measurements: cargo test -p counterfoil-process --test it -- --ignored --nocapture figures

#[tokio::test]
#[ignore = "measures"]
async fn figures() {
    let begun = Instant::now();
    for _ in 0..200 {
        tokio::process::Command::new("true").output().await.unwrap();
    }
    let bare = begun.elapsed() / 200;
    let begun = Instant::now();
    for _ in 0..200 {
        run(program(&["true"]), &mut Collector::new()).await;
    }
    let supervised = begun.elapsed() / 200;
    let mut crowd: Vec<_> =
        (0..300).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect();
    let processes = || {
        let names = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().parse::<u32>().is_ok()).count()
    };
    let there = processes();
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(sweep("nobody").killed, 0);
    }
    let swept = begun.elapsed() / 20;
    let begun = Instant::now();
    for _ in 0..50 {
        run(program(&["true"]), &mut Collector::new()).await;
    }
    let in_a_crowd = begun.elapsed() / 50;
    for child in &mut crowd {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    println!("`true` bare {bare:?}, supervised {supervised:?} among {} processes", processes());
    println!(
        "among {there} processes: `true` supervised {in_a_crowd:?}, a sweep for nothing {swept:?}"
    );
}
