//! Small pieces of text that several renderers share: numbers, times, values and safe strings.

pub(crate) use crate::shell::quote as shell_quote;
pub(crate) use counterfoil_engine::event_text::{
    abbreviate, one_line, truncate_json, usage_suffix,
};
pub(crate) use counterfoil_flow::amount::duration;
use std::time::Duration;

/// A time in UTC, to the minute.
pub(super) fn timestamp(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
        .unwrap_or_default()
}

/// How long something takes that is not over. From the first second on it is in whole seconds, so that
/// a status line stays readable.
pub(crate) fn time_so_far(time: Duration) -> String {
    let ms = match time.as_secs() {
        0 => u64::from(time.subsec_millis()),
        seconds => seconds.saturating_mul(1000),
    };
    duration(ms)
}
