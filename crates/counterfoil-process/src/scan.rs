//! The result of one scan for the processes that belong to a child.

/// What one scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanResult {
    /// How many processes were alive.
    pub(super) alive: usize,
    /// Whether the result is reliable: no process was started or ended during the scan in a way
    /// that could hide another one.
    pub(super) settled: bool,
}
