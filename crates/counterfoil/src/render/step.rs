//! One step of a run: its attempts in a visit, its result, its claims and its files.

use super::claims;
use super::lines;
use super::text::{one_line, usage_suffix};
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::Attempt;
use counterfoil_engine::event_text::attempt_title;
use counterfoil_engine::ledger::Entry;
use std::fmt::Write;

/// The attempts of a visit with what came of them, and the commands that show more.
pub(crate) fn step(
    attempts: &[&Attempt],
    entries: &[Entry],
    command: &str,
    style: Style,
) -> String {
    let mut text = String::new();
    for attempt in attempts {
        let title = attempt_title(
            &attempt.path.join("/"),
            attempt.agent.as_deref(),
            attempt.builtin.as_ref(),
            attempt.place(),
        );
        let outcome = attempt.ending().unwrap_or("in progress");
        let mark = match outcome {
            _ if attempt.is_success() => "✓",
            "in progress" => "·",
            _ => "✗",
        };
        let reason = match attempt.why().as_str() {
            "" => String::new(),
            reason => format!(": {}", one_line(reason)),
        };
        let usage = usage_suffix(&attempt.usage);
        text += &lines::lines("", &format!("{mark} {title}: {outcome}{reason}{usage}"), style);
        if attempt.repairs_asked > 0 {
            text += &lines::lines(
                "  ",
                &format!("↺ repairs requested: {}", attempt.repairs_asked),
                style,
            );
        }
        for violation in &attempt.violations {
            let part = |name: &str| violation[name].as_str().unwrap_or_default();
            let line =
                format!("✗ {} {}: {}", part("code"), part("pointer"), one_line(part("message")));
            text += &lines::lines("  ", &line, style);
        }
        if let Some(changed) = attempt.changed.as_ref().filter(|changed| changed.total > 0) {
            text += &lines::lines("  ", &claims::files_changed(changed), style);
        }
    }
    if !entries.is_empty() {
        let _ = write!(text, "\n{}", claims::list(entries, style));
    }
    text.push('\n');
    let last = attempts.last();
    let was_prompted = |attempt: &&Attempt| attempt.agent.is_some() && !attempt.replies.is_empty();
    let has_prompt = attempts.iter().any(was_prompted);
    let has_reply = last.is_some_and(|last| !last.replies.is_empty());
    let has_result = last.is_some_and(|last| last.value.is_some());
    let parts = [(has_prompt, "--prompt"), (has_reply, "--reply"), (has_result, "--result")];
    for (_, part) in parts.iter().filter(|(has_part, _)| *has_part) {
        let _ = writeln!(text, "{command} {part}");
    }
    text
}
