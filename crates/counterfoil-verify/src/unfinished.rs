//! Finds work that was left unfinished in changed source files: placeholders such as `todo!()`,
//! functions without a body, comments that put work off, and tests that are skipped.
//!
//! Works on texts and reads no files; parsing is limited in time. What was there before the change,
//! in any of the changed files, is not reported. Whether a body does what it should cannot be seen
//! here: only a test shows that.

mod bodies;
mod comments;
mod placeholders;
mod plain;

use crate::inventory::parse::{
    self, Deadline, Language, ParseFailure, line_number, node_text, walk,
};
use crate::inventory::{self, TestState};
use counterfoil_contract::text::{display_path, escape_control};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use strum::IntoStaticStr;
use tree_sitter::Node;

/// The maximum length of quoted code, in characters.
const MAX_QUOTED: usize = 80;

/// What is unfinished.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, IntoStaticStr, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum UnfinishedKind {
    /// Code that stands for what is not written: `todo!()`, `raise NotImplementedError`.
    Placeholder,
    /// A function without a body.
    EmptyBody,
    /// A comment that puts work off: TODO, FIXME, "for now".
    Comment,
    /// A test that does not run.
    SkippedTest,
}

impl UnfinishedKind {
    /// Every kind.
    pub const ALL: [Self; 4] =
        [Self::Placeholder, Self::EmptyBody, Self::Comment, Self::SkippedTest];

    /// The name in JSON and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A place where work was left unfinished.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Unfinished {
    /// The file, relative to the folder.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
    /// What is unfinished.
    pub kind: UnfinishedKind,
    /// The code or the comment, on one line and shortened.
    pub text: String,
    /// What identifies it before and after a change.
    #[serde(skip)]
    key: String,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, text) = (display_path(&self.file), escape_control(&self.text));
        write!(f, "{file}:{}: {}: {text}", self.line, self.kind.name())
    }
}

/// Something that was to be examined and could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The file, relative to the folder; none if the reason is not about one file.
    pub file: Option<PathBuf>,
    /// Why it could not be examined.
    pub reason: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = escape_control(&self.reason);
        match &self.file {
            Some(file) => write!(f, "{}: {reason}", display_path(file)),
            None => write!(f, "{reason}"),
        }
    }
}

/// What was left unfinished by a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// The places, by file and line.
    pub places: Vec<Unfinished>,
    /// The files that could not be read or parsed: whether they hold unfinished work is not known.
    pub unread: Vec<Unread>,
    /// The files that may hold code, in no language in which unfinished work can be found.
    pub unknown: Vec<PathBuf>,
}

/// Whether a file is in a language in which unfinished work can be found, by its name.
pub fn is_source_file(path: &Path) -> bool {
    language(path).is_some()
}

fn language(path: &Path) -> Option<Language> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("go") => Some(Language::Go),
        // Stubs describe types. Their functions have no bodies.
        Some("pyi") => None,
        _ if path.to_str().is_some_and(|path| path.ends_with(".d.ts")) => None,
        _ => Language::from_path(path),
    }
}

/// Whether a file may hold code, by its name.
pub fn may_hold_code(path: &Path) -> bool {
    is_source_file(path) || !plain::is_plain(path)
}

/// The language of a file, by its name or by the program that runs it as a script.
fn language_of(path: &Path, text: &[u8]) -> Option<Language> {
    language(path).or_else(|| {
        let line = text.strip_prefix(b"#!").filter(|_| path.extension().is_none())?;
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(['/', ' ', '\t', '\r']);
        words.find_map(|word| match word {
            "node" => Some(Language::JavaScript),
            word if word.starts_with("python") => Some(Language::Python),
            _ => None,
        })
    })
}

/// The unfinished places of a file, in the order of their lines.
///
/// # Errors
///
/// Why the file could not be parsed, as text.
pub fn find(path: &Path, text: &[u8]) -> Result<Vec<Unfinished>, String> {
    find_until(path, text, Deadline::after(Deadline::PER_FILE))
}

fn find_until(path: &Path, text: &[u8], deadline: Deadline) -> Result<Vec<Unfinished>, String> {
    let Some(language) = language_of(path, text) else { return Ok(Vec::new()) };
    if parse::is_binary(text) {
        return Err(ParseFailure::NotUtf8.message().to_owned());
    }
    let tree =
        parse::parse(language, text, deadline).map_err(|failure| failure.message().to_owned())?;
    let file = File { path, text, language, is_test: is_test(language, path) };
    let mut places = Vec::new();
    walk(tree.root_node(), |node| {
        if parse::is_comment(node) {
            places.extend(comments::read(node, &file));
            return false;
        }
        places.extend(placeholders::read(node, &file));
        places.extend(bodies::read(node, &file));
        true
    });
    for test in inventory::tests(path, text) {
        // A skip under a condition, such as the platform, is no work that is left.
        if test.state == TestState::Skipped && !test.may_run {
            places.push(Unfinished {
                file: path.to_owned(),
                line: test.line,
                kind: UnfinishedKind::SkippedTest,
                text: quote(&test.name),
                key: test.name,
            });
        }
    }
    places.sort();
    Ok(places)
}

/// What a change left unfinished: what the files have now and did not have before. A place that only
/// moved, within its file or to another one, is not new.
pub fn added<'a, B: AsRef<[u8]>>(
    files: impl Iterator<Item = (&'a Path, Option<B>, Option<B>)>,
) -> UnfinishedWork {
    let deadline = Deadline::after(Deadline::PER_STEP);
    let mut known: HashMap<(UnfinishedKind, String), usize> = HashMap::new();
    let mut now = Vec::new();
    let mut work = UnfinishedWork::default();
    for (path, before, after) in files {
        let (before, after) =
            (before.as_ref().map(AsRef::as_ref), after.as_ref().map(AsRef::as_ref));
        if before == after {
            continue;
        }
        if let Some(now) = after
            && language_of(path, now).is_none()
            && may_hold_code(path)
            && !parse::is_binary(now)
            && !now.trim_ascii().is_empty()
        {
            work.unknown.push(path.to_owned());
            continue;
        }
        // If what was there before cannot be read, everything counts as new, and that is noted.
        let before = parse::decoded(before.unwrap_or_default());
        for (text, is_now) in [(&*before, false), (after.unwrap_or_default(), true)] {
            match find_until(path, text, deadline) {
                Ok(places) if is_now => now.extend(places),
                Ok(places) => {
                    for place in places {
                        *known.entry((place.kind, place.key)).or_default() += 1;
                    }
                }
                Err(reason) => {
                    let unread = Unread { file: Some(path.to_owned()), reason };
                    // The same may be wrong with the file before and after.
                    if work.unread.last() != Some(&unread) {
                        work.unread.push(unread);
                    }
                }
            }
        }
    }
    for place in now {
        match known.get_mut(&(place.kind, place.key.clone())) {
            Some(times @ 1..) => *times -= 1,
            _ => work.places.push(place),
        }
    }
    work.places.sort();
    work
}

/// A parsed file.
struct File<'s> {
    path: &'s Path,
    text: &'s [u8],
    language: Language,
    /// Whether it holds tests, by its name.
    is_test: bool,
}

impl File<'_> {
    fn text_of(&self, node: Node<'_>) -> &str {
        node_text(node, self.text)
    }

    /// A place at a node. `within` makes equal places in different functions differ.
    fn place(&self, kind: UnfinishedKind, node: Node<'_>, within: &str) -> Unfinished {
        let text = quote(self.text_of(node));
        Unfinished {
            file: self.path.to_owned(),
            line: line_number(node),
            kind,
            key: format!("{within}\u{0}{text}"),
            text,
        }
    }
}

fn is_test(language: Language, path: &Path) -> bool {
    match language {
        Language::Rust => {
            path.iter().any(|part| matches!(part.to_str(), Some("tests" | "benches" | "examples")))
        }
        Language::Go => {
            path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_test"))
        }
        _ => {
            let in_tests = |part: &std::ffi::OsStr| {
                matches!(part.to_str(), Some("tests" | "test" | "testing" | "__tests__"))
            };
            language.is_collected(path) || path.iter().any(in_tests)
        }
    }
}

/// A text on one line, shortened.
fn quote(text: &str) -> String {
    let start = text.get(..text.floor_char_boundary(8 * MAX_QUOTED)).unwrap_or(text);
    let plain = start.split_whitespace().collect::<Vec<_>>().join(" ");
    match plain.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

/// The name of the nearest function around a node; empty outside of one.
fn function_name<'s>(node: Node<'_>, file: &'s File<'_>) -> &'s str {
    let mut above = node.parent();
    while let Some(node) = above {
        if let Some(name) = node.child_by_field_name("name")
            && node.child_by_field_name("body").is_some()
        {
            return file.text_of(name);
        }
        above = node.parent();
    }
    ""
}

/// Whether a text says that something is not implemented, perhaps behind its name: `save: TODO`.
fn says_not_implemented(text: &str) -> bool {
    let text = text.get(..text.floor_char_boundary(400)).unwrap_or(text).to_lowercase();
    let text = text.trim_start_matches(|character: char| !character.is_alphanumeric());
    let behind_name = text.split_once(": ").filter(|(name, _)| !name.contains(' '));
    puts_off(text) || behind_name.is_some_and(|(_, rest)| puts_off(rest))
}

fn puts_off(text: &str) -> bool {
    ["not implemented", "not yet implemented", "unimplemented", "to be implemented", "implement me"]
        .iter()
        .any(|phrase| text.starts_with(phrase))
        || text
            .strip_prefix("todo")
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
mod tests;
