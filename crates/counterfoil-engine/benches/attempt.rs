//! The overhead of an attempt: a `command:` agent that only prints a valid result, in an empty
//! folder, compared with the same program started directly. A watchdog runs, as in the program.
//! Measures the time, with the state folder on disk and in memory, and the peak memory (`VmHWM`,
//! reset before each). Prints one JSON object per line.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use counterfoil_agents::agent::{Agent, Session, Task};
use counterfoil_agents::command_agent::CommandAgent;
use counterfoil_engine::{AgentAssignments, Engine, RunObserver, StartOptions};
use counterfoil_flow::{Budget, Event, RunState, Workflow, check};
use counterfoil_process::{
    ChildSpec, Environment, Output, OutputSink, StopRequest, Timeouts, containment, supervise,
    sweep,
};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

const PROGRAM: [&str; 2] = ["echo", r#"{"ok": true}"#];
const TIMES: usize = 100;
const ROUNDS: usize = 5;

/// The argument with which this program is the watchdog.
const WATCHDOG: &str = "--watchdog";

fn main() {
    if std::env::args().any(|argument| argument == WATCHDOG) {
        counterfoil_process::watch(std::io::stdin().lock());
        return;
    }
    let program = std::env::current_exe().unwrap();
    counterfoil_process::watch_with(vec![program.into(), WATCHDOG.into()]);
    let disk =
        std::env::var("BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    let disk = tempfile::tempdir_in(disk).unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    let empty = tempfile::tempdir().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{}", json!({"name": "containment", "is": containment().to_string()}));

    // The variants alternate, so that other load affects all of them.
    let mut samples: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let mut peaks: BTreeMap<&str, u64> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut measure = |name: &'static str, times: &mut dyn FnMut() -> Vec<Duration>| {
            forget_peak();
            samples.entry(name).or_default().extend(times());
            // The engine keeps memory between rounds, so the program alone is measured before the
            // engine is opened.
            let peak = peaks.entry(name).or_insert_with(peak_kb);
            if name != "bare" {
                *peak = peak_kb().max(*peak);
            }
        };
        measure("bare", &mut || (0..TIMES).map(|_| timed(bare)).collect());
        measure("supervised", &mut || supervised(&runtime, round));
        let folder = format!("state{round}");
        if let Some(memory) = &memory {
            measure("attempt-in-memory", &mut || {
                attempts(&runtime, empty.path(), &memory.path().join(&folder))
            });
        }
        measure("attempt", &mut || attempts(&runtime, empty.path(), &disk.path().join(&folder)));
    }
    samples.insert("fdatasync", fdatasync(&disk.path().join("sync")));
    samples.insert(
        "sweep",
        (0..20).map(|_| timed(|| assert_eq!(sweep("bench/nobody").killed, 0))).collect(),
    );
    report(samples, &peaks);
}

fn report(samples: BTreeMap<&str, Vec<Duration>>, peaks: &BTreeMap<&str, u64>) {
    let mut medians: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, mut times) in samples {
        times.sort();
        let at = |part: usize| {
            let place = (times.len() * part / 100).min(times.len() - 1);
            times.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
        };
        // The fastest tenth approximates the cost on an idle machine.
        println!(
            "{}",
            json!({"name": name, "p10_ms": at(10), "p50_ms": at(50), "p95_ms": at(95), "peak_kb": peaks.get(name)})
        );
        medians.insert(name, at(50));
    }
    let (bare, attempt) = (medians["bare"], medians["attempt"]);
    let (added_ms, added_mb) = (attempt - bare, mb(peaks["attempt"]) - mb(peaks["bare"]));
    println!(
        "{}",
        json!({
            "name": "overhead",
            "added_ms": added_ms,
            "of_it_the_disk_ms": medians.get("attempt-in-memory").map(|memory| attempt - memory),
            "of_it_supervision_ms": medians["supervised"] - bare,
            "times_bare": attempt / bare,
            "added_peak_mb": added_mb,
            "not_of_the_program_file_mb": mb(status_kb("RssAnon:")),
            "under_20_ms_and_20_mb": added_ms < 20.0 && added_mb < 20.0,
        })
    );
}

fn mb(kb: u64) -> f64 {
    f64::from(u32::try_from(kb).unwrap()) / 1024.0
}

fn timed(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

/// The program alone, with pipes.
fn bare() {
    let output = Command::new(PROGRAM[0]).arg(PROGRAM[1]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
}

struct Deaf;

impl OutputSink for Deaf {
    fn output(&mut self, _: Output<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The program under process supervision only.
fn supervised(runtime: &Runtime, round: usize) -> Vec<Duration> {
    let one = |at: usize| {
        let spawn = ChildSpec {
            argv: PROGRAM.iter().map(Into::into).collect(),
            cwd: std::env::temp_dir(),
            environment: Environment::Inherit,
            extra: Vec::new(),
            stdin: b"prompt".to_vec(),
            marker: format!("bench/{}/{round}/{at}", std::process::id()),
            timeouts: Timeouts::default(),
        };
        let (_keep, stop) = watch::channel(StopRequest::None);
        timed(|| {
            assert_eq!(runtime.block_on(supervise(spawn, &mut Deaf, stop)).unwrap().left_behind, 0);
        })
    };
    (0..TIMES).map(one).collect()
}

/// A `command:` agent that declares to change no files, so that no snapshots are taken.
struct Quiet(CommandAgent);

impl Agent for Quiet {
    fn open(&self, task: Task) -> Box<dyn Session> {
        self.0.open(task)
    }

    fn changes_files(&self) -> bool {
        false
    }
}

/// A run with several attempts, each timed from its start to the start of the next. This includes
/// rendering and storing the prompt, running the program, storing, extracting and validating the
/// reply, the guard, and committing the events.
fn attempts(runtime: &Runtime, repo: &Path, folder: &Path) -> Vec<Duration> {
    let starts = Arc::new(Starts::default());
    let agent = Quiet(CommandAgent::new(PROGRAM.map(str::to_owned).to_vec()));
    let options = StartOptions {
        workflow: workflow(),
        inputs: Map::new(),
        budget: Budget::default(),
        agents: AgentAssignments::new().with("one", "command:echo", Arc::new(agent)),
        repo: repo.to_owned(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let (_keep, stop) = watch::channel(StopRequest::None);
    let engine = Engine::open(folder, None).unwrap();
    let report = runtime.block_on(engine.start(options, starts.clone(), stop)).unwrap();
    assert_eq!((report.outcome.as_str(), report.attempts.len()), ("done", TIMES + 1));
    assert!(report.attempts.iter().all(|attempt| attempt.outcome.as_deref() == Some("accepted")));
    let starts = starts.0.lock().unwrap();
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn workflow() -> Workflow {
    let text = format!(
        "workflow: bench
agents:
  one: {{ contract: bench/step, prompt: 'Do a step.' }}
contracts: [step.yaml]
limits: {{ rounds: {{ max: {TIMES}, then: done }} }}
start: a
states:
  a: {{ agent: one, next: [{{ when: result.ok, go: a, counts: rounds }}, {{ go: done }}] }}
  done: {{ end: done }}
"
    );
    let contract =
        "contract: bench/step\nversion: 1\nfields: { ok: boolean }\nexamples: [{ ok: true }]\n";
    let files = BTreeMap::from([
        ("w.yaml".to_owned(), text),
        ("step.yaml".to_owned(), contract.to_owned()),
    ]);
    check("w.yaml", &files, &counterfoil_contract::Registry::new()).unwrap()
}

/// When each attempt started.
#[derive(Default)]
struct Starts(Mutex<Vec<Instant>>);

impl RunObserver for Starts {
    fn on_event(&self, event: &Event, _: i64, _: &RunState) {
        if matches!(event, Event::AttemptStarted { .. }) {
            self.0.lock().unwrap().push(Instant::now());
        }
    }

    fn on_activity(&self, _: &str, _: &str) {}
}

/// The speed of the disk: a small write and a sync.
fn fdatasync(file: &Path) -> Vec<Duration> {
    use std::io::Write;
    let mut file = std::fs::File::create(file).unwrap();
    let mut one = || {
        file.write_all(&[0; 4096]).unwrap();
        file.sync_data().unwrap();
    };
    (0..TIMES).map(|_| timed(&mut one)).collect()
}

/// Resets the peak to the current usage.
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn peak_kb() -> u64 {
    status_kb("VmHWM:")
}

fn status_kb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
