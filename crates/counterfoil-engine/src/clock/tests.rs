use super::*;
use crate::driver::timed_turn;
use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{
    Budget, DECIDE, Event, LostWork, Resumed, RunState, Started, Workflow, check, resume_facts,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const HOUR: i64 = 3_600_000;

/// Clocks that a test sets: the wall clock, and the monotonic one, both in milliseconds.
#[derive(Clone)]
struct Fake(Arc<Mutex<(i64, u64)>>);

impl Fake {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((1_000_000, 5000))))
    }

    /// Time passes.
    fn pass(&self, ms: u32) {
        let mut both = self.0.lock().unwrap();
        both.0 += i64::from(ms);
        both.1 += u64::from(ms);
    }

    /// Somebody sets the wall clock, or the machine sleeps.
    fn jump(&self, ms: i64) {
        self.0.lock().unwrap().0 += ms;
    }
}

impl TimeSource for Fake {
    fn wall(&self) -> i64 {
        self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.lock().unwrap().1)
    }
}

#[test]
fn a_wall_clock_that_was_set_back_does_not_take_time_back() {
    let ahead = wall() + HOUR;
    let mut clock = Clock::from(ahead);
    let first = clock.now();
    assert!(first >= ahead);
    std::thread::sleep(Duration::from_millis(5));
    let second = clock.now();
    assert!((4..1000).contains(&(second - first)), "{}", second - first);
    assert_eq!(clock.take_skipped(), None);
}

#[test]
fn times_follow_a_wall_clock_that_is_set_forward_and_say_by_how_much() {
    let fake = Fake::new();
    let mut clock = Clock::with_source(0, Box::new(fake.clone()));
    let start = clock.now();
    fake.pass(200);
    fake.jump(HOUR);
    assert_eq!(clock.now() - start, HOUR + 200);
    fake.pass(100);
    fake.jump(5000);
    clock.now();
    assert_eq!(clock.take_skipped(), Some(3_605_000));
    assert_eq!(clock.take_skipped(), None);
    // A small deviation is not followed; time goes by the monotonic clock.
    let before = clock.now();
    fake.pass(50);
    fake.jump(TOLERANCE_MS);
    assert_eq!((clock.now() - before, clock.take_skipped()), (50, None));
}

#[test]
fn no_part_of_a_millisecond_is_lost() {
    struct Fine(Mutex<Duration>);
    impl TimeSource for Fine {
        fn wall(&self) -> i64 {
            0
        }
        fn monotonic(&self) -> Duration {
            let mut now = self.0.lock().unwrap();
            *now += Duration::from_micros(1700);
            *now
        }
    }
    let mut clock = Clock::with_source(0, Box::new(Fine(Mutex::new(Duration::ZERO))));
    let last = (0..1000).map(|_| clock.now()).last();
    assert_eq!(last, Some(1700));
}

/// A run of one agent that never answers.
struct Driven {
    fake: Fake,
    workflow: Workflow,
    run: RunState,
    clock: Clock,
}

impl Driven {
    fn start(max_ms: u64) -> Self {
        let mut registry = Registry::new();
        let contract = "contract: t/make\nversion: 1\nfields: { ok: boolean }\n";
        registry.add(Definition::from_yaml(contract, "contract.yaml").unwrap()).unwrap();
        let workflow = "workflow: timed\nagents: { make: { contract: t/make, prompt: Make. } }\n\
                        start: work\nstates:\n  work: { agent: make, next: [{ go: done }] }\n  \
                        done: { end: done }\n";
        let files = BTreeMap::from([("timed.yaml".to_owned(), workflow.to_owned())]);
        let workflow = check("timed.yaml", &files, &registry).unwrap_or_else(|why| panic!("{why}"));
        let fake = Fake::new();
        let clock = Clock::with_source(0, Box::new(fake.clone()));
        let mut driven = Self { fake, workflow, run: RunState::default(), clock };
        driven.turn(vec![Event::RunStarted(Box::new(Started {
            run: "run".to_owned(),
            workflow: "timed".to_owned(),
            version: 1,
            bundle: String::new(),
            decide: DECIDE,
            inputs: serde_json::Map::new(),
            agents: BTreeMap::new(),
            budget: Budget { time_ms: Some(max_ms), ..Budget::default() },
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }))]);
        driven
    }

    /// Takes a turn and returns its events, as the journal has them.
    fn turn(&mut self, facts: Vec<Event>) -> Vec<(Event, i64)> {
        timed_turn(&self.workflow, &mut self.run, facts, &mut self.clock).events
    }

    fn is_over(&mut self) -> bool {
        let events = self.turn(Vec::new());
        events.iter().any(|(event, _)| matches!(event, Event::BudgetReached { .. }))
    }

    /// Another process goes on with the run.
    fn resume(&mut self) {
        self.clock = Clock::with_source(self.run.last_at, Box::new(self.fake.clone()));
        let resumed = Resumed { by: "process 2".to_owned(), ..Resumed::default() };
        let facts = resume_facts(&self.run, resumed, |_, _| LostWork::default());
        self.turn(facts);
    }
}

#[test]
fn the_time_budget_of_a_run_is_spent_by_the_monotonic_clock_alone() {
    // What the wall clock does after 100 ms, and after another 100 ms.
    for jumps in [
        [0, 0],
        [HOUR, 0],
        [-HOUR, 0],
        [HOUR, -HOUR],
        [-HOUR, HOUR],
        [24 * 365 * HOUR, -24 * 365 * HOUR],
        [TOLERANCE_MS, TOLERANCE_MS],
        [i64::MAX / 4, 0],
    ] {
        let mut driven = Driven::start(500);
        for jump in jumps {
            driven.fake.pass(100);
            driven.fake.jump(jump);
            assert!(!driven.is_over(), "{jumps:?}");
        }
        driven.fake.pass(299);
        assert!(!driven.is_over(), "too early: {jumps:?}");
        driven.fake.pass(1);
        assert!(driven.is_over(), "too late: {jumps:?}");
        assert_eq!(driven.run.usage.wall_ms, 500, "{jumps:?}");
    }
}

#[test]
fn processes_that_resume_a_run_spend_the_rest_whatever_the_clock_did_between_them() {
    for jump in [0, HOUR, -HOUR, 10 * HOUR, -24 * 365 * HOUR] {
        let mut driven = Driven::start(500);
        driven.fake.pass(200);
        driven.turn(vec![Event::RunStopped { reason: "stopped".to_owned() }]);
        driven.fake.pass(700);
        driven.fake.jump(jump);
        driven.resume();
        driven.fake.pass(299);
        assert!(!driven.is_over(), "too early: {jump}");
        driven.fake.jump(-2 * jump);
        assert!(!driven.is_over(), "too early: {jump}");
        driven.fake.pass(1);
        assert!(driven.is_over(), "too late: {jump}");
    }
}

#[test]
fn the_recorded_events_alone_say_how_much_time_was_spent() {
    let mut driven = Driven::start(5000);
    let mut recorded = Vec::new();
    for jump in [HOUR, -2 * HOUR, 3 * HOUR] {
        driven.fake.pass(100);
        driven.fake.jump(jump);
        recorded.extend(driven.turn(Vec::new()));
    }
    assert!(matches!(recorded[0], (Event::TimeSkipped { ms: 3_600_000 }, _)), "{recorded:?}");
    recorded.extend(driven.turn(vec![Event::RunStopped { reason: "stopped".to_owned() }]));
    let mut again = Driven::start(5000).run;
    for (event, at) in &recorded {
        let text = serde_json::to_string(event).unwrap();
        again.apply(&serde_json::from_str(&text).unwrap(), *at);
    }
    assert_eq!(again.usage.wall_ms, driven.run.usage.wall_ms);
    assert_eq!(again.usage.wall_ms, 300);
    assert!(recorded.is_sorted_by_key(|(_, at)| *at));
}
