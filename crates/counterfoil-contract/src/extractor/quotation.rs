//! Candidates that repeat what the agent was shown. They are dropped before one is chosen.

use super::Extractor;
use super::candidate::{Candidate, CandidateSource};
use crate::expr::Type;
use crate::json;
use crate::own_words::carries_own_words;
use crate::policy::{Limits, MAX_DEPTH};
use crate::shown::{CONTEXT_WINDOW, Shown};
use crate::source::Source;
use crate::validate::Detail;
use std::borrow::Cow;

impl Extractor<'_> {
    /// Whether a candidate only repeats what the agent was shown.
    pub(super) fn is_quotation(&mut self, found: &Candidate, source: &Source<'_>) -> bool {
        let Some(shown) = self.shown else { return false };
        let text = source.slice(found.start, found.end);
        let read = if found.is_broken() {
            Err(None)
        } else {
            found.read(&self.contract, &self.policy, source, Detail::Probe)
        };
        let quotation = match read {
            Ok(reading) if shown.is_excepted(&reading.value) => false,
            Ok(reading) => {
                let whole = Some(Cow::Borrowed(&reading.value));
                let repeated = match &found.how {
                    CandidateSource::Block => whole.filter(|_| shown.repeats_block(text)),
                    CandidateSource::Repaired(_) if shown.repeats_part(text) => whole,
                    _ => shown.repeated(&reading.value),
                };
                let from = floor_char_boundary(source, found.start, CONTEXT_WINDOW);
                repeated.is_some_and(|value| {
                    carries_own_words(&value, self.contract.ty())
                        || shown.repeats_after(source.slice(from, found.start), text)
                })
            }
            Err(_) => shown.repeats_part(text),
        };
        self.quotations += usize::from(quotation);
        if quotation {
            self.outside.quoted_up_to = self.outside.quoted_up_to.max(found.end);
        }
        quotation
    }

    /// Whether the block that is open from an offset on was shown.
    pub(super) fn is_open_quotation(&mut self, at: usize, source: &Source<'_>) -> bool {
        let open = source.slice(at, source.end());
        let quotation = self.shown.is_some_and(|shown| shown.repeats_open_block(open));
        self.quotations += usize::from(quotation);
        quotation
    }
}

/// Whether JSON in another form than the framing's, whole or broken, was shown.
pub(super) fn is_shown_json(shown: Option<&Shown>, ty: &Type, json: &str) -> bool {
    shown.is_some_and(|shown| match json::parse(json, Limits::of_depth(MAX_DEPTH)) {
        Ok(parsed) => {
            let repeated = shown.repeated(&parsed.value);
            repeated.is_some_and(|value| carries_own_words(&value, ty))
        }
        Err(_) => shown.repeats_part(json),
    })
}

/// Whether an output block where JSON is asked for was shown.
pub(super) fn is_shown_block(shown: Option<&Shown>, block: &str) -> bool {
    shown.is_some_and(|shown| shown.repeats_block(block) || shown.repeats_part(block))
}

/// The offset that is at most some bytes before another one, at the boundary of a character.
fn floor_char_boundary(source: &Source<'_>, at: usize, bytes: usize) -> usize {
    let mut from = at.saturating_sub(bytes).max(source.base());
    while from < at && source.bytes()[from - source.base()] & 0xc0 == 0x80 {
        from += 1;
    }
    from
}
