//! The command `counterfoil workflow`.

use crate::cli::{GraphFormat, LintFormat, WorkflowCommand};
use crate::exit::Exit;
use crate::init::proposed_commands;
use crate::input::FileKind;
use crate::report::lint::{LintFinding, LintedWorkflow, WorkflowLint};
use crate::report::project_checks;
use crate::source::Source;
use crate::{input, output, project, render as formats, terminal};
use anyhow::{Result, bail};
use counterfoil_contract::load::{gives_key, top_keys};
use counterfoil_contract::text::{display_path, escape_control};
use counterfoil_engine::config::Config;
use counterfoil_flow::{Finding, Rejected, Workflow, graph, render};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(crate) fn run(command: &WorkflowCommand) -> Result<Exit> {
    match command {
        WorkflowCommand::Check { files, contracts, format } => check(files, contracts, *format),
        WorkflowCommand::Graph { workflow, contracts, format } => {
            let workflow = load(&Source::find(workflow)?, contracts)?;
            match format {
                GraphFormat::Mermaid => output::write_stdout(&graph::mermaid(&workflow)),
                GraphFormat::Dot => output::write_stdout(&graph::dot(&workflow)),
                GraphFormat::Svg => output::write_xml(&graph::svg(&workflow)),
            }?;
            Ok(Exit::Success)
        }
    }
}

fn check(paths: &[PathBuf], contracts: &[PathBuf], format: LintFormat) -> Result<Exit> {
    let registry = input::registry(contracts)?;
    let config = project_config();
    let checks: Result<BTreeSet<&str>, String> = match &config {
        Ok(config) => Ok(config.verify.checks.keys().map(String::as_str).collect()),
        Err(error) => Err(format!("the checks of the project are not known: {error:#}")),
    };
    let proposed = project_folder().map(|folder| proposed_commands(&folder)).unwrap_or_default();
    let mut good = true;
    let mut reports = Vec::new();
    let mut all = Vec::new();
    let (sources, left_out) = sources(paths)?;
    let note = input::left_out_note(&left_out, WORKFLOW.key);
    for source in sources {
        let mut found = source.check(&registry)?;
        let mut warnings: Vec<String> = checks.as_ref().err().into_iter().cloned().collect();
        if let (Ok(workflow), Ok(checks)) = (&found, &checks) {
            let problems =
                project_checks::problems(workflow, checks, source.written_by(), &proposed);
            warnings = skipped_files(workflow);
            warnings.extend(problems.unverifiable.into_iter().chain(problems.warnings));
            if !problems.misspelt.is_empty() {
                let files = workflow.bundle.files.clone();
                found = Err(Rejected { findings: problems.misspelt, files });
            }
        }
        good &= found.is_ok();
        let findings: &[Finding] = found.as_ref().err().map_or(&[], |rejected| &rejected.findings);
        match format {
            LintFormat::Json => {
                reports.push(LintedWorkflow {
                    file: source.name(),
                    ok: found.is_ok(),
                    findings: findings.to_vec(),
                    warnings,
                });
            }
            LintFormat::Sarif | LintFormat::Github => {
                let here = input::current_folder();
                all.extend(findings.iter().map(|finding| {
                    let file = input::placed(&source.path_of(&finding.file), &here);
                    LintFinding::from_finding(&file, finding)
                }));
            }
            LintFormat::Human => {
                output::write_stderr(&result_text(&source, &found));
                for warning in &warnings {
                    output::write_message("warning", warning);
                }
            }
        }
    }
    if let Some(note) = &note {
        output::write_message("note", note);
    }
    match format {
        LintFormat::Human => {}
        LintFormat::Json => {
            let left_out = left_out.iter().map(|file| file.to_string_lossy().into_owned());
            let left_out = left_out.collect();
            output::write_json(&WorkflowLint { ok: good, workflows: reports, left_out })?;
        }
        LintFormat::Sarif => output::write_json(&formats::sarif::lint(&all, note.as_deref()))?,
        LintFormat::Github => output::write_stdout(&formats::github::lint(&all, note.as_deref()))?,
    }
    Ok(good.into())
}

/// Warnings about files in folders of contracts that are no contracts.
pub(super) fn skipped_files(workflow: &Workflow) -> Vec<String> {
    let warning = |file: &String| format!("{} is skipped: it is no contract", escape_control(file));
    workflow.skipped.iter().map(warning).collect()
}

/// The configuration of the project around the current folder.
pub(super) fn project_config() -> Result<Config> {
    Ok(project::load_config(&project_folder()?)?)
}

/// The folder with the configuration of the project around the current folder, or that project.
fn project_folder() -> Result<PathBuf> {
    let repo = input::repository(None)?;
    Ok(project::config_folder(&repo).unwrap_or(repo))
}

/// The files of workflows.
const WORKFLOW: FileKind = FileKind {
    key: "workflow",
    others: &["start", "states", "agents"],
    gives_key: |text| gives_key(text, "workflow", false) || top_keys(text).contains(&"workflow"),
};

/// The workflows at the given paths. In a folder, a file without a `workflow` key at its top is not
/// one, and is returned with the others that are left out.
fn sources(paths: &[PathBuf]) -> Result<(Vec<Source>, Vec<PathBuf>)> {
    let mut sources = Vec::new();
    let mut left_out = Vec::new();
    for path in paths {
        match Source::find_in_packs(path) {
            Some(source) => sources.push(source),
            None => {
                let found = input::files_in(std::slice::from_ref(path), &WORKFLOW)?;
                for file in &found.files {
                    sources.push(Source::find(file)?);
                }
                left_out.extend(found.left_out);
            }
        }
    }
    Ok((sources, left_out))
}

fn result_text(source: &Source, found: &Result<Workflow, Rejected>) -> String {
    let name = source.display_name();
    match found {
        Ok(workflow) => {
            let count = |number: usize, noun: &str| {
                format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
            };
            let states = workflow.main.states.len()
                + workflow.machines.values().map(|machine| machine.states.len()).sum::<usize>();
            format!(
                "{name}: {} v{} is valid: {}, {}\n",
                workflow.name,
                workflow.version,
                count(states, "state"),
                count(workflow.agents.len(), "agent")
            )
        }
        Err(rejected) => {
            let number = rejected.findings.len();
            let code =
                rejected.findings.first().map(|finding| finding.code.as_str()).unwrap_or_default();
            format!(
                "{}{name}: {number} finding{}\nmore: counterfoil explain {code}\n",
                terminal::trust(&findings_text(source, rejected)),
                if number == 1 { "" } else { "s" },
            )
        }
    }
}

/// The findings about a workflow for people. The checker names its files relative to the folder of the
/// workflow, and people look for them from the current one.
fn findings_text(source: &Source, rejected: &Rejected) -> String {
    let named = |file: &str| match source {
        Source::Pack { .. } => file.to_owned(),
        Source::File(_) => display_path(&source.path_of(file)),
    };
    let mut findings = rejected.findings.clone();
    for finding in &mut findings {
        finding.file = named(&finding.file);
    }
    let files = rejected.files.iter().map(|(file, text)| (named(file), text.clone())).collect();
    render(&findings, &files, output::stderr_style())
}

/// Loads and checks a workflow. The findings of an invalid one are printed, and an error is
/// returned.
pub(crate) fn load(source: &Source, contracts: &[PathBuf]) -> Result<Workflow> {
    let registry = input::registry(contracts)?;
    match source.check(&registry)? {
        Ok(workflow) => Ok(workflow),
        Err(rejected) => {
            output::write_stderr(&terminal::trust(&findings_text(source, &rejected)));
            bail!("{} is not a valid workflow", source.display_name())
        }
    }
}
