//! The findings of the checker as text. Each file in `tests/refusals` is an invalid workflow, and the
//! rendered findings are a snapshot. Lines `# file: path` start further files of the case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use counterfoil_contract::diagnostic::Style;
use counterfoil_flow::{Code, Finding, Rejected, Workflow, check, render};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const WORKFLOW: &str = "workflow.yaml";

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusals");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let all_paths = paths.clone();
    let mut trials: Vec<Trial> = paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            Trial::test(name.clone(), move || refused(&name, &path))
        })
        .collect();
    trials.push(Trial::test("every_code_has_a_case", move || every_code_has_a_case(&all_paths)));
    libtest_mimic::run(&arguments, trials).exit();
}

/// The files of a case: the workflow, then those that start with a line `# file: path`.
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

/// Checks a workflow in a project that has the checks `test` and `lint`.
fn check_in_project(files: &BTreeMap<String, String>) -> Result<Workflow, Rejected> {
    let workflow = check(WORKFLOW, files, &counterfoil_packs::registry())?;
    let missing = workflow.missing_checks(["test", "lint"]);
    let findings: Vec<Finding> = missing.iter().flat_map(|one| one.findings(WORKFLOW)).collect();
    if findings.is_empty() {
        Ok(workflow)
    } else {
        Err(Rejected { findings, files: files.clone() })
    }
}

/// Checks a case against its snapshot.
fn refused(name: &str, path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let Err(rejected) = check_in_project(&files(&text)) else {
        return Err("the workflow passes".into());
    };
    for finding in &rejected.findings {
        if finding.message.is_empty() || finding.hint.is_empty() {
            return Err(format!("{} has no message or no hint", finding.code).into());
        }
    }
    let rendered = render(&rejected.findings, &rejected.files, Style::default());
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("snapshots/refusals");
    settings.bind(|| insta::assert_snapshot!(name, rendered));
    Ok(())
}

fn every_code_has_a_case(paths: &[PathBuf]) -> Result<(), Failed> {
    let mut covered = BTreeSet::new();
    for path in paths {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        if let Err(rejected) = check_in_project(&files(&text)) {
            covered.extend(rejected.findings.iter().map(|finding| finding.code.as_str()));
        }
    }
    let missing: Vec<&str> =
        Code::ALL.iter().map(|code| code.as_str()).filter(|code| !covered.contains(code)).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("no case covers {}", missing.join(", ")).into())
    }
}
