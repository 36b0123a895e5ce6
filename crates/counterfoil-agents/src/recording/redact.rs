//! Taking secrets out of what is handed on. In the place of each stands `[redacted:KIND#N]`, the
//! same for the same secret everywhere, so that what repeats still repeats. What is JSON stays
//! JSON: only the inside of its strings changes.

mod json;
mod kinds;
mod pieces;

pub use kinds::pattern;

use kinds::{BEHIND, FORMS, Kind, NAMES, plausible, telling};
use regex::{Regex, RegexSet};
use std::collections::BTreeMap;
use std::ops::Range;

/// A text is gone through again as long as taking something out lets something else appear, but not
/// more often.
const MOST_ROUNDS: usize = 16;
/// How many bytes of values are looked for wherever they stand; further ones go only where their
/// form or their name tells them.
const MOST_KNOWN: usize = 1 << 18;
/// A longer value is no password or token.
const LONGEST_KNOWN: usize = 4096;

/// Takes secrets out of texts.
#[derive(Clone)]
pub struct Redactor {
    /// Which of the kinds are in a text at all.
    any: RegexSet,
    finders: Vec<Finder>,
    names: Regex,
    placeholder: Regex,
    edges: Regex,
    /// Values that are secret wherever they stand.
    known: BTreeMap<String, &'static str>,
    /// How many bytes they are together.
    known_bytes: usize,
    /// The same, to look for them; made when they are first needed.
    literal: Option<Regex>,
    /// What stands in the place of each secret.
    labels: BTreeMap<String, String>,
    /// How many secrets of each kind there are.
    numbers: BTreeMap<String, usize>,
    /// How often something of each kind was taken out.
    counts: BTreeMap<String, usize>,
}

#[derive(Clone)]
struct Finder {
    name: &'static str,
    regex: Regex,
    holds: fn(&str) -> bool,
    /// Whether it goes by what stands before a value.
    behind: bool,
}

/// How much of a text may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Whatever looks like a secret or is called one.
    Full,
    /// What is a secret by its form or is known to be one. For texts in which `token: string` says
    /// what a field is.
    Forms,
}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {pattern:?} cannot be used: {why}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it, and the way out.
    pub why: String,
}

impl Redactor {
    /// One that knows the usual kinds of secrets, and patterns of a project's own. Of these, the
    /// first group is the secret, or everything that matches if there is none.
    pub fn new(patterns: &[String]) -> Result<Self, PatternError> {
        let mut finders = Vec::new();
        for (kinds, behind) in [(FORMS.as_slice(), false), (BEHIND.as_slice(), true)] {
            for Kind { name, form, holds } in kinds {
                let regex = Regex::new(form).map_err(|error| unusable(form, &error.to_string()))?;
                finders.push(Finder { name, regex, holds: *holds, behind });
            }
        }
        for text in patterns {
            let regex = pattern(text).map_err(|why| unusable(text, &why))?;
            finders.push(Finder {
                name: "pattern",
                regex,
                holds: |found| !found.is_empty(),
                behind: false,
            });
        }
        let all = finders.iter().map(|finder| finder.regex.as_str());
        let any =
            RegexSet::new(all).map_err(|error| unusable("all together", &error.to_string()))?;
        let own = |form: &str| Regex::new(form).map_err(|error| unusable(form, &error.to_string()));
        Ok(Self {
            any,
            finders,
            names: own(NAMES)?,
            placeholder: own(r"\[redacted:[a-z-]+#[0-9]+\]")?,
            edges: own(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")?,
            known: BTreeMap::new(),
            known_bytes: 0,
            literal: None,
            labels: BTreeMap::new(),
            numbers: BTreeMap::new(),
            counts: BTreeMap::new(),
        })
    }

    /// Learns the values of variables whose names say that they are secrets.
    pub fn know_variables(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        for (name, value) in variables {
            let value = value.trim();
            // A word would be taken out of every sentence.
            let own = value.len() >= 8 || value.bytes().any(|byte| !byte.is_ascii_alphabetic());
            if self.names.is_match(&name) && plausible(value) && value.len() >= 6 && own {
                self.know(value, "variable");
            }
        }
    }

    /// Learns the secrets of a text, so that they are taken out where nothing says what they are,
    /// too.
    pub fn learn(&mut self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let mut found = Vec::new();
        json::each_text(text, &self.names, |inside, secret| {
            if secret && plausible(inside) {
                found.push((inside.to_owned(), "secret"));
            } else {
                found.extend(self.spans(inside, Care::Full).into_iter().filter_map(|span| {
                    inside.get(span.at).map(|found| (found.to_owned(), span.kind))
                }));
            }
        });
        for (found, kind) in found.into_iter().filter(|(found, _)| telling(found)) {
            self.know(&found, kind);
        }
    }

    fn know(&mut self, value: &str, kind: &'static str) {
        let fits = value.len() <= LONGEST_KNOWN && self.known_bytes + value.len() <= MOST_KNOWN;
        if fits && !self.known.contains_key(value) {
            self.known.insert(value.to_owned(), kind);
            self.known_bytes += value.len();
            self.literal = None;
        }
    }

    /// Bytes without their secrets: JSON, lines of JSON, or any text; none if they are no text.
    pub fn bytes(&mut self, bytes: &[u8], care: Care) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(bytes).ok()?;
        self.prepare();
        if json::is_json(text) {
            return Some(json::redacted(self, text, care).into_bytes());
        }
        Some(pieces::redacted(self, text, care).into_bytes())
    }

    /// A text without its secrets.
    pub fn text(&mut self, text: &str, care: Care) -> String {
        self.prepare();
        self.within(text, care).unwrap_or_else(|| text.to_owned())
    }

    /// How often something of each kind was taken out.
    pub fn counts(&self) -> &BTreeMap<String, usize> {
        &self.counts
    }

    /// Makes what looks for known values, longest first: one that another begins with must not win.
    fn prepare(&mut self) {
        if self.literal.is_some() || self.known.is_empty() {
            return;
        }
        let mut known: Vec<&String> = self.known.keys().collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let all: Vec<String> = known.into_iter().map(|value| regex::escape(value)).collect();
        self.literal = regex::RegexBuilder::new(&all.join("|")).size_limit(256 << 20).build().ok();
    }

    /// A text without its secrets; none if it has none.
    fn within(&mut self, text: &str, care: Care) -> Option<String> {
        let mut now: Option<String> = None;
        for _ in 0..MOST_ROUNDS {
            let spans = self.spans(now.as_deref().unwrap_or(text), care);
            if spans.is_empty() {
                break;
            }
            let then = now.take();
            now = Some(self.replaced(then.as_deref().unwrap_or(text), &spans));
        }
        now
    }

    fn replaced(&mut self, text: &str, spans: &[Span]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for span in spans {
            out.push_str(text.get(at..span.at.start).unwrap_or_default());
            let label = self.taken(text.get(span.at.clone()).unwrap_or_default(), span.kind);
            out.push_str(&label);
            at = span.at.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    /// What stands in the place of a secret that is taken out.
    fn taken(&mut self, secret: &str, kind: &str) -> String {
        let label = self.label(secret, kind);
        let kind =
            label.trim_start_matches("[redacted:").split('#').next().unwrap_or_default().to_owned();
        *self.counts.entry(kind).or_default() += 1;
        label
    }

    fn label(&mut self, secret: &str, kind: &str) -> String {
        if let Some(label) = self.labels.get(secret) {
            return label.clone();
        }
        let number = self.numbers.entry(kind.to_owned()).or_default();
        *number += 1;
        let label = format!("[redacted:{kind}#{number}]");
        self.labels.insert(secret.to_owned(), label.clone());
        label
    }

    /// Where secrets stand, in order, none over another. What was taken out before is left alone.
    fn spans(&self, text: &str, care: Care) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut from = 0;
        for taken in self.placeholder.find_iter(text) {
            self.search(text, from..taken.start(), care, &mut spans);
            from = taken.end();
        }
        self.search(text, from..text.len(), care, &mut spans);
        spans
    }

    fn search(&self, text: &str, within: Range<usize>, care: Care, spans: &mut Vec<Span>) {
        let start = within.start;
        let Some(text) = text.get(within).filter(|text| !text.is_empty()) else { return };
        let mut found = self.private_keys(text);
        if let Some(literal) = &self.literal {
            found.extend(literal.find_iter(text).map(|found| {
                let kind = self.known.get(found.as_str()).copied().unwrap_or("secret");
                Span { at: found.range(), kind }
            }));
        }
        for index in self.any.matches(text) {
            let Some(finder) = self.finders.get(index) else { continue };
            if finder.behind && care == Care::Forms {
                continue;
            }
            found.extend(finder.regex.captures_iter(text).filter_map(|groups| {
                let named = ["s", "t", "u"].into_iter().find_map(|name| groups.name(name));
                let one = if finder.name == "pattern" { groups.get(1) } else { named };
                let secret = one.or_else(|| groups.get(0))?;
                (finder.holds)(secret.as_str())
                    .then(|| Span { at: secret.range(), kind: finder.name })
            }));
        }
        // The longest of those that begin together; what overlaps goes as one.
        found.sort_by_key(|span| (span.at.start, std::cmp::Reverse(span.at.end)));
        let mut whole: Vec<Span> = Vec::new();
        for span in found {
            match whole.last_mut().filter(|last| span.at.start < last.at.end) {
                Some(last) => last.at.end = last.at.end.max(span.at.end),
                None => whole.push(span),
            }
        }
        let moved = |span: Span| Span { at: span.at.start + start..span.at.end + start, ..span };
        spans.extend(whole.into_iter().map(moved));
    }

    /// Private keys, from their first line to their last; of one that is cut, what there is of it.
    fn private_keys(&self, text: &str) -> Vec<Span> {
        let edges: Vec<(bool, Range<usize>)> = self
            .edges
            .captures_iter(text)
            .filter_map(|edge| Some((edge.get(1)?.as_str() == "BEGIN", edge.get(0)?.range())))
            .collect();
        let spans = edges.iter().enumerate().filter(|(_, (begins, _))| *begins).map(
            |(index, (_, begin))| {
                let end = match edges.get(index + 1) {
                    // A quote ends the text that a key stands in, if this is the source of a
                    // program.
                    Some((false, end)) if !text[begin.end..end.start].contains('"') => end.end,
                    _ => begin.end + key_length(&text[begin.end..]),
                };
                Span { at: begin.start..end, kind: "private-key" }
            },
        );
        spans.collect()
    }
}

/// How far a key goes on that has no last line: over everything that is written in its letters, in
/// lines.
fn key_length(text: &str) -> usize {
    let letter = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '/' | '=');
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let gap = rest.len() - rest.trim_start_matches(|char: char| char.is_whitespace()).len();
        // Ends of lines that are written out.
        let gap = gap + rest[gap..].len()
            - rest[gap..].trim_start_matches("\\r").trim_start_matches("\\n").len();
        let line = rest[gap..].find(|char| !letter(char)).unwrap_or(rest.len() - gap);
        let goes_on = line >= 32 || (line > 0 && rest.len() == gap + line);
        if !goes_on {
            return length;
        }
        length += gap + line;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    at: Range<usize>,
    kind: &'static str,
}

fn unusable(pattern: &str, why: &str) -> PatternError {
    PatternError { pattern: pattern.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests;
