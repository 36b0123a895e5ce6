//! The words of a command line of make, and what the words of a recipe say.

use crate::check_files::shell::{is_assignment, read_line};

/// Options with one letter, and a value in the same or the next word.
const LETTERS_WITH_VALUE: &str = "CfIoWE";
/// Options with one letter, and perhaps a value in the same word.
const LETTERS_WITH_REST: &str = "jlO";
/// Options whose value is the next word, if it does not follow a `=`.
const WORDS_WITH_VALUE: [&str; 10] = [
    "--directory",
    "--file",
    "--makefile",
    "--include-dir",
    "--old-file",
    "--assume-old",
    "--what-if",
    "--new-file",
    "--assume-new",
    "--eval",
];
/// Programs that make a file or folder that they are given.
const MAKERS: [&str; 14] = [
    "mkdir",
    "touch",
    "cp",
    "mv",
    "ln",
    "rm",
    "install",
    "rsync",
    "tar",
    "unzip",
    "clone",
    "venv",
    "virtualenv",
    "tee",
];
/// How options begin that name what a program makes.
const OUTPUTS: [&str; 6] = ["--out", "--dest", "--prefix", "--target", "--dir", "--root"];

/// The words of a command line of make.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MakeWords<'w> {
    /// The targets that it names.
    pub(super) goals: Vec<&'w str>,
    /// Whether it runs all recipes.
    pub(super) always_makes: bool,
    /// Whether the folder and the makefile of the command are known here: their options stand alone.
    pub(super) is_understood: bool,
}

impl<'w> MakeWords<'w> {
    pub(super) fn read(arguments: &[&'w str]) -> Self {
        let mut read = Self { is_understood: true, ..Self::default() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            // What follows is redirected.
            if word.contains(['<', '>']) {
                break;
            }
            if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
                let valued = letters.find(|c: char| LETTERS_WITH_VALUE.contains(c));
                let rest = letters.find(|c: char| LETTERS_WITH_REST.contains(c));
                let end = valued.unwrap_or(letters.len()).min(rest.unwrap_or(letters.len()));
                read.always_makes |= letters[..end].contains('B');
                if let Some(at) = valued.filter(|at| *at == end) {
                    // Elsewhere, `-C` and `-f` are found only as words of their own.
                    read.is_understood &=
                        letters.len() == 1 || !letters[at..].starts_with(['C', 'f']);
                    if at + 1 == letters.len() {
                        let _ = words.next();
                    }
                }
            } else if word.starts_with("--") {
                read.always_makes |= *word == "--always-make";
                if WORDS_WITH_VALUE.contains(word) {
                    let _ = words.next();
                }
            } else if !is_assignment(word) && !word.chars().all(|c| c.is_ascii_digit()) {
                read.is_understood &= !word.contains('$');
                read.goals.push(*word);
            }
        }
        read
    }
}

/// Whether a line of a recipe makes a file or folder of a name, as far as its words show:
/// `mkdir -p venv`, `cc -o app`.
pub(super) fn makes(line: &str, name: &str) -> bool {
    let is_name = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        word.trim_start_matches("./").trim_end_matches('/') == name
    };
    let is_output =
        |option: &str| option == "-o" || OUTPUTS.iter().any(|output| option.starts_with(output));
    // The packages of npm and its like.
    if name == "node_modules" {
        return true;
    }
    read_line(line).commands.iter().any(|command| {
        let words: Vec<&str> = command.split_whitespace().collect();
        let is_maker = words.iter().any(|word| MAKERS.contains(word));
        let is_written = |pair: &[&str]| {
            (is_output(pair[0]) || matches!(pair[0], ">" | ">>")) && is_name(pair[1])
        };
        let is_joined = |word: &str| {
            let value = word.split_once('=').filter(|(option, _)| is_output(option));
            let value = value.map(|(_, value)| value).or_else(|| word.strip_prefix('>'));
            value.is_some_and(is_name)
        };
        is_maker && words.iter().any(|word| is_name(word))
            || words.windows(2).any(is_written)
            || words.iter().any(|word| is_joined(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_told_from_the_values_of_options() {
        for (line, goals, always_makes, is_understood) in [
            ("-C sub -j 4 -l 2 test lint", &["test", "lint"][..], false, true),
            ("-sk -I inc --file x.mk A=1 test", &["test"], false, true),
            ("-j4 --directory=sub test > log x", &["test"], false, true),
            ("-Iinc -kB all", &["all"], true, true),
            ("-IB all", &["all"], false, true),
            ("-sC sub all", &["all"], false, false),
            ("-fx.mk all", &["all"], false, false),
            ("$TARGETS", &["$TARGETS"], false, false),
            ("", &[], false, true),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let goals = goals.to_vec();
            assert_eq!(
                MakeWords::read(&words),
                MakeWords { goals, always_makes, is_understood },
                "{line}"
            );
        }
    }

    #[test]
    fn a_recipe_shows_what_it_makes() {
        for line in [
            "mkdir -p out",
            "python3 -m venv ./out",
            "cd x && cc -o out main.c",
            "tsc --outDir out/",
            "esbuild --outdir=out a.js",
            "cat a b > out",
            "cat a b >out",
            "rm -rf out; unzip a.zip -d out",
        ] {
            assert!(makes(line, "out"), "{line}");
        }
        for line in
            ["pytest -v out", "./dev.sh out", "echo out", "mkdir -p out/results", "cc -o outer"]
        {
            assert!(!makes(line, "out"), "{line}");
        }
        assert!(makes("npm ci", "node_modules"));
    }
}
