//! The evidence for the verdict of a claim, in words.

use super::pieces::one_line;
use counterfoil_contract::claim::{ClaimReport, Evidence};
use std::fmt::Write;

/// The evidence for a verdict: the kind and a line of each piece. What the reason of the verdict says,
/// or what happened `since`, is not repeated.
pub fn evidence<'c>(claim: &'c ClaimReport, since: &str) -> Vec<(&'c str, String)> {
    let known = [since, &claim.reason].map(one_line);
    let mut lines: Vec<(&str, String)> = Vec::new();
    for evidence in &claim.evidence {
        let line = evidence_line(evidence);
        let is_said = known.contains(&line) || lines.iter().any(|(_, said)| *said == line);
        if !line.is_empty() && !is_said {
            lines.push((evidence.kind.as_str(), line));
        }
    }
    lines
}

fn evidence_line(evidence: &Evidence) -> String {
    let mut line = evidence.text.clone();
    if let Some(code) = evidence.exit_code
        && !line.contains("exit")
    {
        let _ = write!(line, " (exit code {code})");
    }
    // The last line of a failed command usually says why it failed.
    let failed = evidence.exit_code.is_some_and(|code| code != 0);
    let last =
        evidence.output.lines().rev().find(|line| !line.trim().is_empty()).filter(|_| failed);
    if let Some(last) = last {
        let _ = write!(line, ": {}", last.trim());
    }
    let line = one_line(line.trim());
    match &evidence.sha256 {
        Some(hash) => format!("{line} [sha256 {}]", one_line(hash)),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, Verdict};
    use serde_json::json;

    fn command(text: &str, code: i32, output: &str) -> Evidence {
        Evidence {
            exit_code: Some(code),
            output: output.to_owned(),
            ..Evidence::new("command", text)
        }
    }

    #[test]
    fn a_command_that_failed_has_its_last_line() {
        let line =
            |code, output| evidence_line(&command("`sh t.sh` exited after 27 ms", code, output));
        let failed = line(1, "running 2 tests\nparse_dates ... FAILED\n\n");
        assert_eq!(failed, "`sh t.sh` exited after 27 ms: parse_dates ... FAILED");
        assert_eq!(line(1, " \n"), "`sh t.sh` exited after 27 ms");
        assert_eq!(line(0, "all fine"), "`sh t.sh` exited after 27 ms");
        assert_eq!(evidence_line(&command("`make`", 2, "no")), "`make` (exit code 2): no");
        let file = Evidence { sha256: Some("ab".to_owned()), ..Evidence::new("file", "a.txt") };
        assert_eq!(evidence_line(&file), "a.txt [sha256 ab]");
    }

    #[test]
    fn nothing_is_said_twice() {
        let claim = ClaimReport {
            claim: "tests".to_owned(),
            field: "tests".to_owned(),
            kind: ClaimKind::Command,
            policy: ClaimPolicy::Record,
            verdict: Verdict::Refuted,
            claimed: json!(true),
            observed: json!(false),
            reason: "it failed".to_owned(),
            evidence: vec![
                Evidence::new("note", "it failed"),
                Evidence::new("note", "fix changed 1 file since"),
                command("`make`", 1, "no"),
                command("`make`", 1, "no"),
                Evidence::new("note", " "),
            ],
            tree: None,
        };
        let lines = evidence(&claim, "fix changed 1 file since");
        assert_eq!(lines, [("command", "`make` (exit code 1): no".to_owned())]);
    }
}
