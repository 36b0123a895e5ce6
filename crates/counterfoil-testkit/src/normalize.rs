//! Replaces what differs from one run to the next in a text: ids, times, durations, paths, commits.
//!
//! Regular expressions rather than filters of insta, because the same replacements also serve to
//! compare two runs with each other. [`VOLATILE`] has the form that insta's filters take.

use regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// A pattern and its replacement.
pub type Filter = (&'static str, &'static str);

/// Run ids, times and durations in what the command line prints for people.
pub const VOLATILE: [Filter; 14] = [
    // Said only if the machine is busy.
    (r"(?m)^.*looking at the files of .* takes longer than a second\n", ""),
    // The account, the machine and the terminal or program of a person.
    (r" as [^ @]+@[^ ),]+( (at|from) [^ ),]+)?", ""),
    (
        r"(^|[^0-9A-Za-z-])[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+",
        "${1}RUN",
    ),
    (r"01[0-9a-fA-F]+-[0-9a-fA-F]+", "RUN"),
    (r"(^|[^0-9A-Za-z-])[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+", "${1}DATE TIME"),
    (r"(^|[^0-9A-Za-z-])[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+", "${1}DATE TIME"),
    (r"(^|[^0-9A-Za-z-])[0-9]+:[0-9]+:[0-9]+", "${1}TIME"),
    (r", [0-9]+ ms", ""),
    (r", [0-9]+(\.[0-9]+)? s\b", ""),
    (r" [0-9]+ ms ", " "),
    (r" [0-9]+(\.[0-9]+)? s ", " "),
    (r" [0-9]+ ms\n", "\n"),
    (r" [0-9]+(\.[0-9]+)? s\n", "\n"),
    (r#"time="[0-9]+\.[0-9]+""#, "time=\"SECONDS\""),
];

/// Run ids and times in JSON, and dates in file names.
const TIMESTAMPS: [Filter; 4] = [
    (
        r"(^|[^0-9A-Za-z-])[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+",
        "${1}RUN",
    ),
    (r"(^|[^0-9A-Za-z-])[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\.[0-9]+Z", "${1}TIME"),
    (r"(^|[^0-9A-Za-z-])[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z", "${1}TIME"),
    (r"(^|[^0-9A-Za-z-])[0-9]+-[0-9]+-[0-9]+", "${1}DATE"),
];

const COMMITS: [Filter; 1] = [(r"\b[0-9a-fA-F]{40}\b", "COMMIT")];

/// The filters of a list with their compiled patterns.
type Compiled = LazyLock<Vec<(Regex, &'static str)>>;

fn compile(filters: &[Filter]) -> Vec<(Regex, &'static str)> {
    filters.iter().map(|(pattern, with)| (Regex::new(pattern).unwrap(), *with)).collect()
}

fn apply(filters: &[(Regex, &str)], text: &str) -> String {
    let replace = |text: String, (pattern, with): &(Regex, &str)| {
        pattern.replace_all(&text, *with).into_owned()
    };
    filters.iter().fold(text.to_owned(), replace)
}

/// Replaces run ids, times and durations in text for people.
pub fn volatile(text: &str) -> String {
    static FILTERS: Compiled = LazyLock::new(|| compile(&VOLATILE));
    apply(&FILTERS, text)
}

/// Replaces run ids and times in JSON, and dates in file names.
pub fn timestamps(text: &str) -> String {
    static FILTERS: Compiled = LazyLock::new(|| compile(&TIMESTAMPS));
    volatile(&apply(&FILTERS, text))
}

/// Replaces full commit ids: they depend on the second in which the commit is made.
pub fn commits(text: &str) -> String {
    static FILTERS: Compiled = LazyLock::new(|| compile(&COMMITS));
    apply(&FILTERS, text)
}

/// Replaces the path of a directory, as it was given and with its links resolved.
pub fn directory(text: &str, dir: &Path, placeholder: &str) -> String {
    let resolved = dir.canonicalize().unwrap();
    text.replace(&resolved.display().to_string(), placeholder)
        .replace(&dir.display().to_string(), placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_durations_are_replaced_in_text_for_people() {
        let text = "run 01a1df49-dd6f-711a-b1bd-357bcc00081f 2026-11-15 12:58:01 done, 17 ms\n\
                    12:58:01 work 1.5 s\n0:00:02 · looking at the files of /tmp/x takes longer than a second\n\
                    01a1df49-dd6f waits, 3 files";
        assert_eq!(volatile(text), "run RUN DATE TIME done\nTIME work\nRUN waits, 3 files");
    }

    #[test]
    fn parts_of_words_are_not_replaced() {
        for text in ["x-1-2-3-4-5-x", "v12:30:15", "see 0123, é", "x01-"] {
            assert_eq!(volatile(text), text);
        }
        assert_eq!(
            commits("0123456789abcdef0123456789abcdef01234567x"),
            "0123456789abcdef0123456789abcdef01234567x"
        );
    }
}
