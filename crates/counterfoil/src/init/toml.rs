//! Adding to a TOML file and taking out again, with comments and order kept. No I/O.

use serde_json::Value as Json;
use toml_edit::{DocumentMut, Item, Key, TableLike, Value, value};

/// The text with one value more, a text or a list of texts, at a path of keys. Tables on the way
/// are made if they are missing: as a table of its own at the end, where the file lets it be there.
pub(crate) fn add(text: &str, path: &[String], added: &Json) -> Result<String, String> {
    let [tables @ .., key] = path else { return Err("it has no place".to_owned()) };
    let document = read(text)?;
    if find(document.as_table(), path).is_some() {
        return Err(format!("{} is there already", path.join(".")));
    }
    if !tables.is_empty() && find(document.as_table(), tables).is_none() {
        let chunk =
            format!("{}\n{} = {}\n", header(tables), Key::new(key.as_str()), written(added));
        let appended = append(text, &chunk);
        if has(&appended, path, added) {
            return Ok(appended);
        }
    }
    let new = edited(text, |document| {
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for name in tables {
            let item = table.entry(name).or_insert_with(|| value(toml_edit::InlineTable::new()));
            table = item
                .as_table_like_mut()
                .ok_or_else(|| format!("{name} is not a table; it is left as it is"))?;
        }
        table.insert(key, value(written(added)));
        Ok(())
    })?;
    if has(&new, path, added) {
        Ok(new)
    } else {
        Err(format!("{} cannot be added", path.join(".")))
    }
}

/// A table's header.
pub(crate) fn header(path: &[String]) -> String {
    let keys: Vec<String> = path.iter().map(|key| Key::new(key.as_str()).to_string()).collect();
    format!("[{}]", keys.join("."))
}

/// The text with another at its end, after an empty line.
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

/// The text without the value at a path, if it is still the one that was added; without the tables
/// above it from a depth on, if they hold nothing then. Comments that somebody wrote at other
/// places stay.
pub(crate) fn remove(text: &str, path: &[String], added: &Json, made: usize) -> Option<String> {
    let [tables @ .., key] = path else { return None };
    if !has(text, path, added) {
        return None;
    }
    let taken_out = |document: &mut DocumentMut| {
        find_mut(document.as_table_mut(), tables)?.remove(key)?;
        for depth in (made..tables.len()).rev() {
            let [above @ .., name] = &tables[..=depth] else { break };
            let table = find(document.as_table(), &tables[..=depth]).and_then(Item::as_table_like);
            if !table.is_some_and(TableLike::is_empty) {
                break;
            }
            find_mut(document.as_table_mut(), above)?.remove(name);
        }
        Some(())
    };
    edited(text, |document| taken_out(document).ok_or_else(String::new)).ok()
}

/// Whether a file is TOML at all; the error says why not.
pub(crate) fn check(text: &str) -> Result<(), String> {
    read(text).map(|_| ())
}

/// Whether there is anything at a path.
pub(crate) fn is_there(text: &str, path: &[String]) -> bool {
    read(text).is_ok_and(|document| find(document.as_table(), path).is_some())
}

fn read(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let why = error.to_string();
        let lines: Vec<&str> = why.lines().filter(|line| !line.trim().is_empty()).collect();
        let (at, what) = (lines.first().unwrap_or(&""), lines.last().unwrap_or(&""));
        format!("it is not TOML ({at}: {what}); it is left as it is")
    })
}

/// The text with something done to it. Ends of lines stay as they are, and so does the end of the
/// file.
fn edited(
    text: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), String>,
) -> Result<String, String> {
    let is_windows = text.contains("\r\n");
    let mut plain = text.replace("\r\n", "\n");
    let is_ended = plain.is_empty() || plain.ends_with('\n');
    if !is_ended {
        plain.push('\n');
    }
    let as_it_was = |document: &DocumentMut| {
        let mut text = document.to_string();
        if !is_ended && text.ends_with('\n') {
            text.pop();
        }
        if is_windows { text.replace('\n', "\r\n") } else { text }
    };
    let mut document = read(&plain)?;
    if as_it_was(&document) != text {
        return Err(
            "it cannot be edited without changing more than what is added; it is left as it is"
                .to_owned(),
        );
    }
    edit(&mut document)?;
    Ok(as_it_was(&document))
}

fn has(text: &str, path: &[String], added: &Json) -> bool {
    let document = text.parse::<DocumentMut>().ok();
    document.is_some_and(|document| {
        find(document.as_table(), path).and_then(json).as_ref() == Some(added)
    })
}

fn find<'t>(root: &'t dyn TableLike, path: &[String]) -> Option<&'t Item> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get(first)?, |item, key| item.as_table_like()?.get(key))
}

fn find_mut<'t>(root: &'t mut dyn TableLike, path: &[String]) -> Option<&'t mut dyn TableLike> {
    path.iter().try_fold(root, |table, key| table.get_mut(key)?.as_table_like_mut())
}

/// A text or a list of texts as TOML.
fn written(value: &Json) -> Value {
    match value {
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect(),
        other => Value::from(other.as_str().unwrap_or_default()),
    }
}

/// A text or a list of texts as JSON.
fn json(item: &Item) -> Option<Json> {
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
    fn what_is_there_keeps_its_comments_and_order() {
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
        let shown: String = cases
            .iter()
            .map(|text| {
                let new = add(text, &path("agents/qa/contract"), &ours).unwrap();
                assert!(has(&new, &path("agents/qa/contract"), &ours), "{new}");
                format!("## {text:?}\n{}\n", new.replace('\r', "␍"))
            })
            .collect();
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn names_that_are_no_plain_keys_are_quoted() {
        let (path, ours) = (path("agents/my agent: \"x\"/contract"), Json::from("a/b"));
        let new = add("", &path, &ours).unwrap();
        assert!(has(&new, &path, &ours), "{new}");
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        for (text, said) in [
            ("agents = [", "it is not TOML"),
            ("agents = 7\n", "agents is not a table"),
            ("[agents.qa]\ncontract = \"x/y\"\n", "agents.qa.contract is there already"),
        ] {
            let error = add(text, &path("agents/qa/contract"), &Json::from("a/b")).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn only_what_was_added_is_taken_out() {
        let (path, ours) = (path("agents/qa/contract"), Json::from("a/b"));
        for (text, made, left) in [
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
            assert_eq!(remove(text, &path, &ours, made).as_deref(), left, "{text}");
        }
    }
}
