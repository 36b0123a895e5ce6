//! Decides what the outcome of a check depends on besides the code that it checks: its own scripts,
//! and the settings of test runners and linters. An agent that changes them can make a check pass.
//! Does no I/O.
//!
//! Some files hold other things too: the scripts of a `package.json` stand beside its dependencies.
//! Of these, only the parts that steer a check count.

mod ini;
mod parts;
mod scripts;
mod shell;
mod tables;
mod top_level;
mod vite;

pub(crate) use scripts::{Idle, Present, Scripts, scripts};

use crate::inventory::parse::Language;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;
use top_level::Role;

/// The names of files that steer checks, wherever they are. The list is in a file of its own because
/// it names third-party products.
static SETTINGS: LazyLock<GlobSet> = LazyLock::new(|| {
    let mut set = GlobSetBuilder::new();
    let lines = include_str!("check_files/settings.txt").lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Ok(glob) = GlobBuilder::new(&format!("**/{line}")).literal_separator(true).build() {
            set.add(glob);
        }
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
});

/// How a file is put back to the start of the run for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartVersion {
    /// Nothing that the check depends on changed.
    Same,
    /// As it was, or absent.
    Whole,
    /// As it is now, with the parts that steer a check as they were.
    Merged(Vec<u8>),
}

/// The names of modules that Python's test runners import.
static PYTHON_MODULES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("check_files/python_modules.txt").lines();
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect()
});

/// Whether a check can depend on a file.
pub(crate) fn may_steer(path: &Path, scripts: &Scripts) -> bool {
    scripts.contains(path) || SETTINGS.is_match(path) || replaces_module(path, scripts)
}

/// Whether Python takes a file for a module that a test runner imports.
fn replaces_module(path: &Path, scripts: &Scripts) -> bool {
    let is_package = path.file_stem().is_some_and(|stem| stem == "__init__");
    let Some(module) = (if is_package { path.parent() } else { Some(path) }) else { return false };
    let is_code = path
        .extension()
        .is_some_and(|extension| ["py", "pyc", "so", "pyd"].iter().any(|code| extension == *code));
    let name = module.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.split('.').next().unwrap_or(name);
    is_code
        && PYTHON_MODULES.contains(name)
        && module.parent().is_some_and(|folder| scripts.module_folders.contains(folder))
}

/// Whether a file has tests in a language in which it may also be run as a script, by its name.
fn is_test_name(path: &Path) -> bool {
    Language::from_path(path)
        .is_some_and(|language| language != Language::Rust && language.is_collected(path))
}

/// How a changed file is put back, given its content at the start and now; none if it did not or does
/// not exist.
pub(crate) fn start_version(
    path: &Path,
    scripts: &Scripts,
    start: Option<&[u8]>,
    now: Option<&[u8]>,
) -> StartVersion {
    if start == now || !may_steer(path, scripts) {
        return StartVersion::Same;
    }
    // Before there was the file, there was no check to weaken.
    if start.is_none() && scripts.is_first(path) {
        return StartVersion::Same;
    }
    let whole_if = |differs: bool| if differs { StartVersion::Whole } else { StartVersion::Same };
    if scripts.contains(path) {
        return match Language::from_path(path).filter(|_| is_test_name(path)) {
            Some(language) if start.is_some() && now.is_some() => {
                whole_if(top_level::differ(Role::Tests, language, start, now))
            }
            _ => StartVersion::Whole,
        };
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        "package.json" => parts::json(start, now, parts::PACKAGE_JSON),
        "deno.json" | "deno.jsonc" => parts::json(start, now, parts::DENO),
        "pyproject.toml" => parts::toml(start, now, parts::PYPROJECT, parts::PYPROJECT_ORDINARY),
        "Cargo.toml" => parts::toml(start, now, parts::CARGO, &[]),
        "rust-toolchain.toml" => parts::toml(start, now, parts::TOOLCHAIN, &[]),
        "config.toml" => parts::toml(start, now, parts::CARGO_CONFIG, &[]),
        "pytest.ini" | ".pytest.ini" | "tox.ini" | "setup.cfg" => ini::version(start, now),
        "go.work" => parts::go_work(start, now),
        "conftest.py" => whole_if(top_level::differ(Role::Hooks, Language::Python, start, now)),
        _ if name.starts_with("tsconfig") => parts::json(start, now, parts::TSCONFIG),
        _ if name.starts_with("vite.config.") || name.starts_with("vitest.config.") => {
            whole_if(vite::differ(path, start, now))
        }
        // A module of the project that has the name of another one may change.
        _ if !SETTINGS.is_match(path) => whole_if(start.is_none()),
        _ => StartVersion::Whole,
    }
}

#[cfg(test)]
mod tests;
