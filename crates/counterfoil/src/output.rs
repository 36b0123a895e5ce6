//! Writing: data to stdout, messages to stderr. A closed pipe is not an error.
//!
//! All output of the process goes through this module, and nothing leaves it before it is escaped
//! (`terminal`, `counterfoil_contract::text::neutralize`): in the way of the format for JSON and XML,
//! in a visible form for everything else. Clippy denies `std::io::stdout` and `std::io::stderr`
//! elsewhere. Only the live status lines of `progress` are drawn by a library, from escaped text.
#![allow(clippy::disallowed_methods)]

use crate::{hint, terminal, wrapping};
use anyhow::Result;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{Form, escape_names, neutralize};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;
use supports_color::Stream;
use terminal_size::{Height, Width};

/// The width of human output if the stream is not a terminal.
const DEFAULT_WIDTH: usize = 100;
/// The height of a screen if the stream is not a terminal.
const DEFAULT_HEIGHT: usize = 50;
/// The smallest width that text is laid out for.
const MIN_WIDTH: usize = 40;
/// The largest width that text is laid out for.
const MAX_WIDTH: usize = 160;

/// How often to look whether the output is closed.
const CLOSED_INTERVAL: Duration = Duration::from_millis(500);

/// Writes text to stdout.
pub(crate) fn write_stdout(text: &str) -> Result<()> {
    write_escaped(&terminal::finish(text))
}

/// Writes lines for people to stdout that quote what others wrote. A runner of GitHub Actions finds no
/// command in them.
pub(crate) fn write_quoting(text: &str) -> Result<()> {
    write_escaped(&for_runner(terminal::finish(text)))
}

/// Finished text, without commands if a runner of GitHub Actions reads it.
fn for_runner(text: Cow<'_, str>) -> Cow<'_, str> {
    match std::env::var_os("GITHUB_ACTIONS") {
        Some(value) if value == "true" => terminal::without_commands(text),
        _ => text,
    }
}

/// Writes a page for people to stdout, wrapped at the width of a terminal.
pub(crate) fn write_page(text: &str) -> Result<()> {
    match stdout_line_style().width {
        usize::MAX => write_stdout(text),
        width => write_stdout(&wrapping::page(text, width)),
    }
}

/// Writes a page of Markdown to stdout, whose paragraphs are filled at the width of a terminal.
pub(crate) fn write_markdown(text: &str) -> Result<()> {
    match stdout_line_style().width {
        usize::MAX => write_stdout(text),
        width => write_stdout(&wrapping::page(&wrapping::unwrapped(text), width)),
    }
}

/// Writes a JSON document to stdout, on several lines.
pub(crate) fn write_json(value: &impl Serialize) -> Result<()> {
    write_json_lines(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Writes lines of JSON to stdout.
pub(crate) fn write_json_lines(text: &str) -> Result<()> {
    write_escaped(&neutralize(text, Form::Json))
}

/// Writes an XML document to stdout.
pub(crate) fn write_xml(text: &str) -> Result<()> {
    write_escaped(&neutralize(text, Form::Xml))
}

/// A writer of JSON to stdout, for output that is written while it is produced.
pub(crate) fn json_stdout() -> JsonWriter<std::io::Stdout> {
    JsonWriter(std::io::stdout())
}

/// A writer that escapes JSON. Each call gets whole characters.
pub(crate) struct JsonWriter<W>(W);

impl<W: Write> JsonWriter<W> {
    /// Writes to a buffer first.
    pub(crate) fn buffered(self) -> JsonWriter<BufWriter<W>> {
        JsonWriter(BufWriter::new(self.0))
    }
}

impl<W: Write> Write for JsonWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(neutralize(&text, Form::Json).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Writes text to stdout that is escaped already.
fn write_escaped(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes a message to stderr.
pub(crate) fn write_stderr(text: &str) {
    let text = for_runner(terminal::finish(text));
    match MESSAGE_FORM.get() {
        Some(_) if text.trim().is_empty() => {}
        Some(form) => write_log(&form(&text)),
        // Programs find whole lines; people do not read words that the edge of the terminal cuts.
        None => {
            let style = stderr_line_style();
            let text = match style.width {
                usize::MAX => text,
                width => Cow::Owned(wrapping::messages(&text, width)),
            };
            write_log(&if style.color { terminal::with_label(text) } else { text });
        }
    }
}

/// Writes text to stderr as it is laid out. It has commands to be copied, which are not wrapped.
pub(crate) fn write_stderr_as_is(text: &str) {
    match MESSAGE_FORM.get() {
        Some(_) => write_stderr(text),
        None => write_log(&for_runner(terminal::finish(text))),
    }
}

/// Writes a message to stderr behind its label: `error`, `warning` or `note`. Line feeds in names that
/// it quotes are escaped; further lines of its own are indented.
pub(crate) fn write_message(label: &str, message: &str) {
    write_stderr(&format!("{label}: {}\n", escape_names(message)));
}

/// A line to print above the live status lines: finished, with the label of a message in colour.
pub(crate) fn live_line(text: &str) -> Cow<'_, str> {
    let text = terminal::finish(text);
    if stderr_style().color { terminal::with_label(text) } else { text }
}

/// The form of messages in a log of which they are a part.
static MESSAGE_FORM: OnceLock<fn(&str) -> String> = OnceLock::new();

/// Writes messages in another form from now on, without colours and live lines.
pub(crate) fn write_messages_as(form: fn(&str) -> String) {
    let _ = MESSAGE_FORM.set(form);
}

/// Writes lines of a log to stderr. They are escaped already.
pub(crate) fn write_log(lines: &str) {
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}

/// Writes what clap answers instead of parsed arguments: help to stdout, an error to stderr. An
/// error repeats arguments. `escaped` is the error about the same arguments without unsafe
/// characters: all escape sequences in it are colours. If it is not the same error, there are no
/// colours.
pub(crate) fn write_usage(error: &clap::Error, escaped: Option<&clap::Error>) -> Result<()> {
    let style = if error.use_stderr() { stderr_style() } else { stdout_style() };
    let text = match escaped.filter(|escaped| escaped.kind() == error.kind()) {
        Some(escaped) if style.color => terminal::trust(&escaped.render().ansi().to_string()),
        Some(escaped) => escaped.render().to_string(),
        None => error.render().to_string(),
    };
    if error.use_stderr() {
        write_stderr(&text);
        return Ok(());
    }
    write_stdout(&text)
}

/// The number of rows of the terminal on stdout, or a usual one.
pub(crate) fn stdout_height() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map_or(DEFAULT_HEIGHT, |(_, height)| usize::from(height.0))
}

/// Whether stderr is a terminal on which lines may be drawn.
pub(crate) fn stderr_is_terminal() -> bool {
    MESSAGE_FORM.get().is_none() && std::io::stderr().is_terminal()
}

/// Writes the message of a panic to stderr, with the stack if `RUST_BACKTRACE` asks for it.
pub(crate) fn write_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let stack = Backtrace::capture();
        let stack = match stack.status() {
            BacktraceStatus::Captured => format!("{stack}\n"),
            _ => String::new(),
        };
        write_stderr(&format!("counterfoil {panic}\n{stack}"));
    }));
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
    write_message("error", &format!("{error:#}{hint}"));
}

/// The style for stderr.
pub(crate) fn stderr_style() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stderr());
    let style = stream_style(Stream::Stderr, std::io::stderr().is_terminal(), width);
    Style { color: style.color && MESSAGE_FORM.get().is_none(), ..style }
}

/// The style for stdout.
pub(crate) fn stdout_style() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stdout());
    stream_style(Stream::Stdout, std::io::stdout().is_terminal(), width)
}

/// The style of lines on stderr: they are wrapped on a terminal only, so that programs find whole
/// lines elsewhere.
pub(crate) fn stderr_line_style() -> Style {
    let style = stderr_style();
    if std::io::stderr().is_terminal() { style } else { Style { width: usize::MAX, ..style } }
}

/// The style of lines on stdout: they are wrapped on a terminal only.
pub(crate) fn stdout_line_style() -> Style {
    let style = stdout_style();
    if std::io::stdout().is_terminal() { style } else { Style { width: usize::MAX, ..style } }
}

fn stream_style(stream: Stream, is_terminal: bool, size: Option<(Width, Height)>) -> Style {
    let width = size.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    // As no-color.org says, any value but the empty one counts.
    let color = match std::env::var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => false,
        Some(_) => is_terminal && !is_dumb,
        None => supports_color::on(stream).is_some(),
    };
    let is_ascii_locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|locale| matches!(locale.as_str(), "C" | "POSIX"));
    let unicode = !(is_dumb || (is_ascii_locale && is_terminal));
    Style { color, unicode, width: width.clamp(MIN_WIDTH, MAX_WIDTH) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    #[test]
    #[ignore = "the process that panics, started by the test below"]
    fn panicking_process() {
        super::write_panics();
        panic!("of an agent: \u{1b}]0;title\u{7} \u{202e}");
    }

    #[test]
    fn a_panic_writes_nothing_that_a_terminal_obeys() {
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "output::tests::panicking_process", "--ignored", "--nocapture"]);
        let stderr = String::from_utf8(process.output().unwrap().stderr).unwrap();
        assert!(stderr.contains("counterfoil panicked at"), "{stderr}");
        assert!(stderr.contains("of an agent: "), "{stderr}");
        assert!(!stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{stderr:?}");
    }
}
