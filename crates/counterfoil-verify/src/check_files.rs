//! Decides what the outcome of a check depends on besides the code that it checks: its own scripts,
//! and the settings of test runners and linters. An agent that changes them can make a check pass.
//! Does no I/O.
//!
//! Some files hold other things too: the scripts of a `package.json` stand beside its dependencies.
//! Of these, only the parts that steer a check count.

mod parts;
mod scripts;
mod shell;
mod tables;
mod top_level;

pub(crate) use scripts::{Scripts, scripts};

use crate::inventory::parse::Language;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
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

/// Whether a check can depend on a file.
pub(crate) fn may_steer(path: &Path, scripts: &Scripts) -> bool {
    scripts.contains(path) || SETTINGS.is_match(path)
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
    if start.is_none() && scripts.runs(path) {
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
        "pyproject.toml" => parts::toml(start, now, parts::PYPROJECT),
        "Cargo.toml" => parts::toml(start, now, parts::CARGO),
        "conftest.py" => whole_if(top_level::differ(Role::Hooks, Language::Python, start, now)),
        _ => StartVersion::Whole,
    }
}

#[cfg(test)]
mod tests;
