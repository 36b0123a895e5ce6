//! Format-preserving edits of TOML files: comments and order are kept. No I/O.

use serde_json::Value as Json;
use toml_edit::{DocumentMut, Item, Key, TableLike, Value, value};

/// Returns the text with a string or a list of strings added at a path of keys. Missing tables are
/// created, as a table at the end of the file where TOML allows it.
pub(crate) fn add(text: &str, path: &[String], added: &Json) -> Result<String, String> {
    let [tables @ .., key] = path else { return Err("the path is empty".to_owned()) };
    let document = parse(text)?;
    if find(document.as_table(), path).is_some() {
        return Err(format!("{} already exists", path.join(".")));
    }
    if !tables.is_empty() && find(document.as_table(), tables).is_none() {
        let chunk =
            format!("{}\n{} = {}\n", header(tables), Key::new(key.as_str()), to_toml(added));
        let appended = append(text, &chunk);
        if has_value(&appended, path, added) {
            return Ok(appended);
        }
    }
    // Comments at the top of a file without values stay there.
    if tables.is_empty() && document.as_table().is_empty() {
        let appended = append(text, &format!("{} = {}\n", Key::new(key.as_str()), to_toml(added)));
        if has_value(&appended, path, added) {
            return Ok(appended);
        }
    }
    let new = edit(text, |document| {
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for name in tables {
            let item = table.entry(name).or_insert_with(|| value(toml_edit::InlineTable::new()));
            table = item
                .as_table_like_mut()
                .ok_or_else(|| format!("{name} is not a table; the file was not changed"))?;
        }
        table.insert(key, value(to_toml(added)));
        Ok(())
    })?;
    if has_value(&new, path, added) {
        Ok(new)
    } else {
        Err(format!("{} cannot be added", path.join(".")))
    }
}

/// The header of a table, as `[a.b]`.
pub(crate) fn header(path: &[String]) -> String {
    let keys: Vec<String> = path.iter().map(|key| Key::new(key.as_str()).to_string()).collect();
    format!("[{}]", keys.join("."))
}

/// Returns the text with a chunk appended after an empty line.
pub(crate) fn append(text: &str, chunk: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") || text.ends_with("\r\n\r\n") => "",
        text if text.ends_with('\n') => newline,
        _ => &newline.repeat(2),
    };
    format!("{text}{gap}{}", chunk.replace('\n', newline))
}

/// Returns the text without the value at a path, or none if the value is not the one that was
/// added. The first `existing` tables of the path stay; the others are removed if they are empty.
/// Comments elsewhere stay.
pub(crate) fn remove(text: &str, path: &[String], added: &Json, existing: usize) -> Option<String> {
    let [tables @ .., key] = path else { return None };
    if !has_value(text, path, added) {
        return None;
    }
    let remove_value = |document: &mut DocumentMut| {
        find_mut(document.as_table_mut(), tables)?.remove(key)?;
        for depth in (existing..tables.len()).rev() {
            let [above @ .., name] = &tables[..=depth] else { break };
            let table = find(document.as_table(), &tables[..=depth]).and_then(Item::as_table_like);
            if !table.is_some_and(TableLike::is_empty) {
                break;
            }
            find_mut(document.as_table_mut(), above)?.remove(name);
        }
        Some(())
    };
    edit(text, |document| remove_value(document).ok_or_else(String::new)).ok()
}

/// Checks that a text is TOML. The error says what is wrong.
pub(crate) fn validate(text: &str) -> Result<(), String> {
    parse(text).map(|_| ())
}

/// Whether a key or table exists at a path.
pub(crate) fn contains(text: &str, path: &[String]) -> bool {
    parse(text).is_ok_and(|document| find(document.as_table(), path).is_some())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let message = error.to_string();
        let lines: Vec<&str> = message.lines().filter(|line| !line.trim().is_empty()).collect();
        let (position, problem) = (lines.first().unwrap_or(&""), lines.last().unwrap_or(&""));
        format!("the file is not valid TOML ({position}: {problem}); it was not changed")
    })
}

/// Applies an edit to a text. Line endings and the end of the file stay as they are.
fn edit(
    text: &str,
    apply: impl FnOnce(&mut DocumentMut) -> Result<(), String>,
) -> Result<String, String> {
    let has_crlf = text.contains("\r\n");
    let mut normalized = text.replace("\r\n", "\n");
    let has_final_newline = normalized.is_empty() || normalized.ends_with('\n');
    if !has_final_newline {
        normalized.push('\n');
    }
    let to_text = |document: &DocumentMut| {
        let mut text = document.to_string();
        if !has_final_newline && text.ends_with('\n') {
            text.pop();
        }
        if has_crlf { text.replace('\n', "\r\n") } else { text }
    };
    let mut document = parse(&normalized)?;
    if to_text(&document) != text {
        return Err(
            "the entry cannot be added without changing other parts of the file; it was not changed"
                .to_owned(),
        );
    }
    apply(&mut document)?;
    Ok(to_text(&document))
}

fn has_value(text: &str, path: &[String], added: &Json) -> bool {
    let document = text.parse::<DocumentMut>().ok();
    document.is_some_and(|document| {
        find(document.as_table(), path).and_then(to_json).as_ref() == Some(added)
    })
}

fn find<'t>(root: &'t dyn TableLike, path: &[String]) -> Option<&'t Item> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get(first)?, |item, key| item.as_table_like()?.get(key))
}

fn find_mut<'t>(root: &'t mut dyn TableLike, path: &[String]) -> Option<&'t mut dyn TableLike> {
    path.iter().try_fold(root, |table, key| table.get_mut(key)?.as_table_like_mut())
}

/// Converts a string or a list of strings to TOML.
fn to_toml(value: &Json) -> Value {
    match value {
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect(),
        other => Value::from(other.as_str().unwrap_or_default()),
    }
}

/// Converts a string or a list of strings to JSON.
fn to_json(item: &Item) -> Option<Json> {
    if let Some(text) = item.as_str() {
        return Some(Json::from(text));
    }
    item.as_array()?.iter().map(|item| item.as_str().map(Json::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Vec<String> {
        path.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn existing_entries_keep_their_comments_and_order() {
        let cases = [
            "",
            "# ours\n[checks]\ntest = \"cargo test\"\n",
            "[agents.qa]\nmodel = \"opus\" # the big one\n\n# last words\n",
            "[agents]\nqa = { model = \"opus\" }\n",
            "agents = { dev = { model = \"opus\" } }\n",
            "agents.dev.model = \"opus\"\n",
            "agents.qa.model = \"opus\"",
            "[checks]\r\ntest = \"x\"\r\n",
        ];
        let ours = Json::from("execution-loop/qa");
        let edited: String = cases
            .iter()
            .map(|text| {
                let new = add(text, &path("agents/qa/contract"), &ours).unwrap();
                assert!(has_value(&new, &path("agents/qa/contract"), &ours), "{new}");
                format!("## {text:?}\n{}\n", new.replace('\r', "␍"))
            })
            .collect();
        insta::assert_snapshot!(edited);
    }

    #[test]
    fn keys_that_are_not_bare_are_quoted() {
        let (path, ours) = (path("agents/my agent: \"x\"/contract"), Json::from("a/b"));
        let new = add("", &path, &ours).unwrap();
        assert!(has_value(&new, &path, &ours), "{new}");
    }

    #[test]
    fn a_file_that_cannot_be_edited_is_an_error() {
        for (text, expected) in [
            ("agents = [", "not valid TOML"),
            ("agents = 7\n", "agents is not a table"),
            ("[agents.qa]\ncontract = \"x/y\"\n", "agents.qa.contract already exists"),
        ] {
            let error = add(text, &path("agents/qa/contract"), &Json::from("a/b")).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn only_the_added_value_is_removed() {
        let (path, ours) = (path("agents/qa/contract"), Json::from("a/b"));
        for (text, existing, left) in [
            ("[agents.qa]\ncontract = \"a/b\"\n", 0, Some("")),
            ("[agents.qa]\ncontract = \"a/b\"\n", 2, Some("[agents.qa]\n")),
            (
                "[agents.qa]\ncontract = \"a/b\"\nmodel = \"x\"\n",
                0,
                Some("[agents.qa]\nmodel = \"x\"\n"),
            ),
            ("[agents.qa]\ncontract = \"c/d\"\n", 0, None),
            ("[agents.dev]\nmodel = \"x\"\n", 0, None),
            ("broken = ", 0, None),
        ] {
            assert_eq!(remove(text, &path, &ours, existing).as_deref(), left, "{text}");
        }
    }
}
