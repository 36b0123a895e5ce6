//! What a failure of Claude Code means, and what can be done about it.

use super::INSTALL;
use super::events::{Last, RateInfo};
use crate::agent::adapter::common::{Refusal, advised, status_in};
use crate::agent::adapter::{End, Failure};
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::Exit;

/// How one logs in.
const LOGIN: &str = "log in with `claude` and `/login`, or set ANTHROPIC_API_KEY";

/// What it says of a flag that it does not know.
const UNKNOWN_OPTION: &str = "unknown option";

/// A failure that its last event tells of. `reset_at` is when a limit is lifted, if its events
/// before tell that.
pub(super) fn refusal(last: &Last, said: &str, end: &End<'_>, reset_at: Option<i64>) -> Failure {
    let status = last.api_error_status.get().copied().or_else(|| status_in(said));
    let mut failure = Refusal { status, said, at: end.at, login: LOGIN }.failure();
    if failure.outcome == AttemptOutcome::Agent && !failure.schema {
        match last.api_error.get().map(String::as_str).and_then(outcome_of) {
            Some(AttemptOutcome::Permission) => {
                failure.outcome = AttemptOutcome::Permission;
                failure.reason = advised(&failure.reason, LOGIN);
            }
            Some(outcome) => failure.outcome = outcome,
            None if status == Some(404) => {
                failure.reason = advised(&failure.reason, "name another with `model`");
            }
            None => {
                if let Some(advice) = advice(said) {
                    failure.reason = advised(&failure.reason, &advice);
                }
            }
        }
    }
    if failure.outcome == AttemptOutcome::Limit {
        let told = last.api_error_params.get().and_then(|params| params.rate_limit_info.get());
        failure.reset_at = told.and_then(rejected_until).or(failure.reset_at).or(reset_at);
    }
    failure
}

/// What its own names of failures mean, where there is no status.
fn outcome_of(name: &str) -> Option<AttemptOutcome> {
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

/// What it says on standard error alone, before it starts.
pub(super) fn unstarted(end: &End<'_>) -> Option<Failure> {
    let said = end.errors.trim();
    if !matches!(end.exit, Exit::Code(1..=127)) || said.is_empty() {
        return None;
    }
    let mut failure = Refusal { status: None, said, at: end.at, login: LOGIN }.failure();
    if failure.outcome == AttemptOutcome::Agent {
        failure.reason = advised(&failure.reason, &advice(said)?);
        failure.schema = said.contains("--json-schema") && !said.contains(UNKNOWN_OPTION);
    }
    Some(failure)
}

/// What can be done about a failure, by its words.
fn advice(said: &str) -> Option<String> {
    let says = |words: &str| said.contains(words);
    let advice = if says(UNKNOWN_OPTION) {
        return Some(format!("update it with `{INSTALL}`, or take the flag out of `flags`"));
    } else if says("No conversation found") {
        "its conversations are in the folder that CLAUDE_CONFIG_DIR names, or in ~/.claude, and must be kept there"
    } else if says("--json-schema") {
        "without \"native\" in `channels` it is not given the schema"
    } else if says("--dangerously-skip-permissions") {
        "take the flag out of `flags`: `access` says what it may do"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

/// When the limit of an account that is used up is lifted, in milliseconds.
pub(super) fn rejected_until(info: &RateInfo) -> Option<i64> {
    info.status.get().filter(|status| *status == "rejected")?;
    info.resets_at.get()?.checked_mul(1000)
}
