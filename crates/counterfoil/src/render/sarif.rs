//! SARIF 2.1.0 logs.

use super::claims::mismatch_line;
use crate::gate::{GatedClaim, Level};
use counterfoil_contract::{Code, Report, Violation};
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
                "help": {"text": format!("counterfoil explain {code}"), "markdown": code.page()},
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
    log(&rules, &results, &json!({"contract": report.contract, "status": report.status}))
}

/// Claims as a SARIF log. Verified claims are not results.
pub(crate) fn claims(claims: &[GatedClaim], contract: &str, name: &str) -> Value {
    let mut kinds: Vec<String> = claims.iter().map(GatedClaim::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rules: Vec<Value> = kinds
        .iter()
        .map(
            |kind| json!({"id": rule_id(kind), "shortDescription": {"text": format!("a claim of kind {kind}")}}),
        )
        .collect();
    let results: Vec<Value> = claims
        .iter()
        .filter_map(|gated| {
            let level = match gated.level() {
                Level::Pass => return None,
                Level::Note => "note",
                Level::Warning => "warning",
                Level::Error => "error",
            };
            let (claim, kind) = (&gated.claim, gated.kind());
            Some(json!({
                "ruleId": rule_id(&kind),
                "ruleIndex": kinds.iter().position(|known| *known == kind).unwrap_or(0),
                "level": level,
                "message": {"text": format!("{}: {}", claim.verdict.name(), mismatch_line(claim))},
                "locations": [{
                    "physicalLocation": {"artifactLocation": {"uri": uri(name)}},
                    "logicalLocations": [{"fullyQualifiedName": claim.field, "kind": "member"}],
                }],
                "properties": {"claimed": claim.claimed, "observed": claim.observed, "evidence": claim.evidence},
            }))
        })
        .collect();
    log(&rules, &results, &json!({"contract": contract, "status": "accepted"}))
}

fn rule_id(kind: &str) -> String {
    format!("claim/{kind}")
}

fn log(rules: &[Value], results: &[Value], properties: &Value) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "counterfoil",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": properties,
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
        location["logicalLocations"] =
            json!([{"fullyQualifiedName": violation.pointer, "kind": "member"}]);
    }
    json!({
        "ruleId": violation.code.as_str(),
        "ruleIndex": index,
        "level": level(violation.code),
        "message": {"text": format!("{}. Expected {}; received {}. {}", violation.message, text_or_nothing(&violation.expected), text_or_nothing(&violation.received), violation.hint)},
        "locations": [location],
    })
}

fn text_or_nothing(text: &str) -> &str {
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
