//! The blocks of README.md, of every page below `docs/` and of the pages for contributors, executed
//! in order, one test for each page.

use crate::expected::difference;
use crate::plan::{Action, Command, Step, Syntax, plan};
use crate::sandbox::{Ended, Sandbox};
use crate::{markdown_below, read, root, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::path::Path;

/// The file with the pages whose Rust blocks rustdoc runs.
const DOC_TESTS: &str = "crates/counterfoil-packs/src/pages.rs";

fn pages() -> Vec<String> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned);
    top.into_iter().chain(markdown_below("docs")).collect()
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = pages()
        .into_iter()
        .map(|page| {
            let name = page.clone();
            trial("blocks", &name, move || execute(&page))
        })
        .collect();
    trials.push(trial("blocks", "every_block_has_a_use", every_block_has_a_use));
    trials.push(trial("blocks", "failures_name_the_command", failures_name_the_command));
    trials.push(trial("blocks", "no_example_of_a_crate_is_left_out", no_example_is_left_out));
    trials
}

/// Executes a page, and fails with everything that is wrong with it.
fn execute(page: &str) {
    let text = read(page);
    let failures = failures(page, &text);
    assert!(
        failures.is_empty(),
        "{} failures in {page}\n\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn failures(page: &str, text: &str) -> Vec<String> {
    let (steps, problems) = plan(text);
    let mut failures: Vec<String> =
        problems.iter().map(|one| format!("{page}:{}: {}\n", one.line, one.text)).collect();
    let sandbox = Sandbox::new();
    for step in &steps {
        let found = perform(&sandbox, page, step);
        failures.extend(found.into_iter().map(|(line, text)| format!("{page}:{line}: {text}")));
    }
    failures
}

/// Performs a step. Returns what is wrong, each with its line.
fn perform(sandbox: &Sandbox, page: &str, step: &Step) -> Vec<(usize, String)> {
    let failure = match &step.action {
        Action::Write { path, content } => {
            sandbox.write(path, content);
            None
        }
        Action::Script { text, exit } => wrong_exit(text, *exit, &sandbox.run(&["-eu"], text)),
        Action::Setup(text) => wrong_exit(text, 0, &sandbox.run(&["-eu"], text)),
        Action::Session(commands) => {
            let run =
                |one: &Command| Some((one.line, wrong_output(one, &sandbox.run(&[], &one.text))?));
            return commands.iter().filter_map(run).collect();
        }
        Action::Parse { syntax, text } => parse(*syntax, text).err(),
        Action::DocTest if read(DOC_TESTS).contains(&format!("/{page}\"")) => None,
        Action::DocTest => {
            Some(format!("no doc test runs this block; add the page to {DOC_TESTS}\n"))
        }
        Action::Illustration | Action::NotRun => None,
    };
    failure.map(|text| (step.line, text)).into_iter().collect()
}

fn parse(syntax: Syntax, text: &str) -> Result<(), String> {
    let json = |text: &str| serde_json::from_str::<Value>(text).map(drop);
    match syntax {
        Syntax::Json => json(text).map_err(|error| format!("not JSON: {error}\n")),
        Syntax::JsonLines => {
            text.lines().try_for_each(json).map_err(|error| format!("not JSON lines: {error}\n"))
        }
        Syntax::Yaml => serde_saphyr::from_multiple::<Value>(text)
            .map(drop)
            .map_err(|error| format!("not YAML: {error}\n")),
        Syntax::Toml => toml::from_str::<toml::Table>(text)
            .map(drop)
            .map_err(|error| format!("not TOML: {error}\n")),
    }
}

/// Says how a command ended, if it should have ended otherwise.
fn wrong_exit(command: &str, exit: i32, ended: &Ended) -> Option<String> {
    let how = match (ended.took_too_long, ended.code) {
        (true, _) => "took too long".to_owned(),
        (false, Some(code)) if code == exit => return None,
        (false, Some(code)) => format!("exited with {code}"),
        (false, None) => "was ended by a signal".to_owned(),
    };
    let command = indented(command);
    let output = indented(&ended.output);
    Some(format!("{how} instead of {exit}\n  command\n{command}  output\n{output}"))
}

fn wrong_output(command: &Command, ended: &Ended) -> Option<String> {
    if let Some(failure) = wrong_exit(&command.text, command.exit, ended) {
        return Some(failure);
    }
    let difference = difference(&command.output, &ended.output)?;
    let text = indented(&command.text);
    let expected = indented(&command.output);
    let output = indented(&ended.output);
    Some(format!("{difference}\n  command\n{text}  expected\n{expected}  output\n{output}"))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Blocks that are neither executed nor parsed nor left out for a reason are counted over all pages.
fn every_block_has_a_use() {
    let mut used = 0;
    let mut unused: Vec<String> = Vec::new();
    for page in pages() {
        let (steps, problems) = plan(&read(&page));
        used += steps.len();
        unused.extend(problems.iter().map(|one| format!("{page}:{}: {}", one.line, one.text)));
    }
    assert!(used > 0, "no blocks were found");
    assert!(unused.is_empty(), "{} of {} blocks\n{}", unused.len(), used, unused.join("\n"));
}

fn failures_name_the_command() {
    let page = "<!-- file: a.txt -->\n```text\none\n```\n\n\
                ```console\n$ cat a.txt\ntwo\n$ cat b.txt\n```\n\n\
                ```sh\ncat a.txt\ncat $NONE\n```\n\n\
                <!-- exit: 3 -->\n```sh\ntest -e a.txt\n```\n\n\
                ```yaml\n{\n```\n\n```json\n{}\n```\n";
    let found = failures("page.md", page);
    let heads: Vec<&str> = found.iter().filter_map(|one| one.lines().next()).collect();
    let [printed, missing, unset, exit, yaml] = heads.as_slice() else { panic!("{found:#?}") };
    assert_eq!(*printed, "page.md:7: not printed, or not there: two");
    assert!(
        found[0].ends_with("  command\n    cat a.txt\n  expected\n    two\n  output\n    one\n")
    );
    assert_eq!(*missing, "page.md:9: exited with 1 instead of 0");
    assert!(
        unset.starts_with("page.md:12: exited with ") && found[2].contains("    one\n"),
        "{unset}"
    );
    assert_eq!(*exit, "page.md:18: exited with 0 instead of 3");
    assert!(yaml.starts_with("page.md:22: not YAML"), "{yaml}");
}

/// A crate without doc tests has no example that they would run.
fn no_example_is_left_out() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    for folder in crates.map(|entry| entry.unwrap().path()) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if manifest.contains("doctest = false") {
            check_examples(&folder.join("src"));
        }
    }
}

fn check_examples(folder: &Path) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            check_examples(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let comments = text.lines().filter_map(|line| {
                let line = line.trim_start();
                line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
            });
            let fences: Vec<&str> =
                comments.map(str::trim).filter(|line| line.starts_with("```")).collect();
            let is_run = |fence: &&str| !matches!(*fence, "```text" | "```ignore" | "```yaml");
            let run = fences.iter().step_by(2).find(|fence| is_run(fence));
            assert!(run.is_none(), "{}: no doc test runs this example", path.display());
        }
    }
}
