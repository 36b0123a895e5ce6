//! Receipts as a page, as a comment for a pull request, and what was found out about one.
//!
//! A receipt is full of text that agents wrote. In the page, the template escapes every value. In
//! Markdown, all of it stands in code, where nothing has a meaning: no markup, link or mention.

mod markdown;

pub(crate) use markdown::markdown;

use super::lines;
use crate::report::receipt::{Comparison, ReceiptVerification};
use crate::wrapping::at_column;
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{Form, escape_control, neutralize};
use jiff::Timestamp;
use minijinja::{AutoEscape, Environment, Error, Value as Data};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The receipt of a run as one HTML page, without scripts and without anything to load.
pub(crate) fn page(receipt: &Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("time", |at: i64| time(at));
    environment.add_filter("duration", |ms: u64| super::duration(ms));
    environment.add_filter("text", |value: Data| plain(&value));
    let page = environment.render_str(include_str!("receipt/page.html"), data(receipt))?;
    Ok(page)
}

/// A value for the template, with every unsafe character in its visible form. Numbers of any size are
/// not what serde passes on as numbers.
fn data(value: &Value) -> Data {
    let visible = |text: &str| neutralize(text, Form::Text).into_owned();
    match value {
        Value::Null => Data::from(()),
        Value::Bool(flag) => Data::from(*flag),
        Value::String(text) => Data::from(visible(text)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Data::from(int),
            (None, Some(float)) => Data::from(float),
            (None, None) => Data::from(number.to_string()),
        },
        Value::Array(items) => Data::from(items.iter().map(data).collect::<Vec<_>>()),
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| (visible(name), data(member));
            Data::from(members.iter().map(member).collect::<BTreeMap<String, Data>>())
        }
    }
}

/// A text as it is, everything else as JSON.
fn plain(value: &Data) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => serde_json::to_value(value)
            .and_then(|value| serde_json::to_string_pretty(&value))
            .unwrap_or_default(),
    }
}

/// A time in milliseconds since 1970.
fn time(at: i64) -> String {
    let at =
        Timestamp::from_millisecond(at).map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    at.unwrap_or_else(|_| "unknown".to_owned())
}

/// The width of the first columns of a verification.
const WORD: usize = 8;
/// The column at which the details of a verification begin.
const DETAILS: usize = 2 * (WORD + 1);

/// What was found out about a receipt, which may be required to be genuine. Details that are too long
/// for the style continue below, at their column.
pub(crate) fn verification(
    found: &ReceiptVerification,
    require_genuine: bool,
    style: Style,
) -> String {
    let mut out = String::new();
    let mut row = |what: &str, result: Comparison, detail: &str| {
        let detail = at_column(DETAILS, detail, style.width);
        let _ = writeln!(out, "{what:<WORD$} {:<WORD$} {detail}", word(result));
    };
    for finding in &found.findings {
        row(finding.what, finding.result, &escape_control(&finding.detail));
    }
    for check in &found.checks {
        let tree = match check.same_tree {
            Some(true) => " (on the same tree)",
            Some(false) => " (on another tree)",
            None => "",
        };
        let (name, detail) = (escape_control(&check.name), escape_control(&check.detail));
        row("check", check.result, &format!("{name}: {detail}{tree}"));
    }
    let verdict = match (found.ok, found.genuine) {
        (false, _) => "does not agree",
        (true, true) => "genuine",
        (true, false) if require_genuine => {
            "consistent, but whether it is genuine is not known (--require-genuine)"
        }
        (true, false) => "consistent, but whether it is genuine is not known",
    };
    out + &lines::line("", &format!("receipt of run {}: {verdict}", found.run), style) + "\n"
}

fn word(result: Comparison) -> &'static str {
    match result {
        Comparison::Agrees => "ok",
        Comparison::Differs => "DIFFERS",
        Comparison::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::receipt::RerunCheck;
    use serde_json::json;

    #[test]
    fn details_continue_at_their_column_on_a_terminal_only() {
        let mut found = ReceiptVerification::new("01a1f0ee-0000-7000-8000-000000000001");
        let (digest, revision) = ("5e".repeat(32), "a1".repeat(20));
        let went_on =
            "its events are the same; the run went on by 1 event, and was undone".to_owned();
        found.add("content", Comparison::Agrees, format!("sha256 {digest}"));
        found.add("chain", Comparison::Agrees, format!("at the commit of the run, {revision}"));
        found.add("journal", Comparison::Agrees, went_on);
        found.add_check(RerunCheck {
            name: "test".to_owned(),
            command: "make test".to_owned(),
            result: Comparison::Differs,
            same_tree: Some(false),
            detail: "was recorded as one that passes, and fails now: exit status 2".to_owned(),
        });
        let style = Style { color: false, unicode: true, width: 80 };
        let narrow = verification(&found, false, style);
        // A digest for which there is no room at the column begins before it.
        let expected = format!(
            "content  ok       sha256\n                {digest}
chain    ok       at the commit of the run,
                  {revision}
journal  ok       its events are the same; the run went on by 1 event, and was
                  undone
check    DIFFERS  test: was recorded as one that passes, and fails now: exit
                  status 2 (on another tree)
receipt of run 01a1f0ee-0000-7000-8000-000000000001: does not agree\n"
        );
        assert_eq!(narrow, expected);
        let whole = verification(&found, false, Style { width: usize::MAX, ..style });
        assert_eq!(whole.lines().count(), 5, "{whole}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&whole));
        let consistent = ReceiptVerification::new("01a1f0ee-0000-7000-8000-000000000001");
        assert_eq!(
            verification(&consistent, true, style),
            "receipt of run 01a1f0ee-0000-7000-8000-000000000001: consistent, but whether it\n\
             is genuine is not known (--require-genuine)\n"
        );
    }

    #[test]
    fn nothing_of_an_agent_is_markup_in_the_page() {
        let evil = "</pre><script>alert(1)</script>\u{202e}\u{1b}[2J\"'&";
        let mut receipt = json!({
            "run": "r", "workflow": evil, "outcome": evil, "cause": null, "reason": evil,
            "started_at": 0, "updated_at": 1000, "made_by": "counterfoil",
            "asked": {"inputs": {evil: evil}, "agents": {evil: {"spec": evil}}, "base": evil},
            "steps": [{"path": [evil], "n": 1, "agent": evil, "contract": evil, "outcome": evil,
                "reason": evil, "repairs_asked": 0, "value": {evil: [evil]}, "transcripts": [evil],
                "changed": {"modified": [evil], "total": 1},
                "usage": {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5, "wall_ms": 3}, "started_at": 0}],
            "claims": [{"path": [evil], "n": 1, "reply": 1, "claim": evil, "field": evil, "kind": "command",
                "verdict": "refuted", "standing": "refuted", "claimed": evil, "observed": {evil: evil}, "reason": evil,
                "evidence": [{"kind": "command", "text": evil, "output": evil}]}],
            "summary": {"verified": 0, "refuted": 1},
            "checks": [{"name": evil, "path": [evil], "status": "failed", "command": evil, "reason": evil, "output": evil, "tree": evil}],
            "commits": [{"commit": evil, "subject": evil, "diff": evil}],
            "changes": {"files": [evil], "diff": evil},
            "usage": {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5, "wall_ms": 3},
            "notes": [evil], "redacted": true,
            "journal": {"bundle": "b", "head": "h", "links": [{"seq": 1, "at": 0, "kind": evil, "sha256": "s", "link": "l"}]},
            "sha256": "x", "seal": null,
        });
        let shown = page(&receipt).unwrap();
        assert!(shown.matches("alert(1)").count() > 20, "{shown}");
        assert!(!shown.contains("<script"), "{shown}");
        assert_eq!(shown.matches("<pre>").count(), shown.matches("</pre>").count(), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        receipt["workflow"] = json!("safe");
        assert!(page(&receipt).unwrap().contains("<title>safe"), "the page shows the receipt");
    }
}
