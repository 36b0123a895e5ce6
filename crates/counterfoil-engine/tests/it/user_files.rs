//! Runs a thousand random workflows and checks that the engine changes nothing of the user's except
//! through accepted work of agents: the index, refs, stash, hooks, settings, and files outside of
//! the repository stay the same, and nothing that anybody wrote is lost.
//!
//! `SEED=n` repeats one batch of runs in one repository, `SEEDS=n` sets the number of runs. Only
//! the moment at which some runs are stopped is not reproducible.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod actor;
mod content;
mod run;
mod user;

use counterfoil_engine::Engine;
use run::Tally;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The number of runs in one repository, one after the other.
const BATCH: u64 = 20;
/// The number of batches at once.
const THREADS: usize = 4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Performs the runs of one repository.
fn batch(runtime: &tokio::runtime::Runtime, seed: u64) -> Tally {
    let mut dice = crate::dice::Dice::new(seed);
    let user = user::User::new(&mut dice);
    let engine = Engine::open(&user.state, None).unwrap();
    let mut tally = Tally::default();
    for n in 0..BATCH {
        tally.add(run::run(runtime, &user, &engine, actor::throw(seed, &n)));
    }
    tally
}

#[test]
fn nothing_of_the_users_is_touched_in_a_thousand_runs() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
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
        for _ in 0..THREADS {
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
            ("workspaces merged", all.merged_workspaces),
            ("conflicts", all.conflicts),
            ("dropped", all.dropped),
            ("kept as a patch", all.kept),
            ("put back", all.put_back),
        ] {
            assert!(count > 0, "none of the runs was ever {what}");
        }
    }
}
