//! Format-preserving edits of JSON files: everything but the added entry keeps its bytes. No I/O.
//!
//! `jsonc-parser` appends and removes on its syntax tree, which keeps white space and line endings.
//! Two things it does not do, so they are done here. It reflows an object or list that is written
//! on one line; this would change text that is not ours, so there the entry is spliced into the
//! line. It also accepts more than JSON (comments, trailing commas, duplicate keys), which the
//! programs that read these files do not; such files are refused.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

/// The text of a new file: an empty object.
pub(crate) const EMPTY: &str = "{}\n";

/// An entry that this program adds to a JSON file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonEntry<'e> {
    /// The keys that lead to the entry.
    pub(crate) path: &'e [String],
    /// The value that is added.
    pub(crate) value: &'e Value,
    /// Whether the value is an item of the list at the path, rather than the member at the path.
    pub(crate) is_item: bool,
}

/// Returns the text with the entry added. Missing keys on the path are created. The error says why
/// the entry cannot be added.
pub(crate) fn add(text: &str, entry: &JsonEntry<'_>) -> Result<String, String> {
    let root = parse(text)?;
    let mut node = root_value(&root)?;
    for (depth, key) in entry.path.iter().enumerate() {
        let object = as_object(&node, &entry.path[..depth])?;
        match members(&object)?.into_iter().find(|(name, _)| name == key) {
            Some((_, member)) => node = member_value(&member)?,
            None => {
                let value = nested_value(entry, depth);
                return Ok(insert(text, &root, &Container::Object(object, key), &value));
            }
        }
    }
    if entry.is_item {
        let array = as_array(&node, entry.path)?;
        return Ok(insert(text, &root, &Container::Array(array), entry.value));
    }
    Err(format!("{} already exists", display_path(entry.path)))
}

/// Returns the text without the entry, or none if the entry is missing or was changed. Keys that
/// are empty afterwards stay.
pub(crate) fn remove(text: &str, entry: &JsonEntry<'_>) -> Option<String> {
    let root = parse(text).ok()?;
    let (node, member) = find(&root, entry.path)?;
    if entry.is_item {
        let items = as_array(&node, entry.path).ok()?.elements();
        items.into_iter().find(|item| equals(item, entry.value))?.remove();
    } else if equals(&node, entry.value) {
        member?.remove();
    } else {
        return None;
    }
    Some(root.to_string())
}

/// Returns the value at a path.
pub(crate) fn get(text: &str, path: &[String]) -> Option<Value> {
    let (node, _) = find(&parse(text).ok()?, path)?;
    serde_json::from_str(&node.to_string()).ok()
}

/// Checks that a text is a JSON object. The error says what is wrong.
pub(crate) fn validate(text: &str) -> Result<(), String> {
    let root = parse(text)?;
    members(&as_object(&root_value(&root)?, &[])?).map(|_| ())
}

/// An object or a list that gets a new entry.
enum Container<'k> {
    /// An object, and the key of the new member.
    Object(CstObject, &'k str),
    /// A list.
    Array(CstArray),
}

impl Container<'_> {
    fn append(&self, value: &Value) {
        match self {
            Self::Object(object, key) => {
                object.append(key, to_input(value));
            }
            Self::Array(array) => {
                array.append(to_input(value));
            }
        }
    }

    fn last_child(&self) -> Option<CstNode> {
        match self {
            Self::Object(object, _) => object.properties().pop().map(CstNode::from),
            Self::Array(array) => array.elements().pop(),
        }
    }

    fn node(&self) -> CstNode {
        match self {
            Self::Object(object, _) => object.clone().into(),
            Self::Array(array) => array.clone().into(),
        }
    }

    /// The white space between the opening bracket and the first child or the closing bracket.
    fn leading_space(&self) -> String {
        let text = self.node().to_string();
        let inside = text.get(1..).unwrap_or_default();
        inside[..inside.len() - inside.trim_start().len()].to_owned()
    }
}

/// Adds a value behind the last child of a container, formatted like its neighbours.
///
/// Appending on the syntax tree may also change white space elsewhere in the container. Only the
/// text of the new child, with the separator before it, is taken from there.
fn insert(text: &str, root: &CstRootNode, container: &Container<'_>, value: &Value) -> String {
    let last = container.last_child();
    let is_multiline = container.leading_space().contains('\n');
    let at = last.as_ref().map_or_else(|| content_offset(container), end_offset);
    let added = if last.is_some() && !is_multiline {
        let key = match container {
            Container::Object(_, key) => format!("{}: ", Value::from(*key)),
            Container::Array(_) => String::new(),
        };
        format!(", {key}{value}")
    } else {
        container.append(value);
        let from = last.as_ref().map_or_else(|| content_offset(container), end_offset);
        let to = match container.last_child() {
            // The white space before the closing bracket is there already.
            Some(child) if last.is_some() || is_multiline => end_offset(&child),
            _ => end_offset(&container.node()) - 1,
        };
        root.to_string()[from..to].to_owned()
    };
    format!("{}{added}{}", &text[..at], &text[at..])
}

/// The byte offset behind the opening bracket of a container.
fn content_offset(container: &Container<'_>) -> usize {
    let node = container.node();
    end_offset(&node) - node.to_string().len() + 1
}

/// The byte offset at which a node ends in the text of the document.
fn end_offset(node: &CstNode) -> usize {
    let preceding = |node: &CstNode| -> usize {
        node.previous_siblings().map(|sibling| sibling.to_string().len()).sum()
    };
    let ancestors: usize =
        node.ancestors().map(|ancestor| preceding(&CstNode::Container(ancestor))).sum();
    ancestors + preceding(node) + node.to_string().len()
}

/// The value that goes under the first missing key of the entry's path.
fn nested_value(entry: &JsonEntry<'_>, missing: usize) -> Value {
    let value =
        if entry.is_item { Value::Array(vec![entry.value.clone()]) } else { entry.value.clone() };
    entry.path[missing + 1..]
        .iter()
        .rev()
        .fold(value, |value, key| Value::Object([(key.clone(), value)].into_iter().collect()))
}

/// Parses a text that is strict JSON.
fn parse(text: &str) -> Result<CstRootNode, String> {
    // Also bounds the nesting depth before the recursive parser runs.
    if let Err(error) = serde_json::from_str::<Value>(text) {
        let has_comments =
            text.lines().any(|line| line.trim_start().starts_with("//") || line.contains("/*"));
        let problem = if has_comments {
            "the file contains comments, which JSON does not allow"
        } else {
            "the file is not valid JSON"
        };
        return Err(format!("{problem} ({error}); it was not changed"));
    }
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| format!("the file is not valid JSON ({error}); it was not changed"))
}

/// The node at a path and, except for the root, the member that holds it.
fn find(root: &CstRootNode, path: &[String]) -> Option<(CstNode, Option<CstObjectProp>)> {
    let (mut node, mut member) = (root.value()?, None);
    for key in path {
        let (_, found) =
            members(&node.as_object()?).ok()?.into_iter().find(|(name, _)| name == key)?;
        node = found.value()?;
        member = Some(found);
    }
    Some((node, member))
}

/// The members of an object by their decoded names. Duplicate keys are an error.
fn members(object: &CstObject) -> Result<Vec<(String, CstObjectProp)>, String> {
    let mut members: Vec<(String, CstObjectProp)> = Vec::new();
    for member in object.properties() {
        let name = member.decoded_name().ok_or_else(unreadable)?;
        if members.iter().any(|(other, _)| *other == name) {
            return Err(format!("the key {name:?} occurs twice; the file was not changed"));
        }
        members.push((name, member));
    }
    Ok(members)
}

fn root_value(root: &CstRootNode) -> Result<CstNode, String> {
    root.value().ok_or_else(unreadable)
}

fn member_value(member: &CstObjectProp) -> Result<CstNode, String> {
    member.value().ok_or_else(unreadable)
}

fn unreadable() -> String {
    "the file is not valid JSON; it was not changed".to_owned()
}

fn as_object(node: &CstNode, path: &[String]) -> Result<CstObject, String> {
    node.as_object()
        .ok_or_else(|| format!("{} is not an object; the file was not changed", display_path(path)))
}

fn as_array(node: &CstNode, path: &[String]) -> Result<CstArray, String> {
    node.as_array()
        .ok_or_else(|| format!("{} is not a list; the file was not changed", display_path(path)))
}

fn equals(node: &CstNode, value: &Value) -> bool {
    serde_json::from_str::<Value>(&node.to_string()).is_ok_and(|found| found == *value)
}

fn display_path(path: &[String]) -> String {
    if path.is_empty() { "the top level".to_owned() } else { path.join(".") }
}

fn to_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), to_input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    fn added(text: &str, keys: &str, value: &Value, is_item: bool) -> Result<String, String> {
        add(text, &JsonEntry { path: &path(keys), value, is_item })
    }

    #[test]
    fn an_added_entry_is_formatted_like_its_neighbours() {
        let server = json!({"command": "counterfoil", "args": ["mcp"]});
        let cases = [
            ("{}\n", "a new file"),
            ("{\n}\n", "empty, on two lines"),
            ("{\n    \"theme\": \"dark\"\n}", "four spaces, no newline at the end"),
            ("{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}\n", "tabs"),
            ("{\"mcpServers\": {\"other\": {\"command\": \"x\"}}, \"z\": 1}", "one line"),
            ("{\n  \"mcpServers\": {},\n  \"z\": [1, 2, 3]\n}\n", "an empty object in it"),
            ("{\r\n  \"z\": 1\r\n}\r\n", "CRLF line endings"),
        ];
        let edited: String = cases
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
        insta::assert_snapshot!(edited);
    }

    #[test]
    fn unusual_white_space_is_kept() {
        let server = json!({"command": "counterfoil", "args": ["mcp"]});
        for text in [
            "{   }",
            "{\n\n}",
            "{\n\n  \"a\": 1\n\n\n}",
            "{\n  \"a\": 1}",
            "{\n  \"a\": 1 ,\n  \"é\": [1] }",
            "{ \"a\" : 1 , \"z\":2 }",
            "{\"mcpServers\": {   }}",
            "{\n  \"mcpServers\": {\"x\": {\n}}\n}",
        ] {
            let new = added(text, "mcpServers.counterfoil", &server, false).unwrap();
            assert_eq!(get(&new, &path("mcpServers.counterfoil")), Some(server.clone()), "{new}");
            let is_insertion = (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .any(|at| new.starts_with(&text[..at]) && new.ends_with(&text[at..]));
            assert!(is_insertion, "{text:?} became {new:?}");
        }
    }

    #[test]
    fn an_item_is_appended_to_a_list() {
        let hook = json!({"hooks": [{"type": "command", "command": "ours"}]});
        let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n";
        let new = added(text, "hooks.Stop", &hook, true).unwrap();
        assert_eq!(get(&new, &path("hooks.Stop")), Some(json!([{"hooks": []}, hook])));
        assert_eq!(
            remove(&new, &JsonEntry { path: &path("hooks.Stop"), value: &hook, is_item: true })
                .as_deref(),
            Some(text)
        );
        let new = added("{}\n", "hooks.Stop", &hook, true).unwrap();
        assert_eq!(get(&new, &path("hooks.Stop")), Some(json!([hook])));
    }

    #[test]
    fn a_file_that_cannot_be_edited_is_an_error() {
        for (text, expected) in [
            ("", "not valid JSON"),
            ("{\"a\": 1,}", "not valid JSON"),
            ("// ours\n{}", "contains comments"),
            ("{\"a\": 1 /* one */}", "contains comments"),
            ("[]", "the top level is not an object"),
            ("{\"hooks\": []}", "hooks is not an object"),
            ("{\"hooks\": {\"Stop\": {}}}", "hooks.Stop is not a list"),
            ("{\"hooks\": {}, \"hooks\": {}}", "the key \"hooks\" occurs twice"),
            ("\u{feff}{}", "not valid JSON"),
        ] {
            let error = added(text, "hooks.Stop", &json!({}), true).unwrap_err();
            assert!(
                error.contains(expected) && error.ends_with("was not changed"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn removing_an_entry_keeps_its_surroundings() {
        let value = json!({"b": [1]});
        let ours = "\"x\": {\"b\": [1]}";
        for (text, left) in [
            (format!("{{{ours}}}"), "{}"),
            (format!("{{\n  {ours}\n}}\n"), "{}\n"),
            (format!("{{\n  {ours},\n  \"z\": 1\n}}"), "{\n  \"z\": 1\n}"),
            (format!("{{\n  \"a\": \",\" ,\n  {ours}\n}}"), "{\n  \"a\": \",\" \n}"),
            (format!("{{ \"a\": 1, {ours}, \"z\": 1 }}"), "{ \"a\": 1, \"z\": 1 }"),
        ] {
            let entry = JsonEntry { path: &path("x"), value: &value, is_item: false };
            assert_eq!(remove(&text, &entry).as_deref(), Some(left), "{text}");
        }
        let other = JsonEntry { path: &path("x"), value: &json!({"b": [2]}), is_item: false };
        assert_eq!(remove(&format!("{{{ours}}}"), &other), None, "a changed value is not removed");
        assert_eq!(
            remove("{}", &JsonEntry { path: &path("x"), value: &value, is_item: false }),
            None
        );
    }
}
