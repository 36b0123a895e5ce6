//! Reads a file of the workspace, and holds it to a contract.

use super::Done;
use counterfoil_contract::{Code, Contract, Report, Violation};
use counterfoil_flow::ReadWork;
use counterfoil_verify::yaml;
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file read.
const LARGEST: u64 = 8 << 20;

/// Reads the file. It blocks.
pub(crate) fn read(folder: &Path, work: &ReadWork) -> Done {
    let name = &work.path;
    let bytes = match content(folder, name) {
        Ok(bytes) => bytes,
        Err(why) => return Done::Blocked(format!("'{name}' cannot be read: {why}")),
    };
    let Some(contract) = &work.contract else {
        return match String::from_utf8(bytes) {
            Ok(text) => Done::Given(json!({ "text": text })),
            Err(error) => {
                Done::Blocked(format!("'{name}' cannot be read as text: {}", error.utf8_error()))
            }
        };
    };
    if !yaml::is_yaml(Path::new(name)) {
        return held(name, contract, contract.check_bytes(&bytes));
    }
    match yaml::read(&bytes) {
        Ok(value) => held(name, contract, contract.check_value(&value)),
        Err(why) => {
            let violation = Violation {
                code: Code::Syntax,
                pointer: String::new(),
                span: None,
                message: format!("it is no YAML that can be read: {why}"),
                expected: "YAML".to_owned(),
                received: String::new(),
                hint: "correct the line that is named".to_owned(),
                rule: None,
            };
            Done::Rejected {
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

/// The bytes of a file that stands in the folder, whatever links lead to it.
fn content(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = Path::new(name);
    let is_inside = counterfoil_workspace::path::is_inside(path);
    if !is_inside || name.trim().is_empty() {
        return Err("it is not a path inside of the repository".to_owned());
    }
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "it is not there".to_owned(),
            _ => error.to_string(),
        })
    };
    let (top, file) = (real(folder)?, real(&folder.join(path))?);
    if !file.starts_with(&top) {
        return Err("it is a link that leads out of the repository".to_owned());
    }
    // A pipe would be waited for, and what became a link since is not followed.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened =
        rustix::fs::open(&file, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let opened = File::from(opened);
    let meta = opened.metadata().map_err(|error| error.to_string())?;
    if meta.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if !meta.is_file() {
        return Err("it is no plain file".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it has more than {} MiB", LARGEST >> 20));
    }
    Ok(bytes)
}

fn held(name: &str, contract: &Contract, report: Report) -> Done {
    if let Some(value) = report.value {
        return Done::Given(value);
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
    Done::Rejected { reason, violations, partial: report.partial }
}
