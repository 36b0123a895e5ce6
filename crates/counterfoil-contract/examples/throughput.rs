//! Prints, as JSON, how long extraction and validation take on the texts of a folder. Used by
//! `bench/peers`.
//!
//! `cargo run --release -p counterfoil-contract --example throughput -- FOLDER` reads `NAME.txt`
//! (and `NAME.json`, the JSON alone, for the floor); `-- --write FOLDER` writes such a folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "../benches/support/mod.rs"]
mod support;

use counterfoil_contract::Contract;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// The best of several runs, in microseconds.
fn best(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for round in 0.. {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
        if round >= 5 && begin.elapsed().as_secs_f64() > 0.5 {
            break;
        }
    }
    best
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, folder] if flag == "--write" => write(Path::new(folder)),
        [folder] => measure(Path::new(folder)),
        _ => Err("usage: throughput FOLDER | throughput --write FOLDER".into()),
    }
}

fn write(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    for (name, size, json) in
        [("6KB", 6_000, 2_000), ("50KB", 50_000, 10_000), ("1MB", 1_000_000, 200_000)]
    {
        let (text, json) = support::answer(size, json);
        std::fs::write(folder.join(format!("{name}.txt")), text)?;
        std::fs::write(folder.join(format!("{name}.json")), json)?;
    }
    for size in [1_000_000, 8_000_000] {
        for (name, text) in support::hostile(size) {
            std::fs::write(
                folder.join(format!("hostile-{name}-{}MB.txt", size / 1_000_000)),
                text,
            )?;
        }
    }
    std::fs::write(
        folder.join("schema.json"),
        support::review_contract().raw_schema().to_string(),
    )?;
    Ok(())
}

fn measure(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let fenced = support::review_contract();
    let anywhere = support::any_contract();
    let repairing = Contract::from_yaml(
        &anywhere
            .definition()
            .to_yaml()?
            .replace("framing: any-json", "framing: any-json\npolicy: { repair: syntax }"),
    )?;
    let mut rows: Vec<Value> = Vec::new();
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in
        files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
    {
        let text = std::fs::read_to_string(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let floor = std::fs::read_to_string(path.with_extension("json")).ok();
        let mut row = json!({"name": name, "bytes": text.len(), "accepted": anywhere.check(&text).is_accepted()});
        row["any_json_us"] = json!(best(|| drop(anywhere.check(&text))));
        row["fenced_json_us"] = json!(best(|| drop(fenced.check(&text))));
        row["repair_us"] = json!(best(|| drop(repairing.check(&text))));
        row["serde_json_us"] = floor
            .map_or(Value::Null, |json| json!(best(|| drop(serde_json::from_str::<Value>(&json)))));
        rows.push(row);
    }
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}
