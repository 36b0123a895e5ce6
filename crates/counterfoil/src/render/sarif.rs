//! SARIF 2.1.0 logs.

use super::claims::{mismatch_line, not_made_line};
use crate::gate::{GatedClaim, GatedClaims, GatedWork, Level, NotMade};
use crate::redaction;
use crate::report::lint::LintFinding;
use counterfoil_contract::{Code, Report, Violation};
use counterfoil_verify::unfinished::UnfinishedKind;
use serde_json::{Value, json};
use std::path::Path;

/// Reports on named texts of one contract as a SARIF log.
pub(crate) fn validation(texts: &[(&Path, &Report)]) -> Value {
    let all = || {
        texts.iter().flat_map(|(name, report)| {
            let all = report.violations.iter().chain(&report.warnings);
            all.map(move |violation| (*name, violation))
        })
    };
    let mut codes: Vec<Code> = all().map(|(_, violation)| violation.code).collect();
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
        .map(|(name, violation)| {
            let index = codes.iter().position(|code| *code == violation.code).unwrap_or(0);
            result(violation, index, name)
        })
        .collect();
    let properties = match texts {
        [(_, report)] => json!({"contract": report.contract, "status": report.status}),
        texts => {
            let text = |(file, report): &(&Path, &Report)| {
                let file = file.to_string_lossy();
                json!({"file": file, "status": report.status})
            };
            let contract = texts.first().map(|(_, report)| &report.contract);
            json!({"contract": contract, "texts": texts.iter().map(text).collect::<Vec<_>>()})
        }
    };
    log(&rules, &redacted(&results), &properties)
}

/// The rule of files that were not examined for unfinished work.
const NOT_EXAMINED: &str = "unfinished/not-examined";

/// Claims as a SARIF log. Verified claims are not results. `line` is the one of the file `name` in which
/// the result begins.
pub(crate) fn claims(
    claims: &GatedClaims,
    contract: &str,
    name: &Path,
    line: Option<usize>,
    unfinished: Option<&GatedWork>,
) -> Value {
    let made = claims.made.iter().map(GatedClaim::kind);
    let mut kinds: Vec<String> = made.chain(claims.not_made.iter().map(NotMade::kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let claim_rules = kinds.iter().map(
        |kind| json!({"id": rule_id(kind), "shortDescription": {"text": format!("a claim of kind {kind}")}}),
    );
    let work = unfinished.map(|work| unfinished_work(work, kinds.len(), name)).unwrap_or_default();
    let rules: Vec<Value> = claim_rules.chain(work.rules).collect();
    let mut physical = json!({"artifactLocation": {"uri": uri(name)}});
    if let Some(line) = line {
        physical["region"] = json!({"startLine": line});
    }
    let result = |level: Level, kind: &str, text: String, field: &str, properties: Value| {
        let level = match level {
            Level::Pass => return None,
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        Some(json!({
            "ruleId": rule_id(kind),
            "ruleIndex": kinds.iter().position(|known| known == kind).unwrap_or(0),
            "level": level,
            "message": {"text": text},
            "locations": [{
                "physicalLocation": physical,
                "logicalLocations": [{"fullyQualifiedName": field, "kind": "member"}],
            }],
            "properties": properties,
        }))
    };
    let made = claims.made.iter().filter_map(|gated| {
        let claim = &gated.claim;
        let text = format!("{}: {}", claim.verdict.name(), mismatch_line(claim));
        let properties = json!({"claimed": claim.claimed, "observed": claim.observed, "evidence": claim.evidence});
        result(gated.level(), &gated.kind(), text, &claim.field, properties)
    });
    let not_made = claims.not_made.iter().filter_map(|missing| {
        let text = format!("{}: {}", NotMade::NAME, not_made_line(missing));
        result(missing.level(), &missing.kind(), text, &missing.field, json!({}))
    });
    let results: Vec<Value> = made.chain(not_made).chain(work.results).collect();
    log(&rules, &redacted(&results), &json!({"contract": contract, "status": "accepted"}))
}

/// Rules and the results that refer to them.
#[derive(Default)]
struct Results {
    rules: Vec<Value>,
    results: Vec<Value>,
}

/// Unfinished work and the files that were not examined, behind a number of other rules. `name` is the
/// place of what is not about one file.
fn unfinished_work(work: &GatedWork, first: usize, name: &Path) -> Results {
    let rule = |id: String, text: &str| json!({"id": id, "shortDescription": {"text": text}});
    let kinds = UnfinishedKind::ALL.iter().filter(|_| !work.places.is_empty());
    let mut rules: Vec<Value> = kinds
        .map(|kind| {
            let text = format!("unfinished work: {}", kind.name());
            rule(format!("unfinished/{}", kind.name()), &text)
        })
        .collect();
    let not_examined = first + rules.len();
    if !work.not_examined.is_empty() {
        let text = "a changed file that was not examined for unfinished work";
        rules.push(rule(NOT_EXAMINED.to_owned(), text));
    }
    let places = work.places.iter().map(|place| {
        let index = UnfinishedKind::ALL.iter().position(|kind| *kind == place.kind);
        json!({
            "ruleId": format!("unfinished/{}", place.kind.name()),
            "ruleIndex": first + index.unwrap_or(0),
            "level": "error",
            "message": {"text": place.text},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(&place.file)},
                "region": {"startLine": place.line},
            }}],
        })
    });
    let files = work.not_examined.iter().map(|unexamined| {
        let file = unexamined.file.as_deref().unwrap_or(name);
        let level = if unexamined.counts { "error" } else { "note" };
        json!({
            "ruleId": NOT_EXAMINED,
            "ruleIndex": not_examined,
            "level": level,
            "message": {"text": format!("not examined for unfinished work: {}", unexamined.reason)},
            // Code scanning shows no result without a line.
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(file)},
                "region": {"startLine": 1},
            }}],
        })
    });
    let results = places.chain(files).collect();
    Results { rules, results }
}

/// Findings about contract and workflow files as a SARIF log.
pub(crate) fn lint(findings: &[LintFinding], note: Option<&str>) -> Value {
    let code = |finding: &LintFinding| (finding.code, finding.title, finding.page, finding.level());
    let mut codes: Vec<_> = findings.iter().map(code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<Value> = codes
        .iter()
        .map(|(code, title, page, level)| {
            json!({
                "id": code,
                "shortDescription": {"text": title},
                "fullDescription": {"text": title},
                "help": {"text": format!("counterfoil explain {code}"), "markdown": page},
                "defaultConfiguration": {"level": level},
            })
        })
        .collect();
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let mut physical = json!({"artifactLocation": {"uri": uri(&finding.file)}});
            if let Some(position) = finding.position {
                let mut region = json!({"startLine": position.line});
                if let Some(column) = position.column {
                    region["startColumn"] = json!(column);
                }
                if let Some((offset, length)) = position.bytes {
                    region["byteOffset"] = json!(offset);
                    region["byteLength"] = json!(length);
                }
                physical["region"] = region;
            }
            let text = with_hint(&finding.text(), &finding.hint);
            json!({
                "ruleId": finding.code,
                "ruleIndex": codes.iter().position(|(code, ..)| *code == finding.code).unwrap_or(0),
                "level": finding.level(),
                "message": {"text": redaction::text_about_definition(&text)},
                "locations": [{"physicalLocation": physical}],
            })
        })
        .collect();
    let ok = findings.iter().all(|finding| finding.is_warning);
    let mut log = log(&rules, &results, &json!({"ok": ok}));
    if let Some(note) = note {
        log["runs"][0]["invocations"] = json!([{
            "executionSuccessful": true,
            "toolExecutionNotifications": [{"level": "note", "message": {"text": note}}],
        }]);
    }
    log
}

/// Results without secrets. If they cannot be redacted, their messages are withheld, never the results.
fn redacted(results: &[Value]) -> Vec<Value> {
    let text = Value::from(results).to_string();
    match redaction::json(&text) {
        // Read only if it changed: numbers stay as they were written.
        Some(clean) if clean == text => results.to_vec(),
        clean => clean
            .and_then(|clean| serde_json::from_str(&clean).ok())
            .unwrap_or_else(|| results.iter().map(withheld).collect()),
    }
}

/// What is left of a result that cannot be redacted.
fn withheld(result: &Value) -> Value {
    json!({
        "ruleId": result["ruleId"],
        "ruleIndex": result["ruleIndex"],
        "level": result["level"],
        "message": {"text": redaction::WITHHELD},
    })
}

fn with_hint(message: &str, hint: &str) -> String {
    if hint.is_empty() { message.to_owned() } else { format!("{message} (hint: {hint})") }
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

fn result(violation: &Violation, index: usize, name: &Path) -> Value {
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
        "message": {"text": message(violation)},
        "locations": [location],
    })
}

/// What is wrong, what was received and what to do, in sentences. What is expected is left out if the
/// message says it.
fn message(violation: &Violation) -> String {
    let Violation { message, expected, received, hint, .. } = violation;
    let received = if received.is_empty() { "nothing" } else { received.as_str() };
    let found = if expected.is_empty() || message.contains(expected.as_str()) {
        format!("received {received}")
    } else {
        format!("expected {expected}; received {received}")
    };
    let parts = [message.as_str(), found.as_str(), hint.as_str()];
    let sentences: Vec<String> =
        parts.into_iter().filter(|part| !part.is_empty()).map(sentence).collect();
    sentences.join(" ")
}

/// A text as a sentence: with a capital letter and an end.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(char::to_uppercase).into_iter().flatten();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    first.chain(rest).collect::<String>() + end
}

/// A file name as a relative reference, with the bytes that it has.
fn uri(name: &Path) -> String {
    let mut out = String::new();
    for &byte in name.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{sentence, uri};
    use std::path::Path;

    #[test]
    fn a_name_keeps_its_bytes() {
        let uris = ["a/b c.txt", "c\\d.txt", "x\u{1b}\n.txt"].map(|name| uri(Path::new(name)));
        assert_eq!(uris, ["a/b%20c.txt", "c%5Cd.txt", "x%1B%0A.txt"]);
    }

    #[test]
    fn a_text_becomes_a_sentence() {
        let sentences = ["give a boolean", "`ok` is missing.", "why?", ""].map(sentence);
        assert_eq!(sentences, ["Give a boolean.", "`ok` is missing.", "Why?", "."]);
    }
}
