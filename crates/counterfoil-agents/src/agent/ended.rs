//! How the end of a program is told, whoever it plays.

use super::How;
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::{Cause, Timeouts};
use std::time::Duration;

/// What a clock or a stop made of it; none if the program came to an end of its own.
pub(super) fn by_us(who: &str, cause: Cause, clocks: Timeouts) -> Option<How> {
    let late = |why: String| Some(How::failed(AttemptOutcome::Timeout, why));
    match cause {
        Cause::Finished | Cause::Finishing | Cause::SinkStopped => None,
        Cause::Startup => late(format!(
            "{who} wrote nothing in the first {}; if it needs longer, raise `startup`",
            seconds(clocks.startup)
        )),
        Cause::Idle => late(format!(
            "{who} fell silent for {}; if it needs longer, raise `idle`",
            seconds(clocks.idle)
        )),
        Cause::Total => late(format!(
            "{who} took too long, more than the {} it had; if it needs longer, raise `timeout`",
            seconds(clocks.total)
        )),
        Cause::Stopped => Some(How::failed(AttemptOutcome::Cancelled, "stopped")),
    }
}

/// A bound as people read it.
fn seconds(bound: Option<Duration>) -> String {
    format!("{} s", (bound.unwrap_or_default().as_secs_f64() * 10.0).round() / 10.0)
}

/// The end of a text, cut at a character.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut at = text.len() - most;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    &text[at..]
}

/// The same as words behind a colon, if there are any.
pub(super) fn said(errors: &[u8], most: usize) -> String {
    let said = String::from_utf8_lossy(errors);
    let said = tail(said.trim(), most);
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
