//! The parts of files that steer checks.

use super::StartVersion;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, TableLike};

/// The keys of a `package.json` that steer checks.
pub(super) const PACKAGE_JSON: &[&str] = &[
    "scripts",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "nyc",
    "c8",
    "tap",
    "xo",
    "eslintConfig",
    "eslintIgnore",
    "prettier",
    "stylelint",
    "lint-staged",
    "standard",
    "wireit",
];

/// The tables of a `pyproject.toml` that steer checks.
pub(super) const PYPROJECT: &[&str] = &[
    "tool.pytest",
    "tool.tox",
    "tool.coverage",
    "tool.ruff",
    "tool.mypy",
    "tool.pyright",
    "tool.basedpyright",
    "tool.flake8",
    "tool.pylint",
    "tool.pylint-per-file-ignores",
    "tool.isort",
    "tool.black",
    "tool.bandit",
    "tool.nox",
    "tool.ty",
    "tool.poe",
    "tool.taskipy",
    "tool.pdm.scripts",
    "tool.hatch.envs",
];

/// The parts of a `Cargo.toml` that steer checks.
pub(super) const CARGO: &[&str] = &[
    "lints",
    "workspace.lints",
    "test",
    "bench",
    "package.autotests",
    "package.autobenches",
    "lib.test",
    "lib.doctest",
    "lib.harness",
    "profile.test",
];

/// Compares some keys of a JSON object, and merges those of the start into it. A file that is no
/// object is taken as a whole.
pub(super) fn json(start: Option<&[u8]>, now: Option<&[u8]>, keys: &[&str]) -> StartVersion {
    let parse = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => serde_json::from_slice::<Map<String, Value>>(bytes).ok(),
        None => Some(Map::new()),
    };
    let (Some(start), Some(mut merged)) = (parse(start), parse(now)) else {
        return StartVersion::Whole;
    };
    if now.is_none() {
        return StartVersion::Whole;
    }
    let mut differs = false;
    for key in keys {
        if start.get(*key) == merged.get(*key) {
            continue;
        }
        // A script that is new weakens nothing.
        if *key == "scripts" && keeps_members(start.get(*key), merged.get(*key)) {
            continue;
        }
        differs = true;
        match start.get(*key) {
            Some(value) => merged.insert((*key).to_owned(), value.clone()),
            None => merged.remove(*key),
        };
    }
    match serde_json::to_vec_pretty(&Value::Object(merged)) {
        Ok(bytes) if differs => StartVersion::Merged(bytes),
        Ok(_) => StartVersion::Same,
        Err(_) => StartVersion::Whole,
    }
}

/// Whether an object still has all members that it had, and the new ones run before or after none of
/// them.
fn keeps_members(start: Option<&Value>, now: Option<&Value>) -> bool {
    let Some(Value::Object(now)) = now else { return false };
    let empty = Map::new();
    let start = start.and_then(Value::as_object).unwrap_or(&empty);
    let is_hook = |name: &String| {
        ["pre", "post"].iter().any(|prefix| {
            name.strip_prefix(prefix).is_some_and(|script| {
                start.contains_key(script) || matches!(script, "test" | "install")
            })
        })
    };
    start.iter().all(|(name, line)| now.get(name) == Some(line))
        && !now.keys().any(|name| !start.contains_key(name) && is_hook(name))
}

/// Compares some tables and keys of a TOML document, and merges those of the start into it. A file
/// that does not parse is taken as a whole.
pub(super) fn toml(start: Option<&[u8]>, now: Option<&[u8]>, parts: &[&str]) -> StartVersion {
    let parse = |bytes: Option<&[u8]>| {
        std::str::from_utf8(bytes.unwrap_or_default()).ok()?.parse::<DocumentMut>().ok()
    };
    let (Some(start), Some(mut merged)) = (parse(start), parse(now)) else {
        return StartVersion::Whole;
    };
    if now.is_none() {
        return StartVersion::Whole;
    }
    let mut differs = false;
    for part in parts {
        let keys: Vec<&str> = part.split('.').collect();
        let (was, is) = (find(start.as_table(), &keys), find(merged.as_table(), &keys));
        let text = |item: Option<&Item>| item.map(|item| item.to_string().trim().to_owned());
        if text(was) == text(is) {
            continue;
        }
        differs = true;
        replace(merged.as_table_mut(), &keys, was.cloned());
    }
    if differs { StartVersion::Merged(merged.to_string().into_bytes()) } else { StartVersion::Same }
}

fn find<'a>(table: &'a dyn TableLike, keys: &[&str]) -> Option<&'a Item> {
    let (first, rest) = keys.split_first()?;
    let item = table.get(first)?;
    if rest.is_empty() { Some(item) } else { find(item.as_table_like()?, rest) }
}

fn replace(table: &mut dyn TableLike, keys: &[&str], with: Option<Item>) {
    match (keys, with) {
        ([], _) => {}
        ([key], Some(item)) => {
            table.insert(key, item);
        }
        ([key], None) => {
            table.remove(key);
        }
        ([key, rest @ ..], with) => {
            if table.get(key).is_none() {
                table.insert(key, toml_edit::table());
            }
            if let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) {
                replace(inner, rest, with);
            }
        }
    }
}
