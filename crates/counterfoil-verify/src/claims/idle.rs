//! Whether make ran what a check counts on. If a file or folder with the name of a target is there, make
//! may run nothing for it and end with 0: then the check says nothing. What make does is known from the
//! makefile and the files that are there, and for a make that a script runs, from what make says.

use super::VerifyContext;
use super::format::display_path;
use super::rerun::StartScripts;
use super::state::VerificationState;
use crate::check_files::{Idle, Present};
use std::path::{Path, PathBuf};

/// How many targets are looked at or named.
const MAX_TARGETS: usize = 20;

/// A target whose recipe make does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdleTarget {
    name: String,
    /// What is there instead, relative to the workspace's folder.
    place: PathBuf,
    is_folder: bool,
}

/// What make said that it has nothing to do for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SaidIdle {
    /// The folder that it said it is in.
    folder: Option<PathBuf>,
    name: String,
}

/// The targets of a check whose recipes make does not run with what is there now.
pub(super) fn idle_targets(
    start: &StartScripts,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Vec<IdleTarget> {
    let Ok(scripts) = &start.scripts else { return Vec::new() };
    let top = context.top;
    let mut look = |path: &Path| {
        let meta = std::fs::metadata(top.join(path)).ok()?;
        Some(Present { is_folder: meta.is_dir(), modified: meta.modified().ok()? })
    };
    let found = scripts.targets.idle(&mut look).into_iter().take(MAX_TARGETS);
    let found = found.filter_map(|Idle { place, name, is_folder, may_be_made }| {
        let place = state.resolver.relative_to_folder(place);
        let counts = !may_be_made || !is_product(&place, state, context);
        counts.then(|| IdleTarget { name: name.to_owned(), place, is_folder })
    });
    found.collect()
}

/// The targets that make said it has nothing to do for, and that are folders. Files may have been
/// made by it.
pub(super) fn said_idle(
    said: Vec<SaidIdle>,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Vec<IdleTarget> {
    let found = said.into_iter().filter_map(|SaidIdle { folder, name }| {
        let path = folder.as_deref().unwrap_or(context.folder).join(&name);
        if !path.is_dir() {
            return None;
        }
        let inside = state.resolver.relative_if_inside(&path);
        let place = inside.or_else(|| path.strip_prefix(context.folder).ok().map(Path::to_owned));
        let place = place.unwrap_or(path);
        let is_made = place.is_relative() && is_product(&place, state, context);
        (!is_made).then_some(IdleTarget { name, place, is_folder: true })
    });
    found.collect()
}

/// Whether a folder is one that tools make: git ignores it, or it is noise.
fn is_product(place: &Path, state: &VerificationState, context: &mut VerifyContext<'_>) -> bool {
    // The patterns of noise are for files.
    state.is_noise(&place.join("file"))
        || !context.view.ignored(std::slice::from_ref(&place.to_owned())).is_empty()
}

/// Finds in the output of a check what make said that it has nothing to do for. In other languages than
/// English it is not found.
pub(super) fn find_said(output: &str) -> Vec<SaidIdle> {
    let mut folders = Vec::new();
    let mut said = Vec::new();
    for line in output.lines().map(str::trim) {
        let message = match line.split_once(": ") {
            Some((program, message)) if is_make(program) => message,
            // BSD make does not say its name.
            _ if line.starts_with('`') => line,
            _ => continue,
        };
        if let Some(folder) = message.strip_prefix("Entering directory ") {
            folders.push(PathBuf::from(unquoted(folder)));
        } else if message.starts_with("Leaving directory ") {
            folders.pop();
        }
        let nothing = message.strip_prefix("Nothing to be done for ");
        let nothing = nothing.and_then(|name| name.strip_suffix('.'));
        if let Some(name) = nothing.or_else(|| message.strip_suffix(" is up to date.")) {
            let one = SaidIdle { folder: folders.last().cloned(), name: unquoted(name).to_owned() };
            if said.len() < MAX_TARGETS && !said.contains(&one) {
                said.push(one);
            }
        }
    }
    said
}

/// Whether a message is from make: `make`, `gmake[1]`, `/usr/bin/make`.
fn is_make(program: &str) -> bool {
    let name = program.split('[').next().unwrap_or(program);
    let name = name.rsplit('/').next().unwrap_or(name);
    matches!(name, "make" | "gmake" | "bmake")
}

fn unquoted(name: &str) -> &str {
    name.trim_matches(['`', '\'', '"', '\u{2018}', '\u{2019}'])
}

/// Why a check that ended with 0 says nothing, after "but".
pub(super) fn reason(idle: &[IdleTarget]) -> String {
    let names: Vec<String> = idle.iter().map(|one| format!("`{}`", one.name)).collect();
    let places: Vec<String> = idle.iter().map(|one| display_path(&one.place)).collect();
    match idle {
        [IdleTarget { is_folder, .. }] => {
            let what = if *is_folder { "folder" } else { "file" };
            format!(
                "make did not run the recipe of {}, because the {what} {} is there; declare the target as .PHONY in the makefile, or move the {what}",
                names.concat(),
                places.concat()
            )
        }
        _ => format!(
            "make did not run the recipes of {}, because {} are there; declare the targets as .PHONY in the makefile, or move what is there",
            names.join(", "),
            places.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(output: &str) -> Vec<(Option<&'static str>, String)> {
        let known = |folder: PathBuf| if folder == Path::new("/r/sub") { "sub" } else { "other" };
        find_said(output).into_iter().map(|one| (one.folder.map(known), one.name)).collect()
    }

    #[test]
    fn what_make_says_is_found() {
        let one = |folder, name: &str| (folder, name.to_owned());
        assert_eq!(
            said(
                "3 passed\nmake: 'test' is up to date.\ngmake[2]: Nothing to be done for `lint'.\nmake[1]: Entering directory '/r/sub'\nmake[1]: 'unit' is up to date.\nmake[1]: Leaving directory '/r/sub'\n/usr/bin/make: 'test' is up to date.\n`all' is up to date.\n"
            ),
            [one(None, "test"), one(None, "lint"), one(Some("sub"), "unit"), one(None, "all"),]
        );
        for other in [
            "the cache is up to date.",
            "check: 'test' is up to date.",
            "make: *** No rule to make target 'test'.  Stop.",
            "make: 'test' is up to date",
        ] {
            assert!(said(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_reason_names_the_target_and_what_is_in_its_place() {
        let one = |name: &str, place: &str, is_folder| IdleTarget {
            name: name.to_owned(),
            place: place.into(),
            is_folder,
        };
        assert_eq!(
            reason(&[one("test", "sub/test", true)]),
            "make did not run the recipe of `test`, because the folder sub/test is there; declare the target as .PHONY in the makefile, or move the folder"
        );
        assert_eq!(
            reason(&[one("a", "a", true), one("b", "b", false)]),
            "make did not run the recipes of `a`, `b`, because a, b are there; declare the targets as .PHONY in the makefile, or move what is there"
        );
    }
}
