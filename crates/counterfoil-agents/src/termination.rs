//! How the end of an agent's process is reported.

use crate::agent::ReplyStatus;
use counterfoil_contract::text::duration;
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::{Cause, Timeouts};
use std::time::Duration;

/// The status of a reply whose process was ended by a timeout or a stop request. None if the
/// process ended by itself.
pub(crate) fn status_if_ended_early(
    program: &str,
    cause: Cause,
    clocks: Timeouts,
) -> Option<ReplyStatus> {
    let timeout = |reason: String| Some(ReplyStatus::failed(AttemptOutcome::Timeout, reason));
    match cause {
        Cause::Finished | Cause::Finishing | Cause::SinkStopped => None,
        Cause::Startup => timeout(format!(
            "{program} wrote nothing in the first {}; if it needs longer, raise `startup`",
            shown(clocks.startup)
        )),
        Cause::Idle => timeout(format!(
            "{program} fell silent for {}; if it needs longer, raise `idle`",
            shown(clocks.idle)
        )),
        Cause::Total => timeout(format!(
            "{program} took too long, more than its limit of {}; if it needs longer, raise `timeout`",
            shown(clocks.total)
        )),
        Cause::Stopped => Some(ReplyStatus::failed(AttemptOutcome::Cancelled, "stopped")),
    }
}

/// A time limit as text, to a tenth of a second: the time of an attempt begins a little before its
/// process, so a millisecond less is left than was set.
fn shown(limit: Option<Duration>) -> String {
    let ms = u64::try_from(limit.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
    let is_long = ms >= 500;
    duration(Duration::from_millis(if is_long { ms.saturating_add(50) / 100 * 100 } else { ms }))
}

/// The last `max_bytes` bytes of a text, cut at a character boundary.
pub(crate) fn tail(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let mut start = text.len() - max_bytes;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The end of standard error with a colon before it; empty if there is none.
pub(crate) fn stderr_suffix(errors: &[u8], max_bytes: usize) -> String {
    let errors = String::from_utf8_lossy(errors);
    let end = tail(errors.trim(), max_bytes);
    if end.is_empty() { String::new() } else { format!(": {end}") }
}
