//! Whether a runner finds the tests of a file by its name, as far as its usual rule says.

use super::super::parse::Language;
use super::Comparison;
use memchr::memmem;
use std::cmp::Reverse;
use std::path::Path;

/// Folders that pytest does not search.
const NOT_SEARCHED: [&str; 6] = ["build", "dist", "node_modules", "venv", "CVS", "_darcs"];

/// The maximum length of a line that is examined before a name.
const MAX_LINE: usize = 200;

/// How surely a runner finds the tests of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Collected {
    /// By the usual rules, none does.
    Never,
    /// Some runners do.
    Perhaps,
    /// The usual ones do by its folder.
    ByFolder,
    /// The usual ones do.
    Usually,
}

impl Collected {
    /// Whether the tests of a file are lost where this becomes of it.
    pub(super) fn is_lost_in(self, to: Self) -> bool {
        match to {
            Self::Never => self != Self::Never,
            Self::Perhaps => self == Self::Usually,
            Self::ByFolder | Self::Usually => false,
        }
    }
}

impl Comparison {
    /// Reads which Rust files the new text of a file declares: modules, and paths in quotes.
    pub(super) fn declare(&mut self, path: &Path, text: &[u8]) {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if !is_rust && path.file_name().is_none_or(|name| name != "Cargo.toml") {
            return;
        }
        for at in memmem::find_iter(text, b"mod ") {
            let rest = text.get(at + 4..).unwrap_or_default();
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let end = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            if rest.trim_ascii_start().starts_with(b";") && !is_in_comment(text, at) {
                self.declared.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        for at in memmem::find_iter(text, b".rs\"") {
            let before = &text[at.saturating_sub(MAX_LINE)..at];
            let name = before.rsplit(|byte| matches!(byte, b'"' | b'/' | b'\\')).next();
            if let Some(name) = name.filter(|_| !is_in_comment(text, at)) {
                self.declared.insert(format!("{}.rs", String::from_utf8_lossy(name)));
            }
        }
    }

    /// How surely a runner finds the tests of a file, after the step.
    pub(super) fn collected(&self, file: &Path) -> Collected {
        let Some(language) = Language::from_path(file) else { return Collected::Never };
        let is_new = || self.created.contains(file);
        match by_name(language, file) {
            // Where it was there before, something declares it already.
            Collected::Never
                if language == Language::Rust && (!is_new() || self.declares(file)) =>
            {
                Collected::Usually
            }
            collected => collected,
        }
    }

    /// Puts added tests first that runners find: where a test is there twice, it is not lost.
    pub(super) fn sort_added(&mut self) {
        let mut added = std::mem::take(&mut self.added);
        added.sort_by_cached_key(|added| Reverse(self.collected(&added.file)));
        self.added = added;
    }

    /// Whether a changed file declares a Rust file.
    fn declares(&self, file: &Path) -> bool {
        let is_declared = |name: Option<&std::ffi::OsStr>| {
            name.is_some_and(|name| self.declared.contains(&*name.to_string_lossy()))
        };
        let is_folder = file.file_name().is_some_and(|name| name == "mod.rs");
        let module =
            if is_folder { file.parent().and_then(Path::file_name) } else { file.file_stem() };
        is_declared(module) || is_declared(file.file_name())
    }
}

/// How surely a runner finds the tests of a file, by its name alone.
pub(super) fn by_name(language: Language, file: &Path) -> Collected {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let Some((name, folders)) = parts.split_last() else { return Collected::Never };
    let is_in = |folder: &str| folders.contains(&folder);
    match language {
        Language::Rust => rust(name, folders),
        Language::Python => {
            let is_skipped = |folder: &&str| {
                let is_egg = Path::new(folder).extension().is_some_and(|it| it == "egg");
                folder.starts_with('.') || is_egg || NOT_SEARCHED.contains(folder)
            };
            let is_source = file.extension().is_some_and(|extension| extension == "py");
            if is_source && language.is_collected(file) && !folders.iter().any(is_skipped) {
                Collected::Usually
            } else {
                Collected::Never
            }
        }
        Language::Go if language.is_collected(file) => Collected::Usually,
        Language::Go => Collected::Never,
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let words: Vec<&str> = stem.split(['.', '-', '_']).collect();
            let is_mark = |word: &&str| matches!(*word, "test" | "tests" | "spec" | "cy" | "e2e");
            let is_marked = words.first().is_some_and(is_mark)
                || words.last().is_some_and(is_mark)
                || ["Test", "Tests", "Spec"].iter().any(|mark| stem.ends_with(*mark));
            match () {
                () if is_in("node_modules") || words.last() == Some(&"d") => Collected::Never,
                () if is_marked => Collected::Usually,
                () if is_in("__tests__") || is_in("test") => Collected::ByFolder,
                () if language.is_collected(file) => Collected::Perhaps,
                () => Collected::Never,
            }
        }
    }
}

/// Cargo finds tests in the sources, in the files of `tests`, and in `main.rs` of its folders. Other
/// files are modules that one of these declares.
fn rust(name: &str, folders: &[&str]) -> Collected {
    if folders.contains(&"src") {
        return Collected::Usually;
    }
    let below = folders.iter().rposition(|folder| *folder == "tests").map(|at| &folders[at + 1..]);
    match below {
        Some([]) => Collected::Usually,
        Some([_]) if name == "main.rs" => Collected::Usually,
        _ => Collected::Never,
    }
}

fn is_in_comment(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(MAX_LINE)..at];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.trim_ascii_start().starts_with(b"//") || line.trim_ascii_start().starts_with(b"# ")
}
