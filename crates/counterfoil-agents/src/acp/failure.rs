//! What the errors of programs mean: those of the protocol, and those that a program passes for the reply
//! of its model. Pure.

use super::incoming::{AuthMethod, RpcError};
use crate::adapters::Failure;
use crate::adapters::common::{ApiError, find_http_status, reason, truncate};
use agent_client_protocol_schema::v1::StopReason;
use counterfoil_flow::AttemptOutcome;
use serde_json::Value;

/// The protocol's code for a program that is not logged in.
const AUTH_REQUIRED: i64 = -32000;
/// The longest text that may be an error instead of a reply.
const MAX_ERROR_BYTES: usize = 4 << 10;

/// How to log in, as a clause for a reason.
pub(super) fn login_advice(program: &str, methods: &[AuthMethod]) -> String {
    let method = |method: &AuthMethod| {
        let name = truncate(method.name.as_deref()?, 60);
        let how = method.description.as_deref().map(|how| truncate(how, 120));
        Some(match how.filter(|how| !how.is_empty() && *how != name) {
            Some(how) => format!("{name} ({how})"),
            None => name,
        })
    };
    let methods: Vec<String> = methods.iter().filter_map(method).take(6).collect();
    let program = truncate(program, 60);
    if methods.is_empty() {
        format!("log in with `{program}` itself, or set the key that it needs")
    } else {
        format!("log in with `{program}` itself; it offers: {}", methods.join(", "))
    }
}

/// The failure for an error of the protocol. `login` says how to log in.
pub(super) fn from_rpc(error: &RpcError, login: &str, at: i64) -> Failure {
    let message = error.message.as_deref().unwrap_or_default();
    let inner = ServerError::find(message);
    let details =
        ["details", "message", "error", "reason"].iter().find_map(|key| match &error.data {
            Value::String(text) => Some(text.as_str()),
            data => data.get(key)?.as_str(),
        });
    let mut text = inner.as_ref().map_or(message, |inner| &inner.message).to_owned();
    if let Some(details) = details.filter(|details| !text.contains(details)) {
        let details = ServerError::find(details).map_or(details.to_owned(), |inner| inner.message);
        text = if text.is_empty() { details } else { format!("{text}: {details}") };
    }
    let in_data = || {
        let keys = ["status", "statusCode", "httpStatus", "code"];
        keys.iter().find_map(|key| http_status(error.data.get(key)?.as_i64()?))
    };
    let kind = || {
        let kind =
            ["errorKind", "kind", "type"].iter().find_map(|key| error.data.get(key)?.as_str());
        kind.and_then(status_of_kind)
    };
    let status = error
        .code
        .and_then(http_status)
        .or_else(|| inner.as_ref().and_then(|inner| inner.status))
        .or_else(in_data)
        .or_else(|| find_http_status(&text))
        .or_else(kind)
        .or_else(|| details.and_then(|details| ServerError::find(details)?.status))
        .or((error.code == Some(AUTH_REQUIRED)).then_some(401));
    api_failure(status, &text, login, at)
}

/// The failure if a reply that the program calls complete is an error of its model's server. The text
/// is nothing but the error, so that a reply about an error is not taken for one.
pub(super) fn in_reply(text: &str, login: &str, at: i64) -> Option<Failure> {
    const BEGINNINGS: [&str; 10] = [
        "api error",
        "[api error",
        "capierror",
        "error:",
        "execution failed:",
        "internal error",
        "request failed",
        "stream disconnected",
        "stream error",
        "unexpected status",
    ];
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_ERROR_BYTES {
        return None;
    }
    if text.starts_with('{') {
        let error = ServerError::whole(text)?;
        return Some(api_failure(error.status, &error.message, login, at));
    }
    let lowercase = text.to_ascii_lowercase();
    if !BEGINNINGS.iter().any(|beginning| lowercase.starts_with(beginning)) {
        return None;
    }
    let failure = api_failure(find_http_status(text), text, login, at);
    (find_http_status(text).is_some() || failure.outcome != AttemptOutcome::Agent)
        .then_some(failure)
}

/// The failure of a program that says itself that its turn failed. The text is its only message.
pub(super) fn of_failed_turn(text: &str, login: &str, at: i64) -> Failure {
    let text = text.trim();
    match ServerError::find(text) {
        Some(error) => api_failure(error.status, &error.message, login, at),
        None => api_failure(find_http_status(text), text, login, at),
    }
}

fn api_failure(status: Option<u16>, message: &str, login: &str, at: i64) -> Failure {
    let mut failure = ApiError { status, message, at, login }.to_failure();
    // It is not given a schema.
    failure.schema_rejected = false;
    failure
}

/// The failure for a reply that ended for another reason than that it is complete.
pub(super) fn of_stop(stop: StopReason) -> Option<Failure> {
    let agent = |reason: &str| Some(Failure::new(AttemptOutcome::Agent, reason));
    match stop {
        StopReason::EndTurn => None,
        StopReason::MaxTokens => agent(
            "its reply was cut off: the model reached the limit of tokens of a reply (max_tokens)",
        ),
        StopReason::MaxTurnRequests => {
            agent("it reached its own limit of requests for one prompt (max_turn_requests)")
        }
        StopReason::Refusal => agent("it refused to go on (refusal)"),
        StopReason::Cancelled => {
            agent("it ended its turn as cancelled, though nobody cancelled it")
        }
        _ => agent("its turn ended for a reason that is unknown to us"),
    }
}

/// The failure for an unknown reason.
pub(super) fn of_unknown_stop(stop: &str) -> Failure {
    let stop = truncate(stop, 60);
    Failure::new(AttemptOutcome::Agent, format!("its turn ended for an unknown reason, `{stop}`"))
}

/// A failure that makes it pointless to go on with the program.
pub(super) fn of_protocol(what: &str) -> Failure {
    Failure::new(AttemptOutcome::Agent, reason(what))
}

fn http_status(code: i64) -> Option<u16> {
    u16::try_from(code).ok().filter(|code| (400..=599).contains(code))
}

/// The status that a kind of error stands for.
fn status_of_kind(kind: &str) -> Option<u16> {
    Some(match kind {
        "authentication_failed" | "authentication_error" | "oauth_org_not_allowed" => 401,
        "rate_limit" | "rate_limit_error" | "billing_error" => 429,
        "server_error" | "api_error" | "overloaded" | "overloaded_error" => 500,
        _ => return None,
    })
}

/// An error response of a server, as programs pass it on: `{"error": {"code": 500, "message": …}}`.
struct ServerError {
    status: Option<u16>,
    message: String,
}

impl ServerError {
    /// The error in a text that begins with one, or that has one at its end.
    fn find(text: &str) -> Option<Self> {
        let start = text.find('{')?;
        let rest = text[start..].trim_end();
        (rest.len() <= MAX_ERROR_BYTES).then(|| Self::whole(rest)).flatten()
    }

    /// The error that is all of a text.
    fn whole(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let error = value.get("error")?;
        let message = error.get("message")?.as_str()?;
        if !["type", "code", "status"].iter().any(|key| error.get(key).is_some()) {
            return None;
        }
        let code = ["code", "status"].iter().find_map(|key| http_status(error.get(key)?.as_i64()?));
        let kind =
            ["type", "code"].iter().find_map(|key| status_of_kind(error.get(key)?.as_str()?));
        // A message may be such a response itself.
        match Self::find(message) {
            Some(inner) => Some(Self { status: inner.status.or(code).or(kind), ..inner }),
            None => Some(Self { status: code.or(kind), message: message.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptOutcome::{Agent, Limit, Permission, Transport};

    fn rpc(text: &str) -> Failure {
        from_rpc(&serde_json::from_str(text).unwrap(), "log in with `x`", 1000)
    }

    #[test]
    fn errors_of_the_protocol_are_classified() {
        for (text, outcome, reason) in [
            // Gemini CLI.
            (
                r#"{"code":500,"message":"{\"error\":{\"code\":500,\"message\":\"boom\",\"status\":\"INTERNAL\"}}"}"#,
                Transport,
                "boom",
            ),
            // Claude.
            (
                r#"{"code":-32603,"message":"Internal error: Failed to authenticate. API Error: 401 boom","data":{"errorKind":"authentication_failed"}}"#,
                Permission,
                "Internal error: Failed to authenticate. API Error: 401 boom; log in with `x`",
            ),
            (
                r#"{"code":-32603,"message":"Internal error","data":{"errorKind":"rate_limit"}}"#,
                Limit,
                "Internal error",
            ),
            (
                r#"{"code":-32603,"message":"Internal error","data":{"details":"API Error: 529 Overloaded"}}"#,
                Transport,
                "Internal error: API Error: 529 Overloaded",
            ),
            (
                r#"{"code":-32603,"message":"Internal error","data":"fetch failed"}"#,
                Transport,
                "Internal error: fetch failed",
            ),
            (r#"{"code":-32603,"message":"x","data":{"statusCode":429}}"#, Limit, "x"),
            (
                r#"{"code":-32000,"message":"Authentication required"}"#,
                Permission,
                "Authentication required; log in with `x`",
            ),
            (r#"{"code":-32602,"message":"Invalid params"}"#, Agent, "Invalid params"),
            (r"{}", Agent, "it failed without a message"),
        ] {
            let failure = rpc(text);
            assert_eq!((failure.outcome, &*failure.reason), (outcome, reason), "{text}");
        }
        assert_eq!(rpc(r#"{"code":429,"message":"try again in 2s"}"#).reset_at, Some(3000));
        let long = format!(r#"{{"message":"{}\u001b[2J"}}"#, "x".repeat(100_000));
        assert!(rpc(&long).reason.chars().count() < 700);
        assert!(!rpc(r#"{"message":"a\u001b[2Jb"}"#).reason.contains('\u{1b}'));
    }

    #[test]
    fn an_error_that_is_passed_for_a_reply_is_one() {
        let found = |text| in_reply(text, "log in", 0).map(|failure| failure.outcome);
        for (text, expected) in [
            (
                r#"{"error": {"message": "boom", "type": "mock_error", "code": "server_error"}}"#,
                Some(Transport),
            ),
            (
                r#"{"error": {"message": "boom", "type": "x", "code": "invalid_request_error"}}"#,
                Some(Agent),
            ),
            ("Execution failed: CAPIError: 500 boom", Some(Transport)),
            ("Error: 401 Unauthorized", Some(Permission)),
            ("API Error: 529 Overloaded", Some(Transport)),
            ("Error: connect ECONNREFUSED 127.0.0.1:1", Some(Transport)),
            // Replies.
            ("Error: the tests fail", None),
            (r#"{"error": {"message": "none"}}"#, None),
            (r#"{"error": "none", "ok": true}"#, None),
            ("I fixed the API error 500.", None),
            ("", None),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        assert_eq!(of_failed_turn("whatever", "", 0).outcome, Agent);
        assert_eq!(of_failed_turn("", "", 0).reason, "it failed without a message");
    }

    #[test]
    fn who_is_not_logged_in_is_told_how() {
        let methods: Vec<AuthMethod> = serde_json::from_str(
            r#"[{"name":"Log in with Google","description":"Log in with your account"},
                {"name":"API key"},{"id":"x"},{"name":"Bad\u001b[2J"}]"#,
        )
        .unwrap();
        assert_eq!(
            login_advice("gemini", &methods),
            "log in with `gemini` itself; it offers: Log in with Google (Log in with your account), \
             API key, Bad\\u{1b}[2J"
        );
        assert_eq!(login_advice("x", &[]), "log in with `x` itself, or set the key that it needs");
    }
}
