//! Supervision of real processes: what ends them, what they write, and that no descendant is left.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

use counterfoil_process::{
    Cause, ChildOutcome, ChildSpec, Environment, Exit, MARKER, Output, OutputSink, SpawnError,
    StopRequest, Timeouts, supervise, sweep,
};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

mod finishing;
mod interactive;
mod left;
mod orphans;
mod sweeping;

/// A grandchild in its own session that ignores SIGTERM and prints its process id.
const STUBBORN: &str =
    "setsid sh -c 'trap \"\" TERM; echo $$; echo ready; while :; do sleep 0.05; done'";

const FOREVER: Duration = Duration::from_mins(1);

/// Collects the output, and acts once after it received `ready`.
struct Collector {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    longest: usize,
    when_ready: Option<Box<dyn FnOnce() -> ControlFlow<()> + Send>>,
}

impl Collector {
    fn new() -> Self {
        Self { stdout: Vec::new(), stderr: Vec::new(), longest: 0, when_ready: None }
    }

    fn when_ready(act: impl FnOnce() -> ControlFlow<()> + Send + 'static) -> Self {
        Self { when_ready: Some(Box::new(act)), ..Self::new() }
    }

    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// The process ids on stdout.
    fn pids(&self) -> Vec<i32> {
        self.text().split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }
}

impl OutputSink for Collector {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        match output {
            Output::Stdout(chunk) => {
                self.longest = self.longest.max(chunk.len());
                self.stdout.extend_from_slice(chunk);
            }
            Output::Stderr(chunk) => {
                self.longest = self.longest.max(chunk.len());
                self.stderr.extend_from_slice(chunk);
            }
        }
        if self.stdout.windows(5).any(|window| window == b"ready")
            && let Some(act) = self.when_ready.take()
        {
            return act();
        }
        ControlFlow::Continue(())
    }
}

/// Counts what it hears and keeps nothing.
#[derive(Default)]
struct Scale {
    stdout: usize,
    stderr: usize,
    longest: usize,
}

impl OutputSink for Scale {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let length = match output {
            Output::Stdout(chunk) => {
                self.stdout += chunk.len();
                chunk.len()
            }
            Output::Stderr(chunk) => {
                self.stderr += chunk.len();
                chunk.len()
            }
        };
        assert!(length > 0);
        self.longest = self.longest.max(length);
        ControlFlow::Continue(())
    }
}

fn unique() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn program(argv: &[&str]) -> ChildSpec {
    ChildSpec {
        argv: argv.iter().map(OsString::from).collect(),
        cwd: std::env::temp_dir(),
        environment: Environment::Inherit,
        extra: Vec::new(),
        stdin: Vec::new(),
        marker: unique(),
        timeouts: Timeouts { total: Some(FOREVER), ..Timeouts::default() },
    }
}

fn shell(script: &str) -> ChildSpec {
    program(&["sh", "-c", script])
}

fn python(script: &str) -> ChildSpec {
    program(&["python3", "-c", script])
}

async fn run(spawn: ChildSpec, collector: &mut dyn OutputSink) -> ChildOutcome {
    let (_stop, stopped) = watch::channel(StopRequest::None);
    supervise(spawn, collector, stopped).await.unwrap()
}

/// Runs until the script says `ready`, then stops it that way.
async fn run_and_stop(spawn: ChildSpec, how: StopRequest) -> (ChildOutcome, Collector) {
    let (stop, stopped) = watch::channel(StopRequest::None);
    let mut collector = Collector::when_ready(move || {
        stop.send(how).unwrap();
        ControlFlow::Continue(())
    });
    let ended = supervise(spawn, &mut collector, stopped).await.unwrap();
    (ended, collector)
}

/// No such process, not even a dead one nobody has reaped.
fn gone(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// No such process, or a dead one.
fn dead(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

fn all_gone(pids: &[i32], how_many: usize) {
    assert_eq!(pids.len(), how_many, "{pids:?}");
    let left: Vec<&i32> = pids.iter().filter(|pid| !gone(**pid)).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Says loudly that a test was skipped, and puts it on the list of the test command, which shows
/// what passing tests do not.
fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("SKIPPED: {name}: {why}");
    if let Some(list) = std::env::var_os("COUNTERFOIL_TEST_SKIPS") {
        let mut list = std::fs::OpenOptions::new().append(true).create(true).open(list).unwrap();
        list.write_all(format!("process {name}: {why}\n").as_bytes()).unwrap();
    }
}

// What goes in and what comes out.

/// As node's programs do it: what the pipe has no room for at the end is lost.
#[tokio::test]
async fn who_does_not_wait_for_what_it_wrote_has_room_for_it() {
    let mut collector = Collector::new();
    let script =
        "import os, sys; sys.stdin.read(); os.set_blocking(1, False); os.write(1, b'x' * 300_000)";
    let mut spawn = python(script);
    // It begins when its input is at its end, and that is when its pipes are what they should be.
    spawn.stdin = b"go".to_vec();
    let ended = run(spawn, &mut collector).await;
    assert_eq!(
        (ended.exit, collector.stdout.len()),
        (Exit::Code(0), 300_000),
        "{}",
        String::from_utf8_lossy(&collector.stderr)
    );
}

#[tokio::test]
async fn stdin_is_given_and_closed() {
    let mut collector = Collector::new();
    let mut spawn = program(&["cat"]);
    spawn.stdin = b"hello\n".to_vec();
    let ended = run(spawn, &mut collector).await;
    assert_eq!((ended.cause, ended.exit, ended.left_behind), (Cause::Finished, Exit::Code(0), 0));
    assert_eq!(collector.text(), "hello\n");
}

#[tokio::test]
async fn no_stdin_is_the_end_of_it() {
    let mut collector = Collector::new();
    assert_eq!(run(program(&["cat"]), &mut collector).await.exit, Exit::Code(0));
    assert_eq!(collector.stdout, b"");
}

#[tokio::test]
async fn a_large_stdin_goes_through_while_output_comes_back() {
    let mut scale = Scale::default();
    let mut spawn = program(&["cat"]);
    spawn.stdin = vec![b'x'; 8 << 20];
    assert_eq!(run(spawn, &mut scale).await.exit, Exit::Code(0));
    assert_eq!(scale.stdout, 8 << 20);
}

#[tokio::test]
async fn a_child_need_not_read_stdin() {
    for script in ["echo done", "exec <&-; sleep 0.1; echo done", "head -c 1 >/dev/null; echo done"]
    {
        let mut collector = Collector::new();
        let mut spawn = shell(script);
        spawn.stdin = vec![b'x'; 1 << 20];
        let ended = run(spawn, &mut collector).await;
        assert_eq!((ended.cause, ended.exit), (Cause::Finished, Exit::Code(0)), "{script}");
        assert_eq!(collector.text(), "done\n", "{script}");
    }
}

#[tokio::test]
async fn much_output_costs_little_memory() {
    let peak = || -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = peak();
    let mut scale = Scale::default();
    let ended = run(program(&["head", "-c", "200000000", "/dev/zero"]), &mut scale).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Finished, Exit::Code(0)));
    assert_eq!(scale.stdout, 200_000_000);
    assert!(scale.longest <= 64 * 1024, "{}", scale.longest);
    // The other tests run beside this one and keep some megabytes.
    let grown = peak() - before;
    assert!(grown < 64 * 1024, "{grown} KiB");
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_hold_up_stdout() {
    let (ended, _) =
        run_and_stop(shell("cat /dev/zero >&2 & echo ready; wait"), StopRequest::Immediate).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Stopped, Exit::Signal(9)));
}

#[tokio::test]
async fn a_flood_does_not_hold_up_the_clock() {
    let mut scale = Scale::default();
    let mut spawn = shell("exec cat /dev/zero");
    spawn.timeouts.total = Some(Duration::from_millis(300));
    assert_eq!(run(spawn, &mut scale).await.cause, Cause::Total);
    assert!(scale.stdout > 0);
}

#[tokio::test]
async fn bytes_arrive_unchanged() {
    let mut collector = Collector::new();
    run(shell(r"printf 'a\377\376\000b\r\n'"), &mut collector).await;
    assert_eq!(collector.stdout, b"a\xff\xfe\0b\r\n");
}

#[tokio::test]
async fn both_pipes_are_kept_apart() {
    let mut collector = Collector::new();
    run(shell("echo out; echo err >&2"), &mut collector).await;
    assert_eq!((collector.stdout, collector.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
}

// The environment.

#[tokio::test]
async fn only_these_variables_and_the_marker() {
    let mut collector = Collector::new();
    let mut spawn = program(&["/usr/bin/env"]);
    spawn.environment = Environment::Only(vec![("A".into(), "1".into()), ("B".into(), "2".into())]);
    spawn.extra = vec![("B".into(), "3".into()), (MARKER.into(), "forged".into())];
    let marker = spawn.marker.clone();
    run(spawn, &mut collector).await;
    let text = collector.text();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=1", "B=3", &format!("{MARKER}={marker}")]);
}

#[tokio::test]
async fn the_child_leads_its_own_session_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut collector = Collector::new();
    let mut spawn = shell("pwd -P; cut -d' ' -f1,5,6 /proc/$$/stat");
    spawn.cwd = folder.path().to_owned();
    run(spawn, &mut collector).await;
    let text = collector.text();
    let (place, ids) = text.trim().split_once('\n').unwrap();
    assert_eq!(Path::new(place), folder.path().canonicalize().unwrap());
    let ids: Vec<&str> = ids.split(' ').collect();
    assert!(ids[0] == ids[1] && ids[0] == ids[2], "{ids:?}");
}

// How it ends.

#[tokio::test]
async fn the_exit_is_told_as_it_was() {
    assert_eq!(run(shell("exit 7"), &mut Collector::new()).await.exit, Exit::Code(7));
    assert_eq!(run(shell("kill -USR1 $$"), &mut Collector::new()).await.exit, Exit::Signal(10));
}

async fn refused(spawn: ChildSpec) -> SpawnError {
    let (_stop, stopped) = watch::channel(StopRequest::None);
    supervise(spawn, &mut Collector::new(), stopped).await.unwrap_err()
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let missing = refused(program(&["no-such-agent"])).await;
    assert!(
        matches!(&missing, SpawnError::Missing { program } if program == "no-such-agent"),
        "{missing:?}"
    );
    assert_eq!(
        missing.to_string(),
        "`no-such-agent` cannot be started: there is no such program; install it, put it on PATH or give its full path"
    );
    let missing = refused(program(&["/no/such/agent"])).await;
    assert!(matches!(missing, SpawnError::Missing { .. }), "{missing:?}");
    let is_folder = refused(program(&[folder.path().to_str().unwrap()])).await;
    assert!(matches!(is_folder, SpawnError::IsFolder { .. }), "{is_folder:?}");
    let not_executable = refused(program(&[plain.to_str().unwrap()])).await;
    assert!(matches!(not_executable, SpawnError::NotExecutable { .. }), "{not_executable:?}");
    let no_interpreter = refused(program(&[script.to_str().unwrap()])).await;
    assert!(matches!(no_interpreter, SpawnError::NoInterpreter { .. }), "{no_interpreter:?}");
    let no_folder =
        refused(ChildSpec { cwd: folder.path().join("nowhere"), ..shell("true") }).await;
    assert!(matches!(no_folder, SpawnError::NoFolder { .. }), "{no_folder:?}");
    let bad_marker = refused(ChildSpec { marker: "a\0b".into(), ..shell("true") }).await;
    assert!(matches!(bad_marker, SpawnError::BadMarker { .. }), "{bad_marker:?}");
    assert!(matches!(refused(program(&[])).await, SpawnError::NoProgram));
}

#[tokio::test]
async fn a_path_counts_from_the_childs_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/echo", folder.path().join("agent")).unwrap();
    let mut collector = Collector::new();
    run(
        ChildSpec { cwd: folder.path().to_owned(), ..program(&["./agent", "here"]) },
        &mut collector,
    )
    .await;
    assert_eq!(collector.text(), "here\n");
}

// The clocks.

#[tokio::test]
async fn silence_from_the_start_is_the_startup_clock() {
    let mut spawn = shell("exec sleep 60");
    spawn.timeouts.startup = Some(Duration::from_millis(100));
    spawn.timeouts.idle = Some(FOREVER);
    let ended = run(spawn, &mut Collector::new()).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Startup, Exit::Signal(15)));
    assert!(
        ended.wall >= Duration::from_millis(100) && ended.wall < Duration::from_secs(3),
        "{ended:?}"
    );
}

#[tokio::test]
async fn silence_after_output_is_the_idle_clock() {
    let mut spawn = shell("for i in 1 2 3 4 5; do echo $i >&2; sleep 0.1; done; exec sleep 60");
    spawn.timeouts.startup = Some(FOREVER);
    spawn.timeouts.idle = Some(Duration::from_millis(350));
    let mut collector = Collector::new();
    let ended = run(spawn, &mut collector).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Idle, Exit::Signal(15)));
    assert_eq!(collector.stderr, b"1\n2\n3\n4\n5\n");
}

#[tokio::test]
async fn output_does_not_put_off_the_total_clock() {
    let mut spawn = shell("while :; do echo x; sleep 0.02; done");
    spawn.timeouts.idle = Some(FOREVER);
    spawn.timeouts.total = Some(Duration::from_millis(300));
    let ended = run(spawn, &mut Collector::new()).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Total, Exit::Signal(15)));
    assert!(ended.wall < Duration::from_secs(3), "{ended:?}");
}

#[tokio::test]
async fn clocks_that_never_strike_do_no_harm() {
    let mut spawn = shell("echo x");
    spawn.timeouts = Timeouts {
        startup: Some(Duration::MAX),
        idle: Some(Duration::MAX),
        total: Some(Duration::MAX),
        finish: Duration::MAX,
        grace: Duration::MAX,
        linger: Duration::MAX,
    };
    assert_eq!(run(spawn, &mut Collector::new()).await.cause, Cause::Finished);
}

#[tokio::test]
async fn who_ignores_sigterm_gets_sigkill_after_the_grace() {
    let mut spawn = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    spawn.timeouts.grace = Duration::from_millis(300);
    let (ended, _) = run_and_stop(spawn, StopRequest::Graceful).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Stopped, Exit::Signal(9)));
    assert!(
        ended.wall >= Duration::from_millis(300) && ended.wall < Duration::from_secs(3),
        "{ended:?}"
    );
}

// Stops.

#[tokio::test]
async fn stopped_gently_a_child_writes_its_last_words() {
    let spawn = shell("trap 'echo bye; exit 3' TERM; sh -c 'echo ready; exec sleep 60' & wait");
    let (ended, collector) = run_and_stop(spawn, StopRequest::Graceful).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Stopped, Exit::Code(3)));
    assert_eq!(collector.text(), "ready\nbye\n");
    assert!(ended.wall < Duration::from_secs(3), "nobody waits out the grace: {ended:?}");
}

#[tokio::test]
async fn stopped_gently_a_descendant_has_its_grace_too() {
    let script = "sh -c 'trap \"sleep 0.2; echo saved; exit\" TERM; echo ready; while :; do sleep 0.02; done' & wait";
    let (ended, collector) = run_and_stop(shell(script), StopRequest::Graceful).await;
    assert_eq!((ended.exit, ended.left_behind), (Exit::Signal(15), 0));
    assert_eq!(collector.text(), "ready\nsaved\n");
}

#[tokio::test]
async fn stopped_at_once_there_are_no_last_words() {
    let spawn = shell("trap 'echo bye; exit 3' TERM; sh -c 'echo ready; exec sleep 60' & wait");
    let (ended, collector) = run_and_stop(spawn, StopRequest::Immediate).await;
    assert_eq!((ended.cause, ended.exit, ended.left_behind), (Cause::Stopped, Exit::Signal(9), 1));
    assert_eq!(collector.text(), "ready\n");
}

/// Stops gently, and at once when that is refused.
struct Impatient {
    stop: watch::Sender<StopRequest>,
    heard: Vec<u8>,
}

impl OutputSink for Impatient {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        if let Output::Stdout(chunk) = output {
            self.heard.extend_from_slice(chunk);
        }
        let refused = self.heard.ends_with(b"no\n");
        self.stop
            .send(if refused { StopRequest::Immediate } else { StopRequest::Graceful })
            .unwrap();
        ControlFlow::Continue(())
    }
}

#[tokio::test]
async fn a_stop_at_once_cuts_the_grace_short() {
    let mut spawn = python(
        "import os, signal, time\n\
         signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'no\\n'))\n\
         os.write(1, b'ready\\n')\n\
         while True: time.sleep(1)",
    );
    spawn.timeouts.grace = FOREVER;
    let (stop, stopped) = watch::channel(StopRequest::None);
    let mut collector = Impatient { stop, heard: Vec::new() };
    let ended = supervise(spawn, &mut collector, stopped).await.unwrap();
    assert_eq!((ended.cause, ended.exit), (Cause::Stopped, Exit::Signal(9)));
    assert_eq!(collector.heard, b"ready\nno\n", "asked once, not twice");
}

#[tokio::test]
async fn a_stop_from_before_the_start_counts() {
    let (_stop, stopped) = watch::channel(StopRequest::Immediate);
    let ended = supervise(shell("exec sleep 60"), &mut Collector::new(), stopped).await.unwrap();
    assert_eq!((ended.cause, ended.exit), (Cause::Stopped, Exit::Signal(9)));
}

#[tokio::test]
async fn nobody_left_to_stop_it_is_no_stop() {
    let (stop, stopped) = watch::channel(StopRequest::None);
    drop(stop);
    let ended =
        supervise(shell("sleep 0.05; exit 4"), &mut Collector::new(), stopped).await.unwrap();
    assert_eq!((ended.cause, ended.exit), (Cause::Finished, Exit::Code(4)));
}

#[tokio::test]
async fn the_watcher_can_end_it_and_hears_no_more() {
    let mut collector = Collector::when_ready(|| ControlFlow::Break(()));
    let ended = run(
        shell("trap 'echo bye; exit 3' TERM; sh -c 'echo ready; exec sleep 60' & wait"),
        &mut collector,
    )
    .await;
    assert_eq!((ended.cause, ended.exit), (Cause::SinkStopped, Exit::Code(3)));
    assert_eq!(collector.text(), "ready\n");
}
