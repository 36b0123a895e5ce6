//! Exit codes. They are a public interface; this is the only place that defines them.

use counterfoil_engine::RunReport;
use counterfoil_flow::Cause;
use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success: accepted, additive, valid or done.
    Success = 0,
    /// A negative result: rejected, absent, breaking or invalid; or a run that failed because of a
    /// contract.
    Failure = 1,
    /// Invalid usage: an unknown contract, an unreadable file or a bad schema.
    Usage = 2,
    /// A claim failed: a run failed because of it, or a job requires it.
    Claim = 3,
    /// A run is waiting for an answer.
    Waiting = 4,
    /// A run failed because of an agent: its program, transport, a rate limit or a permission.
    Agent = 5,
    /// A run reached a limit on attempts, or its budget.
    Exhausted = 6,
    /// A run is blocked.
    Blocked = 7,
    /// A run timed out.
    Timeout = 124,
    /// A run was cancelled.
    Cancelled = 130,
}

impl Exit {
    /// The exit code of a run, by its outcome and cause.
    pub(crate) fn from_run(report: &RunReport) -> Self {
        match (report.outcome.as_str(), report.cause) {
            ("done", _) => Self::Success,
            ("waiting", _) => Self::Waiting,
            ("cancelled", _) => Self::Cancelled,
            ("blocked", _) => Self::Blocked,
            ("exhausted" | "budget", _) | (_, Some(Cause::NoProgress)) => Self::Exhausted,
            (_, Some(Cause::Claim)) => Self::Claim,
            (_, Some(Cause::Agent | Cause::Transport | Cause::Limit | Cause::Permission)) => {
                Self::Agent
            }
            (_, Some(Cause::Timeout)) => Self::Timeout,
            (_, Some(Cause::Contract) | None) => Self::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<bool> for Exit {
    fn from(success: bool) -> Self {
        if success { Self::Success } else { Self::Failure }
    }
}
