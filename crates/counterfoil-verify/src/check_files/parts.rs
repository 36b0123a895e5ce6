//! The parts of files that steer checks.

use super::StartVersion;
use jsonc_parser::{CollectOptions, ParseOptions};
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

/// Keys in these tables that steer nothing: names of markers, and what is installed for the tests.
/// `*` stands for any name.
pub(super) const PYPROJECT_ORDINARY: &[&str] = &[
    "tool.pytest.markers",
    "tool.pytest.ini_options.markers",
    "tool.tox.requires",
    "tool.tox.env_run_base.deps",
    "tool.tox.env_run_base.extras",
    "tool.tox.env.*.deps",
    "tool.tox.env.*.extras",
    "tool.hatch.envs.*.dependencies",
    "tool.hatch.envs.*.extra-dependencies",
    "tool.hatch.envs.*.features",
];

/// The parts of a `Cargo.toml` that steer checks.
pub(super) const CARGO: &[&str] = &[
    "lints",
    "workspace.lints",
    "workspace.members",
    "workspace.default-members",
    "workspace.exclude",
    "test",
    "bench",
    "package.autotests",
    "package.autobenches",
    "lib.test",
    "lib.doctest",
    "lib.harness",
    "profile.test",
];

/// The parts of `.cargo/config.toml` that steer checks.
pub(super) const CARGO_CONFIG: &[&str] =
    &["alias", "build", "target", "env", "unstable", "include", "profile", "paths"];

/// The parts of `rust-toolchain.toml` that steer checks.
pub(super) const TOOLCHAIN: &[&str] = &["toolchain.channel", "toolchain.path"];

/// The keys of a `deno.json` that steer checks.
pub(super) const DENO: &[&str] = &[
    "tasks",
    "test",
    "lint",
    "fmt",
    "bench",
    "exclude",
    "workspace",
    "compilerOptions",
    "unstable",
    "permissions",
];

/// The keys of a `tsconfig.json` that steer checks. Of the options of the compiler, those that say how
/// modules are found and what is written do not.
pub(super) const TSCONFIG: &[&str] = &[
    "extends",
    "files",
    "include",
    "exclude",
    "references",
    "compilerOptions.allowJs",
    "compilerOptions.allowUnreachableCode",
    "compilerOptions.allowUnusedLabels",
    "compilerOptions.alwaysStrict",
    "compilerOptions.checkJs",
    "compilerOptions.exactOptionalPropertyTypes",
    "compilerOptions.noCheck",
    "compilerOptions.noFallthroughCasesInSwitch",
    "compilerOptions.noImplicitAny",
    "compilerOptions.noImplicitOverride",
    "compilerOptions.noImplicitReturns",
    "compilerOptions.noImplicitThis",
    "compilerOptions.noPropertyAccessFromIndexSignature",
    "compilerOptions.noUncheckedIndexedAccess",
    "compilerOptions.noUnusedLocals",
    "compilerOptions.noUnusedParameters",
    "compilerOptions.plugins",
    "compilerOptions.skipLibCheck",
    "compilerOptions.strict",
    "compilerOptions.strictBindCallApply",
    "compilerOptions.strictBuiltinIteratorReturn",
    "compilerOptions.strictFunctionTypes",
    "compilerOptions.strictNullChecks",
    "compilerOptions.strictPropertyInitialization",
    "compilerOptions.suppressImplicitAnyIndexErrors",
    "compilerOptions.useUnknownInCatchVariables",
];

/// Lists that select: one that has all its entries and more leaves nothing out.
const GROWING: &[&str] = &["workspace.members", "workspace.default-members", "include", "files"];

/// Lists that select nothing where there is none.
const EMPTY_BEFORE: &[&str] = &["workspace.members"];

/// Whether a list selects at least what it selected.
fn selects_more<T: PartialEq>(part: &str, start: Option<&Vec<T>>, now: Option<&Vec<T>>) -> bool {
    let Some(now) = now.filter(|_| GROWING.contains(&part)) else { return false };
    match start {
        Some(start) => start.iter().all(|entry| now.contains(entry)),
        None => EMPTY_BEFORE.contains(&part),
    }
}

/// Compares some parts of a JSON object, which may have comments, and merges those of the start into
/// it. A file that is no object is taken as a whole.
pub(super) fn json(start: Option<&[u8]>, now: Option<&[u8]>, parts: &[&str]) -> StartVersion {
    let parse = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => parse_object(bytes),
        None => Some(Map::new()),
    };
    let (Some(start), Some(mut merged)) = (parse(start), parse(now)) else {
        return StartVersion::Whole;
    };
    if now.is_none() {
        return StartVersion::Whole;
    }
    let mut differs = false;
    for part in parts {
        let (table, key) = part.split_once('.').map_or((None, *part), |(t, k)| (Some(t), k));
        let of = |root: &Map<String, Value>| match table {
            Some(table) => root.get(table).and_then(|table| table.get(key)).cloned(),
            None => root.get(key).cloned(),
        };
        let (was, is) = (of(&start), of(&merged));
        let list = |value: &'_ Option<Value>| value.as_ref().and_then(Value::as_array).cloned();
        if was == is || selects_more(part, list(&was).as_ref(), list(&is).as_ref()) {
            continue;
        }
        // A script that is new weakens nothing.
        if *part == "scripts" && keeps_members(was.as_ref(), is.as_ref()) {
            continue;
        }
        let target = match table {
            None => Some(&mut merged),
            Some(table) => {
                merged.entry(table).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
            }
        };
        let Some(target) = target else { return StartVersion::Whole };
        differs = true;
        match was {
            Some(value) => target.insert(key.to_owned(), value),
            None => target.remove(key),
        };
    }
    match serde_json::to_vec_pretty(&Value::Object(merged)) {
        Ok(bytes) if differs => StartVersion::Merged(bytes),
        Ok(_) => StartVersion::Same,
        Err(_) => StartVersion::Whole,
    }
}

fn parse_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    if let Ok(object) = serde_json::from_slice(bytes) {
        return Some(object);
    }
    let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}');
    let parsed =
        jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    match parsed.ok()?.value.map(Value::from) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
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

/// Compares some tables and keys of a TOML document, without those that are ordinary, and merges those
/// of the start into it. A file that does not parse is taken as a whole.
pub(super) fn toml(
    start: Option<&[u8]>,
    now: Option<&[u8]>,
    parts: &[&str],
    ordinary: &[&str],
) -> StartVersion {
    let parse = |bytes: Option<&[u8]>| {
        std::str::from_utf8(bytes.unwrap_or_default()).ok()?.parse::<DocumentMut>().ok()
    };
    let (Some(mut start), Some(now_document), Some(_)) = (parse(start), parse(now), now) else {
        return StartVersion::Whole;
    };
    let mut merged = now_document.clone();
    let ordinary: Vec<Vec<String>> = ordinary
        .iter()
        .flat_map(|pattern| {
            let keys: Vec<&str> = pattern.split('.').collect();
            let mut found = expand(now_document.as_table(), &keys);
            found.extend(expand(start.as_table(), &keys));
            found
        })
        .collect();
    for keys in &ordinary {
        replace(start.as_table_mut(), &borrowed(keys), None);
        replace(merged.as_table_mut(), &borrowed(keys), None);
    }
    let values = |document: &DocumentMut| document.to_string().parse::<::toml::Table>().ok();
    let (Some(was_values), Some(is_values)) = (values(&start), values(&merged)) else {
        return StartVersion::Whole;
    };
    let mut differs = false;
    let mut change = |merged: &mut DocumentMut, keys: &[&str], with: Option<Item>| {
        differs = true;
        replace(merged.as_table_mut(), keys, with);
    };
    for part in parts {
        let keys: Vec<&str> = part.split('.').collect();
        let (was, is) = (value(&was_values, &keys), value(&is_values, &keys));
        let list = |value: &Option<::toml::Value>| {
            value.as_ref().and_then(|value| value.as_array().cloned())
        };
        if was != is && !selects_more(part, list(&was).as_ref(), list(&is).as_ref()) {
            change(&mut merged, &keys, find(start.as_table(), &keys).cloned());
        }
    }
    if !differs {
        return StartVersion::Same;
    }
    for keys in &ordinary {
        let keys = borrowed(keys);
        if let Some(item) = find(now_document.as_table(), &keys) {
            replace(merged.as_table_mut(), &keys, Some(item.clone()));
        }
    }
    StartVersion::Merged(merged.to_string().into_bytes())
}

fn borrowed(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

/// The keys that a pattern stands for in a document.
fn expand(table: &dyn TableLike, pattern: &[&str]) -> Vec<Vec<String>> {
    let [first, rest @ ..] = pattern else { return vec![Vec::new()] };
    let entries = table.iter().filter(|(key, _)| *first == "*" || key == first);
    let below = entries.flat_map(|(key, item)| {
        let inner = match item.as_table_like() {
            Some(inner) => expand(inner, rest),
            None if rest.is_empty() => vec![Vec::new()],
            None => Vec::new(),
        };
        inner.into_iter().map(move |keys| {
            let mut all = vec![key.to_owned()];
            all.extend(keys);
            all
        })
    });
    below.collect()
}

/// The value of a key. A table without values is none.
fn value(table: &::toml::Table, keys: &[&str]) -> Option<::toml::Value> {
    let (first, rest) = keys.split_first()?;
    let found = table.get(*first)?;
    if rest.is_empty() { without_empty(found.clone()) } else { value(found.as_table()?, rest) }
}

fn without_empty(value: ::toml::Value) -> Option<::toml::Value> {
    let ::toml::Value::Table(table) = value else { return Some(value) };
    let table: ::toml::Table =
        table.into_iter().filter_map(|(key, value)| Some((key, without_empty(value)?))).collect();
    (!table.is_empty()).then_some(::toml::Value::Table(table))
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

/// Compares the modules of a `go.work`: one that has all its modules and more leaves nothing out.
pub(super) fn go_work(start: Option<&[u8]>, now: Option<&[u8]>) -> StartVersion {
    let (Some(start), Some(now)) = (start, now) else { return StartVersion::Whole };
    let used = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut block = String::new();
        let mut used = Vec::new();
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or(line).trim();
            if let Some(name) = line.strip_suffix('(') {
                name.trim().clone_into(&mut block);
            } else if line == ")" {
                block.clear();
            } else if !line.is_empty() {
                used.push(format!("{block} {line}").trim().to_owned());
            }
        }
        used.retain(|line| line.starts_with("use ") || line.starts_with("toolchain "));
        used
    };
    let now = used(now);
    if used(start).iter().all(|module| now.contains(module)) {
        StartVersion::Same
    } else {
        StartVersion::Whole
    }
}
