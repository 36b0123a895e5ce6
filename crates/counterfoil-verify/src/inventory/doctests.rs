//! Examples in documentation that a runner executes: doc tests of Rust, and of Python. Only those
//! are compared whose code stays: examples go and come with what they describe.

use super::parse::Language;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// An example in the documentation of a source file.
struct Example {
    /// The digest of its code.
    code: u64,
    /// Whether it is executed and has to succeed.
    runs: bool,
    /// The line, counted from 1.
    line: u32,
}

/// How many examples with the same code run, and how many do not.
#[derive(Clone, Copy, Default)]
struct Count {
    running: usize,
    idle: usize,
}

/// The lines of the examples that were executed before and are not executed now.
pub(super) fn switched_off(path: &Path, before: &[u8], after: &[u8]) -> Vec<u32> {
    let (Some(old), Some(new)) = (examples(path, before), examples(path, after)) else {
        return Vec::new();
    };
    let (was, is) = (count(&old), count(&new));
    let of =
        |counts: &HashMap<u64, Count>, code: u64| counts.get(&code).copied().unwrap_or_default();
    new.iter()
        .filter(|example| {
            let (was, is) = (of(&was, example.code), of(&is, example.code));
            !example.runs && is.running < was.running && is.idle > was.idle
        })
        .map(|example| example.line)
        .collect()
}

fn count(examples: &[Example]) -> HashMap<u64, Count> {
    let mut counts: HashMap<u64, Count> = HashMap::new();
    for example in examples {
        let count = counts.entry(example.code).or_default();
        if example.runs {
            count.running += 1;
        } else {
            count.idle += 1;
        }
    }
    counts
}

/// The examples of a file; none if its language has no examples that are executed.
fn examples(path: &Path, text: &[u8]) -> Option<Vec<Example>> {
    let text = std::str::from_utf8(text).ok()?;
    match Language::from_path(path)? {
        Language::Rust => Some(in_rust(text)),
        Language::Python => Some(in_python(text)),
        _ => None,
    }
}

/// Code between fences in `///` and `//!`.
fn in_rust(text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut open: Option<(Example, DefaultHasher)> = None;
    for (line, number) in text.lines().zip(1_u32..) {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(doc) = doc.filter(|doc| !doc.starts_with('/')) else {
            open = None;
            continue;
        };
        let doc = doc.trim();
        if let Some(words) = doc.strip_prefix("```") {
            open = match open.take() {
                None => {
                    let example = Example { code: 0, runs: is_executed(words), line: number };
                    Some((example, DefaultHasher::new()))
                }
                Some((example, code)) => {
                    examples.push(Example { code: code.finish(), ..example });
                    None
                }
            };
        } else if let Some((_, code)) = &mut open {
            doc.hash(code);
        }
    }
    examples
}

/// Whether rustdoc executes a block with these words after its fence, and it has to succeed.
fn is_executed(words: &str) -> bool {
    words
        .split([',', ' ', '{', '}'])
        .filter(|word| !word.is_empty())
        .all(|word| word == "rust" || word.starts_with("edition") || word.starts_with("standalone"))
}

/// Lines that start with `>>>`.
fn in_python(text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    for (line, number) in text.lines().zip(1_u32..) {
        let Some(code) = line.trim_start().strip_prefix(">>>") else { continue };
        let (code, options) = code.split_once("# doctest:").unwrap_or((code, ""));
        let mut digest = DefaultHasher::new();
        code.trim().hash(&mut digest);
        let runs = !options.contains("+SKIP");
        examples.push(Example { code: digest.finish(), runs, line: number });
    }
    examples
}
