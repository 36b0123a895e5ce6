//! Recognises attempts: places in a text that try to be the result, well-formed or not.
//!
//! An object is an attempt if it has at least half of the required fields, or if at least half of
//! its own keys are fields of the contract. It may be wrapped in a few objects or lists. The keys
//! are read by a tolerant scan, so that an object that breaks counts with the keys before the
//! break. A template, in which every value is a placeholder, is not an attempt, unless the text ends
//! in it: nobody knows what would have followed.

use crate::expr::Type;
use crate::policy::Policy;
use crate::work;
use std::collections::HashMap;

/// The number of objects and lists around the result in which it is still recognised.
const MAX_WRAPPERS: usize = 3;

/// Keys whose values describe a result instead of being one: parts of a JSON Schema.
const SCHEMA_KEYS: [&str; 3] = ["properties", "$defs", "definitions"];

/// How much a part of a text resembles the result of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// It has no field of the contract.
    Unrelated,
    /// It has a field of the contract, but too few to be an attempt; or it is a template.
    Related,
    /// It tries to be the result.
    Attempt,
}

/// A field of the contract.
#[derive(Clone, Copy, Debug)]
struct KnownField {
    /// Its index among the required fields.
    required: Option<usize>,
}

/// The names by which attempts at one contract are recognised.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptKeys {
    /// The fields, by their normalised names.
    known: HashMap<String, KnownField>,
    /// The first letters of these names, one bit for each ASCII character.
    initials: u128,
    required: usize,
    /// Whether results have named fields at all.
    has_fields: bool,
    /// Whether a string may hold the result.
    in_strings: bool,
}

/// A key without case and separators: `filesModified` is `files_modified`.
fn normalise(key: &str) -> String {
    key.chars().filter(|c| !is_separator(*c)).flat_map(char::to_lowercase).collect()
}

fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | ' ')
}

impl AttemptKeys {
    pub(crate) fn new(ty: &Type, policy: &Policy) -> Self {
        let object = ty.object().or_else(|| ty.items().and_then(Type::object));
        let mut keys = Self {
            has_fields: object.is_some_and(|object| !object.fields.is_empty()),
            in_strings: policy.unwrap.strings,
            ..Self::default()
        };
        for (name, field) in object.iter().flat_map(|object| &object.fields) {
            let required = field.required.then_some(keys.required);
            keys.required += usize::from(field.required);
            keys.known.insert(normalise(name), KnownField { required });
        }
        for rename in policy.rename.iter().filter(|rename| !rename.at.contains('/')) {
            if let Some(field) = keys.known.get(&normalise(&rename.to)).copied() {
                keys.known.entry(normalise(&rename.from)).or_insert(field);
            }
        }
        keys.initials = keys
            .known
            .keys()
            .filter_map(|name| name.bytes().next().filter(u8::is_ascii))
            .fold(0u128, |initials, letter| initials | 1 << letter);
        keys
    }

    /// The field that a key names.
    fn field(&self, key: &str) -> Option<KnownField> {
        // Most keys of unrelated JSON differ in their first letter.
        if let Some(first) = key.bytes().next()
            && first.is_ascii_alphanumeric()
            && !self.is_initial(first)
        {
            return None;
        }
        self.known.get(&normalise(key)).copied()
    }

    /// Whether results have named fields, by which attempts are recognised.
    pub(crate) fn has_fields(&self) -> bool {
        self.has_fields
    }

    /// Whether a text can be the beginning of a key that names a field. Nothing can be.
    pub(crate) fn has_prefix(&self, text: &str) -> bool {
        let is_key = text.chars().all(|c| c.is_alphanumeric() || is_separator(c));
        let prefix = normalise(text);
        is_key && self.known.keys().any(|name| name.starts_with(&prefix))
    }

    /// Whether a key names a field of the contract.
    pub(crate) fn knows(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    /// Whether a key of strict JSON, as it stands between its quotes, may name a field. Whatever has
    /// no such key and no empty object is unrelated, unless strings may hold the result.
    pub(crate) fn may_know(&self, key: &[u8]) -> bool {
        match key.first() {
            Some(first) if first.is_ascii_alphanumeric() && !self.is_initial(*first) => false,
            _ => key.contains(&b'\\') || str::from_utf8(key).map_or(true, |key| self.knows(key)),
        }
    }

    /// Whether a string may hold the result.
    pub(crate) fn in_strings(&self) -> bool {
        self.in_strings
    }

    fn is_initial(&self, letter: u8) -> bool {
        letter.is_ascii() && self.initials & (1 << letter.to_ascii_lowercase()) != 0
    }

    /// Whether an object has at least half of the required fields.
    fn has_half(&self, found: u128) -> bool {
        let required = self.required.min(128);
        required > 0 && 2 * found.count_ones() as usize >= required
    }

    /// How much a piece of JSON, whole or broken, resembles the result; `cut_off` if the text ends
    /// in it.
    pub(crate) fn likeness(&self, json: &str, cut_off: bool) -> Likeness {
        work::count_text(json.len());
        let mut scan = KeyScan { keys: self, best: Likeness::Unrelated, values: Values::default() };
        scan.run(json, 0);
        if scan.best == Likeness::Attempt && !cut_off && scan.values.are_placeholders() {
            return Likeness::Related;
        }
        scan.best
    }
}

/// The keys of an open object.
#[derive(Clone, Debug)]
struct Frame {
    object: bool,
    /// Its content describes a schema.
    ignored: bool,
    keys: usize,
    known: usize,
    /// Which required fields it has.
    required: u128,
}

/// How many scalar values there are, and how many of them are placeholders.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    all: usize,
    placeholders: usize,
}

impl Values {
    fn are_placeholders(self) -> bool {
        self.all > 0 && self.placeholders == self.all
    }

    fn count(&mut self, value: &str) {
        self.all += 1;
        self.placeholders += usize::from(is_placeholder(value));
    }
}

struct KeyScan<'k> {
    keys: &'k AttemptKeys,
    best: Likeness,
    values: Values,
}

impl KeyScan<'_> {
    /// Reads the keys of every object that is not nested too deeply.
    fn run(&mut self, json: &str, wrappers: usize) {
        let bytes = json.as_bytes();
        let mut stack: Vec<Frame> = Vec::new();
        // Brackets that are open beyond those on the stack.
        let mut deeper = 0usize;
        let mut under_schema_key = false;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.is_decided() {
                return;
            }
            match byte {
                b'{' | b'[' => {
                    if deeper > 0 || stack.len() + wrappers > MAX_WRAPPERS {
                        deeper += 1;
                    } else {
                        let ignored = under_schema_key || stack.last().is_some_and(|f| f.ignored);
                        let object = byte == b'{';
                        stack.push(Frame { object, ignored, keys: 0, known: 0, required: 0 });
                    }
                    under_schema_key = false;
                    at += 1;
                }
                b'}' | b']' => {
                    if deeper > 0 {
                        deeper -= 1;
                    } else if let Some(frame) = stack.pop() {
                        self.judge(&frame);
                    }
                    at += 1;
                }
                _ => {
                    let Some(token) = Token::read(json, at) else {
                        at += 1;
                        continue;
                    };
                    at = token.end;
                    let colon = colon_after(bytes, at);
                    let frame = stack.last_mut().filter(|_| deeper == 0);
                    match (frame, colon) {
                        (Some(frame), Some(after)) if frame.object => {
                            let key = token.text(json);
                            frame.keys += 1;
                            if let Some(field) = self.keys.field(&key) {
                                frame.known += 1;
                                frame.required |= field.required.map_or(0, |i| 1 << (i % 128));
                                if !frame.ignored && self.keys.has_half(frame.required) {
                                    self.best = Likeness::Attempt;
                                }
                            }
                            under_schema_key =
                                SCHEMA_KEYS.contains(&key.as_ref()) && !self.keys.knows(&key);
                            at = after;
                            continue;
                        }
                        (_, Some(after)) => at = after,
                        (frame, None) => {
                            let wrapped = frame.is_some() && self.keys.in_strings && token.quoted;
                            self.value(
                                &token.text(json),
                                wrapped.then_some(wrappers + stack.len()),
                            );
                        }
                    }
                    under_schema_key = false;
                }
            }
        }
        for frame in &stack {
            self.judge(frame);
        }
    }

    /// Whether nothing that follows can change the answer.
    fn is_decided(&self) -> bool {
        self.best == Likeness::Attempt && self.values.placeholders < self.values.all
    }

    /// Counts a scalar value. A string may hold JSON, `wrappers` brackets deep.
    fn value(&mut self, text: &str, wrappers: Option<usize>) {
        self.values.count(text);
        if let Some(wrappers) = wrappers.filter(|wrappers| *wrappers <= MAX_WRAPPERS)
            && text.trim_start().starts_with(['{', '['])
        {
            self.run(text, wrappers);
        }
    }

    fn judge(&mut self, frame: &Frame) {
        if !frame.object || frame.ignored {
            return;
        }
        let attempt = self.keys.has_half(frame.required)
            || (frame.keys > 0 && 2 * frame.known >= frame.keys)
            || (frame.keys == 0 && self.keys.required == 0);
        let likeness = match (attempt, frame.known) {
            (true, _) => Likeness::Attempt,
            (false, 0) => Likeness::Unrelated,
            (false, _) => Likeness::Related,
        };
        self.best = self.best.max(likeness);
    }
}

/// A string or a bare word.
struct Token {
    start: usize,
    end: usize,
    quoted: bool,
    escaped: bool,
}

impl Token {
    /// The token that begins at `at`, if one does.
    fn read(json: &str, at: usize) -> Option<Self> {
        let bytes = json.as_bytes();
        match bytes[at] {
            b'"' => {
                let mut end = at + 1;
                let mut escaped = false;
                loop {
                    let rest = bytes.get(end..)?;
                    let Some(found) = memchr::memchr3(b'"', b'\\', b'\n', rest) else {
                        return Some(Self {
                            start: at + 1,
                            end: bytes.len(),
                            quoted: true,
                            escaped,
                        });
                    };
                    end += found;
                    match bytes[end] {
                        b'"' => break,
                        b'\\' => {
                            escaped = true;
                            end += 2;
                        }
                        // A string that breaks: what follows may be structure again.
                        _ => return Some(Self { start: at + 1, end, quoted: true, escaped }),
                    }
                }
                Some(Self { start: at + 1, end: end + 1, quoted: true, escaped })
            }
            b'\'' => {
                let rest = &bytes[at + 1..];
                let length = memchr::memchr2(b'\'', b'\n', rest)?;
                (rest[length] == b'\'').then_some(Self {
                    start: at + 1,
                    end: at + length + 2,
                    quoted: true,
                    escaped: false,
                })
            }
            0xe2 if json.get(at..).is_some_and(|rest| rest.starts_with(['“', '”', '‘', '’'])) =>
            {
                let rest = &json[at + 3..];
                let length = rest.find(['“', '”', '‘', '’', '\n'])?;
                Some(Self {
                    start: at + 3,
                    end: (at + 3 + length + 3).min(json.len()),
                    quoted: true,
                    escaped: false,
                })
            }
            byte if is_word(byte) => {
                let length =
                    bytes[at..].iter().position(|b| !is_word(*b)).unwrap_or(bytes.len() - at);
                Some(Self { start: at, end: at + length, quoted: false, escaped: false })
            }
            _ => None,
        }
    }

    /// Its text without quotes and escapes.
    fn text<'j>(&self, json: &'j str) -> std::borrow::Cow<'j, str> {
        let raw = json.get(self.start..self.end).unwrap_or_default();
        let raw = if self.quoted {
            raw.trim_end_matches(['"', '\'', '“', '”', '‘', '’'])
        } else {
            raw
        };
        if self.escaped
            && let Ok(text) = serde_json::from_str::<String>(&format!("\"{raw}\""))
        {
            return text.into();
        }
        raw.into()
    }
}

/// Bytes of a bare word. Placeholders such as `<path>` and `a|b` are words too.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'$' | b'-' | b'.' | b'+' | b'<' | b'>' | b'|' | b'/')
        || byte >= 0x80
}

/// The offset after a colon that follows, with only blanks in between.
fn colon_after(bytes: &[u8], at: usize) -> Option<usize> {
    let blanks = bytes[at..].iter().position(|byte| !byte.is_ascii_whitespace())?;
    (bytes[at + blanks] == b':').then_some(at + blanks + 1)
}

/// Whether a value is a placeholder: `<path>`, `...`, or alternatives such as `true|false`.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let in_angles = text.len() > 2 && text.starts_with('<') && text.ends_with('>');
    let alternatives = || {
        if !text.contains('|') {
            return false;
        }
        text.split('|').all(|part| {
            let part = part.trim();
            !part.is_empty()
                && part.len() <= 40
                && part.chars().all(|c| c.is_alphanumeric() || is_separator(c))
        })
    };
    in_angles || matches!(text, "..." | "…") || alternatives()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::strict_scan::{ScanEvent, Shape, StrictScan};
    use crate::policy::Unwrap;
    use proptest::prelude::*;
    use serde_json::json;

    fn keys() -> AttemptKeys {
        let schema = json!({"type": "object", "required": ["verdict", "file_count", "notes", "risk"],
            "properties": {"verdict": {}, "file_count": {}, "notes": {}, "risk": {}, "extra": {}}});
        let policy =
            Policy { unwrap: Unwrap { keys: Vec::new(), strings: true }, ..Policy::default() };
        AttemptKeys::new(&Type::from_schema(&schema), &policy)
    }

    #[test]
    fn half_of_the_required_or_of_the_own_keys_make_an_attempt() {
        let keys = keys();
        for text in [
            r#"{"verdict": "no", "notes": []}"#,
            r#"{"a": 1, "b": 2, "c": 3, "verdict": "no", "notes": []}"#,
            r#"{"verdict": "no"}"#,
            r#"{"extra": 1, "other": 2}"#,
            r#"{"VERDICT": "no", "FileCount": 2}"#,
            r#"{"verd\u0069ct": "no"}"#,
            r#"{"result": {"verdict": "no"}}"#,
            r#"[{"verdict": "no"}]"#,
            r#"{"type": "result", "data": [{"verdict": "no", "notes": []}], "cost": 1}"#,
            r#"{"result": "{\"verdict\": \"no\"}"}"#,
            r#"{"verdict": "no", "notes": ["cut"#,
            r#"{"verdict": "no", oops"#,
            "{verdict: no, notes: []}",
            "{'verdict': 'no'}",
            "{“verdict”: “no”}",
            r#"{"log": 1, "a": {"b": 2}, "verdict": "no", "notes": "x"#,
        ] {
            assert_eq!(keys.likeness(text, false), Likeness::Attempt, "{text}");
        }
    }

    #[test]
    fn unrelated_json_and_templates_are_no_attempts() {
        let keys = keys();
        for text in [
            r#"{"level": "info", "msg": "done"}"#,
            r#"{"compilerOptions": {"strict": true}}"#,
            r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "jest"}}"#,
            "[1, 2]",
            "{}",
            "[]",
            r#"{"text": "the verdict: none"}"#,
            r#"{"a": [[[{"verdict": "too deep"}]]]}"#,
        ] {
            assert_eq!(keys.likeness(text, false), Likeness::Unrelated, "{text}");
        }
        for text in [
            r#"{"a": 1, "b": 2, "verdict": "one of three keys"}"#,
            r#"{"verdict": "pass|fail", "notes": ["<what>"], "risk": "..."}"#,
            r#"{"verdict": pass|fail, "file_count": <n>}"#,
            r#"{"type": "object", "properties": {"verdict": {}, "notes": {}}, "verdict": 1, "x": 2}"#,
        ] {
            assert_eq!(keys.likeness(text, false), Likeness::Related, "{text}");
        }
    }

    #[test]
    fn a_template_that_the_text_cuts_off_is_an_attempt() {
        let text = r#"{"verdict": "pass|fail", "notes": <what>"#;
        assert_eq!(keys().likeness(text, false), Likeness::Related);
        assert_eq!(keys().likeness(text, true), Likeness::Attempt);
    }

    proptest! {
        #[test]
        fn what_has_no_wanted_key_is_unrelated(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", " ", "1", "\n", r#""verdict":"#, r#""Notes": "#,
                    r#""_risk":"#, r#""v\u0065rdict":"#, r#""\u0076erdict":"#, "\"\u{212a}\":",
                    r#""level":"#, r#""x""#, "{}", r#"{"a": 1}"#, "verdict: no", "'notes': 1",
                ]),
                0..16,
            ),
        ) {
            let text = pieces.concat();
            let schema = json!({"type": "object", "required": ["verdict"],
                "properties": {"verdict": {}, "notes": {}, "risk": {}, "k": {}}});
            let keys = AttemptKeys::new(&Type::from_schema(&schema), &Policy::default());
            let mut scan = StrictScan::new(0);
            scan.feed(text.as_bytes(), 0, true, &|key| keys.may_know(key));
            for event in scan.take_events() {
                if let ScanEvent::Value(found) = event
                    && matches!(found.shape, Shape::Closed { wanted: false, .. })
                {
                    let value = &text[found.start..found.end];
                    prop_assert_eq!(keys.likeness(value, false), Likeness::Unrelated, "{}", value);
                }
            }
        }
    }
}
