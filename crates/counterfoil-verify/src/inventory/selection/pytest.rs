//! The settings of pytest.

use super::super::source::Switch;
use super::{selecting, setting};
use std::path::Path;

/// Options that leave tests out, or keep them from running.
const OPTIONS: [&str; 22] = [
    "-k",
    "-m",
    "--ignore",
    "--ignore-glob",
    "--deselect",
    "--co",
    "--collect-only",
    "--lf",
    "--last-failed",
    "--sw",
    "--stepwise",
    "--setup-only",
    "--setup-plan",
    "--noconftest",
    "--rootdir",
    "--confcutdir",
    "-o",
    "--override-ini",
    "-c",
    "--config-file",
    "--version",
    "--help",
];

/// Plugins without which the same tests run.
const HARMLESS: [&str; 8] =
    ["cacheprovider", "warnings", "randomly", "random_order", "xdist", "cov", "sugar", "logging"];

/// Keys whose new entries leave tests out.
const LEAVES_OUT: [&str; 3] = ["norecursedirs", "collect_ignore", "collect_ignore_glob"];

/// Keys that select tests. Without them, the runner has its own patterns.
const SELECTS: [&str; 4] = ["testpaths", "python_files", "python_functions", "python_classes"];

/// The settings of an ini file.
pub(super) fn ini(path: &Path, text: &str) -> Vec<Switch> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let section = if name == "setup.cfg" { "tool:pytest" } else { "pytest" };
    let (mut switches, mut is_inside, mut current) = (Vec::new(), false, None::<(String, String)>);
    for line in text.lines().chain([""]) {
        let plain = line.trim();
        let is_more = line.starts_with([' ', '\t']) && !plain.is_empty();
        if is_more && let Some((_, value)) = &mut current {
            if !plain.starts_with(['#', ';']) {
                value.push('\n');
                value.push_str(plain);
            }
            continue;
        }
        if plain.is_empty() || plain.starts_with(['#', ';']) {
            continue;
        }
        if let Some((key, value)) = current.take() {
            switches.extend(option(&key, &value));
        }
        if let Some(header) = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_inside = header.trim() == section;
        } else if is_inside && let Some((key, value)) = plain.split_once(['=', ':']) {
            current = Some((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    if let Some((key, value)) = current {
        switches.extend(option(&key, &value));
    }
    switches
}

/// The settings in `pyproject.toml` or `pytest.toml`.
pub(super) fn toml(path: &Path, root: &toml::Table) -> Vec<Switch> {
    let own = path.file_name().is_some_and(|name| name != "pyproject.toml");
    let table = |value: &toml::Value| value.as_table().cloned();
    let tool = root.get("tool").and_then(|tool| tool.get("pytest")).and_then(table);
    let places = if own {
        vec![root.get("pytest").and_then(table)]
    } else {
        let options = tool.as_ref().and_then(|tool| tool.get("ini_options")).and_then(table);
        vec![options, tool]
    };
    let mut switches = Vec::new();
    for (key, value) in places.into_iter().flatten().flatten() {
        let text = match &value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Array(list) => {
                let words = list.iter().map(|entry| entry.as_str().unwrap_or_default());
                let quoted = words.map(|word| {
                    shlex::try_quote(word).map(std::borrow::Cow::into_owned).unwrap_or_default()
                });
                quoted.collect::<Vec<_>>().join("\n")
            }
            _ => continue,
        };
        switches.extend(option(&key, &text));
    }
    switches
}

/// What one option leaves out.
fn option(key: &str, value: &str) -> Vec<Switch> {
    let words = shlex::split(value)
        .unwrap_or_else(|| value.split_whitespace().map(str::to_owned).collect());
    if LEAVES_OUT.contains(&key) {
        return words.iter().map(|word| setting(key, word)).collect();
    }
    if SELECTS.contains(&key) {
        let is_usual = is_usual(key, &words);
        return vec![Switch { is_usual, ..selecting(key, words) }];
    }
    if key == "addopts" { arguments(key, &words) } else { Vec::new() }
}

/// Whether a folder is where tests usually are.
fn is_usual_folder(folder: &str) -> bool {
    let plain = folder.trim_start_matches("./").trim_end_matches('/');
    matches!(plain, "" | "." | "tests" | "test")
}

/// Whether a setting selects what the runner selects without it, or the usual folder.
fn is_usual(key: &str, patterns: &[String]) -> bool {
    let has = |all: &[&str]| all.iter().all(|one| patterns.iter().any(|pattern| pattern == one));
    match key {
        "testpaths" => patterns.iter().all(|folder| is_usual_folder(folder)),
        "python_files" => has(&["test_*.py", "*_test.py"]) || has(&["*.py"]),
        "python_classes" => has(&["Test"]) || has(&["Test*"]),
        _ => has(&["test"]) || has(&["test*"]),
    }
}

/// The arguments that leave tests out.
pub(super) fn arguments(key: &str, words: &[String]) -> Vec<Switch> {
    let mut switches = Vec::new();
    let mut previous = "";
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).map(String::as_str).unwrap_or_default();
        let name = word.split('=').next().unwrap_or(word);
        let joined = ["-k", "-m", "-o", "-c"]
            .iter()
            .any(|short| word.len() > 2 && word.starts_with(short) && !word.starts_with("--"));
        let plugin = if name == "-p" { next } else { word.strip_prefix("-p").unwrap_or_default() };
        let is_plugin = plugin.strip_prefix("no:").is_some_and(|off| !HARMLESS.contains(&off));
        let is_path = !word.starts_with('-') && !is_usual_folder(word) && {
            let is_test =
                word.contains("::") || Path::new(word).extension().is_some_and(|end| end == "py");
            match previous {
                _ if previous.contains('=') => is_test || word.contains('/'),
                "-n" | "-W" | "-p" | "-r" => false,
                // It may be the value of a long option.
                _ if previous.starts_with("--") => is_test && !previous.starts_with("--cov"),
                _ => is_test || word.contains('/'),
            }
        };
        if OPTIONS.contains(&name) || joined || is_plugin {
            let takes = !word.contains('=') && !joined && !next.starts_with('-');
            let whole = if takes { format!("{word} {next}") } else { word.clone() };
            switches.push(setting(key, whole.trim()));
        } else if is_path {
            switches.push(setting(key, word));
        }
        previous = word;
    }
    switches
}
