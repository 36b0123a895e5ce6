//! Calling git so that it only looks, and looks at the repository that is meant.

use super::name::Name;
use crate::git::{Answer, Call, Failure};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings that let git look and nothing else. Times and inodes are trusted as they are: a
/// repository that says otherwise would hide an edit whose modification time was put back.
const LOOKING: [&str; 5] = [
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.preloadIndex=true",
    "core.quotePath=false",
];
/// Which git is called, and how long one call of it may take.
#[derive(Clone, Debug)]
pub struct Git {
    /// The program, by name or path.
    pub program: OsString,
    /// A call that takes longer is ended with everything it started.
    pub limit: Duration,
}

impl Default for Git {
    fn default() -> Self {
        Self { program: "git".into(), limit: Duration::from_mins(2) }
    }
}

/// A repository that calls are pinned to, so that one whose `.git` vanished is not taken for the
/// one around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder with its objects and its index.
    pub(super) git_dir: PathBuf,
    /// Where its files are.
    pub(super) top: PathBuf,
    /// What its file system can do.
    pub(super) abilities: Abilities,
}

/// What git found that a file system can do, as it was set when the folder was opened: what an
/// agent sets later to hide an edit does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    /// The executable bit means something.
    pub(super) file_mode: bool,
    /// Names that differ only in case are one.
    pub(super) ignore_case: bool,
    /// There are symbolic links.
    pub(super) symlinks: bool,
}

impl Default for Abilities {
    fn default() -> Self {
        Self { file_mode: true, ignore_case: false, symlinks: true }
    }
}

impl Git {
    /// Calls git in a folder, to find out what is there.
    pub(super) fn discover(&self, folder: &Path, arguments: &[&str]) -> Result<Answer, Failure> {
        self.call(folder, arguments).run()
    }

    /// Calls git for a repository.
    pub(super) fn ask(&self, place: &Place, arguments: &[&str]) -> Result<Answer, Failure> {
        self.call_for(place, arguments).run()
    }

    /// Calls git for what its objects tell, without the index: it may be large, or broken. Paths
    /// are taken as they are.
    pub(super) fn ask_objects(
        &self,
        place: &Place,
        arguments: &[&OsStr],
    ) -> Result<Answer, Failure> {
        self.call_for(place, arguments)
            .env("GIT_INDEX_FILE", place.git_dir.join("no-index"))
            .env("GIT_LITERAL_PATHSPECS", "1")
            .run()
    }

    /// Calls git for what files and blobs are in its eyes. If it cannot because of the index, which
    /// only adds attributes of what is not checked out, it is asked again without.
    pub(super) fn ask_filtered(
        &self,
        place: &Place,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        match self.ask_with(place, arguments, input.clone()) {
            Err(Failure::Refused { words, .. }) if words.contains("index") => {
                let call = with_input(self.call_for(place, arguments), input);
                call.env("GIT_INDEX_FILE", place.git_dir.join("no-index")).run()
            }
            said => said,
        }
    }

    /// Calls git for a repository, with arguments that need not be text and something to read.
    pub(super) fn ask_with(
        &self,
        place: &Place,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        with_input(self.call_for(place, arguments), input).run()
    }

    fn call_for<A: AsRef<OsStr>>(&self, place: &Place, arguments: &[A]) -> Call {
        // The folder of a submodule may be gone while its objects are still there.
        let folder = if place.top.is_dir() { &place.top } else { &place.git_dir };
        let Abilities { file_mode, ignore_case, symlinks } = place.abilities;
        let abilities =
            [("fileMode", file_mode), ("ignoreCase", ignore_case), ("symlinks", symlinks)];
        let call =
            abilities.into_iter().fold(self.call(folder, arguments), |call, (key, value)| {
                call.set(format!("core.{key}={value}"))
            });
        call.env("GIT_DIR", &place.git_dir).env("GIT_WORK_TREE", folder)
    }

    fn call<A: AsRef<OsStr>>(&self, folder: &Path, arguments: &[A]) -> Call {
        let call = Call::new(folder, arguments).by(&self.program, self.limit);
        LOOKING.into_iter().fold(call, Call::set)
    }
}

fn with_input(call: Call, input: Option<Vec<u8>>) -> Call {
    match input {
        Some(input) => call.stdin(input),
        None => call,
    }
}

/// A name as git reads it from a line: quoted if it has to be.
pub(super) fn quoted(name: &Name) -> Vec<u8> {
    let bytes = name.bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\r')) {
        return bytes.to_vec();
    }
    let mut out = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            other => out.push(*other),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        for (name, line) in [
            ("a b", "a b"),
            ("é", "é"),
            ("a\nb", r#""a\nb""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("\"", r#""\"""#),
        ] {
            assert_eq!(quoted(&Name::from(name.as_bytes())), line.as_bytes(), "{name:?}");
        }
    }
}
