//! The arguments of the command of the binary that restricts itself. Pure.

use super::Restriction;
use super::places::{Access, Place};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name of the command of the binary that restricts itself with Landlock.
pub const COMMAND: &str = "contained";

/// The argument list that runs a command restricted.
pub(super) fn argv(executable: &Path, restriction: &Restriction) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![executable.into(), COMMAND.into()];
    let mut add = |words: &[&OsStr]| argv.extend(words.iter().map(Into::into));
    for place in &restriction.places {
        let option = match (place.access, place.folder) {
            (Access::Write, _) => "--write",
            (Access::Read, _) => "--read",
            (Access::Private, _) => "--private",
            (Access::Hidden, true) => "--hide-folder",
            (Access::Hidden, false) => "--hide-file",
        };
        add(&[OsStr::new(option), place.path.as_os_str()]);
    }
    if restriction.mounts {
        add(&[OsStr::new("--mounts")]);
    }
    if !restriction.network {
        add(&[OsStr::new("--no-network")]);
    }
    add(&[OsStr::new("--cwd"), restriction.cwd.as_os_str(), OsStr::new("--")]);
    argv.extend(restriction.argv.iter().cloned());
    argv
}

/// The places for rules alone, on a system without user name spaces. A rule cannot take away what
/// another one gives, so a writable folder with something in it that is not writable is replaced by
/// its entries. Then nothing new can be made directly in it.
///
/// `entries` lists the entries of a folder.
pub(super) fn without_mounts(
    places: &[Place],
    entries: &dyn Fn(&Path) -> Vec<Place>,
) -> Vec<Place> {
    let not_writable = |place: &&Place| matches!(place.access, Access::Read | Access::Hidden);
    let barred: Vec<&Place> = places.iter().filter(not_writable).collect();
    let mut rules = Vec::new();
    let mut left: Vec<Place> = places
        .iter()
        .filter(|place| matches!(place.access, Access::Write | Access::Private))
        .cloned()
        .collect();
    while let Some(place) = left.pop() {
        let is_own = |barred: &&&Place| {
            places.iter().any(|other| {
                other.access == Access::Write
                    && place.path.starts_with(&other.path)
                    && other.path.starts_with(&barred.path)
            })
        };
        if barred.iter().any(|barred| place.path.starts_with(&barred.path) && !is_own(&barred)) {
            continue;
        }
        if barred.iter().any(|barred| barred.path.starts_with(&place.path)) {
            left.extend(entries(&place.path));
        } else if !rules.iter().any(|rule: &Place| rule.path == place.path) {
            rules.push(Place { access: Access::Write, ..place });
        }
    }
    rules.sort_by(|one, other| one.path.cmp(&other.path));
    rules
}
