//! Measurements without assertions: `cargo test --test it -- --ignored --nocapture figures`.

use super::*;
use counterfoil_engine::journal::{RunFilter, RunGroup, RunOrder, RunSort};
use std::io::Write;

fn batch() -> Batch {
    let summary = Summary { state: "working".into(), iterations: 3, ..Summary::default() };
    let body = "x".repeat(150);
    Batch { summary: Some(summary), ..events_batch(&[&body, &body, &body]) }
}

fn took(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100];
    format!("p10 {:?}, p50 {:?}, p90 {:?}, p99 {:?}", at(10), at(50), at(90), at(99))
}

#[test]
#[ignore = "measures, and judges nothing"]
fn figures() {
    let folder =
        TempDir::new_in(std::env::var("JOURNAL_FIGURES_IN").unwrap_or("/var/tmp".into())).unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let lease = start(&journal, "one");
    // The variants alternate, since disk latency varies on a shared machine.
    let mut probe = fs::File::create(folder.path().join("probe")).unwrap();
    let (mut appends, mut syncs) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        for _ in 0..100 {
            appends.push(took(|| assert!(lease.append_blocking(batch()).is_ok())));
        }
        for _ in 0..100 {
            syncs.push(took(|| {
                probe.write_all(&[7; 12_288]).and_then(|()| probe.sync_all()).unwrap();
            }));
        }
    }
    println!("one append of 3 events: {}", spread(appends));
    println!("12 KiB and a bare fsync: {}", spread(syncs));

    let leases: Vec<Lease> = (0..16).map(|n| start(&journal, &format!("run-{n}"))).collect();
    let (before, begin) = (journal.commits(), Instant::now());
    std::thread::scope(|scope| {
        for lease in &leases {
            scope.spawn(|| (0..500).for_each(|_| assert!(lease.append_blocking(batch()).is_ok())));
        }
    });
    let rate = 8000.0 / begin.elapsed().as_secs_f64();
    println!("16 callers: {rate:.0} appends/s in {} commits for 8000", journal.commits() - before);
    let begin = Instant::now();
    for _ in 0..10_000 {
        assert!(lease.messages().unwrap().is_empty());
    }
    println!("a look at an inbox where nothing happened: {:?}", begin.elapsed() / 10_000);
    drop(leases);

    std::thread::scope(|scope| {
        for part in 0..16 {
            let journal = &journal;
            scope.spawn(move || {
                (0..625).for_each(|n| drop(start(journal, &format!("many-{part}-{n}"))));
            });
        }
    });
    let begin = Instant::now();
    let count = journal.runs(None).unwrap().len();
    println!("listing {count} runs: {:?}", begin.elapsed());
    let begin = Instant::now();
    assert_eq!(journal.runs(Some(20)).unwrap().len(), 20);
    println!("listing the newest 20: {:?}", begin.elapsed());
    for by in RunSort::EACH {
        let order = RunOrder { by, ascending: false };
        let filter = RunFilter { group: RunGroup::Interrupted, ..RunFilter::default() };
        for filter in [RunFilter::default(), filter] {
            let begin = Instant::now();
            let page = journal.runs_page(&filter, order, None, 50).unwrap();
            let first = begin.elapsed();
            let begin = Instant::now();
            journal.runs_page(&filter, order, page.next.as_ref(), 50).unwrap();
            let group = filter.group.name();
            println!(
                "two pages of 50 by {} in {group}: {first:?}, {:?}",
                by.name(),
                begin.elapsed()
            );
        }
    }
    let begin = Instant::now();
    let counts = journal.run_counts().unwrap();
    println!("counting {} runs: {:?}", counts.all, begin.elapsed());

    let lease = start(&journal, "long");
    for n in 0..100 {
        let events =
            (0..1000).map(|n| event("note", &format!("{n} {}", "x".repeat(150)))).collect();
        let snapshot = (n == 98).then(|| vec![7; 10_000]);
        lease.append_blocking(Batch { events, snapshot, ..Batch::default() }).unwrap();
    }
    lease.release().unwrap();
    let begin = Instant::now();
    let (_lease, acquired) = journal.acquire("long").unwrap();
    let taken = begin.elapsed();
    let events = journal.events("long", acquired.snapshot.unwrap().seq + 1).unwrap();
    println!(
        "taking a run of {} events: {taken:?}, with the {} behind the snapshot {:?}",
        acquired.info.last_seq,
        events.len(),
        begin.elapsed()
    );
    let begin = Instant::now();
    println!("verifying {} events: {:?}", journal.verify("long").unwrap(), begin.elapsed());
    let begin = Instant::now();
    let again = Journal::open(folder.path()).unwrap();
    println!("opening: {:?}", begin.elapsed());
    drop(again);
}
