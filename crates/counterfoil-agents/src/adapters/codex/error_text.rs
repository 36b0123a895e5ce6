//! Classifies the error messages of Codex. It reports a status only as prose, so unknown messages
//! count as failures of the agent.

use crate::adapters::Failure;
use crate::adapters::common::{ApiError, find_http_status, reason, truncate};
use counterfoil_flow::AttemptOutcome;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// How to log in. A key in `OPENAI_API_KEY` alone is not enough.
const LOGIN: &str = "log in with `codex login`, or set CODEX_API_KEY";
/// How to choose another model.
const MODEL: &str = "choose another with `model` in [agents.codex] of counterfoil.toml";
/// How to correct invalid settings.
const SETTINGS: &str = "correct its config.toml, or `flags` in [agents.codex] of counterfoil.toml";

/// The time zone of the times in messages, which is that of the machine.
pub(super) fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// The failure that the message of a failed turn amounts to. `at` is the current time in
/// milliseconds since 1970.
pub(super) fn failure(message: &str, at: i64, zone: &TimeZone) -> Failure {
    let body = Body::parse(message);
    let message = body.as_ref().and_then(Body::message).unwrap_or(message);
    let lowercase = truncate(message, 4096).to_lowercase();
    let mentions = |cues: &[&str]| cues.iter().any(|cue| lowercase.contains(cue));
    let agent =
        |advice: &str| Failure::new(AttemptOutcome::Agent, reason_with_advice(message, advice));
    let known = |status| ApiError { status: Some(status), message, at, login: LOGIN }.to_failure();

    let mut failure =
        if body.as_ref().is_some_and(Body::rejects_schema) || mentions(&["codex_output_schema"]) {
            Failure { schema_rejected: true, ..agent("") }
        } else if mentions(&["missing environment variable"]) {
            let advice = "set it, and name it in `pass` of [agents.codex] in counterfoil.toml";
            Failure::new(AttemptOutcome::Permission, reason_with_advice(message, advice))
        } else if mentions(&[
            "does not exist or you do not have access",
            "model is not supported",
            "model_not_found",
        ]) {
            agent(MODEL)
        } else if mentions(&["context window", "incomplete response returned"]) {
            agent("")
        } else if mentions(&["with your chatgpt plan"]) {
            Failure::new(AttemptOutcome::Permission, reason(message))
        } else if mentions(&["sign in again", "could not be refreshed", "login is required"]) {
            known(401)
        } else if mentions(&["spend cap"]) || body.as_ref().is_some_and(Body::is_limit) {
            known(429)
        } else if mentions(&[
            "at capacity",
            "connection failed",
            "error while reading the server response",
        ]) {
            known(503)
        } else {
            // Codex passes on the body unchanged if the request was rejected as invalid.
            let status = body
                .as_ref()
                .map_or_else(|| find_http_status(message), |body| body.status.or(Some(400)));
            ApiError { status, message, at, login: LOGIN }.to_failure()
        };
    if failure.outcome == AttemptOutcome::Limit && failure.reset_at.is_none() {
        failure.reset_at = local_time(message, at, zone);
    }
    failure
}

/// The failure on standard error if Codex ends before its first event: a flag, file or conversation
/// that it does not accept.
pub(super) fn failure_to_start(errors: &str) -> Option<Failure> {
    if let Some((_, why)) = errors.split_once(NO_SERVER) {
        let line = format!("{NO_SERVER}{}", why.lines().next().unwrap_or_default());
        let advice = "to run without our server, set `channels = [\"native\"]` in [agents.codex] of counterfoil.toml";
        return Some(Failure::new(AttemptOutcome::Agent, reason_with_advice(&line, advice)));
    }
    let line = errors
        .lines()
        .map(str::trim)
        .find(|line| STARTS.iter().any(|start| line.starts_with(start)))?;
    let mentions = |cues: &[&str]| cues.iter().any(|cue| line.contains(cue));
    let agent =
        |advice: &str| Some(Failure::new(AttemptOutcome::Agent, reason_with_advice(line, advice)));
    if mentions(&["output schema"]) {
        return agent("").map(|failure| Failure { schema_rejected: true, ..failure });
    }
    if mentions(&["login is required", "Not logged in"]) {
        return Some(Failure::new(AttemptOutcome::Permission, reason_with_advice(line, LOGIN)));
    }
    if mentions(&["no rollout found", "no thread with id"]) {
        return agent(
            "the conversation is missing from its files, so only a new conversation can continue",
        );
    }
    if mentions(&["codex home"]) {
        return agent("create that folder, or unset CODEX_HOME");
    }
    if mentions(&["cannot be used multiple times", "cannot be used with"]) {
        return agent(
            "Counterfoil already sets it; use `access` and `model` in [agents.codex] of counterfoil.toml",
        );
    }
    if mentions(&["unexpected argument", "unrecognized subcommand", "invalid value"]) {
        return agent(
            "either a flag in `flags` of [agents.codex] in counterfoil.toml is unknown, or it is too old: update it with `npm install -g @openai/codex`",
        );
    }
    if mentions(&["loading config", "Model provider", "feature flag"]) {
        return agent(SETTINGS);
    }
    None
}

/// The message that our server did not start.
const NO_SERVER: &str = "required MCP servers failed to initialize";

/// How lines begin that say why Codex did not start.
const STARTS: [&str; 5] =
    ["error:", "Error", "Failed to read output schema", "Output schema", "Not logged in"];

/// A reason followed by advice, which may be empty.
fn reason_with_advice(message: &str, advice: &str) -> String {
    let message = reason(message);
    if advice.is_empty() { message } else { format!("{}; {advice}", message.trim_end_matches('.')) }
}

/// The body of a server's response that Codex passes on unchanged.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    error: Option<BodyError>,
    detail: Option<String>,
    status: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BodyError {
    #[serde(deserialize_with = "optional_text")]
    message: Option<String>,
    #[serde(rename = "type", deserialize_with = "optional_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    code: Option<String>,
    #[serde(deserialize_with = "optional_text")]
    param: Option<String>,
}

/// A string. Gateways may use other types, which are ignored so that the rest can be read.
fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

impl Body {
    fn parse(message: &str) -> Option<Self> {
        let body: Self = serde_json::from_str(message.trim()).ok()?;
        body.message().is_some().then_some(body)
    }

    fn message(&self) -> Option<&str> {
        let message = self.error.as_ref().and_then(|error| error.message.as_deref());
        message.or(self.detail.as_deref()).filter(|message| !message.trim().is_empty())
    }

    fn rejects_schema(&self) -> bool {
        self.error.as_ref().is_some_and(|error| {
            error.code.as_deref() == Some("invalid_json_schema")
                || error.param.as_deref().is_some_and(|param| param.starts_with("text.format"))
        })
    }

    fn is_limit(&self) -> bool {
        let limits = ["insufficient_quota", "usage_limit_reached", "rate_limit_exceeded"];
        self.error.as_ref().is_some_and(|error| {
            [&error.code, &error.kind]
                .into_iter()
                .flatten()
                .any(|name| limits.contains(&name.as_str()))
        })
    }
}

/// The time after `try again at`: `3:45 PM` for today, otherwise `Nov 18th, 2026 8:20 AM`. Returns
/// the end of that minute, so as not to be early.
fn local_time(message: &str, at: i64, zone: &TimeZone) -> Option<i64> {
    let (_, rest) = message.split_once("again at ")?;
    let end =
        [" AM", " PM"].into_iter().filter_map(|half| Some(rest.find(half)? + half.len())).min()?;
    let time_text = rest.get(..end).filter(|text| text.len() <= "Nov 18th, 2026 12:20 AM".len())?;
    let minute = if let Ok(time) = strtime::parse("%I:%M %p", time_text) {
        let today = Timestamp::from_millisecond(at).ok()?.to_zoned(zone.clone()).date();
        today.to_datetime(time.to_time().ok()?)
    } else {
        let (day, rest) = time_text.split_once(',')?;
        let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        strtime::parse("%b %d, %Y %I:%M %p", format!("{day},{rest}")).ok()?.to_datetime().ok()?
    };
    let end = minute.checked_add(Span::new().minutes(1)).ok()?;
    Some(end.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptOutcome::{Agent, Limit, Permission, Transport};

    /// 2026-11-15T16:00:00Z
    const NOW: i64 = 1_794_758_400_000;

    fn classify(message: &str) -> Failure {
        failure(message, NOW, &TimeZone::UTC)
    }

    #[test]
    fn messages_are_classified() {
        for (message, outcome) in [
            (
                "unexpected status 401 Unauthorized: mock 401, url: http://127.0.0.1:1/v1/responses",
                Permission,
            ),
            (
                "unexpected status 403 Forbidden: Country, region, or territory not supported",
                Permission,
            ),
            (
                "Access blocked by Cloudflare. This usually happens when connecting from a restricted region (status 403 Forbidden), url: x",
                Permission,
            ),
            (
                "Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.",
                Permission,
            ),
            (
                "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
                Permission,
            ),
            ("Missing environment variable: `GATEWAY_KEY`. Ask for one.", Permission),
            ("exceeded retry limit, last status: 429 Too Many Requests", Limit),
            ("Quota exceeded. Check your plan and billing details.", Limit),
            ("You’ve hit your usage limit. Try again later.", Limit),
            ("Your workspace is out of credits. Add credits to continue.", Limit),
            (
                "You hit your spend cap set in your workspace. Increase your spend cap to continue.",
                Limit,
            ),
            (r#"{"error":{"message":"no more","code":"insufficient_quota"}}"#, Limit),
            (
                "We’re currently experiencing high demand, which may cause temporary errors.",
                Transport,
            ),
            ("Selected model is at capacity. Please try a different model.", Transport),
            ("exceeded retry limit, last status: 503 Service Unavailable", Transport),
            ("unexpected status 529 <unknown status code>: overloaded, url: x", Transport),
            ("unexpected status 408 Request Timeout: Unknown error, url: x", Transport),
            ("unexpected status 502 Bad Gateway: <html>Bad gateway</html>, url: x", Transport),
            (
                "stream disconnected before completion: stream closed before response.completed",
                Transport,
            ),
            ("stream disconnected before completion: error sending request", Transport),
            ("Connection failed: error sending request", Transport),
            ("request timed out", Transport),
            (
                "stream disconnected before completion: Incomplete response returned, reason: content_filter",
                Agent,
            ),
            ("Codex ran out of room in the model's context window. Start a new thread.", Agent),
            (
                r#"{"error": {"message": "mock 400", "type": "mock_error", "code": "invalid_request_error"}}"#,
                Agent,
            ),
            (r#"{"error": {"message": "status 500 is not one of 1, 2", "code": 7}}"#, Agent),
            (r#"{"detail":"no"}"#, Agent),
            ("{}", Agent),
            ("", Agent),
        ] {
            assert_eq!(classify(message).outcome, outcome, "{message}");
            assert!(!classify(message).reason.is_empty());
        }
    }

    #[test]
    fn a_rejected_schema_is_distinguished_from_other_bad_requests() {
        let refused = r#"{"error":{"message":"In context=(), 'additionalProperties' is required","type":"invalid_request_error","param":"text.format.schema","code":"invalid_json_schema"}}"#;
        let failure = classify(refused);
        assert_eq!((failure.outcome, failure.schema_rejected), (Agent, true));
        assert_eq!(failure.reason, "In context=(), 'additionalProperties' is required");
        let wrapped = r#"{"type":"error","error":{"code":"invalid_json_schema","message":"no","param":null},"status":400}"#;
        assert!(classify(wrapped).schema_rejected);
        assert!(
            classify("Invalid schema for response_format 'codex_output_schema'").schema_rejected
        );
        assert!(!classify(r#"{"error":{"message":"bad image","param":"input"}}"#).schema_rejected);
    }

    #[test]
    fn advice_is_added() {
        let login = classify("unexpected status 401 Unauthorized: no").reason;
        assert!(login.ends_with("; log in with `codex login`, or set CODEX_API_KEY"), "{login}");
        let model =
            classify("The model `x` does not exist or you do not have access to it.").reason;
        assert!(
            model.contains("you do not have access to it; choose another with `model`"),
            "{model}"
        );
        let model = classify(
            r#"{"detail":"The 'x' model is not supported when using Codex with a ChatGPT account."}"#,
        );
        assert!(model.reason.contains("choose another with `model`"), "{model:?}");
        let key = classify("Missing environment variable: `GATEWAY_KEY`.").reason;
        assert!(key.contains("`GATEWAY_KEY`; set it, and name it in `pass`"), "{key}");
    }

    #[test]
    fn a_limit_says_when_it_is_lifted() {
        let minutes =
            |message: &str| classify(message).reset_at.map(|reset| (reset - NOW) / 60_000);
        for (message, expected) in [
            ("You’ve hit your usage limit. Try again at 4:20 PM.", Some(21)),
            (
                "You’ve hit your usage limit for X. Switch to another model now, or try again at Nov 16th, 2026 12:46 AM.",
                Some(8 * 60 + 47),
            ),
            (
                "You’ve hit your usage limit. A deal. or try again at Dec 2nd, 2026 4:00 PM.",
                Some(17 * 24 * 60 + 1),
            ),
            ("rate limit exceeded: Please try again in 11.054s.", Some(0)),
            ("You’ve hit your usage limit. Try again later.", None),
            ("You’ve hit your usage limit. Try again at 25:99 PM.", None),
            ("You’ve hit your usage limit. Try again at the moon, 7 PM", None),
            ("You’ve hit your usage limit. Try again at é PM AM", None),
        ] {
            assert_eq!(minutes(message), expected, "{message}");
        }
    }

    #[test]
    fn times_of_day_are_those_of_the_machine() {
        let zone = TimeZone::fixed(jiff::tz::offset(-8));
        // There it is 8 in the morning.
        let reset = local_time("Try again at 9:00 AM.", NOW, &zone);
        assert_eq!(reset, Some(NOW + 61 * 60_000));
    }

    #[test]
    fn startup_failures_have_advice() {
        let found = |errors: &str| {
            failure_to_start(errors).map(|failure| (failure.outcome, failure.reason))
        };
        let cases = [
            ("error: unexpected argument '--nope' found\n\n  tip: …", Agent, "it is too old"),
            (
                "error: the argument '--sandbox <MODE>' cannot be used multiple times",
                Agent,
                "use `access`",
            ),
            (
                "Error: thread/resume: thread/resume failed: no rollout found for thread id 0 (code -32600)",
                Agent,
                "only a new conversation",
            ),
            (
                "WARNING: proceeding\nError finding codex home: CODEX_HOME points to \"/x\", but that path does not exist",
                Agent,
                "create that folder",
            ),
            (
                "Error loading config.toml: invalid type: integer `7`",
                Agent,
                "correct its config.toml",
            ),
            ("Error: Model provider `nope` not found", Agent, "correct its config.toml"),
            (
                "2026-11-15T16:46:25Z ERROR codex_core::session: Failed to create session: required MCP servers failed to initialize: counterfoil: timed out",
                Agent,
                "counterfoil: timed out; to run without",
            ),
            (
                "Error: API key login is required, but ChatGPT is currently being used.",
                Permission,
                "codex login",
            ),
        ];
        for (errors, outcome, advice) in cases {
            let (kind, reason) = found(errors).unwrap();
            assert_eq!(kind, outcome, "{errors}");
            assert!(reason.contains(advice), "{reason}");
        }
        let schema =
            failure_to_start("Failed to read output schema file /x: No such file or directory")
                .unwrap();
        assert!(schema.schema_rejected);
        for errors in [
            "",
            "Reading prompt from stdin...",
            "thread 'main' panicked: Error: loading config",
            "Error: odd",
        ] {
            assert_eq!(found(errors), None, "{errors}");
        }
    }
}
