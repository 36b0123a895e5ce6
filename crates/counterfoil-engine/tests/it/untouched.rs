//! A thousand random runs, and nothing of the user's is touched that no agent's accepted work
//! changed: not a byte of the index, the refs, the stash, the hooks, the settings, nothing outside
//! of the repository; and nothing that anybody wrote is lost.
//!
//! `SEED=n` plays one batch of runs in one repository again, `SEEDS=n` plays so many runs. All but
//! the moment at which a run is stopped from outside, which some are, is the same again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod actor;
mod play;
mod things;
mod user;

use counterfoil_engine::Engine;
use play::Tally;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Runs that share a repository, one after the other.
const BATCH: u64 = 20;
/// Batches at once.
const HANDS: usize = 4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// The runs of one repository.
fn batch(runtime: &tokio::runtime::Runtime, seed: u64) -> Tally {
    let mut dice = dice::Dice::new(seed);
    let user = user::User::new(&mut dice);
    let engine = Engine::open(&user.state).unwrap();
    let mut tally = Tally::default();
    for n in 0..BATCH {
        tally.add(play::run(runtime, &user, &engine, actor::throw(seed, &n)));
    }
    tally
}

#[test]
fn nothing_of_the_users_is_touched_in_a_thousand_runs() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(HANDS)
        .enable_all()
        .build()
        .unwrap();
    if let Some(seed) = number("SEED") {
        eprintln!("{:#?}", batch(&runtime, seed));
        return;
    }
    let batches = number("SEEDS").unwrap_or(1000).div_ceil(BATCH);
    let (next, all, began) = (AtomicU64::new(0), Mutex::new(Tally::default()), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..HANDS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= batches {
                        return;
                    }
                    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        batch(&runtime, seed)
                    }));
                    match played {
                        Ok(tally) => all.lock().unwrap().add(tally),
                        Err(why) => {
                            eprintln!("SEED={seed} plays this again");
                            std::panic::resume_unwind(why);
                        }
                    }
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    eprintln!("{} runs in {:.1?}: {all:#?}", batches * BATCH, began.elapsed());
    if batches >= 10 {
        for (what, count) in [
            ("done", all.outcomes.get("done").copied().unwrap_or(0)),
            ("failed", all.outcomes.get("failed").copied().unwrap_or(0)),
            ("folded back", all.folded),
            ("conflicts", all.conflicts),
            ("dropped", all.dropped),
            ("kept as a patch", all.kept),
            ("put back", all.put_back),
        ] {
            assert!(count > 0, "none of the runs was ever {what}");
        }
    }
}
