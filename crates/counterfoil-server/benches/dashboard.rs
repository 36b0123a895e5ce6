//! The dashboard with 10,000 runs and with a run of 100,000 events: how long its pages take, how soon an
//! event is on the screen, what following costs the process that drives the run, and with an installed
//! browser how long a jump in the list of events takes. Prints one JSON object per line.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use counterfoil_engine::journal::{Batch, Journal, Lease, NewEvent, NewRun, Summary};
use counterfoil_engine::{AgentAssignments, Engine, NoopObserver, StartOptions};
use counterfoil_flow::{Budget, check};
use counterfoil_process::StopRequest;
use counterfoil_server::{Server, ServerOptions, StateFolder, Token};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const RUNS: usize = 10_000;
const EVENTS: usize = 100_000;
const CLIENTS: usize = 200;
const EVENTS_PER_SECOND: u64 = 50;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const FLOW: &str = r#"
workflow: flow
start: one
limits: { again: { max: 1000000, then: done } }
states:
  one: { read: a.txt, go: two }
  two: { read: a.txt, next: [{ when: 'result.text == "a"', go: one, counts: again }, { go: done }] }
  done: { end: done }
"#;

/// A recorded event: its kind and its JSON.
type Recorded = (String, String);

fn main() {
    let folder =
        std::env::var("BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let state = folder.path().join("state");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (bundle, events) = runtime.block_on(model(folder.path()));
    let journal = Journal::open(&state).unwrap();
    for at in 0..RUNS {
        let run = format!("run-{at:05}");
        let outcome = ["done", "failed", "waiting", "blocked"][at % 4];
        let first: Vec<NewEvent> = events.iter().map(|event| copy(event, &run, 1)).collect();
        create(&journal, &run, &bundle, first, outcome, i64::try_from(at).unwrap());
    }
    let long = "run-long";
    create(&journal, long, &bundle, Vec::new(), "running", i64::try_from(RUNS).unwrap());
    let lease = journal.acquire(long).unwrap().0;
    fill(&lease, &events, EVENTS);
    let (address, sign_in) = serve(&runtime, &state);
    let page = |path: &str| get(address, path);
    report("list-first-byte", &times(50, || page("/")));
    report("list-failed-by-cost", &times(20, || page("/?view=failed&sort=cost")));
    report("list-search", &times(20, || page("/?q=run-09999")));
    report("long-run-first", &times(1, || page("/runs/run-long")));
    report("long-run-again", &times(20, || page("/runs/run-long")));
    report("long-run-page", &times(20, || page("/runs/run-long?page=40")));
    report("events-page", &times(20, || page("/api/v1/runs/run-long/events?after=90000")));
    report("event-rows", &times(50, || page("/runs/run-long/events/rows?from=50001")));
    report("events-trouble", &times(20, || page("/runs/run-long/events?show=trouble")));
    scroll(address, &sign_in);
    println!("{}", json!({"name": "memory", "megabytes": resident() >> 20}));
    let alone = drive(&lease, &events, Duration::from_secs(4), None);
    report("append-alone", &alone);
    // Pages that show many runs while one of them goes on.
    let (list, inbox) = std::thread::scope(|scope| {
        let driving = scope.spawn(|| drive(&lease, &events, Duration::from_secs(8), None));
        let now_and_then = |path: &str| {
            std::thread::sleep(Duration::from_millis(70));
            page(path)
        };
        let measured = (times(40, || now_and_then("/")), times(40, || now_and_then("/inbox")));
        driving.join().unwrap();
        measured
    });
    report("list-while-driven", &list);
    report("inbox-while-driven", &inbox);
    println!("{}", json!({"name": "memory-driven", "megabytes": resident() >> 20}));
    let clients = Clients::open(address, CLIENTS, "/live/runs/run-long");
    let followed = drive(&lease, &events, Duration::from_secs(6), Some(&clients));
    report("append-followed", &followed);
    report("event-on-screen", &clients.delays.lock().unwrap());
    println!("{}", json!({"name": "memory-followed", "megabytes": resident() >> 20}));
    clients.stop.store(true, Ordering::Relaxed);
}

/// The bundle and the events of a short run, of which the others are copies.
async fn model(folder: &Path) -> (Vec<u8>, Vec<Recorded>) {
    let repo = folder.join("repo");
    std::fs::create_dir(&repo).unwrap();
    std::fs::write(repo.join("a.txt"), "a").unwrap();
    let files: BTreeMap<String, String> = [("flow.yaml".to_owned(), FLOW.to_owned())].into();
    let workflow = check("flow.yaml", &files, &counterfoil_contract::Registry::new()).unwrap();
    let bundle = workflow.bundle.to_bytes().unwrap();
    let engine = Engine::open(&folder.join("model"), None).unwrap();
    let options = StartOptions {
        workflow,
        inputs: Map::new(),
        budget: Budget { attempts: Some(3), ..Budget::default() },
        agents: AgentAssignments::new(),
        repo,
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let (_sender, stop) = watch::channel(StopRequest::None);
    let report = engine.start(options, Arc::new(NoopObserver), stop).await.unwrap();
    let stored = engine.journal().events(&report.run, 1).unwrap();
    let text = |body: Vec<u8>| String::from_utf8(body).unwrap().replace(&report.run, "RUN");
    let events = stored.into_iter().map(|event| (event.kind, text(event.body)));
    (bundle, events.filter(|(kind, _)| kind != "run-ended" && kind != "budget-reached").collect())
}

fn copy((kind, body): &Recorded, run: &str, round: usize) -> NewEvent {
    let body = body.replace("RUN", run);
    let body = if round == 1 { body } else { again(&body, round) };
    NewEvent { at: now(), kind: kind.clone().into(), body: body.into_bytes() }
}

/// An event of a later visit: its attempt has another number.
fn again(body: &str, round: usize) -> String {
    body.replace("one#1", &format!("one#{round}"))
        .replace("two#1", &format!("two#{round}"))
        .replace("\"n\":1", &format!("\"n\":{round}"))
}

fn create(
    journal: &Journal,
    run: &str,
    bundle: &[u8],
    events: Vec<NewEvent>,
    outcome: &str,
    at: i64,
) {
    let at = 1_700_000_000_000 + at * 60_000;
    let summary = Summary {
        outcome: (outcome != "running").then(|| outcome.to_owned()),
        state: "one".to_owned(),
        cost_usd: 0.25,
        questions: u64::from(outcome == "waiting"),
        ..Summary::default()
    };
    let batch = Batch { events, summary: Some(summary), ..Batch::default() };
    let new = NewRun { id: run, workflow: "flow", version: 1, bundle, at };
    journal.create(new, batch).unwrap().release().unwrap();
}

/// The events of a visit of both states.
fn cycle(events: &[Recorded]) -> Vec<&Recorded> {
    let begin = events.iter().position(|(kind, _)| kind == "attempt-started").unwrap();
    let moved = |(kind, _): &&Recorded| kind == "moved";
    let end = events.iter().rposition(|event| moved(&event)).unwrap();
    events[begin..=end].iter().collect()
}

fn fill(lease: &Lease, events: &[Recorded], count: usize) {
    let mut batch: Vec<NewEvent> = events.iter().map(|event| copy(event, "run-long", 1)).collect();
    let cycle = cycle(events);
    let (mut written, mut round) = (0, 2);
    while written + batch.len() < count {
        batch.extend(cycle.iter().map(|event| copy(event, "run-long", round)));
        round += 1;
        if batch.len() >= 5000 {
            written += batch.len();
            let events = std::mem::take(&mut batch);
            lease.append_blocking(Batch { events, ..Batch::default() }).unwrap();
        }
    }
    lease.append_blocking(Batch { events: batch, ..Batch::default() }).unwrap();
}

/// Starts the server. Returns its address and the path that signs a browser in.
fn serve(runtime: &tokio::runtime::Runtime, state: &Path) -> (SocketAddr, String) {
    let folder = StateFolder { name: "bench".to_owned(), path: state.to_owned(), keys: None };
    let options = ServerOptions {
        folders: vec![folder],
        address: "127.0.0.1:0".parse().unwrap(),
        hosts: Vec::new(),
        token: Token::from_text(TOKEN),
        control: None,
        contracts: None,
    };
    let server = runtime.block_on(Server::bind(options)).unwrap();
    let (address, sign_in) = (server.address(), server.sign_in_links().path(None).unwrap());
    runtime.spawn(server.serve(std::future::pending()));
    (address, sign_in)
}

/// Jumps in the list of events of the long run, in a real browser if there is one.
fn scroll(address: SocketAddr, sign_in: &str) {
    let Some(python) = counterfoil_testkit::installed_browser() else { return };
    let script = counterfoil_testkit::testing_dir().join("browser/scroll.py");
    let context = json!({
        "link": format!("http://{address}{sign_in}"),
        "list": format!("http://{address}/runs/run-long/events"),
    });
    let done = std::process::Command::new(python).arg(script).arg(context.to_string()).status();
    assert!(done.unwrap().success(), "the script in the browser failed");
}

fn request(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Accept: text/event-stream, text/html\r\nConnection: close\r\n\r\n"
    );
    // The events are asked for as a page and not as a stream.
    let request = if path.contains("/events") {
        request.replace("text/event-stream, text/html", "application/json")
    } else {
        request
    };
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The time until the first byte of an answer, which has to be 200.
fn get(address: SocketAddr, path: &str) -> Duration {
    let started = Instant::now();
    let mut stream = request(address, path);
    let mut first = [0];
    stream.read_exact(&mut first).unwrap();
    let time = started.elapsed();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.starts_with(b"TTP/1.1 200"), "{path}");
    time
}

fn times(count: usize, mut measure: impl FnMut() -> Duration) -> Vec<Duration> {
    (0..count).map(|_| measure()).collect()
}

fn report(name: &str, times: &[Duration]) {
    let mut times = times.to_vec();
    times.sort();
    let at = |percent: usize| {
        let time = times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        (time.copied().unwrap_or_default().as_secs_f64() * 10_000.0).round() / 10.0
    };
    println!(
        "{}",
        json!({"name": name, "count": times.len(), "p50_ms": at(50), "p95_ms": at(95), "max_ms": at(100)})
    );
}

/// Browsers that follow a page.
struct Clients {
    stop: Arc<AtomicBool>,
    /// When the last event was appended, in microseconds since the start; 0 if it was seen.
    appended: Arc<AtomicU64>,
    started: Instant,
    delays: Arc<std::sync::Mutex<Vec<Duration>>>,
}

impl Clients {
    fn open(address: SocketAddr, count: usize, path: &str) -> Self {
        let clients = Self {
            stop: Arc::default(),
            appended: Arc::default(),
            started: Instant::now(),
            delays: Arc::default(),
        };
        for at in 0..count {
            let stream = request(address, path);
            let (stop, appended, started, delays) = (
                Arc::clone(&clients.stop),
                Arc::clone(&clients.appended),
                clients.started,
                Arc::clone(&clients.delays),
            );
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines() {
                    let Ok(line) = line else { return };
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    // The first browser measures; a message begins with its id.
                    if at == 0 && line.starts_with("id:") {
                        let since = appended.swap(0, Ordering::Relaxed);
                        if since > 0 {
                            let delay =
                                started.elapsed().saturating_sub(Duration::from_micros(since));
                            delays.lock().unwrap().push(delay);
                        }
                    }
                }
            });
        }
        // Until all of them have the page.
        std::thread::sleep(Duration::from_secs(3));
        clients.delays.lock().unwrap().clear();
        clients
    }
}

/// Appends events as a driver does, and returns how long each append took.
fn drive(
    lease: &Lease,
    events: &[Recorded],
    time: Duration,
    clients: Option<&Clients>,
) -> Vec<Duration> {
    let (started, mut times) = (Instant::now(), Vec::new());
    let cycle = cycle(events);
    let interval = Duration::from_micros(1_000_000 / EVENTS_PER_SECOND);
    let mut round = 200_000;
    while started.elapsed() < time {
        for event in &cycle {
            let events = vec![copy(event, "run-long", round)];
            let began = Instant::now();
            lease.append_blocking(Batch { events, ..Batch::default() }).unwrap();
            times.push(began.elapsed());
            if let Some(clients) = clients {
                let at = u64::try_from(clients.started.elapsed().as_micros()).unwrap();
                // Only the first event since the last message counts.
                let _ =
                    clients.appended.compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
            }
            std::thread::sleep(interval.saturating_sub(began.elapsed()));
        }
        round += 1;
    }
    times
}

/// The memory of this process, in bytes: that of the server and of what measures it.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
