//! Texts to measure with: transcripts like those of real agents, and texts made to be slow.

use counterfoil_contract::Contract;
use serde_json::{Value, json};

/// A review with a list of findings, without repairs.
pub(crate) fn review_contract() -> Contract {
    Contract::from_yaml(
        "contract: bench/review
version: 1
framing: fenced-json
fields:
  success: boolean
  summary: string
  findings: [{ id: string, file: path, line: count, severity: critical | major | minor, message: string }]
rules:
  - { id: ids-differ, unique: /findings/*/id }
  - { id: summary-when-failed, when: '!result.success', require: [summary] }
",
    )
    .unwrap()
}

/// The same, found anywhere and repaired.
pub(crate) fn any_contract() -> Contract {
    let yaml = review_contract().definition().to_yaml().unwrap();
    Contract::from_yaml(&yaml.replace("fenced-json", "any-json")).unwrap()
}

/// A result of about `size` bytes.
pub(crate) fn result(size: usize) -> Value {
    let finding = |index: usize| {
        let severity = ["critical", "major", "minor"][index % 3];
        json!({
            "id": format!("F{index:05}"), "file": format!("src/module_{}/file_{index}.rs", index % 17), "line": index * 7 % 900 + 1,
            "severity": severity,
            "message": "The error of this call is dropped; \"unwrap\" hides it and the caller goes on as if nothing had happened.",
        })
    };
    let each = serde_json::to_string_pretty(&finding(1)).unwrap().len() + 40;
    json!({"success": true, "summary": "Reviewed.", "findings": (0..(size / each).max(1)).map(finding).collect::<Vec<_>>()})
}

/// What an agent writes before its answer.
pub(crate) fn transcript(size: usize) -> String {
    let page = "I looked at `src/lib.rs` and ran the tests. [INFO] 42 passed in 0.31s\n\n```rust\nfn main() { let x = vec![1, 2]; println!(\"{x:?}\"); }\n```\n\nThe config is {\"debug\": true, \"level\": 3} and it's fine (see [1], and the \"notes\").\nNext I checked the callers of this function, one by one, and found nothing new in them that would matter here.\n\n";
    page.repeat(size / page.len() + 1)[..size].rsplit_once('\n').unwrap().0.to_owned() + "\n"
}

/// A transcript of `size` bytes with a result of `result_size` bytes in a fence near its end, and
/// that result alone.
pub(crate) fn answer(size: usize, result_size: usize) -> (String, String) {
    let json = serde_json::to_string_pretty(&result(result_size)).unwrap();
    let prose = transcript(size.saturating_sub(json.len() + 60));
    (format!("{prose}\n```json\n{json}\n```\nThat is all.\n"), json)
}

/// Texts made to be slow, each about `size` bytes long.
pub(crate) fn hostile(size: usize) -> Vec<(&'static str, String)> {
    let fill = |piece: &str| piece.repeat(size / piece.len());
    vec![
        ("only-braces", fill("{")),
        ("nested-members", fill("[{\"a\":")),
        ("braces-and-quotes", fill("he said \"use { and \" then [ 'x }\n")),
        ("bad-fences", fill("```json\n{\"a\": \n```\n")),
        ("output-markers", fill("---OUTPUT---\n")),
        ("quotes", fill("\"")),
        ("opened-strings", fill("{\"a\": \"x ")),
        ("deep-nesting", format!("{}{}", "[".repeat(size / 2), "]".repeat(size / 2))),
    ]
}
