//! `counterfoil check`

use crate::cli::{CheckArgs, Format};
use crate::exit::Exit;
use crate::{input, output};
use anyhow::{Context, Result, bail};
use counterfoil_contract::{Coerce, Contract, Framing, Policy, Report, diagnostic};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(args: &CheckArgs) -> Result<Exit> {
    if let Some(batch) = &args.batch {
        return super::batch::run(args, batch);
    }
    let contract = match (&args.contract, &args.schema) {
        (Some(id), None) => input::contract(id, &args.contracts)?,
        (None, Some(path)) => Arc::new(by_schema(args, path)?),
        _ => bail!(
            "name a contract with --contract ID or a schema with --schema FILE (`counterfoil contract list` shows all)"
        ),
    };
    let policy = args.limits(contract.policy());
    let (name, bytes) = input::read(&args.file, policy.max_bytes)?;
    let (report, text) = held_to(&contract, &policy, &bytes);
    report_as(args.format, &contract, &report, &name, &text)?;
    Ok(report.is_accepted().into())
}

/// The report on a text of which at most one byte more than the limit was read, and the text.
pub(super) fn held_to(contract: &Contract, policy: &Policy, bytes: &[u8]) -> (Report, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (contract.check_with(text, policy), text.to_owned()),
        // One byte too much may have cut a character in two: the limit is what is wrong then.
        Err(_) if bytes.len() > policy.max_bytes => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            (contract.check_with(&text, policy), text)
        }
        Err(_) => (contract.check_bytes(bytes), String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn by_schema(args: &CheckArgs, path: &Path) -> Result<Contract> {
    let (name, bytes) = input::read(path, 16 << 20)?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    let schema: Value = match serde_json::from_str(&text) {
        Ok(schema) => schema,
        Err(json) => serde_saphyr::from_str(&text)
            .with_context(|| format!("{name} is neither JSON ({json}) nor YAML"))?,
    };
    let policy = Policy {
        repair: args.repair.map(Into::into).unwrap_or_default(),
        coerce: if args.coerce { Coerce::All } else { Coerce::None },
        ..Policy::default()
    };
    let framing = args.framing.unwrap_or(Framing::AnyJson);
    Contract::from_schema(&schema, framing, policy)
        .with_context(|| format!("{name} cannot be used"))
}

pub(super) fn report_as(
    format: Format,
    contract: &Contract,
    report: &Report,
    name: &str,
    text: &str,
) -> Result<()> {
    match format {
        Format::Json => output::data(&(serde_json::to_string_pretty(report)? + "\n")),
        Format::Sarif => output::data(
            &(serde_json::to_string_pretty(&output::sarif::render(report, name))? + "\n"),
        ),
        Format::Junit => output::data(&output::junit::render(report, name)),
        Format::Github => output::data(&output::github::render(report, name)),
        Format::Human => {
            let mut words = diagnostic::render(report, name, text, output::style());
            for repair in report.provenance.repairs.iter().take(20) {
                let span = repair.span;
                words.push_str(&format!(
                    "  repaired {}:{}: {}\n",
                    span.line,
                    span.column,
                    repair.kind.name()
                ));
            }
            for coercion in report.provenance.coercions.iter().take(20) {
                words.push_str(&format!(
                    "  coerced {}: {} to {}\n",
                    coercion.pointer, coercion.from, coercion.to
                ));
            }
            if let Some(value) = &report.value {
                words.push_str(&format!("  {}\n", contract.show(value)));
            }
            output::words(&words);
            match &report.value {
                Some(value) => output::data(&(serde_json::to_string_pretty(value)? + "\n")),
                None => Ok(()),
            }
        }
    }
}
