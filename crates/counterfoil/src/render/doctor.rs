//! The report of `counterfoil doctor`.

use super::color::Color;
use crate::doctor::{Diagnosis, Finding, Level, Program, State};
use crate::wrapping::{at_column, messages};
use counterfoil_agents::adapters::Server;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::suggest::how_to_add_check;
use counterfoil_contract::text::{display_path, pluralize};
use counterfoil_engine::config::FILE;
use std::fmt::Write as _;

/// The width of a mark.
const MARK: usize = 4;
/// The column at which the text after the indentation and a mark begins.
const AFTER_MARK: usize = 2 + MARK + 1;
/// The width of what is said about permissions before their words.
const ACCESS: usize = 15;

/// Problems first, then programs, then checks that passed. Texts that are too long for the style
/// continue below, at the column where they begin.
pub(crate) fn diagnosis(diagnosis: &Diagnosis, style: Style) -> String {
    let mut text = format!("in {}\n", display_path(&diagnosis.repo));
    if !diagnosis.findings.is_empty() {
        text.push_str("\nproblems\n");
        diagnosis.findings.iter().for_each(|finding| text.push_str(&problem(finding, style)));
    }
    text.push_str("\nprograms\n");
    let name_width =
        diagnosis.programs.iter().map(|program| program.name.len()).max().unwrap_or_default();
    let version_width =
        diagnosis.programs.iter().map(|program| version(program).len()).max().unwrap_or_default();
    let column = AFTER_MARK + name_width + 2 + version_width + 2;
    for program in &diagnosis.programs {
        let details = if program.state.is_usable() {
            let login = program.login.as_deref().unwrap_or("no login found");
            let details = format!("{}; {login}", program.channels.join(", "));
            at_column(column, &details, style.width)
        } else {
            // A command stays on one line, so that it can be copied.
            program.install.clone()
        };
        let _ = writeln!(
            text,
            "  {} {:name_width$}  {:version_width$}  {details}",
            mark(program_mark(program), style),
            program.name,
            version(program)
        );
    }
    text.push_str(&permissions(diagnosis, name_width, style));
    if !diagnosis.passed.is_empty() {
        text.push_str("\npassed\n");
        diagnosis.passed.iter().for_each(|line| {
            let line = at_column(AFTER_MARK, line, style.width);
            let _ = writeln!(text, "  {} {line}", mark("ok", style));
        });
    }
    let count =
        |level: Level| diagnosis.findings.iter().filter(|finding| finding.level == level).count();
    let _ = match (count(Level::Fail), count(Level::Warn)) {
        (0, 0) => writeln!(text, "\nno problems found"),
        (0, warns) => writeln!(text, "\nno errors, {}", pluralize(warns, "warning")),
        (fails, 0) => writeln!(text, "\n{}", pluralize(fails, "error")),
        (fails, warns) => {
            writeln!(text, "\n{}, {}", pluralize(fails, "error"), pluralize(warns, "warning"))
        }
    };
    text
}

/// What the agents of the programs may do unless flags and settings say otherwise.
fn permissions(diagnosis: &Diagnosis, name_width: usize, style: Style) -> String {
    let mut text = String::new();
    let column = 2 + name_width + 2 + ACCESS + 2;
    for program in &diagnosis.programs {
        let Some(permissions) = &program.permissions else { continue };
        let accesses = [
            (program.name.as_str(), "read-only", permissions.read_only),
            ("", "workspace-write", permissions.workspace_write),
        ];
        for (name, access, words) in accesses {
            let words = at_column(column, words, style.width);
            let _ = writeln!(text, "  {name:name_width$}  {access:ACCESS$}  {words}");
        }
        for line in &program.settings {
            let line = at_column(column, line, style.width);
            let _ = writeln!(text, "  {:name_width$}  {:ACCESS$}  {line}", "", "own settings");
        }
    }
    if text.is_empty() {
        return text;
    }
    let title = "permissions of agents, unless flags and settings say otherwise\n";
    let checks = format!("  {}\n", checks(diagnosis));
    format!("\n{}{text}{}", messages(title, style.width), messages(&checks, style.width))
}

/// Which programs can run the checks of the project.
fn checks(diagnosis: &Diagnosis) -> String {
    if diagnosis.checks.is_empty() {
        return format!(
            "the project has no checks that they could run; {}",
            how_to_add_check("test", None, FILE)
        );
    }
    let usable = diagnosis.programs.iter().filter(|program| program.permissions.is_some());
    let (with, without): (Vec<&Program>, Vec<&Program>) =
        usable.partition(|program| program.runs_checks());
    let names = |programs: &[&Program]| -> String {
        programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let checks = diagnosis.checks.join(", ");
    let tool = Server::RUN_CHECK;
    match (with.as_slice(), without.as_slice()) {
        (_, []) => {
            format!(
                "all of them can run the checks of the project with the tool `{tool}`: {checks}"
            )
        }
        (with, without) => {
            let none = format!(
                "{} cannot run the checks of the project ({checks}): `channels` in counterfoil.toml leaves out \"submit\"",
                names(without)
            );
            if with.is_empty() {
                return none;
            }
            format!(
                "{} can run the checks of the project with the tool `{tool}`: {checks}\n  {none}",
                names(with)
            )
        }
    }
}

fn problem(finding: &Finding, style: Style) -> String {
    let level = match finding.level {
        Level::Fail => "fail",
        Level::Warn => "warn",
    };
    // The message of a file error may have several lines.
    let message = format!("{}: {}", finding.about, finding.message.trim_end());
    let message = at_column(AFTER_MARK, &message, style.width);
    let fix = at_column(AFTER_MARK + "fix: ".len(), &finding.fix, style.width);
    format!("  {} {message}\n{:AFTER_MARK$}fix: {fix}\n", mark(level, style), "")
}

/// A program's version, or why it has none.
fn version(program: &Program) -> &str {
    match program.state {
        State::Missing => "not installed",
        State::Broken => "does not run",
        _ => program.version.as_deref().unwrap_or("version unknown"),
    }
}

/// The mark of a program.
fn program_mark(program: &Program) -> &'static str {
    match program.state {
        State::Good => "ok",
        State::Newer | State::Unknown => "warn",
        State::Missing if !program.needed => "-",
        State::Old | State::Broken if !program.needed => "warn",
        State::Old | State::Broken | State::Missing => "fail",
    }
}

fn mark(mark: &str, style: Style) -> String {
    let color = match mark {
        "ok" => Color::Green,
        "warn" => Color::Yellow,
        "fail" => Color::Red,
        _ => Color::Dim,
    };
    color.paint(&format!("{mark:<MARK$}"), style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Permissions;
    use unicode_width::UnicodeWidthStr;

    fn example() -> Diagnosis {
        let claude = Program {
            name: "claude".to_owned(),
            state: State::Good,
            needed: true,
            path: None,
            version: Some("2.1.325".to_owned()),
            known: ("2.1.187".to_owned(), "2.1.325".to_owned()),
            login: Some("ANTHROPIC_API_KEY".to_owned()),
            channels: vec!["native", "submit", "text"],
            permissions: Some(Permissions {
                read_only: "reads files, and runs commands that only read (mode dontAsk)",
                workspace_write: "edits files, and runs file commands, in its folder",
            }),
            settings: vec!["~/.claude/settings.json: denies WebFetch, WebSearch".to_owned()],
            install: "npm install -g @anthropic-ai/claude-code".to_owned(),
        };
        let finding = Finding {
            level: Level::Warn,
            about: "codex".to_owned(),
            message: "no credentials were found; it may still be logged in".to_owned(),
            fix: "run `codex login`, or set CODEX_API_KEY".to_owned(),
        };
        Diagnosis {
            ok: true,
            repo: "/repo".into(),
            findings: vec![finding],
            programs: vec![claude],
            checks: vec!["lint".to_owned(), "test".to_owned()],
            passed: vec!["containment: neither bwrap nor landlock is available on it".to_owned()],
        }
    }

    #[test]
    fn texts_are_wrapped_at_their_column_on_a_terminal_only() {
        let narrow = Style { color: false, unicode: true, width: 60 };
        let text = diagnosis(&example(), narrow);
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(
            text.contains(
                "  warn codex: no credentials were found; it may still be\n       logged in\n       fix: run `codex login`"
            ),
            "{text}"
        );
        let whole = diagnosis(&example(), Style { width: usize::MAX, ..narrow });
        assert!(
            whole.contains("  warn codex: no credentials were found; it may still be logged in\n"),
            "{whole}"
        );
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&whole));
        assert!(whole.lines().count() < text.lines().count(), "{whole}");
        let colored = diagnosis(&example(), Style { color: true, ..narrow });
        let shown = crate::terminal::finish(&colored).into_owned();
        let plain = ["\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"]
            .iter()
            .fold(shown.clone(), |text, code| text.replace(code, ""));
        assert_eq!(plain, text, "colour does not change the layout");
        assert_ne!(shown, text);
    }
}
