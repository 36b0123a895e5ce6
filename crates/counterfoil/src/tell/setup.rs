//! Setting up, in words and diffs. Rendering computes nothing.

use crate::init::Survey;
use counterfoil_contract::diagnostic::Style;
use similar::TextDiff;
use std::fmt::Write as _;
use std::path::Path;

/// What was found.
pub(crate) fn found(root: &Path, survey: &Survey) -> String {
    let mut text = format!("in {}\n", root.display());
    let agents: Vec<&str> = survey.subagents.named.keys().map(String::as_str).collect();
    let mut line = |name: &str, values: &[&str]| {
        let (some, more) = values.split_at(values.len().min(8));
        let more =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let some = if some.is_empty() { "none".to_owned() } else { some.join(", ") };
        let _ = writeln!(text, "  {name:<10} {some}{more}");
    };
    line("subagents", &agents);
    line("files", &survey.signs);
    line("programs", &survey.programs.iter().map(String::as_str).collect::<Vec<_>>());
    text
}

/// The change of a file as a unified diff.
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
    let coloured = |line: &str| match line.as_bytes().first() {
        Some(b'+') => format!("\u{1b}[32m{line}\u{1b}[0m\n"),
        Some(b'-') => format!("\u{1b}[31m{line}\u{1b}[0m\n"),
        Some(b'@') => format!("\u{1b}[36m{line}\u{1b}[0m\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(coloured).collect()
}
