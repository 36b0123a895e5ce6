//! The items of a list on one line of a block: `[a, b]`, or a JSON list.

use crate::json::{self, Fault, ParseFault, Parsed};
use crate::policy::Limits;
use serde_json::Value;

/// Why the value of a line is not clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    /// A bracket is not closed, or closes nothing.
    Brackets,
    /// Something follows the list.
    AfterList,
    /// Quotes that do not make a JSON list.
    Quotes,
    /// Nothing is between two commas, or after the last one.
    EmptyItem,
    /// A comma is inside of brackets, so it may belong to an item.
    InnerComma,
    /// It has more items than a result may have values.
    TooMany,
    /// The value goes on in the lines below.
    Continued,
    /// There is no value on the line of the key, but there are lines below.
    Below,
}

impl Unclear {
    /// What is wrong with the value of a field.
    pub(super) fn message(self, key: &str) -> String {
        match self {
            Self::Brackets => format!("the brackets of `{key}` do not pair up"),
            Self::AfterList => format!("there is text after the list of `{key}`"),
            Self::Quotes => format!("the quotes in the list of `{key}` do not make a JSON list"),
            Self::EmptyItem => format!("an item in the list of `{key}` is empty"),
            Self::InnerComma => {
                format!("it is not clear which commas of `{key}` are between items")
            }
            Self::TooMany => format!("the list of `{key}` has too many items"),
            Self::Continued => format!("`{key}` goes on after its line"),
            Self::Below => format!("`{key}` has no value on its line, but there is text below it"),
        }
    }
}

/// The items of a list in brackets.
pub(super) fn items(text: &str, limits: Limits) -> Result<Vec<Value>, Unclear> {
    let first = text.strip_prefix('[').unwrap_or(text).trim_start();
    if first.starts_with(['"', '{', '[']) {
        match json::parse(text, limits) {
            Ok(Parsed { value: Value::Array(items), .. }) => return Ok(items),
            Err(ParseFault { fault: Fault::TooManyValues, .. }) => return Err(Unclear::TooMany),
            _ => {}
        }
    }
    let inner = inside(text)?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    if !inner.matches('"').count().is_multiple_of(2) {
        return Err(Unclear::Quotes);
    }
    let inner_commas = has_inner_comma(inner);
    let items: Vec<&str> =
        inner.split(", ").map(str::trim).take(limits.values.saturating_add(1)).collect();
    if items.len() > limits.values {
        return Err(Unclear::TooMany);
    }
    if items.iter().any(|item| item.starts_with(['"', '\'', '“', '‘', '”'])) {
        return Err(Unclear::Quotes);
    }
    if inner_commas {
        return Err(Unclear::InnerComma);
    }
    if items.iter().any(|item| item.trim_matches([',', ' ']).is_empty())
        || inner.trim().starts_with(',')
        || inner.trim().ends_with(',')
    {
        return Err(Unclear::EmptyItem);
    }
    Ok(items.into_iter().map(Value::from).collect())
}

/// The text between the brackets of a list.
fn inside(text: &str) -> Result<&str, Unclear> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => return Err(Unclear::Brackets),
            b']' => {
                depth -= 1;
                if depth == 0 && at + 1 < text.len() {
                    return Err(Unclear::AfterList);
                }
            }
            _ => {}
        }
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.filter(|_| depth == 0).ok_or(Unclear::Brackets)
}

/// Whether the square brackets of a text pair up.
pub(super) fn brackets_pair_up(text: &str) -> bool {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => return false,
            b']' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

/// Whether a separator is inside of quotes or of a pair of brackets.
fn has_inner_comma(inner: &str) -> bool {
    // The open brackets; one that never closes is only text.
    let mut open: Vec<u8> = Vec::new();
    // How many of them, from the first on, have a separator inside.
    let mut with_separator = 0;
    let mut counts = [0_usize; 256];
    let mut quoted = false;
    let bytes = inner.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'(' | b'[' | b'{' => {
                open.push(*byte);
                counts[usize::from(*byte)] += 1;
            }
            b')' | b']' | b'}' => {
                let opener = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if counts[usize::from(opener)] == 0 {
                    continue;
                }
                while let Some(kind) = open.pop() {
                    counts[usize::from(kind)] -= 1;
                    if kind == opener {
                        break;
                    }
                }
                if with_separator > open.len() {
                    return true;
                }
            }
            b',' if bytes.get(at + 1) == Some(&b' ') => {
                if quoted {
                    return true;
                }
                with_separator = open.len();
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_of_a_list() {
        for (text, value) in [
            ("[]", json!([])),
            ("[ ]", json!([])),
            ("[a, b]", json!(["a", "b"])),
            ("[a,b]", json!(["a,b"])),
            ("[\"a, b\", \"c\"]", json!(["a, b", "c"])),
            ("[\"a] b\", \"[c\"]", json!(["a] b", "[c"])),
            ("[1, 2]", json!(["1", "2"])),
            ("[say \"hi\", b]", json!(["say \"hi\"", "b"])),
            ("[fix a[0], f(x) fails]", json!(["fix a[0]", "f(x) fails"])),
            ("[1) first, 2) second]", json!(["1) first", "2) second"])),
            ("[sad :(, glad :(]", json!(["sad :(", "glad :("])),
            ("[it's late, don't]", json!(["it's late", "don't"])),
            ("[{\"a\": 1}, {\"b\": [2]}]", json!([{"a": 1}, {"b": [2]}])),
        ] {
            assert_eq!(items(text, Limits::of_depth(8)).map(Value::from), Ok(value), "{text}");
        }
    }

    #[test]
    fn lists_that_are_not_clear() {
        for (text, why) in [
            ("[a, b", Unclear::Brackets),
            ("[a, b[0]", Unclear::Brackets),
            ("[", Unclear::Brackets),
            ("[a]]", Unclear::AfterList),
            ("[a, b] and c", Unclear::AfterList),
            ("[a], [b]", Unclear::AfterList),
            ("[a, b],", Unclear::AfterList),
            ("[\"a\", \"b\"],", Unclear::AfterList),
            ("[\"a, \"b\"]", Unclear::Quotes),
            ("[\"a\", b]", Unclear::Quotes),
            ("['a', 'b']", Unclear::Quotes),
            ("['a, b', c]", Unclear::Quotes),
            ("[\"a\", \"b\",]", Unclear::Quotes),
            ("[a, b,]", Unclear::EmptyItem),
            ("[a, b, ]", Unclear::EmptyItem),
            ("[a, , b]", Unclear::EmptyItem),
            ("[,]", Unclear::EmptyItem),
            ("[, a]", Unclear::EmptyItem),
            ("[f(a, b) fails]", Unclear::InnerComma),
            ("[say \"a, b\", c]", Unclear::InnerComma),
            ("[x [a, b] y, z]", Unclear::InnerComma),
        ] {
            assert_eq!(items(text, Limits::of_depth(8)), Err(why), "{text}");
        }
    }
}
