//! Classifies the failures of Gemini CLI from its final event, exit status and standard error. None
//! of them is sufficient alone.

use crate::adapters::common::{ApiError, parse_reset_time, reason};
use crate::adapters::{Failure, StreamEnd};
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::Exit;
use serde::Deserialize;

/// The error in the final event.
#[derive(Debug, Default)]
pub(super) struct ErrorEvent {
    /// The class of the error.
    pub(super) kind: String,
    /// The message, which usually contains the response of the server.
    pub(super) message: String,
}

const LOGIN: &str = "log in by starting `gemini` in a terminal, or set GEMINI_API_KEY";

/// The classes of errors that stand for a status of HTTP.
const CLASSES: [(&str, u16); 4] = [
    ("FatalAuthenticationError", 401),
    ("TerminalQuotaError", 429),
    ("RetryableQuotaError", 429),
    ("ModelNotFoundError", 404),
];

/// The failure that the final event reports.
pub(super) fn from_result(error: &ErrorEvent, end: &StreamEnd<'_>) -> Failure {
    let answer = GoogleError::find(&error.message);
    let class = CLASSES.iter().find(|(name, _)| *name == error.kind).map(|(_, status)| *status);
    // Some versions call the error unknown in the event, and report it on standard error only.
    let reported = class.is_none().then(|| reported_on_stderr(end.errors)).flatten();
    let message = match (&answer, reported) {
        (Some(answer), _) => answer.to_text(),
        (None, Some((_, message))) => message.to_owned(),
        (None, None) => strip_frame(&error.message).to_owned(),
    };
    let from_exit = match end.exit {
        Exit::Code(code) => http_status_from_exit(code),
        Exit::Signal(_) => None,
    };
    let status = answer.and_then(|answer| answer.code).or(class).or(from_exit);
    let status = status.or(reported.and_then(|(status, _)| status));
    api_failure(status, &message, &error.message, end)
}

/// The status, as far as it is known, and the message of the error that standard error reports last.
/// The code that is printed with it is more exact than its class: an overload is of the class of a
/// limit, too.
fn reported_on_stderr(errors: &str) -> Option<(Option<u16>, &str)> {
    let (_, report) = errors.rsplit_once("Error when talking to Gemini API")?;
    let line = report.lines().next().unwrap_or_default();
    let (class, message) = line.match_indices(": ").find_map(|(at, colon)| {
        let class = line[..at].rsplit(' ').next()?;
        class.ends_with("Error").then(|| (class, line[at + colon.len()..].trim()))
    })?;
    let status = CLASSES.iter().find(|(name, _)| *name == class).map(|(_, status)| *status);
    let code = report.split_once("code: ").and_then(|(_, rest)| rest.get(..3)?.parse().ok());
    Some((code.or(status), message))
}

/// The failure that standard error and the exit status report if there was no final event. None if
/// standard error is empty.
pub(super) fn from_stderr(end: &StreamEnd<'_>) -> Option<Failure> {
    let Exit::Code(code @ 1..) = end.exit else { return None };
    let agent = |reason: String| Some(Failure::new(AttemptOutcome::Agent, reason));
    let begins =
        |prefix: &'static str| relevant_lines(end.errors).find(|line| line.starts_with(prefix));
    if let Some(line) = begins("Unknown argument") {
        return agent(format!(
            "{}: it is too old for this, or a flag in `flags` is unknown",
            reason(line)
        ));
    }
    if let Some(line) = begins("Error resuming session") {
        return agent(format!(
            "{}: only a new conversation can continue",
            reason(line).trim_end_matches('.')
        ));
    }
    if let Some(answer) = GoogleError::find(end.errors).filter(|answer| answer.code.is_some()) {
        return Some(api_failure(answer.code, &answer.to_text(), end.errors, end));
    }
    let last = relevant_lines(end.errors).next_back()?.trim_end_matches('.');
    match code {
        41 => Some(api_failure(Some(401), last, "", end)),
        42 | 44 | 52..=55 => agent(reason(last)),
        _ => Some(api_failure(http_status_from_exit(code), last, "", end)),
    }
}

/// The warnings on standard error that matter for the result.
pub(super) fn warnings(errors: &str) -> impl Iterator<Item = String> {
    const WARNINGS: [&str; 4] =
        ["Security Warning:", "Policy file error", "stdin input truncated", "MCP issues detected"];
    errors
        .lines()
        .filter(|line| WARNINGS.iter().any(|warning| line.contains(warning)))
        .map(reason)
        .take(8)
}

/// The failure for an API error. `all` is the full text around the message.
fn api_failure(status: Option<u16>, message: &str, all: &str, end: &StreamEnd<'_>) -> Failure {
    let status = match status {
        // The response to an invalid key.
        Some(400) if INVALID_KEY.iter().any(|key| all.contains(key) || message.contains(key)) => {
            Some(401)
        }
        None if INTERRUPTED.iter().any(|cue| message.contains(cue)) => Some(500),
        status => status,
    };
    let message =
        if message == "terminated" { "the reply of the model was cut off" } else { message };
    let mut failure = ApiError { status, message, at: end.at, login: LOGIN }.to_failure();
    // It is not given a schema.
    failure.schema_rejected = false;
    if failure.outcome == AttemptOutcome::Limit && failure.reset_at.is_none() {
        let late =
            &end.errors[end.errors.ceil_char_boundary(end.errors.len().saturating_sub(16 << 10))..];
        failure.reset_at = parse_reset_time(all, end.at).or_else(|| parse_reset_time(late, end.at));
    }
    if status == Some(404) {
        failure.reason += "; name another model in `model`";
    }
    failure
}

/// The messages for an interrupted stream and an empty reply.
const INTERRUPTED: [&str; 5] =
    ["terminated", "Incomplete JSON segment", "Premature close", "aborted", "transient API issue"];

const INVALID_KEY: [&str; 3] = ["API key not valid", "API_KEY_INVALID", "API key expired"];

/// The HTTP status that an exit status was made of: its lowest eight bits.
fn http_status_from_exit(code: i32) -> Option<u16> {
    const STATUSES: [u16; 15] =
        [400, 401, 402, 403, 404, 408, 413, 422, 429, 499, 500, 502, 503, 504, 529];
    STATUSES.into_iter().find(|status| i32::from(status & 0xff) == code)
}

/// An error response of a Google API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GoogleError {
    code: Option<u16>,
    message: String,
    status: String,
}

#[derive(Deserialize)]
struct Framed {
    error: GoogleError,
}

impl GoogleError {
    /// Finds the last error response in a text. Its message may contain another one as text.
    fn find(text: &str) -> Option<Self> {
        const MAX_OBJECTS: usize = 256;
        let text = &text[text.ceil_char_boundary(text.len().saturating_sub(64 << 10))..];
        let framed = |text: &str| {
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<Framed>();
            values.next()?.ok().map(|framed| framed.error)
        };
        let mut answer =
            text.rmatch_indices('{').take(MAX_OBJECTS).find_map(|(at, _)| framed(&text[at..]))?;
        if let Some(inner) = framed(&answer.message) {
            answer.code = inner.code.or(answer.code);
            answer.message = inner.message;
        }
        Some(answer)
    }

    fn to_text(&self) -> String {
        match &*self.status {
            "" => self.message.clone(),
            status => format!("{} ({status})", self.message),
        }
    }
}

/// A message without the frame that the program puts around it, and without the advice after it.
fn strip_frame(message: &str) -> &str {
    let Some(framed) = message.strip_prefix("[API Error: ") else { return message };
    let end = framed.find("]\n").or_else(|| framed.strip_suffix(']').map(str::len));
    &framed[..end.unwrap_or(framed.len())]
}

/// The relevant lines of standard error: no stack traces and no startup notes.
fn relevant_lines(errors: &str) -> impl DoubleEndedIterator<Item = &str> {
    errors.lines().map(str::trim).filter(|line| {
        let member = line
            .split_once(": ")
            .is_some_and(|(_, value)| value.trim_end_matches(',').parse::<i64>().is_ok());
        let stack = line.starts_with("at ") || line.len() < 2 || member;
        let start = ["Warning: ", "Ripgrep is not", "[STARTUP]", "YOLO mode is"]
            .iter()
            .any(|word| line.starts_with(word));
        !stack && !start
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown() -> ErrorEvent {
        let message = "[API Error: An unknown error occurred.]".to_owned();
        ErrorEvent { kind: "unknown".to_owned(), message }
    }

    /// What version 0.47.0 writes: the event and the exit status say nothing.
    fn of_version_0_47(class: &str, code: u16) -> Failure {
        let errors = format!(
            "Attempt 1 failed: Too many requests. Max attempts reached\n\
             Error when talking to Gemini API Full report available at: /tmp/report.json {class}: Too many requests.\n    \
             at retry (file:///bundle.js:1:2) {{\n  cause: {{\n    code: {code},\n    message: 'Too many requests.'\n  }}\n}}\n"
        );
        from_result(&unknown(), &StreamEnd { exit: Exit::Code(1), errors: &errors, at: 0 })
    }

    #[test]
    fn an_error_that_only_standard_error_names_is_known() {
        let limit = of_version_0_47("RetryableQuotaError", 429);
        assert_eq!(limit.outcome, AttemptOutcome::Limit);
        assert!(limit.reason.contains("Too many requests"), "{}", limit.reason);
        // An overload has the class of a limit.
        let overload = of_version_0_47("RetryableQuotaError", 503);
        assert_eq!(overload.outcome, AttemptOutcome::Transport);
        assert_eq!(of_version_0_47("ModelNotFoundError", 404).outcome, AttemptOutcome::Agent);
        // A connection that was cut.
        let errors = "Error when talking to Gemini API Full report available at: /tmp/a b.json TypeError: terminated\n  \
                      [cause]: SocketError: other side closed\n    code: 'UND_ERR_SOCKET',\n";
        let end = StreamEnd { exit: Exit::Code(1), errors, at: 0 };
        assert_eq!(from_result(&unknown(), &end).outcome, AttemptOutcome::Transport);
    }
}
