//! Parsing of timeouts as users write them.

use std::time::Duration;

/// A text that is not a positive duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}; write it as in \"90s\" or \"10m\"")]
pub struct InvalidTimeout {
    /// The rejected text.
    pub text: String,
}

/// Parses a timeout such as `90s` or `10m`.
///
/// # Errors
///
/// The text is not a duration, or the duration is zero or negative.
pub fn parse_timeout(text: &str) -> Result<Duration, InvalidTimeout> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    parsed
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| InvalidTimeout { text: text.to_owned() })
}
