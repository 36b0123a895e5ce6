//! Durable steps: one run, sixteen runs at once, and a plain loop that writes the same rows; also
//! listing, resuming and verifying. Prints one JSON object per line.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use counterfoil_agents::agent::{
    Agent, AgentReply, BoxFuture, Prompt, PromptContext, ReplyDetails, ReplyStatus, Session, Task,
};
use counterfoil_engine::journal::{Batch, Journal, NewEvent, NewRun, Summary};
use counterfoil_engine::{AgentAssignments, Engine, ResumeOptions, RunObserver, StartOptions};
use counterfoil_flow::{Budget, Event, RunState, Usage, Workflow, check};
use counterfoil_process::StopRequest;
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const STEPS: usize = 2000;
const RUNS: usize = 16;

fn main() {
    let folder =
        std::env::var("BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let rounds = 5;
    let best = |name: &str, mut rounds: Vec<(f64, Vec<Duration>)>| {
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (rate, mut times) = rounds.swap_remove(rounds.len() / 2);
        times.sort();
        let at = |share: f64| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss
            )]
            let index = (times.len() as f64 * share) as usize;
            times.get(index).copied().unwrap_or_default().as_secs_f64() * 1000.0
        };
        println!(
            "{}",
            json!({"name": name, "steps_per_second": rate.round(), "p50_ms": at(0.5), "p95_ms": at(0.95)})
        );
    };
    let one = |at: usize| runtime.block_on(one_run(&folder.path().join(format!("one{at}"))));
    best("one-run", (0..rounds).map(one).collect());
    let many = |at: usize| runtime.block_on(many_runs(&folder.path().join(format!("many{at}"))));
    best("sixteen-runs", (0..rounds).map(many).collect());
    let bare = |at: usize| bare_group_commit(&folder.path().join(format!("bare{at}")));
    best("bare-group-commit", (0..rounds).map(bare).collect());
    let fsync = |at: usize| bare_fsync(&folder.path().join(format!("fsync{at}")));
    best("bare-fsync", (0..rounds).map(fsync).collect());
    listing(&folder.path().join("list"));
    resuming(&folder.path().join("resume"), &runtime);
    checking();
}

/// An agent in this process that replies immediately.
struct Immediate;

impl Agent for Immediate {
    fn open(&self, _: Task) -> Box<dyn Session> {
        Box::new(Immediate)
    }

    fn changes_files(&self) -> bool {
        false
    }

    fn has_files(&self) -> bool {
        false
    }
}

impl Session for Immediate {
    fn ask<'a>(&'a mut self, _: &'a Prompt, _: &'a mut PromptContext) -> BoxFuture<'a, AgentReply> {
        Box::pin(async {
            AgentReply {
                text: br#"Done. {"ok": true, "note": "all of it"}"#.to_vec(),
                usage: Usage { input_tokens: 10, output_tokens: 5, cost_usd: 0.0, wall_ms: 0 },
                status: ReplyStatus::Complete,
                played: None,
                recorded: false,
                details: ReplyDetails::default(),
            }
        })
    }
}

fn looping(steps: usize) -> Workflow {
    let text = format!(
        "workflow: bench
variables: {{ note: string? }}
agents:
  one: {{ contract: bench/step, prompt: 'Do a step. {{{{ note | default(\"\", true) }}}}' }}
contracts: [step.yaml]
limits: {{ rounds: {{ max: {}, then: done }} }}
start: a
states:
  a: {{ agent: one, next: [{{ when: result.ok, set: {{ note: result.note }}, go: b }}, {{ go: done }}] }}
  b: {{ agent: one, next: [{{ when: result.ok, go: a, counts: rounds }}, {{ go: done }}] }}
  done: {{ end: done }}
",
        steps / 2 - 1
    );
    let contract = "contract: bench/step\nversion: 1\nfields: { ok: boolean, note?: string }\nexamples: [{ ok: true }]\n";
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

async fn drive(engine: &Engine, folder: &Path, steps: usize) -> Vec<Instant> {
    let starts = Arc::new(Starts::default());
    let options = StartOptions {
        workflow: looping(steps),
        inputs: Map::new(),
        budget: Budget::default(),
        agents: AgentAssignments::new().with("one", "in-process", Arc::new(Immediate)),
        repo: folder.to_owned(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let (_keep, stop) = watch::channel(StopRequest::None);
    let report = engine.start(options, starts.clone(), stop).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.attempts.len()), ("done", steps));
    std::mem::take(&mut *starts.0.lock().unwrap())
}

#[allow(clippy::cast_precision_loss)]
fn rate(steps: usize, time: Duration) -> f64 {
    steps as f64 / time.as_secs_f64()
}

async fn one_run(folder: &Path) -> (f64, Vec<Duration>) {
    let engine = Engine::open(folder, None).unwrap();
    let times = between(&drive(&engine, folder, STEPS).await);
    (rate(times.len(), times.iter().sum()), times)
}

async fn many_runs(folder: &Path) -> (f64, Vec<Duration>) {
    let engine = Engine::open(folder, None).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..RUNS {
        let (engine, folder) = (engine.clone(), folder.to_owned());
        tasks.spawn(async move { drive(&engine, &folder, STEPS / 4).await });
    }
    // From the first start to the last, without reading the journal for the report.
    let starts: Vec<Vec<Instant>> = tasks.join_all().await;
    let (first, last) =
        (starts.iter().flatten().min().unwrap(), starts.iter().flatten().max().unwrap());
    let rate = rate(RUNS * STEPS / 4, *last - *first);
    (rate, starts.iter().flat_map(|starts| between(starts)).collect())
}

fn between(starts: &[Instant]) -> Vec<Duration> {
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The rows of a step, as the engine writes them.
fn rows() -> Vec<NewEvent> {
    let body = |text: &str| text.as_bytes().to_vec();
    let ended = r#"{"attempt-ended":{"attempt":"a#12","outcome":"accepted","value":{"ok":true,"note":"all of it"},"reply":{"transcript":"transcripts/01a1de02-7c82-7707-9c13-6ff908961482/a_12.1","sha256":"79f4d497880a1c8afa46b1089729f689afb5a7a020a65996684ae10e057125ba","status":"accepted"},"usage":{"input_tokens":10,"output_tokens":5,"cost_usd":0.0,"wall_ms":0}}}"#;
    let moved = r#"{"moved":{"frame":"","from":"a","to":"b","guard":"result.ok","saw":{"result.ok":true},"set":{"note":"all of it"}}}"#;
    let started = r#"{"attempt-started":{"attempt":"b#12","frame":"","path":["b"],"agent":"one","n":12,"contract":"bench/step@1"}}"#;
    [("attempt-ended", ended), ("moved", moved), ("attempt-started", started)]
        .into_iter()
        .map(|(kind, text)| NewEvent { at: 1_794_725_956_231, kind: kind.into(), body: body(text) })
        .collect()
}

/// The same rows through the group commit of the journal only, from sixteen threads.
fn bare_group_commit(folder: &Path) -> (f64, Vec<Duration>) {
    let journal = Journal::open(folder).unwrap();
    let began = Instant::now();
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..RUNS)
            .map(|at| {
                let journal = journal.clone();
                scope.spawn(move || {
                    let id = format!("run{at}");
                    let new =
                        NewRun { id: &id, workflow: "bench", version: 1, bundle: b"{}", at: 0 };
                    let lease = journal.create(new, Batch::default()).unwrap();
                    let mut times = Vec::new();
                    for _ in 0..STEPS / 4 {
                        let began = Instant::now();
                        let summary = Some(Summary::default());
                        lease
                            .append_blocking(Batch { events: rows(), summary, ..Batch::default() })
                            .unwrap();
                        times.push(began.elapsed());
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    (rate(RUNS * STEPS / 4, began.elapsed()), times)
}

/// The speed of the disk: a small write and an fsync.
fn bare_fsync(file: &Path) -> (f64, Vec<Duration>) {
    use std::io::Write;
    let mut file = std::fs::File::create(file).unwrap();
    let times: Vec<Duration> = (0..500)
        .map(|_| {
            let began = Instant::now();
            file.write_all(&[0; 4096]).unwrap();
            file.sync_data().unwrap();
            began.elapsed()
        })
        .collect();
    (rate(times.len(), times.iter().sum()), times)
}

fn listing(folder: &Path) {
    let journal = Journal::open(folder).unwrap();
    std::thread::scope(|scope| {
        for part in 0..8 {
            let journal = journal.clone();
            scope.spawn(move || {
                for at in 0..1250 {
                    let id = format!("run-{part}-{at}");
                    let new = NewRun { id: &id, workflow: "bench", version: 1, bundle: b"{}", at };
                    let summary =
                        Some(Summary { outcome: Some("done".into()), ..Summary::default() });
                    drop(
                        journal
                            .create(new, Batch { events: rows(), summary, ..Batch::default() })
                            .unwrap(),
                    );
                }
            });
        }
    });
    drop(journal);
    let began = Instant::now();
    let count = Journal::open_to_read(folder).unwrap().runs(None).unwrap().len();
    println!(
        "{}",
        json!({"name": "list-10000-runs", "runs": count, "ms": began.elapsed().as_secs_f64() * 1000.0})
    );
}

/// A run of 100,000 events that was interrupted near its end.
fn resuming(folder: &Path, runtime: &tokio::runtime::Runtime) {
    const LONG: usize = 33_000;
    let engine = Engine::open(folder, None).unwrap();
    let last = Arc::new(Mutex::new(Vec::new()));
    let (sender, stop) = watch::channel(StopRequest::None);
    let observer =
        Arc::new(StopAt { at: LONG - 20, seen: Mutex::new(0), sender, times: last.clone() });
    let options = StartOptions {
        workflow: looping(LONG),
        inputs: Map::new(),
        budget: Budget::default(),
        agents: AgentAssignments::new().with("one", "command:true", Arc::new(Immediate)),
        repo: folder.to_owned(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let report = runtime.block_on(engine.start(options, observer, stop)).unwrap();
    let events = engine.journal().run(&report.run).unwrap().last_seq;
    let times = last.lock().unwrap();
    let mean = |part: &[Duration]| {
        part.iter().sum::<Duration>().as_secs_f64() * 1000.0
            / f64::from(u32::try_from(part.len()).unwrap())
    };
    let (first, end) = (mean(&times[..3000]), mean(&times[times.len() - 3000..]));
    println!(
        "{}",
        json!({"name": "step-cost-by-history", "first_3000_ms": first, "last_3000_ms": end, "events": events})
    );
    drop(engine);
    let began = Instant::now();
    let engine = Engine::open(folder, None).unwrap();
    // The agent does not exist, so the run ends with its first attempt. This measures resuming.
    let options = ResumeOptions {
        named: BTreeMap::from([("one".to_owned(), "command:false".to_owned())]),
        ..ResumeOptions::default()
    };
    let first = Arc::new(FirstStart { began, took: Mutex::new(None) });
    let (_keep, stop) = watch::channel(StopRequest::None);
    let resumed =
        runtime.block_on(engine.resume(&report.run, &options, first.clone(), stop)).unwrap();
    let took: Duration = first.took.lock().unwrap().unwrap();
    println!(
        "{}",
        json!({"name": "resume-100000-events", "events": events, "outcome": resumed.outcome, "to_first_start_ms": took.as_secs_f64() * 1000.0})
    );
}

struct StopAt {
    at: usize,
    seen: Mutex<usize>,
    sender: watch::Sender<StopRequest>,
    times: Arc<Mutex<Vec<Duration>>>,
}

impl RunObserver for StopAt {
    fn on_event(&self, event: &Event, _: i64, _: &RunState) {
        thread_local!(static LAST: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) });
        if matches!(event, Event::AttemptStarted { .. }) {
            let now = Instant::now();
            let mut seen = self.seen.lock().unwrap();
            *seen += 1;
            if let Some(last) = LAST.replace(Some(now)) {
                self.times.lock().unwrap().push(now - last);
            }
            if *seen == self.at {
                self.sender.send_replace(StopRequest::Graceful);
            }
        }
    }

    fn on_activity(&self, _: &str, _: &str) {}
}

struct FirstStart {
    began: Instant,
    took: Mutex<Option<Duration>>,
}

impl RunObserver for FirstStart {
    fn on_event(&self, event: &Event, _: i64, _: &RunState) {
        if matches!(event, Event::AttemptStarted { .. }) {
            self.took.lock().unwrap().get_or_insert(self.began.elapsed());
        }
    }

    fn on_activity(&self, _: &str, _: &str) {}
}

fn checking() {
    let states = 500;
    let mut text = String::from(
        "workflow: big
inputs: { task: string }
variables: { fix: string? }
agents:
  one: { contract: bench/check, prompt: 'Check {{ task }}' }
contracts: [check.yaml]
limits: { rounds: { max: 5, then: out } }
start: s0
states:
",
    );
    for at in 0..states {
        let next = if at + 1 < states { format!("s{}", at + 1) } else { "done".to_owned() };
        let before = at.max(1) - 1;
        text.push_str(&format!(
            "  s{at}:
    agent: one
    next:
      - {{ when: 'result.passed && size(result.issues) <= {at}', go: {next} }}
      - {{ when: 'result.level == \"high\" && has(result.fix)', set: {{ fix: result.fix }}, go: s{before}, counts: rounds }}
      - {{ go: done }}
"
        ));
    }
    text.push_str("  done: { end: done }\n  out: { end: exhausted }\n");
    let contract = "contract: bench/check\nversion: 1\nfields: { passed: boolean, level: low | high, issues: [string], fix?: string }\n";
    let files = BTreeMap::from([
        ("w.yaml".to_owned(), text),
        ("check.yaml".to_owned(), contract.to_owned()),
    ]);
    let registry = counterfoil_contract::Registry::new();
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let began = Instant::now();
            check("w.yaml", &files, &registry).unwrap();
            began.elapsed()
        })
        .collect();
    times.sort();
    println!("{}", json!({"name": "check-500-states", "ms": times[4].as_secs_f64() * 1000.0}));
}
