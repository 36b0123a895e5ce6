//! The ways in which a run is struck.

use crate::PROGRAM;
use crate::shell_project::ShellProject;
use crate::small_disk::SmallDisk;
use counterfoil_testkit::{TestCommand, send_signal, testing_dir, wait_until};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a process that was struck may take to end, on a busy machine too.
const END: Duration = Duration::from_mins(1);

/// What strikes a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strike {
    Kill,
    Hangup,
    Terminate,
    Interrupt,
    /// The terminal that the program runs in is closed.
    ClosedTerminal,
    /// Nobody reads what the program prints any more.
    ClosedPipe,
    /// The kernel kills the program because its control group has no memory left.
    OutOfMemory,
    /// The disk of the state folder is full, and the program is killed while it is.
    FullDisk,
    /// As before, but there is room again before the program gives up.
    RoomInTime,
    /// The time of day jumps, by hours and days, forward and back, and the program is killed.
    ClockJump,
}

impl Strike {
    pub(super) const ALL: [Self; 10] = [
        Self::Kill,
        Self::Hangup,
        Self::Terminate,
        Self::Interrupt,
        Self::ClosedTerminal,
        Self::ClosedPipe,
        Self::OutOfMemory,
        Self::FullDisk,
        Self::RoomInTime,
        Self::ClockJump,
    ];
}

/// What a machine must offer for some of the strikes.
pub(super) struct Stage {
    project: ShellProject,
    disk: Option<SmallDisk>,
    memory: Option<MemoryGroup>,
    /// The number of seconds that is added to the time of day.
    clock: PathBuf,
    preloaded: PathBuf,
}

impl Stage {
    pub(super) fn new(project: ShellProject) -> Self {
        let clock = project.root_path("clock");
        fs::write(&clock, "0").unwrap();
        let preloaded = project.root_path("clock.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&preloaded)
            .arg(testing_dir().join("clock.c"))
            .status();
        assert!(built.unwrap().success(), "testing/clock.c cannot be compiled");
        let disk = SmallDisk::mount(project.state().to_owned(), "16m").ok();
        Self { disk, memory: MemoryGroup::new(), clock, preloaded, project }
    }

    pub(super) fn project(&self) -> &ShellProject {
        &self.project
    }

    /// Whether a run can be struck like this on this machine.
    pub(super) fn offers(&self, strike: Strike) -> bool {
        match strike {
            Strike::OutOfMemory => self.memory.is_some(),
            Strike::FullDisk | Strike::RoomInTime => self.disk.is_some(),
            _ => true,
        }
    }

    /// The program with these arguments and the clock of the stage.
    pub(super) fn command<S: AsRef<str>>(&self, arguments: &[S]) -> TestCommand {
        let mut command = self.project.command(arguments);
        self.set_clock(&mut command);
        command
    }

    fn set_clock(&self, command: &mut TestCommand) {
        command.env("LD_PRELOAD", &self.preloaded).env("COUNTERFOIL_TEST_CLOCK", &self.clock);
    }

    /// Starts the program with these arguments, strikes it after a while, and waits until it has
    /// ended. Returns how it ended: a status of the program, or that of the terminal it ran in.
    pub(super) fn strike(
        &self,
        strike: Strike,
        arguments: &[String],
        after: Duration,
        jump: i64,
    ) -> ExitStatus {
        match strike {
            Strike::Kill => self.signal(arguments, after, "KILL"),
            Strike::Hangup => self.signal(arguments, after, "HUP"),
            Strike::Terminate => self.signal(arguments, after, "TERM"),
            Strike::Interrupt => self.signal(arguments, after, "INT"),
            Strike::ClosedTerminal => self.close_terminal(arguments, after),
            Strike::ClosedPipe => self.close_pipe(arguments, after),
            Strike::OutOfMemory => self.exhaust_memory(arguments, after),
            Strike::FullDisk | Strike::RoomInTime => {
                self.fill_disk(arguments, after, strike == Strike::RoomInTime)
            }
            Strike::ClockJump => {
                let mut live = self.start(arguments);
                std::thread::sleep(after / 2);
                fs::write(&self.clock, jump.to_string()).unwrap();
                std::thread::sleep(after / 2);
                live.kill().unwrap();
                live.wait().unwrap()
            }
        }
    }

    /// Starts the program. It prints into files.
    fn start(&self, arguments: &[String]) -> Child {
        let mut command = self.command(arguments);
        let output = fs::File::create(self.project.scratch_path("struck")).unwrap();
        let error = output.try_clone().unwrap();
        command.as_std().stdin(Stdio::null()).stdout(output).stderr(error).spawn().unwrap()
    }

    fn signal(&self, arguments: &[String], after: Duration, name: &str) -> ExitStatus {
        let live = self.start(arguments);
        std::thread::sleep(after);
        // Not reaped yet, so the id is still its own.
        send_signal(name, &live.id().to_string());
        wait(live)
    }

    fn close_terminal(&self, arguments: &[String], after: Duration) -> ExitStatus {
        let mut command = self.command(arguments);
        let words = std::iter::once(PROGRAM.into())
            .chain(command.as_std().get_args().map(|word| word.to_string_lossy()));
        let line = words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let mut terminal = self.project.command_of("script", &["-qec", &line, "/dev/null"]);
        self.set_clock(&mut terminal);
        let mut live = terminal
            .as_std()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(after);
        live.kill().unwrap();
        live.wait().unwrap()
    }

    fn close_pipe(&self, arguments: &[String], after: Duration) -> ExitStatus {
        let mut command = self.command(arguments);
        let pipes = command.as_std().stdin(Stdio::null());
        let mut live = pipes.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(after);
        drop((live.stdout.take(), live.stderr.take()));
        wait(live)
    }

    fn exhaust_memory(&self, arguments: &[String], after: Duration) -> ExitStatus {
        let group = self.memory.as_ref().unwrap();
        let mut plain = self.command(arguments);
        // The shell joins the group and becomes the program, as the first that the kernel kills.
        let script =
            "echo $$ > \"$1\" && echo 1000 > /proc/$$/oom_score_adj && shift && exec \"$@\"";
        let mut command = self.project.command_of(
            "sh",
            &["-c", script, "sh", &group.members().display().to_string(), PROGRAM],
        );
        command.args(plain.as_std().get_args());
        self.set_clock(&mut command);
        let output = fs::File::create(self.project.scratch_path("struck")).unwrap();
        let live =
            command.as_std().stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn();
        let live = live.unwrap();
        std::thread::sleep(after);
        let mut eater = group.eat_memory(live.id());
        let ended = wait(live);
        let _ = eater.kill();
        let _ = eater.wait();
        ended
    }

    fn fill_disk(&self, arguments: &[String], after: Duration, in_time: bool) -> ExitStatus {
        let disk = self.disk.as_ref().unwrap();
        let mut live = self.start(arguments);
        std::thread::sleep(after / 2);
        disk.fill();
        std::thread::sleep(after);
        if in_time {
            disk.make_room();
            std::thread::sleep(after / 2);
        }
        live.kill().unwrap();
        let ended = live.wait().unwrap();
        disk.make_room();
        ended
    }
}

/// Waits until a process has ended, and kills it if it takes too long.
fn wait(mut live: Child) -> ExitStatus {
    wait_until(END, "the process that was struck ends", || live.try_wait().unwrap())
}

/// Whether a process could be struck before it had ended by itself: with a result, or at the question.
pub(super) fn was_hit(ended: ExitStatus) -> bool {
    ended.signal().is_some() || !matches!(ended.code(), Some(0 | 4))
}

/// A control group with little memory, of either version.
struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    const LIMIT: u64 = 256 << 20;

    /// `None` if this process may not create one.
    fn new() -> Option<Self> {
        let name = format!("counterfoil-test-{}", std::process::id());
        let versions =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(root, limit)| {
            let group = Self { folder: Path::new(root).join(&name) };
            fs::create_dir(&group.folder).ok()?;
            fs::write(group.folder.join(limit), Self::LIMIT.to_string()).ok()?;
            // Without this, swap takes what does not fit.
            let _ = fs::write(group.folder.join("memory.swap.max"), "0");
            let _ = fs::write(group.folder.join("memory.swappiness"), "0");
            Some(group)
        })
    }

    fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Starts processes in the group that take memory until another one is gone. Each of them has
    /// less than the group, and so is not the first that the kernel kills.
    fn eat_memory(&self, until_gone: u32) -> Child {
        let script = r#"
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
for _ in range(3):
    if os.fork() == 0:
        break
taken = []
def alive():
    try:
        return ") Z " not in open("/proc/%s/stat" % sys.argv[2]).read()
    except OSError:
        return False
while alive() and len(taken) < 1024:
    taken.append(b"x" * (1 << 20))
"#;
        let members = self.members();
        let mut eater = Command::new("python3");
        eater.args(["-c", script]).arg(members).arg(until_gone.to_string());
        eater.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The last member may still be on its way out.
        for _ in 0..200 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
