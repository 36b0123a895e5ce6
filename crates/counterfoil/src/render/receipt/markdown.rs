//! A receipt as a comment for a pull request.

use super::super::duration;
use counterfoil_contract::text::{Form, neutralize, pluralize, truncate};
use counterfoil_flow::amount::dollars;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The most rows of a table.
const MAX_ROWS: usize = 50;
/// No further row or output is added to a longer comment, in bytes.
const MAX_LENGTH: usize = 40_000;
/// The longest text in a cell, in characters.
const MAX_CELL: usize = 200;
/// The longest quoted text, in characters: the task, the output of a check.
const MAX_QUOTED: usize = 2_000;
/// The most times that a run was undone, of which each has a line.
const MAX_UNDONE: usize = 5;
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
    for undone in list("/undone").iter().take(MAX_UNDONE) {
        let at = undone.get("at").and_then(Value::as_i64).unwrap_or(0);
        let files = undone.get("files").and_then(Value::as_u64).unwrap_or(0);
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let _ = writeln!(
            out,
            "**Undone** by {} at {}: {}\n",
            code(member(undone, "by")),
            super::time(at),
            pluralize(files, "file")
        );
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
        rows(&mut out, commits, "commit", |commit, times| {
            let subject = code(member(commit, "subject"));
            format!("- {}{times} {subject}", code(member(commit, "commit")))
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
    rows(out, counted, "claim", |claim, times| {
        let evidence = claim.pointer("/evidence/0/text").and_then(Value::as_str);
        let why = Some(member(claim, "reason")).filter(|why| !why.is_empty()).or(evidence);
        format!(
            "| {}{times} | {} | {} | {} |",
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
    rows(out, checks, "check", |check, times| {
        let tree: String = member(check, "tree").chars().take(12).collect();
        format!(
            "| {}{times} | {} | {} | {} | {} |",
            code(member(check, "name")),
            code(&path(check)),
            code(member(check, "status")),
            code(member(check, "command")),
            code(&tree),
        )
    });
    let mut shown = BTreeSet::new();
    let failed = checks
        .iter()
        .filter(|check| member(check, "status") == "failed" && !member(check, "output").is_empty())
        .filter(|check| shown.insert((member(check, "name"), member(check, "output"))));
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

/// Writes rows while there is room, and how many more there are. Equal rows are one, with their number:
/// `row` writes it behind the first cell.
fn rows<'a>(
    out: &mut String,
    values: impl IntoIterator<Item = &'a Value>,
    noun: &str,
    row: impl Fn(&Value, &str) -> String,
) {
    let mut places = BTreeMap::new();
    let mut distinct: Vec<(&Value, usize)> = Vec::new();
    for value in values {
        let place = *places.entry(row(value, "")).or_insert(distinct.len());
        match distinct.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => distinct.push((value, 1)),
        }
    }
    let mut left_out = 0;
    for (number, (value, count)) in distinct.into_iter().enumerate() {
        if number < MAX_ROWS && out.len() < MAX_LENGTH {
            let times = if count > 1 { format!(" ×{count}") } else { String::new() };
            let _ = writeln!(out, "{}", row(value, &times));
        } else {
            left_out += count;
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
        let claim = |number: usize| json!({"claim": format!("{number} {long}"), "path": [long], "standing": "refuted", "reason": long});
        let check = json!({"name": long, "path": [long], "status": "failed", "command": long, "output": long});
        let receipt = json!({
            "workflow": long, "outcome": long, "reason": long, "run": long, "sha256": long,
            "asked": {"inputs": {"task": long}},
            "claims": (0..1000).map(claim).collect::<Vec<_>>(), "checks": vec![check; 1000],
            "commits": vec![json!({"commit": long, "subject": long}); 1000],
        });
        let text = markdown(&receipt);
        assert!(text.len() < 65_536, "{}", text.len());
        assert!(text.contains("and 950 claims more"), "{text}");
        assert!(text.contains(" ×1000 "), "equal rows are one: {text}");
    }

    #[test]
    fn equal_rows_are_one_with_their_number() {
        let claim = |name: &str| json!({"claim": name, "path": ["fix"], "standing": "verified"});
        let mut text = String::new();
        claims(&mut text, &[claim("a"), claim("b"), claim("a")]);
        let rows: Vec<&str> = text.lines().skip(2).filter(|line| !line.is_empty()).collect();
        let expected =
            ["| ` a ` ×2 | ` fix ` | ` verified ` |  |", "| ` b ` | ` fix ` | ` verified ` |  |"];
        assert_eq!(rows, expected);
    }
}
