//! The most stubborn descendant: a daemon that opened a session, forked twice, ignores SIGTERM and
//! cleared its environment or removed its tag. It is gone after each way in which a child can end.

use super::finishing::{Listener, finish_in};
use super::*;
use counterfoil_process::{Containment, containment};

/// How the daemon hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hiding {
    /// It only daemonises.
    Plain,
    /// It has an environment of its own as well.
    NoEnvironment,
    /// And it undoes its mark, so that nothing but its control group knows it.
    NoMark,
}

/// How the child ends.
#[derive(Clone, Copy, Debug)]
enum End {
    ByItself,
    Stopped(StopRequest),
    ByTheClock,
    Finishing,
}

const ENDS: [End; 5] = [
    End::ByItself,
    End::Stopped(StopRequest::Graceful),
    End::Stopped(StopRequest::Immediate),
    End::ByTheClock,
    End::Finishing,
];

/// Says who it is when it is an orphan, and lets go of the pipes.
const DAEMON: &str = "trap \"\" TERM; while [ $(cut -d\" \" -f4 /proc/$$/stat) = $1 ]; do sleep 0.005; done; \
                      echo $$ ready; : >said; exec >/dev/null 2>&1; while :; do sleep 0.05; done";

fn script(hiding: Hiding, end: End) -> String {
    let hidden = match hiding {
        Hiding::Plain => "setsid",
        Hiding::NoEnvironment => "env -i setsid",
        Hiding::NoMark => "prlimit --locks=unlimited env -i setsid",
    };
    // Only who is born in the group is in it.
    let grouped = match hiding {
        Hiding::NoMark => "until grep -q counterfoil- /proc/self/cgroup; do sleep 0.01; done;",
        _ => "",
    };
    let then = match end {
        End::ByItself => "while [ ! -e said ]; do sleep 0.005; done",
        _ => "while :; do sleep 0.05; done",
    };
    // What it does, it does for its prompt.
    format!("read prompt; {grouped} {hidden} sh -c 'sh -c \"$0\" daemon $$ &' '{DAEMON}'; {then}")
}

/// Runs such a child to such an end, and finds nothing of it.
async fn nothing_is_left(hiding: Hiding, end: End) {
    let folder = tempfile::tempdir().unwrap();
    let mut spawn = ChildSpec { cwd: folder.path().to_owned(), ..shell(&script(hiding, end)) };
    spawn.timeouts.grace = Duration::from_millis(50);
    spawn.timeouts.startup = Some(FOREVER);
    spawn.stdin = b"prompt\n".to_vec();
    let marker = spawn.marker.clone();
    let (ended, pids, cause) = match end {
        End::ByItself => {
            let mut collector = Collector::new();
            (run(spawn, &mut collector).await, collector.pids(), Cause::Finished)
        }
        End::Stopped(how) => {
            let (ended, collector) = run_and_stop(spawn, how).await;
            (ended, collector.pids(), Cause::Stopped)
        }
        End::ByTheClock => {
            spawn.timeouts.idle = Some(Duration::from_millis(50));
            let mut collector = Collector::new();
            (run(spawn, &mut collector).await, collector.pids(), Cause::Idle)
        }
        End::Finishing => {
            let mut listener = Listener::default();
            (run(finish_in(50, spawn), &mut listener).await, listener.pids(), Cause::Finishing)
        }
    };
    let which = format!("{hiding:?}, {end:?}: {ended:?}");
    assert_eq!(ended.cause, cause, "{which}");
    assert!(ended.left_behind >= 1, "{which}");
    assert_eq!(pids.len(), 1, "{which}");
    assert!(pids.iter().all(|pid| gone(*pid)), "{which}: {pids:?}");
    assert_eq!(sweep(&marker).killed, 0, "{which}");
}

#[tokio::test]
async fn a_daemon_is_gone_whatever_ends_the_child() {
    for end in ENDS {
        nothing_is_left(Hiding::Plain, end).await;
    }
}

#[tokio::test]
async fn a_daemon_without_our_environment_is_gone_whatever_ends_the_child() {
    for end in ENDS {
        nothing_is_left(Hiding::NoEnvironment, end).await;
    }
}

#[tokio::test]
async fn nothing_is_left_20_times_in_a_row() {
    for _ in 0..20 {
        nothing_is_left(Hiding::NoEnvironment, End::ByItself).await;
    }
}

#[tokio::test]
async fn many_children_at_once_leave_nothing_and_each_its_own() {
    let mut children = tokio::task::JoinSet::new();
    for at in 0..8 {
        let hiding = if at % 2 == 0 { Hiding::Plain } else { Hiding::NoEnvironment };
        children.spawn(nothing_is_left(hiding, ENDS[at % ENDS.len()]));
    }
    children.join_all().await;
}

/// Whether there are control groups here; says so loudly if not.
fn grouped() -> bool {
    let contained = containment();
    if contained != Containment::Cgroup {
        skipped(&format!(
            "no control group can be made here; children are contained by: {contained}"
        ));
    }
    contained == Containment::Cgroup
}

/// The folders of groups that this process made.
fn groups_of(pid: u32) -> Vec<String> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap().to_owned();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
    let points = points.map(|line| Path::new(line.split(' ').nth(4).unwrap()).join(&own));
    let names = points.filter_map(|point| std::fs::read_dir(point).ok()).flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("counterfoil-") && name.contains(&format!("-{pid}-")))
        .collect()
}

mod in_a_group {
    use super::*;

    #[tokio::test]
    async fn who_is_known_by_nothing_else_is_gone_whatever_ends_the_child() {
        if !grouped() {
            return;
        }
        for end in ENDS {
            nothing_is_left(Hiding::NoMark, end).await;
        }
    }

    #[tokio::test]
    async fn a_group_within_the_group_is_emptied_and_removed() {
        if !grouped() {
            return;
        }
        // As a supervisor under supervision has it, or a container.
        let mut spawn = shell(
            "until grep -q counterfoil- /proc/self/cgroup; do sleep 0.01; done
             point=$(awk '/ - cgroup2 / {print $5}' /proc/self/mountinfo | tail -n 1)
             root=$(awk '/ - cgroup2 / {print $4}' /proc/self/mountinfo | tail -n 1)
             own=$(sed -n 's/^0:://p' /proc/self/cgroup)
             inner=$point/${own#\"$root\"}/inner
             mkdir -p $inner/deeper; echo $$ >$inner/deeper/cgroup.procs
             echo $(sed -n 's/^0:://p' /proc/self/cgroup) $$ ready; while :; do sleep 0.05; done",
        );
        spawn.timeouts.grace = Duration::from_millis(50);
        let (_, collector) = run_and_stop(spawn, StopRequest::Immediate).await;
        assert!(collector.text().contains("/inner/deeper "), "{}", collector.text());
        all_gone(&collector.pids(), 1);
        let name = collector
            .text()
            .split('/')
            .find(|name| name.starts_with("counterfoil-"))
            .unwrap()
            .to_owned();
        assert!(!groups_of(std::process::id()).contains(&name), "{name} is left");
    }

    #[tokio::test]
    async fn a_child_that_lives_for_a_moment_is_no_trouble() {
        // It is dead before it can be put in.
        for _ in 0..50 {
            let ended = run(program(&["true"]), &mut Collector::new()).await;
            assert_eq!(
                (ended.cause, ended.exit, ended.left_behind),
                (Cause::Finished, Exit::Code(0), 0)
            );
        }
    }

    /// The supervisor of the next test, in a process of its own.
    #[tokio::test]
    #[ignore = "started by a_sweep_empties_the_group_that_a_killed_supervisor_left"]
    async fn supervisor_of_a_group() {
        let Ok(marker) = std::env::var("TEST_MARKER") else { return };
        let script = script(Hiding::NoMark, End::Finishing);
        let folder = tempfile::tempdir().unwrap();
        let stdin = b"prompt\n".to_vec();
        run(
            ChildSpec { marker, stdin, cwd: folder.path().to_owned(), ..shell(&script) },
            &mut sweeping::Say,
        )
        .await;
    }

    #[test]
    fn a_sweep_empties_the_group_that_a_killed_supervisor_left() {
        if !grouped() {
            return;
        }
        let marker = unique();
        let mut supervisor = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "process::orphans::in_a_group::supervisor_of_a_group",
                "--nocapture",
            ])
            .env("TEST_MARKER", &marker)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            BufReader::new(supervisor.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said = lines.find_map(|line| line.split_once("pids ").map(|(_, said)| said.to_owned()));
        let pid: i32 = said.unwrap().split_whitespace().next().unwrap().parse().unwrap();
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        assert!(!dead(pid) && groups_of(supervisor.id()).len() == 1);
        assert!(sweep(&marker).killed >= 1);
        assert!(dead(pid), "{pid}");
        assert_eq!(groups_of(supervisor.id()), [""; 0]);
        assert_eq!(sweep(&marker).killed, 0);
    }
}

mod again {
    use super::*;

    /// These tests once more, in a process that is started this way; how many must pass.
    fn once_more(start: &[&str], which: &[&str], number: usize) {
        let (program, arguments) = start.split_first().unwrap();
        let output = Command::new(program)
            .args(arguments)
            .arg(std::env::current_exe().unwrap())
            // One at a time: as the first process of a container, this one adopts the orphans of all.
            .arg("--test-threads=1")
            .args(which)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains(&format!("{number} passed")),
            "{output:?}"
        );
    }

    const ALL: [&str; 4] = [
        "process::orphans::a_daemon_is_gone_whatever_ends_the_child",
        "process::orphans::a_daemon_without_our_environment_is_gone_whatever_ends_the_child",
        "process::orphans::many_children_at_once_leave_nothing_and_each_its_own",
        "--exact",
    ];

    #[test]
    fn without_control_groups() {
        once_more(&["env", "COUNTERFOIL_CGROUP=off"], &ALL, 3);
        once_more(
            &["env", "COUNTERFOIL_CGROUP=off"],
            &["process::orphans::again::only_the_walk", "--exact", "--ignored"],
            1,
        );
    }

    #[test]
    #[ignore = "started by without_control_groups"]
    fn only_the_walk() {
        assert_eq!(containment(), Containment::Walk);
    }

    /// The numbers of processes are others there, for us and for the groups.
    #[test]
    fn in_a_namespace_of_processes() {
        let container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let possible = Command::new(container[0]).args(&container[1..]).arg("true").output();
        if !possible.as_ref().is_ok_and(|output| output.status.success()) {
            return skipped(&format!("no namespace of processes can be made here: {possible:?}"));
        }
        once_more(&container, &ALL, 3);
        if grouped() {
            once_more(
                &container,
                &[
                    "process::orphans::in_a_group::who_is_known",
                    "process::orphans::in_a_group::a_sweep",
                ],
                2,
            );
        }
    }
}
