//! No descendant is left, however the child ends and whatever it has started.

use super::*;

#[tokio::test]
async fn a_stubborn_grandchild_is_killed_on_stop() {
    let mut spawn = shell(&format!("echo $$; {STUBBORN} & wait"));
    spawn.timeouts.grace = Duration::from_millis(100);
    let (ended, collector) = run_and_stop(spawn, StopRequest::Graceful).await;
    assert_eq!(ended.cause, Cause::Stopped);
    assert!(ended.left_behind >= 1, "{ended:?}");
    all_gone(&collector.pids(), 2);
}

#[tokio::test]
async fn a_stubborn_grandchild_is_killed_after_a_normal_end_20_times_in_a_row() {
    for _ in 0..20 {
        let mut collector = Collector::new();
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("said");
        // It tells its name through a pipe, so that it holds none of ours, and the child ends when
        // it is there.
        let script = format!(
            "mkfifo said; setsid sh -c 'trap \"\" TERM; echo $$ >said; while :; do sleep 0.05; done' \
             >/dev/null 2>&1 & cat {}",
            pipe.display()
        );
        let ended =
            run(ChildSpec { cwd: folder.path().to_owned(), ..shell(&script) }, &mut collector)
                .await;
        assert_eq!((ended.cause, ended.exit), (Cause::Finished, Exit::Code(0)));
        assert!(ended.left_behind >= 1, "{ended:?}");
        all_gone(&collector.pids(), 1);
    }
}

#[tokio::test]
async fn a_grandchild_still_on_its_way_to_its_own_session_is_found() {
    // The child does not wait for it, so it is met anywhere between fork, setsid and exec.
    for _ in 0..20 {
        let spawn = shell("setsid sleep 61.5 >/dev/null 2>&1 &");
        let marker = spawn.marker.clone();
        let ended = run(spawn, &mut Collector::new()).await;
        assert_eq!((ended.cause, ended.left_behind), (Cause::Finished, 1));
        assert_eq!(sweep(&marker).killed, 0);
    }
}

/// Forks, opens a session, forks again, and the last one says who it is and stays.
const DAEMON: &str = "\
import os, signal, sys, time
def daemon():
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b'%d ready\\n' % os.getpid())
    if CLOSES:
        os.close(1); os.close(2)
    time.sleep(60)
    os._exit(0)
daemon()
os.wait()
";

#[tokio::test]
async fn a_daemon_is_killed_after_a_normal_end() {
    let mut collector = Collector::new();
    let script = format!(
        "CLOSES = True\nimport os\nr, w = os.pipe()\n{DAEMON}\nimport time; time.sleep(0.2)"
    );
    let ended = run(python(&script), &mut collector).await;
    assert_eq!((ended.cause, ended.exit, ended.left_behind), (Cause::Finished, Exit::Code(0), 1));
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn a_daemon_is_killed_on_stop() {
    let (ended, collector) = run_and_stop(
        python(&format!("CLOSES = False\n{DAEMON}\ntime.sleep(60)")),
        StopRequest::Immediate,
    )
    .await;
    assert_eq!((ended.cause, ended.left_behind), (Cause::Stopped, 1));
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn who_hides_its_environment_is_found_by_birth() {
    let script = "env -i setsid sh -c 'trap \"\" TERM; echo $$; echo ready; while :; do sleep 0.05; done' & wait";
    let (ended, collector) = run_and_stop(shell(script), StopRequest::Immediate).await;
    assert_eq!(ended.cause, Cause::Stopped);
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn who_was_seen_in_the_tree_is_known_when_it_hides_later() {
    // Nothing ties it to the child when that has ended: it is no descendant, in no session and
    // without marker. But the tree is looked at every five seconds.
    let mut collector = Collector::new();
    let hidden = "env -i setsid sh -c 'echo $$; exec sleep 60 >/dev/null 2>&1'";
    let ended = run(shell(&format!("{hidden} & sleep 6")), &mut collector).await;
    assert_eq!((ended.cause, ended.left_behind), (Cause::Finished, 1));
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn who_lives_on_without_its_first_thread_is_killed() {
    let script = "\
import ctypes, os, threading, time
if os.fork() == 0:
    os.setsid()
    def stay():
        time.sleep(0.1)
        print(os.getpid(), 'ready', flush=True)
        time.sleep(60)
    threading.Thread(target=stay).start()
    ctypes.CDLL(None).pthread_exit(None)
time.sleep(60)
";
    let (ended, collector) = run_and_stop(python(script), StopRequest::Immediate).await;
    assert_eq!((ended.cause, ended.left_behind), (Cause::Stopped, 1));
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_is_waited_for_only_so_long() {
    let mut collector = Collector::new();
    let mut spawn = shell("sleep 60 & echo $!; exit 5");
    spawn.timeouts.linger = Duration::from_millis(200);
    let ended = run(spawn, &mut collector).await;
    assert_eq!((ended.cause, ended.exit, ended.left_behind), (Cause::Finished, Exit::Code(5), 1));
    assert!(
        ended.wall >= Duration::from_millis(200) && ended.wall < Duration::from_secs(3),
        "{ended:?}"
    );
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn what_a_grandchild_writes_in_time_is_heard() {
    let mut collector = Collector::new();
    let ended = run(shell("(sleep 0.2; echo late) & exit 0"), &mut collector).await;
    assert_eq!((ended.cause, ended.left_behind), (Cause::Finished, 0));
    assert_eq!(collector.text(), "late\n");
}

#[tokio::test]
async fn orphans_that_end_by_themselves_are_reaped() {
    let mut collector = Collector::new();
    let ended = run(shell("(sh -c 'echo $$; exec sleep 0.1' &); sleep 0.3"), &mut collector).await;
    assert_eq!((ended.cause, ended.left_behind), (Cause::Finished, 0));
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn an_orphan_in_its_own_session_that_nobody_saw_alive_is_reaped() {
    let mut collector = Collector::new();
    let ended = run(shell("(setsid sh -c 'echo $$' &); sleep 0.2"), &mut collector).await;
    assert_eq!((ended.cause, ended.left_behind), (Cause::Finished, 0));
    all_gone(&collector.pids(), 1);
}

#[tokio::test]
async fn the_end_of_a_child_started_by_others_is_left_to_them() {
    // Both are dead and not waited for while runs begin and end.
    let mut plain = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
    let mut leader = Command::new("setsid").args(["sh", "-c", "exit 4"]).spawn().unwrap();
    for _ in 0..5 {
        run(shell("setsid sleep 60 >/dev/null 2>&1 &"), &mut Collector::new()).await;
    }
    assert!(dead(plain.id().cast_signed()) && dead(leader.id().cast_signed()));
    assert_eq!(plain.wait().unwrap().code(), Some(3));
    assert_eq!(leader.wait().unwrap().code(), Some(4));
}

#[tokio::test]
async fn who_forks_all_the_time_is_killed_to_the_last() {
    let script = "\
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b'ready\\n')
end = time.time() + 20
while time.time() < end:
    if os.fork(): os._exit(0)
    os.setsid()
    time.sleep(0.002)
";
    let mut spawn = shell("python3 \"$SCRIPT\" & exec sleep 60");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    spawn.extra = vec![("SCRIPT".into(), file.path().into())];
    let marker = spawn.marker.clone();
    let (ended, _) = run_and_stop(spawn, StopRequest::Immediate).await;
    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(sweep(&marker).killed, 0, "someone got away");
}

#[tokio::test]
async fn one_run_leaves_another_alone() {
    let mut collector = Collector::new();
    let other = run(shell("setsid sleep 0.5 & wait; exit 6"), &mut collector);
    let this = async {
        for _ in 0..5 {
            let ended =
                run(shell("setsid sleep 60 >/dev/null 2>&1 &"), &mut Collector::new()).await;
            assert_eq!(ended.left_behind, 1);
        }
    };
    let (ended, ()) = tokio::join!(other, this);
    assert_eq!((ended.cause, ended.exit, ended.left_behind), (Cause::Finished, Exit::Code(6), 0));
}

#[tokio::test]
async fn a_dropped_run_kills_the_tree() {
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let mut collector = Collector::when_ready(move || {
        ready.send(()).unwrap();
        ControlFlow::Continue(())
    });
    let (_stop, stopped) = watch::channel(StopRequest::None);
    tokio::select! {
        ended = supervise(shell(&format!("echo $$; {STUBBORN} & wait")), &mut collector, stopped) => panic!("{ended:?}"),
        () = async { is_ready.await.unwrap() } => {}
    }
    let pids = collector.pids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| dead(*pid)), "{pids:?}");
}

#[tokio::test]
async fn a_run_can_go_to_another_thread() {
    let task = tokio::spawn(async {
        let (_stop, stopped) = watch::channel(StopRequest::None);
        let mut collector = Collector::new();
        supervise(shell("exit 2"), &mut collector, stopped).await.map(|ended| ended.exit)
    });
    assert_eq!(task.await.unwrap().unwrap(), Exit::Code(2));
}

/// In a container that is entered from outside, the leader of our session is nobody we can see, and
/// its number is 0.
#[test]
fn the_leader_of_our_session_may_live_outside() {
    let inside = |program: &[&std::ffi::OsStr]| {
        let container =
            ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
        Command::new("unshare").args(container).args(program).output()
    };
    match inside(&["true".as_ref()]) {
        Ok(output) if output.status.success() => {}
        refused => {
            return skipped(&format!("no namespace of processes can be made here: {refused:?}"));
        }
    }
    let exe = std::env::current_exe().unwrap();
    let others = [
        "process::left::one_run_leaves_another_alone",
        "process::left::a_daemon_is_killed_on_stop",
        "--exact",
    ];
    let program: Vec<_> =
        std::iter::once(exe.as_ref()).chain(others.iter().map(std::ffi::OsStr::new)).collect();
    let output = inside(&program).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("2 passed"), "{output:?}");
}

#[test]
fn who_is_swept_can_take_its_locks_away_first() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let marker = unique();
    let mut holder = Command::new("sh");
    holder.args([
        "-c",
        "trap 'rm \"$0\"; exit 0' TERM; : > \"$0\"; echo ready; while :; do sleep 0.01; done",
    ]);
    let mut holder = holder.arg(&lock).env(MARKER, &marker).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(lock.exists());
    assert!(sweep(&marker).killed >= 1);
    assert!(!lock.exists(), "it was killed before it could");
    assert!(holder.wait().unwrap().success());
}
