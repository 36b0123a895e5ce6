//! The arguments of `bwrap` for a policy. Pure.

use super::places::{Access, Place};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The program.
pub(super) const PROGRAM: &str = "bwrap";

/// The argument list that runs a command in `bwrap`.
///
/// Process ids are shared and `--die-with-parent` is left out: supervision finds the processes, gives
/// them time to end, and kills what is left. The user name space keeps the command from reaching the
/// memory and the folders of other processes of the user.
pub(super) fn argv(
    program: &Path,
    places: &[Place],
    network: bool,
    cwd: &Path,
    command: &[OsString],
) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![program.into()];
    let mut add = |words: &[&OsStr]| argv.extend(words.iter().map(Into::into));
    let word = OsStr::new;
    add(&["--unshare-user", "--unshare-ipc", "--cap-drop", "ALL"].map(word));
    if !network {
        add(&[word("--unshare-net")]);
    }
    add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"].map(word));
    for place in places {
        let path = place.path.as_os_str();
        match place.access {
            Access::Write => add(&[word("--bind"), path, path]),
            Access::Read => add(&[word("--ro-bind"), path, path]),
            Access::Private => add(&[word("--perms"), word("1777"), word("--tmpfs"), path]),
            // What is bound into it later still can be: it is only made read-only at the end.
            Access::Hidden if place.folder => add(&[word("--tmpfs"), path]),
            Access::Hidden => add(&[word("--ro-bind"), word("/dev/null"), path]),
        }
    }
    for place in places.iter().filter(|place| place.access == Access::Hidden && place.folder) {
        add(&[word("--remount-ro"), place.path.as_os_str()]);
    }
    add(&[word("--chdir"), cwd.as_os_str(), word("--")]);
    argv.extend(command.iter().cloned());
    argv
}
