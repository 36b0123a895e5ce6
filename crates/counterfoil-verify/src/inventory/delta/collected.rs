//! Whether a runner finds the tests of a file by its name, as far as its usual rule says.

use super::super::parse::Language;
use super::super::scope::Module;
use super::Comparison;
use crate::relative_path::below_top;
use memchr::memmem;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

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
    /// Reads which Rust files the new text of a manifest names.
    pub(super) fn targets(&mut self, path: &Path, text: &[u8]) {
        if path.file_name().is_none_or(|name| name != "Cargo.toml") {
            return;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for at in memmem::find_iter(text, b".rs\"") {
            let before = &text[at.saturating_sub(MAX_LINE)..at + b".rs".len()];
            let name = before.rsplit(|byte| *byte == b'"').next().unwrap_or_default();
            if let Ok(name) = std::str::from_utf8(name)
                && !is_in_comment(text, at)
            {
                self.targets.extend(below_top(&folder.join(name)));
            }
        }
    }

    /// Finds the files of the modules that changed files declare.
    pub(super) fn declare(&mut self) {
        for (file, module) in std::mem::take(&mut self.modules) {
            for place in module_files(&file, &module) {
                self.declared.entry(place).or_default().push(file.clone());
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
                if language == Language::Rust && (!is_new() || self.is_built(file)) =>
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

    /// Whether something builds a new Rust file: a manifest names it, or a file that is built declares
    /// it.
    fn is_built(&self, file: &Path) -> bool {
        let mut seen: HashSet<&Path> = HashSet::new();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            if self.targets.contains(file) {
                return true;
            }
            for by in self.declared.get(file).into_iter().flatten() {
                // Where it was there before, something declares it already.
                if !self.created.contains(by) || by_name(Language::Rust, by) != Collected::Never {
                    return true;
                }
                if seen.insert(by) {
                    open.push(by);
                }
            }
        }
        false
    }
}

/// The files in which a module of Rust can be that another file declares.
pub(super) fn module_files(file: &Path, module: &Module) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let stem = file.file_stem().unwrap_or_default();
    let parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
    let is_root = ["lib", "main", "mod"].iter().any(|root| stem == *root)
        || below_tests(&parts).is_some_and(<[&str]>::is_empty)
        || parts.last().is_some_and(|last| ["benches", "bin", "examples"].contains(last));
    let is_known = is_root || parts.contains(&"src") || parts.contains(&"tests");
    let mut folders = Vec::new();
    if is_root || !is_known {
        folders.push(folder.to_owned());
    }
    if !is_root {
        folders.push(folder.join(stem));
    }
    let places = folders.iter().map(|folder| folder.join(&module.within));
    let places: Vec<PathBuf> = match &module.path {
        // Outside of inline modules, a path is relative to the folder of the file.
        Some(path) if module.within.is_empty() => vec![folder.join(path)],
        Some(path) => places.map(|place| place.join(path)).collect(),
        None => {
            let name = &module.name;
            let both = |place: PathBuf| {
                [place.join(format!("{name}.rs")), place.join(name).join("mod.rs")]
            };
            places.flat_map(both).collect()
        }
    };
    places.iter().filter_map(|place| below_top(place)).collect()
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
    match below_tests(folders) {
        Some([]) => Collected::Usually,
        Some([_]) if name == "main.rs" => Collected::Usually,
        _ => Collected::Never,
    }
}

/// The folders in the last folder with tests.
fn below_tests<'f, 'n>(folders: &'f [&'n str]) -> Option<&'f [&'n str]> {
    folders.iter().rposition(|folder| *folder == "tests").map(|at| &folders[at + 1..])
}

fn is_in_comment(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(MAX_LINE)..at];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.trim_ascii_start().starts_with(b"#")
}
