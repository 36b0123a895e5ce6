//! The trace context of an attempt (W3C Trace Context), by which what an agent reports to a tracing
//! system belongs to the run that started it.
//!
//! Ids are derived from the names of the run and the attempt, so that the engine and the sender of
//! spans have the same ones.

use crate::environment::AgentEnvironment;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fmt;

/// The variable with the context of the process that started this one.
pub const TRACE_PARENT: &str = "TRACEPARENT";
/// The variable with what tracing systems add to the context.
const TRACE_STATE: &str = "TRACESTATE";
/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// A span of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: [u8; 16],
    /// The span within it.
    pub span: [u8; 8],
    /// The flags of the trace.
    pub flags: u8,
}

impl TraceContext {
    /// Reads the value of a `traceparent` header. A value that is not valid is none: the standard
    /// asks to begin a new trace then.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut next = |digits: usize| {
            let part = parts.next()?;
            let is_hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            (part.len() == digits && is_hex).then_some(part)
        };
        let (version, trace, span, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        // Later versions may have more parts.
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let mut context = Self { trace: [0; 16], span: [0; 8], flags: 0 };
        hex::decode_to_slice(trace, &mut context.trace).ok()?;
        hex::decode_to_slice(span, &mut context.span).ok()?;
        context.flags = u8::from_str_radix(flags, 16).ok()?;
        (context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }

    /// The span of a run. It belongs to the trace of `parent`, or to a trace of its own.
    pub fn of_run(parent: Option<Self>, run: &str) -> Self {
        let trace = Self { trace: first(&digest(&["trace", run])), span: [0; 8], flags: SAMPLED };
        parent.unwrap_or(trace).child(run)
    }

    /// The span of an attempt, within that of its run.
    #[must_use]
    pub fn of_attempt(self, attempt: &str) -> Self {
        self.child(attempt)
    }

    fn child(self, name: &str) -> Self {
        let span = first(&digest(&["span", &hex::encode(self.span), name]));
        Self { span, ..self }
    }
}

/// The value of a `traceparent` header.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (hex::encode(self.trace), hex::encode(self.span));
        write!(f, "00-{trace}-{span}-{:02x}", self.flags)
    }
}

/// The variables by which an agent knows the trace of its attempt. `marker` is the run and the
/// attempt, separated by a slash.
pub(crate) fn variables(environment: &AgentEnvironment, marker: &str) -> Vec<(OsString, OsString)> {
    let parent = environment.variable(TRACE_PARENT);
    let parent = parent.as_deref().and_then(|text| TraceContext::parse(text.to_str()?));
    let (run, attempt) = marker.split_once('/').unwrap_or((marker, ""));
    let context = TraceContext::of_run(parent, run).of_attempt(attempt);
    let state = parent.and_then(|_| environment.variable(TRACE_STATE));
    let state = state.map(|state| (TRACE_STATE.into(), state));
    std::iter::once((TRACE_PARENT.into(), context.to_string().into())).chain(state).collect()
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().into()
}

fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&digest[..N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_header_is_read_and_written() {
        assert_eq!(TraceContext::parse(HEADER).unwrap().to_string(), HEADER);
        let later = format!("01{}-more", &HEADER[2..]);
        assert_eq!(TraceContext::parse(&later).unwrap().to_string(), HEADER);
    }

    #[test]
    fn a_header_that_is_not_valid_begins_a_new_trace() {
        let zeros = "0".repeat(32);
        for bad in [
            "",
            "00",
            &HEADER.to_uppercase(),
            &format!("{HEADER}-more"),
            &format!("ff{}", &HEADER[2..]),
            &HEADER.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zeros),
            &HEADER.replace("00f067aa0ba902b7", &zeros[..16]),
            &HEADER.replace("-01", "-1"),
            &HEADER.replace("4bf9", "4bé"),
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_attempt_belongs_to_its_run_and_the_run_to_the_trace_it_was_started_in() {
        let parent = TraceContext::parse(HEADER);
        let run = TraceContext::of_run(parent, "r1");
        let attempt = run.of_attempt("a1");
        assert_eq!([run.trace, attempt.trace], [parent.unwrap().trace; 2]);
        let spans = [parent.unwrap().span, run.span, attempt.span, run.of_attempt("a2").span];
        let distinct: std::collections::BTreeSet<_> = spans.iter().collect();
        assert_eq!(distinct.len(), spans.len());
        assert_eq!(run, TraceContext::of_run(parent, "r1"));
        let alone = TraceContext::of_run(None, "r1");
        assert_ne!(alone.trace, TraceContext::of_run(None, "r2").trace);
        assert_eq!(alone.flags, SAMPLED);
    }

    #[test]
    fn the_state_of_a_trace_goes_with_its_parent_only() {
        let mut environment = AgentEnvironment::default();
        environment.variables.insert(TRACE_STATE.into(), "vendor=1".into());
        let names = |environment: &AgentEnvironment| {
            variables(environment, "r1/a1").into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&environment), [TRACE_PARENT]);
        environment.variables.insert(TRACE_PARENT.into(), HEADER.into());
        assert_eq!(names(&environment), [TRACE_PARENT, TRACE_STATE]);
    }
}
