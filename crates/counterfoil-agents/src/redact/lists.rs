//! Secrets that are spread over the items of a list, as in the arguments of a command: the name of a
//! secret is one item and the secret the next one, or a secret is cut into adjacent items.

use super::json::Token;
use super::kinds::{is_plausible, mixed_or_long};
use super::{Cut, Finders, RedactionLevel, Redactor, Span};
use std::ops::Range;

/// What an item says of the item after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is a secret: `--token`, `Authorization:`, `password=`.
    Secret,
    /// It is a secret if it looks like one: `token`, `Bearer`. Lists of names have such items too.
    MaybeSecret,
}

/// Marks the items that are secrets because of the item before.
pub(super) fn mark_secrets(tokens: &mut [Token], finders: &Finders) {
    for run in runs(tokens) {
        let mut next = None;
        for token in &mut tokens[run] {
            let text = token.text.trim();
            if next.is_some() && finders.scheme.is_match(text) {
                continue;
            }
            match next.take() {
                Some(Next::Secret) if is_plausible(text) => token.secret = true,
                Some(Next::MaybeSecret) if mixed_or_long(text) => token.secret = true,
                _ => next = introduces(text, finders),
            }
        }
    }
}

fn introduces(text: &str, finders: &Finders) -> Option<Next> {
    if finders.scheme.is_match(text) {
        return Some(Next::MaybeSecret);
    }
    // `--no-password` is a switch.
    if finders.opening.is_match(text) && !text.starts_with("--no-") {
        return Some(Next::Secret);
    }
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    (is_name && finders.names.is_match(text)).then_some(Next::MaybeSecret)
}

/// The most items that a key with a form of its own is looked for in, and the most bytes of each.
const MAX_PIECES: usize = 8;
const MAX_PIECE_BYTES: usize = 1024;

/// The secrets that are cut into adjacent items, as cuts of each string.
pub(super) fn find_cuts(
    redactor: &Redactor,
    tokens: &[Token],
    level: RedactionLevel,
) -> Vec<Vec<Cut>> {
    let mut cuts: Vec<Vec<Cut>> = tokens.iter().map(|_| Vec::new()).collect();
    for run in runs(tokens) {
        let items: Vec<&str> =
            tokens[run.clone()].iter().map(|token| token.text.as_str()).collect();
        let mut add = |from: usize, secret: Joined| {
            for (item, cut) in secret.cuts() {
                cuts[run.start + from + item].push(cut);
            }
        };
        let known = RedactionLevel::KnownForms;
        for secret in join(redactor, &items, "", known).filter(Joined::is_certain) {
            add(0, secret);
        }
        // A value with spaces could go on to the end of the list.
        let in_one_item = |secret: &Joined| secret.parts.len() == 1 || secret.is_known;
        for secret in join(redactor, &items, " ", level).filter(in_one_item) {
            add(0, secret);
        }
        for from in 0..items.len() {
            let pieces = pieces(&items[from..]);
            for mut secret in join(redactor, pieces, "", known) {
                secret.keep_what_continues(redactor, pieces, level);
                if secret.first == 0 && secret.parts.len() > 1 {
                    add(from, secret);
                }
            }
        }
    }
    cuts
}

/// The first of these items and those after it that may continue a secret.
fn pieces<'i, 't>(items: &'i [&'t str]) -> &'i [&'t str] {
    let is_piece = |item: &&&str| {
        !item.is_empty() && item.len() <= MAX_PIECE_BYTES && !item.contains(char::is_whitespace)
    };
    let fits = items.first().is_some_and(|first| first.len() <= MAX_PIECE_BYTES);
    let more = items.iter().skip(1).take(MAX_PIECES - 1).take_while(is_piece).count();
    if fits && more > 0 { &items[..=more] } else { &[] }
}

/// A secret in several items as one text.
struct Joined {
    /// The first item.
    first: usize,
    /// The part of this item and of those after it.
    parts: Vec<Range<usize>>,
    /// The secret itself.
    text: String,
    kind: &'static str,
    is_known: bool,
}

impl Joined {
    /// Whether its end is known, unlike that of a key with a form of its own.
    fn is_certain(&self) -> bool {
        self.parts.len() > 1 && (self.is_known || self.kind == "private-key")
    }

    /// Leaves out the items that may not belong to a key with a form of its own. An item continues it
    /// if all of the item does, and if it is not a word or a secret of its own.
    fn keep_what_continues(&mut self, redactor: &Redactor, items: &[&str], level: RedactionLevel) {
        let continues = |(at, part): (usize, &Range<usize>)| {
            let item = items[self.first + at];
            at == 0
                || (part.len() == item.len()
                    && is_random(item)
                    && !begins_with_secret(redactor, item, level))
        };
        let kept = self.parts.iter().enumerate().take_while(|part| continues(*part)).count();
        self.parts.truncate(kept);
        let length = self.parts.iter().map(Range::len).sum();
        self.text.truncate(length);
    }

    fn cuts(self) -> impl Iterator<Item = (usize, Cut)> {
        let Self { first, parts, text, kind, .. } = self;
        let cut = move |(index, at): (usize, Range<usize>)| {
            (first + index, Cut { at, secret: text.clone(), kind, begins: index == 0 })
        };
        parts.into_iter().enumerate().map(cut).filter(|(_, cut)| !cut.at.is_empty())
    }
}

/// The secrets in items as one text.
fn join<'r>(
    redactor: &'r Redactor,
    items: &'r [&'r str],
    separator: &'r str,
    level: RedactionLevel,
) -> impl Iterator<Item = Joined> + 'r {
    let whole = items.join(separator);
    let spans = redactor.spans(&whole, level);
    let mut ends = Vec::with_capacity(items.len());
    let mut at = 0;
    for item in items {
        ends.push((at, at + item.len()));
        at += item.len() + separator.len();
    }
    spans.into_iter().map(move |Span { at, kind }| {
        let first = ends.partition_point(|(_, end)| *end <= at.start);
        let within = |(start, end): &(usize, usize)| {
            at.start.clamp(*start, *end) - start..at.end.clamp(*start, *end) - start
        };
        let reached = ends.iter().skip(first).take_while(|(start, _)| *start < at.end);
        let parts: Vec<Range<usize>> = reached.map(within).collect();
        let texts = parts.iter().zip(&items[first..]).map(|(part, item)| &item[part.clone()]);
        let text: String = texts.collect();
        Joined { first, parts, text, kind, is_known: redactor.known_value(&whole[at]).is_some() }
    })
}

fn begins_with_secret(redactor: &Redactor, text: &str, level: RedactionLevel) -> bool {
    redactor.spans(text, level).first().is_some_and(|Span { at, .. }| at.start == 0)
}

/// Whether a text is not a word: it has a digit, or capital letters after small ones.
fn is_random(text: &str) -> bool {
    let small = text.find(|c: char| c.is_ascii_lowercase());
    text.contains(|c: char| c.is_ascii_digit())
        || small.is_some_and(|at| text[at..].contains(|c: char| c.is_ascii_uppercase()))
}

/// The strings that are adjacent items of the same list, as ranges of at least two.
fn runs(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for index in 1..=tokens.len() {
        let follows = |token: &Token| {
            let last = tokens[index - 1].item;
            token.item.zip(last).is_some_and(|(this, last)| this == (last.0, last.1 + 1))
        };
        if !tokens.get(index).is_some_and(follows) {
            if index - start > 1 {
                runs.push(start..index);
            }
            start = index;
        }
    }
    runs
}
