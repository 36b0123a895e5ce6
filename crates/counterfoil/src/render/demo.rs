//! The text before and after a demo.

use super::lines;
use super::text::shell_quote;
use crate::report::demo::DemoReport;
use counterfoil_contract::diagnostic::Style;
use std::fmt::Write;

/// The introduction: what the workflow does and what the demo shows.
pub(crate) fn opening(name: &str, summary: &str, about: &str, style: Style) -> String {
    let title = lines::lines("", &format!("{name}: {summary}"), style);
    let about = lines::lines("", &format!("What to notice: {about}"), style);
    format!("{title}\n{about}\n")
}

/// Whether the demo ended as expected, and what to try next.
pub(crate) fn closing(demo: &DemoReport<'_>) -> String {
    let repo = shell_quote(&demo.repo.display().to_string());
    let script = shell_quote(&demo.script.display().to_string());
    let program = shell_quote(demo.program);
    let mut text = String::new();
    if demo.outcome != demo.expected_outcome {
        let _ = writeln!(text, "\nThis demo should have ended as '{}'.", demo.expected_outcome);
    } else if demo.expected_outcome != "done" {
        let _ = writeln!(text, "\nThis demo ends as '{}' on purpose.", demo.expected_outcome);
    }
    let _ = writeln!(text, "\nThis was a real run in a real repository: {repo}\nInspect it with:");
    if demo.suggestions.is_empty() {
        let _ = writeln!(text, "  {program} show {} --repo {repo}", demo.run);
    }
    for suggestion in demo.suggestions {
        let command = suggestion.command.replace("{repo}", &repo).replace("{run}", demo.run);
        let command = match command.strip_prefix("counterfoil ") {
            Some(rest) => format!("{program} {rest}"),
            None => command,
        };
        let _ = writeln!(text, "  {command}");
        if !suggestion.description.is_empty() {
            let _ = writeln!(text, "      {}", suggestion.description);
        }
    }
    let _ = writeln!(
        text,
        "\nOnly the agents were scripted. Edit a reply in their script,\nand run the demo again:\n  {program} demo {} --script {script}",
        shell_quote(demo.pack)
    );
    text
}
