//! Strict JSON, parsed with jiter's cursor and an explicit stack: input cannot cause deep recursion,
//! numbers keep their exact digits, duplicate keys are detected, and the extent of every value is
//! recorded on request.

mod beginning;
mod duplicates;
mod node;

pub(crate) use beginning::{Beginning, parse_beginning};
pub(crate) use duplicates::duplicate_keys;
pub(crate) use node::{Children, Members, Node};

use crate::policy::Limits;
use crate::work;
use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
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
    /// There are more values than the limit.
    TooManyValues,
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
            Self::TooManyValues => "there are too many values",
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
    /// The value; null if it is not wanted.
    pub(crate) value: Value,
    /// The extents, if they are wanted.
    pub(crate) node: Option<Node>,
    /// Whether a key appears twice in one object.
    pub(crate) duplicates: bool,
    /// The ends of the values that differ from the one before under the same key.
    pub(crate) differing: HashSet<usize>,
}

struct Open {
    container: Value,
    /// The length of the path to it.
    path_bytes: usize,
    key: Option<String>,
    key_extent: Option<(usize, usize)>,
    node: Node,
}

impl Open {
    /// The length of the path to the value that comes next in it.
    fn path_bytes_inside(&self) -> usize {
        self.path_bytes + 1 + self.key.as_ref().map_or(1, String::len)
    }
}

/// Parses exactly one JSON value, with optional whitespace around it.
pub(crate) fn parse(text: &str, limits: Limits) -> Result<Parsed, ParseFault> {
    read(text, limits, Wanted::Value)
}

/// Parses a JSON value, and records the extents of all values in it.
fn parse_with_extents(text: &str, limits: Limits) -> Result<Parsed, ParseFault> {
    read(text, limits, Wanted::ValueAndExtents)
}

/// The extents of all values in a JSON value.
pub(crate) fn extents(text: &str, limits: Limits) -> Option<Node> {
    read(text, limits, Wanted::Extents).ok()?.node
}

fn read(text: &str, limits: Limits, wanted: Wanted) -> Result<Parsed, ParseFault> {
    work::count_text(text.len());
    Reader::new(text, limits, wanted).read(&mut Vec::new())
}

/// What a text is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Value,
    Extents,
    ValueAndExtents,
}

impl Wanted {
    fn value(self) -> bool {
        self != Self::Extents
    }

    fn extents(self) -> bool {
        self != Self::Value
    }
}

struct Reader<'t> {
    text: &'t str,
    jiter: Jiter<'t>,
    limits: Limits,
    /// The number of values so far. One with a long path counts more than once.
    values: usize,
    wanted: Wanted,
    /// The number of members of the last object. Objects in a list tend to have the same number.
    members: usize,
    duplicates: bool,
    differing: HashSet<usize>,
}

/// A value counts once more for so many bytes of its path: reports name values by their paths.
const PATH_BYTES_OF_A_VALUE: usize = 256;

/// The most members for which space is reserved before they are read.
const MAX_RESERVED: usize = 16;

impl<'t> Reader<'t> {
    fn new(text: &'t str, limits: Limits, wanted: Wanted) -> Self {
        Self {
            text,
            jiter: Jiter::new(text.as_bytes()),
            limits,
            values: 0,
            wanted,
            members: 0,
            duplicates: false,
            differing: HashSet::new(),
        }
    }

    /// Reads the text. After a fault, the stack has the containers that are open there.
    fn read(mut self, stack: &mut Vec<Open>) -> Result<Parsed, ParseFault> {
        let mut peek = self.jiter.peek().map_err(|error| self.fault(&error))?;
        loop {
            let start = self.jiter.current_index();
            let path_bytes = stack.last().map_or(0, Open::path_bytes_inside);
            self.values += 1 + path_bytes / PATH_BYTES_OF_A_VALUE;
            if self.values > self.limits.values {
                return Err(ParseFault { fault: Fault::TooManyValues, at: start });
            }
            // Read one value, or open a container and go on with its first element.
            let mut done = match peek {
                Peek::Object | Peek::Array => {
                    if stack.len() >= self.limits.depth {
                        return Err(ParseFault { fault: Fault::TooDeep, at: start });
                    }
                    let mut node = Node { start, ..Node::default() };
                    if peek == Peek::Object {
                        if self.wanted.extents() {
                            node.children = Children::Members(Members::default());
                        }
                        let mut open = Open {
                            container: Value::Object(Map::new()),
                            path_bytes,
                            key: None,
                            key_extent: None,
                            node,
                        };
                        if let Some(next) = self.first_key(&mut open)? {
                            if self.wanted.value() {
                                open.container = Value::Object(Map::with_capacity(self.members));
                            }
                            peek = next;
                            stack.push(open);
                            continue;
                        }
                        (open.container, open.node)
                    } else {
                        if self.wanted.extents() {
                            node.children = Children::Items(Vec::new());
                        }
                        let open = Open {
                            container: Value::Array(Vec::new()),
                            path_bytes,
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
                        node: self.wanted.extents().then_some(done.1),
                        duplicates: self.duplicates,
                        differing: self.differing,
                    });
                };
                let end = done.1.end;
                if let Some(same) = Self::attach(open, done, self.wanted) {
                    self.duplicates = true;
                    if !same {
                        self.differing.insert(end);
                    }
                }
                match self.step(stack)? {
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
    fn attach(open: &mut Open, (value, mut node): (Value, Node), wanted: Wanted) -> Option<bool> {
        match &mut open.container {
            Value::Object(map) => {
                let mut key = open.key.take().unwrap_or_default();
                if wanted.extents() {
                    node.key = open.key_extent.take();
                    let name = if wanted.value() { key.clone() } else { std::mem::take(&mut key) };
                    if let Children::Members(members) = &mut open.node.children {
                        members.push(name, node);
                    }
                }
                if !wanted.value() {
                    return None;
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
                if wanted.value() {
                    items.push(value);
                }
                if wanted.extents()
                    && let Children::Items(nodes) = &mut open.node.children
                {
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
        if self.wanted.extents() {
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
        if !self.wanted.value() {
            let skipped = self.jiter.known_skip(peek);
            return skipped.map(|()| Value::Null).map_err(|error| self.fault(&error));
        }
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

/// A key as a token of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    if key.contains(['~', '/']) {
        key.replace('~', "~0").replace('/', "~1")
    } else {
        key.to_owned()
    }
}

/// The key that a token of a JSON pointer stands for.
pub(crate) fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}

#[cfg(test)]
mod tests;
