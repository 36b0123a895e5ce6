//! Errors of globs in `writes` and `protect`.

use counterfoil_contract::text::escape_control;

/// The maximum length of a glob in bytes.
pub(super) const MAX_GLOB: usize = 1_000;

/// A glob in `writes` or `protect` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A list has too many globs.
    #[error("`{list}` has more than {max} globs: name folders instead of files")]
    TooMany {
        /// The name of the list.
        list: String,
        /// The maximum number of globs.
        max: usize,
    },
    /// A glob is not valid.
    #[error("the glob `{}` in `{list}` {problem}", escape_control(&truncate(glob)))]
    Invalid {
        /// The name of the list.
        list: String,
        /// The glob as it is written.
        glob: String,
        /// What is wrong with the glob, and what to write instead.
        problem: GlobProblem,
    },
    /// The globs are valid one by one and cannot be compiled together.
    #[error("the globs of `{list}` cannot be compiled: {message}")]
    Compile {
        /// The name of the list.
        list: String,
        /// The message of the glob compiler.
        message: String,
    },
}

/// What is wrong with a glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobProblem {
    /// It exceeds the maximum length.
    #[error("is longer than {MAX_GLOB} bytes")]
    TooLong,
    /// It is empty.
    #[error("is empty: write `**` for everything")]
    Empty,
    /// It begins with `!` where exclusions are not supported.
    #[error("begins with `!`, which `writes` does not support: list excluded paths in `protect`")]
    Exclusion,
    /// It is absolute.
    #[error("is absolute: write it relative to the folder of the run")]
    Absolute,
    /// It contains `..`.
    #[error("has `..`: only paths below the folder of the run can be named")]
    ParentFolder,
    /// Its syntax is not valid.
    #[error("is not valid: {0}")]
    Syntax(String),
}

fn truncate(glob: &str) -> String {
    if glob.chars().count() > 80 {
        glob.chars().take(79).chain(['…']).collect()
    } else {
        glob.to_owned()
    }
}
