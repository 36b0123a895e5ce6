//! A receipt as a comment for a pull request.

use super::super::duration;
use counterfoil_contract::text::{Form, neutralize, pluralize, truncate};
use counterfoil_flow::amount::dollars;
use serde_json::Value;
use std::fmt::Write;

/// The most rows of a table.
const MAX_ROWS: usize = 50;
/// No further row or output is added to a longer comment, in bytes.
const MAX_LENGTH: usize = 40_000;
/// The longest text in a cell, in characters.
const MAX_CELL: usize = 200;
/// The longest quoted text, in characters: the task, the output of a check.
const MAX_QUOTED: usize = 2_000;
/// The most outputs of failed checks.
const MAX_OUTPUTS: usize = 5;

/// The receipt of a run as Markdown. It is bounded: a comment of GitHub has at most 65,536 characters.
pub(crate) fn markdown(receipt: &Value) -> String {
    let text = |pointer: &str| receipt.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let number = |pointer: &str| receipt.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let list = |pointer: &str| {
        receipt.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    };
    let mut out = format!("### {}: {}\n\n", code(text("/workflow")), code(text("/outcome")));
    if !text("/reason").is_empty() {
        let _ = writeln!(out, "{}\n", code(text("/reason")));
    }
    let cost = receipt.pointer("/usage/cost_usd").and_then(Value::as_f64).map(dollars);
    let _ = writeln!(
        out,
        "{} verified, {} refuted, {} stale, {} unverifiable · {} · {} tokens · {} · {}\n",
        number("/summary/verified"),
        number("/summary/refuted"),
        number("/summary/stale"),
        number("/summary/unverifiable"),
        pluralize(list("/changes/files").len(), "changed file"),
        number("/usage/input_tokens") + number("/usage/output_tokens"),
        cost.unwrap_or_default(),
        duration(number("/usage/wall_ms")),
    );
    if let Some(task) = receipt.pointer("/asked/inputs/task").and_then(Value::as_str) {
        let _ = writeln!(out, "**Asked**\n\n{}", block(task));
    }
    claims(&mut out, list("/claims"));
    checks(&mut out, list("/checks"));
    let commits = list("/commits");
    if !commits.is_empty() {
        let _ = writeln!(out, "**Commits**\n");
        rows(&mut out, commits, "commit", |commit| {
            format!("- {} {}", code(member(commit, "commit")), code(member(commit, "subject")))
        });
    }
    let _ = writeln!(
        out,
        "\n<sub>Run {}, {}, head {}, receipt {}. Check it with <code>counterfoil receipt verify</code>.</sub>",
        code(text("/run")),
        pluralize(list("/journal/links").len(), "event"),
        code(text("/journal/head")),
        code(text("/sha256")),
    );
    out
}

fn claims(out: &mut String, claims: &[Value]) {
    let counted: Vec<&Value> =
        claims.iter().filter(|claim| claim["superseded"] != Value::Bool(true)).collect();
    if counted.is_empty() {
        return;
    }
    let _ = writeln!(out, "| claim | step | verdict | evidence |\n|---|---|---|---|");
    rows(out, counted, "claim", |claim| {
        let evidence = claim.pointer("/evidence/0/text").and_then(Value::as_str);
        let why = Some(member(claim, "reason")).filter(|why| !why.is_empty()).or(evidence);
        format!(
            "| {} | {} | {} | {} |",
            code(member(claim, "claim")),
            code(&path(claim)),
            code(member(claim, "standing")),
            code(why.unwrap_or_default()),
        )
    });
}

fn checks(out: &mut String, checks: &[Value]) {
    if checks.is_empty() {
        return;
    }
    let _ = writeln!(out, "| check | step | outcome | command | tree |\n|---|---|---|---|---|");
    rows(out, checks, "check", |check| {
        let tree: String = member(check, "tree").chars().take(12).collect();
        format!(
            "| {} | {} | {} | {} | {} |",
            code(member(check, "name")),
            code(&path(check)),
            code(member(check, "status")),
            code(member(check, "command")),
            code(&tree),
        )
    });
    let failed = checks
        .iter()
        .filter(|check| member(check, "status") == "failed" && !member(check, "output").is_empty());
    for check in failed.take(MAX_OUTPUTS) {
        if out.len() > MAX_LENGTH {
            break;
        }
        let _ = writeln!(
            out,
            "<details><summary>Output of a check that failed</summary>\n\n{}\n{}</details>\n",
            code(member(check, "name")),
            block(member(check, "output")),
        );
    }
}

fn member<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn path(value: &Value) -> String {
    let parts = value.get("path").and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(Value::as_str).collect::<Vec<_>>().join("/")
}

/// Writes rows while there is room, and how many more there are.
fn rows<'a>(
    out: &mut String,
    values: impl IntoIterator<Item = &'a Value>,
    noun: &str,
    row: impl Fn(&Value) -> String,
) {
    let mut left_out = 0;
    for (number, value) in values.into_iter().enumerate() {
        if number < MAX_ROWS && out.len() < MAX_LENGTH {
            let _ = writeln!(out, "{}", row(value));
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let _ = writeln!(out, "\nand {} more", pluralize(left_out, noun));
    }
    out.push('\n');
}

/// A text as inline code on one line, which may stand in a table. Nothing in it has a meaning.
fn code(text: &str) -> String {
    let line = neutralize(text.trim(), Form::Line);
    if line.is_empty() {
        return String::new();
    }
    let text = truncate(&line, MAX_CELL);
    let fence = "`".repeat(longest_run(&text) + 1);
    // A table ends a cell at a bar even inside of code. A blank separates backticks from the fence.
    format!("{fence} {} {fence}", text.replace('|', "\\|"))
}

/// A text as a block of code. Its lines are indented, so that none of them looks like one of ours.
fn block(text: &str) -> String {
    let text = neutralize(text.trim_end(), Form::Text);
    let text = truncate(&text, MAX_QUOTED);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}\n")).collect();
    format!("{fence}\n{}{fence}\n", lines.concat())
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_cannot_leave_its_code() {
        assert_eq!(code("plain"), "` plain `");
        assert_eq!(code("a `b` ``c``"), "``` a `b` ``c`` ```");
        assert_eq!(code("a|b\nc"), "` a\\|b\\nc `");
        assert_eq!(code(" "), "");
        assert_eq!(block("```\n@everyone"), "````\n  ```\n  @everyone\n````\n");
    }

    #[test]
    fn a_comment_is_bounded() {
        let long = "x".repeat(10_000);
        let claim = json!({"claim": long, "path": [long], "standing": "refuted", "reason": long});
        let check = json!({"name": long, "path": [long], "status": "failed", "command": long, "output": long});
        let receipt = json!({
            "workflow": long, "outcome": long, "reason": long, "run": long, "sha256": long,
            "asked": {"inputs": {"task": long}},
            "claims": vec![claim; 1000], "checks": vec![check; 1000],
            "commits": vec![json!({"commit": long, "subject": long}); 1000],
        });
        let text = markdown(&receipt);
        assert!(text.len() < 65_536, "{}", text.len());
        assert!(text.contains("and 950 claims more"), "{text}");
    }
}
