//! Writing: data to stdout, messages to stderr. A closed pipe is not an error.

use crate::hint;
use anyhow::Result;
use counterfoil_contract::diagnostic::Style;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;
use supports_color::Stream;
use terminal_size::{Height, Width};

/// The width of human output if the stream is not a terminal.
const DEFAULT_WIDTH: usize = 100;
/// The smallest width that text is laid out for.
const MIN_WIDTH: usize = 40;
/// The largest width that text is laid out for.
const MAX_WIDTH: usize = 160;

/// How often to look whether the output is closed.
const CLOSED_INTERVAL: Duration = Duration::from_millis(500);

/// Writes data to stdout.
pub(crate) fn write_stdout(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes a message to stderr.
pub(crate) fn write_stderr(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
}

/// Turns a broken pipe into success: the reader has read as much as it wants.
pub(crate) fn ignore_broken_pipe(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Returns when nobody can read stdout or stderr any more: the reader of the pipe is gone, or the
/// terminal is closed.
pub(crate) async fn closed() {
    let is_closed = |stream: &dyn AsFd| {
        let mut polled = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::empty())];
        let polled = poll(&mut polled, Some(&Timespec::default())).map(|_| polled[0].revents());
        polled.is_ok_and(|now| now.intersects(PollFlags::ERR | PollFlags::HUP))
    };
    while !is_closed(&std::io::stdout()) && !is_closed(&std::io::stderr()) {
        tokio::time::sleep(CLOSED_INTERVAL).await;
    }
}

/// Writes an error with its causes to stderr, as `error: message: cause; hint`.
pub(crate) fn write_error(error: &anyhow::Error) {
    let hint = hint::for_error(error).map(|hint| format!("; {hint}")).unwrap_or_default();
    write_stderr(&format!("error: {error:#}{hint}\n"));
}

/// The style for stderr.
pub(crate) fn stderr_style() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stderr());
    stream_style(Stream::Stderr, std::io::stderr().is_terminal(), width)
}

/// The style for stdout.
pub(crate) fn stdout_style() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stdout());
    stream_style(Stream::Stdout, std::io::stdout().is_terminal(), width)
}

fn stream_style(stream: Stream, is_terminal: bool, size: Option<(Width, Height)>) -> Style {
    let width = size.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let color = supports_color::on(stream).is_some();
    let is_ascii_locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|locale| matches!(locale.as_str(), "C" | "POSIX"));
    let unicode = !(is_dumb || (is_ascii_locale && is_terminal));
    Style { color, unicode, width: width.clamp(MIN_WIDTH, MAX_WIDTH) }
}
