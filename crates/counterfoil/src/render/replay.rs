//! Recordings: the result of exporting one, and the result of replaying them.

use super::color::Color;
use super::text::{one_line, shell_quote};
use crate::report::replay::{Comparison, ReplayCounts, ReplayReport};
use counterfoil_agents::recording::{Difference, Recording};
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{escape_control, pluralize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The number of characters that are printed of a value or text.
const MAX_LENGTH: usize = 80;
/// The number of differences that are printed for one attempt.
const MAX_DIFFERENCES: usize = 12;

/// The contract, and the one it was recorded with if that is different.
fn contract_suffix(report: &ReplayReport) -> String {
    let Some(contract) = &report.contract else { return String::new() };
    match &report.recorded_with {
        Some(before) if before != contract => {
            format!(" by {contract} (recorded with {before})")
        }
        _ if report.contract_source == Some("recorded") => {
            format!(" by {contract} from the recording")
        }
        _ => format!(" by {contract}"),
    }
}

/// One line for each attempt with its differences below it, and a summary.
pub(crate) fn results(reports: &[ReplayReport], counts: &ReplayCounts, style: Style) -> String {
    let mut out = String::new();
    for report in reports {
        let (label, color) = match report.comparison {
            Comparison::Same => ("same", Color::Green),
            Comparison::Changed { .. } => ("changed", Color::Red),
            Comparison::New => ("new", Color::Cyan),
            Comparison::Broken { .. } => ("broken", Color::Red),
        };
        let label = color.paint(&format!("{label:<8}"), style);
        let outcome =
            report.outcome.as_deref().map(|outcome| format!(": {outcome}")).unwrap_or_default();
        let updated = if report.updated { ", updated" } else { "" };
        let _ = writeln!(
            out,
            "{label} {}{outcome}{}{updated}",
            escape_control(&report.name),
            contract_suffix(report)
        );
        match &report.comparison {
            Comparison::Same => {}
            Comparison::Broken { problem } => {
                let _ = writeln!(out, "         {}", escape_control(problem));
            }
            Comparison::Changed { differences } => {
                for difference in differences.iter().take(MAX_DIFFERENCES) {
                    let _ = writeln!(out, "         {}", difference_line(difference, style));
                }
                if differences.len() > MAX_DIFFERENCES {
                    let _ =
                        writeln!(out, "         and {} more", differences.len() - MAX_DIFFERENCES);
                }
            }
            Comparison::New => {
                let text = report.reason.as_ref().or(report.text.as_ref());
                if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                    let _ = writeln!(out, "         {}", truncate(&one_line(text)));
                }
            }
        }
    }
    let _ = writeln!(out, "{}", summary(counts));
    out
}

/// The totals in one line.
fn summary(counts: &ReplayCounts) -> String {
    let parts = [
        (counts.same, "as recorded"),
        (counts.changed, "changed"),
        (counts.new, "new"),
        (counts.broken, "broken"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, result)| format!("{number} {result}"))
        .collect();
    format!("{} replayed: {}", pluralize(counts.total(), "attempt"), parts.join(", "))
}

/// A difference: where it is, the recorded value and the new one.
pub(crate) fn difference_line(difference: &Difference, style: Style) -> String {
    let reply = difference.reply.map(|number| format!("reply {number} ")).unwrap_or_default();
    let place = match &difference.pointer {
        Some(pointer) if !pointer.is_empty() => format!("value {pointer}"),
        _ => difference.what.clone(),
    };
    let arrow = if style.unicode { "→" } else { "->" };
    format!(
        "{reply}{}: {} {arrow} {}",
        truncate(&place),
        display(difference.before.as_ref()),
        display(difference.after.as_ref())
    )
}

fn display(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text))
            if text.chars().all(|char| char.is_alphanumeric() || "-_".contains(char)) =>
        {
            truncate(text)
        }
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            truncate(&one_line(&words.join(", ")))
        }
        Some(value) => truncate(&one_line(&value.to_string())),
    }
}

fn truncate(text: &str) -> String {
    let text = escape_control(text);
    match text.char_indices().nth(MAX_LENGTH) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// What was exported, and how many secrets of which kind were redacted. The secrets are never
/// printed.
pub(crate) fn export_summary(
    recording: &Recording,
    files: usize,
    counts: Option<&BTreeMap<String, usize>>,
    folder: &Path,
) -> String {
    let replies: usize = recording.attempts.iter().map(|attempt| attempt.replies.len()).sum();
    let mut out = format!(
        "recorded run {} of {}: {} with {}, {}\n",
        recording.run,
        recording.workflow,
        pluralize(recording.attempts.len(), "attempt"),
        if replies == 1 { "1 reply".to_owned() } else { format!("{replies} replies") },
        pluralize(files, "file"),
    );
    match counts {
        None => out.push_str("secrets were not redacted: do not share this recording\n"),
        Some(counts) if counts.is_empty() => {
            out.push_str("no secrets were found; review the recording before you share it\n");
        }
        Some(counts) => {
            let kinds: Vec<String> =
                counts.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
            let _ = writeln!(
                out,
                "redacted: {}; review the recording before you share it",
                kinds.join(", ")
            );
        }
    }
    for omitted in &recording.left_out {
        let _ = writeln!(out, "omitted: {omitted}");
    }
    let _ = writeln!(
        out,
        "replay it with `counterfoil replay {}`",
        shell_quote(&folder.display().to_string())
    );
    out
}
