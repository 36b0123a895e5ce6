//! Whatever ends the process that drives a run, its agents end within seconds, and the run can be
//! resumed.

use crate::PROGRAM;
use crate::shell_project::{SHELL_AGENT, ShellProject, run_arguments};
use counterfoil_testkit::{TIMEOUT, TestCommand, send_signal, wait_until};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long agents may go on.
const SECONDS: Duration = Duration::from_secs(15);

/// An agent with helpers that hide: in sessions of their own, forked twice, without an environment.
/// All of them write down their process ids. What a shell prints when a signal ends one of them would
/// end the shell: nobody reads its pipes any more.
const AGENT: &str = r#"exec 2> /dev/null
echo $$ >> pids
sleep 300 &
echo $! >> pids
(setsid sh -c 'echo $$ >> pids; exec sleep 300' > /dev/null 2>&1 &)
(env -i setsid sh -c 'echo $$ >> pids; exec sleep 300' > /dev/null 2>&1 &)
trap 'echo asked > asked; exit 1' TERM
while [ "$(wc -l < pids)" -lt 4 ]; do sleep 0.01; done
echo up > up
while :; do sleep 0.05; done
"#;

fn run() -> (ShellProject, Vec<String>) {
    (ShellProject::with_agent("", AGENT), run_arguments("flow.yaml", SHELL_AGENT).to_vec())
}

fn start(command: &mut TestCommand) -> Child {
    command.as_std().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.as_std().spawn().unwrap()
}

fn wait_until_up(project: &ShellProject) {
    wait_until(TIMEOUT, "the agent is up", || {
        (!project.read_or_empty("up").is_empty()).then_some(())
    });
}

/// The children of a process with this name that have not ended.
fn children_named(parent: &Child, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_one = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.starts_with(&format!("Name:\t{name}\n"))
            && status.contains(&format!("PPid:\t{}\n", parent.id()))
            && !status.contains("State:\tZ")
    };
    pids.filter(is_one).collect()
}

/// A process that has not ended: its command line, and what the kernel says of it.
fn describe_alive(pid: &str) -> Option<String> {
    let read =
        |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let stat = read("stat");
    (!stat.is_empty() && !stat.contains(") Z ")).then(|| {
        let command = read("cmdline").replace('\0', " ");
        format!("{command}; {stat}; {}; {}", read("cgroup"), read("limits"))
    })
}

/// Waits until all processes of the agent are gone, and resumes the run.
#[track_caller]
fn assert_abandoned(project: &ShellProject, what: &str) {
    let pids: Vec<String> = project.read("pids").lines().map(str::to_owned).collect();
    assert_eq!(pids.len(), 4, "{what}");
    let since = Instant::now();
    loop {
        let alive: Vec<String> = pids.iter().filter_map(|pid| describe_alive(pid)).collect();
        if alive.is_empty() {
            break;
        }
        assert!(since.elapsed() < SECONDS, "{what}: the agent goes on: {alive:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    project.write("agent.sh", "echo '{\"ok\": true}'\n");
    // The process itself may still be at its end.
    let resumed = wait_until(SECONDS, &format!("it can be resumed ({what})"), || {
        let resumed = project.run(&["resume", "last"]);
        (!resumed.stderr.contains("has been driven by process")).then_some(resumed)
    });
    resumed.expect(0, &["done"]);
    project.assert_intact();
}

#[test]
fn agents_end_if_the_process_is_killed() {
    let (project, arguments) = run();
    let mut live = start(&mut project.command(&arguments));
    wait_until_up(&project);
    live.kill().unwrap();
    live.wait().unwrap();
    assert_abandoned(&project, "kill -9");
    assert_eq!(project.read_or_empty("asked"), "asked\n", "it can end in order");
}

/// An agent whose first act is a daemon without an environment.
const HIDES_AT_ONCE: &str = r"(env -i setsid sh -c 'echo $$ > early; exec sleep 300' > /dev/null 2>&1 &)
while :; do sleep 0.05; done
";

#[test]
fn agents_end_if_the_process_is_killed_while_they_begin() {
    for _ in 0..8 {
        let project = ShellProject::with_agent("", HIDES_AT_ONCE);
        let mut live = start(&mut project.command(&run_arguments("flow.yaml", SHELL_AGENT)));
        let early = wait_until(TIMEOUT, "the daemon is up", || {
            let pid = project.read_or_empty("early");
            pid.ends_with('\n').then(|| pid.trim().to_owned())
        });
        live.kill().unwrap();
        live.wait().unwrap();
        wait_until(SECONDS, "the daemon ends", || describe_alive(&early).is_none().then_some(()));
    }
}

#[test]
fn agents_end_if_all_processes_of_that_name_are_killed() {
    let (project, arguments) = run();
    let mut live = start(&mut project.command(&arguments));
    wait_until_up(&project);
    // As `pkill -9 counterfoil` does, but only those of this test.
    for pid in children_named(&live, "counterfoil") {
        send_signal("KILL", &pid);
    }
    live.kill().unwrap();
    live.wait().unwrap();
    assert_abandoned(&project, "pkill -9");
}

#[test]
fn a_watchdog_that_is_killed_is_replaced() {
    let (project, arguments) = run();
    let mut live = start(&mut project.command(&arguments));
    wait_until_up(&project);
    let watchdogs = || children_named(&live, "agent-watchdog");
    let first = wait_until(TIMEOUT, "there is a watchdog", || watchdogs().pop());
    send_signal("KILL", &first);
    // The next look finds processes of the agent that are new, and tells them to another one.
    let second = wait_until(TIMEOUT, "there is another", || {
        watchdogs().into_iter().find(|pid| *pid != first)
    });
    assert_ne!(first, second);
    live.kill().unwrap();
    live.wait().unwrap();
    assert_abandoned(&project, "kill -9 after the watchdog");
}

#[test]
fn agents_end_if_the_terminal_is_closed() {
    let (project, arguments) = run();
    let mut command = project.command(&arguments);
    let words = std::iter::once(PROGRAM.into())
        .chain(command.as_std().get_args().map(|word| word.to_string_lossy()));
    let line = words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let mut terminal = start(&mut project.command_of("script", &["-qec", &line, "/dev/null"]));
    wait_until_up(&project);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    assert_abandoned(&project, "closed terminal");
}

#[test]
fn a_hangup_stops_the_run_in_order() {
    let (project, arguments) = run();
    let live = start(&mut project.command(&arguments));
    wait_until_up(&project);
    send_signal("HUP", &live.id().to_string());
    // The kernel and the shell may both tell.
    send_signal("HUP", &live.id().to_string());
    let output = live.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(project.read_or_empty("asked"), "asked\n");
    assert_eq!(project.show_last()["outcome"], "cancelled");
    assert_abandoned(&project, "SIGHUP");
}

#[test]
fn a_run_whose_output_nobody_reads_is_stopped() {
    for formats in [&[][..], &["--format", "json"]] {
        let (project, arguments) = run();
        let mut arguments: Vec<&str> = arguments[..4].iter().map(String::as_str).collect();
        arguments.extend(formats);
        let mut live = start(&mut project.command(&arguments));
        wait_until_up(&project);
        drop((live.stdout.take(), live.stderr.take()));
        let ended = live.wait().unwrap();
        assert_eq!(ended.code(), Some(130), "{formats:?}");
        assert_eq!(project.read_or_empty("asked"), "asked\n");
        assert_abandoned(&project, "closed pipe");
    }
}
