//! Lines of JSON among other lines. A program that streams its answer says a secret in pieces, one
//! event after the other, and no piece looks like one: strings that stand in the same place of
//! events that follow each other are read as one text, too.

use super::json::{self, Token};
use super::{Care, Redactor};
use std::collections::BTreeMap;
use std::ops::Range;

/// A stretch of a text.
pub(super) enum Part<'t> {
    /// One line that is JSON, with its end.
    Json(&'t str),
    /// Lines that are not.
    Text(&'t str),
}

/// A text as lines of JSON and what stands between them.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if json::is_json(line) {
            if from < at {
                parts.push(Part::Text(&text[from..at]));
            }
            parts.push(Part::Json(line));
            from = at + line.len();
        }
        at += line.len();
    }
    if from < at {
        parts.push(Part::Text(&text[from..at]));
    }
    parts
}

/// A text without its secrets.
pub(super) fn redacted(redactor: &mut Redactor, text: &str, care: Care) -> String {
    let parts = parts(text);
    let lines: Vec<Vec<Token>> = parts
        .iter()
        .map(|part| match part {
            Part::Json(line) => json::tokens(line, &redactor.names),
            Part::Text(_) => Vec::new(),
        })
        .collect();
    let cuts = cuts(redactor, &lines, care);
    let mut out = String::with_capacity(text.len());
    for (line, part) in parts.iter().enumerate() {
        match part {
            Part::Text(text) => {
                out.push_str(&redactor.within(text, care).unwrap_or_else(|| (*text).to_owned()));
            }
            Part::Json(text) => {
                let tokens = &lines[line];
                let edits: Vec<Option<String>> = tokens
                    .iter()
                    .enumerate()
                    .map(|(index, token)| match cuts.get(&(line, index)) {
                        Some(cuts) if !redactor.is_secret(token, care) => {
                            let cut = redactor.cut(&token.text, cuts);
                            Some(redactor.within(&cut, care).unwrap_or(cut))
                        }
                        _ => redactor.inside(token, care),
                    })
                    .collect();
                out.push_str(&json::rewritten(text, tokens, &edits, redactor));
            }
        }
    }
    out
}

/// What to take out of one string: where, and of which secret; only where it begins does something
/// stand in its place.
struct Cut {
    at: Range<usize>,
    secret: String,
    kind: &'static str,
    begins: bool,
}

impl Redactor {
    fn cut(&mut self, text: &str, cuts: &[Cut]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for cut in cuts {
            out.push_str(text.get(from..cut.at.start).unwrap_or_default());
            if cut.begins {
                let label = self.taken(&cut.secret, cut.kind);
                out.push_str(&label);
            }
            from = cut.at.end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        out
    }
}

/// The secrets that go from one line on to the next, as cuts of the strings they go through, by
/// line and string.
fn cuts(
    redactor: &Redactor,
    lines: &[Vec<Token>],
    care: Care,
) -> BTreeMap<(usize, usize), Vec<Cut>> {
    let mut cuts: BTreeMap<(usize, usize), Vec<Cut>> = BTreeMap::new();
    for chain in chains(lines) {
        let said = |(line, index): &(usize, usize)| lines[*line][*index].text.as_str();
        let whole: String = chain.iter().map(said).collect();
        // Where each piece begins; one that begins with a whole secret of its own goes on with
        // none.
        let mut starts = Vec::with_capacity(chain.len());
        let mut at = 0;
        for piece in &chain {
            starts.push(at);
            at += said(piece).len();
        }
        for span in redactor.spans(&whole, care) {
            let first = starts.partition_point(|start| *start <= span.at.start).saturating_sub(1);
            let mut last = starts.partition_point(|start| *start < span.at.end).saturating_sub(1);
            let own = |piece: &usize| {
                redactor
                    .spans(said(&chain[*piece]), care)
                    .first()
                    .is_some_and(|span| span.at.start == 0)
            };
            if let Some(other) = (first + 1..=last).find(own) {
                last = other - 1;
            }
            if last <= first {
                continue;
            }
            let end = starts.get(last + 1).copied().unwrap_or(at).min(span.at.end);
            let secret = whole.get(span.at.start..end).unwrap_or_default().to_owned();
            for piece in first..=last {
                let length = said(&chain[piece]).len();
                let from = span.at.start.saturating_sub(starts[piece]);
                let to = (end - starts[piece]).min(length);
                let begins = piece == first;
                let cut = Cut { at: from..to, secret: secret.clone(), kind: span.kind, begins };
                cuts.entry(chain[piece]).or_default().push(cut);
            }
        }
    }
    cuts
}

/// Strings in the same place of events of the same type that follow each other, by line and string.
fn chains(lines: &[Vec<Token>]) -> Vec<Vec<(usize, usize)>> {
    let mut done = Vec::new();
    let mut open: BTreeMap<(&str, &str), Vec<(usize, usize)>> = BTreeMap::new();
    for (line, tokens) in lines.iter().enumerate() {
        let kind = tokens.iter().find(|token| !token.key && token.path == "type");
        let kind = kind.map(|token| token.text.as_str()).unwrap_or_default();
        let mut next: BTreeMap<(&str, &str), Vec<(usize, usize)>> = BTreeMap::new();
        for (index, token) in
            tokens.iter().enumerate().filter(|(_, token)| !token.key && token.read)
        {
            let place = (kind, token.path.as_str());
            let mut chain = open.remove(&place).unwrap_or_default();
            chain.push((line, index));
            next.insert(place, chain);
        }
        done.extend(std::mem::replace(&mut open, next).into_values());
    }
    done.extend(open.into_values());
    done.retain(|chain| chain.len() > 1);
    done
}
