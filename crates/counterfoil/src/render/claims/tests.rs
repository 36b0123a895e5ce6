//! Rendering of claims, on handwritten events.

use super::*;
use crate::gate::GatedClaim;
use crate::render::{EventFormatter, OutputMode};
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy};
use counterfoil_flow::{AttemptOutcome, Event, Reply, RunState, Usage};
use serde_json::json;

fn claim(name: &str, verdict: Verdict, policy: ClaimPolicy, reason: &str) -> ClaimReport {
    ClaimReport {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind: ClaimKind::FilesChanged,
        policy,
        verdict,
        claimed: json!(["a.rs", "b.rs"]),
        observed: json!(["a.rs"]),
        reason: reason.to_owned(),
        evidence: Vec::new(),
        tree: None,
    }
}

fn changed(added: &[&str], renamed: &[(&str, &str)], total: u64) -> ChangedFiles {
    ChangedFiles {
        added: added.iter().map(|path| (*path).to_owned()).collect(),
        renamed: renamed.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect(),
        total,
        ..ChangedFiles::default()
    }
}

#[test]
fn live_lines_report_claims() {
    use ClaimPolicy::{Record, Require};
    let reason = "claimed 2 files, 1 of them did not change: b.rs";
    let events = [
        Event::AttemptStarted {
            attempt: "work#1".to_owned(),
            frame: String::new(),
            path: vec!["work".to_owned()],
            agent: Some("worker".to_owned()),
            n: 1,
            contract: None,
            builtin: None,
        },
        Event::RepairAsked {
            attempt: "work#1".to_owned(),
            reply: Reply::default(),
            usage: Usage::default(),
            // Only required claims cause a repair request.
            claims: vec![
                claim("files", Verdict::Refuted, Require, reason),
                claim("extra", Verdict::Refuted, Record, "not the reason"),
                claim("tests", Verdict::Verified, Require, ""),
            ],
        },
        Event::AttemptEnded(Box::new(Ended {
            attempt: "work#1".to_owned(),
            outcome: AttemptOutcome::Accepted,
            value: None,
            partial: None,
            reason: String::new(),
            violations: Vec::new(),
            claims: vec![
                claim("files", Verdict::Verified, Require, ""),
                claim("count", Verdict::Refuted, Record, ""),
                claim("tests", Verdict::Stale, Record, "the report is older than the last change"),
                claim("lint", Verdict::Unverifiable, Record, "there is no such check"),
            ],
            changed: Some(changed(&["a.rs"], &[], 1)),
            reply: None,
            usage: Usage::default(),
            reset_at: None,
            tree: None,
            checks: std::collections::BTreeMap::new(),
            rejected: Vec::new(),
        })),
    ];
    let mut formatter = EventFormatter::new(OutputMode::Live, Style::default());
    let lines: Vec<String> = events
        .iter()
        .filter_map(|event| formatter.event_lines(event, 0, &RunState::default()))
        .collect();
    insta::assert_snapshot!("live", lines.join("\n"));
}

#[test]
fn a_claim_that_stays_refuted_is_explained_once() {
    let refuted =
        || vec![claim("files", Verdict::Refuted, ClaimPolicy::Require, "b.rs did not change")];
    let started = Event::AttemptStarted {
        attempt: "work#1".to_owned(),
        frame: String::new(),
        path: vec!["work".to_owned()],
        agent: Some("worker".to_owned()),
        n: 1,
        contract: None,
        builtin: None,
    };
    let asked = || Event::RepairAsked {
        attempt: "work#1".to_owned(),
        reply: Reply::default(),
        usage: Usage::default(),
        claims: refuted(),
    };
    let ended = Ended {
        reason: "refuted: files: b.rs did not change (after 2 repairs)".to_owned(),
        claims: refuted(),
        ..Ended::new("work#1".to_owned(), AttemptOutcome::Claim)
    };
    let mut formatter = EventFormatter::new(OutputMode::Timeline, Style::default());
    let lines: Vec<String> = [started, asked(), asked(), Event::AttemptEnded(Box::new(ended))]
        .iter()
        .filter_map(|event| formatter.event_lines(event, 0, &RunState::default()))
        .flat_map(|lines| lines.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert_eq!(
        lines,
        [
            "0:00:00 ↺ work: repair requested: 1 claim refuted",
            "          ✗ files refuted: b.rs did not change",
            "0:00:00 ↺ work: repair requested: 1 claim refuted",
            "          ✗ files refuted, as before",
            "0:00:00 ✗ work: worker: 1 claim refuted, 2 repairs requested",
            "          ✗ files refuted, as before",
        ]
    );
}

#[test]
fn a_few_changed_files_are_listed() {
    for (changes, line) in [
        (changed(&["a", "b"], &[], 2), "files changed: 2 (a, b)"),
        (
            changed(&["a", "b", "c", "d", "e", "f", "g"], &[], 7),
            "files changed: 7 (a, b, c, d, e, …)",
        ),
        (changed(&["a"], &[], 900), "files changed: 900 (a, …)"),
        (changed(&[], &[], 3), "files changed: 3"),
        (changed(&["x"], &[("old", "new")], 2), "files changed: 2 (x, old to new)"),
        // A file that is both added and renamed is listed once.
        (changed(&["new"], &[("old", "new")], 1), "files changed: 1 (old to new)"),
        (changed(&["a\u{1b}[2J\nb"], &[], 1), r"files changed: 1 (a\u{1b}[2J\nb)"),
    ] {
        assert_eq!(files_changed(&changes), line);
    }
}

#[test]
fn values_are_formatted_for_people() {
    for (json, text) in [
        (json!(null), "-"),
        (json!([]), "none"),
        (json!(true), "true"),
        (json!(12), "12"),
        (json!("a b"), "a b"),
        (json!(["a", "b"]), "a, b"),
        (json!({"passed": 3, "failed": 0}), "passed: 3, failed: 0"),
        (json!([["a", "b"], {"x": 1}]), "[a, b], {\"x\":1}"),
    ] {
        assert_eq!(value(&json), text);
    }
    assert!(value(&json!(vec!["long"; 5000])).chars().count() <= 300);
}

#[test]
fn claims_fit_a_narrow_terminal_and_the_refuted_ones_are_red() {
    let made: Vec<GatedClaim> =
        [("files", "claimed 2 files, 1 of them did not change: b.rs"), ("more", "")]
            .map(|(name, reason)| GatedClaim {
                claim: claim(name, Verdict::Refuted, ClaimPolicy::Record, reason),
                counts: true,
            })
            .into();
    let claims = GatedClaims { made, not_made: Vec::new() };
    let style = Style { color: false, unicode: true, width: 40 };
    let text = verification(&claims, "scene/fix@1", "HEAD", &[], style);
    insta::assert_snapshot!("narrow", text);
    // The id of a commit is not broken.
    let (commit, wide) = ("a1".repeat(20), Style { width: 80, ..style });
    let shown = verification(&claims, "scene/fix@1", &commit, &[], wide);
    let first =
        format!("accepted: scene/fix@1; claims checked against the changes since\n{commit}\n\n  ✗");
    assert!(shown.starts_with(&first), "{shown}");
    let colored = verification(&claims, "scene/fix@1", "HEAD", &[], Style { color: true, ..style });
    let colored = crate::terminal::finish(&colored);
    assert!(colored.contains("\u{1b}[31m✗ files: refuted\u{1b}[0m"), "{colored}");
}

#[test]
fn a_required_claim_that_is_not_made_is_counted_on_its_own() {
    let missing = |name: &str, counts: bool| NotMade {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind: ClaimKind::Artifact,
        reason: "it is required".to_owned(),
        counts,
    };
    let made = vec![GatedClaim {
        claim: claim("lint", Verdict::Unverifiable, ClaimPolicy::Record, "no such check; add it"),
        counts: false,
    }];
    let not_made = vec![missing("report", true), missing("commit", false)];
    let claims = GatedClaims { made, not_made };
    let style = Style { color: false, unicode: true, width: usize::MAX };
    let text = verification(&claims, "scene/fix@1", "HEAD", &[], style);
    let end = "  ✗ report: required but not made
      evidence: it is required
  ○ commit: required but not made
      evidence: it is required

claims: 1 made, 2 required but not made, 1 not verifiable (no such check)
failed because of: report
";
    assert!(text.ends_with(end), "{text}");
}
