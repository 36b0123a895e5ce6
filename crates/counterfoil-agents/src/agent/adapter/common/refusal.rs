//! What kind of failure a refusal of a model's server is.

use super::super::Failure;
use super::{reason, reset_at};
use counterfoil_flow::AttemptOutcome;

/// What a program says its model's server, or the way there, said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal<'r> {
    /// The status of HTTP, where it is known.
    pub(crate) status: Option<u16>,
    /// In the program's words.
    pub(crate) said: &'r str,
    /// Now, in milliseconds since 1970: some limits are lifted "in 12 s".
    pub(crate) at: i64,
    /// How one logs in, as a clause.
    pub(crate) login: &'r str,
}

impl Refusal<'_> {
    /// The failure it is.
    pub(crate) fn failure(&self) -> Failure {
        let mut words = reason(self.said);
        if words.is_empty() {
            words = self.status.map_or_else(
                || "it failed and does not say why".to_owned(),
                |status| format!("its server answered with HTTP {status}"),
            );
        }
        match self.kind() {
            Kind::Login => Failure::new(AttemptOutcome::Permission, advised(&words, self.login)),
            Kind::Limit => {
                let reset_at = reset_at(self.said, self.at);
                Failure { reset_at, ..Failure::new(AttemptOutcome::Limit, words) }
            }
            Kind::Transport => Failure::new(AttemptOutcome::Transport, words),
            Kind::Schema => Failure { schema: true, ..Failure::new(AttemptOutcome::Agent, words) },
            Kind::Other => Failure::new(AttemptOutcome::Agent, words),
        }
    }

    fn kind(&self) -> Kind {
        let small = self.said.chars().take(16 << 10).collect::<String>().to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| small.contains(word));
        match self.status {
            Some(401 | 403) => Kind::Login,
            Some(402 | 429) => Kind::Limit,
            Some(408 | 500..=599) => Kind::Transport,
            // Some servers answer a used-up account with 400.
            Some(400) if says(&USED_UP) => Kind::Limit,
            Some(400 | 422) if says(&["schema", "response_format", "text.format"]) => Kind::Schema,
            Some(_) => Kind::Other,
            None if says(&LOGIN) => Kind::Login,
            None if says(&USED_UP) || says(&LIMIT) => Kind::Limit,
            None if says(&TRANSPORT) => Kind::Transport,
            None => Kind::Other,
        }
    }
}

/// A reason and what can be done about it, as one sentence.
pub(crate) fn advised(reason: &str, advice: &str) -> String {
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

const USED_UP: [&str; 5] = [
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

/// The status of HTTP that stands in words, behind one that announces it: `API Error: 500`, `status
/// code 429`, `(401)`.
pub(crate) fn status_in(said: &str) -> Option<u16> {
    let said = &said[..said.floor_char_boundary(16 << 10)];
    let mut before = "";
    for word in said.split_ascii_whitespace() {
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

    fn of(status: Option<u16>, said: &str) -> (AttemptOutcome, Option<i64>, bool) {
        let failure = Refusal { status, said, at: 1000, login: "log in with `x login`" }.failure();
        (failure.outcome, failure.reset_at, failure.schema)
    }

    #[test]
    fn a_status_says_what_kind_it_is() {
        use AttemptOutcome::{Agent, Limit, Permission, Transport};
        for (status, said, expected) in [
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
            assert_eq!(of(Some(status), said), expected, "{status} {said}");
        }
    }

    #[test]
    fn without_a_status_the_words_say_it() {
        use AttemptOutcome::{Agent, Limit, Permission, Transport};
        for (said, expected) in [
            ("Not logged in · Please run /login", Permission),
            ("You've hit your limit · resets 3pm", Limit),
            ("RESOURCE_EXHAUSTED", Limit),
            ("connect ECONNREFUSED 127.0.0.1:1", Transport),
            ("stream disconnected before completion", Transport),
            ("something else", Agent),
            ("", Agent),
        ] {
            assert_eq!(of(None, said).0, expected, "{said}");
        }
    }

    #[test]
    fn words_are_never_missing_and_say_how_to_log_in() {
        let reason = |status, said| {
            Refusal { status, said, at: 0, login: "log in with `x login`" }.failure().reason
        };
        assert_eq!(reason(Some(500), ""), "its server answered with HTTP 500");
        assert_eq!(reason(None, " "), "it failed and does not say why");
        assert_eq!(reason(Some(401), "who are you?"), "who are you?; log in with `x login`");
        assert_eq!(reason(Some(403), "Not you."), "Not you; log in with `x login`");
        assert!(reason(Some(500), &"x".repeat(1 << 20)).chars().count() < 700);
    }

    #[test]
    fn a_status_is_found_where_it_is_announced() {
        for (said, expected) in [
            ("API Error: 500 mock", Some(500)),
            ("Request rejected (429) · mock", Some(429)),
            ("unexpected status 401 Unauthorized: x", Some(401)),
            ("got status: 503.", Some(503)),
            ("HTTP error 502", Some(502)),
            ("wrote 500 lines", None),
            ("error 42", None),
            ("error 700", None),
        ] {
            assert_eq!(status_in(said), expected, "{said}");
        }
    }
}
