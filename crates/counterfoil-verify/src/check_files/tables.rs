//! The tables of programs in `programs.txt`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

static PROGRAMS: LazyLock<HashMap<&'static str, HashSet<&'static str>>> = LazyLock::new(|| {
    let mut tables: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut section = "";
    for line in include_str!("programs.txt").lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name,
            None => tables.entry(section).or_default().extend(line.split_whitespace()),
        }
    }
    tables
});

/// Whether a table has a word.
pub(super) fn has(table: &str, word: &str) -> bool {
    PROGRAMS.get(table).is_some_and(|words| words.contains(word))
}

/// Whether a program runs another one after this word: `uv run`.
pub(super) fn is_subcommand(program: &str, word: &str) -> bool {
    has("subcommands", &format!("{program}/{word}"))
}

/// The names of the file whose targets a program runs, such as `Makefile`.
pub(super) fn maker_files(program: &str) -> Option<impl Iterator<Item = &'static str>> {
    let makers = PROGRAMS.get("makers")?;
    let files = makers.iter().find_map(|maker| {
        let (name, files) = maker.split_once(':')?;
        (name == program).then_some(files)
    })?;
    Some(files.split(','))
}

/// Whether the arguments of a program are known to be read in some way here.
pub(super) fn is_known(program: &str) -> bool {
    ["interpreters", "wrappers", "file-wrappers", "packages", "runners"]
        .iter()
        .any(|table| has(table, program))
        || maker_files(program).is_some()
        || PROGRAMS.get("subcommands").is_some_and(|words| {
            words.iter().filter_map(|word| word.split_once('/')).any(|(name, _)| name == program)
        })
}
