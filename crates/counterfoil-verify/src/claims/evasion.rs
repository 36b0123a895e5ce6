//! Words with which a command of a result does something else than the person meant who allowed it
//! with a pattern: `make test*` is to run tests, and `make test -n` runs nothing. Pure.

/// Options with which a program says something, and runs nothing.
const OF_ALL: [&str; 2] = ["--help", "--version"];

/// Options with one letter, and with several, that change what a program runs.
static OF_PROGRAMS: [(&[&str], &str, &[&str]); 6] = [
    (
        &["make", "gmake", "bmake"],
        "ntqpvhifoEW",
        &[
            "--just-print",
            "--dry-run",
            "--recon",
            "--touch",
            "--question",
            "--print-data-base",
            "--ignore-errors",
            "--file",
            "--makefile",
            "--eval",
            "--old-file",
            "--assume-old",
            "--what-if",
            "--new-file",
            "--assume-new",
        ],
    ),
    (&["cargo"], "hV", &["--no-run", "--list", "--config", "--no-tests", "--dry-run"]),
    (
        &["pytest", "py.test", "python", "python3"],
        "hVc",
        &[
            "--collect-only",
            "--collectonly",
            "--co",
            "--setup-only",
            "--setup-plan",
            "--fixtures",
            "--markers",
            "--override-ini",
        ],
    ),
    (&["go"], "nch", &["-list", "-exec", "-toolexec", "--list", "--exec", "--toolexec"]),
    (
        &["npm", "pnpm", "yarn", "npx", "bun"],
        "hv",
        &[
            "--dry-run",
            "--if-present",
            "--ignore-scripts",
            "--script-shell",
            "--node-options",
            "--passWithNoTests",
            "--listTests",
        ],
    ),
    (
        &["jest", "vitest", "mocha", "node", "tsx"],
        "hvc",
        &["--passWithNoTests", "--pass-with-no-tests", "--listTests", "--dry-run", "--config"],
    ),
];

/// Letters of make whose value is the rest of the word.
const MAKE_VALUES: &str = "CfIoWEjlO";

/// The first word of a command line that changes what the command does, and that its pattern does not
/// hold.
pub(super) fn find(pattern: &str, line: &str) -> Option<String> {
    // Any text at all is allowed.
    if pattern.contains("**") {
        return None;
    }
    let named: Vec<&str> = pattern.split_whitespace().collect();
    let words = shlex::split(line)?;
    let is_plain = |word: &&String| !is_assignment(word);
    let program = words.iter().find(is_plain)?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let own = OF_PROGRAMS.iter().find(|(names, ..)| names.contains(&program));
    let is_make = own.is_some_and(|(names, ..)| names.contains(&"make"));
    let evades = |word: &str| {
        let option = word.split_once('=').map_or(word, |(option, _)| option);
        // Programs take the beginning of a long option for the whole.
        let is_long = |long: &&str| {
            long == &option || is_make && option.len() > 2 && long.starts_with(option)
        };
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let of_letters = |known: &str| {
            let letters = letters.unwrap_or_default();
            let end = letters.find(|c: char| is_make && MAKE_VALUES.contains(c));
            let first = end.map_or(letters, |end| &letters[..=end]);
            // Only of make, letters stand together.
            (is_make || letters.len() == 1) && first.contains(|c: char| known.contains(c))
        };
        OF_ALL.iter().any(is_long)
            || is_make && is_assignment(word)
            || own.is_some_and(|(_, known, long)| {
                of_letters(known) || option.starts_with('-') && long.iter().any(is_long)
            })
    };
    let is_named = |word: &str| named.iter().any(|one| one.trim_end_matches('*') == word);
    let chosen = words.iter().skip(1).filter(|word| !is_named(word));
    chosen.map(String::as_str).find(|word| evades(word)).map(str::to_owned)
}

/// Whether a word sets a variable, as the shell and make read it: `A=1`, `A:=1`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches([':', '+', '?', '!']);
        !name.is_empty() && !name.starts_with('-') && !name.contains(['/', ' '])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_change_what_is_run_are_found() {
        for (pattern, line, word) in [
            ("make test*", "make test -n", "-n"),
            ("make test*", "make test -sn", "-sn"),
            ("make test*", "make test --version", "--version"),
            ("make test*", "make test --dry", "--dry"),
            ("make test*", "make test SHELL=true", "SHELL=true"),
            ("make test*", "make test SHELL:=true", "SHELL:=true"),
            ("make test*", "make test MAKEFLAGS=-n", "MAKEFLAGS=-n"),
            ("make test*", "make test -f other.mk", "-f"),
            ("make test*", "make test -fother.mk", "-fother.mk"),
            ("cargo test*", "cargo test --no-run", "--no-run"),
            ("cargo test*", "cargo test -- --list", "--list"),
            ("pytest*", "pytest --collect-only", "--collect-only"),
            ("python3 -m pytest*", "python3 -m pytest --co", "--co"),
            ("go test*", "go test -list .", "-list"),
            ("npm test*", "npm test -- --help", "--help"),
            ("grep -q *", "grep -q --version", "--version"),
        ] {
            assert_eq!(find(pattern, line).as_deref(), Some(word), "{line}");
        }
    }

    #[test]
    fn ordinary_words_and_those_of_the_pattern_are_not() {
        for (pattern, line) in [
            ("make *", "make -s -j4 check"),
            ("make *", "make -C sub test"),
            ("make *", "make --no-print-directory -k test"),
            ("make -n *", "make -n test"),
            ("make test V=1*", "make test V=1"),
            ("* --version", "cargo --version"),
            ("cargo test*", "cargo test --workspace --no-fail-fast -p core -- --nocapture"),
            ("pytest*", "pytest -q -x tests/test_a.py -k name"),
            ("go test*", "go test -run TestA -v -count=1 ./..."),
            ("npm test*", "npm test -- --runInBand"),
            ("grep -q *", "grep -q SHELL=true docs/guide.md"),
            ("**", "make -n test"),
        ] {
            assert_eq!(find(pattern, line), None, "{line}");
        }
    }
}
