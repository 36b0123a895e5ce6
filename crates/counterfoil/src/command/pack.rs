//! `counterfoil pack`

use crate::cli::{ListFormat, PackCommand};
use crate::exit::Exit;
use crate::source::{self, Source};
use crate::tell::packs::{self, Agent, Input, Page, Sheet, States};
use crate::{lay, output};
use anyhow::{Context, Result};
use counterfoil_flow::{Access, Machine, Workflow};
use counterfoil_packs::Pack;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(command: &PackCommand) -> Result<Exit> {
    match command {
        PackCommand::List { format } => list(*format),
        PackCommand::Show { pack, format } => show(source::pack(pack)?, *format),
        PackCommand::Eject { pack, folder, force } => eject(source::pack(pack)?, folder, *force),
    }
}

fn list(format: ListFormat) -> Result<Exit> {
    let pages: Vec<Page> = counterfoil_packs::packs().iter().map(page).collect::<Result<_>>()?;
    output::data(&match format {
        ListFormat::Human => packs::list(&pages),
        ListFormat::Json => {
            let rows: Vec<Value> = pages.iter().map(row).collect();
            serde_json::to_string_pretty(&rows)? + "\n"
        }
    })?;
    Ok(Exit::Good)
}

/// A pack in a list, as programs read it.
fn row(page: &Page) -> Value {
    let workflows: Vec<&str> = page.workflows.iter().map(|sheet| sheet.name.as_str()).collect();
    let inputs = page.workflows.first().map(|sheet| &sheet.inputs);
    json!({
        "name": page.name, "summary": page.summary, "workflows": workflows, "agents": page.agents(), "inputs": inputs,
    })
}

fn show(pack: &'static Pack, format: ListFormat) -> Result<Exit> {
    let page = page(pack)?;
    output::data(&match format {
        ListFormat::Human => packs::page(&page),
        ListFormat::Json => serde_json::to_string_pretty(&page)? + "\n",
    })?;
    Ok(Exit::Good)
}

/// Everything that is shown of a pack.
fn page(pack: &'static Pack) -> Result<Page> {
    let mut workflows = Vec::new();
    for source in Source::all_of(pack) {
        let workflow = super::workflow::load(&source, &[])?;
        workflows.push(sheet(&source, &workflow));
    }
    let files: Vec<String> = pack.files().iter().map(|(path, _)| (*path).to_owned()).collect();
    let demo = pack.file(super::demo::FILE).is_some();
    Ok(Page { name: pack.name().to_owned(), summary: pack.summary(), workflows, files, demo })
}

fn sheet(source: &Source, workflow: &Workflow) -> Sheet {
    // The task is what somebody looks for first.
    let (task, others): (Vec<_>, Vec<_>) =
        workflow.main.inputs.iter().partition(|(name, _)| *name == "task");
    let inputs = task.into_iter().chain(others).map(|(name, input)| Input {
        name: name.clone(),
        ty: input.ty.to_string(),
        required: input.default.is_none(),
        default: input.default.clone(),
        summary: input.summary.clone(),
    });
    let agents = workflow.agents.iter().map(|(name, role)| Agent {
        name: name.clone(),
        contract: role.contract.reference().to_owned(),
        read_only: role.access == Access::ReadOnly,
    });
    let machines = std::iter::once(&workflow.main).chain(workflow.machines.values());
    Sheet {
        name: source.shown(),
        summary: workflow.summary.clone(),
        inputs: inputs.collect(),
        agents: agents.collect(),
        states: machines.map(states).collect(),
    }
}

fn states(machine: &Machine) -> States {
    States { workflow: machine.name.clone(), states: machine.order.clone() }
}

fn eject(pack: &'static Pack, folder: &Path, force: bool) -> Result<Exit> {
    if force {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    } else {
        lay::empty_folder(folder, "choose another, or write over what is there with --force")?;
    }
    let files = pack.files();
    lay::out(folder, &files)?;
    let demo = pack.file(super::demo::FILE).is_some();
    output::words(&packs::ejected(pack.name(), files.len(), demo, &folder.display().to_string()));
    Ok(Exit::Good)
}
