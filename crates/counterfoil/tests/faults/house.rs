//! A repository in a temporary folder, and the real binary at work in it: started, watched,
//! signalled, ended.

use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes longer, however busy the machine is.
pub(crate) const LONG: Duration = Duration::from_mins(1);
/// How often something is looked at that nobody tells us about.
const LOOK: Duration = Duration::from_millis(5);

/// A contract that every agent here works under.
const OK: &str = "contract: acme/ok\nversion: 1\nfields: { ok: boolean, note?: string }\nexamples: [{ ok: true }]\n";

/// A repository, and beside it what our processes said.
pub(crate) struct House {
    folder: TempDir,
    said: AtomicUsize,
}

/// What became of one of our processes.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// The report on stdout.
    pub(crate) fn report(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("no report ({error}): {self:?}"))
    }

    /// Holds that it ended with this code, and that what it said has all these words in it.
    pub(crate) fn expect(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(
                self.out.contains(word) || self.err.contains(word),
                "'{word}' is missing: {self:?}"
            );
        }
    }
}

impl House {
    pub(crate) fn new() -> Self {
        Self::furnished(TempDir::new().unwrap())
    }

    /// One in a folder of the test's choice.
    pub(crate) fn within(parent: &Path) -> Self {
        Self::furnished(TempDir::new_in(parent).unwrap())
    }

    fn furnished(folder: TempDir) -> Self {
        let house = Self { folder, said: AtomicUsize::new(0) };
        house.file("contracts/ok.yaml", OK);
        house.file("prompts/work.md", "Do the work.\n");
        std::fs::create_dir(house.folder.path().join("said")).unwrap();
        house
    }

    /// The folder around the repository.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// Where the runs are kept: beside the repository, so that it can vanish alone.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Writes a file of the repository.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.repo().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A file of the repository, empty if it is not there.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.repo().join(name)).unwrap_or_default()
    }

    /// The binary with these arguments, its runs in this house.
    pub(crate) fn command<S: AsRef<str>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
        command.args(arguments.iter().map(AsRef::as_ref));
        command.arg("--state").arg(self.state());
        if arguments.first().is_some_and(|first| first.as_ref() == "run") {
            command.arg("--repo").arg(self.repo());
        }
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        command
    }

    /// Starts it; what it says goes into files, so that it never waits for us.
    pub(crate) fn start<S: AsRef<str>>(&self, arguments: &[S]) -> Live {
        self.start_as(self.command(arguments))
    }

    pub(crate) fn start_as(&self, mut command: Command) -> Live {
        let number = self.said.fetch_add(1, Ordering::Relaxed);
        let name = |which: &str| self.folder.path().join(format!("said/{number}.{which}"));
        let (out, err) = (name("out"), name("err"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Live { child: command.spawn().unwrap(), out, err }
    }

    /// Runs it to its end.
    pub(crate) fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Said {
        self.start(arguments).end()
    }

    /// Runs a workflow of this house with one program as all its agents.
    pub(crate) fn work(&self, workflow: &str, agent: &str) -> Said {
        self.run(&starting(workflow, agent))
    }

    /// How the newest run stands.
    pub(crate) fn show(&self) -> Value {
        let said = self.run(&["show", "last", "--format", "json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.report()
    }

    /// The events of the newest run; their numbers have no gap, and their times do not go back.
    pub(crate) fn events(&self) -> Vec<Value> {
        let said = self.run(&["show", "last", "--events"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let events: Vec<Value> =
            said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (at, event) in events.iter().enumerate() {
            assert_eq!(
                event["seq"].as_u64(),
                Some(at as u64 + 1),
                "a gap in the journal at {event}"
            );
            assert!(
                at == 0 || event["at"].as_i64() >= events[at - 1]["at"].as_i64(),
                "time went back at {event}"
            );
        }
        events
    }

    /// How many events of a kind the newest run has.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.events().iter().filter(|event| event["kind"] == kind).count()
    }
}

/// The arguments that start a workflow with one program as all its agents.
pub(crate) fn starting(workflow: &str, agent: &str) -> [String; 6] {
    ["run", &format!("repo/{workflow}"), "--agent", agent, "--format", "json"].map(str::to_owned)
}

/// One of our processes. It does not outlive the test.
pub(crate) struct Live {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Live {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn end(self) -> Said {
        self.end_within(LONG)
    }

    pub(crate) fn end_within(mut self, most: Duration) -> Said {
        let status = until(most, "the process ends", || self.child.try_wait().unwrap());
        self.said(status)
    }

    /// Kills it without a warning. Whether it was still there to be killed.
    pub(crate) fn kill(mut self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.child.kill().unwrap();
        self.child.wait().unwrap().signal() == Some(9)
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, &self.pid().to_string());
    }

    /// What it has said so far on stderr.
    pub(crate) fn so_far(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.err).unwrap()).into_owned()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn said(&self, status: ExitStatus) -> Said {
        let text =
            |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        Said { code: status.code(), out: text(&self.out), err: text(&self.err) }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process, or with a `-` in front to a group.
pub(crate) fn signal(name: &str, whom: &str) {
    let status =
        Command::new("sh").args(["-c", "kill -s \"$1\" -- \"$2\"", "kill", name, whom]).status();
    assert!(status.unwrap().success(), "{name} to {whom}");
}

/// Looks again and again until there is something, but not for ever.
pub(crate) fn until<T>(most: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < most, "waited {most:?} in vain until {what}");
        std::thread::sleep(LOOK);
    }
}

/// The processes whose environment carries a marker that begins so, with their command lines.
pub(crate) fn carrying(marker: &str) -> Vec<String> {
    let wanted = format!("COUNTERFOIL_ATTEMPT={marker}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(wanted.as_bytes()))
        {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!(
                "{} {}",
                entry.file_name().display(),
                String::from_utf8_lossy(&line).replace('\0', " ")
            ));
        }
    }
    found
}

/// A workflow with a command that is done before, and an agent with these bounds whose fault it is
/// about.
pub(crate) fn work(bounds: &str) -> String {
    format!(
        "workflow: work\n\
         agents: {{ worker: {{ contract: acme/ok, prompt: prompts/work.md, {bounds} }} }}\n\
         contracts: [contracts]\n\
         start: before\n\
         states:\n\
         \x20 before: {{ command: [sh, -c, 'echo ran >> before'], go: work }}\n\
         \x20 work: {{ agent: worker, go: end }}\n\
         \x20 end: {{ end: done }}\n"
    )
}

/// The same, and a person is asked in between: a run that rests there.
pub(crate) fn asking_first() -> String {
    work("").replace("before'], go: work", "before'], go: approve")
        + "  approve: { ask: { question: Go on?, choices: [yes, no] }, go: work }\n"
}

/// The workflow of [`work`], with a shell script as its agent.
pub(crate) fn house_with(bounds: &str, script: &str) -> House {
    let house = House::new();
    house.file("flow.yaml", work(bounds));
    house.file("agent.sh", script);
    house
}

/// The agent of [`house_with`].
pub(crate) const AGENT: &str = "command:sh agent.sh";

impl House {
    /// Holds that nothing journaled is lost: what was done before is there, was done once, and
    /// nobody is left at work.
    pub(crate) fn is_whole(&self) {
        let report = self.show();
        assert_eq!(report["commands"][0]["outcome"], "accepted", "{report:#}");
        assert_eq!(self.read("before"), "ran\n");
        self.events();
        let left = carrying(report["run"].as_str().unwrap());
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// Runs [`work`] and holds that it ended so.
    pub(crate) fn ends(
        &self,
        agent: &str,
        code: i32,
        outcome: &str,
        cause: Option<&str>,
        words: &[&str],
    ) -> Value {
        let said = self.work("flow.yaml", agent);
        said.expect(code, words);
        let report = said.report();
        assert_eq!(
            (report["outcome"].as_str(), report["cause"].as_str()),
            (Some(outcome), cause),
            "{said:?}"
        );
        for word in words {
            assert!(
                report["reason"].as_str().unwrap().contains(word),
                "'{word}': {}",
                report["reason"]
            );
        }
        self.is_whole();
        report
    }
}
