//! The output of `counterfoil init`: what was found, and diffs of the files it changes.

use super::color::Color;
use crate::init::Survey;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::display_path;
use similar::TextDiff;
use std::fmt::Write as _;
use std::path::Path;

/// What was found in the project.
pub(crate) fn survey(root: &Path, survey: &Survey) -> String {
    let mut text = format!("in {}\n", display_path(root));
    let agents: Vec<&str> = survey.subagents.named.keys().map(String::as_str).collect();
    let mut line = |name: &str, values: &[&str]| {
        let (some, more) = values.split_at(values.len().min(8));
        let more =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let some = if some.is_empty() { "none".to_owned() } else { some.join(", ") };
        let _ = writeln!(text, "  {name:<10} {some}{more}");
    };
    line("subagents", &agents);
    line("files", &survey.markers);
    line("programs", &survey.programs.iter().map(String::as_str).collect::<Vec<_>>());
    text
}

/// A new file whose text nobody needs to read.
pub(crate) fn generated_file(file: &str, text: &str) -> String {
    format!("new file {file}: the JSON Schema for editors ({} lines)\n", text.lines().count())
}

/// Such a file that is removed, or that would be if the user agrees.
pub(crate) fn removed_file(file: &str, is_agreed: bool) -> String {
    let verb = if is_agreed { "removed" } else { "would remove" };
    format!("{verb} file {file}\n")
}

/// The change to a file as a unified diff.
pub(crate) fn diff(file: &str, before: Option<&str>, after: Option<&str>, style: Style) -> String {
    let name = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{file}"),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
    let text = diff
        .unified_diff()
        .context_radius(3)
        .header(&name("a", before), &name("b", after))
        .to_string();
    if !style.color {
        return text;
    }
    let colored = |line: &str| match line.as_bytes().first() {
        Some(b'+') => Color::Green.paint(line, style) + "\n",
        Some(b'-') => Color::Red.paint(line, style) + "\n",
        Some(b'@') => Color::Cyan.paint(line, style) + "\n",
        _ => format!("{line}\n"),
    };
    text.lines().map(colored).collect()
}
