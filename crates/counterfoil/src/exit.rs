//! Exit codes: a public table, fed from here alone.

use counterfoil_engine::Report;
use counterfoil_flow::Cause;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked: accepted, additive, valid, done.
    Good = 0,
    /// The answer is no: rejected, absent, breaking, invalid; a run that failed by its contract.
    Bad = 1,
    /// The question was wrong: unknown contract, unreadable file, bad schema.
    Usage = 2,
    /// A claim does not hold: a run failed by it, or a job asked for it.
    Claim = 3,
    /// A run waits for an answer.
    Waiting = 4,
    /// A run failed by an agent: itself, its transport, a limit, a permission.
    Agent = 5,
    /// A run tried as often as it may, or spent what it may.
    Exhausted = 6,
    /// A run is blocked.
    Blocked = 7,
    /// A run failed by taking too long.
    Timeout = 124,
    /// A run was cancelled.
    Cancelled = 130,
}

impl Exit {
    /// The code of a run, from its outcome and cause.
    pub(crate) fn of(report: &Report) -> Self {
        match (report.outcome.as_str(), report.cause) {
            ("done", _) => Self::Good,
            ("waiting", _) => Self::Waiting,
            ("cancelled", _) => Self::Cancelled,
            ("blocked", _) => Self::Blocked,
            ("exhausted" | "budget", _) | (_, Some(Cause::NoProgress)) => Self::Exhausted,
            (_, Some(Cause::Claim)) => Self::Claim,
            (_, Some(Cause::Agent | Cause::Transport | Cause::Limit | Cause::Permission)) => {
                Self::Agent
            }
            (_, Some(Cause::Timeout)) => Self::Timeout,
            (_, Some(Cause::Contract) | None) => Self::Bad,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<bool> for Exit {
    fn from(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}
