//! Classifies the errors that programs report from their model's API.

use super::super::Failure;
use super::{parse_reset_time, reason};
use counterfoil_flow::AttemptOutcome;

/// An error of the model's API, or of the connection to it, as a program reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiError<'r> {
    /// The HTTP status, if it is known.
    pub(crate) status: Option<u16>,
    /// The program's message.
    pub(crate) message: &'r str,
    /// The current time in milliseconds since 1970. Relative times such as "in 12 s" refer to it.
    pub(crate) at: i64,
    /// How to log in, as a clause for the reason.
    pub(crate) login: &'r str,
}

impl ApiError<'_> {
    /// The failure that this error amounts to.
    pub(crate) fn to_failure(self) -> Failure {
        let mut text = reason(self.message);
        if text.is_empty() {
            text = self.status.map_or_else(
                || "it failed without a message".to_owned(),
                |status| format!("its server answered with HTTP {status}"),
            );
        }
        match self.kind() {
            Kind::Login => Failure::new(AttemptOutcome::Permission, with_advice(&text, self.login)),
            Kind::Limit => {
                let reset_at = parse_reset_time(self.message, self.at);
                Failure { reset_at, ..Failure::new(AttemptOutcome::Limit, text) }
            }
            Kind::Transport => Failure::new(AttemptOutcome::Transport, text),
            Kind::Schema => {
                Failure { schema_rejected: true, ..Failure::new(AttemptOutcome::Agent, text) }
            }
            Kind::Other => Failure::new(AttemptOutcome::Agent, text),
        }
    }

    fn kind(self) -> Kind {
        let lowercase =
            self.message.chars().take(16 << 10).collect::<String>().to_ascii_lowercase();
        let mentions = |cues: &[&str]| cues.iter().any(|cue| lowercase.contains(cue));
        match self.status {
            Some(401 | 403) => Kind::Login,
            Some(402 | 429) => Kind::Limit,
            Some(408 | 500..=599) => Kind::Transport,
            // Some servers report an exhausted account with status 400.
            Some(400) if mentions(&EXHAUSTED) => Kind::Limit,
            Some(400 | 422) if mentions(&["schema", "response_format", "text.format"]) => {
                Kind::Schema
            }
            Some(_) => Kind::Other,
            None if mentions(&LOGIN) => Kind::Login,
            None if mentions(&EXHAUSTED) || mentions(&LIMIT) => Kind::Limit,
            None if mentions(&TRANSPORT) => Kind::Transport,
            None => Kind::Other,
        }
    }
}

/// A reason followed by advice, as one sentence.
pub(crate) fn with_advice(reason: &str, advice: &str) -> String {
    format!("{}; {advice}", reason.trim_end_matches(['.', ' ']))
}

enum Kind {
    Login,
    Limit,
    Transport,
    Schema,
    Other,
}

const LOGIN: [&str; 10] = [
    "not logged in",
    "/login",
    "log in again",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "unauthorized",
    "unauthenticated",
    "authentication_error",
    "token has expired",
];

const EXHAUSTED: [&str; 5] = [
    "credit balance",
    "insufficient_quota",
    "exceeded your current quota",
    "billing_error",
    "out of credits",
];

const LIMIT: [&str; 9] = [
    "rate limit",
    "rate_limit",
    "usage limit",
    "usage_limit",
    "too many requests",
    "resource_exhausted",
    "quota",
    "hit your limit",
    "limit reached",
];

const TRANSPORT: [&str; 22] = [
    "overloaded",
    "server_error",
    "high demand",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "connection error",
    "connection refused",
    "connection reset",
    "connection closed",
    "unable to connect",
    "econnrefused",
    "econnreset",
    "enotfound",
    "eai_again",
    "etimedout",
    "socket hang up",
    "fetch failed",
    "stream disconnected",
    "error sending request",
    "timed out",
];

/// Finds an HTTP status in a message, after a word that announces it: `API Error: 500`, `status
/// code 429`, `(401)`.
pub(crate) fn find_http_status(message: &str) -> Option<u16> {
    let message = &message[..message.floor_char_boundary(16 << 10)];
    let mut before = "";
    for word in message.split_ascii_whitespace() {
        let digits = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let announced = word.starts_with('(')
            || ["error", "status", "code", "http"].iter().any(|cue| {
                before.trim_end_matches([':', '=', '"']).to_ascii_lowercase().ends_with(cue)
            });
        if announced
            && digits.len() == 3
            && let Ok(status @ 400..=599) = digits.parse()
        {
            return Some(status);
        }
        before = word;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(status: Option<u16>, message: &str) -> (AttemptOutcome, Option<i64>, bool) {
        let failure =
            ApiError { status, message, at: 1000, login: "log in with `x login`" }.to_failure();
        (failure.outcome, failure.reset_at, failure.schema_rejected)
    }

    #[test]
    fn a_status_determines_the_kind() {
        use AttemptOutcome::{Agent, Limit, Permission, Transport};
        for (status, message, expected) in [
            (401, "no", (Permission, None, false)),
            (403, "no", (Permission, None, false)),
            (429, "try again in 2s", (Limit, Some(3000), false)),
            (429, "", (Limit, None, false)),
            (402, "pay", (Limit, None, false)),
            (400, "Your credit balance is too low", (Limit, None, false)),
            (408, "", (Transport, None, false)),
            (500, "rate limit", (Transport, None, false)),
            (529, "Overloaded", (Transport, None, false)),
            (400, "tools.3.custom.input_schema: JSON schema is invalid", (Agent, None, true)),
            (400, "prompt is too long", (Agent, None, false)),
            (404, "no such model", (Agent, None, false)),
        ] {
            assert_eq!(classify(Some(status), message), expected, "{status} {message}");
        }
    }

    #[test]
    fn without_a_status_the_message_decides() {
        use AttemptOutcome::{Agent, Limit, Permission, Transport};
        for (message, expected) in [
            ("Not logged in · Please run /login", Permission),
            ("You've hit your limit · resets 3pm", Limit),
            ("RESOURCE_EXHAUSTED", Limit),
            ("connect ECONNREFUSED 127.0.0.1:1", Transport),
            ("stream disconnected before completion", Transport),
            ("something else", Agent),
            ("", Agent),
        ] {
            assert_eq!(classify(None, message).0, expected, "{message}");
        }
    }

    #[test]
    fn a_reason_is_never_empty_and_says_how_to_log_in() {
        let reason = |status, message| {
            ApiError { status, message, at: 0, login: "log in with `x login`" }.to_failure().reason
        };
        assert_eq!(reason(Some(500), ""), "its server answered with HTTP 500");
        assert_eq!(reason(None, " "), "it failed without a message");
        assert_eq!(reason(Some(401), "who are you?"), "who are you?; log in with `x login`");
        assert_eq!(reason(Some(403), "Not you."), "Not you; log in with `x login`");
        assert!(reason(Some(500), &"x".repeat(1 << 20)).chars().count() < 700);
    }

    #[test]
    fn a_status_is_found_where_it_is_announced() {
        for (message, expected) in [
            ("API Error: 500 mock", Some(500)),
            ("Request rejected (429) · mock", Some(429)),
            ("unexpected status 401 Unauthorized: x", Some(401)),
            ("got status: 503.", Some(503)),
            ("HTTP error 502", Some(502)),
            ("wrote 500 lines", None),
            ("error 42", None),
            ("error 700", None),
        ] {
            assert_eq!(find_http_status(message), expected, "{message}");
        }
    }
}
