//! Reads a file of the workspace and validates it against a contract.

use super::BuiltinOutcome;
use counterfoil_contract::{Code, Contract, Report, Violation};
use counterfoil_flow::ReadWork;
use counterfoil_verify::yaml;
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The maximum size of a file.
const MAX_BYTES: u64 = 8 << 20;

/// Reads the file. It blocks.
pub(crate) fn read(folder: &Path, work: &ReadWork) -> BuiltinOutcome {
    let name = &work.path;
    let bytes = match content(folder, name) {
        Ok(bytes) => bytes,
        Err(why) => return BuiltinOutcome::Blocked(format!("'{name}' cannot be read: {why}")),
    };
    let Some(contract) = &work.contract else {
        return match String::from_utf8(bytes) {
            Ok(text) => BuiltinOutcome::Value(json!({ "text": text })),
            Err(error) => BuiltinOutcome::Blocked(format!(
                "'{name}' cannot be read as text: {}",
                error.utf8_error()
            )),
        };
    };
    if !yaml::is_yaml(Path::new(name)) {
        return validated(name, contract, contract.check_bytes(&bytes));
    }
    match yaml::read(&bytes) {
        Ok(value) => validated(name, contract, contract.check_value(&value)),
        Err(why) => {
            let violation = Violation {
                code: Code::Syntax,
                pointer: String::new(),
                span: None,
                message: format!("it is not valid YAML: {why}"),
                expected: "YAML".to_owned(),
                received: String::new(),
                hint: "correct that line".to_owned(),
                rule: None,
            };
            BuiltinOutcome::Rejected {
                reason: format!(
                    "'{name}' does not satisfy {}: {}",
                    contract.reference(),
                    violation.message
                ),
                violations: serde_json::to_value(violation).into_iter().collect(),
                partial: None,
            }
        }
    }
}

/// The content of a file inside the folder. Links are followed if they stay inside.
fn content(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = Path::new(name);
    let is_inside = counterfoil_workspace::path::is_inside(path);
    if !is_inside || name.trim().is_empty() {
        return Err("it is not a path inside the repository".to_owned());
    }
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
            _ => error.to_string(),
        })
    };
    let (top, file) = (real(folder)?, real(&folder.join(path))?);
    if !file.starts_with(&top) {
        return Err("it is a link to a path outside of the repository".to_owned());
    }
    // NONBLOCK: opening a pipe would block. NOFOLLOW: the file may have become a link since.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened =
        rustix::fs::open(&file, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let opened = File::from(opened);
    let meta = opened.metadata().map_err(|error| error.to_string())?;
    if meta.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    }
    Ok(bytes)
}

fn validated(name: &str, contract: &Contract, report: Report) -> BuiltinOutcome {
    if let Some(value) = report.value {
        return BuiltinOutcome::Value(value);
    }
    let first = report.violations.first().map(|violation| {
        let place = match (violation.span, violation.pointer.as_str()) {
            (Some(span), _) => format!("line {}: ", span.line),
            (None, "") => String::new(),
            (None, pointer) => format!("{pointer}: "),
        };
        format!(": {place}{}", violation.message)
    });
    let more = match report.violations.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    let reason = format!(
        "'{name}' does not satisfy {}{}{more}",
        contract.reference(),
        first.unwrap_or_else(|| ": no result was found in it".to_owned())
    );
    let violations: Vec<Value> = report
        .violations
        .iter()
        .filter_map(|violation| serde_json::to_value(violation).ok())
        .collect();
    BuiltinOutcome::Rejected { reason, violations, partial: report.partial }
}
