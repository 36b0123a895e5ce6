//! The recipes of makefiles: what `make test` runs.

use super::{MAX_DEPTH, MAX_SCRIPT_BYTES, Place, Search};
use crate::check_files::shell::is_assignment;
use crate::relative_path::below_top;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How many rules of a makefile are read.
const MAX_RULES: usize = 10_000;
/// How many makefiles are included.
const MAX_INCLUDES: usize = 100;

/// A rule of a makefile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    needs: Vec<String>,
    recipe: Vec<String>,
}

/// What is known of a makefile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Makefile {
    variables: BTreeMap<String, String>,
    rules: BTreeMap<String, Rule>,
    first: Option<String>,
    /// The files that it includes.
    includes: Vec<String>,
}

impl Search<'_, '_> {
    /// Searches the recipes that `make` runs for its arguments, with those of the targets they need.
    pub(super) fn recipes(&mut self, file: &Path, arguments: &[&str], at: &Place, depth: usize) {
        let name = file.file_name().unwrap_or_default().to_ascii_lowercase();
        let is_makefile = name.to_string_lossy().contains("makefile")
            || file.extension().is_some_and(|extension| extension == "mk");
        if depth >= MAX_DEPTH || !is_makefile {
            return;
        }
        let text = match self.content(file) {
            Some(bytes) if bytes.len() <= MAX_SCRIPT_BYTES => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            _ => return,
        };
        let mut makefile = read_makefile(&text);
        self.include(&mut makefile, at);
        let named = arguments.iter().filter(|word| !word.starts_with('-') && !is_assignment(word));
        let mut open: Vec<String> = named.map(|word| (*word).to_owned()).collect();
        open.retain(|target| makefile.rules.contains_key(target));
        // A file with the name of a target that makes none keeps its recipe from being run.
        let names = open.iter().filter(|target| !target.contains(['/', '.']));
        let made = names.filter_map(|target| below_top(&at.folder.join(target)));
        self.found.shadows.extend(made);
        if open.is_empty() {
            open.extend(makefile.first.clone());
        }
        while let Some(target) = open.pop() {
            if !self.makefiles.insert((file.to_owned(), target.clone())) {
                continue;
            }
            let Some(rule) = makefile.rules.get(&target) else { continue };
            for line in &rule.recipe {
                let place = Place { folder: at.folder.clone(), script: None };
                self.lines(&makefile.expand(line), place, depth + 1, true);
            }
            open.extend(rule.needs.iter().map(|need| makefile.expand(need)));
        }
    }
}

impl Search<'_, '_> {
    /// Adds the rules of the makefiles that a makefile includes.
    fn include(&mut self, makefile: &mut Makefile, at: &Place) {
        let mut open = std::mem::take(&mut makefile.includes);
        let mut seen = BTreeSet::new();
        while let Some(word) = open.pop() {
            if seen.len() >= MAX_INCLUDES || !seen.insert(word.clone()) {
                continue;
            }
            for file in self.named(&makefile.expand(&word), at) {
                self.found.files.insert(file.clone());
                let Some(bytes) = self.content(&file).filter(|it| it.len() <= MAX_SCRIPT_BYTES)
                else {
                    continue;
                };
                let included = read_makefile(&String::from_utf8_lossy(bytes));
                open.extend(included.includes);
                makefile.variables.extend(included.variables);
                for (target, rule) in included.rules {
                    let known = makefile.rules.entry(target).or_default();
                    known.needs.extend(rule.needs);
                    known.recipe.extend(rule.recipe);
                }
            }
        }
    }
}

impl Makefile {
    /// A text with the values of the variables that are known.
    fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.variables {
            text =
                text.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
        }
        text.replace("$$", "$")
    }
}

/// Reads the rules and plain variables of a makefile.
fn read_makefile(text: &str) -> Makefile {
    let mut makefile = Makefile::default();
    let mut targets: Vec<String> = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        if let Some(command) = line.strip_prefix('\t') {
            let command = command.trim_start_matches(['@', '-', '+', ' ']);
            for target in &targets {
                if let Some(rule) = makefile.rules.get_mut(target) {
                    rule.recipe.push(command.to_owned());
                }
            }
            continue;
        }
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some((name, value)) = line.split_once('=')
            && let name = name.trim().trim_end_matches([':', '?', '+']).trim()
            && !name.is_empty()
            && !name.contains([' ', ':', '$'])
        {
            makefile.variables.insert(name.to_owned(), value.trim().to_owned());
            continue;
        }
        let mut words = line.split_whitespace();
        if matches!(words.next(), Some("include" | "-include" | "sinclude")) {
            makefile.includes.extend(words.map(str::to_owned));
            continue;
        }
        let Some((names, needs)) = line.split_once(':') else { continue };
        let (needs, command) = match needs.split_once(';') {
            Some((needs, command)) => (needs, Some(command.trim())),
            None => (needs, None),
        };
        let needs = needs.trim_start_matches(':').split_whitespace().filter(|need| *need != "|");
        let needs: Vec<String> = needs.map(str::to_owned).collect();
        targets = makefile.expand(names).split_whitespace().map(str::to_owned).collect();
        for target in &targets {
            if makefile.rules.len() >= MAX_RULES {
                break;
            }
            if !target.starts_with('.') {
                makefile.first.get_or_insert_with(|| target.clone());
            }
            let rule = makefile.rules.entry(target.clone()).or_default();
            rule.needs.extend(needs.iter().cloned());
            rule.recipe.extend(command.map(str::to_owned));
        }
    }
    makefile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_variables_are_read() {
        let makefile = read_makefile(
            "PY ?= python3\nall: test\n.PHONY: test\ntest lint: build | dir ; echo first\n\t@$(PY) t.py \\\n\t  -v\n\n\t-sh t.sh # $$x\n",
        );
        assert_eq!(makefile.first.as_deref(), Some("all"));
        assert_eq!(makefile.rules["test"].needs, ["build", "dir"]);
        assert_eq!(makefile.rules["lint"].recipe.len(), 3);
        assert_eq!(
            makefile.expand("$(PY) t.py $$x ${PY} $(shell date)"),
            "python3 t.py $x python3 $(shell date)"
        );
    }
}
