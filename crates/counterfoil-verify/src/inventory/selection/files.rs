//! The settings of the runners of JavaScript, and of cargo and nextest.

use super::super::parse::{self, Deadline, Language, children, line_number, node_text};
use super::super::source::{Switch, quote};
use super::{selecting, setting};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Table;
use tree_sitter::Node;

/// Keys that select tests or leave them out.
const KEYS: [&str; 24] = [
    "testPathIgnorePatterns",
    "modulePathIgnorePatterns",
    "testMatch",
    "testRegex",
    "testNamePattern",
    "testPathPattern",
    "testPathPatterns",
    "passWithNoTests",
    "roots",
    "runner",
    "testRunner",
    "filter",
    "onlyChanged",
    "exclude",
    "include",
    "grep",
    "fgrep",
    "grepInvert",
    "ignore",
    "spec",
    "invert",
    "dry-run",
    "testIgnore",
    "testDir",
];

/// What runs tests, as a part of a word of a command.
const RUNNERS: [&str; 11] = [
    "jest",
    "vitest",
    "mocha",
    "test",
    "ava",
    "tap",
    "karma",
    "cypress",
    "playwright",
    "jasmine",
    "run",
];

/// Commands that succeed whatever ran before.
const HIDES: [&str; 4] = ["true", "exit", ":", "echo"];

/// Words of a command for tests that leave tests out.
const WORDS: [&str; 15] = [
    "-t",
    "--testNamePattern",
    "--grep",
    "-g",
    "--fgrep",
    "-f",
    "--testPathIgnorePatterns",
    "--exclude",
    "--passWithNoTests",
    "--ignore",
    "--dry-run",
    "--invert",
    "--onlyChanged",
    "--test-name-pattern",
    "--listTests",
];

/// The settings of `Cargo.toml`.
pub(super) fn cargo(root: &Table) -> Vec<Switch> {
    let mut switches: Vec<Switch> = Vec::new();
    let off =
        |table: &Table, key: &str| table.get(key).and_then(toml::Value::as_bool) == Some(false);
    if let Some(package) = root.get("package").and_then(toml::Value::as_table)
        && off(package, "autotests")
    {
        switches.push(setting("package.autotests", "false"));
    }
    for kind in ["lib", "test", "bin", "example", "bench"] {
        let tables: Vec<&Table> = match root.get(kind) {
            Some(toml::Value::Table(table)) => vec![table],
            Some(toml::Value::Array(list)) => {
                list.iter().filter_map(toml::Value::as_table).collect()
            }
            _ => Vec::new(),
        };
        for table in tables {
            let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default();
            let keys: &[&str] = if kind == "bench" { &[] } else { &["test", "harness", "doctest"] };
            let first = switches.len();
            for key in keys.iter().filter(|key| off(table, key)) {
                switches.push(setting(&format!("{kind}.{name}.{key}"), "false"));
            }
            if kind == "test"
                && let Some(features) = table.get("required-features")
            {
                let name = format!("test.{name}.required-features");
                switches.push(setting(&name, &features.to_string()));
            }
            let about = target_files(kind, table);
            for switch in switches.iter_mut().skip(first) {
                switch.about.clone_from(&about);
            }
        }
    }
    switches
}

/// The files in which a target may be, relative to the package.
fn target_files(kind: &str, target: &Table) -> Vec<PathBuf> {
    if let Some(path) = target.get("path").and_then(toml::Value::as_str) {
        return vec![path.into()];
    }
    let Some(name) = target.get("name").and_then(toml::Value::as_str) else { return Vec::new() };
    let folder = match kind {
        "test" => "tests",
        "bin" => "src/bin",
        "example" => "examples",
        _ => return Vec::new(),
    };
    vec![format!("{folder}/{name}.rs").into(), format!("{folder}/{name}/main.rs").into()]
}

/// The settings of `.cargo/config.toml`: another program that runs the tests.
pub(super) fn cargo_config(root: &Table) -> Vec<Switch> {
    let targets = root.get("target").and_then(toml::Value::as_table);
    let runner = |(name, target): (&String, &toml::Value)| {
        let runner = target.get("runner")?;
        Some(setting(&format!("target.{name}.runner"), &runner.to_string()))
    };
    targets.into_iter().flatten().filter_map(runner).collect()
}

/// The settings of nextest.
pub(super) fn nextest(root: &Table) -> Vec<Switch> {
    let profiles = root.get("profile").and_then(toml::Value::as_table);
    let mut switches = Vec::new();
    for (name, profile) in profiles.into_iter().flatten() {
        let mut add = |key: &str, value: Option<&toml::Value>| {
            if let Some(value) = value {
                let whole = format!("profile.{name}.{key}");
                switches.push(setting(&whole, &value.to_string()));
            }
        };
        add("default-filter", profile.get("default-filter"));
        for entry in profile.get("overrides").and_then(toml::Value::as_array).into_iter().flatten()
        {
            add("overrides.default-filter", entry.get("default-filter"));
        }
    }
    switches
}

/// The settings of a runner in JSON or YAML.
pub(super) fn runner(root: &Value) -> Vec<Switch> {
    let mut switches = Vec::new();
    for (key, value) in root.as_object().into_iter().flatten() {
        if KEYS.contains(&key.as_str()) {
            switches.extend(values(key, value));
        }
    }
    for project in root.get("projects").and_then(Value::as_array).into_iter().flatten() {
        for (key, value) in project.as_object().into_iter().flatten() {
            if KEYS.contains(&key.as_str()) {
                switches.extend(values(key, value));
            }
        }
    }
    switches
}

fn values(key: &str, value: &Value) -> Vec<Switch> {
    let leaves_out = leaves_out(key);
    match value {
        Value::Bool(false) | Value::Null => Vec::new(),
        Value::Array(list) if leaves_out => {
            list.iter().map(|entry| setting(key, &entry.to_string())).collect()
        }
        Value::Array(list) => {
            vec![selecting(key, list.iter().map(ToString::to_string))]
        }
        _ => vec![setting(key, &value.to_string())],
    }
}

/// Whether every entry of a setting leaves tests out.
fn leaves_out(key: &str) -> bool {
    key.to_ascii_lowercase().contains("ignore") || key == "exclude"
}

/// The settings in `package.json`: those of jest and mocha, and the scripts for tests.
pub(super) fn package(root: &Value) -> Vec<Switch> {
    let mut switches = Vec::new();
    for key in ["jest", "mocha", "vitest"] {
        if let Some(table) = root.get(key) {
            switches.extend(runner(table));
        }
    }
    for (name, script) in root.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        if let Some(script) = script.as_str().filter(|_| is_test_script(name)) {
            switches.extend(command(&format!("scripts.{name}"), script));
        }
    }
    switches
}

fn is_test_script(name: &str) -> bool {
    name.split([':', '-', '_']).any(|part| part == "test")
}

/// The scripts of `package.json` that run tests.
pub(super) fn test_scripts(root: &Value) -> BTreeSet<String> {
    let scripts = root.get("scripts").and_then(Value::as_object).into_iter().flatten();
    scripts.filter(|(name, _)| is_test_script(name)).map(|(name, _)| name.clone()).collect()
}

/// What a command leaves out, or how it hides that tests fail.
fn command(name: &str, script: &str) -> Vec<Switch> {
    let spaced = script.replace("||", " || ").replace("&&", " && ").replace(';', " ; ");
    let words = shlex::split(&spaced)
        .unwrap_or_else(|| spaced.split_whitespace().map(str::to_owned).collect());
    let is_end = |word: &String| matches!(word.as_str(), "||" | "&&" | ";" | "|" | "&");
    let is_runner = |word: &String| RUNNERS.iter().any(|runner| word.contains(runner));
    let mut switches = Vec::new();
    let (mut from, mut end) = (0, "");
    while from < words.len() {
        let length = words[from..].iter().position(is_end).unwrap_or(words.len() - from);
        let part = &words[from..from + length];
        if part.iter().any(is_runner) {
            for (index, word) in part.iter().enumerate() {
                if WORDS.contains(&word.split('=').next().unwrap_or(word)) {
                    let next = part.get(index + 1).map(String::as_str).unwrap_or_default();
                    switches.push(setting(name, format!("{word} {next}").trim()));
                }
            }
        } else if matches!(end, "||" | ";")
            && part.first().is_some_and(|first| HIDES.contains(&first.as_str()))
        {
            switches.push(setting(name, &format!("{end} {}", part.join(" "))));
        }
        end = words.get(from + length).map(String::as_str).unwrap_or_default();
        from += length + 1;
    }
    if !words.iter().any(is_runner) {
        switches.push(setting(name, script));
    }
    switches
}

/// The settings in a script: the properties with known names, wherever they are.
pub(super) fn script(path: &Path, text: &[u8], deadline: Deadline) -> Result<Vec<Switch>, String> {
    let Some(language) = Language::from_path(path) else { return Ok(Vec::new()) };
    let tree =
        parse::parse(language, text, deadline).map_err(|error| error.message().to_owned())?;
    let root = tree.root_node();
    if let Some(line) = parse::first_error(root) {
        return Err(format!("syntax error in line {line}"));
    }
    let is_vite = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vi"));
    let mut switches = Vec::new();
    let mut open = vec![(root, !is_vite)];
    while let Some((node, mut of_tests)) = open.pop() {
        if node.kind() == "pair"
            && let (Some(key), Some(value)) =
                (node.child_by_field_name("key"), node.child_by_field_name("value"))
        {
            let key = node_text(key, text).trim_matches(['"', '\'']);
            if of_tests && KEYS.contains(&key) {
                add(&mut switches, key, value, text);
            }
            of_tests = is_of_tests(key, is_vite);
        }
        open.extend(children(node).into_iter().rev().map(|child| (child, of_tests)));
    }
    Ok(switches)
}

fn add(switches: &mut Vec<Switch>, key: &str, value: Node<'_>, text: &[u8]) {
    let one = |value: Node<'_>| {
        let mut switch = setting(key, &quote(node_text(value, text)));
        switch.line = line_number(value);
        switch
    };
    match value.kind() {
        "false" | "null" | "undefined" => {}
        "array" if leaves_out(key) => {
            switches.extend(children(value).into_iter().filter(Node::is_named).map(one));
        }
        "array" => {
            let entries = children(value).into_iter().filter(Node::is_named);
            let mut switch = selecting(key, entries.map(|entry| quote(node_text(entry, text))));
            switch.line = line_number(value);
            switches.push(switch);
        }
        _ => switches.push(one(value)),
    }
}

/// Whether the properties of an object with this key belong to the settings of tests.
fn is_of_tests(key: &str, is_vite: bool) -> bool {
    match key {
        "test" | "projects" | "overrides" => true,
        "coverage" | "coverageThreshold" | "moduleNameMapper" | "transform" | "globals" => false,
        _ => !is_vite,
    }
}
