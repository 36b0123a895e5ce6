//! What Codex's words for a failure mean. It tells no status but in prose, so only what it is known
//! to say is taken for more than a failure of the agent.

use crate::agent::adapter::Failure;
use crate::agent::adapter::common::{Refusal, cut, reason, status_in};
use counterfoil_flow::AttemptOutcome;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// How one logs in. A key in `OPENAI_API_KEY` alone does not do.
const LOGIN: &str = "log in with `codex login`, or set CODEX_API_KEY";
/// Where a model is chosen.
const MODEL: &str = "choose another with `model` in [agents.codex] of counterfoil.toml";
/// Where settings come from that it does not take.
const SETTINGS: &str = "mend its config.toml, or `flags` in [agents.codex] of counterfoil.toml";

/// The zone of the times that it tells, which is that of the machine.
pub(super) fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// What a failed turn's message means. `at` is now, in milliseconds since 1970.
pub(super) fn failure(said: &str, at: i64, zone: &TimeZone) -> Failure {
    let body = Body::read(said);
    let words = body.as_ref().and_then(Body::words).unwrap_or(said);
    let small = cut(words, 4096).to_lowercase();
    let says = |cues: &[&str]| cues.iter().any(|cue| small.contains(cue));
    let agent = |way: &str| Failure::new(AttemptOutcome::Agent, with(words, way));
    let known = |status| Refusal { status: Some(status), said: words, at, login: LOGIN }.failure();

    let mut failure = if body.as_ref().is_some_and(Body::refuses_schema)
        || says(&["codex_output_schema"])
    {
        Failure { schema: true, ..agent("") }
    } else if says(&["missing environment variable"]) {
        let way = "set it, and name it in `pass` of [agents.codex] in counterfoil.toml";
        Failure::new(AttemptOutcome::Permission, with(words, way))
    } else if says(&[
        "does not exist or you do not have access",
        "model is not supported",
        "model_not_found",
    ]) {
        agent(MODEL)
    } else if says(&["context window", "incomplete response returned"]) {
        agent("")
    } else if says(&["with your chatgpt plan"]) {
        Failure::new(AttemptOutcome::Permission, reason(words))
    } else if says(&["sign in again", "could not be refreshed", "login is required"]) {
        known(401)
    } else if says(&["spend cap"]) || body.as_ref().is_some_and(Body::is_limit) {
        known(429)
    } else if says(&["at capacity", "connection failed", "error while reading the server response"])
    {
        known(503)
    } else {
        // A body that is passed on as it came is that of a request that was refused as a bad one.
        let status =
            body.as_ref().map_or_else(|| status_in(words), |body| body.status.or(Some(400)));
        Refusal { status, said: words, at, login: LOGIN }.failure()
    };
    if failure.outcome == AttemptOutcome::Limit && failure.reset_at.is_none() {
        failure.reset_at = local_time(words, at, zone);
    }
    failure
}

/// What it says on standard error where it ends before its first event: which flag, file or
/// conversation it does not take.
pub(super) fn failure_to_start(errors: &str) -> Option<Failure> {
    if let Some((_, why)) = errors.split_once(NO_SERVER) {
        let line = format!("{NO_SERVER}{}", why.lines().next().unwrap_or_default());
        let way = "to do without the tool that takes results, set `channels = [\"native\"]` in [agents.codex] of counterfoil.toml";
        return Some(Failure::new(AttemptOutcome::Agent, with(&line, way)));
    }
    let line = errors
        .lines()
        .map(str::trim)
        .find(|line| STARTS.iter().any(|start| line.starts_with(start)))?;
    let says = |cues: &[&str]| cues.iter().any(|cue| line.contains(cue));
    let agent = |way: &str| Some(Failure::new(AttemptOutcome::Agent, with(line, way)));
    if says(&["output schema"]) {
        return agent("").map(|failure| Failure { schema: true, ..failure });
    }
    if says(&["login is required", "Not logged in"]) {
        return Some(Failure::new(AttemptOutcome::Permission, with(line, LOGIN)));
    }
    if says(&["no rollout found", "no thread with id"]) {
        return agent(
            "the conversation is not among its files any more, so only a new one can go on",
        );
    }
    if says(&["codex home"]) {
        return agent("create that folder, or unset CODEX_HOME");
    }
    if says(&["cannot be used multiple times", "cannot be used with"]) {
        return agent(
            "Counterfoil sets it already: use `access` and `model` in [agents.codex] of counterfoil.toml",
        );
    }
    if says(&["unexpected argument", "unrecognized subcommand", "invalid value"]) {
        return agent(
            "either `flags` in [agents.codex] of counterfoil.toml has one that it does not know, or it is too old: update it with `npm install -g @openai/codex`",
        );
    }
    if says(&["loading config", "Model provider", "feature flag"]) {
        return agent(SETTINGS);
    }
    None
}

/// What stands in the line that says that our server did not come up.
const NO_SERVER: &str = "required MCP servers failed to initialize";

/// How the other lines begin that say why it did not start.
const STARTS: [&str; 5] =
    ["error:", "Error", "Failed to read output schema", "Output schema", "Not logged in"];

/// Words, and a way out.
fn with(words: &str, way: &str) -> String {
    let words = reason(words);
    if way.is_empty() { words } else { format!("{}; {way}", words.trim_end_matches('.')) }
}

/// An answer of the server's that it passes on as it came.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    error: Option<Refused>,
    detail: Option<String>,
    status: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    #[serde(deserialize_with = "text")]
    message: Option<String>,
    #[serde(rename = "type", deserialize_with = "text")]
    kind: Option<String>,
    #[serde(deserialize_with = "text")]
    code: Option<String>,
    #[serde(deserialize_with = "text")]
    param: Option<String>,
}

/// A text. What a gateway puts in its place is none, and keeps nobody from reading the rest.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

impl Body {
    fn read(said: &str) -> Option<Self> {
        let body: Self = serde_json::from_str(said.trim()).ok()?;
        body.words().is_some().then_some(body)
    }

    fn words(&self) -> Option<&str> {
        let message = self.error.as_ref().and_then(|error| error.message.as_deref());
        message.or(self.detail.as_deref()).filter(|words| !words.trim().is_empty())
    }

    fn refuses_schema(&self) -> bool {
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

/// The time behind `try again at`, which it tells as people do: `3:45 PM` for today, otherwise `Nov
/// 18th, 2026 8:20 AM`. The end of that minute, so as not to be early.
fn local_time(said: &str, at: i64, zone: &TimeZone) -> Option<i64> {
    let (_, behind) = said.split_once("again at ")?;
    let end = [" AM", " PM"]
        .into_iter()
        .filter_map(|half| Some(behind.find(half)? + half.len()))
        .min()?;
    let told = behind.get(..end).filter(|told| told.len() <= "Nov 18th, 2026 12:20 AM".len())?;
    let minute = if let Ok(time) = strtime::parse("%I:%M %p", told) {
        let today = Timestamp::from_millisecond(at).ok()?.to_zoned(zone.clone()).date();
        today.to_datetime(time.to_time().ok()?)
    } else {
        let (day, rest) = told.split_once(',')?;
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

    fn of(said: &str) -> Failure {
        failure(said, NOW, &TimeZone::UTC)
    }

    #[test]
    fn its_words_say_what_kind_of_failure_it_is() {
        for (said, outcome) in [
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
            assert_eq!(of(said).outcome, outcome, "{said}");
            assert!(!of(said).reason.is_empty());
        }
    }

    #[test]
    fn a_schema_that_was_refused_is_told_from_other_bad_requests() {
        let refused = r#"{"error":{"message":"In context=(), 'additionalProperties' is required","type":"invalid_request_error","param":"text.format.schema","code":"invalid_json_schema"}}"#;
        let told = of(refused);
        assert_eq!((told.outcome, told.schema), (Agent, true));
        assert_eq!(told.reason, "In context=(), 'additionalProperties' is required");
        let wrapped = r#"{"type":"error","error":{"code":"invalid_json_schema","message":"no","param":null},"status":400}"#;
        assert!(of(wrapped).schema);
        assert!(of("Invalid schema for response_format 'codex_output_schema'").schema);
        assert!(!of(r#"{"error":{"message":"bad image","param":"input"}}"#).schema);
    }

    #[test]
    fn the_way_out_is_said() {
        let login = of("unexpected status 401 Unauthorized: no").reason;
        assert!(login.ends_with("; log in with `codex login`, or set CODEX_API_KEY"), "{login}");
        let model = of("The model `x` does not exist or you do not have access to it.").reason;
        assert!(
            model.contains("you do not have access to it; choose another with `model`"),
            "{model}"
        );
        let model = of(
            r#"{"detail":"The 'x' model is not supported when using Codex with a ChatGPT account."}"#,
        );
        assert!(model.reason.contains("choose another with `model`"), "{model:?}");
        let key = of("Missing environment variable: `GATEWAY_KEY`.").reason;
        assert!(key.contains("`GATEWAY_KEY`; set it, and name it in `pass`"), "{key}");
    }

    #[test]
    fn a_limit_says_when_it_is_lifted() {
        let minutes = |said: &str| of(said).reset_at.map(|reset| (reset - NOW) / 60_000);
        for (said, expected) in [
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
            assert_eq!(minutes(said), expected, "{said}");
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
    fn what_keeps_it_from_starting_is_said_with_a_way_out() {
        let told = |errors: &str| {
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
                "only a new one",
            ),
            (
                "WARNING: proceeding\nError finding codex home: CODEX_HOME points to \"/x\", but that path does not exist",
                Agent,
                "create that folder",
            ),
            ("Error loading config.toml: invalid type: integer `7`", Agent, "mend its config.toml"),
            ("Error: Model provider `nope` not found", Agent, "mend its config.toml"),
            (
                "2026-11-15T16:46:25Z ERROR codex_core::session: Failed to create session: required MCP servers failed to initialize: counterfoil: timed out",
                Agent,
                "counterfoil: timed out; to do without",
            ),
            (
                "Error: API key login is required, but ChatGPT is currently being used.",
                Permission,
                "codex login",
            ),
        ];
        for (errors, outcome, way) in cases {
            let (kind, reason) = told(errors).unwrap();
            assert_eq!(kind, outcome, "{errors}");
            assert!(reason.contains(way), "{reason}");
        }
        let schema =
            failure_to_start("Failed to read output schema file /x: No such file or directory")
                .unwrap();
        assert!(schema.schema);
        for errors in [
            "",
            "Reading prompt from stdin...",
            "thread 'main' panicked: Error: loading config",
            "Error: odd",
        ] {
            assert_eq!(told(errors), None, "{errors}");
        }
    }
}
