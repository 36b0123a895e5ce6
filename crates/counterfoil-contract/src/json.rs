//! Strict JSON, parsed with jiter's cursor and an explicit stack: input cannot cause deep recursion,
//! numbers keep their exact digits, duplicate keys are detected, and the extent of every value is
//! recorded on request.

mod node;

pub(crate) use node::{Children, Node};

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use std::fmt;

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Syntax(String),
    /// The text ends inside the value.
    Truncated,
    /// `NaN` or an infinity, which are not JSON.
    NotANumber,
    /// Half of a surrogate pair, which is not valid text.
    LoneSurrogate,
    /// `true|false`: alternatives left over from a template.
    Placeholder,
    TooDeep,
    /// Something follows the value.
    Trailing,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax(message) => message,
            Self::Truncated => "the text ends inside a value",
            Self::NotANumber => "NaN and infinities are not JSON",
            Self::LoneSurrogate => "half of a surrogate pair is not text",
            Self::Placeholder => "a placeholder is not a value",
            Self::TooDeep => "the value is nested too deep",
            Self::Trailing => "something follows the value",
        })
    }
}

/// A fault and the byte where it was detected.
#[derive(Clone, Debug)]
pub(crate) struct ParseFault {
    pub(crate) fault: Fault,
    pub(crate) at: usize,
}

/// A parsed text.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// The extents, if requested.
    pub(crate) node: Option<Node>,
    /// Whether a key appears twice in one object.
    pub(crate) duplicates: bool,
    /// The ends of the values that differ from the one before under the same key.
    pub(crate) differing: HashSet<usize>,
}

struct Open {
    container: Value,
    key: Option<String>,
    key_extent: Option<(usize, usize)>,
    node: Node,
}

/// Parses exactly one JSON value, with optional whitespace around it.
pub(crate) fn parse(text: &str, max_depth: usize, with_nodes: bool) -> Result<Parsed, ParseFault> {
    Reader {
        text,
        jiter: Jiter::new(text.as_bytes()),
        max_depth,
        with_nodes,
        members: 0,
        duplicates: false,
        differing: HashSet::new(),
    }
    .read()
}

struct Reader<'t> {
    text: &'t str,
    jiter: Jiter<'t>,
    max_depth: usize,
    with_nodes: bool,
    /// The number of members of the last object. Objects in a list tend to have the same number.
    members: usize,
    duplicates: bool,
    differing: HashSet<usize>,
}

/// The most members for which space is reserved before they are read.
const MAX_RESERVED: usize = 16;

impl Reader<'_> {
    fn read(mut self) -> Result<Parsed, ParseFault> {
        let mut stack: Vec<Open> = Vec::new();
        let mut peek = self.jiter.peek().map_err(|error| self.fault(&error))?;
        loop {
            let start = self.jiter.current_index();
            // Read one value, or open a container and go on with its first element.
            let mut done = match peek {
                Peek::Object | Peek::Array => {
                    if stack.len() >= self.max_depth {
                        return Err(ParseFault { fault: Fault::TooDeep, at: start });
                    }
                    let mut node = Node { start, ..Node::default() };
                    if peek == Peek::Object {
                        if self.with_nodes {
                            node.children = Children::Members(Vec::new());
                        }
                        let mut open = Open {
                            container: Value::Object(Map::new()),
                            key: None,
                            key_extent: None,
                            node,
                        };
                        if let Some(next) = self.first_key(&mut open)? {
                            open.container = Value::Object(Map::with_capacity(self.members));
                            peek = next;
                            stack.push(open);
                            continue;
                        }
                        (open.container, open.node)
                    } else {
                        if self.with_nodes {
                            node.children = Children::Items(Vec::new());
                        }
                        let open = Open {
                            container: Value::Array(Vec::new()),
                            key: None,
                            key_extent: None,
                            node,
                        };
                        match self.jiter.known_array() {
                            Ok(Some(next)) => {
                                peek = next;
                                stack.push(open);
                                continue;
                            }
                            Ok(None) => (open.container, open.node),
                            Err(error) => return Err(self.fault(&error)),
                        }
                    }
                }
                _ => (self.scalar(peek)?, Node { start, ..Node::default() }),
            };
            // Close every container that this value completes.
            loop {
                done.1.end = self.jiter.current_index();
                let Some(open) = stack.last_mut() else {
                    self.jiter.finish().map_err(|_| self.trailing())?;
                    return Ok(Parsed {
                        value: done.0,
                        node: self.with_nodes.then_some(done.1),
                        duplicates: self.duplicates,
                        differing: self.differing,
                    });
                };
                let end = done.1.end;
                if let Some(same) = Self::attach(open, done, self.with_nodes) {
                    self.duplicates = true;
                    if !same {
                        self.differing.insert(end);
                    }
                }
                match self.step(&mut stack)? {
                    Some(next) => {
                        peek = next;
                        break;
                    }
                    None => match stack.pop() {
                        Some(open) => {
                            if let Value::Object(map) = &open.container {
                                self.members = map.len().min(MAX_RESERVED);
                            }
                            done = (open.container, open.node);
                        }
                        None => return Err(self.trailing()),
                    },
                }
            }
        }
    }

    /// Adds a finished value to its container. If the key was present already, says whether its value
    /// is the same.
    fn attach(open: &mut Open, (value, mut node): (Value, Node), with_nodes: bool) -> Option<bool> {
        match &mut open.container {
            Value::Object(map) => {
                let key = open.key.take().unwrap_or_default();
                if with_nodes {
                    node.key = open.key_extent.take();
                    if let Children::Members(members) = &mut open.node.children {
                        members.push((key.clone(), node));
                    }
                }
                match map.entry(key) {
                    Entry::Vacant(slot) => {
                        slot.insert(value);
                        None
                    }
                    Entry::Occupied(mut slot) => {
                        let same = *slot.get() == value;
                        slot.insert(value);
                        Some(same)
                    }
                }
            }
            Value::Array(items) => {
                items.push(value);
                if with_nodes && let Children::Items(nodes) = &mut open.node.children {
                    nodes.push(node);
                }
                None
            }
            _ => None,
        }
    }

    fn first_key(&mut self, open: &mut Open) -> Result<Option<Peek>, ParseFault> {
        let before = self.jiter.current_index() + 1;
        let key = match self.jiter.known_object() {
            Ok(key) => key.map(str::to_owned),
            Err(error) => return Err(self.fault(&error)),
        };
        self.after_key(open, key, before)
    }

    fn step(&mut self, stack: &mut [Open]) -> Result<Option<Peek>, ParseFault> {
        let Some(open) = stack.last_mut() else { return Ok(None) };
        if open.container.is_array() {
            return self.jiter.array_step().map_err(|error| self.fault(&error));
        }
        let before = self.jiter.current_index();
        let key = match self.jiter.next_key() {
            Ok(key) => key.map(str::to_owned),
            Err(error) => return Err(self.fault(&error)),
        };
        self.after_key(open, key, before)
    }

    fn after_key(
        &mut self,
        open: &mut Open,
        key: Option<String>,
        before: usize,
    ) -> Result<Option<Peek>, ParseFault> {
        let Some(key) = key else { return Ok(None) };
        if self.with_nodes {
            open.key_extent = Some(self.key_extent(before));
        }
        open.key = Some(key);
        self.jiter.peek().map(Some).map_err(|error| self.fault(&error))
    }

    /// The extent of the key that the cursor has just read: the first string after `before`.
    fn key_extent(&self, before: usize) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let start = memchr::memchr(b'"', &bytes[before..]).map_or(before, |at| before + at);
        let mut at = start + 1;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
        {
            at += found;
            if bytes[at] == b'"' {
                return (start, at + 1);
            }
            at += 2;
        }
        (start, bytes.len())
    }

    fn scalar(&mut self, peek: Peek) -> Result<Value, ParseFault> {
        let start = self.jiter.current_index();
        match peek {
            Peek::String => self.jiter.known_str().map(|text| Value::String(text.to_owned())),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(Value::Bool),
            Peek::Null => self.jiter.known_null().map(|()| Value::Null),
            Peek::NaN | Peek::Infinity => {
                return Err(ParseFault { fault: Fault::NotANumber, at: start });
            }
            _ if peek.is_num() => {
                if self
                    .text
                    .get(start + 1..)
                    .is_some_and(|rest| peek == Peek::Minus && rest.starts_with('I'))
                {
                    return Err(ParseFault { fault: Fault::NotANumber, at: start });
                }
                match self.jiter.known_number_bytes(peek) {
                    Ok(digits) => match exact_number(digits) {
                        Some(number) => return Ok(Value::Number(number)),
                        None => {
                            return Err(ParseFault {
                                fault: Fault::Syntax("invalid number".into()),
                                at: start,
                            });
                        }
                    },
                    Err(error) => Err(error),
                }
            }
            _ => {
                return Err(ParseFault {
                    fault: Fault::Syntax("expected a value".into()),
                    at: start,
                });
            }
        }
        .map_err(|error| self.fault(&error))
    }

    /// The escape with half of a surrogate pair right before `at`.
    fn half_pair(&self, at: usize) -> Option<usize> {
        let from = at.saturating_sub(12);
        let near = &self.text.as_bytes()[from..(at + 1).min(self.text.len())];
        let mut end = near.len();
        while let Some(escape) = memchr::memmem::rfind(&near[..end], b"\\u") {
            let half = near.get(escape + 2..escape + 4).is_some_and(
                |hex| matches!(hex, [b'd' | b'D', second] if !matches!(second, b'0'..=b'7')),
            );
            if half {
                return Some(from + escape);
            }
            end = escape;
        }
        None
    }

    /// Where a `NaN` or an infinity begins, at `at` or right before it.
    fn not_a_number(&self, at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        (at.saturating_sub(1)..=at).find(|from| {
            [b"nan".as_slice(), b"inf", b"-inf", b"-nan"].iter().any(|word| {
                bytes
                    .get(*from..*from + word.len())
                    .is_some_and(|head| head.eq_ignore_ascii_case(word))
            })
        })
    }

    fn trailing(&self) -> ParseFault {
        let rest = &self.text[self.jiter.current_index()..];
        let at = self.text.len() - rest.trim_start().len();
        ParseFault { fault: Fault::Trailing, at }
    }

    fn fault(&self, error: &JiterError) -> ParseFault {
        let at = error.index.min(self.text.len());
        let JiterErrorType::JsonError(kind) = &error.error_type else {
            return ParseFault { fault: Fault::Syntax(error.error_type.to_string()), at };
        };
        let rest = &self.text.as_bytes()[at..];
        let fault = match kind {
            JsonErrorType::EofWhileParsingList
            | JsonErrorType::EofWhileParsingObject
            | JsonErrorType::EofWhileParsingString
            | JsonErrorType::EofWhileParsingValue => Fault::Truncated,
            JsonErrorType::LoneLeadingSurrogateInHexEscape
            | JsonErrorType::InvalidUnicodeCodePoint => {
                return ParseFault {
                    fault: Fault::LoneSurrogate,
                    at: self.half_pair(at).unwrap_or(at),
                };
            }
            JsonErrorType::UnexpectedEndOfHexEscape if self.half_pair(at).is_some() => {
                return ParseFault {
                    fault: Fault::LoneSurrogate,
                    at: self.half_pair(at).unwrap_or(at),
                };
            }
            JsonErrorType::ExpectedListCommaOrEnd | JsonErrorType::ExpectedObjectCommaOrEnd
                if rest.first() == Some(&b'|') =>
            {
                Fault::Placeholder
            }
            JsonErrorType::ExpectedSomeIdent
            | JsonErrorType::ExpectedSomeValue
            | JsonErrorType::InvalidNumber
                if self.not_a_number(at).is_some() =>
            {
                return ParseFault {
                    fault: Fault::NotANumber,
                    at: self.not_a_number(at).unwrap_or(at),
                };
            }
            other => Fault::Syntax(other.to_string()),
        };
        ParseFault { fault, at }
    }
}

/// A number with its digits unchanged.
fn exact_number(digits: &[u8]) -> Option<Number> {
    let text = std::str::from_utf8(digits).ok()?;
    // Most numbers are short integers; the general path validates the grammar again.
    if digits.len() < 18
        && digits.iter().all(u8::is_ascii_digit)
        && (digits.len() == 1 || digits[0] != b'0')
    {
        return text.parse::<u64>().ok().map(Number::from);
    }
    text.parse().ok()
}

/// A key that appears again in one object.
#[derive(Debug)]
pub(crate) struct DuplicateKey {
    pub(crate) pointer: String,
    /// The extent of the later key.
    pub(crate) key: (usize, usize),
    /// Whether its value differs from the one before.
    pub(crate) differs: bool,
}

/// The keys of a JSON text that appear twice in one object, in the order of the text.
pub(crate) fn duplicate_keys(text: &str, max_depth: usize) -> Vec<DuplicateKey> {
    let Ok(parsed) = parse(text, max_depth, true) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open: Vec<(&Node, String)> = Vec::new();
    open.extend(parsed.node.as_ref().map(|root| (root, String::new())));
    while let Some((node, pointer)) = open.pop() {
        match &node.children {
            Children::None => {}
            Children::Items(items) => {
                open.extend(
                    items.iter().enumerate().map(|(i, child)| (child, format!("{pointer}/{i}"))),
                );
            }
            Children::Members(members) => {
                let mut seen = HashSet::new();
                for (key, child) in members {
                    let child_pointer = format!("{pointer}/{}", escape(key));
                    if !seen.insert(key.as_str()) {
                        found.push(DuplicateKey {
                            pointer: child_pointer.clone(),
                            key: child.key.unwrap_or((child.start, child.end)),
                            differs: parsed.differing.contains(&child.end),
                        });
                    }
                    open.push((child, child_pointer));
                }
            }
        }
    }
    found.sort_by_key(|duplicate| duplicate.key);
    found
}

/// A key as a token of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    if key.contains(['~', '/']) {
        key.replace('~', "~0").replace('/', "~1")
    } else {
        key.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Parsed {
        parse(text, 128, true).unwrap()
    }

    fn fault(text: &str) -> Fault {
        parse(text, 128, false).unwrap_err().fault
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text =
            "[12345678901234567890123, 0.1000000000000000055511151231257827, 1e400, -0, 1.0]";
        assert_eq!(read(text).value.to_string(), text.replace(' ', "").replace("1e400", "1e+400"));
    }

    #[test]
    fn extents_are_those_of_the_text() {
        let text = r#" {"a" : [1, "x\"y"], "b":{} } "#;
        let node = read(text).node.unwrap();
        let at = |pointer: &str| {
            let (node, all) = node.locate(pointer);
            assert!(all);
            &text[node.start..node.end]
        };
        assert_eq!(at(""), text.trim());
        assert_eq!(at("/a"), r#"[1, "x\"y"]"#);
        assert_eq!(at("/a/1"), r#""x\"y""#);
        assert_eq!(at("/b"), "{}");
        let (start, end) = node.locate("/a").0.key.unwrap();
        assert_eq!(&text[start..end], "\"a\"");
    }

    #[test]
    fn faults_have_kinds() {
        assert_eq!(fault(r#"{"a": 1"#), Fault::Truncated);
        assert_eq!(fault(r#"{"a": NaN}"#), Fault::NotANumber);
        assert_eq!(fault(r#"{"a": -Infinity}"#), Fault::NotANumber);
        assert_eq!(fault(r#"{"a": "\ud800"}"#), Fault::LoneSurrogate);
        assert_eq!(fault(r#"{"a": true|false}"#), Fault::Placeholder);
        assert_eq!(fault(r#"{"a": 1} x"#), Fault::Trailing);
        assert!(matches!(fault(r#"{"a": 1,}"#), Fault::Syntax(_)));
        assert!(matches!(fault(r#"{"a": 01}"#), Fault::Syntax(_)));
    }

    #[test]
    fn depth_is_limited_without_recursion() {
        let deep = "[".repeat(100_000);
        assert_eq!(fault(&deep), Fault::TooDeep);
        let just = format!("{}{}", "[".repeat(128), "]".repeat(128));
        assert!(parse(&just, 128, false).is_ok());
        assert!(parse(&just, 127, false).is_err());
    }

    #[test]
    fn a_duplicate_key_is_noticed_and_the_last_wins() {
        let text = r#"{"a": {"x": [1]}, "b": {"c": 1, "c": 2}, "a": {"x": [1]}}"#;
        let parsed = read(text);
        assert!(parsed.duplicates);
        assert_eq!(parsed.value.to_string(), r#"{"a":{"x":[1]},"b":{"c":2}}"#);
        let found: Vec<_> = duplicate_keys(text, 128)
            .into_iter()
            .map(|duplicate| (duplicate.pointer, duplicate.differs))
            .collect();
        assert_eq!(found, [("/b/c".to_owned(), true), ("/a".to_owned(), false)]);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_writes(value in json()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(read(&text).value, value);
        }

        #[test]
        fn agrees_with_serde_json_on_any_text(text in r#"[\[\]{}",:0-9a-z\\ -]{0,24}"#) {
            let ours = parse(&text, 128, false).ok().map(|parsed| parsed.value);
            let theirs = serde_json::from_str::<Value>(&text).ok();
            prop_assert_eq!(ours, theirs);
        }
    }
}
