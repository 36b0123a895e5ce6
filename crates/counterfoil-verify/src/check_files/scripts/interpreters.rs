//! Which of the words behind an interpreter, or behind a program that starts another one, is run.

use super::super::is_test_name;
use super::super::shell::{is_assignment, without_variable};
use super::super::tables::{has, is_known};
use super::{Place, Search};
use crate::relative_path::below_top;
use std::path::Path;

/// How many variables are remembered.
const MAX_VARIABLES: usize = 1000;

impl Search<'_, '_> {
    /// Notes what a variable is set to, and the folders of `PATH` and `PYTHONPATH`.
    pub(super) fn assignment(&mut self, word: &str, place: &Place) {
        if let Some((name, value)) = word.split_once('=').filter(|_| is_assignment(word))
            && self.variables.len() < MAX_VARIABLES
        {
            self.variables.insert(name.to_owned(), value.to_owned());
        }
        for folder in word.strip_prefix("PATH=").unwrap_or_default().split(':') {
            let folder = match without_variable(folder) {
                Some(folder) if !folder.is_empty() => place.folder.join(folder),
                _ => continue,
            };
            self.program_folders.extend(below_top(&folder));
        }
        let Some(folders) = word.strip_prefix("PYTHONPATH=") else { return };
        for folder in folders.split(':') {
            let folder = without_variable(folder).unwrap_or(".");
            self.search_modules(&place.folder.join(folder));
        }
    }

    fn search_modules(&mut self, folder: &Path) {
        // The name of a file makes the folder one that is not empty.
        let folder = below_top(&folder.join("x")).and_then(|file| Some(file.parent()?.to_owned()));
        self.found.module_folders.extend(folder);
    }

    /// The program that follows the options of another one.
    pub(super) fn wrapped(
        &mut self,
        words: &[&str],
        place: &mut Place,
        depth: usize,
        is_direct: bool,
    ) {
        let (mut follows_option, mut skipped_value) = (false, false);
        for (at, word) in words.iter().enumerate() {
            let name = word.rsplit('/').next().unwrap_or(word);
            if is_assignment(word) {
                self.assignment(word, place);
            } else if *word == "--" {
                follows_option = false;
            } else if word.starts_with('-') {
                follows_option = true;
            } else if is_known(name) {
                return self.command(&words[at..], place, depth, is_direct);
            } else if word.starts_with(|c: char| c.is_ascii_digit()) {
                follows_option = false;
            } else {
                let existing = self.named_existing(word, place);
                if existing.is_empty() && follows_option {
                    // It may be the value of the option.
                    (follows_option, skipped_value) = (false, true);
                    continue;
                }
                if existing.is_empty() {
                    return self.command(&words[at..], place, depth, is_direct);
                }
                // Behind a word that may be the program, it may be what is checked.
                let is_executed =
                    !(skipped_value && existing.iter().any(|file| is_test_name(file)));
                for path in existing.into_iter().filter(|_| is_direct && is_executed) {
                    self.add(&path, place, depth, true);
                }
                return;
            }
        }
    }

    pub(super) fn interpreter(
        &mut self,
        name: &str,
        arguments: &[&str],
        place: &mut Place,
        depth: usize,
        is_direct: bool,
    ) {
        let (is_shell, is_python) = (has("shells", name), has("pythons", name));
        let takes_script = is_direct || is_shell;
        let is_cluster = |word: &str, letter: char| {
            !word.starts_with("--") && word.starts_with('-') && word.ends_with(letter)
        };
        let mut follows_option: Option<&str> = None;
        for (at, word) in arguments.iter().enumerate() {
            let rest = &arguments[at + 1..];
            if is_shell && is_cluster(word, 'c') {
                let line = rest.iter().find(|word| !word.starts_with('-'));
                if let Some(line) = line {
                    self.lines(line, place.clone(), depth + 1, is_direct);
                }
                return;
            }
            if is_python && is_cluster(word, 'm') {
                if is_direct && let [module, rest @ ..] = rest {
                    self.module(module, rest, place, depth);
                }
                return;
            }
            if *word == "-c" || !is_shell && matches!(*word, "-e" | "--eval" | "-") {
                if is_python {
                    self.search_modules(&place.folder);
                }
                return;
            }
            if *word == "--test" {
                // What follows is checked.
                return self.settings(name, arguments, place, depth);
            }
            if *word == "--" {
                follows_option = None;
            } else if word.starts_with(['-', '+']) && word.len() > 1 {
                let (option, value) = word.split_once('=').unwrap_or((word, ""));
                if !value.is_empty() && has("first-options", option) && takes_script {
                    self.add_existing(value, place, depth);
                }
                follows_option = value.is_empty().then_some(option);
            } else if word.starts_with(['<', '>']) {
                return;
            } else {
                let option = follows_option.take();
                let takes_value = option.is_some_and(|option| {
                    has("value-options", option) || is_shell && is_cluster(option, 'o')
                });
                if option.is_some_and(|option| has("first-options", option)) && takes_script {
                    self.add_existing(word, place, depth);
                    continue;
                }
                // It may be the value of the option, if another word follows.
                let may_be_value = option.is_some()
                    && !word.contains(['.', '/'])
                    && rest.iter().any(|word| !word.starts_with('-'))
                    && self.named_existing(word, place).is_empty();
                if takes_value || may_be_value {
                    continue;
                }
                let module = format!("{}/__main__.py", word.trim_end_matches('/'));
                if is_python && takes_script {
                    self.add_existing(&module, place, depth);
                }
                for path in self.named(word, place).into_iter().filter(|_| takes_script) {
                    if is_python && let Some(folder) = path.parent() {
                        self.search_modules(folder);
                    }
                    self.add(&path, place, depth, is_shell);
                }
                return;
            }
        }
    }

    /// A module that Python runs: a file of that name comes before the installed one.
    fn module(&mut self, module: &str, arguments: &[&str], place: &Place, depth: usize) {
        let path = module.replace('.', "/");
        let names = ["", "/__main__", "/__init__"];
        let files = names.map(|name| place.folder.join(format!("{path}{name}.py")));
        self.found.shadows.extend(files.iter().filter_map(|file| below_top(file)));
        self.search_modules(&place.folder);
        self.settings(module, arguments, place, depth);
    }
}
