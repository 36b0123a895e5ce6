//! Redacts lines of JSON among other lines. A program that streams its reply may split a secret
//! over several events, and no part alone looks like a secret. So strings at the same path of
//! consecutive events are also searched as one text.

use super::json::{self, Token};
use super::{Cut, RedactionLevel, Redactor, lists};
use std::collections::BTreeMap;

/// A part of a text.
pub(super) enum Part<'t> {
    /// One line of JSON, with its line ending.
    Json(&'t str),
    /// Other lines.
    Text(&'t str),
}

/// Splits a text into lines of JSON and the text between.
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

/// Redacts a text.
pub(super) fn redact(redactor: &mut Redactor, text: &str, level: RedactionLevel) -> String {
    let parts = parts(text);
    let lines: Vec<Vec<Token>> = parts
        .iter()
        .map(|part| match part {
            Part::Json(line) => json::tokens(line, &redactor.finders),
            Part::Text(_) => Vec::new(),
        })
        .collect();
    let mut cuts = find_cuts(redactor, &lines, level);
    let mut out = String::with_capacity(text.len());
    for (line, part) in parts.iter().enumerate() {
        match part {
            Part::Text(text) => {
                out.push_str(&redactor.redact(text, level).unwrap_or_else(|| (*text).to_owned()));
            }
            Part::Json(text) => {
                let tokens = &lines[line];
                let in_lists = lists::find_cuts(redactor, tokens, level);
                let edits: Vec<Option<String>> = tokens
                    .iter()
                    .zip(in_lists)
                    .enumerate()
                    .map(|(index, (token, mut all))| {
                        all.extend(cuts.remove(&(line, index)).unwrap_or_default());
                        redactor.redact_cut_token(token, all, level)
                    })
                    .collect();
                out.push_str(&json::replace_strings(text, tokens, &edits, redactor));
            }
        }
    }
    out
}

/// The secrets that span several lines, as cuts by line and string.
fn find_cuts(
    redactor: &Redactor,
    lines: &[Vec<Token>],
    level: RedactionLevel,
) -> BTreeMap<(usize, usize), Vec<Cut>> {
    let mut cuts: BTreeMap<(usize, usize), Vec<Cut>> = BTreeMap::new();
    for chain in chains(lines) {
        let text_of = |(line, index): &(usize, usize)| lines[*line][*index].text.as_str();
        let whole: String = chain.iter().map(text_of).collect();
        // Where each string starts. A string that starts with a complete secret does not continue
        // an earlier one.
        let mut starts = Vec::with_capacity(chain.len());
        let mut at = 0;
        for piece in &chain {
            starts.push(at);
            at += text_of(piece).len();
        }
        for span in redactor.spans(&whole, level) {
            let first = starts.partition_point(|start| *start <= span.at.start).saturating_sub(1);
            let mut last = starts.partition_point(|start| *start < span.at.end).saturating_sub(1);
            let own = |piece: &usize| {
                redactor
                    .spans(text_of(&chain[*piece]), level)
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
                let length = text_of(&chain[piece]).len();
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

/// Strings at the same path of consecutive events of the same type, by line and string.
fn chains(lines: &[Vec<Token>]) -> Vec<Vec<(usize, usize)>> {
    let mut done = Vec::new();
    let mut open: BTreeMap<(&str, &str), Vec<(usize, usize)>> = BTreeMap::new();
    for (line, tokens) in lines.iter().enumerate() {
        let kind = tokens.iter().find(|token| !token.key && token.path == "type");
        let kind = kind.map(|token| token.text.as_str()).unwrap_or_default();
        let mut next: BTreeMap<(&str, &str), Vec<(usize, usize)>> = BTreeMap::new();
        for (index, token) in
            tokens.iter().enumerate().filter(|(_, token)| !token.key && token.decoded)
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
