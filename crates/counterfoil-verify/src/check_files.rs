//! Decides what the outcome of a check depends on besides the code that it checks: its own scripts,
//! and the settings of test runners and linters. An agent that changes them can make a check pass.
//! Does no I/O.
//!
//! Some files hold other things too: the scripts of a `package.json` stand beside its dependencies.
//! Of these, only the parts that steer a check count.

mod parts;
mod scripts;

pub(crate) use scripts::{Scripts, scripts};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;
use std::sync::LazyLock;

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
    if scripts.shadows.contains(path) {
        return StartVersion::Whole;
    }
    if scripts.runs(path) {
        // Before there was a script, there was no check to weaken.
        return if start.is_some() { StartVersion::Whole } else { StartVersion::Same };
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        "package.json" => parts::json(start, now, parts::PACKAGE_JSON),
        "pyproject.toml" => parts::toml(start, now, parts::PYPROJECT),
        "Cargo.toml" => parts::toml(start, now, parts::CARGO),
        "conftest.py" => parts::python_hooks(start, now),
        _ => StartVersion::Whole,
    }
}

#[cfg(test)]
mod tests;
