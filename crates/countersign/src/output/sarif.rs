//! SARIF 2.1.0.

use countersign_contract::{Code, Report, Violation};
use serde_json::{Value, json};

/// A report as a SARIF log.
pub(crate) fn render(report: &Report, name: &str) -> Value {
    let all = || report.violations.iter().chain(&report.warnings);
    let mut codes: Vec<Code> = all().map(|violation| violation.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<Value> = codes
        .iter()
        .map(|code| {
            json!({
                "id": code.as_str(),
                "shortDescription": {"text": code.title()},
                "fullDescription": {"text": code.title()},
                "help": {"text": format!("countersign explain {code}"), "markdown": code.page()},
                "defaultConfiguration": {"level": level(*code)},
            })
        })
        .collect();
    let results: Vec<Value> = all()
        .map(|violation| {
            let index = codes.iter().position(|code| *code == violation.code).unwrap_or(0);
            result(violation, index, name)
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "countersign",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {"contract": report.contract, "status": report.status},
        }],
    })
}

fn level(code: Code) -> &'static str {
    if code.is_warning() { "warning" } else { "error" }
}

fn result(violation: &Violation, index: usize, name: &str) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": uri(name)}});
    if let Some(span) = violation.span {
        physical["region"] = json!({
            "startLine": span.line,
            "startColumn": span.column,
            "byteOffset": span.start,
            "byteLength": span.end - span.start,
        });
    }
    let mut location = json!({"physicalLocation": physical});
    if !violation.pointer.is_empty() {
        location["logicalLocations"] = json!([{"fullyQualifiedName": violation.pointer, "kind": "member"}]);
    }
    json!({
        "ruleId": violation.code.as_str(),
        "ruleIndex": index,
        "level": level(violation.code),
        "message": {"text": format!("{}. Expected {}; received {}. {}", violation.message, or_nothing(&violation.expected), or_nothing(&violation.received), violation.hint)},
        "locations": [location],
    })
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

/// A file name as a relative reference.
fn uri(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            b'\\' => out.push('/'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
