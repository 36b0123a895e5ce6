//! Finds the files that a check runs: those of the repository that its command executes, and the
//! shell scripts that these run in turn.
//!
//! The rule: what is *executed* counts, and what is only *read* does not. Executed are a program with
//! a path, the script that is given to an interpreter, directly or behind words such as `env -i` or
//! `uv run`, what a shell reads from a pipe or a loop, and the files whose targets `make` and the like
//! run. So do files that are named by an option such as `--config` or `--require`. Other arguments are
//! what is checked: the test of `pytest tests/test_a.py` is changed together with the code.
//!
//! Which of the words behind an interpreter is the script depends on its options. A word that follows
//! an option is the script only if such a file existed when the run began.

mod interpreters;
mod make_words;
mod packages;
mod recipes;
mod targets;

pub(crate) use targets::{Idle, Present, Targets};

use super::shell::{expand, is_assignment, read_line, without_variable};
use super::tables::{has, is_subcommand, maker_files};
use crate::config::CheckCommand;
use crate::relative_path::below_top;
use counterfoil_contract::text::display_path;
use globset::Glob;
use packages::Packages;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many scripts are followed, and how deep.
const MAX_SCRIPTS: usize = 1000;
const MAX_DEPTH: usize = 5;
/// How many bytes of a script are searched for others.
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// How many files are looked for.
const MAX_LOOKS: usize = 10_000;

/// Reads a file of the repository as it was at the start of the run; none if there was none.
pub(crate) type ReadAtStart<'a> = dyn FnMut(&Path) -> Result<Option<Vec<u8>>, String> + 'a;

/// The files that a check runs, relative to the top of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scripts {
    /// Files that its command runs.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Globs of files that its command runs one after the other.
    globs: BTreeSet<String>,
    /// Files that would be run instead of an installed program.
    pub(crate) shadows: BTreeSet<PathBuf>,
    /// Folders in which Python looks for modules before it looks at its own.
    pub(super) module_folders: BTreeSet<PathBuf>,
    /// Files without which there was no check when the run began.
    pub(super) missing: BTreeSet<PathBuf>,
    /// Files that a script or a makefile runs only if they exist.
    optional: BTreeSet<PathBuf>,
    /// Globs of the files that a makefile includes.
    included: BTreeSet<String>,
    /// The targets of make that it counts on.
    pub(crate) targets: Targets,
}

impl Scripts {
    /// Whether the check runs a file, or would run it.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.runs(path) || self.shadows.contains(path) || matches_any(&self.included, path)
    }

    /// Whether the check runs a file.
    pub(crate) fn runs(&self, path: &Path) -> bool {
        self.files.contains(path) || matches_any(&self.globs, path)
    }

    /// Whether there was no check before a file that is new: it is the script, or the file that the
    /// program of the check looks for, or a part of such a file. A script that did without the file was a
    /// check.
    pub(super) fn is_first(&self, path: &Path) -> bool {
        let is_rules = |path: &Path| path.extension().is_some_and(|extension| extension == "mk");
        let has_makefile = |file: &PathBuf| file.file_name().is_some_and(|it| it == "Makefile");
        self.runs(path) && !self.optional.contains(path)
            || self.missing.contains(path)
            || is_rules(path) && self.missing.iter().any(has_makefile)
    }
}

/// Whether one of some globs matches a path.
fn matches_any(globs: &BTreeSet<String>, path: &Path) -> bool {
    globs.iter().any(|glob| Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(path)))
}

/// The scripts of a check, relative to the top of the repository. `folder` is where the check runs.
///
/// # Errors
///
/// A file cannot be read.
pub(crate) fn scripts(
    run: &CheckCommand,
    folder: &Path,
    read: &mut ReadAtStart<'_>,
) -> Result<Scripts, String> {
    let mut search = Search {
        found: Scripts::default(),
        read,
        seen: BTreeMap::new(),
        packages: BTreeMap::new(),
        makefiles: BTreeSet::new(),
        variables: BTreeMap::new(),
        program_folders: BTreeSet::new(),
        failure: None,
    };
    let mut place = Place { folder: folder.to_owned(), script: None };
    match run {
        CheckCommand::Shell(line) => search.lines(line, place, 0, true),
        CheckCommand::Argv(argv) => {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            search.command(&argv, &mut place, 0, true);
        }
    }
    match search.failure {
        Some(why) => Err(why),
        None => Ok(search.found),
    }
}

/// Where a command runs.
#[derive(Clone)]
struct Place {
    folder: PathBuf,
    /// The folder of the script that the command is in.
    script: Option<PathBuf>,
}

impl Place {
    /// `cd`.
    fn change_folder(&mut self, arguments: &[&str]) {
        let Some(to) = arguments.iter().find(|word| !word.starts_with('-')) else { return };
        let of_script = ["dirname", "BASH_SOURCE", "%/*"].iter().any(|sign| to.contains(sign));
        let base = self.script.as_ref().filter(|_| of_script).unwrap_or(&self.folder);
        match without_variable(to) {
            Some(to) => self.folder = base.join(to),
            None if of_script => self.folder = base.clone(),
            // What a variable holds is not known here.
            None => {}
        }
    }
}

struct Search<'a, 'r> {
    found: Scripts,
    read: &'a mut ReadAtStart<'r>,
    /// The files that were looked for.
    seen: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// The `package.json` files whose scripts are searched, for commands that count and for those in
    /// scripts.
    packages: BTreeMap<(PathBuf, bool), Packages>,
    /// The makefiles and targets that were searched.
    makefiles: BTreeSet<(PathBuf, String)>,
    /// The values of variables that a line sets.
    variables: BTreeMap<String, String>,
    /// Folders of the repository that `PATH` was set to.
    program_folders: BTreeSet<PathBuf>,
    failure: Option<String>,
}

impl Search<'_, '_> {
    /// A file as it was at the start.
    fn content(&mut self, path: &Path) -> Option<&[u8]> {
        if !self.seen.contains_key(path) {
            if self.seen.len() >= MAX_LOOKS {
                self.failure.get_or_insert_with(|| format!("it names more than {MAX_LOOKS} files"));
                return None;
            }
            let content = (self.read)(path).unwrap_or_else(|why| {
                let path = display_path(path);
                self.failure.get_or_insert_with(|| {
                    format!("it runs {path}, and how it was at the start cannot be read: {why}")
                });
                None
            });
            self.seen.insert(path.to_owned(), content);
        }
        self.seen.get(path)?.as_deref()
    }

    fn existed(&mut self, path: &Path) -> bool {
        self.content(path).is_some()
    }

    /// The files that a word can name, those that existed first.
    fn named(&mut self, word: &str, place: &Place) -> Vec<PathBuf> {
        let Some(name) = without_variable(word).filter(|name| !name.is_empty()) else {
            return Vec::new();
        };
        let mut places = vec![place.folder.clone()];
        if name != word {
            places
                .extend(place.script.iter().flat_map(|script| script.ancestors()).map(Into::into));
            places.push(PathBuf::new());
        }
        let mut files: Vec<PathBuf> =
            places.iter().filter_map(|place| below_top(&place.join(name))).collect();
        files.dedup();
        let existing: Vec<PathBuf> =
            files.iter().filter(|file| self.existed(file)).cloned().collect();
        if existing.is_empty() { files.into_iter().take(1).collect() } else { existing }
    }

    /// The files that a word names and that existed.
    fn named_existing(&mut self, word: &str, place: &Place) -> Vec<PathBuf> {
        let mut files = self.named(word, place);
        files.retain(|file| self.existed(file));
        files
    }

    /// Searches the commands of shell lines. In a script that a check runs, other programs than
    /// shell scripts may be what is checked, so they do not count.
    fn lines(&mut self, text: &str, mut place: Place, depth: usize, is_direct: bool) {
        if depth > MAX_DEPTH {
            return;
        }
        let mut outer = Vec::new();
        for line in text.replace("\\\n", " ").lines() {
            let read = read_line(line);
            let parts: Vec<Vec<String>> =
                read.commands.iter().filter_map(|part| shlex::split(part)).collect();
            for words in &parts {
                let words: Vec<String> =
                    words.iter().map(|word| expand(word, &self.variables)).collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                match words.as_slice() {
                    ["("] => outer.push(place.clone()),
                    [")"] => place = outer.pop().unwrap_or(place),
                    words => self.command(words, &mut place, depth, is_direct),
                }
            }
            if line.contains("||") {
                self.without_files(&parts, &place);
            }
            self.indirect(line, &parts, &place, depth);
            // What a script compares the output of is what it checks.
            for inner in read.substitutions.into_iter().filter(|_| is_direct) {
                self.lines(&inner, place.clone(), depth + 1, is_direct);
            }
        }
    }

    /// A line that goes on without the files that its commands run: `. ./local.sh || true`.
    fn without_files(&mut self, parts: &[Vec<String>], place: &Place) {
        for words in parts {
            let sourced = match &words[..] {
                [first, file, ..] if matches!(first.as_str(), "." | "source") => Some(file),
                _ => None,
            };
            let files = sourced.map(|file| self.named(&expand(file, &self.variables), place));
            self.found.optional.extend(files.into_iter().flatten());
        }
    }

    /// `[ -f FILE ]` and the like.
    fn condition(&mut self, arguments: &[&str], place: &Place) {
        for pair in arguments.windows(2) {
            if matches!(pair[0], "-a" | "-e" | "-f" | "-h" | "-L" | "-r" | "-s" | "-x") {
                let files = self.named(pair[1], place);
                self.found.optional.extend(files);
            }
        }
    }

    /// Searches a line for files that shells run without their names: what is piped into a shell, and
    /// what a loop or `find` gives to one.
    fn indirect(&mut self, line: &str, parts: &[Vec<String>], place: &Place, depth: usize) {
        let is_prefix = |word: &String| {
            has("keywords", word)
                || has("wrappers", word)
                || is_assignment(word)
                || word.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        };
        let mut scripts = Vec::new();
        for words in parts {
            for (at, _) in words.iter().enumerate().filter(|(_, word)| has("shells", word)) {
                let is_executed = at > 0 && words[at - 1].starts_with("-exec");
                if is_executed || words[..at].iter().all(is_prefix) {
                    scripts.push(words[at + 1..].iter().find(|word| !word.starts_with('-')));
                }
            }
        }
        let reads_pipe = line.contains('|') && scripts.contains(&None);
        let is_variable = |script: &&String| script.contains('$') || *script == "{}";
        if !reads_pipe && !scripts.iter().flatten().any(is_variable) {
            return;
        }
        for words in parts {
            let is_find = words.first().is_some_and(|word| word == "find");
            let names =
                |word: &&String| !word.starts_with(['-', '$', '<', '>']) && !is_assignment(word);
            for word in words.iter().filter(names) {
                let path = place.folder.join(word);
                match below_top(&path) {
                    Some(path) if word.contains(['*', '?', '[']) => {
                        self.found.globs.extend(path.to_str().map(str::to_owned));
                    }
                    Some(path) if is_find && word != "find" => {
                        self.found.globs.extend(path.to_str().map(|path| format!("{path}/**")));
                    }
                    Some(path) if word.contains(['.', '/']) => self.add(&path, place, depth, true),
                    _ => {}
                }
            }
        }
    }

    fn command(&mut self, words: &[&str], place: &mut Place, depth: usize, is_direct: bool) {
        let mut words = words;
        while let [first, rest @ ..] = words
            && (has("keywords", first) || is_assignment(first))
        {
            if *first == "eval" {
                return self.lines(&rest.join(" "), place.clone(), depth + 1, is_direct);
            }
            self.assignment(first, place);
            words = rest;
        }
        let [program, arguments @ ..] = words else { return };
        let name = program.rsplit('/').next().unwrap_or(program);
        let name = if name.starts_with("python") {
            name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit())
        } else {
            name
        };
        if program.contains('/') && is_direct {
            for path in self.named(program, place) {
                self.add(&path, place, depth, true);
            }
        }
        for folder in self.program_folders.clone() {
            let file = folder.join(program);
            if !program.contains('/') && is_direct && self.existed(&file) {
                self.add(&file, place, depth, true);
            }
        }
        let subcommand = arguments.iter().position(|word| is_subcommand(name, word));
        if let Some(at) = arguments.iter().position(|word| *word == "<")
            && let Some(input) = arguments.get(at + 1)
            && has("interpreters", name)
        {
            let is_shell = has("shells", name);
            for path in self.named(input, place).into_iter().filter(|_| is_direct || is_shell) {
                self.add(&path, place, depth, is_shell);
            }
        } else if matches!(*program, "[" | "[[" | "test") {
            self.condition(arguments, place);
        } else if *program == "cd" {
            place.change_folder(arguments);
        } else if let Some(line) = option(arguments, &["-S", "--split-string"])
            && name == "env"
        {
            self.lines(line, place.clone(), depth + 1, is_direct);
        } else if has("file-wrappers", name) {
            let file = arguments.iter().position(|word| !word.starts_with('-'));
            let rest = file.and_then(|at| arguments.get(at + 1..)).unwrap_or_default();
            self.wrapped(rest, place, depth, is_direct);
        } else if has("wrappers", name) {
            self.wrapped(arguments, place, depth, is_direct);
        } else if has("interpreters", name) {
            self.interpreter(name, arguments, place, depth, is_direct);
        } else if has("packages", name) {
            let at = option(arguments, &["--prefix", "-C", "--cwd", "--dir"]).unwrap_or(".");
            self.package_scripts(&place.folder.join(at), arguments, depth, is_direct);
            if let Some(at) = subcommand {
                self.wrapped(&arguments[at + 1..], place, depth, is_direct);
            }
        } else if let Some(at) = subcommand {
            self.wrapped(&arguments[at + 1..], place, depth, is_direct);
        } else if let Some(files) = maker_files(name).filter(|_| is_direct) {
            self.maker(&files.collect::<Vec<_>>(), arguments, place, depth);
            self.settings(name, arguments, place, depth);
        } else if name == "run-parts" {
            let folder = arguments.iter().rfind(|word| !word.starts_with('-'));
            let folder = folder.and_then(|folder| below_top(&place.folder.join(folder)));
            let glob = folder.and_then(|folder| Some(format!("{}/*", folder.to_str()?)));
            self.found.globs.extend(glob);
        } else if is_direct {
            self.settings(name, arguments, place, depth);
        }
    }

    /// The files that options name as settings of a program.
    fn settings(&mut self, program: &str, arguments: &[&str], place: &Place, depth: usize) {
        let is_runner = has("runners", program) || has("interpreters", program);
        let names_file =
            |option: &str| has("any-options", option) || is_runner && has("runner-options", option);
        for (at, word) in arguments.iter().enumerate().filter(|(_, word)| word.starts_with('-')) {
            let value = match word.split_once('=') {
                Some((option, value)) => names_file(option).then_some(value),
                None => arguments.get(at + 1).copied().filter(|_| names_file(word)),
            };
            if let Some(value) = value {
                self.add_existing(value, place, depth);
            }
        }
    }

    /// `make` and the like, which look for a file.
    fn maker(&mut self, names: &[&str], arguments: &[&str], place: &Place, depth: usize) {
        let at = option(arguments, &["-C", "--directory"]).unwrap_or(".");
        // Which folder a variable names is not known here.
        if at.contains('$') {
            return;
        }
        let at = place.folder.join(at);
        let at = Place { folder: at, script: place.script.clone() };
        let file = ["-f", "--file", "--makefile", "--justfile", "--taskfile"];
        if let Some(file) = option(arguments, &file) {
            for path in self.named(file, &at) {
                self.add(&path, &at, depth, false);
                self.recipes(&path, arguments, &at, depth);
            }
            return;
        }
        if arguments.iter().any(|word| word.starts_with("--manifest-path")) {
            return;
        }
        // Some of them look in the folders above as well.
        let files = |folder: &Path| -> Vec<PathBuf> {
            names.iter().filter_map(|name| below_top(&folder.join(name))).collect()
        };
        let folders: Vec<PathBuf> = at.folder.ancestors().map(Path::to_owned).collect();
        let all: Vec<PathBuf> = folders.iter().flat_map(|folder| files(folder)).collect();
        match files(&at.folder).into_iter().find(|file| self.existed(file)) {
            Some(file) => self.recipes(&file, arguments, &at, depth),
            None if all.iter().any(|file| self.existed(file)) => {}
            None => self.found.missing.extend(files(&at.folder)),
        }
    }

    fn add_existing(&mut self, word: &str, place: &Place, depth: usize) {
        for path in self.named_existing(word, place) {
            self.add(&path, place, depth, false);
        }
    }

    /// Adds a script, and the shell scripts that it runs.
    fn add(&mut self, path: &Path, place: &Place, depth: usize, may_be_shell: bool) {
        if self.found.files.contains(path) {
            return;
        }
        if self.found.files.len() >= MAX_SCRIPTS {
            self.failure.get_or_insert_with(|| format!("it runs more than {MAX_SCRIPTS} scripts"));
            return;
        }
        self.found.files.insert(path.to_owned());
        if !may_be_shell || depth >= MAX_DEPTH {
            return;
        }
        let Some(bytes) = self.content(path) else { return };
        if bytes.len() <= MAX_SCRIPT_BYTES
            && let Ok(text) = String::from_utf8(bytes.to_vec())
        {
            let script = path.parent().map(Path::to_owned);
            let place = Place { folder: place.folder.clone(), script };
            self.lines(&text, place, depth + 1, false);
        }
    }

    /// Searches the scripts of a `package.json` that a command runs. What is not direct in the command
    /// is not in them.
    fn package_scripts(
        &mut self,
        folder: &Path,
        arguments: &[&str],
        depth: usize,
        is_direct: bool,
    ) {
        if depth >= MAX_DEPTH {
            return;
        }
        let Some(file) = below_top(&folder.join("package.json")) else { return };
        let key = (file, is_direct);
        if !self.packages.contains_key(&key) {
            let Some(bytes) = self.content(&key.0) else {
                // A script may do without it.
                self.found.missing.extend(is_direct.then_some(key.0));
                return;
            };
            let packages = Packages::new(bytes);
            self.packages.insert(key.clone(), packages);
        }
        let called = self.packages.get_mut(&key).map(|packages| packages.called_by(arguments));
        for line in called.unwrap_or_default() {
            let place = Place { folder: folder.to_owned(), script: None };
            self.lines(&line, place, depth + 1, is_direct);
        }
    }
}

/// The value of an option, in the next word or behind a `=`.
fn option<'w>(arguments: &[&'w str], names: &[&str]) -> Option<&'w str> {
    arguments.iter().enumerate().find_map(|(at, word)| {
        let value = word.split_once('=').filter(|(name, _)| names.contains(name));
        let next = || arguments.get(at + 1).copied().filter(|_| names.contains(word));
        value.map(|(_, value)| value).or_else(next)
    })
}
