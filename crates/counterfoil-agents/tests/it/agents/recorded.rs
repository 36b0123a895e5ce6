//! Recorded runs of real programs, and how they are read.

#![allow(clippy::unwrap_used)]

use counterfoil_agents::agent::adapter::{Adapter, Call, End, Heard, Verdict};
use counterfoil_agents::agent::lines::Lines;
use counterfoil_process::Exit;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// 2026-11-15T16:00:00Z
pub(crate) const NOW: i64 = 1_794_758_400_000;

/// What a recorded run wrote, and how it ended.
pub(crate) struct Recorded {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) exit: Exit,
}

/// All recorded runs of a program, by their names.
pub(crate) fn recorded(program: &str) -> BTreeMap<String, Recorded> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agents/transcripts").join(program);
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names =
        names.filter_map(|name| Some(name.to_str()?.strip_suffix(".meta.json")?.to_owned()));
    let read =
        |name: &str, ending: &str| std::fs::read(folder.join(format!("{name}.{ending}"))).unwrap();
    let run = |name: String| {
        let meta: serde_json::Value = serde_json::from_slice(&read(&name, "meta.json")).unwrap();
        let rc = i32::try_from(meta["rc"].as_i64().unwrap()).unwrap();
        let run = Recorded {
            stdout: read(&name, "stdout"),
            stderr: String::from_utf8(read(&name, "stderr")).unwrap(),
            exit: if rc < 0 { Exit::Signal(-rc) } else { Exit::Code(rc) },
        };
        (name, run)
    };
    names.map(run).collect()
}

/// Reads a stream that comes in pieces of so many bytes.
pub(crate) fn read_in(
    size: usize,
    adapter: &dyn Adapter,
    stdout: &[u8],
    errors: &str,
    exit: Exit,
) -> Heard {
    watched(size, adapter, stdout, errors, exit).0
}

/// The same, with what is said to whoever watches.
pub(crate) fn watched(
    size: usize,
    adapter: &dyn Adapter,
    stdout: &[u8],
    errors: &str,
    exit: Exit,
) -> (Heard, Vec<String>) {
    let (mut reader, mut lines, mut said) = (adapter.reader(), Lines::default(), Vec::new());
    for piece in stdout.chunks(size) {
        lines.push(piece, |line| said.extend(reader.line(line)));
    }
    lines.end(|line| said.extend(reader.line(line)));
    (reader.read(&End { exit, errors, at: NOW }), said)
}

impl Recorded {
    pub(crate) fn heard(&self, adapter: &dyn Adapter) -> Heard {
        read_in(1 << 16, adapter, &self.stdout, &self.stderr, self.exit)
    }
}

/// What was heard, a line for each thing that it says.
pub(crate) fn told(heard: &Heard) -> String {
    let mut told = String::new();
    let mut line = |name: &str, what: &str| writeln!(told, "  {name}: {what}").unwrap();
    match &heard.verdict {
        Verdict::Missing => line("verdict", "missing"),
        Verdict::Whole => line("verdict", "whole"),
        Verdict::Failed(failure) => {
            line("failed", &format!("{}: {}", failure.outcome.name(), failure.reason));
            if let Some(reset) = failure.reset_at {
                line("reset in", &format!("{} ms", reset - NOW));
            }
            if failure.schema {
                line("refused", "the schema");
            }
        }
    }
    if heard.exit != 0 {
        line("exit", &heard.exit.to_string());
    }
    line("text", &format!("{:?}", heard.text));
    if let Some(structured) = &heard.structured {
        line("structured", &structured.to_string());
    }
    for (name, what) in [
        ("conversation", &heard.conversation),
        ("model", &heard.model),
        ("version", &heard.version),
    ] {
        if let Some(what) = what {
            line(name, what);
        }
    }
    let meter = &heard.meter;
    let adds_up = |yes: bool| if yes { ", adds up" } else { "" };
    line(
        "used",
        &format!(
            "{} in, {} out{}; ${:.6}{}",
            meter.input_tokens,
            meter.output_tokens,
            adds_up(meter.tokens_add_up),
            meter.cost_usd,
            adds_up(meter.cost_adds_up)
        ),
    );
    for (name, list) in [("denied", &heard.denied), ("odd", &heard.odd)] {
        for what in list {
            line(name, what);
        }
    }
    told
}

/// A call, a line for each of its parts.
pub(crate) fn shown(call: &Call) -> String {
    let mut shown = String::new();
    for argument in &call.arguments {
        writeln!(shown, "{}", argument.to_string_lossy()).unwrap();
    }
    for (name, value) in &call.variables {
        writeln!(shown, "{}={}", name.to_string_lossy(), value.to_string_lossy()).unwrap();
    }
    for (path, bytes) in &call.files {
        writeln!(shown, "{}: {}", path.display(), String::from_utf8_lossy(bytes)).unwrap();
    }
    for note in &call.notes {
        writeln!(shown, "note: {note}").unwrap();
    }
    shown
}
