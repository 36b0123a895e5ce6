//! Adding to a JSON file and taking out again, with everything else left byte for byte. No I/O.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// Something of ours in a JSON file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry<'e> {
    /// The keys to it.
    pub(crate) path: &'e [String],
    /// What it is.
    pub(crate) value: &'e Value,
    /// Whether it is an item of the list at the path, rather than what stands there.
    pub(crate) item: bool,
}

/// The text with an entry more. Keys on the way to it are made if they are missing. The error says
/// what is in the way.
pub(crate) fn add(text: &str, entry: &Entry<'_>) -> Result<String, String> {
    let at_root = read(text)?;
    let mut node = at_root;
    for (depth, key) in entry.path.iter().enumerate() {
        let members = members(node, &entry.path[..depth])?;
        match members.iter().find(|(name, _)| name == key) {
            Some((_, inner)) => node = inner,
            None => {
                let mut value = if entry.item {
                    Value::Array(vec![entry.value.clone()])
                } else {
                    entry.value.clone()
                };
                for key in entry.path[depth + 1..].iter().rev() {
                    value = Value::Object([(key.clone(), value)].into_iter().collect());
                }
                let values: Vec<&RawValue> = members.iter().map(|(_, value)| *value).collect();
                return Ok(insert(text, node, &values, Some(key), &value));
            }
        }
    }
    if entry.item {
        let items = items(node, entry.path)?;
        return Ok(insert(text, node, &items, None, entry.value));
    }
    Err(format!("{} is there already", place(entry.path)))
}

/// The text without an entry; none if it is not there as it was added. Keys that hold nothing then
/// stay.
pub(crate) fn remove(text: &str, entry: &Entry<'_>) -> Option<String> {
    let (node, above) = find(text, entry.path)?;
    let (values, at) = if entry.item {
        let items = items(node, entry.path).ok()?;
        let at = items.iter().position(|item| is(item, entry.value))?;
        (items, at)
    } else {
        let members = members(above?, entry.path).ok()?;
        let at =
            members.iter().position(|(_, value)| value.get().as_ptr() == node.get().as_ptr())?;
        if !is(node, entry.value) {
            return None;
        }
        (members.into_iter().map(|(_, value)| value).collect(), at)
    };
    let container = if entry.item { node } else { above? };
    Some(cut(text, container, &values, at))
}

/// The value at a path.
pub(crate) fn get(text: &str, path: &[String]) -> Option<Value> {
    find(text, path).and_then(|(node, _)| serde_json::from_str(node.get()).ok())
}

/// Whether a text holds a JSON object; the error says why not, and the way out.
pub(crate) fn check(text: &str) -> Result<(), String> {
    members(read(text)?, &[]).map(|_| ())
}

/// What stands at a path, and what it stands in.
fn find<'t>(text: &'t str, path: &[String]) -> Option<(&'t RawValue, Option<&'t RawValue>)> {
    let mut node = read(text).ok()?;
    let mut above = None;
    for (depth, key) in path.iter().enumerate() {
        let (_, inner) =
            members(node, &path[..depth]).ok()?.into_iter().find(|(name, _)| name == key)?;
        above = Some(node);
        node = inner;
    }
    Some((node, above))
}

fn read(text: &str) -> Result<&RawValue, String> {
    serde_json::from_str(text).map_err(|error| {
        let comments =
            text.lines().any(|line| line.trim_start().starts_with("//") || line.contains("/*"));
        let why =
            if comments { "it has comments, which strict JSON has not" } else { "it is not JSON" };
        format!("{why} ({error}); it is left as it is")
    })
}

fn is(node: &RawValue, value: &Value) -> bool {
    serde_json::from_str::<Value>(node.get()).is_ok_and(|found| found == *value)
}

/// The members of an object, in order, with their places.
fn members<'t>(node: &'t RawValue, path: &[String]) -> Result<Vec<(String, &'t RawValue)>, String> {
    let Ok(Members(members)) = serde_json::from_str(node.get()) else {
        return Err(format!("{} is not an object; it is left as it is", place(path)));
    };
    for (at, (name, _)) in members.iter().enumerate() {
        if members[..at].iter().any(|(before, _)| before == name) {
            return Err(format!("it has the key {name:?} twice; it is left as it is"));
        }
    }
    Ok(members)
}

fn items<'t>(node: &'t RawValue, path: &[String]) -> Result<Vec<&'t RawValue>, String> {
    match serde_json::from_str(node.get()) {
        Ok(Items(items)) => Ok(items),
        Err(_) => Err(format!("{} is not a list; it is left as it is", place(path))),
    }
}

fn place(path: &[String]) -> String {
    if path.is_empty() { "it".to_owned() } else { path.join(".") }
}

/// Where a part of a text stands in it.
fn offset(text: &str, part: &RawValue) -> usize {
    part.get().as_ptr().addr() - text.as_ptr().addr()
}

fn end(text: &str, part: &RawValue) -> usize {
    offset(text, part) + part.get().len()
}

/// Adds a member or an item behind the last, laid out as those before it are.
fn insert(
    text: &str,
    container: &RawValue,
    values: &[&RawValue],
    key: Option<&str>,
    value: &Value,
) -> String {
    let open = offset(text, container) + 1;
    let inside = &text[open..end(text, container) - 1];
    let space = &inside[..inside.len() - inside.trim_start().len()];
    let line = text[..open].rfind('\n').map_or(0, |line| line + 1);
    let base: String =
        text[line..open].chars().take_while(|char| matches!(char, ' ' | '\t')).collect();
    let unit = unit(text);
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let named = |indentation: Option<&str>| {
        let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
        key + &laid_out(value, indentation, &unit, newline)
    };
    let (at, added) = match values.last() {
        Some(last) if space.contains('\n') => {
            let indentation = &space[space.rfind('\n').map_or(0, |newline| newline + 1)..];
            (end(text, last), format!(",{newline}{indentation}{}", named(Some(indentation))))
        }
        Some(last) => (end(text, last), format!(", {}", named(None))),
        None => {
            let indentation = base.clone() + &unit;
            let close =
                if space.contains('\n') { String::new() } else { format!("{newline}{base}") };
            (open, format!("{newline}{indentation}{}{close}", named(Some(&indentation))))
        }
    };
    format!("{}{added}{}", &text[..at], &text[at..])
}

/// Takes a member or an item out: what was added is gone, and the rest is as before.
fn cut(text: &str, container: &RawValue, values: &[&RawValue], at: usize) -> String {
    let open = offset(text, container) + 1;
    let behind = end(text, values[at]);
    let (from, to) = match (at.checked_sub(1).map(|before| values[before]), values.get(at + 1)) {
        (Some(before), _) => (end(text, before), behind),
        (None, Some(_)) => {
            (open, text[behind..].find(',').map_or(behind, |comma| behind + comma + 1))
        }
        (None, None) => (open, end(text, container) - 1),
    };
    format!("{}{}", &text[..from], &text[to..])
}

/// The indentation of a file: that of its first line that has one.
fn unit(text: &str) -> String {
    let indented =
        text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    let unit: String =
        indented.unwrap_or("  ").chars().take_while(|char| matches!(char, ' ' | '\t')).collect();
    if unit.len() > 8 { "  ".to_owned() } else { unit }
}

/// A value as text: on one line, or on several, with an indentation before all but the first.
fn laid_out(value: &Value, indentation: Option<&str>, unit: &str, newline: &str) -> String {
    let Some(indentation) = indentation else { return value.to_string() };
    let (open, close, inner): (_, _, Vec<String>) = match value {
        // Lists of plain values are short: `["mcp"]`.
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            return format!(
                "[{}]",
                items.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
            );
        }
        Value::Array(items) => {
            let deeper = format!("{indentation}{unit}");
            (
                "[",
                "]",
                items.iter().map(|item| laid_out(item, Some(&deeper), unit, newline)).collect(),
            )
        }
        Value::Object(members) if !members.is_empty() => {
            let deeper = format!("{indentation}{unit}");
            let member = |(key, value): (&String, &Value)| {
                format!(
                    "{}: {}",
                    Value::from(key.as_str()),
                    laid_out(value, Some(&deeper), unit, newline)
                )
            };
            ("{", "}", members.iter().map(member).collect())
        }
        other => return other.to_string(),
    };
    let lines = inner.join(&format!(",{newline}{indentation}{unit}"));
    format!("{open}{newline}{indentation}{unit}{lines}{newline}{indentation}{close}")
}

/// A new file with one object in it.
pub(crate) const EMPTY: &str = "{}\n";

struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reading)
    }
}

struct Items<'t>(Vec<&'t RawValue>);

impl<'de: 't, 't> Deserialize<'de> for Items<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element::<&RawValue>()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    fn added(text: &str, keys: &str, value: &Value, item: bool) -> Result<String, String> {
        add(text, &Entry { path: &path(keys), value, item })
    }

    #[test]
    fn what_is_added_is_laid_out_as_the_rest() {
        let server = json!({"command": "counterfoil", "args": ["mcp"]});
        let cases = [
            ("{}\n", "a new file"),
            ("{\n}\n", "empty, on two lines"),
            ("{\n    \"theme\": \"dark\"\n}", "four spaces, no newline at the end"),
            ("{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}\n", "tabs"),
            ("{\"mcpServers\": {\"other\": {\"command\": \"x\"}}, \"z\": 1}", "one line"),
            ("{\n  \"mcpServers\": {},\n  \"z\": [1, 2, 3]\n}\n", "an empty object in it"),
            ("{\r\n  \"z\": 1\r\n}\r\n", "lines that end as on Windows"),
        ];
        let shown: String = cases
            .iter()
            .map(|(text, name)| {
                let new = added(text, "mcpServers.counterfoil", &server, false).unwrap();
                assert_eq!(
                    get(&new, &path("mcpServers.counterfoil")),
                    Some(server.clone()),
                    "{name}"
                );
                format!("## {name}\n{}\n", new.replace('\t', "→").replace('\r', "␍"))
            })
            .collect();
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn an_item_goes_behind_the_others() {
        let hook = json!({"hooks": [{"type": "command", "command": "ours"}]});
        let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n";
        let new = added(text, "hooks.Stop", &hook, true).unwrap();
        assert_eq!(get(&new, &path("hooks.Stop")), Some(json!([{"hooks": []}, hook])));
        assert_eq!(
            remove(&new, &Entry { path: &path("hooks.Stop"), value: &hook, item: true }).as_deref(),
            Some(text)
        );
        let new = added("{}\n", "hooks.Stop", &hook, true).unwrap();
        assert_eq!(get(&new, &path("hooks.Stop")), Some(json!([hook])));
    }

    #[test]
    fn what_is_in_the_way_is_named_and_nothing_is_touched() {
        for (text, said) in [
            ("", "it is not JSON"),
            ("{\"a\": 1,}", "it is not JSON"),
            ("// ours\n{}", "it has comments"),
            ("{\"a\": 1 /* one */}", "it has comments"),
            ("[]", "it is not an object"),
            ("{\"hooks\": []}", "hooks is not an object"),
            ("{\"hooks\": {\"Stop\": {}}}", "hooks.Stop is not a list"),
            ("{\"hooks\": {}, \"hooks\": {}}", "the key \"hooks\" twice"),
            ("\u{feff}{}", "it is not JSON"),
        ] {
            let error = added(text, "hooks.Stop", &json!({}), true).unwrap_err();
            assert!(error.contains(said) && error.ends_with("left as it is"), "{text}: {error}");
        }
    }

    #[test]
    fn whatever_stands_around_it_stays_when_it_is_taken_out() {
        let value = json!({"b": [1]});
        let ours = "\"x\": {\"b\": [1]}";
        for (text, left) in [
            (format!("{{{ours}}}"), "{}"),
            (format!("{{\n  {ours}\n}}\n"), "{}\n"),
            (format!("{{\n  {ours},\n  \"z\": 1\n}}"), "{\n  \"z\": 1\n}"),
            (format!("{{\n  \"a\": \",\" ,\n  {ours}\n}}"), "{\n  \"a\": \",\"\n}"),
            (format!("{{ \"a\": 1, {ours}, \"z\": 1 }}"), "{ \"a\": 1, \"z\": 1 }"),
        ] {
            let entry = Entry { path: &path("x"), value: &value, item: false };
            assert_eq!(remove(&text, &entry).as_deref(), Some(left), "{text}");
        }
        let other = Entry { path: &path("x"), value: &json!({"b": [2]}), item: false };
        assert_eq!(
            remove(&format!("{{{ours}}}"), &other),
            None,
            "somebody changed it: it is theirs"
        );
        assert_eq!(remove("{}", &Entry { path: &path("x"), value: &value, item: false }), None);
    }
}
