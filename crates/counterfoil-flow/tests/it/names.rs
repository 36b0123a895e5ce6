//! The machine and its engine know no workflow by name: what a pack needs must be sayable in its
//! file.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

/// Packs, agents of packs and vendors of agents; words that mean something else in everyday code
/// (plan, test, review) are left out.
const NAMES: &[&str] = &[
    "execution-loop",
    "review-fix",
    "feature-pipeline",
    "spec-pipeline",
    "gated-team",
    "implementer",
    "qa",
    "code-quality",
    "manager",
    "dod",
    "unified-reviewer",
    "code-reviewer",
    "simple-fixer",
    "fixer",
    "issue-fixer",
    "todo-doc-generator",
    "tdd-task-executor",
    "code-simplifier",
    "silent-failure-hunter",
    "review-pr",
    "type-design-analyzer",
    "taskstoissues",
    "specagent",
    "architect",
    "integrator",
    "claude",
    "codex",
    "gemini",
    "anthropic",
    "openai",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names that stand in a text as whole words; `code_quality` and `CodeQuality` are
/// `code-quality`.
fn named(text: &str) -> Vec<&'static str> {
    let mut plain = String::new();
    let mut small_before = false;
    for c in text.chars() {
        if c.is_uppercase() && small_before {
            plain.push('-');
        }
        small_before = c.is_lowercase();
        plain.extend(if c == '_' { '-' } else { c }.to_lowercase());
    }
    let word = |c: char| c.is_alphanumeric();
    let whole = |name: &&&str| {
        plain.match_indices(**name).any(|(at, _)| {
            !plain[..at].ends_with(word) && !plain[at + name.len()..].starts_with(word)
        })
    };
    NAMES.iter().filter(whole).copied().collect()
}

#[test]
fn neither_the_machine_nor_the_engine_knows_a_pack_or_an_agent() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in [here.join("src"), here.join("../counterfoil-engine/src")] {
        sources(&folder, &mut files);
    }
    assert!(files.len() > 40, "only {} files were found", files.len());
    // What is particular to one program stands in its own module, and only the list of them knows
    // it.
    let adapters = ["claude", "codex", "gemini"];
    let is_adapter = |file: &Path| {
        let inside = file.strip_prefix(here.join("../counterfoil-engine/src/agent")).ok();
        let first = inside.and_then(|path| path.components().next());
        let name = first.and_then(|part| part.as_os_str().to_str()).unwrap_or_default();
        adapters.contains(&name.trim_end_matches(".rs"))
    };
    let listed = ["mod claude;", "mod codex;", "mod gemini;"];
    let listed = listed.into_iter().chain(["claude::Claude", "codex::Codex", "gemini::Gemini"]);
    for file in files.into_iter().filter(|file| !is_adapter(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let found = named(&listed.clone().fold(text, |text, listed| text.replace(listed, "")));
        assert!(found.is_empty(), "{} names {}", file.display(), found.join(", "));
    }
}

#[test]
fn names_are_found_however_they_are_written() {
    assert_eq!(named("match agent { \"qa\" => 1 }"), ["qa"]);
    assert_eq!(named("fn code_quality() {}"), ["code-quality"]);
    assert_eq!(named("struct ExecutionLoop;"), ["execution-loop"]);
    assert_eq!(named("// Claude says so"), ["claude"]);
    assert!(named("qualify, managers, implement, aqa").is_empty());
}
