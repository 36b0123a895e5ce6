//! The report of `counterfoil doctor`.

use super::color::Color;
use crate::doctor::{Diagnosis, Finding, Level, Program, State};
use counterfoil_agents::adapters::Server;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{display_path, pluralize};
use std::fmt::Write as _;

/// Problems first, then programs, then checks that passed.
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
    for program in &diagnosis.programs {
        let details = if program.state.is_usable() {
            let login = program.login.as_deref().unwrap_or("no login found");
            format!("{}; {login}", program.channels.join(", "))
        } else {
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
    text.push_str(&permissions(diagnosis, name_width));
    if !diagnosis.passed.is_empty() {
        text.push_str("\npassed\n");
        diagnosis.passed.iter().for_each(|line| {
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
fn permissions(diagnosis: &Diagnosis, name_width: usize) -> String {
    let mut text = String::new();
    for program in &diagnosis.programs {
        let Some(permissions) = &program.permissions else { continue };
        let accesses = [
            (program.name.as_str(), "read-only", permissions.read_only),
            ("", "workspace-write", permissions.workspace_write),
        ];
        for (name, access, words) in accesses {
            let _ = writeln!(text, "  {name:name_width$}  {access:15}  {words}");
        }
        for line in &program.settings {
            let _ = writeln!(text, "  {:name_width$}  {:15}  {line}", "", "own settings");
        }
    }
    if text.is_empty() {
        return text;
    }
    let checks = checks(diagnosis);
    format!("\npermissions of agents, unless flags and settings say otherwise\n{text}  {checks}\n")
}

/// Which programs can run the checks of the project.
fn checks(diagnosis: &Diagnosis) -> String {
    if diagnosis.checks.is_empty() {
        return "the project has no checks that they could run; name them in [checks] of counterfoil.toml"
            .to_owned();
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
    let message = finding.message.trim_end().replace('\n', "\n       ");
    format!("  {} {}: {message}\n       fix: {}\n", mark(level, style), finding.about, finding.fix)
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
    color.paint(&format!("{mark:<4}"), style)
}
