//! Every code has an explain page. Its bad workflow causes only that code, and its good one passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use counterfoil_contract::Registry;
use counterfoil_flow::{Code, Finding, Rejected, Workflow, check};
use std::collections::BTreeMap;

const WORKFLOW: &str = "workflow.yaml";

/// The text of the only block with this info string, which must be under this heading.
fn only(page: &str, info: &str, heading: &str) -> Result<String, String> {
    let mut found = Vec::new();
    let mut section = "";
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let Some(block) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if block == info {
            found.push((section.to_owned(), text.join("\n")));
        }
    }
    match found.as_slice() {
        [(section, text)] if section == heading => Ok(format!("{text}\n")),
        [(section, _)] => Err(format!("the block `{info}` is under {section}")),
        found => Err(format!("{} blocks `{info}` where there should be one", found.len())),
    }
}

/// The files of a block: the workflow, then further files that start with a line `# file: path`.
fn files(text: &str) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut path = WORKFLOW.to_owned();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("# file: ") {
            Some(next) => next.trim_end().clone_into(&mut path),
            None => files.entry(path.clone()).or_insert_with(String::new).push_str(line),
        }
    }
    files
}

/// Checks a workflow in a project that has the check `test`.
fn check_in_project(
    files: &BTreeMap<String, String>,
    registry: &Registry,
) -> Result<Workflow, Rejected> {
    let workflow = check(WORKFLOW, files, registry)?;
    let missing = workflow.missing_checks(["test"]);
    let findings: Vec<Finding> = missing.iter().flat_map(|one| one.findings(WORKFLOW)).collect();
    if findings.is_empty() {
        Ok(workflow)
    } else {
        Err(Rejected { findings, files: files.clone() })
    }
}

fn check_page(code: Code) -> Result<(), String> {
    let page = code.page();
    let title = format!("# {code}: {}", code.title());
    if page.lines().next() != Some(&title) {
        return Err(format!("the first line is not `{title}`"));
    }
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    if headings != ["Bad", "Good"] {
        return Err(format!("the sections are {headings:?}, not Bad and Good"));
    }
    let intro = page.split("## Bad").next().unwrap_or_default();
    if intro.split("\n\n").filter(|part| !part.trim().is_empty()).count() < 3 {
        return Err("it does not explain the problem and the fix".to_owned());
    }
    let registry = counterfoil_packs::registry();
    if let Err(rejected) = check_in_project(&files(&only(page, "yaml good", "Good")?), &registry) {
        return Err(format!("the good workflow is rejected:\n{rejected}"));
    }
    match check_in_project(&files(&only(page, "yaml bad", "Bad")?), &registry) {
        Ok(_) => Err("the bad workflow passes".to_owned()),
        Err(rejected) if rejected.findings.iter().all(|finding| finding.code == code) => Ok(()),
        Err(rejected) => Err(format!("the bad workflow does not show {code} alone:\n{rejected}")),
    }
}

#[test]
fn the_examples_of_every_page_are_correct() {
    let failures: Vec<String> = Code::ALL
        .iter()
        .filter_map(|code| {
            check_page(*code).err().map(|why| format!("{code} ({}): {why}", code.title()))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} pages fail:\n{}",
        failures.len(),
        Code::ALL.len(),
        failures.join("\n")
    );
}

#[test]
fn codes_and_titles_are_unique() {
    for (index, code) in Code::ALL.iter().enumerate() {
        let again = Code::ALL[..index]
            .iter()
            .find(|other| other.as_str() == code.as_str() || other.title() == code.title());
        assert_eq!(again, None, "{code}");
    }
}
