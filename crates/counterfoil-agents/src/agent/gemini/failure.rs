//! Why Gemini CLI failed: from its last event, its exit status and its standard error, none of
//! which says it alone.

use crate::agent::adapter::common::{Refusal, reason, reset_at};
use crate::agent::adapter::{End, Failure};
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::Exit;
use serde::Deserialize;

/// What its last event says of a failure.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The class of the error, in the words of the program.
    pub(super) kind: String,
    /// In words, mostly with the answer of the server in them.
    pub(super) message: String,
}

const LOGIN: &str = "log in by starting `gemini` in a terminal, or set GEMINI_API_KEY";

/// The failure that a last event tells of.
pub(super) fn of(told: &Told, end: &End<'_>) -> Failure {
    let answer = Answer::within(&told.message);
    let said =
        answer.as_ref().map_or_else(|| without_frame(&told.message).to_owned(), Answer::words);
    let class = match &*told.kind {
        "FatalAuthenticationError" => Some(401),
        "TerminalQuotaError" | "RetryableQuotaError" => Some(429),
        "ModelNotFoundError" => Some(404),
        // The event mostly calls it unknown.
        _ if end.errors.contains(" ModelNotFoundError: ") => Some(404),
        _ => None,
    };
    let from_exit = match end.exit {
        Exit::Code(code) => status_of(code),
        Exit::Signal(_) => None,
    };
    let status = answer.and_then(|answer| answer.code).or(class).or(from_exit);
    refusal(status, &said, &told.message, end)
}

/// The failure that standard error and the exit status tell of, where there was no last event.
/// Silence tells of none.
pub(super) fn without_events(end: &End<'_>) -> Option<Failure> {
    let Exit::Code(code @ 1..) = end.exit else { return None };
    let agent = |reason: String| Some(Failure::new(AttemptOutcome::Agent, reason));
    let begins = |words: &'static str| telling(end.errors).find(|line| line.starts_with(words));
    if let Some(line) = begins("Unknown argument") {
        return agent(format!(
            "{}: it is too old for this, or a flag in `flags` is none of its own",
            reason(line)
        ));
    }
    if let Some(line) = begins("Error resuming session") {
        return agent(format!(
            "{}: only a new conversation helps",
            reason(line).trim_end_matches('.')
        ));
    }
    if let Some(answer) = Answer::within(end.errors).filter(|answer| answer.code.is_some()) {
        return Some(refusal(answer.code, &answer.words(), end.errors, end));
    }
    let last = telling(end.errors).next_back()?.trim_end_matches('.');
    match code {
        41 => Some(refusal(Some(401), last, "", end)),
        42 | 44 | 52..=55 => agent(reason(last)),
        _ => Some(refusal(status_of(code), last, "", end)),
    }
}

/// What standard error says that whoever reads the result should know.
pub(super) fn remarks(errors: &str) -> impl Iterator<Item = String> {
    const REMARKS: [&str; 4] =
        ["Security Warning:", "Policy file error", "stdin input truncated", "MCP issues detected"];
    errors
        .lines()
        .filter(|line| REMARKS.iter().any(|remark| line.contains(remark)))
        .map(reason)
        .take(8)
}

/// What a refusal comes to: in words, with all that was told beside them.
fn refusal(status: Option<u16>, said: &str, all: &str, end: &End<'_>) -> Failure {
    let status = match status {
        // A key that is none is answered so.
        Some(400) if KEYS.iter().any(|key| all.contains(key) || said.contains(key)) => Some(401),
        None if CUT.iter().any(|cut| said.contains(cut)) => Some(500),
        status => status,
    };
    let said = if said == "terminated" { "the answer of the model broke off" } else { said };
    let mut failure = Refusal { status, said, at: end.at, login: LOGIN }.failure();
    // It gets no schema.
    failure.schema = false;
    if failure.outcome == AttemptOutcome::Limit && failure.reset_at.is_none() {
        let late =
            &end.errors[end.errors.ceil_char_boundary(end.errors.len().saturating_sub(16 << 10))..];
        failure.reset_at = reset_at(all, end.at).or_else(|| reset_at(late, end.at));
    }
    if status == Some(404) {
        failure.reason += "; name another model in `model`";
    }
    failure
}

/// What is said of a stream that broke off, and of a model that said nothing.
const CUT: [&str; 5] =
    ["terminated", "Incomplete JSON segment", "Premature close", "aborted", "transient API issue"];

const KEYS: [&str; 3] = ["API key not valid", "API_KEY_INVALID", "API key expired"];

/// The status of HTTP that an exit status is made of: its last eight bits.
fn status_of(code: i32) -> Option<u16> {
    const STATUSES: [u16; 15] =
        [400, 401, 402, 403, 404, 408, 413, 422, 429, 499, 500, 502, 503, 504, 529];
    STATUSES.into_iter().find(|status| i32::from(status & 0xff) == code)
}

/// What a server of Google answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    code: Option<u16>,
    message: String,
    status: String,
}

#[derive(Deserialize)]
struct Framed {
    error: Answer,
}

impl Answer {
    /// The last answer that stands in a text. Its message may hold another one, as text.
    fn within(text: &str) -> Option<Self> {
        const MOST: usize = 256;
        let text = &text[text.ceil_char_boundary(text.len().saturating_sub(64 << 10))..];
        let framed = |text: &str| {
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<Framed>();
            values.next()?.ok().map(|framed| framed.error)
        };
        let mut answer =
            text.rmatch_indices('{').take(MOST).find_map(|(at, _)| framed(&text[at..]))?;
        if let Some(inner) = framed(&answer.message) {
            answer.code = inner.code.or(answer.code);
            answer.message = inner.message;
        }
        Some(answer)
    }

    fn words(&self) -> String {
        match &*self.status {
            "" => self.message.clone(),
            status => format!("{} ({status})", self.message),
        }
    }
}

/// Words without the frame that the program puts around them, and the advice behind it.
fn without_frame(message: &str) -> &str {
    let Some(framed) = message.strip_prefix("[API Error: ") else { return message };
    let end = framed.find("]\n").or_else(|| framed.strip_suffix(']').map(str::len));
    &framed[..end.unwrap_or(framed.len())]
}

/// The lines of standard error that say something: no stack, no notes of the start.
fn telling(errors: &str) -> impl DoubleEndedIterator<Item = &str> {
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
