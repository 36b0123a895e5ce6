//! Recorded runs of real programs, and helpers that parse and render them.

#![allow(clippy::unwrap_used)]

use counterfoil_agents::adapters::{Adapter, Call, ParsedReply, StreamEnd, Verdict};
use counterfoil_agents::line_buffer::LineBuffer;
use counterfoil_process::Exit;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// 2026-11-15T16:00:00Z
pub(crate) const NOW: i64 = 1_794_758_400_000;

/// The output and the exit status of a recorded run.
pub(crate) struct Recorded {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) exit: Exit,
}

/// All recorded runs of a program, by name.
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

/// Parses a stream that arrives in chunks of `size` bytes.
pub(crate) fn parse_in_chunks(
    size: usize,
    adapter: &dyn Adapter,
    stdout: &[u8],
    errors: &str,
    exit: Exit,
) -> ParsedReply {
    parse_with_activity(size, adapter, stdout, errors, exit).0
}

/// Like [`parse_in_chunks`], and also returns the activity lines.
pub(crate) fn parse_with_activity(
    size: usize,
    adapter: &dyn Adapter,
    stdout: &[u8],
    errors: &str,
    exit: Exit,
) -> (ParsedReply, Vec<String>) {
    let (mut parser, mut lines, mut activity) =
        (adapter.parser(), LineBuffer::default(), Vec::new());
    for piece in stdout.chunks(size) {
        lines.push(piece, |line| activity.extend(parser.on_line(line)));
    }
    lines.end(|line| activity.extend(parser.on_line(line)));
    (parser.finish(&StreamEnd { exit, errors, at: NOW }), activity)
}

impl Recorded {
    pub(crate) fn parse(&self, adapter: &dyn Adapter) -> ParsedReply {
        parse_in_chunks(1 << 16, adapter, &self.stdout, &self.stderr, self.exit)
    }
}

/// Renders a parsed reply, one line per field.
pub(crate) fn render_reply(reply: &ParsedReply) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: &str| writeln!(text, "  {name}: {what}").unwrap();
    match &reply.verdict {
        Verdict::Missing => line("verdict", "missing"),
        Verdict::Complete => line("verdict", "complete"),
        Verdict::Failed(failure) => {
            line("failed", &format!("{}: {}", failure.outcome.name(), failure.reason));
            if let Some(reset) = failure.reset_at {
                line("reset in", &format!("{} ms", reset - NOW));
            }
            if failure.schema_rejected {
                line("rejected", "the schema");
            }
        }
    }
    if reply.exit != 0 {
        line("exit", &reply.exit.to_string());
    }
    line("text", &format!("{:?}", reply.text));
    if let Some(structured) = &reply.structured {
        line("structured", &structured.to_string());
    }
    for (name, what) in [
        ("conversation", &reply.conversation),
        ("model", &reply.model),
        ("version", &reply.version),
    ] {
        if let Some(what) = what {
            line(name, what);
        }
    }
    let meter = &reply.meter;
    let cumulative = |yes: bool| if yes { ", cumulative" } else { "" };
    line(
        "used",
        &format!(
            "{} in, {} out{}; ${:.6}{}",
            meter.input_tokens,
            meter.output_tokens,
            cumulative(meter.tokens_are_cumulative),
            meter.cost_usd,
            cumulative(meter.cost_is_cumulative)
        ),
    );
    for (name, list) in [("denied", &reply.denied), ("anomaly", &reply.anomalies)] {
        for what in list {
            line(name, what);
        }
    }
    text
}

/// Renders a call, one line per part.
pub(crate) fn render_call(call: &Call) -> String {
    let mut text = String::new();
    for argument in &call.arguments {
        writeln!(text, "{}", argument.to_string_lossy()).unwrap();
    }
    for (name, value) in &call.variables {
        writeln!(text, "{}={}", name.to_string_lossy(), value.to_string_lossy()).unwrap();
    }
    for (path, bytes) in &call.files {
        writeln!(text, "{}: {}", path.display(), String::from_utf8_lossy(bytes)).unwrap();
    }
    for note in &call.notes {
        writeln!(text, "note: {note}").unwrap();
    }
    text
}
