//! A child that is talked to: several messages, each with its answer, and what ends it.

use super::finishing::Listener;
use super::*;
use counterfoil_process::{Exchange, InteractiveChild};
use tokio::sync::mpsc;

/// Answers each line with its number, the line, and `ready`.
const ECHO: &str = "n=0; while read line; do n=$((n+1)); echo $n $line ready; done; echo over";

fn start(spec: ChildSpec) -> (InteractiveChild, mpsc::Sender<Vec<u8>>) {
    let (input, receiver) = mpsc::channel(4);
    (InteractiveChild::start(spec, receiver).unwrap(), input)
}

fn within(millis: u64) -> Timeouts {
    Timeouts { total: Some(Duration::from_millis(millis)), ..Timeouts::default() }
}

/// One exchange, with a new listener.
async fn exchange(
    child: &mut InteractiveChild,
    timeouts: Timeouts,
) -> (Option<Exchange>, Listener) {
    let (_stop, stopped) = watch::channel(StopRequest::None);
    let mut listener = Listener::default();
    let ended = child.exchange(timeouts, &mut listener, stopped).await.unwrap();
    (ended, listener)
}

fn ended(exchange: Option<Exchange>) -> ChildOutcome {
    match exchange {
        Some(Exchange::Ended(outcome)) => outcome,
        other => panic!("the child goes on: {other:?}"),
    }
}

#[tokio::test]
async fn a_child_answers_one_message_after_another() {
    let (mut child, input) = start(shell(ECHO));
    for (n, word) in ["one", "two", "three"].iter().enumerate() {
        input.send(format!("{word}\n").into_bytes()).await.unwrap();
        let (done, listener) = exchange(&mut child, within(10_000)).await;
        assert_eq!(done, Some(Exchange::Complete));
        assert_eq!(listener.text(), format!("{} {word} ready\n", n + 1));
    }
    drop(input);
    let (done, listener) = exchange(&mut child, within(10_000)).await;
    assert_eq!((ended(done).cause, ended(done).exit), (Cause::Finished, Exit::Code(0)));
    assert_eq!(listener.text(), "over\n");
    assert_eq!(exchange(&mut child, within(10_000)).await.0, None, "it is over");
}

#[tokio::test]
async fn a_message_that_is_larger_than_a_pipe_arrives_whole() {
    let (mut child, input) = start(shell("head -c 1000000 | wc -c; echo ready; exec sleep 60"));
    input.send(vec![b'x'; 1_000_000]).await.unwrap();
    let (done, listener) = exchange(&mut child, within(20_000)).await;
    assert_eq!(done, Some(Exchange::Complete));
    assert_eq!(listener.text().trim(), "1000000\nready");
}

#[tokio::test]
async fn timeouts_count_from_the_beginning_of_an_exchange() {
    let (mut child, input) = start(shell(ECHO));
    // Long enough for a shell on a busy machine.
    let idle = Timeouts { idle: Some(Duration::from_secs(3)), ..within(60_000) };
    for _ in 0..2 {
        input.send(b"word\n".to_vec()).await.unwrap();
        assert_eq!(exchange(&mut child, idle).await.0, Some(Exchange::Complete));
        // Nobody talks to it: that is not its silence.
        tokio::time::sleep(Duration::from_millis(3_200)).await;
    }
    let (done, _) = exchange(&mut child, idle).await;
    assert_eq!(ended(done).cause, Cause::Idle);
    let (mut child, _input) = start(shell(ECHO));
    assert_eq!(ended(exchange(&mut child, within(100)).await.0).cause, Cause::Total);
    let (mut child, _input) = start(shell(ECHO));
    let startup = Timeouts { startup: Some(Duration::from_millis(100)), ..within(10_000) };
    assert_eq!(ended(exchange(&mut child, startup).await.0).cause, Cause::Startup);
}

#[tokio::test]
async fn a_stop_ends_the_child_and_its_descendants() {
    let (mut child, _input) = start(shell(&format!("{STUBBORN} & wait")));
    let (done, listener) = exchange(&mut child, within(10_000)).await;
    assert_eq!(done, Some(Exchange::Complete));
    let pids = listener.pids();
    assert_eq!(pids.len(), 1);
    let (stop, stopped) = watch::channel(StopRequest::None);
    stop.send(StopRequest::Graceful).unwrap();
    let timeouts = Timeouts { grace: Duration::from_millis(100), ..within(10_000) };
    let mut quiet = Scale::default();
    let done = child.exchange(timeouts, &mut quiet, stopped).await.unwrap();
    assert_eq!(ended(done).cause, Cause::Stopped);
    assert!(pids.into_iter().all(gone));
}

#[tokio::test]
async fn a_child_that_is_dropped_may_say_goodbye_and_leaves_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("note");
    let script = format!(
        "trap 'echo bye > {}; exit' TERM; {STUBBORN} & while :; do sleep 0.05; done",
        note.display()
    );
    let (mut child, _input) = start(shell(&script));
    let (done, listener) = exchange(&mut child, within(10_000)).await;
    assert_eq!(done, Some(Exchange::Complete));
    let pids = listener.pids();
    drop(child);
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "bye\n");
    assert!(pids.into_iter().all(gone));
}

#[tokio::test]
async fn between_two_exchanges_nothing_of_the_child_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ticks");
    // One in the child's session, and one that left it and hides.
    let tick = format!("while :; do echo x >> {}; sleep 0.01; done", file.display());
    let script = format!(
        "({tick}) & env -i setsid sh -c '{tick}' & while read line; do sleep 0.1; echo ready; done"
    );
    let (mut child, input) = start(shell(&script));
    let length = || std::fs::metadata(&file).map_or(0, |file| file.len());
    for _ in 0..3 {
        let before = length();
        input.send(b"word\n".to_vec()).await.unwrap();
        assert_eq!(exchange(&mut child, within(10_000)).await.0, Some(Exchange::Complete));
        let after = length();
        assert!(after > before, "it works during an exchange");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(length(), after);
    }
    drop(child);
    let after = length();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(length(), after);
}
