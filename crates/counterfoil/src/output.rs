//! Writing: data to stdout, words to stderr. A pipe that closes early is no error.

pub(crate) mod github;
pub(crate) mod junit;
pub(crate) mod sarif;
pub(crate) mod weight;

use anyhow::Result;
use counterfoil_contract::diagnostic::Style;
use std::io::{ErrorKind, IsTerminal, Write};
use supports_color::Stream;
use terminal_size::{Height, Width};

/// Writes data to stdout.
pub(crate) fn data(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    quiet(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes words to stderr.
pub(crate) fn words(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
}

/// A reader that went away has read enough.
pub(crate) fn quiet(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// What went wrong, as `error: what: why`.
pub(crate) fn error(error: &anyhow::Error) {
    words(&format!("error: {error:#}\n"));
}

/// The style for stderr.
pub(crate) fn style() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stderr());
    style_of(Stream::Stderr, std::io::stderr().is_terminal(), width)
}

/// The style for stdout.
pub(crate) fn style_of_data() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stdout());
    style_of(Stream::Stdout, std::io::stdout().is_terminal(), width)
}

fn style_of(stream: Stream, terminal: bool, size: Option<(Width, Height)>) -> Style {
    let width = size.map_or(100, |(width, _)| usize::from(width.0));
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let color = supports_color::on(stream).is_some();
    let plain_locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|locale| matches!(locale.as_str(), "C" | "POSIX"));
    Style { color, unicode: !(dumb || (plain_locale && terminal)), width: width.clamp(40, 160) }
}
