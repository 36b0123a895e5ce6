//! Exit codes: a public table, fed from here alone.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked: accepted, additive, valid.
    Good = 0,
    /// The answer is no: rejected, absent, breaking, invalid.
    Bad = 1,
    /// The question was wrong: unknown contract, unreadable file, bad schema.
    Usage = 2,
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
