//! Parses source files with limits on size and time. Syntax trees are traversed without recursion.

use memchr::memmem;
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::time::{Duration, Instant};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// A language whose tests can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    /// TypeScript with JSX, in which `<x>` is an element and not a type assertion.
    Tsx,
    Go,
}

/// Why a file could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseFailure {
    /// The file exceeds the maximum size.
    TooLarge,
    /// The file is no text in UTF-8. The texts of its nodes would be empty.
    NotUtf8,
    /// The parser exceeded its time limit.
    TooSlow,
}

impl ParseFailure {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::TooLarge => "it is longer than 2 MiB",
            Self::NotUtf8 => "it is no text in UTF-8",
            Self::TooSlow => "it takes too long to parse",
        }
    }
}

impl Language {
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        match extension {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            // `go test` only reads files with this suffix.
            "go" => path.file_stem()?.to_str()?.ends_with("_test").then_some(Self::Go),
            _ => None,
        }
    }

    /// Whether a text may contain tests. Avoids parsing most changed files.
    pub(crate) fn may_hold_tests(self, path: &Path, text: &[u8]) -> bool {
        // Its modules may be in other files.
        let is_in = |folder: &str| path.iter().any(|part| part == folder);
        if self == Self::Rust && (is_in("tests") || !is_in("src")) {
            return true;
        }
        if self == Self::Python && path.file_name().is_some_and(|name| name == "conftest.py") {
            return true;
        }
        let words: &[&[u8]] = match self {
            Self::Rust => &[b"test", b"quickcheck", b"#![cfg"],
            Self::Python => &[b"test"],
            Self::JavaScript | Self::TypeScript | Self::Tsx => {
                // The last ones are modules that are called like a test.
                &[b"it", b"test", b"specify", b"expect", b"tape", b"ava'", b"ava\"", b"ospec"]
            }
            Self::Go => &[b"func"],
        };
        words.iter().any(|word| memmem::find(text, word).is_some())
    }

    /// Whether a test runner would collect tests from a file of this name.
    pub(crate) fn is_collected(self, path: &Path) -> bool {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        match self {
            Self::Rust => true,
            // `go` ignores these names and folders.
            Self::Go if is_for_other_platform(stem) => false,
            Self::Go => !path
                .iter()
                .filter_map(|part| part.to_str())
                .any(|part| part.starts_with(['_', '.']) || matches!(part, "testdata" | "vendor")),
            Self::Python => stem.starts_with("test") || stem.ends_with("_test"),
            Self::JavaScript | Self::TypeScript | Self::Tsx => {
                let folder = |part| {
                    matches!(
                        part,
                        "__tests__" | "test" | "tests" | "spec" | "specs" | "e2e" | "cypress"
                    )
                };
                let marked = |part| matches!(part, "test" | "tests" | "spec" | "cy" | "e2e");
                name.split(['.', '-', '_']).any(marked)
                    || path.iter().filter_map(|part| part.to_str()).any(folder)
            }
        }
    }

    pub(crate) fn is_javascript(self) -> bool {
        matches!(self, Self::JavaScript | Self::TypeScript | Self::Tsx)
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
        }
    }
}

/// Whether `go` builds a file with this stem for another platform only.
fn is_for_other_platform(stem: &str) -> bool {
    let own = if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS };
    let stem = stem.strip_suffix("_test").unwrap_or(stem);
    let platforms =
        ["windows", "darwin", "linux", "freebsd", "openbsd", "netbsd", "plan9", "js", "wasip1"];
    let last = stem.rsplit_once('_').map(|(_, last)| last).unwrap_or_default();
    last != own && platforms.contains(&last)
}

/// Whether a file is binary.
pub(crate) fn is_binary(text: &[u8]) -> bool {
    memchr::memchr(0, &text[..text.len().min(8_000)]).is_some()
}

/// A text in which each byte that is not UTF-8 is a character, if the text is not UTF-8 and not
/// binary. Files that were in another encoding before a change are read so: marks are in ASCII.
pub(crate) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if is_binary(text) || std::str::from_utf8(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let characters: String = text.iter().map(|byte| char::from(*byte)).collect();
    Cow::Owned(characters.into_bytes())
}

/// A time limit for parsing. Error recovery costs a parser up to twenty times as much as parsing,
/// and a file in the wrong language could take a minute. The number of steps does not bound that,
/// so the time is limited.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// The time limit for one file.
    pub(crate) const PER_FILE: Duration = Duration::from_secs(5);

    /// The time limit for all files of a step.
    pub(crate) const PER_STEP: Duration = Duration::from_mins(1);

    /// A deadline that ends after this time.
    pub(crate) fn after(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// Parses a text. The parser checks the deadlines regularly.
pub(crate) fn parse(language: Language, text: &[u8], all: Deadline) -> Result<Tree, ParseFailure> {
    if text.len() > super::MAX_BYTES {
        return Err(ParseFailure::TooLarge);
    }
    if std::str::from_utf8(text).is_err() {
        return Err(ParseFailure::NotUtf8);
    }
    let mut parser = Parser::new();
    if parser.set_language(&language.grammar()).is_err() {
        return Err(ParseFailure::TooSlow);
    }
    let one = Deadline::after(Deadline::PER_FILE);
    let mut go_on = |_: &ParseState| {
        if one.is_over() || all.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let mut rest = |at: usize, _| text.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options)).ok_or(ParseFailure::TooSlow)
}

/// The children of a node, in order.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

/// The arguments of a call, in order, without parentheses and commas. Comments between them are
/// included.
pub(crate) fn arguments_of(call: Node<'_>) -> Vec<Node<'_>> {
    let list = call.child_by_field_name("arguments").map(children).unwrap_or_default();
    list.into_iter().filter(Node::is_named).collect()
}

/// Whether a node is a comment, in any language.
pub(crate) fn is_comment(node: Node<'_>) -> bool {
    // Reading the name of a kind is slow, so it comes last.
    node.is_extra() && node.kind().ends_with("comment")
}

/// Visits a node and its descendants in order, parents first. Skips the descendants of a node for
/// which `enter` returns false.
pub(crate) fn walk<'t>(node: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
    let mut cursor = node.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// Whether one of the first nodes of some code, in the order of `walk`, is the one that is looked for.
pub(crate) fn find<'t>(
    node: Node<'t>,
    most: usize,
    mut is_wanted: impl FnMut(Node<'t>) -> bool,
) -> bool {
    let mut cursor = node.walk();
    for _ in 0..most {
        if is_wanted(cursor.node()) {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
    false
}

/// The line of the first syntax error.
pub(crate) fn first_error(root: Node<'_>) -> Option<u32> {
    let mut line = None;
    walk(root, |node| {
        if line.is_none() && (node.is_error() || node.is_missing()) {
            line = Some(line_number(node));
        }
        line.is_none() && node.has_error()
    });
    line
}

/// The ranges of all comments.
pub(crate) fn comments(root: Node<'_>) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    walk(root, |node| {
        let comment = is_comment(node);
        if comment {
            ranges.push(node.byte_range());
        }
        !comment
    });
    ranges
}

/// The line of a node, counted from 1.
pub(crate) fn line_number(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1)
}

/// The bytes of a node.
pub(crate) fn node_bytes<'t>(node: Node<'_>, text: &'t [u8]) -> &'t [u8] {
    text.get(node.byte_range()).unwrap_or_default()
}

/// The text of a node; empty if it is not UTF-8.
pub(crate) fn node_text<'t>(node: Node<'_>, text: &'t [u8]) -> &'t str {
    std::str::from_utf8(node_bytes(node, text)).unwrap_or_default()
}
