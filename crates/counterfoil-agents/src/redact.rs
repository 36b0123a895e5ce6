//! Redacts secrets in what leaves the machine. Each secret is replaced by `[redacted:KIND#N]`, with the
//! same number for the same secret everywhere. JSON stays valid: only the content of strings
//! changes.

mod cut;
mod json;
mod kinds;
mod lines;
mod lists;
mod private_keys;
mod spellings;

pub use kinds::compile_pattern;

use kinds::{
    AUTH_SCHEMES, CONTEXT_FORMS, Kind, LIST_OPENINGS, OWN_FORMS, SECRET_NAMES, is_distinctive,
    is_plausible, trim_sentence,
};
use regex::{Regex, RegexSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The most passes over a text. Another pass is made as long as a replacement reveals another
/// secret.
const MAX_ROUNDS: usize = 16;
/// The most bytes of known values that are searched for everywhere, and of the patterns for their other
/// spellings. Further values and spellings are only redacted where their form or name identifies them.
const MAX_KNOWN_BYTES: usize = 1 << 18;
/// The longest value that can be a password or token.
const MAX_KNOWN_VALUE_BYTES: usize = 4096;

/// Redacts secrets in texts.
#[derive(Clone)]
pub struct Redactor {
    finders: Finders,
    /// Values that are secret everywhere, with their kinds.
    known: BTreeMap<String, &'static str>,
    /// The known values by what all their spellings have in common.
    unescaped: BTreeMap<String, String>,
    /// The known values whose spellings are searched for.
    spelled: BTreeSet<String>,
    /// What is known of the beginnings of all values.
    beginnings: cut::Beginnings,
    /// The total length of the known values, in bytes.
    known_bytes: usize,
    /// The total length of the patterns for their spellings.
    spelled_bytes: usize,
    /// Patterns for the known values and for their spellings, compiled when they are first needed.
    literals: Option<Vec<Regex>>,
    /// The placeholder of each secret.
    labels: BTreeMap<String, String>,
    /// The number of secrets of each kind.
    numbers: BTreeMap<String, usize>,
    /// The number of redactions of each kind.
    counts: BTreeMap<String, usize>,
}

/// The patterns of a redactor.
#[derive(Clone)]
struct Finders {
    /// Finds which patterns match a text at all.
    any: RegexSet,
    all: Vec<Finder>,
    /// The name of a field whose value is a secret.
    names: Regex,
    /// An item of a list after which a secret follows.
    opening: Regex,
    /// An item that stands between such an item and the secret.
    scheme: Regex,
    placeholder: Regex,
    edges: Regex,
}

#[derive(Clone)]
struct Finder {
    name: &'static str,
    regex: Regex,
    accepts: fn(&str) -> bool,
    /// Whether it identifies a value by the text before it.
    by_context: bool,
}

/// Which secrets are redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactionLevel {
    /// Everything that looks like a secret or has the name of one.
    Full,
    /// Only values with the form of a secret and known values. For schemas, in which `token:
    /// string` describes a field.
    KnownForms,
}

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {pattern:?} cannot be used: {why}")]
pub struct PatternError {
    /// The text of the pattern.
    pub pattern: String,
    /// What is wrong with it, with a suggestion.
    pub why: String,
}

impl Redactor {
    /// Creates a redactor for the known kinds of secrets and a project's own patterns. The first
    /// group of such a pattern is the secret, or the whole match if there is no group.
    ///
    /// # Errors
    ///
    /// A pattern is invalid.
    pub fn new(patterns: &[String]) -> Result<Self, PatternError> {
        let mut finders = Vec::new();
        for (kinds, by_context) in [(OWN_FORMS.as_slice(), false), (CONTEXT_FORMS.as_slice(), true)]
        {
            for Kind { name, form, accepts } in kinds {
                let form = &after_escapes(form);
                let regex = Regex::new(form).map_err(|error| invalid(form, &error.to_string()))?;
                finders.push(Finder { name, regex, accepts: *accepts, by_context });
            }
        }
        for text in patterns {
            let regex = compile_pattern(text)?;
            finders.push(Finder {
                name: "pattern",
                regex,
                accepts: |found| !found.is_empty(),
                by_context: false,
            });
        }
        let all = finders.iter().map(|finder| finder.regex.as_str());
        let any =
            RegexSet::new(all).map_err(|error| invalid("combined patterns", &error.to_string()))?;
        let own = |form: &str| Regex::new(form).map_err(|error| invalid(form, &error.to_string()));
        Ok(Self {
            finders: Finders {
                any,
                all: finders,
                names: own(SECRET_NAMES)?,
                opening: own(LIST_OPENINGS)?,
                scheme: own(AUTH_SCHEMES)?,
                placeholder: own(r"\[redacted:[a-z-]+#[0-9]+\]")?,
                edges: own(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")?,
            },
            known: BTreeMap::new(),
            unescaped: BTreeMap::new(),
            spelled: BTreeSet::new(),
            beginnings: cut::Beginnings::default(),
            known_bytes: 0,
            spelled_bytes: 0,
            literals: None,
            labels: BTreeMap::new(),
            numbers: BTreeMap::new(),
            counts: BTreeMap::new(),
        })
    }

    /// Adds the values of variables with the names of secrets to the known values.
    pub fn learn_variables(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        for (name, value) in variables {
            let value = trim_sentence(value.trim());
            // An ordinary word would be redacted in every sentence.
            let is_ordinary_word =
                value.len() < 8 && value.bytes().all(|byte| byte.is_ascii_alphabetic());
            if self.finders.names.is_match(&name)
                && is_plausible(value)
                && value.len() >= 6
                && !is_ordinary_word
            {
                self.add_known(value, "variable");
            }
        }
    }

    /// Adds the secrets in a text to the known values, so that they are redacted everywhere.
    pub fn learn(&mut self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let mut found = Vec::new();
        json::visit_texts(text, &self.finders, |inside, secret| {
            if secret && is_plausible(inside) {
                found.push((trim_sentence(inside).to_owned(), "secret"));
            } else {
                found.extend(self.spans(inside, RedactionLevel::Full).into_iter().filter_map(
                    |span| inside.get(span.at).map(|found| (found.to_owned(), span.kind)),
                ));
            }
        });
        for (found, kind) in found.into_iter().filter(|(found, _)| is_distinctive(found)) {
            self.add_known(&found, kind);
        }
    }

    fn add_known(&mut self, value: &str, kind: &'static str) {
        if value.len() > MAX_KNOWN_VALUE_BYTES || self.known.contains_key(value) {
            return;
        }
        if self.known_bytes + value.len() > MAX_KNOWN_BYTES {
            return;
        }
        self.known_bytes += value.len();
        if spellings::differ(value) {
            let size = spellings::pattern(value).len();
            if self.spelled_bytes + size <= MAX_KNOWN_BYTES {
                self.spelled_bytes += size;
                self.spelled.insert(value.to_owned());
            }
        }
        self.known.insert(value.to_owned(), kind);
        let unescaped = spellings::unescape(value).text;
        self.beginnings.add(&unescaped);
        self.unescaped.entry(unescaped).or_insert_with(|| value.to_owned());
        self.literals = None;
    }

    /// Redacts JSON, lines of JSON, or any text. None if the bytes are not UTF-8.
    pub fn redact_bytes(&mut self, bytes: &[u8], level: RedactionLevel) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(bytes).ok()?;
        self.prepare();
        if json::is_json(text) {
            return Some(json::redact(self, text, level).into_bytes());
        }
        Some(lines::redact(self, text, level).into_bytes())
    }

    /// Redacts a text.
    pub fn redact_text(&mut self, text: &str, level: RedactionLevel) -> String {
        self.prepare();
        self.redact(text, level).unwrap_or_else(|| text.to_owned())
    }

    /// The number of redactions of each kind.
    pub fn counts(&self) -> &BTreeMap<String, usize> {
        &self.counts
    }

    /// Compiles the patterns for known values. Longer values come first, so that a prefix does not
    /// win. The values as they are have a pattern of their own, because it is searched for faster.
    fn prepare(&mut self) {
        if self.literals.is_some() {
            return;
        }
        let mut known: Vec<&String> = self.known.keys().collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let plain: Vec<String> = known.iter().map(|value| regex::escape(value)).collect();
        let quoted = known.into_iter().filter(|value| self.spelled.contains(*value));
        let quoted: Vec<String> = quoted.map(|value| spellings::pattern(value)).collect();
        let patterns = [plain, quoted].into_iter().filter(|all| !all.is_empty());
        let compiled = patterns.filter_map(|all| {
            regex::RegexBuilder::new(&all.join("|")).size_limit(256 << 20).build().ok()
        });
        self.literals = Some(compiled.collect());
    }

    /// The known value of which a text is a spelling.
    fn known_value(&self, text: &str) -> Option<(&str, &'static str)> {
        if let Some((value, kind)) = self.known.get_key_value(text) {
            return Some((value.as_str(), *kind));
        }
        let value = self.unescaped.get(&spellings::unescape(text).text)?;
        Some((value.as_str(), *self.known.get(value)?))
    }

    /// The redacted text; none if it contains no secret.
    fn redact(&mut self, text: &str, level: RedactionLevel) -> Option<String> {
        let mut now: Option<String> = None;
        for _ in 0..MAX_ROUNDS {
            let spans = self.spans(now.as_deref().unwrap_or(text), level);
            if spans.is_empty() {
                break;
            }
            let before = now.take();
            now = Some(self.replace(before.as_deref().unwrap_or(text), &spans));
        }
        now
    }

    fn replace(&mut self, text: &str, spans: &[Span]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for span in spans {
            out.push_str(text.get(at..span.at.start).unwrap_or_default());
            let label =
                self.placeholder_for(text.get(span.at.clone()).unwrap_or_default(), span.kind);
            out.push_str(&label);
            at = span.at.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    /// Counts a redaction and returns the placeholder of the secret.
    fn placeholder_for(&mut self, secret: &str, kind: &str) -> String {
        let label = self.label(secret, kind);
        let kind =
            label.trim_start_matches("[redacted:").split('#').next().unwrap_or_default().to_owned();
        *self.counts.entry(kind).or_default() += 1;
        label
    }

    fn label(&mut self, secret: &str, kind: &str) -> String {
        // The end of a sentence is not a part of the secret before it.
        let secret = trim_sentence(secret);
        let secret = self.known_value(secret).map_or(secret, |(value, _)| value).to_owned();
        if let Some(label) = self.labels.get(&secret) {
            return label.clone();
        }
        let number = self.numbers.entry(kind.to_owned()).or_default();
        *number += 1;
        let label = format!("[redacted:{kind}#{number}]");
        self.labels.insert(secret, label.clone());
        label
    }

    /// The secrets in a text, in order and without overlaps. Placeholders are skipped.
    fn spans(&self, text: &str, level: RedactionLevel) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut from = 0;
        for taken in self.finders.placeholder.find_iter(text) {
            self.search(text, from..taken.start(), level, &mut spans);
            from = taken.end();
        }
        self.search(text, from..text.len(), level, &mut spans);
        spans
    }

    fn search(
        &self,
        text: &str,
        within: Range<usize>,
        level: RedactionLevel,
        spans: &mut Vec<Span>,
    ) {
        let start = within.start;
        let Some(text) = text.get(within).filter(|text| !text.is_empty()) else { return };
        let mut found = self.private_keys(text);
        for literal in self.literals.iter().flatten() {
            found.extend(literal.find_iter(text).map(|found| {
                let kind = self.known_value(found.as_str()).map_or("secret", |(_, kind)| kind);
                Span { at: found.range(), kind }
            }));
        }
        found.extend(self.cut_values(text));
        for index in self.finders.any.matches(text) {
            let Some(finder) = self.finders.all.get(index) else { continue };
            if finder.by_context && level == RedactionLevel::KnownForms {
                continue;
            }
            found.extend(finder.regex.captures_iter(text).filter_map(|groups| {
                let named = ["s", "t", "u"].into_iter().find_map(|name| groups.name(name));
                let one = if finder.name == "pattern" { groups.get(1) } else { named };
                let secret = one.or_else(|| groups.get(0))?;
                let end = match finder.name {
                    "pattern" => secret.end(),
                    _ => secret.start() + trim_sentence(secret.as_str()).len(),
                };
                let at = secret.start()..end;
                (finder.accepts)(&text[at.clone()]).then_some(Span { at, kind: finder.name })
            }));
        }
        // Overlapping spans are merged.
        found.sort_by_key(|span| (span.at.start, std::cmp::Reverse(span.at.end)));
        let mut merged: Vec<Span> = Vec::new();
        for span in found {
            match merged.last_mut().filter(|last| span.at.start < last.at.end) {
                Some(last) => last.at.end = last.at.end.max(span.at.end),
                None => merged.push(span),
            }
        }
        let shifted = |span: Span| Span { at: span.at.start + start..span.at.end + start, ..span };
        spans.extend(merged.into_iter().map(shifted));
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    at: Range<usize>,
    kind: &'static str,
}

/// A part of a string to remove, and the secret that it belongs to. Only the first part of a secret
/// gets the placeholder.
#[derive(Clone, Debug)]
struct Cut {
    at: Range<usize>,
    secret: String,
    kind: &'static str,
    begins: bool,
}

impl Redactor {
    /// A text without the parts of secrets. Of parts that overlap, the first one counts, as far as
    /// both go.
    fn apply_cuts(&mut self, text: &str, mut cuts: Vec<Cut>) -> String {
        cuts.sort_by_key(|cut| (cut.at.start, std::cmp::Reverse(cut.at.end)));
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for cut in cuts {
            if cut.at.start >= from {
                out.push_str(text.get(from..cut.at.start).unwrap_or_default());
                if cut.begins {
                    let label = self.placeholder_for(&cut.secret, cut.kind);
                    out.push_str(&label);
                }
            }
            from = from.max(cut.at.end);
        }
        out.push_str(text.get(from..).unwrap_or_default());
        out
    }
}

/// A pattern that begins with a word boundary, which also begins after an escaped character: in JSON
/// in a string, `\n` before a secret ends with a letter.
fn after_escapes(form: &str) -> String {
    let (flags, form) = match form.strip_prefix("(?i)") {
        Some(form) => ("(?i)", form),
        None => ("", form),
    };
    let Some(rest) = form.strip_prefix(r"\b") else { return format!("{flags}{form}") };
    let named = if rest.contains("(?P<s>") { rest.to_owned() } else { format!("(?P<s>{rest})") };
    format!(r"{flags}(?:\b|\\(?:[bfnrt]|u[0-9A-Fa-f]{{4}})){named}")
}

fn invalid(pattern: &str, why: &str) -> PatternError {
    PatternError { pattern: pattern.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests;
