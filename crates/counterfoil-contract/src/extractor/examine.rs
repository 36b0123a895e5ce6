//! Compares each candidate with the contract: whether it is an attempt, and whether it is valid.

use super::candidate::{Candidate, CandidateSource};
use super::outside::is_block_attempt;
use super::track::Examined;
use super::{Extractor, MAIN};
use crate::attempt::Likeness;
use crate::capped::Capped;
use crate::edit;
use crate::expr::{ObjectType, Type};
use crate::extract::closing_quote::Quote;
use crate::policy::Framing;
use crate::report::{Stage, repairs};
use crate::source::Source;
use crate::validate::{Detail, walk};
use std::sync::Arc;

impl Extractor<'_> {
    /// Adds a candidate of the strict scan. What is nested in a broken attempt is a part of it.
    pub(super) fn offer_scanned(&mut self, found: Candidate, bare_key: bool, source: &Source<'_>) {
        let is_broken = found.is_broken();
        if found.nested && self.broken_attempt {
            let found = self.located(found, source);
            self.tracks[MAIN].candidates.push(found);
            return;
        }
        // Braces around words and colons are common in prose and in code.
        if bare_key
            && self.contract.attempt_keys.likeness(source.slice(found.start, found.end), false)
                == Likeness::Unrelated
        {
            self.broken_attempt = false;
            return;
        }
        let is_attempt = self.offer(MAIN, found, source);
        self.broken_attempt = is_broken && is_attempt;
    }

    /// Adds a candidate; true if it is an attempt.
    pub(super) fn offer(&mut self, track: usize, found: Candidate, source: &Source<'_>) -> bool {
        if self.is_quotation(&found, source) {
            return false;
        }
        let found = self.located(found, source);
        let likeness = self.likeness(&found, source);
        if found.unrelated && (!self.eager || !self.tracks[track].wants_fallback(&found, likeness))
        {
            self.tracks[track].add_unrelated(found, likeness);
            return false;
        }
        let listed = found.clone().without_edits();
        let mut examined = self.examine(found, likeness, source);
        if examined.is_unparsable && track == MAIN {
            self.unparsable.push(examined.found.start);
        }
        let is_attempt = examined.likeness == Likeness::Attempt;
        if is_attempt || self.tracks[track].wants_fallback(&examined.found, examined.likeness) {
            if self.eager
                && examined.outcome.is_none()
                && examined.can_be_explained(source.end(), false)
            {
                self.explain_one(&mut examined, source);
            }
            if is_attempt {
                self.tracks[track].add_attempt(examined);
            } else {
                self.tracks[track].state.fallback = Some(Arc::new(examined));
            }
        }
        self.tracks[track].candidates.push(listed);
        is_attempt
    }

    /// Records what is needed of a candidate after its text is dropped.
    fn located(&self, mut found: Candidate, source: &Source<'_>) -> Candidate {
        found.plausible = self.has_plausible_opener(&found, source);
        if !self.eager {
            return found;
        }
        let behind = (self.framing == Framing::JsonOnly).then(|| source.span(found.end, found.end));
        let span = source.span(found.start, found.end);
        found.at(span, behind)
    }

    fn examine(
        &self,
        mut found: Candidate,
        mut likeness: Likeness,
        source: &Source<'_>,
    ) -> Examined {
        let mut outcome = None;
        let mut is_unparsable = false;
        let mut applied = Capped::default();
        let comparable = likeness == Likeness::Attempt || !self.contract.attempt_keys.has_fields();
        if comparable && !found.is_broken() {
            // What is most of the text is probably what the report is about: it is explained at once,
            // and so not read and validated twice.
            let is_most = !self.eager && found.end - found.start > source.bytes().len() / 2;
            let detail = if is_most { Detail::Full } else { Detail::Probe };
            let validated = found.validate(&self.contract, &self.policy, source, detail);
            let mut is_explained = is_most;
            if validated.is_accepted() {
                likeness = Likeness::Attempt;
                is_explained = true;
            } else if validated.stage == Some(Stage::Parse)
                && self.policy.repairs()
                && let CandidateSource::Fence { .. } = found.how
            {
                // Repaired at the end of the text, which a broken string may reach.
                found.how = CandidateSource::FenceToRepair;
                is_explained = false;
            } else if validated.stage == Some(Stage::Parse) {
                is_unparsable = true;
            } else if likeness == Likeness::Attempt
                && !validated.has_no_placeholders
                && self.is_template(&found, source)
            {
                likeness = Likeness::Related;
            }
            if is_explained {
                applied = repairs(found.edits(), source);
                outcome = Some(validated);
            }
        }
        Examined { found, likeness, is_unparsable, outcome, repairs: applied }
    }

    /// How much a candidate resembles the result, by its keys.
    fn likeness(&self, found: &Candidate, source: &Source<'_>) -> Likeness {
        let keys = &self.contract.attempt_keys;
        let text = source.slice(found.start, found.end);
        if matches!(found.how, CandidateSource::Block) {
            let attempt = is_block_attempt(keys, text);
            return if attempt { Likeness::Attempt } else { Likeness::Unrelated };
        }
        if !keys.has_fields() {
            let attempt = found.plausible && self.first_item_fits(content_of(text));
            return if attempt { Likeness::Attempt } else { Likeness::Unrelated };
        }
        match &found.how {
            _ if found.unrelated => Likeness::Unrelated,
            CandidateSource::Repaired(edits) => {
                keys.likeness(&edit::apply(text, found.start, edits), found.cut_off)
            }
            _ => keys.likeness(text, found.cut_off),
        }
    }

    /// Whether every value of a candidate is a placeholder by the contract's own templates.
    fn is_template(&self, found: &Candidate, source: &Source<'_>) -> bool {
        if !self.policy.placeholders {
            return false;
        }
        let text = source.slice(found.start, found.end);
        let Ok(parsed) = crate::json::parse(text, self.policy.limits()) else {
            return false;
        };
        let placeholders =
            walk::scan_fields(&parsed.value, self.contract.ty(), true).placeholders.len();
        placeholders > 0 && placeholders == walk::count_scalars(&parsed.value)
    }

    /// Whether a candidate begins as the results of the contract do.
    fn has_plausible_opener(&self, found: &Candidate, source: &Source<'_>) -> bool {
        let Some(opener) = self.opener else { return true };
        let text = &source.bytes()[found.start - source.base()..found.end - source.base()];
        text.iter().find(|byte| !b" \t\r\n>".contains(byte)) == Some(&opener)
    }

    /// Whether the first item of a list has the type that the contract asks for. `[1]` in prose is
    /// no attempt at a list of texts.
    fn first_item_fits(&self, text: &str) -> bool {
        let Some(items) = self.contract.ty().items().filter(|_| text.starts_with('[')) else {
            return true;
        };
        let item = text[1..].trim_start().as_bytes();
        let Some(first) = item.first().copied() else { return true };
        first == b']'
            || items.alternatives().is_empty()
            || items.alternatives().iter().any(|ty| match ty {
                Type::String(_) => Quote::opening(item).is_some(),
                Type::Int | Type::Double => {
                    matches!(first, b'-' | b'0'..=b'9') && !is_no_number(item)
                }
                Type::Bool => matches!(first, b't' | b'f' | b'T' | b'F'),
                Type::Object(_) | Type::Map(_) => first == b'{',
                Type::List(_) => first == b'[',
                _ => true,
            })
    }

    /// Explains the candidates whose text has arrived.
    pub(super) fn explain(&mut self, source: &Source<'_>, eof: bool) {
        if !self.eager {
            return;
        }
        let mut tracks = std::mem::take(&mut self.tracks);
        for examined in tracks.iter_mut().flat_map(super::track::Track::unexplained) {
            if examined.can_be_explained(source.end(), eof) {
                self.explain_one(examined, source);
            }
        }
        self.tracks = tracks;
    }

    pub(super) fn explain_one(&self, examined: &mut Examined, source: &Source<'_>) {
        let found = &examined.found;
        examined.repairs = repairs(found.edits(), source);
        examined.outcome = Some(found.validate(&self.contract, &self.policy, source, Detail::Full));
    }
}

/// The bracket with which the results of a type begin, if there is only one.
pub(super) fn opener(ty: &Type) -> Option<u8> {
    let object =
        ty.object().is_some() || ty.alternatives().iter().any(|ty| matches!(ty, Type::Map(_)));
    match (object, ty.items().is_some()) {
        (true, false) => Some(b'{'),
        (false, true) => Some(b'['),
        _ => None,
    }
}

/// Whether the results of a type are lists of scalars, or of lists: no key tells them from others.
pub(super) fn has_scalar_items(ty: &Type) -> bool {
    let Some(items) = ty.items().filter(|_| opener(ty) == Some(b'[')) else { return false };
    opener(items) != Some(b'{')
}

/// Whether empty brackets may be a result of a type: it needs no field.
pub(super) fn may_be_empty(ty: &Type) -> bool {
    let needs_none = |object: &ObjectType| {
        object.fields.values().all(|field| !field.required || field.default.is_some())
    };
    ty.alternatives().iter().any(|ty| match ty {
        Type::Object(object) => needs_none(object),
        Type::List(_) | Type::Map(_) => true,
        _ => false,
    })
}

/// Whether a text that begins with a digit or a minus begins with a date, a range or a version, such as
/// `2026-01-02`, `3-7` or `1.2.3`: common in prose, and no mistake in a number.
fn is_no_number(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let end = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    let token = &text[..end];
    token.windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1] == b'-')
        || memchr::memchr_iter(b'.', token).count() > 1
}

/// A text without the blanks and quote markers before it.
fn content_of(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\r', '\n', '>'])
}
