//! Exit codes. They are a public interface; this is the only place that defines them.

use counterfoil_engine::{RunReport, journal};
use counterfoil_flow::Cause;
use counterfoil_workspace::NoRoom;
use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success: accepted, additive, valid or done.
    Success,
    /// A negative result: rejected, absent, breaking or invalid; or a run that failed because of a
    /// contract.
    Failure,
    /// Invalid usage: an unknown contract, an unreadable file or a bad schema.
    Usage,
    /// A claim failed: a run failed because of it, or a job requires it.
    Claim,
    /// A batch was empty, or had a line that was not understood.
    Malformed,
    /// A run is waiting for an answer.
    Waiting,
    /// A run failed because of an agent: its program, transport, a rate limit or a permission.
    Agent,
    /// A run reached a limit on attempts, or its budget.
    Exhausted,
    /// A run is blocked.
    Blocked,
    /// The state folder was destroyed, damaged or altered.
    State,
    /// There is no room: the disk is full, or a file reached the limit on the size of files. Nothing
    /// is lost, and a run can be resumed.
    NoRoom,
    /// A run timed out.
    Timeout,
    /// A run was cancelled.
    Cancelled,
    /// A run ended in a state that names its own exit code, such as 8 for a review that requests
    /// changes.
    Own(u8),
}

impl Exit {
    /// The exit code of a run: that of its end state, or else by its outcome and cause.
    pub(crate) fn from_run(report: &RunReport) -> Self {
        if let Some(code) = report.exit {
            return Self::Own(code);
        }
        match (report.outcome.as_str(), report.cause) {
            ("done", _) => Self::Success,
            ("waiting", _) => Self::Waiting,
            ("cancelled" | "interrupted", _) => Self::Cancelled,
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

    /// The exit code of a command that failed with an error.
    pub(crate) fn from_error(error: &anyhow::Error) -> Self {
        let is_state = |error: &journal::Error| {
            use journal::Error as Problem;
            matches!(
                error,
                Problem::Gone { .. }
                    | Problem::Link { .. }
                    | Problem::Lost { .. }
                    | Problem::Damaged { .. }
                    | Problem::Destroyed { .. }
                    | Problem::Broken { .. }
                    | Problem::Bundle { .. }
                    | Problem::Key { .. }
                    | Problem::Replaced { .. }
                    | Problem::Behind { .. }
                    | Problem::Altered { .. }
            )
        };
        let lost = error.chain().any(|cause| match cause.downcast_ref() {
            Some(counterfoil_engine::Error::Journal(error)) => is_state(error),
            Some(_) => false,
            None => cause.downcast_ref().is_some_and(is_state),
        });
        let is_full = |error: &journal::Error| matches!(error, journal::Error::Full { .. });
        let full = error.chain().any(|cause| {
            let journal = match cause.downcast_ref() {
                Some(counterfoil_engine::Error::Journal(error)) => Some(error),
                Some(_) => None,
                None => cause.downcast_ref(),
            };
            journal.is_some_and(is_full)
                || cause.downcast_ref().is_some_and(|error| NoRoom::of(error).is_some())
        });
        match (lost, full) {
            (true, _) => Self::State,
            (_, true) => Self::NoRoom,
            _ => Self::Usage,
        }
    }

    /// The number of the exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Claim | Self::Malformed => 3,
            Self::Waiting => 4,
            Self::Agent => 5,
            Self::Exhausted => 6,
            Self::Blocked => 7,
            Self::State => 9,
            Self::Own(code) => code,
            Self::NoRoom => 122,
            Self::Timeout => 124,
            Self::Cancelled => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<bool> for Exit {
    fn from(success: bool) -> Self {
        if success { Self::Success } else { Self::Failure }
    }
}
