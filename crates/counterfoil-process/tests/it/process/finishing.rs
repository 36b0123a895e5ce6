//! The terminal event: a child whose output is complete, and which does not exit.

use super::*;

/// Reports complete output after it received `ready`.
#[derive(Default)]
pub(super) struct Listener {
    heard: Vec<u8>,
    /// How often `finished` was called.
    asked: AtomicUsize,
    flood: usize,
}

impl Listener {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.heard.clone()).unwrap()
    }

    pub(super) fn pids(&self) -> Vec<i32> {
        self.text().split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }
}

impl OutputSink for Listener {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let (Output::Stdout(chunk) | Output::Stderr(chunk)) = output;
        // A chunk may hold both: how the output is cut is up to the scheduler.
        let heard = self.heard.len();
        self.heard.extend(chunk.iter().filter(|byte| **byte != 0));
        self.flood += chunk.len() - (self.heard.len() - heard);
        ControlFlow::Continue(())
    }

    fn finished(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.heard.windows(5).any(|window| window == b"ready")
    }
}

pub(super) fn finish_in(millis: u64, mut spawn: ChildSpec) -> ChildSpec {
    spawn.timeouts.finish = Duration::from_millis(millis);
    spawn.timeouts.grace = Duration::from_millis(100);
    spawn
}

#[tokio::test]
async fn who_has_said_all_and_stays_is_ended() {
    let mut listener = Listener::default();
    let ended = run(finish_in(100, shell("echo ready; exec sleep 60")), &mut listener).await;
    assert_eq!(
        (ended.cause, ended.exit, ended.left_behind),
        (Cause::Finishing, Exit::Signal(15), 0)
    );
    assert!(ended.wall >= Duration::from_millis(100), "{ended:?}");
}

#[tokio::test]
async fn who_has_said_all_and_ends_in_time_ended_by_itself() {
    let mut listener = Listener::default();
    let script = "echo ready; sleep 0.1; echo and more; exit 3";
    let ended = run(finish_in(60_000, shell(script)), &mut listener).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Finished, Exit::Code(3)));
    assert_eq!(listener.text(), "ready\nand more\n", "what comes behind it is handed on");
    assert_eq!(listener.asked.into_inner(), 1, "once it is so, nobody asks again");
}

#[tokio::test]
async fn while_finishing_silence_is_no_silence() {
    let mut spawn = finish_in(60_000, shell("echo ready; sleep 0.4; exit 0"));
    spawn.timeouts.startup = Some(FOREVER);
    spawn.timeouts.idle = Some(Duration::from_millis(100));
    let ended = run(spawn, &mut Listener::default()).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Finished, Exit::Code(0)));
}

#[tokio::test]
async fn until_it_is_finished_silence_is_silence() {
    let mut spawn = finish_in(60_000, shell("echo not yet; exec sleep 60"));
    spawn.timeouts.idle = Some(Duration::from_millis(100));
    assert_eq!(run(spawn, &mut Listener::default()).await.cause, Cause::Idle);
}

#[tokio::test]
async fn the_total_clock_does_not_take_back_what_was_said() {
    let mut spawn = finish_in(60_000, shell("echo ready; exec sleep 60"));
    spawn.timeouts.total = Some(Duration::from_secs(1));
    assert_eq!(run(spawn, &mut Listener::default()).await.cause, Cause::Finishing);
}

#[tokio::test]
async fn a_stop_while_finishing_is_a_stop() {
    struct Both(Listener, watch::Sender<StopRequest>);
    impl OutputSink for Both {
        fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
            self.0.output(output)
        }
        fn finished(&self) -> bool {
            self.1.send(StopRequest::Graceful).unwrap();
            true
        }
    }
    let (stop, stopped) = watch::channel(StopRequest::None);
    let spawn = finish_in(60_000, shell("echo ready; exec sleep 60"));
    let ended = supervise(spawn, &mut Both(Listener::default(), stop), stopped).await.unwrap();
    assert_eq!((ended.cause, ended.exit), (Cause::Stopped, Exit::Signal(15)));
}

#[tokio::test]
async fn who_ignores_sigterm_is_killed_after_the_grace_with_all_it_started() {
    let mut listener = Listener::default();
    let script = format!("trap '' TERM; echo $$; {STUBBORN} & while :; do sleep 0.05; done");
    let ended = run(finish_in(100, shell(&script)), &mut listener).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Finishing, Exit::Signal(9)));
    assert!(ended.left_behind >= 1, "{ended:?}");
    all_gone(&listener.pids(), 2);
}

#[tokio::test]
async fn a_flood_on_both_pipes_does_not_put_off_the_end() {
    let mut listener = Listener::default();
    let script = "trap '' TERM; echo ready; cat /dev/zero & exec cat /dev/zero >&2";
    let ended = run(finish_in(200, shell(script)), &mut listener).await;
    assert_eq!((ended.cause, ended.exit), (Cause::Finishing, Exit::Signal(9)));
    assert!(listener.flood > 0);
}
