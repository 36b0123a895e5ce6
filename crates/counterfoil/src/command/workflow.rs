//! The command `counterfoil workflow`.

use crate::cli::{GraphFormat, ListFormat, WorkflowCommand};
use crate::exit::Exit;
use crate::source::Source;
use crate::{input, output, terminal};
use anyhow::{Result, bail};
use counterfoil_flow::{Finding, Rejected, Workflow, graph, render};
use serde_json::json;
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

fn check(files: &[PathBuf], contracts: &[PathBuf], format: ListFormat) -> Result<Exit> {
    let registry = input::registry(contracts)?;
    let mut good = true;
    let mut reports = Vec::new();
    for file in files {
        let source = Source::find(file)?;
        let found = source.check(&registry)?;
        good &= found.is_ok();
        match format {
            ListFormat::Json => {
                let findings: &[Finding] =
                    found.as_ref().err().map_or(&[], |rejected| &rejected.findings);
                reports.push(
                    json!({"file": source.display_name(), "ok": found.is_ok(), "findings": findings}),
                );
            }
            ListFormat::Human => output::write_stderr(&result_text(&source.display_name(), &found)),
        }
    }
    if format == ListFormat::Json {
        output::write_json(&json!({"ok": good, "workflows": reports}))?;
    }
    Ok(good.into())
}

fn result_text(name: &str, found: &Result<Workflow, Rejected>) -> String {
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
                terminal::trust(&render(
                    &rejected.findings,
                    &rejected.files,
                    output::stderr_style()
                )),
                if number == 1 { "" } else { "s" },
            )
        }
    }
}

/// Loads and checks a workflow. The findings of an invalid one are printed, and an error is
/// returned.
pub(crate) fn load(source: &Source, contracts: &[PathBuf]) -> Result<Workflow> {
    let registry = input::registry(contracts)?;
    match source.check(&registry)? {
        Ok(workflow) => Ok(workflow),
        Err(rejected) => {
            let findings = render(&rejected.findings, &rejected.files, output::stderr_style());
            output::write_stderr(&terminal::trust(&findings));
            bail!("{} is not a valid workflow", source.display_name())
        }
    }
}
