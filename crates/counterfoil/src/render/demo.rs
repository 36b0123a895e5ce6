//! The text before and after a demo.

use super::lines;
use super::text::shell_quote;
use crate::report::demo::DemoReport;
use counterfoil_contract::diagnostic::Style;
use std::fmt::Write;
use std::path::Path;

/// The introduction: what the workflow does and what the demo shows.
pub(crate) fn opening(name: &str, summary: &str, about: &str, style: Style) -> String {
    let title = lines::lines("", &format!("{name}: {summary}"), style);
    let about = lines::lines("", &format!("What to notice: {about}"), style);
    format!("{title}\n{about}\n")
}

/// Whether the demo ended as expected, and what to try next. Commands are not wrapped, so that they can
/// be copied.
pub(crate) fn closing(demo: &DemoReport<'_>, style: Style) -> String {
    let quoted = |path: &Path| shell_quote(&path.display().to_string());
    let (repo, state) = (quoted(demo.repo), quoted(demo.state));
    let DemoReport { program, run, .. } = *demo;
    let mut text = String::new();
    let ends = match (demo.outcome == demo.expected_outcome, demo.expected_outcome) {
        (false, expected) => Some(format!("This demo should have ended as '{expected}'.")),
        (true, "done") => None,
        (true, outcome) => Some(format!("This demo ends as '{outcome}' on purpose.")),
    };
    if let Some(ends) = ends {
        let _ = write!(text, "\n{}", lines::lines("", &ends, style));
    }
    let _ = writeln!(text, "\nThis was a real run in a real repository: {repo}\nInspect it with:");
    if demo.suggestions.is_empty() {
        let _ = writeln!(text, "  {program} show {run} --state {state}");
    }
    for suggestion in demo.suggestions {
        let command = suggestion.command.replace("{repo}", &repo);
        let command = command.replace("{state}", &state).replace("{run}", run);
        let command = match command.strip_prefix("counterfoil ") {
            Some(rest) => format!("{program} {rest}"),
            None => command,
        };
        let _ = writeln!(text, "  {command}");
        text += &lines::lines("      ", &suggestion.description, style);
    }
    let _ = writeln!(
        text,
        "\nOnly the agents were scripted. Edit a reply in their script,\nand run the demo again:\n  {program} demo {} --script {}",
        shell_quote(demo.pack),
        quoted(demo.script)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::demo::SuggestedCommand;

    #[test]
    fn commands_stay_on_their_lines_and_work_with_any_path() {
        let suggestion = |command: &str| SuggestedCommand {
            command: command.to_owned(),
            description: "what is shown in more than forty columns".to_owned(),
        };
        let demo = DemoReport {
            program: "'/my tools/counterfoil'",
            pack: "./a pack",
            repo: Path::new("/tmp/a demo"),
            state: Path::new("/tmp/a demo/.counterfoil"),
            script: Path::new("/tmp/a demo/.counterfoil/script.yaml"),
            run: "01a1",
            outcome: "done",
            expected_outcome: "done",
            suggestions: &[
                suggestion("counterfoil show {run} --claims --state {state}"),
                suggestion("cat {repo}/a/long/path/of/a/file.md"),
            ],
        };
        let style = Style { color: false, unicode: true, width: 40 };
        assert_eq!(
            closing(&demo, style),
            "\nThis was a real run in a real repository: '/tmp/a demo'\nInspect it with:\n  \
             '/my tools/counterfoil' show 01a1 --claims --state '/tmp/a demo/.counterfoil'\n      \
             what is shown in more than forty\n      columns\n  \
             cat '/tmp/a demo'/a/long/path/of/a/file.md\n      \
             what is shown in more than forty\n      columns\n\n\
             Only the agents were scripted. Edit a reply in their script,\nand run the demo again:\n  \
             '/my tools/counterfoil' demo './a pack' --script '/tmp/a demo/.counterfoil/script.yaml'\n"
        );
    }
}
