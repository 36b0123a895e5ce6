//! Parsing within bounds: bytes, time, no recursion. What a tree is asked for is asked iteratively.

use memchr::memmem;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::time::{Duration, Instant};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// A language that tests are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    /// TypeScript in which `<x>` is an element and no cast.
    Tsx,
    Go,
}

/// Why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than is read.
    TooLong,
    /// The grammar finds no way through it in reasonable time.
    TooHard,
}

impl Unread {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::TooLong => "it is longer than 2 MiB",
            Self::TooHard => "it takes too long to parse",
        }
    }
}

impl Language {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        match extension {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            // Go itself looks at the name.
            "go" => path.file_stem()?.to_str()?.ends_with("_test").then_some(Self::Go),
            _ => None,
        }
    }

    /// Whether parsing can be spared: most changed files have no tests.
    pub(super) fn may_hold_tests(self, text: &[u8]) -> bool {
        let words: &[&[u8]] = match self {
            Self::Rust => &[b"test", b"quickcheck"],
            Self::Python => &[b"test"],
            Self::JavaScript | Self::TypeScript | Self::Tsx => &[b"it", b"test", b"specify"],
            Self::Go => &[b"func"],
        };
        words.iter().any(|word| memmem::find(text, word).is_some())
    }

    /// Whether a runner would look for tests in a file of this name.
    pub(super) fn is_collected(self, path: &Path) -> bool {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        match self {
            Self::Rust | Self::Go => true,
            Self::Python => {
                stem.starts_with("test") || stem.ends_with("_test") || stem.ends_with("_tests")
            }
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

/// Whether a text is none.
pub(super) fn is_binary(text: &[u8]) -> bool {
    memchr::memchr(0, &text[..text.len().min(8_000)]).is_some()
}

/// How long texts may take. Recovering from errors costs a parser up to twenty times what reading
/// does, and no count of its steps tells the one from the other: what is in the wrong language, or
/// in none, would take a minute. Only a clock bounds that.
#[derive(Clone, Copy)]
pub(super) struct Patience(Option<Instant>);

impl Patience {
    /// With one text.
    pub(super) const ONE: Duration = Duration::from_secs(5);

    /// With all texts of a step.
    pub(super) const ALL: Duration = Duration::from_mins(1);

    /// From now on.
    pub(super) fn of(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// The tree of a text. The parser asks now and then whether it should go on.
pub(super) fn parse(language: Language, text: &[u8], all: Patience) -> Result<Tree, Unread> {
    if text.len() > super::MAX_BYTES {
        return Err(Unread::TooLong);
    }
    let mut parser = Parser::new();
    if parser.set_language(&language.grammar()).is_err() {
        return Err(Unread::TooHard);
    }
    let one = Patience::of(Patience::ONE);
    let mut go_on = |_: &ParseState| {
        if one.is_over() || all.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let mut rest = |at: usize, _| text.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options)).ok_or(Unread::TooHard)
}

/// The children of a node, in order.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

/// Whether a node is a comment, in whatever language.
pub(super) fn is_comment(node: Node<'_>) -> bool {
    // Asking for the name of a kind is slow.
    node.is_extra() && node.kind().ends_with("comment")
}

/// Visits what stands in a node, from the top down and in order. What `enter` says no to is not
/// gone into.
pub(super) fn walk<'t>(node: Node<'t>, mut enter: impl FnMut(Node<'t>) -> bool) {
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

/// The line of the first thing that the grammar cannot read.
pub(super) fn first_error(root: Node<'_>) -> Option<u32> {
    let mut line = None;
    walk(root, |node| {
        if line.is_none() && (node.is_error() || node.is_missing()) {
            line = Some(line_of(node));
        }
        line.is_none() && node.has_error()
    });
    line
}

/// Where comments stand.
pub(super) fn comments(root: Node<'_>) -> Vec<Range<usize>> {
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

/// The line of a node, from 1.
pub(super) fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1)
}

/// The bytes of a node.
pub(super) fn bytes<'t>(node: Node<'_>, text: &'t [u8]) -> &'t [u8] {
    text.get(node.byte_range()).unwrap_or_default()
}

/// The text of a node, if it is one.
pub(super) fn word<'t>(node: Node<'_>, text: &'t [u8]) -> &'t str {
    std::str::from_utf8(bytes(node, text)).unwrap_or_default()
}
