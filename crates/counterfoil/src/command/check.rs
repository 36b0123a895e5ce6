//! The command `counterfoil check`.

use crate::cli::{AttemptArgs, CheckArgs, Format};
use crate::exit::Exit;
use crate::report::check::CheckReport;
use crate::{input, output, project, render, terminal, unique_keys};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::load::yaml_error;
use counterfoil_contract::policy::Coerce;
use counterfoil_contract::shown::Shown;
use counterfoil_contract::text::{display_path, escape_control};
use counterfoil_contract::{Contract, Framing, Policy, Report, diagnostic};
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The size limit of a schema file.
const MAX_SCHEMA_BYTES: usize = 16 << 20;
/// The size limit of a prompt.
const MAX_PROMPT_BYTES: usize = 16 << 20;
/// The most repairs and coercions that are printed.
const MAX_LISTED: usize = 20;

pub(crate) fn run(args: &CheckArgs) -> Result<Exit> {
    if !args.batch.is_empty() {
        return super::batch::run(args, &args.batch);
    }
    let Some(contract) = named_contract(args)? else {
        bail!(
            "name a contract with --contract ID (list them with `counterfoil contract list`) or a schema with --schema FILE"
        )
    };
    let check = checker(&contract, &args.attempt)?;
    let files: Vec<&Path> = match args.files.as_slice() {
        [] => vec![Path::new("-")],
        files => files.iter().map(PathBuf::as_path).collect(),
    };
    let mut all_accepted = true;
    let mut reports = Vec::new();
    for file in &files {
        let (name, text, report) = check(file)?;
        all_accepted &= report.is_accepted();
        match args.format {
            Format::Json | Format::Sarif | Format::Junit if files.len() > 1 => {
                reports.push((input::named(file), report));
            }
            format => {
                if format == Format::Human && files.len() > 1 {
                    output::write_stderr(&format!("{name}:\n"));
                }
                let here = input::current_folder();
                print_report(format, &contract, &report, file, &text, &here)?;
            }
        }
    }
    if !reports.is_empty() {
        print_reports(args.format, &reports)?;
    }
    Ok(all_accepted.into())
}

/// Checks texts against a contract, with what is known of the attempt. It returns the name of the
/// file, the text and the report.
pub(super) fn checker<'c>(
    contract: &'c Contract,
    attempt: &AttemptArgs,
) -> Result<impl Fn(&Path) -> Result<(String, String, Report)> + use<'c>> {
    let policy = attempt.apply_limits(contract.policy());
    let shown = attempt.prompt.as_ref().map(|prompt| shown(contract, prompt)).transpose()?;
    Ok(move |file: &Path| {
        let (name, bytes) = input::read(file, policy.max_bytes)?;
        let (report, text) = match &shown {
            None => check_bytes(contract, &policy, &bytes),
            Some(shown) => {
                let report = contract.check_bytes_shown(&bytes, &policy, shown);
                (report, String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        Ok((name, text, report))
    })
}

/// The contract that the arguments name, by its id or by a schema.
pub(super) fn named_contract(args: &CheckArgs) -> Result<Option<Arc<Contract>>> {
    match (&args.contract, &args.schema) {
        (Some(id), _) => project::contract_here(id, &args.contracts).map(Some),
        (None, Some(path)) => Ok(Some(Arc::new(by_schema(args, path)?))),
        (None, None) => Ok(None),
    }
}

/// What an agent was shown that was given a prompt for a contract.
fn shown(contract: &Contract, prompt: &Path) -> Result<Shown> {
    let (name, bytes) = input::read(prompt, MAX_PROMPT_BYTES)?;
    let prompt = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    Ok(Shown::with_prompts(contract, &[&prompt]))
}

/// Checks a text, of which at most one byte more than the limit was read. Returns the report and
/// the text.
pub(super) fn check_bytes(contract: &Contract, policy: &Policy, bytes: &[u8]) -> (Report, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (contract.check_with(text, policy), text.to_owned()),
        // Reading one byte more than the limit may have cut a character in two. The report must
        // name the limit, not the encoding.
        Err(_) if bytes.len() > policy.max_bytes => {
            let mut text = String::from_utf8_lossy(bytes).into_owned();
            // Each byte that is not UTF-8 has become several.
            text.truncate(text.floor_char_boundary(policy.max_bytes.saturating_add(4)));
            (contract.check_with(&text, policy), text)
        }
        Err(_) => {
            (contract.check_bytes_with(bytes, policy), String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn by_schema(args: &CheckArgs, path: &Path) -> Result<Contract> {
    let (name, bytes) = input::read(path, MAX_SCHEMA_BYTES)?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    let schema = parse_schema(&name, &text)?;
    let policy = Policy {
        repair: args.repair.map(Into::into).unwrap_or_default(),
        truncated: args.truncated.map(Into::into).unwrap_or_default(),
        coerce: if args.coerce { Coerce::All } else { Coerce::None },
        ..Policy::default()
    };
    let framing = args.framing.unwrap_or(Framing::AnyJson);
    Contract::from_schema(&schema, framing, policy)
        .with_context(|| format!("cannot use the schema {name}"))
}

/// A schema as JSON or YAML, in which no key occurs twice: of two values, people may see the one and
/// the validator takes the other.
fn parse_schema(name: &str, text: &str) -> Result<Value> {
    let json = match unique_keys::read(text.as_bytes()) {
        Ok(schema) => return Ok(schema),
        Err(error) if error.is_data() => bail!("cannot use the schema {name}: {error}"),
        Err(error) => error,
    };
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let why = yaml_error(&error);
        if matches!(error, serde_saphyr::Error::DuplicateMappingKey { .. }) {
            return anyhow!("cannot use the schema {name}: {why}");
        }
        anyhow!("{name} is neither JSON ({json}) nor YAML: {why}")
    })
}

/// Prints the reports on several texts as one document.
fn print_reports(format: Format, reports: &[(&Path, Report)]) -> Result<()> {
    let named = || reports.iter().map(|(path, report)| (path.to_string_lossy(), report));
    match format {
        Format::Sarif => {
            let here = input::current_folder();
            let paths: Vec<PathBuf> =
                reports.iter().map(|(path, _)| input::placed(path, &here)).collect();
            let all: Vec<(&Path, &Report)> = std::iter::zip(&paths, reports)
                .map(|(path, (_, report))| (path.as_path(), report))
                .collect();
            output::write_json(&render::sarif::validation(&all))
        }
        Format::Junit => output::write_xml(&render::junit::validation(named())?),
        Format::Json | Format::Github | Format::Human => {
            let mut lines = String::new();
            for (file, report) in named() {
                lines.push_str(&serde_json::to_string(&CheckReport { file: Some(&file), report })?);
                lines.push('\n');
            }
            output::write_json_lines(&lines)
        }
    }
}

/// Prints a report in a format. GitHub finds the file from the top of the repository around `folder`.
pub(super) fn print_report(
    format: Format,
    contract: &Contract,
    report: &Report,
    path: &Path,
    text: &str,
    folder: &Path,
) -> Result<()> {
    let is_file = path.as_os_str() != "-";
    let path = input::named(path);
    match format {
        Format::Json => output::write_json(report),
        Format::Sarif => {
            let path = input::placed(path, folder);
            output::write_json(&render::sarif::validation(&[(path.as_path(), report)]))
        }
        Format::Junit => {
            output::write_xml(&render::junit::validation([(path.to_string_lossy(), report)])?)
        }
        Format::Github => {
            let path = input::placed(path, folder);
            let file = is_file.then_some(path.as_path());
            output::write_stdout(&render::github::render(report, file))
        }
        Format::Human => {
            let rendered =
                diagnostic::render(report, &display_path(path), text, output::stderr_style());
            let mut message = terminal::trust(&rendered);
            for repair in report.provenance.repairs.iter().take(MAX_LISTED) {
                let span = repair.span;
                message.push_str(&format!(
                    "  repaired {}:{}: {}\n",
                    span.line,
                    span.column,
                    repair.kind.name()
                ));
            }
            for coercion in report.provenance.coercions.iter().take(MAX_LISTED) {
                message.push_str(&format!(
                    "  coerced {}: {} to {}\n",
                    escape_control(&coercion.pointer),
                    coercion.from,
                    coercion.to
                ));
            }
            if let Some(value) = &report.value {
                message.push_str(&format!("  {}\n", contract.display_line(value)));
            }
            output::write_stderr(&message);
            match &report.value {
                Some(value) => output::write_json(value),
                None => Ok(()),
            }
        }
    }
}
