//! Packs in words. Rendering only.

use super::quoted;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// What is shown of a pack.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) summary: String,
    /// The first is the one that is named as the pack.
    pub(crate) workflows: Vec<Sheet>,
    pub(crate) files: Vec<String>,
    /// Whether it has a demo.
    pub(crate) demo: bool,
}

/// What is shown of a workflow.
#[derive(Debug, Serialize)]
pub(crate) struct Sheet {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) states: Vec<States>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Input {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) summary: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) contract: String,
    pub(crate) read_only: bool,
}

/// The states of a machine, in the order of the file.
#[derive(Debug, Serialize)]
pub(crate) struct States {
    /// The sub-workflow; empty for the workflow itself.
    pub(crate) workflow: String,
    pub(crate) states: Vec<String>,
}

impl Page {
    /// Who works in any of its workflows.
    pub(crate) fn agents(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for agent in self.workflows.iter().flat_map(|sheet| &sheet.agents) {
            if !names.contains(&agent.name.as_str()) {
                names.push(&agent.name);
            }
        }
        names
    }
}

/// The list of packs.
pub(crate) fn list(pages: &[Page]) -> String {
    let mut text = String::new();
    for page in pages {
        let _ = writeln!(text, "{}: {}", page.name, page.summary);
        let workflows: Vec<&str> = page.workflows.iter().map(|sheet| sheet.name.as_str()).collect();
        let inputs = page.workflows.first().map(|sheet| &sheet.inputs[..]).unwrap_or_default();
        let inputs: Vec<String> = inputs.iter().map(brief).collect();
        for (what, words) in [
            ("workflows", workflows.join(", ")),
            ("agents", page.agents().join(", ")),
            ("inputs", inputs.join(", ")),
        ] {
            let _ = writeln!(text, "  {what:<9}  {words}");
        }
        text.push('\n');
    }
    text.push_str("more: counterfoil pack show PACK; see one at work: counterfoil demo PACK\n");
    text
}

fn brief(input: &Input) -> String {
    match &input.default {
        None => input.name.clone(),
        Some(Value::Null) => format!("{} (optional)", input.name),
        Some(default) => format!("{}={}", input.name, word(default)),
    }
}

/// A default as it would be given on the command line.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "optional".to_owned(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// The page of a pack.
pub(crate) fn page(page: &Page) -> String {
    let mut text = format!("{}: {}\n", page.name, page.summary);
    for sheet in &page.workflows {
        text.push('\n');
        if page.workflows.len() > 1 {
            let _ = writeln!(text, "workflow {}: {}", sheet.name, sheet.summary);
        }
        if !sheet.inputs.is_empty() {
            text.push_str("inputs\n");
        }
        let rows = sheet.inputs.iter().map(|input| {
            let default = input.default.as_ref().map_or("required".to_owned(), word);
            [input.name.clone(), input.ty.clone(), default, input.summary.clone()]
        });
        text += &columns(rows.collect());
        text.push_str("agents\n");
        let rows = sheet.agents.iter().map(|agent| {
            let access = if agent.read_only { "only reads" } else { "" };
            [agent.name.clone(), agent.contract.clone(), access.to_owned(), String::new()]
        });
        text += &columns(rows.collect());
        text.push_str("states\n");
        for machine in &sheet.states {
            let of = if machine.workflow.is_empty() {
                String::new()
            } else {
                format!("{}: ", machine.workflow)
            };
            let _ = writeln!(text, "  {of}{}", machine.states.join(", "));
        }
    }
    text.push_str("\nfiles\n");
    for file in &page.files {
        let _ = writeln!(text, "  {file}");
    }
    text.push_str("\nrun it\n");
    for sheet in &page.workflows {
        let _ = writeln!(text, "  {}", command(&sheet.name, sheet));
    }
    let _ = writeln!(text, "edit it\n  counterfoil pack eject {} DIR", page.name);
    if page.demo {
        let _ = writeln!(text, "see it at work\n  counterfoil demo {}", page.name);
    }
    text
}

/// The command that runs a workflow.
fn command(name: &str, sheet: &Sheet) -> String {
    let mut line = format!("counterfoil run {name}");
    for input in sheet.inputs.iter().filter(|input| input.required || input.name == "task") {
        line += &match (input.name.as_str(), input.required) {
            ("task", true) => " --task TEXT".to_owned(),
            ("task", false) => " [--task TEXT]".to_owned(),
            (name, _) => format!(" --input {name}=VALUE"),
        };
    }
    line + " --agent SPEC"
}

/// What was done, and what to do next.
pub(crate) fn ejected(pack: &str, files: usize, demo: bool, folder: &str) -> String {
    let main = quoted(&format!("{}/workflow.yaml", folder.trim_end_matches('/')));
    let mut text = format!("wrote the {files} files of {pack} to {folder}\n");
    // Every pack takes a task.
    let _ = writeln!(text, "run it:    counterfoil run {main} --task TEXT --agent SPEC");
    let _ = writeln!(text, "check it:  counterfoil workflow check {main}");
    if demo {
        let _ = writeln!(text, "its demo:  counterfoil demo {}", quoted(folder));
    }
    text
}

/// Rows with their cells below each other.
fn columns(rows: Vec<[String; 4]>) -> String {
    let mut widths = [0; 4];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}
