//! The recipes of makefiles: what `make test` runs.

use super::make_words::{MakeWords, makes};
use super::targets::Target;
use super::{MAX_DEPTH, MAX_SCRIPT_BYTES, Place, Search};
use crate::check_files::shell::is_assignment;
use crate::relative_path::below_top;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many rules of a makefile are read.
const MAX_RULES: usize = 10_000;
/// How many makefiles are included.
const MAX_INCLUDES: usize = 100;
/// Calls that may make rules.
const GENERATORS: [&str; 6] = ["$(eval", "${eval", "$(call", "${call", "$(foreach", "${foreach"];

/// A rule of a makefile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    needs: Vec<String>,
    /// What it needs, whatever its age.
    order_only: Vec<String>,
    recipe: Vec<String>,
    /// It has two colons.
    is_double: bool,
}

/// A file that a makefile includes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Include {
    name: String,
    /// Whether make goes on without it.
    is_optional: bool,
}

/// What is known of a makefile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Makefile {
    variables: BTreeMap<String, String>,
    rules: BTreeMap<String, Rule>,
    first: Option<String>,
    includes: Vec<Include>,
    /// The names that `vpath` is for, and the folders in which it looks for them.
    searches: Vec<(String, String)>,
    /// Not all of it is understood here, or can be read.
    is_partial: bool,
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
        let of_command = arguments.iter().find_map(|word| word.strip_prefix("VPATH="));
        let folders = of_command.or(self.variables.get("VPATH").map(String::as_str));
        makefile.searches.extend(folders.map(|folders| ("%".to_owned(), folders.to_owned())));
        makefile.variables.entry("MAKE".to_owned()).or_insert_with(|| "make".to_owned());
        let named = arguments.iter().filter(|word| !word.starts_with('-') && !is_assignment(word));
        let mut open: Vec<String> = named.map(|word| (*word).to_owned()).collect();
        open.retain(|target| makefile.rules.contains_key(target));
        // A file with the name of a target that makes none keeps its recipe from being run.
        let phony = makefile.phony();
        let is_phony = |name: &str| phony.as_ref().is_some_and(|phony| phony.contains(name));
        let names = open.iter().filter(|name| !name.contains(['/', '.']) && !is_phony(name));
        let made = names.filter_map(|target| below_top(&at.folder.join(target)));
        self.found.shadows.extend(made);
        let words = MakeWords::read(arguments);
        let default = makefile.default_goal();
        let goals: Vec<&str> = match words.goals.as_slice() {
            [] => default.as_deref().into_iter().collect(),
            named => named.to_vec(),
        };
        let mut follows = words.is_understood && !words.always_makes && !makefile.always_makes();
        let phony = phony.filter(|_| follows);
        for goal in &goals {
            let target = phony.as_ref().and_then(|phony| makefile.target(goal, true, at, phony));
            if let Some((place, target)) = target {
                self.found.targets.add(place, target);
            }
        }
        if open.is_empty() {
            // The first target is not made if others are named.
            follows &= words.goals.is_empty();
            open.extend(default.clone());
        }
        while let Some(target) = open.pop() {
            if !self.makefiles.insert((file.to_owned(), target.clone())) {
                continue;
            }
            let Some(rule) = makefile.rules.get(&target) else { continue };
            let reached = phony.as_ref().filter(|_| follows);
            let reached = reached.and_then(|phony| makefile.target(&target, false, at, phony));
            if let Some((place, target)) = reached {
                self.found.targets.add(place, target);
            }
            for line in &rule.recipe {
                let place = Place { folder: at.folder.clone(), script: None };
                self.lines(&makefile.expand(line), place, depth + 1, true);
            }
            let needs = rule.needs.iter().chain(&rule.order_only);
            open.extend(needs.flat_map(|need| makefile.words(need)));
        }
    }
}

impl Search<'_, '_> {
    /// Adds the rules of the makefiles that a makefile includes.
    fn include(&mut self, makefile: &mut Makefile, at: &Place) {
        let mut open = std::mem::take(&mut makefile.includes);
        let mut seen = BTreeSet::new();
        while let Some(Include { name: word, is_optional }) = open.pop() {
            if seen.len() >= MAX_INCLUDES || !seen.insert(word.clone()) {
                continue;
            }
            let expanded = makefile.expand(&word);
            makefile.is_partial |= expanded.contains(['$', '*', '?', '[']);
            let (patterns, names): (Vec<&str>, Vec<&str>) =
                expanded.split_whitespace().partition(|name| name.contains(['*', '?', '[']));
            // Also of `$(wildcard *.mk)`.
            let patterns = patterns.iter().map(|pattern| pattern.trim_end_matches(')'));
            let patterns = patterns.filter_map(|pattern| below_top(&at.folder.join(pattern)));
            let patterns = patterns.filter_map(|pattern| pattern.to_str().map(str::to_owned));
            self.found.included.extend(patterns);
            let files: Vec<PathBuf> = names.iter().flat_map(|name| self.named(name, at)).collect();
            makefile.is_partial |= files.is_empty();
            let is_made = names.iter().any(|name| makefile.rules.contains_key(*name));
            for file in files {
                self.found.files.insert(file.clone());
                if is_optional || is_made {
                    self.found.optional.insert(file.clone());
                }
                let Some(bytes) = self.content(&file).filter(|it| it.len() <= MAX_SCRIPT_BYTES)
                else {
                    continue;
                };
                let included = read_makefile(&String::from_utf8_lossy(bytes));
                open.extend(included.includes);
                makefile.searches.extend(included.searches);
                makefile.is_partial |= included.is_partial;
                makefile.variables.extend(included.variables);
                for (target, rule) in included.rules {
                    let known = makefile.rules.entry(target).or_default();
                    known.needs.extend(rule.needs);
                    known.order_only.extend(rule.order_only);
                    known.recipe.extend(rule.recipe);
                    known.is_double |= rule.is_double;
                }
            }
        }
    }
}

impl Makefile {
    /// Sets a variable. `operator` is the last character before the `=`.
    fn set(&mut self, name: &str, operator: Option<char>, value: &str) {
        // Its lines do not begin with a tab.
        self.is_partial |= name == ".RECIPEPREFIX";
        match (self.variables.get_mut(name), operator) {
            (Some(known), Some('+')) => {
                known.push(' ');
                known.push_str(value);
            }
            (Some(_), Some('?')) => {}
            _ => {
                self.variables.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// A text with the values of the variables that are known.
    fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if !text.contains('$') {
            return text;
        }
        for (name, value) in &self.variables {
            text =
                text.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
        }
        text.replace("$$", "$")
    }

    /// The words of a text with the values of the variables that are known.
    fn words(&self, text: &str) -> Vec<String> {
        split(&self.expand(text))
    }

    /// The target that is made if none is named.
    fn default_goal(&self) -> Option<String> {
        let named = self.variables.get(".DEFAULT_GOAL").filter(|name| !name.contains('$'));
        named.or(self.first.as_ref()).cloned()
    }

    /// The targets that are declared as no files; none if not all of them are known.
    fn phony(&self) -> Option<BTreeSet<String>> {
        let needs = self.rules.get(".PHONY").map(|rule| rule.needs.as_slice()).unwrap_or_default();
        let names: BTreeSet<String> = needs.iter().flat_map(|name| self.words(name)).collect();
        (!names.iter().any(|name| name.contains('$'))).then_some(names)
    }

    /// Whether it tells make to run all recipes.
    fn always_makes(&self) -> bool {
        let flags = self.variables.get("MAKEFLAGS").map(String::as_str).unwrap_or_default();
        MakeWords::read(&flags.split_whitespace().collect::<Vec<_>>()).always_makes
    }

    /// The places besides its own where make looks for a target, and whether others are not known.
    fn searched(&self, name: &str, at: &Place) -> (Vec<PathBuf>, bool) {
        let of_variable = self.variables.get("VPATH").map(|folders| ("%", folders.as_str()));
        let of_names = self.searches.iter().map(|(names, folders)| (names.as_str(), folders));
        let searches = of_names.map(|(names, folders)| (names, folders.as_str()));
        let (mut places, mut is_unknown) = (Vec::new(), false);
        for (names, folders) in searches.chain(of_variable) {
            let is_for = match self.expand(names).split_once('%') {
                Some((start, end)) => name.starts_with(start) && name.ends_with(end),
                None => names.contains('$') || names == name,
            };
            let folders = self.expand(folders);
            if !is_for {
                continue;
            }
            if folders.contains('$') {
                is_unknown = true;
                continue;
            }
            let folders = folders.split([' ', '\t', ':', ';']).filter(|folder| !folder.is_empty());
            let found = folders.filter_map(|folder| below_top(&at.folder.join(folder).join(name)));
            places.extend(found);
        }
        (places, is_unknown)
    }

    /// A target that make reaches, and the path of its name. A goal without a rule is a file that has
    /// to be there.
    fn target(
        &self,
        name: &str,
        is_goal: bool,
        at: &Place,
        phony: &BTreeSet<String>,
    ) -> Option<(PathBuf, Target)> {
        let path = |name: &str| {
            let is_plain = !name.contains(['$', '(', ')', '%', '*', '?', '[', '=', '~', ':']);
            below_top(&at.folder.join(name)).filter(|_| is_plain)
        };
        let place = path(name)?;
        let none = Rule::default();
        let rule = self.rules.get(name);
        let has_patterns = || self.rules.keys().any(|name| name.contains('%'));
        if rule.is_none() && (!is_goal || self.is_partial || has_patterns()) {
            return None;
        }
        let rule = rule.unwrap_or(&none);
        let has_recipe = !rule.recipe.is_empty();
        let is_known = !self.is_partial && (has_recipe || !has_patterns());
        let needs = rule.needs.iter().flat_map(|need| self.words(need));
        let needs: Option<Vec<PathBuf>> = needs.map(|need| path(&need)).collect();
        let line = |line: &String| self.expand(&line.replace("$(@)", name).replace("$@", name));
        let (searched, is_searched_anywhere) = self.searched(name, at);
        let target = Target {
            name: name.to_owned(),
            is_goal,
            always_runs: rule.is_double || phony.contains(name),
            has_recipe,
            makes_itself: rule.recipe.iter().any(|text| makes(&line(text), name)),
            needs: needs.filter(|_| is_known),
            searched,
            is_searched_anywhere,
        };
        Some((place, target))
    }
}

/// Reads the rules and plain variables of a makefile.
fn read_makefile(text: &str) -> Makefile {
    let mut makefile = Makefile::default();
    let mut targets: Vec<String> = Vec::new();
    let mut conditions = 0_usize;
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
        let line = ["export ", "override ", "private "]
            .iter()
            .fold(line, |line, word| line.strip_prefix(*word).unwrap_or(line).trim_start());
        match line.split([' ', '\t', '(']).next() {
            Some("ifeq" | "ifneq" | "ifdef" | "ifndef") => {
                conditions += 1;
                continue;
            }
            Some("endif") => {
                conditions = conditions.saturating_sub(1);
                continue;
            }
            _ => {}
        }
        if let Some((left, value)) = line.split_once('=')
            && let name = left.trim().trim_end_matches([':', '?', '+']).trim()
            && !name.is_empty()
            && !name.contains([' ', ':', '$'])
        {
            makefile.set(name, left.trim().chars().next_back(), value.trim());
            continue;
        }
        let mut words = line.split_whitespace();
        match words.next() {
            Some(word @ ("include" | "-include" | "sinclude")) => {
                let is_optional = word != "include" || conditions > 0;
                // A call of a function has spaces.
                let all = words.collect::<Vec<_>>().join(" ");
                let names = if all.contains('$') { vec![all] } else { split(&all) };
                let includes = names.into_iter().map(|name| Include { name, is_optional });
                makefile.includes.extend(includes);
                continue;
            }
            Some("vpath") => {
                let names = words.next().unwrap_or_default().to_owned();
                makefile.searches.push((names, words.collect::<Vec<_>>().join(" ")));
                continue;
            }
            _ => {}
        }
        makefile.is_partial |= GENERATORS.iter().any(|call| line.contains(call));
        let Some((names, needs)) = line.split_once(':') else { continue };
        let (needs, command) = match needs.split_once(';') {
            Some((needs, command)) => (needs, Some(command.trim())),
            None => (needs, None),
        };
        if sets_variable(needs) {
            continue;
        }
        let is_double = needs.starts_with(':');
        let needs = needs.trim_start_matches(':');
        let (needs, order_only) = needs.split_once('|').unwrap_or((needs, ""));
        let (needs, order_only) = (split(needs), split(order_only));
        targets = split(&makefile.expand(names));
        for target in &targets {
            if makefile.rules.len() >= MAX_RULES {
                break;
            }
            if !target.starts_with('.') && !target.contains('%') {
                makefile.first.get_or_insert_with(|| target.clone());
            }
            let rule = makefile.rules.entry(target.clone()).or_default();
            rule.needs.extend(needs.iter().cloned());
            rule.order_only.extend(order_only.iter().cloned());
            rule.is_double |= is_double;
            rule.recipe.extend(command.map(str::to_owned));
        }
    }
    makefile
}

/// The words of a text.
fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether what stands behind the colon of a rule sets a variable for its targets.
fn sets_variable(needs: &str) -> bool {
    needs.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches([':', '?', '+', '!']);
        let words = name.split_whitespace();
        let names = words.filter(|word| !matches!(*word, "export" | "override" | "private"));
        names.count() == 1 && !name.contains(['$', '('])
    })
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
        assert_eq!(makefile.rules["test"].needs, ["build"]);
        assert_eq!(makefile.rules["test"].order_only, ["dir"]);
        assert_eq!(makefile.rules["lint"].recipe.len(), 3);
        assert_eq!(
            makefile.expand("$(PY) t.py $$x ${PY} $(shell date)"),
            "python3 t.py $x python3 $(shell date)"
        );
        let makefile = read_makefile(
            "A = a\nA += b\nA ?= c\n%.o: %.c\ntest: A = x\ntest: $(A)\n.PHONY: test $(A)\n$(eval x)\n",
        );
        assert_eq!(makefile.words("$(A)"), ["a", "b"]);
        assert_eq!(makefile.first.as_deref(), Some("test"));
        assert_eq!(makefile.rules["test"].needs, ["$(A)"]);
        let phony = BTreeSet::from(["a", "b", "test"].map(str::to_owned));
        assert_eq!(makefile.phony(), Some(phony));
        assert!(makefile.is_partial);
        assert!(sets_variable(" export A := b") && !sets_variable(" a $(subst x,=,y)"));
    }

    #[test]
    fn what_is_included_and_where_make_looks_is_read() {
        let makefile = read_makefile(
            "include a.mk b.mk\n-include local.mk\nifdef X\ninclude $(wildcard c/*.mk)\nendif\nexport VPATH = x:y z\nvpath %.c $(SRC)\ntest:\n\ttrue\n",
        );
        let includes: Vec<(&str, bool)> =
            makefile.includes.iter().map(|one| (one.name.as_str(), one.is_optional)).collect();
        assert_eq!(
            includes,
            [("a.mk", false), ("b.mk", false), ("local.mk", true), ("$(wildcard c/*.mk)", true)]
        );
        assert_eq!(makefile.first.as_deref(), Some("test"));
        let at = Place { folder: "sub".into(), script: None };
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let places = paths(&["sub/x/test", "sub/y/test", "sub/z/test"]);
        assert_eq!(makefile.searched("test", &at), (places, false));
        assert!(makefile.searched("a.c", &at).1);
    }
}
