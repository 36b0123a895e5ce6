//! The command `counterfoil contract`.

use crate::cli::{ContractCommand, LintFormat, ListFormat, ShowFormat};
use crate::exit::Exit;
use crate::input::{ContractFile, FileKind, FoundFiles};
use crate::report::contract::ContractListItem;
use crate::report::lint::{ContractLint, LintFinding, LintedContract};
use crate::{input, output, project, render};
use anyhow::{Result, anyhow, bail};
use counterfoil_contract::compat::{self, Comparison, Direction};
use counterfoil_contract::load::{CONTRACT_KEYS, is_contract_text};
use counterfoil_contract::render::{markdown, vendor};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{display_path, escape_control, is_unsafe};
use counterfoil_contract::{Contract, Definition, LoadError, Problem, Registry};
use counterfoil_flow::YamlPlaces;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The files of contracts.
const CONTRACT: FileKind =
    FileKind { key: "contract", others: &CONTRACT_KEYS, gives_key: is_contract_text };

pub(crate) fn run(command: &ContractCommand) -> Result<Exit> {
    match command {
        ContractCommand::List { sources, format } => list(&sources.contracts, *format),
        ContractCommand::Show { id, sources, format } => {
            show(&*project::contract_here(id, &sources.contracts)?, *format)
        }
        ContractCommand::Schema { id, sources, target } => {
            let contract = project::contract_here(id, &sources.contracts)?;
            let lowered = vendor::schema(&contract, *target);
            let mut warnings = String::new();
            for loss in &lowered.losses {
                let _ = writeln!(
                    warnings,
                    "{}: {}: {}",
                    target.name(),
                    if loss.pointer.is_empty() { "/" } else { &loss.pointer },
                    loss.what
                );
            }
            output::write_stderr(&warnings);
            output::write_json(&lowered.schema)?;
            Ok(Exit::Success)
        }
        ContractCommand::Prompt { id, sources } => {
            output::write_stdout(&project::contract_here(id, &sources.contracts)?.prompt())?;
            Ok(Exit::Success)
        }
        ContractCommand::Repair { id, file, sources, attempt } => {
            let contract = project::contract_here(id, &sources.contracts)?;
            let (_, _, report) = super::check::checker(&contract, attempt)?(file)?;
            output::write_stdout(&contract.repair(&report))?;
            Ok(Exit::Success)
        }
        ContractCommand::Diff { old, new, sources, format } => {
            let old = project::contract_here(old, &sources.contracts)?;
            let new = project::contract_here(new, &sources.contracts)?;
            diff(&compat::compare(&old, &new), *format)
        }
        ContractCommand::Lint { paths, format } => lint(paths, *format),
    }
}

fn list(folders: &[PathBuf], format: ListFormat) -> Result<Exit> {
    let registry = input::registry(folders)?;
    let own = own_contracts(folders, registry.clone());
    let mut rows: Vec<ContractListItem<'_>> =
        registry.iter().map(|entry| ContractListItem::from(entry.definition())).collect();
    rows.extend(own.iter().map(|(path, definition)| ContractListItem {
        path: Some(path.as_str()),
        ..ContractListItem::from(definition)
    }));
    if format == ListFormat::Json {
        output::write_json(&rows)?;
        return Ok(Exit::Success);
    }
    output::write_stdout(&render::contract_list(&rows, output::stdout_line_style()))?;
    Ok(Exit::Success)
}

/// The newest version of each of the project's own contracts that are in none of the folders, with
/// its file. What is wrong with a file is a warning, so that the others are listed.
fn own_contracts(folders: &[PathBuf], mut known: Registry) -> Vec<(String, Definition)> {
    let warn = |why: &str| output::write_message("warning", why);
    let files = project::own_contracts(folders, project::current_config_folder().as_deref());
    let files = files.unwrap_or_else(|error| {
        warn(&format!("{error:#}"));
        Vec::new()
    });
    let mut newest: BTreeMap<String, (String, Definition)> = BTreeMap::new();
    for ContractFile { path, definition } in files {
        let file = display_path(&path);
        let usable = definition.and_then(|definition| {
            let added = Contract::compile(definition).and_then(|contract| {
                let definition = contract.definition().clone();
                known.add(definition.clone())?;
                Ok(definition)
            });
            added.map_err(|error| LoadError { name: file.clone(), ..error }.to_string())
        });
        match usable {
            Ok(definition) => {
                let is_newer = newest
                    .get(&definition.contract)
                    .is_none_or(|(_, other)| other.version < definition.version);
                if is_newer {
                    newest.insert(definition.contract.clone(), (file, definition));
                }
            }
            Err(why) => warn(&why),
        }
    }
    newest.into_values().collect()
}

fn show(contract: &Contract, format: ShowFormat) -> Result<Exit> {
    match format {
        ShowFormat::Yaml => {
            let text = contract
                .definition()
                .to_yaml()
                .map_err(|error| anyhow!("cannot convert the contract to YAML: {error}"))?;
            // Only quoted strings of YAML have escapes. JSON is YAML in which all strings are quoted.
            if text.contains(is_unsafe) {
                output::write_json(contract.definition())?;
            } else {
                output::write_stdout(&text)?;
            }
        }
        ShowFormat::Json => output::write_json(contract.definition())?,
        ShowFormat::Markdown => output::write_stdout(&markdown::page(contract))?,
    }
    Ok(Exit::Success)
}

fn diff(comparison: &Comparison, format: ListFormat) -> Result<Exit> {
    if format == ListFormat::Json {
        output::write_json(comparison)?;
        return Ok(comparison.is_additive().into());
    }
    let mut text = String::new();
    for breaking in &comparison.breaks {
        let _ = writeln!(text, "{}: {}", breaking.code, escape_control(&breaking.message));
        let sides = match breaking.direction {
            Direction::OldWriterNewReader => {
                format!("accepted by {}, rejected by {}", comparison.old, comparison.new)
            }
            Direction::NewWriterOldReader => {
                format!("accepted by {}, rejected by {}", comparison.new, comparison.old)
            }
        };
        if let Some(counterexample) = &breaking.counterexample {
            let shown =
                counterexample.as_str().map_or_else(|| counterexample.to_string(), str::to_owned);
            let _ = writeln!(text, "  {sides}:\n    {}", shown.trim_end().replace('\n', "\n    "));
        }
        if let Some(because) = &breaking.because {
            let _ = writeln!(text, "  because: {}", escape_control(because.trim_end()));
        }
    }
    let verdict = if comparison.is_additive() {
        format!("additive: {} is compatible with {}", comparison.new, comparison.old)
    } else {
        format!(
            "breaking: {} is not compatible with {}; a breaking change needs a new id",
            comparison.new, comparison.old
        )
    };
    output::write_quoting(&format!("{text}{verdict}\n"))?;
    Ok(comparison.is_additive().into())
}

/// The most problems of a file whose places are found in it: each search reads it from its beginning.
const MAX_PLACED: usize = 500;

/// The largest file in which places are found. The loader reads no larger one.
const MAX_PLACED_BYTES: usize = 4 << 20;

/// A contract file that was loaded.
struct Linted {
    file: PathBuf,
    result: Result<Contract, LoadError>,
    /// What is probably a mistake in a contract that is valid.
    warnings: Vec<Problem>,
}

impl Linted {
    /// The problems and the warnings.
    fn problems(&self) -> impl Iterator<Item = &Problem> {
        let problems = self.result.as_ref().err().map_or(&[][..], |error| &error.problems);
        problems.iter().chain(&self.warnings)
    }

    /// The text of the file, if places have to be found in it. A problem with a place says that it could
    /// be read before.
    fn text(&self) -> Option<String> {
        let is_needed = self.problems().any(|one| one.line.is_none() && !one.place.is_empty());
        let (_, bytes) =
            is_needed.then(|| input::read(&self.file, MAX_PLACED_BYTES).ok()).flatten()?;
        String::from_utf8(bytes).ok()
    }

    fn report(self) -> LintedContract {
        let (contract, problems) = match self.result {
            Ok(contract) => (Some(contract.reference().to_owned()), Vec::new()),
            Err(error) => (None, error.problems),
        };
        let file = self.file.to_string_lossy().into_owned();
        let (ok, warnings) = (contract.is_some(), self.warnings);
        LintedContract { file, ok, contract, problems, warnings }
    }
}

fn lint(paths: &[PathBuf], format: LintFormat) -> Result<Exit> {
    let mut registry = Registry::new();
    let mut linted = Vec::new();
    let found = contract_files(paths)?;
    let note = input::left_out_note(&found.left_out, CONTRACT.key);
    for file in found.files {
        let result = Contract::from_file(&file).and_then(|contract| {
            // Two files of one id and version cannot be loaded together.
            registry.add(contract.definition().clone())?;
            Ok(contract)
        });
        let warnings = result.as_ref().map(Contract::lint).unwrap_or_default();
        linted.push(Linted { file, result, warnings });
    }
    if let Some(note) = &note {
        output::write_message("note", note);
    }
    let good = linted.iter().all(|linted| linted.result.is_ok());
    let findings = || -> Vec<LintFinding> {
        let here = input::current_folder();
        let all = linted.iter().flat_map(|linted| {
            let file = input::placed(&linted.file, &here);
            let text = linted.text();
            let places = text.as_deref().and_then(YamlPlaces::new);
            let finding = |(at, problem): (usize, &Problem)| {
                let places = places.as_ref().filter(|_| at < MAX_PLACED);
                let found = places.and_then(|places| places.find(&problem.place));
                LintFinding::from_problem(&file, problem, found)
            };
            linted.problems().enumerate().map(finding).collect::<Vec<_>>()
        });
        all.collect()
    };
    match format {
        LintFormat::Human => {
            for Linted { file, result, warnings } in &linted {
                let file = display_path(file);
                output::write_stderr(&match result {
                    Ok(contract) => format!("{file}: {} is valid\n", contract.reference()),
                    Err(error) => {
                        format!("{}\n", LoadError { name: file.clone(), ..error.clone() })
                    }
                });
                for warning in warnings {
                    output::write_message("warning", &format!("{file}: {warning}"));
                }
            }
        }
        LintFormat::Json => {
            let contracts = linted.into_iter().map(Linted::report).collect();
            let left_out = found.left_out.iter().map(|file| file.to_string_lossy().into_owned());
            let left_out = left_out.collect();
            output::write_json(&ContractLint { ok: good, contracts, left_out })?;
        }
        LintFormat::Sarif => {
            output::write_json(&render::sarif::lint(&findings(), note.as_deref()))?;
        }
        LintFormat::Github => {
            output::write_stdout(&render::github::lint(&findings(), note.as_deref()))?;
        }
    }
    Ok(good.into())
}

/// The contract files at the given paths. In a folder, a file without a `contract` key is not one.
/// What is no path is the id of a contract of the project.
fn contract_files(paths: &[PathBuf]) -> Result<FoundFiles> {
    let mut found = Vec::new();
    for path in paths {
        let is_path = path.exists() || input::is_contract_file(path);
        match path.to_str().filter(|_| !is_path) {
            Some(id) => found.extend(files_of(id)?),
            None => found.push(path.clone()),
        }
    }
    input::files_in(&found, &CONTRACT)
}

/// The files of the project that define the contract `id` or `id@version`. Those that cannot be
/// loaded are found by the id alone.
fn files_of(id: &str) -> Result<Vec<PathBuf>> {
    let own = project::own_contracts(&[], project::current_config_folder().as_deref())?;
    let is_version =
        |definition: &Definition| id == format!("{}@{}", definition.contract, definition.version);
    let is_meant = |file: &&ContractFile| {
        file.id().as_deref() == Some(id) || file.definition.as_ref().is_ok_and(is_version)
    };
    let files: Vec<PathBuf> = own.iter().filter(is_meant).map(|file| file.path.clone()).collect();
    if !files.is_empty() {
        return Ok(files);
    }
    let shown = display_path(Path::new(id));
    if counterfoil_packs::registry_for(id).get(id).is_ok() {
        bail!("{shown} is a built-in contract, which is valid and has no file");
    }
    let ids: Vec<String> = own.iter().filter_map(ContractFile::id).collect();
    let hint = match did_you_mean(id, ids.iter().map(String::as_str)) {
        Some(hint) => format!("; {}", escape_control(&hint)),
        None if ids.is_empty() => String::new(),
        None => ", and no contract of the project has this id".to_owned(),
    };
    bail!("there is no file or folder {shown}{hint}")
}
