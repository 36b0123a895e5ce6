//! A demo in words: what stands before it and behind it. Rendering only.

use super::quoted;
use std::fmt::Write;
use std::path::Path;

/// What there is to see after a demo.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// A command, with `{repo}` and `{run}` for what is only known then.
    pub(crate) command: String,
    /// What it shows.
    pub(crate) why: String,
}

/// What came of a demo.
pub(crate) struct Seen<'a> {
    /// What we are called on the command line.
    pub(crate) program: &'a str,
    /// As it was named.
    pub(crate) pack: &'a str,
    pub(crate) repo: &'a Path,
    pub(crate) script: &'a Path,
    pub(crate) run: &'a str,
    pub(crate) outcome: &'a str,
    /// How it should have ended.
    pub(crate) planned: &'a str,
    pub(crate) look: &'a [Look],
}

/// What stands before it.
pub(crate) fn opening(name: &str, summary: &str, about: &str) -> String {
    format!("{name}: {summary}\n\n{about}\n\n")
}

/// What stands behind it.
pub(crate) fn closing(seen: &Seen<'_>) -> String {
    let repo = quoted(&seen.repo.display().to_string());
    let script = quoted(&seen.script.display().to_string());
    let program = quoted(seen.program);
    let mut text = String::new();
    if seen.outcome == seen.planned {
        if seen.planned != "done" {
            let _ = writeln!(text, "\nthis demo ends as '{}' on purpose", seen.planned);
        }
    } else {
        let _ = writeln!(text, "\nthis demo should have ended as '{}'", seen.planned);
    }
    let _ = writeln!(text, "\nIt was a real run in a real repository, {repo}. Look at it:");
    if seen.look.is_empty() {
        let _ = writeln!(text, "  {program} show {} --repo {repo}", seen.run);
    }
    for look in seen.look {
        let command = look.command.replace("{repo}", &repo).replace("{run}", seen.run);
        let command = match command.strip_prefix("counterfoil ") {
            Some(rest) => format!("{program} {rest}"),
            None => command,
        };
        let _ = writeln!(text, "  {command}");
        if !look.why.is_empty() {
            let _ = writeln!(text, "      {}", look.why);
        }
    }
    let _ = writeln!(
        text,
        "\nOnly the agents were played, by {script}. Take a reply out of it and something else happens:\n  {program} demo {} --script {script}",
        quoted(seen.pack)
    );
    text
}
