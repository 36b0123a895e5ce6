//! Finds the scripts of a `package.json` that a command runs: those that it names, what is run before
//! and after them, and those that their lines name in turn, whatever program these are given to
//! (`npm run`, `run-s`, `concurrently`).

use globset::Glob;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is run when packages are installed.
const INSTALL: [&str; 6] =
    ["preinstall", "install", "postinstall", "prepublish", "prepare", "dependencies"];
/// What is run when a package is packed or published.
const PACK: [&str; 4] = ["prepublishOnly", "prepare", "prepack", "postpack"];
/// How many patterns are compared with the names. If there are more, all scripts count.
const MAX_PATTERNS: usize = 100;

/// The scripts of a `package.json`.
#[derive(Debug, Default)]
pub(super) struct Packages {
    lines: BTreeMap<String, String>,
    /// The names of those that are run.
    reached: BTreeSet<String>,
    patterns: usize,
}

impl Packages {
    pub(super) fn new(file: &[u8]) -> Self {
        let file: Value = serde_json::from_slice(file).unwrap_or_default();
        let scripts = file.get("scripts").and_then(Value::as_object);
        let line =
            |(name, line): (&String, &Value)| Some((name.clone(), line.as_str()?.to_owned()));
        let lines = scripts.into_iter().flatten().filter_map(line).collect();
        Self { lines, ..Self::default() }
    }

    /// The lines that a command runs, by the words behind its program, and that no command before it
    /// ran.
    pub(super) fn called_by(&mut self, words: &[&str]) -> Vec<String> {
        let mut open: Vec<String> = Vec::new();
        let mut before = None;
        for word in words.iter().take_while(|word| **word != "--") {
            let is_run =
                before.is_some_and(|word| matches!(word, "run" | "run-script" | "rum" | "urn"));
            open.extend(self.named(word, is_run));
            open.extend(implied(word).iter().map(|&name| name.to_owned()));
            before = Some(*word);
        }
        if words.iter().all(|word| word.starts_with('-')) {
            open.extend(INSTALL.map(str::to_owned));
        }
        let mut found = Vec::new();
        while let Some(name) = open.pop() {
            let Some(line) = self.lines.get(&name).cloned() else { continue };
            if !self.reached.insert(name.clone()) {
                continue;
            }
            open.extend([format!("pre{name}"), format!("post{name}")]);
            let is_edge = |c: char| c.is_whitespace() || "'\"`;&|(),\\".contains(c);
            for word in line.split(is_edge).filter(|word| !word.is_empty()) {
                open.extend(self.named(word, false));
            }
            found.push(line);
        }
        found
    }

    /// The scripts that a word names. `may_be_any`: a pattern without a letter, or a variable, names
    /// scripts too, not files.
    fn named(&mut self, word: &str, may_be_any: bool) -> Vec<String> {
        let is_prefix = |prefix: &&str| matches!(*prefix, "npm" | "yarn" | "pnpm" | "bun" | "node");
        let rest = word.split_once(':').filter(|(prefix, _)| is_prefix(prefix));
        let (name, may_be_any) = rest.map_or((word, may_be_any), |(_, rest)| (rest, true));
        if self.lines.contains_key(name) {
            return vec![name.to_owned()];
        }
        // `test:$KIND`, and the regular expressions of pnpm.
        let is_open =
            name.contains('$') || (name.len() > 1 && name.starts_with('/') && name.ends_with('/'));
        let pattern = match name.find('$') {
            Some(at) => format!("{}*", &name[..at]),
            None if is_open => "*".to_owned(),
            None => name.to_owned(),
        };
        let says_nothing = !pattern.contains(|c: char| c.is_alphanumeric());
        if !pattern.contains('*') || (says_nothing || is_open) && !may_be_any {
            return Vec::new();
        }
        self.patterns += 1;
        let matcher = Glob::new(&pattern).ok().map(|glob| glob.compile_matcher());
        let matcher = matcher.filter(|_| self.patterns <= MAX_PATTERNS);
        if self.patterns > MAX_PATTERNS + 1 {
            return Vec::new();
        }
        let is_meant =
            |name: &&String| matcher.as_ref().is_none_or(|matcher| matcher.is_match(name));
        self.lines.keys().filter(is_meant).cloned().collect()
    }
}

/// The scripts that a word of npm and its like runs although they have other names.
fn implied(word: &str) -> &'static [&'static str] {
    match word {
        "t" | "tst" => &["test"],
        "it" | "cit" | "sit" | "install-test" | "install-ci-test" | "clean-install-test" => &[
            "test",
            "preinstall",
            "install",
            "postinstall",
            "prepublish",
            "prepare",
            "dependencies",
        ],
        "i" | "ci" | "ic" | "install" | "clean-install" | "install-clean" | "add" | "rebuild" => {
            &INSTALL
        }
        "pack" | "publish" => &PACK,
        "restart" => &["stop", "start"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::Packages;

    const FILE: &str = r#"{"scripts": {
        "test": "npm run unit && node --test", "pretest": "tsc", "posttest": "run-s report:*",
        "unit": "node unit.js", "report:a": "a", "report:b": "b",
        "start": "node main.js", "stop": "x", "dev": "concurrently 'npm:start' \"pnpm:watch-*\"", "watch-js": "w",
        "lint": "eslint * src/**/*.js", "prepare": "husky", "loop": "yarn loop"
    }}"#;

    fn called_by(words: &[&str]) -> Vec<String> {
        let mut packages = Packages::new(FILE.as_bytes());
        let mut lines = packages.called_by(words);
        assert!(packages.called_by(words).is_empty(), "once");
        lines.sort_unstable();
        lines
    }

    #[test]
    fn a_command_runs_the_scripts_that_it_names_and_theirs() {
        let test =
            ["a", "b", "node unit.js", "npm run unit && node --test", "run-s report:*", "tsc"];
        for (words, expected) in [
            (&["test"][..], &test[..]),
            (&["t", "--", "start"], &test),
            (&["run", "-s", "unit"], &["node unit.js"]),
            (&["run", "report:$KIND"], &["a", "b"]),
            (&["lint"], &["eslint * src/**/*.js"]),
            (&["run", "dev"], &["concurrently 'npm:start' \"pnpm:watch-*\"", "node main.js", "w"]),
            (&["ci"], &["husky"]),
            (&[], &["husky"]),
            (&["restart"], &["node main.js", "x"]),
            (&["loop"], &["yarn loop"]),
            (&["exec", "jest"], &[]),
        ] {
            assert_eq!(called_by(words), expected, "{words:?}");
        }
        // Which ones these name is not known here.
        for words in [["run", "/^report/"], ["run", "$ONE"]] {
            assert_eq!(called_by(&words).len(), 13, "{words:?}");
        }
        assert!(Packages::new(b"{").called_by(&["test"]).is_empty());
    }
}
