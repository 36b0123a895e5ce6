//! What the doctor says, for people. Rendering computes nothing.

use crate::doctor::{Diagnosis, Finding, Level, Program, State};
use counterfoil_contract::diagnostic::Style;
use std::fmt::Write as _;

/// What is in the way first, then the programs, then what is fine.
pub(crate) fn diagnosis(diagnosis: &Diagnosis, style: Style) -> String {
    let mut text = format!("in {}\n", diagnosis.repo.display());
    if !diagnosis.findings.is_empty() {
        text.push_str("\nin the way\n");
        diagnosis.findings.iter().for_each(|finding| text.push_str(&in_the_way(finding, style)));
    }
    text.push_str("\nprograms\n");
    let name =
        diagnosis.programs.iter().map(|program| program.name.len()).max().unwrap_or_default();
    let version =
        diagnosis.programs.iter().map(|program| stand(program).len()).max().unwrap_or_default();
    for program in &diagnosis.programs {
        let details = if program.state.plays() {
            let login = program.login.as_deref().unwrap_or("no login seen");
            format!("{}; {login}", program.channels.join(", "))
        } else {
            program.install.clone()
        };
        let _ = writeln!(
            text,
            "  {} {:name$}  {:version$}  {details}",
            mark(of_program(program), style),
            program.name,
            stand(program)
        );
    }
    if !diagnosis.fine.is_empty() {
        text.push_str("\nfine\n");
        diagnosis.fine.iter().for_each(|line| {
            let _ = writeln!(text, "  {} {line}", mark("ok", style));
        });
    }
    let of =
        |level: Level| diagnosis.findings.iter().filter(|finding| finding.level == level).count();
    let _ = match (of(Level::Fail), of(Level::Warn)) {
        (0, 0) => writeln!(text, "\neverything is as it should be"),
        (0, warns) => writeln!(text, "\nwhat is needed works; {warns} to look at"),
        (fails, 0) => writeln!(text, "\n{fails} broken"),
        (fails, warns) => writeln!(text, "\n{fails} broken, {warns} to look at"),
    };
    text
}

fn in_the_way(finding: &Finding, style: Style) -> String {
    let level = match finding.level {
        Level::Fail => "fail",
        Level::Warn => "warn",
    };
    // An error of a file may have lines of its own.
    let message = finding.message.trim_end().replace('\n', "\n       ");
    format!("  {} {}: {message}\n       fix: {}\n", mark(level, style), finding.about, finding.fix)
}

/// A program's version, or why it has none.
fn stand(program: &Program) -> &str {
    match program.state {
        State::Missing => "not installed",
        State::Broken => "does not run",
        _ => program.version.as_deref().unwrap_or("version unknown"),
    }
}

fn of_program(program: &Program) -> &'static str {
    match program.state {
        State::Good => "ok",
        State::Newer | State::Unknown => "warn",
        State::Missing if !program.needed => "-",
        State::Old | State::Broken if !program.needed => "warn",
        State::Old | State::Broken | State::Missing => "fail",
    }
}

fn mark(mark: &str, style: Style) -> String {
    let padded = format!("{mark:<4}");
    if !style.color {
        return padded;
    }
    let color = match mark {
        "ok" => 32,
        "warn" => 33,
        "fail" => 31,
        _ => 2,
    };
    format!("\u{1b}[{color}m{padded}\u{1b}[0m")
}
