//! Prints how long extraction and validation take on texts that are made to be slow, and the peak
//! memory of the process.
//!
//! `cargo run --release -p counterfoil-contract --example hostile -- MEGABYTES [NAME]` measures every
//! shape, or the shape of that name alone: only then the peak memory is that of the shape.
//! `-- --names` lists them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss
)]

#[path = "../benches/support/shapes.rs"]
mod shapes;

use std::time::Instant;

/// The peak memory of this process in MB, where the system tells it.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0_u64)
        / 1024
}

/// The time that this thread has had a core, in ms, which other load does not change; the elapsed
/// time where the system does not tell.
fn thread_time(since: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds: Option<f64> = told.and_then(|line| line.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed().as_secs_f64() * 1e3, |time| time / 1e6)
}

/// What `serde_json` takes for a megabyte of findings, in ms: tells how busy the machine is.
fn reference() -> f64 {
    let shape = shapes::shapes().into_iter().find(|shape| shape.name == "findings").unwrap();
    let text = shape.text(1 << 20);
    let time = || {
        let since = Instant::now();
        let start = thread_time(since);
        drop(serde_json::from_str::<serde_json::Value>(&text).unwrap());
        thread_time(since) - start
    };
    (0..5).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--names") {
        for shape in shapes::shapes() {
            println!("{}", shape.name);
        }
        return;
    }
    let megabytes: f64 = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let wanted = arguments.get(1);
    for shape in shapes::shapes() {
        if wanted.is_some_and(|wanted| *wanted != shape.name) {
            continue;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let text = shape.text((megabytes * 1_048_576.0) as usize);
        let contract = shapes::contract(shape.contract);
        let reference = reference();
        let since = Instant::now();
        let start = thread_time(since);
        let report = contract.check(&text);
        let elapsed = thread_time(since) - start;
        println!(
            "{:>9.1} ms/MB {:>7.1} x serde_json {:>6} MB  {:<40} {:<8} {:?} {:?} {} violations {} warnings",
            elapsed / (text.len() as f64 / 1_048_576.0),
            elapsed / (text.len() as f64 / 1_048_576.0) / reference,
            peak_megabytes(),
            shape.name,
            shape.contract,
            report.status,
            report.codes().iter().map(|code| code.as_str()).collect::<Vec<_>>(),
            report.violations.len(),
            report.warnings.len(),
        );
    }
}
