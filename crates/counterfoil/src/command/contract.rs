//! The command `counterfoil contract`.

use crate::cli::{ContractCommand, LintFormat, ListFormat, ShowFormat};
use crate::exit::Exit;
use crate::report::contract::ContractListItem;
use crate::report::lint::{ContractLint, LintFinding, LintedContract};
use crate::{input, output, render};
use anyhow::{Result, anyhow};
use counterfoil_contract::compat::{self, Comparison, Direction};
use counterfoil_contract::load::is_contract_text;
use counterfoil_contract::render::{markdown, vendor};
use counterfoil_contract::text::{display_path, is_unsafe};
use counterfoil_contract::{Contract, LoadError, Registry};
use std::fmt::Write;
use std::path::PathBuf;

pub(crate) fn run(command: &ContractCommand) -> Result<Exit> {
    match command {
        ContractCommand::List { sources, format } => {
            list(&input::registry(&sources.contracts)?, *format)
        }
        ContractCommand::Show { id, sources, format } => {
            show(&*input::contract(id, &sources.contracts)?, *format)
        }
        ContractCommand::Schema { id, sources, target } => {
            let contract = input::contract(id, &sources.contracts)?;
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
            output::write_stdout(&input::contract(id, &sources.contracts)?.prompt())?;
            Ok(Exit::Success)
        }
        ContractCommand::Repair { id, file, sources, attempt } => {
            let contract = input::contract(id, &sources.contracts)?;
            let (_, _, report) = super::check::checker(&contract, attempt)?(file)?;
            output::write_stdout(&contract.repair(&report))?;
            Ok(Exit::Success)
        }
        ContractCommand::Diff { old, new, sources, format } => {
            let old = input::contract(old, &sources.contracts)?;
            let new = input::contract(new, &sources.contracts)?;
            diff(&compat::compare(&old, &new), *format)
        }
        ContractCommand::Lint { paths, format } => lint(paths, *format),
    }
}

fn list(registry: &Registry, format: ListFormat) -> Result<Exit> {
    let entries: Vec<_> =
        registry.iter().map(counterfoil_contract::registry::Entry::definition).collect();
    if format == ListFormat::Json {
        let rows: Vec<ContractListItem<'_>> =
            entries.iter().map(|entry| ContractListItem::from(*entry)).collect();
        output::write_json(&rows)?;
        return Ok(Exit::Success);
    }
    let id_width = entries.iter().map(|entry| entry.contract.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in entries {
        let note = if entry.deprecated.is_some() { " (deprecated)" } else { "" };
        let _ = writeln!(
            text,
            "{:id_width$}  v{:<2} {:<12}  {:<22} {}{note}",
            entry.contract,
            entry.version,
            entry.framing.name(),
            entry.agent.as_deref().unwrap_or("-"),
            entry.summary
        );
    }
    output::write_stdout(&text)?;
    Ok(Exit::Success)
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
        let _ = writeln!(text, "{}: {}", breaking.code, breaking.message);
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
            let _ = writeln!(text, "  because: {because}");
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
    output::write_stdout(&format!("{text}{verdict}\n"))?;
    Ok(comparison.is_additive().into())
}

/// A contract file that was loaded.
struct Linted {
    file: String,
    result: Result<Contract, LoadError>,
}

impl Linted {
    fn report(self) -> LintedContract {
        let (contract, problems) = match self.result {
            Ok(contract) => (Some(contract.reference().to_owned()), Vec::new()),
            Err(error) => (None, error.problems),
        };
        LintedContract { file: self.file, ok: contract.is_some(), contract, problems }
    }
}

fn lint(paths: &[PathBuf], format: LintFormat) -> Result<Exit> {
    let mut registry = Registry::new();
    let mut linted = Vec::new();
    for file in contract_files(paths)? {
        let result = Contract::from_file(&file).and_then(|contract| {
            // Two files of one id and version cannot be loaded together.
            registry.add(contract.definition().clone())?;
            Ok(contract)
        });
        linted.push(Linted { file: display_path(&file), result });
    }
    let good = linted.iter().all(|linted| linted.result.is_ok());
    let findings = || -> Vec<LintFinding> {
        let failed = linted.iter().filter_map(|linted| {
            let error = linted.result.as_ref().err()?;
            Some((linted, error))
        });
        let all = failed.flat_map(|(linted, error)| {
            error.problems.iter().map(|problem| LintFinding::from_problem(&linted.file, problem))
        });
        all.collect()
    };
    match format {
        LintFormat::Human => {
            for Linted { file, result } in &linted {
                output::write_stderr(&match result {
                    Ok(contract) => format!("{file}: {} is valid\n", contract.reference()),
                    Err(error) => {
                        format!("{}\n", LoadError { name: file.clone(), ..error.clone() })
                    }
                });
            }
        }
        LintFormat::Json => {
            let contracts = linted.into_iter().map(Linted::report).collect();
            output::write_json(&ContractLint { ok: good, contracts })?;
        }
        LintFormat::Sarif => output::write_json(&render::sarif::lint(&findings()))?,
        LintFormat::Github => output::write_stdout(&render::github::lint(&findings()))?,
    }
    Ok(good.into())
}

/// The contract files at the given paths. In a folder, a file without a `contract` key is not one.
fn contract_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    input::files_in(paths, "contract", is_contract_text)
}
