//! What was shown to an agent: examples, templates, schemas, prompts. A reply that repeats it does
//! not answer.
//!
//! A copy is recognised whatever its whitespace, indentation, line ends and quote markers (`>`)
//! are, whole or in part. JSON is compared by value, so that the order of keys and the spelling of
//! numbers and strings do not matter either.

mod normal;
mod value;

use crate::contract::Contract;
use crate::extract::strict_scan::{ScanEvent, Shape, StrictScan};
use crate::json;
use crate::policy::{Framing, Limits, MAX_DEPTH};
use crate::read;
use crate::render::prompt::{self, Delivery};
use crate::render::vendor;
use crate::source::{Position, Source};
use normal::{Normal, is_distinctive};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use value::{Values, digests};

/// Separates the texts; no normalised text contains it.
const SEPARATOR: u8 = 0xff;
/// Starts are sorted by this many bytes of what follows them. It bounds the work on texts that
/// repeat themselves.
const SORTED_BYTES: usize = 4096;
/// The number of places that are compared when their first bytes are equal.
const MAX_PLACES: usize = 64;
/// A part without a text of its own counts as a copy from this length on. A shorter one may be the
/// beginning of an answer that was cut off.
const LONG_PART: usize = 160;
/// The beginning of a long part that is compared first.
const HEAD: usize = 256;
/// What may follow a part that was copied, such as an ellipsis.
const MAX_REST: usize = 40;
/// The length of the text before a small value that must be a copy too.
const CONTEXT: usize = 24;
/// The number of envelopes around a value that are taken off.
const MAX_ENVELOPES: usize = 4;
/// The number of bytes before a candidate that are looked at.
pub(crate) const CONTEXT_WINDOW: usize = 256;

/// The texts that were shown to an agent, indexed.
///
/// ```
/// use counterfoil_contract::shown::Shown;
///
/// let shown = Shown::new(["Example:\n{\"file\": \"src/cache.py\", \"line\": 4}\n"]);
/// assert!(shown.repeats("> { \"line\": 4.0,\r\n>   \"file\": \"src/cache.py\" }"));
/// assert!(!shown.repeats(r#"{"file": "src/main.py", "line": 4}"#));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The normalised texts.
    text: Vec<u8>,
    /// Where a copy can begin: at an opening bracket or a line, in the order of what follows.
    starts: Vec<usize>,
    /// The objects and lists of the texts, and those inside of them.
    values: Values,
    /// The output blocks of the texts, by the set of their lines.
    blocks: HashSet<u64>,
    /// The objects and lists that are not ours although a text contains them.
    quoted: HashSet<u64>,
}

impl Shown {
    /// What these texts show.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut shown = Self::default();
        for text in texts {
            shown.add(text.as_ref());
        }
        shown.sorted()
    }

    /// What every agent of a contract is shown: the instructions, the examples, the schema.
    pub fn of(contract: &Contract) -> Self {
        Self::with_prompts(contract, &[])
    }

    /// What an agent of a contract is shown with these prompts.
    pub fn with_prompts(contract: &Contract, prompts: &[&str]) -> Self {
        let mut shown = Self::default();
        shown.add(&prompt::suffix(contract, Delivery::Text));
        // Most vendors get the same schema.
        let mut schemas = vec![contract.raw_schema().clone()];
        for target in vendor::Target::ALL {
            let lowered = vendor::schema(contract, target).schema;
            if !schemas.contains(&lowered) {
                schemas.push(lowered);
            }
        }
        if contract.framing() == Framing::OutputBlock {
            shown.add(&prompt::block_template(contract));
        }
        // An example may also be shown in another form, as the arguments of a tool.
        for value in schemas.iter().chain(prompt::examples(contract)) {
            shown.values.add(value);
            shown.add_text(&value.to_string());
        }
        for prompt in prompts {
            shown.add(prompt);
        }
        shown.sorted()
    }

    fn sorted(mut self) -> Self {
        let (text, starts) = (&self.text, &mut self.starts);
        let key = |start: &usize| &text[*start..text.len().min(start + SORTED_BYTES)];
        starts.sort_unstable_by(|one, other| key(one).cmp(key(other)));
        self
    }

    /// The same without these values, such as the results of other steps that a prompt quotes.
    #[must_use]
    pub fn except<'v>(mut self, values: impl IntoIterator<Item = &'v Value>) -> Self {
        for value in values {
            value::visit_strings(value, &mut |text| {
                if text.contains(['{', '[']) {
                    each_value(text, |value| digests(value, &mut self.quoted));
                }
            });
            digests(value, &mut self.quoted);
        }
        self
    }

    fn add(&mut self, text: &str) {
        each_value(text, |value| self.values.add(value));
        self.add_text(text);
    }

    /// Adds a text whose values were added.
    fn add_text(&mut self, text: &str) {
        let normal = Normal::new(text);
        let mut rest = text;
        while let Some((_, block)) = rest.split_once("---OUTPUT---") {
            let (block, after) = block.split_once("---END---").unwrap_or((block, ""));
            self.blocks.insert(block_digest(block));
            rest = after;
        }
        let base = self.text.len();
        self.starts.extend(normal.starts.iter().map(|start| base + start));
        self.text.extend(normal.bytes);
        self.text.push(SEPARATOR);
    }

    /// Whether a text repeats what was shown, whole or in part. The work is bounded by the length
    /// of the text.
    pub fn repeats(&self, candidate: &str) -> bool {
        let text = Normal::dequoted(candidate);
        match json::parse(text.trim(), Limits::of_depth(MAX_DEPTH)) {
            Ok(parsed) if parsed.value.is_object() || parsed.value.is_array() => {
                self.repeats_value(&parsed.value)
            }
            _ if text.trim_start().starts_with(['{', '[']) => self.repeats_part(candidate),
            _ => self.repeats_part(candidate) || self.repeats_block(candidate),
        }
    }

    /// Whether an object or a list was shown: on its own or inside of another value, with or
    /// without an envelope around it, an object with all of its members or with some of them.
    pub fn repeats_value(&self, value: &Value) -> bool {
        self.repeated(value).is_some()
    }

    /// The value that was shown: the value itself, or the one inside of its envelope.
    pub(crate) fn repeated<'v>(&self, value: &'v Value) -> Option<Cow<'v, Value>> {
        let mut value = Cow::Borrowed(value);
        for _ in 0..MAX_ENVELOPES {
            let digest = value::digest(&value)?;
            if self.quoted.contains(&digest) {
                return None;
            }
            if self.values.contain(digest, &value) {
                return Some(value);
            }
            value = Cow::Owned(value::inside_envelope(&value)?);
        }
        None
    }

    /// Whether a value is one of those that are not ours.
    pub(crate) fn is_excepted(&self, value: &Value) -> bool {
        !self.quoted.is_empty()
            && value::digest(value).is_some_and(|digest| self.quoted.contains(&digest))
    }

    /// Whether the lines of an output block were shown, in any order or as a part of a block.
    pub(crate) fn repeats_block(&self, block: &str) -> bool {
        if self.blocks.contains(&block_digest(block)) {
            return true;
        }
        let normal = Normal::new(block);
        !normal.bytes.is_empty() && self.place(&normal.bytes).is_some()
    }

    /// Whether a text that is not a whole value is a part of what was shown: long enough that it is
    /// no coincidence, with nothing of its own after it.
    pub(crate) fn repeats_part(&self, part: &str) -> bool {
        // Most texts differ at once. Broken values can be many and long.
        let head = Normal::new(&part[..part.floor_char_boundary(HEAD)]).bytes;
        if part.len() > 2 * HEAD && self.common_prefix(&head) < head.len() {
            return false;
        }
        let normal = Normal::new(part);
        let common = self.common_prefix(&normal.bytes);
        let rest = &normal.bytes[common..];
        if rest.len() > MAX_REST || rest.iter().any(u8::is_ascii_alphanumeric) {
            return false;
        }
        common >= LONG_PART || is_distinctive(Normal::raw_prefix(part, common))
    }

    /// Whether a block that is not closed was shown, whole or in part.
    pub(crate) fn repeats_open_block(&self, block: &str) -> bool {
        self.repeats_part(block)
            || (self.blocks.contains(&block_digest(block)) && is_distinctive(block))
    }

    /// Whether a text was shown after the same words. This tells a quotation from an answer that
    /// is so small that it can equal what was shown.
    pub(crate) fn repeats_after(&self, before: &str, candidate: &str) -> bool {
        let (before, normal) = (Normal::new(before).bytes, Normal::new(candidate).bytes);
        if normal.is_empty() || before.len() < CONTEXT {
            return false;
        }
        let context = &before[before.len() - CONTEXT..];
        self.places(&normal)
            .any(|start| self.text[..start].ends_with(context) && self.is_at(start, &normal))
    }

    fn is_at(&self, start: usize, wanted: &[u8]) -> bool {
        self.text[start..].starts_with(wanted)
    }

    /// The places that have the same first bytes.
    fn places<'s>(&'s self, wanted: &'s [u8]) -> impl Iterator<Item = usize> + 's {
        let head = &wanted[..wanted.len().min(SORTED_BYTES)];
        let from = self.lower_bound(head);
        let places = self.starts[from..].iter().copied();
        places.take_while(move |start| self.is_at(*start, head)).take(MAX_PLACES)
    }

    fn place(&self, wanted: &[u8]) -> Option<usize> {
        self.places(wanted).find(|start| self.is_at(*start, wanted))
    }

    fn lower_bound(&self, head: &[u8]) -> usize {
        self.starts.partition_point(|start| {
            self.text[*start..self.text.len().min(start + SORTED_BYTES)] < *head
        })
    }

    /// The length of the longest beginning of a text that was shown.
    fn common_prefix(&self, wanted: &[u8]) -> usize {
        let head = &wanted[..wanted.len().min(SORTED_BYTES)];
        let at = self.lower_bound(head);
        // The best places are next to each other in the order.
        let near = self.starts[at.saturating_sub(1)..].iter().take(MAX_PLACES);
        let common = |start: &usize| {
            let pairs = self.text[*start..].iter().zip(wanted);
            pairs.take_while(|(one, other)| one == other).count()
        };
        near.map(common).max().unwrap_or(0)
    }
}

/// The lines of a block as one number, whatever their order.
fn block_digest(block: &str) -> u64 {
    let mut lines: Vec<Vec<u8>> = block
        .lines()
        .map(|line| Normal::new(line).bytes)
        .filter(|line| !line.is_empty() && !line.starts_with(b"---"))
        .collect();
    lines.sort_unstable();
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}

/// Calls a function for each JSON value of a text.
fn each_value(text: &str, mut visit: impl FnMut(&Value)) {
    let source = Source::window(text, Position::START);
    let mut scan = StrictScan::new(0);
    let mut events = Vec::new();
    let mut is_done = false;
    while let Some(event) = events.pop().or_else(|| {
        while events.is_empty() && !is_done {
            is_done = scan.feed(source.bytes(), 0, true, &|_| false);
            events = scan.take_events();
            events.reverse();
        }
        events.pop()
    }) {
        let ScanEvent::Value(found) = event else { continue };
        let Shape::Closed { quoted, .. } = found.shape else { continue };
        let raw = source.slice(found.start, found.end);
        let parsed = if quoted {
            let depth = read::quote_depth_at(&source, found.start);
            let text = read::blank_quotes(&source, (found.start, found.end), depth, false);
            json::parse(&text, Limits::of_depth(MAX_DEPTH))
        } else {
            json::parse(raw, Limits::of_depth(MAX_DEPTH))
        };
        if let Ok(parsed) = parsed {
            visit(&parsed.value);
        }
    }
}

#[cfg(test)]
mod tests;
