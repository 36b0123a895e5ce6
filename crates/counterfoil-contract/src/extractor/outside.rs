//! Attempts in a form that the contract does not ask for: JSON outside of a fence or a block, or an
//! output block where JSON is asked for. They are never accepted, but the last attempt decides.

use super::cut_key;
use super::quotation::{is_shown_block, is_shown_json};
use crate::attempt::{AttemptKeys, Likeness};
use crate::contract::Contract;
use crate::extract::block::BlockScan;
use crate::extract::strict_scan::{ScanEvent, Shape, StrictScan, ThinkMark};
use crate::placeholder;
use crate::read;
use crate::shown::Shown;
use crate::source::{Source, Span};

/// The form of an attempt that is not eligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Block,
}

/// An attempt that is not eligible because of its form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutsideAttempt {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) span: Option<Span>,
    pub(crate) form: Form,
    /// The start of the attempt that broke and that this seems to be a part of.
    pub(crate) part_of: Option<usize>,
}

/// The attempts outside of the framing so far.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) attempts: Vec<OutsideAttempt>,
    /// The last JSON, attempt or not.
    pub(crate) last_json: Option<Span>,
    /// The end of the last text that was dropped because it repeats what was shown.
    pub(crate) quoted_up_to: usize,
    /// The number of JSON values inside of thinking sections.
    pub(crate) inside_thinking: usize,
    /// The thinking section that is open, and those that have ended.
    thinking_from: Option<usize>,
    thinking: Vec<(usize, usize)>,
    /// The start of the last value, if it broke and is an attempt.
    broken_attempt: Option<usize>,
}

impl Outside {
    /// Records the JSON that a scan has found.
    pub(crate) fn add_json(
        &mut self,
        scan: &mut StrictScan,
        contract: &Contract,
        shown: Option<&Shown>,
        source: &Source<'_>,
    ) {
        let keys = &contract.attempt_keys;
        let wants_object = contract.ty().object().is_some();
        for event in scan.take_events() {
            let found = match event {
                ScanEvent::Think(mark, at) => {
                    self.think(mark, at);
                    continue;
                }
                ScanEvent::Value(found) => found,
            };
            let closed = matches!(found.shape, Shape::Closed { .. });
            let unrelated =
                matches!(found.shape, Shape::Closed { wanted: false, .. }) && !keys.in_strings();
            let text = source.slice(found.start, found.end);
            let quoted = matches!(found.shape, Shape::Closed { quoted: true, .. });
            let unquoted = quoted.then(|| read::without_quotes(source, found.start, found.end));
            if is_shown_json(shown, contract.ty(), unquoted.as_deref().unwrap_or(text)) {
                self.quoted_up_to = self.quoted_up_to.max(found.end);
                continue;
            }
            let plausible = !wants_object || text.starts_with('{');
            if !found.nested && closed && plausible {
                self.last_json = Some(source.span(found.start, found.end));
            }
            let cut_off = matches!(found.shape, Shape::Broken { cut_off: true, .. });
            let attempt = keys.has_fields()
                && !unrelated
                && keys.likeness(text, cut_off) == Likeness::Attempt;
            let part_of = self.broken_attempt.filter(|_| found.nested);
            if part_of.is_none() {
                self.broken_attempt = (!closed && attempt).then_some(found.start);
            }
            if attempt {
                self.attempts.push(OutsideAttempt {
                    start: found.start,
                    end: found.end,
                    span: Some(source.span(found.start, found.end)),
                    form: Form::Json,
                    part_of,
                });
            }
        }
    }

    /// Records the output blocks that a scan has found.
    pub(crate) fn add_blocks(
        &mut self,
        scan: &mut BlockScan,
        keys: &AttemptKeys,
        shown: Option<&Shown>,
        source: &Source<'_>,
        eof: bool,
    ) {
        let mut blocks: Vec<(usize, usize)> =
            scan.take_blocks().into_iter().map(|block| (block.start, block.end)).collect();
        if eof {
            blocks.extend(scan.unfinished().map(|start| (start, source.end())));
        }
        for (start, end) in blocks {
            let text = source.slice(start, end);
            let cut = eof && end == source.end() && cut_key::is_block_cut(text, keys);
            if (cut || is_block_attempt(keys, text)) && !is_shown_block(shown, text) {
                let span = Some(source.span(start, end));
                let form = Form::Block;
                self.attempts.push(OutsideAttempt { start, end, span, form, part_of: None });
            }
        }
    }

    pub(crate) fn think(&mut self, mark: ThinkMark, at: usize) {
        let from = match mark {
            ThinkMark::Open => {
                self.thinking_from = Some(at);
                return;
            }
            ThinkMark::Close => self.thinking_from.take().unwrap_or(0),
            // Everything before it was thinking.
            ThinkMark::Orphan => {
                self.thinking.clear();
                0
            }
        };
        self.thinking.push((from, at));
        if self.last_json.take_if(|span| span.start >= from).is_some() {
            self.inside_thinking += 1;
        }
    }

    /// Whether an offset is in a thinking section that has ended.
    pub(super) fn is_thinking(&self, at: usize) -> bool {
        let after = self.thinking.partition_point(|(from, _)| *from <= at);
        after > 0 && at < self.thinking[after - 1].1
    }

    /// The last attempt that is not in a thinking section that has ended, nor a part of another
    /// attempt. What broke inside of an attempt in the right form does not reach beyond it.
    pub(crate) fn last(&self, is_part: impl Fn(usize) -> bool) -> Option<OutsideAttempt> {
        let counts = |one: &&OutsideAttempt| {
            !self.is_thinking(one.start) && !is_part(one.start) && one.part_of.is_none_or(&is_part)
        };
        let last =
            |form| self.attempts.iter().rev().filter(move |one| one.form == form).find(counts);
        last(Form::Json).into_iter().chain(last(Form::Block)).max_by_key(|one| one.start).copied()
    }
}

/// Whether an output block tries to be the result: it has a field of the contract, and not only
/// placeholders for values.
pub(crate) fn is_block_attempt(keys: &AttemptKeys, content: &str) -> bool {
    read::block_entries(content)
        .any(|(key, value)| keys.knows(key) && !placeholder::is_bracketed(value))
}
