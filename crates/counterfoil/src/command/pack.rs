//! The command `counterfoil pack`.

use crate::cli::{ListFormat, PackCommand};
use crate::exit::Exit;
use crate::render;
use crate::report::pack::{
    AgentReport, InputReport, MachineStates, PackListItem, PackReport, WorkflowReport,
};
use crate::report::project_checks;
use crate::source::{self, Source};
use crate::{output, unpack};
use anyhow::{Context, Result};
use counterfoil_contract::text::display_path;
use counterfoil_flow::{Access, Machine, Workflow};
use counterfoil_packs::Pack;
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn run(command: &PackCommand) -> Result<Exit> {
    match command {
        PackCommand::List { format } => list(*format),
        PackCommand::Show { pack, format } => show(source::pack(pack)?, *format),
        PackCommand::Eject { pack, folder, force } => eject(source::pack(pack)?, folder, *force),
    }
}

fn list(format: ListFormat) -> Result<Exit> {
    let pages: Vec<PackReport> =
        counterfoil_packs::packs().iter().map(page).collect::<Result<_>>()?;
    match format {
        ListFormat::Human => output::write_page(&render::pack::list(&pages)),
        ListFormat::Json => {
            output::write_json(&pages.iter().map(PackListItem::from).collect::<Vec<_>>())
        }
    }?;
    Ok(Exit::Success)
}

fn show(pack: &'static Pack, format: ListFormat) -> Result<Exit> {
    let mut page = page(pack)?;
    // The page is shown also where the configuration of the project cannot be read.
    let config = super::workflow::project_config().ok();
    let checks: Option<BTreeSet<&str>> =
        config.as_ref().map(|config| config.verify.checks.keys().map(String::as_str).collect());
    for (report, source) in page.workflows.iter_mut().zip(Source::all_in_pack(pack)) {
        let workflow = super::workflow::load(&source, &[])?;
        report.checks = project_checks::relied_on(&workflow, checks.as_ref());
    }
    match format {
        ListFormat::Human => output::write_page(&render::pack::page(&page)),
        ListFormat::Json => output::write_json(&page),
    }?;
    Ok(Exit::Success)
}

/// The description of a pack.
fn page(pack: &'static Pack) -> Result<PackReport> {
    let mut workflows = Vec::new();
    for source in Source::all_in_pack(pack) {
        let workflow = super::workflow::load(&source, &[])?;
        workflows.push(sheet(&source, &workflow));
    }
    let files: Vec<String> = pack.files().iter().map(|(path, _)| (*path).to_owned()).collect();
    let demo = pack.file(super::demo::FILE).is_some();
    Ok(PackReport { name: pack.name().to_owned(), summary: pack.summary(), workflows, files, demo })
}

fn sheet(source: &Source, workflow: &Workflow) -> WorkflowReport {
    // `task` comes first: it is the main input.
    let (task, others): (Vec<_>, Vec<_>) =
        workflow.main.inputs.iter().partition(|(name, _)| *name == "task");
    let inputs = task.into_iter().chain(others).map(|(name, input)| InputReport {
        name: name.clone(),
        ty: input.ty.to_string(),
        required: input.default.is_none(),
        default: input.default.clone(),
        summary: input.summary.clone(),
    });
    let agents = workflow.agents.iter().map(|(name, role)| AgentReport {
        name: name.clone(),
        contract: role.contract.reference().to_owned(),
        read_only: role.access == Access::ReadOnly,
    });
    let machines = std::iter::once(&workflow.main).chain(workflow.machines.values());
    WorkflowReport {
        name: source.display_name(),
        summary: workflow.summary.clone(),
        inputs: inputs.collect(),
        agents: agents.collect(),
        states: machines.map(states).collect(),
        checks: Vec::new(),
    }
}

fn states(machine: &Machine) -> MachineStates {
    MachineStates { workflow: machine.name.clone(), states: machine.order.clone() }
}

fn eject(pack: &'static Pack, folder: &Path, force: bool) -> Result<Exit> {
    if force {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", display_path(folder)))?;
    } else {
        unpack::create_empty_folder(folder, "choose another, or overwrite with --force")?;
    }
    let files = pack.files();
    unpack::write_files(folder, &files)?;
    let demo = pack.file(super::demo::FILE).is_some();
    output::write_stderr(&render::pack::ejected(
        pack.name(),
        files.len(),
        demo,
        &display_path(folder),
    ));
    Ok(Exit::Success)
}
