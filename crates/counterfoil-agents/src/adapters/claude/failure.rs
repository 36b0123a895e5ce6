//! Classifies the failures of Claude Code and adds advice.

use super::INSTALL;
use super::events::{RateLimitInfo, ResultEvent};
use crate::adapters::common::{ApiError, find_http_status, with_advice};
use crate::adapters::{Failure, StreamEnd};
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::Exit;

/// How to log in.
const LOGIN: &str = "log in with `claude` and `/login`, or set ANTHROPIC_API_KEY";

/// The message for an unknown flag.
const UNKNOWN_OPTION: &str = "unknown option";

/// The failure that the final event reports. `reset_at` is the reset time from earlier events.
pub(super) fn from_result(
    last: &ResultEvent,
    message: &str,
    end: &StreamEnd<'_>,
    reset_at: Option<i64>,
) -> Failure {
    let status = last.api_error_status.get().copied().or_else(|| find_http_status(message));
    let mut failure = ApiError { status, message, at: end.at, login: LOGIN }.to_failure();
    if failure.outcome == AttemptOutcome::Agent && !failure.schema_rejected {
        match last.api_error.get().map(String::as_str).and_then(outcome_for) {
            Some(AttemptOutcome::Permission) => {
                failure.outcome = AttemptOutcome::Permission;
                failure.reason = with_advice(&failure.reason, LOGIN);
            }
            Some(outcome) => failure.outcome = outcome,
            None if status == Some(404) => {
                failure.reason = with_advice(&failure.reason, "name another with `model`");
            }
            None => {
                if let Some(advice) = advice(message) {
                    failure.reason = with_advice(&failure.reason, &advice);
                }
            }
        }
    }
    if failure.outcome == AttemptOutcome::Limit {
        let info = last.api_error_params.get().and_then(|params| params.rate_limit_info.get());
        failure.reset_at = info.and_then(rejected_until).or(failure.reset_at).or(reset_at);
    }
    failure
}

/// The outcome for the program's own names of failures, where there is no HTTP status.
fn outcome_for(name: &str) -> Option<AttemptOutcome> {
    match name {
        "connection_failed"
        | "no_response"
        | "stream_idle_timeout"
        | "computer_slept"
        | "gateway_content_type" => Some(AttemptOutcome::Transport),
        "usage_limit_reached"
        | "model_requires_usage_credits"
        | "long_context_credits_required" => Some(AttemptOutcome::Limit),
        "stored_login_refused"
        | "provider_credentials"
        | "gateway_signin_required"
        | "gateway_session_expired"
        | "api_key_auth_disabled"
        | "org_disabled_credential"
        | "invalid_credential_header" => Some(AttemptOutcome::Permission),
        _ => None,
    }
}

/// A failure before the first event, which is reported only on standard error.
pub(super) fn from_stderr(end: &StreamEnd<'_>) -> Option<Failure> {
    let message = end.errors.trim();
    if !matches!(end.exit, Exit::Code(1..=127)) || message.is_empty() {
        return None;
    }
    let mut failure = ApiError { status: None, message, at: end.at, login: LOGIN }.to_failure();
    if failure.outcome == AttemptOutcome::Agent {
        failure.reason = with_advice(&failure.reason, &advice(message)?);
        failure.schema_rejected =
            message.contains("--json-schema") && !message.contains(UNKNOWN_OPTION);
    }
    Some(failure)
}

/// Advice for a known message.
fn advice(message: &str) -> Option<String> {
    let mentions = |cue: &str| message.contains(cue);
    let advice = if mentions(UNKNOWN_OPTION) {
        return Some(format!("update it with `{INSTALL}`, or remove the flag from `flags`"));
    } else if mentions("No conversation found") {
        "its conversations are in the folder that CLAUDE_CONFIG_DIR names, or in ~/.claude, and must be kept there"
    } else if mentions("--json-schema") {
        "to run it without the schema, set `channels = [\"submit\"]`"
    } else if mentions("--dangerously-skip-permissions") {
        "remove the flag from `flags`: `access` controls permissions"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

/// When a reached limit of the account is lifted, in milliseconds since 1970.
pub(super) fn rejected_until(info: &RateLimitInfo) -> Option<i64> {
    info.status.get().filter(|status| *status == "rejected")?;
    info.resets_at.get()?.checked_mul(1000)
}
