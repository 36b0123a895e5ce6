//! Packs: the list, the page of a pack, and the result of ejecting one.

use super::table::{self, Cell, Column, Row};
use super::text::shell_quote;
use crate::report::pack::{InputReport, PackReport, WorkflowReport};
use crate::report::project_checks::ReliedOn;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::pluralize;
use serde_json::Value;
use std::fmt::Write;

/// The list of packs.
pub(crate) fn list(packs: &[PackReport]) -> String {
    let mut text = String::new();
    for pack in packs {
        let _ = writeln!(text, "{}: {}", pack.name, pack.summary);
        let workflows: Vec<&str> =
            pack.workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        let inputs =
            pack.workflows.first().map(|workflow| &workflow.inputs[..]).unwrap_or_default();
        let inputs: Vec<String> = inputs.iter().map(input_summary).collect();
        for (name, values) in [
            ("workflows", workflows.join(", ")),
            ("agents", pack.agents().join(", ")),
            ("inputs", inputs.join(", ")),
        ] {
            let _ = writeln!(text, "  {name:<9}  {values}");
        }
        text.push('\n');
    }
    text.push_str("details: counterfoil pack show PACK\ndemo:    counterfoil demo PACK\n");
    text
}

/// The name of an input and its default.
fn input_summary(input: &InputReport) -> String {
    match &input.default {
        None => input.name.clone(),
        Some(Value::Null) => format!("{} (optional)", input.name),
        Some(default) => format!("{}={}", input.name, default_value(default)),
    }
}

/// A default as it would be given on the command line.
fn default_value(value: &Value) -> String {
    match value {
        Value::Null => "optional".to_owned(),
        Value::String(text) => shell_quote(text),
        other => other.to_string(),
    }
}

/// The page of a pack.
pub(crate) fn page(pack: &PackReport) -> String {
    let mut text = format!("{}: {}\n", pack.name, pack.summary);
    for workflow in &pack.workflows {
        text.push('\n');
        if pack.workflows.len() > 1 {
            let _ = writeln!(text, "workflow {}: {}", workflow.name, workflow.summary);
        }
        if !workflow.inputs.is_empty() {
            text.push_str("inputs\n");
        }
        let rows = workflow.inputs.iter().map(|input| {
            let default = input.default.as_ref().map_or("required".to_owned(), default_value);
            [input.name.clone(), input.ty.clone(), default, input.summary.clone()]
        });
        text += &columns(rows.collect());
        text.push_str("agents\n");
        let rows = workflow.agents.iter().map(|agent| {
            let access = if agent.read_only { "reads files" } else { "reads and edits files" };
            [agent.name.clone(), agent.contract.clone(), access.to_owned(), String::new()]
        });
        text += &columns(rows.collect());
        text.push_str("  with claude, codex or gemini, all of them can run the project's checks by the tool run_check\n");
        text += &checks(&workflow.checks);
        text.push_str("states\n");
        for machine in &workflow.states {
            let prefix = if machine.workflow.is_empty() {
                String::new()
            } else {
                format!("{}: ", machine.workflow)
            };
            let _ = writeln!(text, "  {prefix}{}", machine.states.join(", "));
        }
    }
    text.push_str("\nfiles\n");
    for file in &pack.files {
        let _ = writeln!(text, "  {file}");
    }
    text.push_str("\nrun\n");
    for workflow in &pack.workflows {
        let _ = writeln!(text, "  {}", run_command(&workflow.name, workflow));
    }
    let _ = writeln!(text, "edit\n  counterfoil pack eject {} DIR", pack.name);
    if pack.demo {
        let _ = writeln!(text, "demo\n  counterfoil demo {}", pack.name);
    }
    text
}

/// The checks of the project that a workflow relies on, and whether the project has them.
fn checks(checks: &[ReliedOn]) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let rows = checks.iter().map(|check| {
        let configured = match check.configured {
            Some(true) => "configured",
            Some(false) => "not configured",
            None => "",
        };
        let mut used = Vec::new();
        if !check.states.is_empty() {
            used.push(format!("run after {}", check.states.join(", ")));
        }
        if !check.claims.is_empty() {
            let policy = if check.required { " (required)" } else { "" };
            used.push(format!("verifies {}{policy}", check.claims.join(", ")));
        }
        [check.name.clone(), configured.to_owned(), used.join("; "), String::new()]
    });
    format!("checks of the project, in [checks] of counterfoil.toml\n{}", columns(rows.collect()))
}

/// The command that runs a workflow.
fn run_command(name: &str, workflow: &WorkflowReport) -> String {
    let mut line = format!("counterfoil run {name}");
    for input in workflow.inputs.iter().filter(|input| input.required || input.name == "task") {
        line += &match (input.name.as_str(), input.required) {
            ("task", true) => " --task TEXT".to_owned(),
            ("task", false) => " [--task TEXT]".to_owned(),
            (name, _) => format!(" --input {name}=VALUE"),
        };
    }
    line + " --agent SPEC"
}

/// How many files were written, and which commands use them.
pub(crate) fn ejected(pack: &str, files: usize, demo: bool, folder: &str) -> String {
    let main = shell_quote(&format!("{}/workflow.yaml", folder.trim_end_matches('/')));
    let files = pluralize(files, "file");
    let mut text = format!("wrote {files} of {pack} to {folder}\n");
    // Every pack takes a task.
    let _ = writeln!(text, "run:    counterfoil run {main} --task TEXT --agent SPEC");
    let _ = writeln!(text, "check:  counterfoil workflow check {main}");
    if demo {
        let _ = writeln!(text, "demo:   counterfoil demo {}", shell_quote(folder));
    }
    text
}

/// Aligned columns without titles. Lines are not wrapped.
fn columns(rows: Vec<[String; 4]>) -> String {
    let unlimited = Style { color: false, unicode: true, width: usize::MAX };
    let rows: Vec<Row> = rows.into_iter().map(|row| Row(row.map(Cell::from).into())).collect();
    table::render(&[""; 4].map(Column::fixed), &rows, 2, unlimited)
}
