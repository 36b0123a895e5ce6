//! What to do with each block of a page. Pure: text in, steps and problems out.
//!
//! A block is code in a fence. Comments on lines of their own before it are directives:
//!
//! - `<!-- file: PATH -->`: write the block to this file;
//! - `<!-- exit: N -->`: the exit code of the commands in the block, if it is not 0;
//! - `<!-- not run: REASON -->`: leave the block out;
//! - `<!-- setup: COMMANDS -->`: run commands here that the reader does not see.

use crate::trial;
use libtest_mimic::Trial;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use regex::Regex;
use std::path::{Component, Path};
use std::sync::LazyLock;

/// Languages of blocks that only show something.
const ILLUSTRATIONS: [&str; 9] =
    ["text", "jinja", "markdown", "diff", "xml", "csv", "html", "layout", "cel"];

/// A step of a page, and the line of the page where its block or comment begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Write a file of the project.
    Write { path: String, content: String },
    /// Run a shell script and compare its exit code.
    Script { text: String, exit: i32 },
    /// Run commands and compare what they print.
    Session(Vec<Command>),
    /// Run a shell script that the reader does not see.
    Setup(String),
    /// Parse the text.
    Parse { syntax: Syntax, text: String },
    /// A Rust example, which rustdoc runs.
    DocTest,
    /// A block that only shows something.
    Illustration,
    /// A block that is left out.
    NotRun,
}

/// A command of a `console` block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) output: String,
    pub(crate) exit: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    JsonLines,
    Yaml,
    Toml,
}

/// Something in a page that this test does not understand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// What comments say about the next block.
#[derive(Debug, Default)]
struct Directives {
    line: usize,
    file: Option<String>,
    exit: Option<i32>,
    not_run: Option<String>,
}

impl Directives {
    fn is_empty(&self) -> bool {
        self.file.is_none() && self.exit.is_none() && self.not_run.is_none()
    }
}

/// The steps of a page in order, and what is wrong with its blocks and comments.
pub(crate) fn plan(page: &str) -> (Vec<Step>, Vec<Problem>) {
    let mut plan =
        Planner { page, pending: Directives::default(), steps: vec![], problems: vec![] };
    let mut html = String::new();
    let mut code: Option<(usize, String, String)> = None;
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        let line = plan.line_at(range.start);
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                code = Some((line, info, String::new()));
            }
            Event::Text(part) if code.is_some() => {
                if let Some((_, _, text)) = &mut code {
                    text.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((line, info, text)) = code.take() {
                    plan.block(line, &info, text);
                }
            }
            Event::Start(Tag::HtmlBlock) => html.clear(),
            Event::Html(part) => html.push_str(&part),
            Event::End(TagEnd::HtmlBlock) => plan.comments(line, &html),
            // Lists and quotations may stand around a block.
            Event::Start(Tag::List(_) | Tag::Item | Tag::BlockQuote(_)) | Event::End(_) => {}
            _ => plan.expect_no_directives(),
        }
    }
    plan.expect_no_directives();
    (plan.steps, plan.problems)
}

struct Planner<'a> {
    page: &'a str,
    pending: Directives,
    steps: Vec<Step>,
    problems: Vec<Problem>,
}

impl Planner<'_> {
    fn line_at(&self, offset: usize) -> usize {
        self.page[..offset].matches('\n').count() + 1
    }

    fn problem(&mut self, line: usize, text: impl Into<String>) {
        self.problems.push(Problem { line, text: text.into() });
    }

    fn expect_no_directives(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.problem(pending.line, "no block follows this comment");
        }
    }

    /// Reads the directives in a block of HTML.
    fn comments(&mut self, line: usize, html: &str) {
        static COMMENT: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?s)<!--\s*(.*?)\s*-->").unwrap());
        static DIRECTIVE: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?s)^([a-z][a-z ]*):\s*(.*)$").unwrap());
        for comment in COMMENT.captures_iter(html) {
            let Some(directive) = DIRECTIVE.captures(&comment[1]) else { continue };
            let (key, value) = (&directive[1], directive[2].to_owned());
            if value.is_empty() {
                self.problem(line, format!("`{key}` has no value"));
                continue;
            }
            if self.pending.is_empty() {
                self.pending.line = line;
            }
            match key {
                "file" if is_inside(&value) => self.pending.file = Some(value),
                "file" => self.problem(line, format!("{value} is not a path in the project")),
                "exit" => match value.parse() {
                    Ok(code) => self.pending.exit = Some(code),
                    Err(_) => self.problem(line, format!("{value} is not an exit code")),
                },
                "setup" => self.steps.push(Step { line, action: Action::Setup(value) }),
                "not run" if value.contains(' ') => self.pending.not_run = Some(value),
                "not run" => self.problem(line, format!("`{value}` is no reason")),
                _ => self.problem(line, format!("unknown directive `{key}`")),
            }
        }
    }

    fn block(&mut self, line: usize, info: &str, text: String) {
        let directives = std::mem::take(&mut self.pending);
        let (language, attributes) =
            info.split_once([',', ' ']).map_or((info, ""), |(first, rest)| (first, rest));
        match action(language, attributes, directives, line, text) {
            Ok(action) => self.steps.push(Step { line, action }),
            Err(text) => self.problem(line, text),
        }
    }
}

/// Whether a path stays in the folder that it is relative to.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

fn action(
    language: &str,
    attributes: &str,
    directives: Directives,
    line: usize,
    text: String,
) -> Result<Action, String> {
    let Directives { file, exit, not_run, .. } = directives;
    let is_ignored = attributes.split(',').any(|word| word.trim() == "ignore");
    if language.is_empty() {
        return Err("the block has no language; `text` is for what is only shown".to_owned());
    }
    if exit.is_some() && (!matches!(language, "sh" | "console") || not_run.is_some()) {
        return Err("`exit` is for blocks of commands that are run".to_owned());
    }
    if file.is_some() && not_run.is_some() {
        return Err("a block with `file` is written, not run".to_owned());
    }
    // rustdoc knows nothing of our comments.
    if language == "rust" && not_run.is_some() != is_ignored {
        return Err(
            "a Rust block is left out by `rust,ignore` and a reason in `not run`".to_owned()
        );
    }
    if let Some(path) = file {
        return Ok(Action::Write { path, content: text });
    }
    if not_run.is_some() {
        return Ok(Action::NotRun);
    }
    Ok(match language {
        "sh" => Action::Script { text, exit: exit.unwrap_or(0) },
        "console" => Action::Session(commands(line, &text, exit.unwrap_or(0))?),
        "json" => Action::Parse { syntax: Syntax::Json, text },
        "jsonl" => Action::Parse { syntax: Syntax::JsonLines, text },
        "yaml" => Action::Parse { syntax: Syntax::Yaml, text },
        "toml" => Action::Parse { syntax: Syntax::Toml, text },
        "rust" => Action::DocTest,
        _ if ILLUSTRATIONS.contains(&language) => Action::Illustration,
        // GitHub draws it, and the book shows its source.
        "mermaid" => {
            let why = "the book does not draw Mermaid; use a picture or a drawing as text";
            return Err(why.to_owned());
        }
        _ => {
            return Err(format!(
                "nothing is done with a `{language}` block; write it to a file or give the reason \
                 why it is not run"
            ));
        }
    })
}

/// The commands of a `console` block that begins at a line, each with the lines that it prints.
fn commands(block: usize, text: &str, exit: i32) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    let mut lines = text.lines().zip(block + 1..);
    while let Some((line, number)) = lines.next() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(first), _) => {
                let mut text = first.to_owned();
                while text.ends_with('\\') {
                    let Some((more, _)) = lines.next() else { break };
                    text = format!("{text}\n{more}");
                }
                commands.push(Command { line: number, text, output: String::new(), exit: 0 });
            }
            (None, Some(command)) => command.output.push_str(&format!("{line}\n")),
            (None, None) => return Err("the first line is no command: `$ …`".to_owned()),
        }
    }
    match commands.last_mut() {
        Some(last) => last.exit = exit,
        None => return Err("the block has no command: `$ …`".to_owned()),
    }
    Ok(commands)
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("plan", "blocks_become_steps_in_order", blocks_become_steps_in_order),
        trial(
            "plan",
            "commands_have_the_output_that_follows",
            commands_have_the_output_that_follows,
        ),
        trial("plan", "what_would_be_skipped_silently_is_a_problem", problems_are_found),
    ]
}

fn blocks_become_steps_in_order() {
    let page = "# Title\n\n<!-- file: a/b.yaml -->\n```yaml\nx: 1\n```\n\n<!-- graph -->\n\n\
                <!-- setup: echo hi > there -->\n\n- item\n  <!-- exit: 3 -->\n\n  ```sh\n  false\n  ```\n\n\
                <!-- not run: needs an account -->\n```sh\nclaude\n```\n\n```json\n{}\n```\n\n```text\nx\n```\n\n\
                ```rust\nfn main() {}\n```\n";
    let (steps, problems) = plan(page);
    assert_eq!(problems, []);
    let steps: Vec<(usize, Action)> = steps.into_iter().map(|one| (one.line, one.action)).collect();
    assert_eq!(
        steps,
        [
            (4, Action::Write { path: "a/b.yaml".to_owned(), content: "x: 1\n".to_owned() }),
            (10, Action::Setup("echo hi > there".to_owned())),
            (15, Action::Script { text: "false\n".to_owned(), exit: 3 }),
            (20, Action::NotRun),
            (24, Action::Parse { syntax: Syntax::Json, text: "{}\n".to_owned() }),
            (28, Action::Illustration),
            (32, Action::DocTest),
        ]
    );
}

fn commands_have_the_output_that_follows() {
    let (steps, problems) =
        plan("<!-- exit: 1 -->\n```console\n$ one \\\n    --more\nfirst\n\n$ two\nsecond\n```\n");
    assert_eq!(problems, []);
    let [Step { action: Action::Session(commands), .. }] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    let found: Vec<_> = commands
        .iter()
        .map(|one| (one.line, one.text.as_str(), one.output.as_str(), one.exit))
        .collect();
    assert_eq!(found, [(3, "one \\\n    --more", "first\n\n", 0), (7, "two", "second\n", 1)]);
}

fn problems_are_found() {
    for (page, line, part) in [
        ("```\nx\n```\n", 1, "no language"),
        ("Text.\n\n    indented\n", 3, "no language"),
        ("```python\nx\n```\n", 1, "nothing is done with a `python` block"),
        ("```bash\nx\n```\n", 1, "nothing is done"),
        ("```mermaid\nx\n```\n", 1, "does not draw Mermaid"),
        ("<!-- flie: a -->\n```text\nx\n```\n", 1, "unknown directive `flie`"),
        ("<!-- file: ../a -->\n```text\nx\n```\n", 1, "not a path in the project"),
        ("<!-- file: /a -->\n```text\nx\n```\n", 1, "not a path in the project"),
        ("<!-- exit: one -->\n```sh\nx\n```\n", 1, "not an exit code"),
        ("<!-- exit: 1 -->\n```text\nx\n```\n", 2, "`exit` is for blocks"),
        ("<!-- not run: no -->\n```sh\nx\n```\n", 1, "is no reason"),
        ("<!-- not run: -->\n```sh\nx\n```\n", 1, "no value"),
        ("<!-- exit: 1 -->\n\nText.\n\n```sh\nx\n```\n", 1, "no block follows"),
        ("<!-- file: a -->\n", 1, "no block follows"),
        ("```console\nx\n```\n", 1, "the first line is no command"),
        ("```console\n```\n", 1, "no command"),
        ("<!-- not run: it is long -->\n```rust\nx\n```\n", 2, "`rust,ignore`"),
        ("```rust,ignore\nx\n```\n", 1, "`rust,ignore`"),
    ] {
        let (_, problems) = plan(page);
        let [problem, ..] = problems.as_slice() else { panic!("no problem in {page:?}") };
        assert!(problem.line == line && problem.text.contains(part), "{page:?}: {problem:?}");
    }
}
