//! Claims of a contract: what is refused when it loads, and what an agent is told of one that is
//! refuted.
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_contract::render::prompt::{self, Delivery};
use serde_json::{Value, json};

fn with_claims(claims: &str) -> Result<Contract, String> {
    let text = format!(
        "contract: acme/change\nversion: 1\nfields: {{ ok: boolean, n: integer, files: [path], sha: string, \
         tests?: {{ failed: integer }} }}\nclaims: {claims}"
    );
    Contract::from_yaml(&text).map_err(|error| error.to_string())
}

#[test]
fn claims_that_can_be_held_against_something_load() {
    for claims in [
        "{ files: { kind: files-modified, match: subset } }",
        "{ ok: { kind: command, check: test, when: 'result.n > 0 && result.ok' } }",
        "{ ok: { kind: command, run: make, report: junit.xml } }",
        "{ n: { kind: count, of: /files } }",
        "{ n: { kind: count, figure: tests-added } }",
        "{ n: { kind: count, figure: passed, report: junit.xml } }",
        "{ n: { kind: count, figure: passed, check: test } }",
        "{ sha: { kind: commit, files: /files, policy: require } }",
        "{ sha: { kind: artifact, contract: acme/tasks@2 } }",
        "{ tests/failed: { kind: count } }",
    ] {
        if let Err(error) = with_claims(claims) {
            panic!("{claims}: {error}");
        }
    }
}

#[test]
fn claims_that_mean_nothing_do_not() {
    for (claims, place, what) in [
        ("{ file: { kind: files-changed } }", "claims.file", "'file' is not a field of the schema"),
        ("{ ok: { kind: command } }", "claims.ok", "names a command or a check"),
        ("{ ok: { kind: command, run: a, check: b } }", "claims.ok", "names a command or a check"),
        ("{ ok: { kind: command, run: ' ' } }", "claims.ok.run", "is not a command"),
        ("{ ok: { kind: command, check: t, when: result.n } }", "claims.ok.when", "not a boolean"),
        ("{ ok: { kind: command, check: t, when: result.m } }", "claims.ok.when", "m"),
        (
            "{ ok: { kind: command, check: t, when: 'result.tests.failed == 0' } }",
            "claims.ok.when",
            "tests",
        ),
        ("{ n: { kind: count, of: /list } }", "claims.n.of", "is not a field"),
        ("{ n: { kind: count, of: /files, figure: total } }", "claims.n", "not both"),
        ("{ n: { kind: count, figure: passed } }", "claims.n.figure", "needs a source"),
        ("{ n: { kind: count, figure: passed, run: a, check: b } }", "claims.n", "not from both"),
        (
            "{ n: { kind: count, figure: files-added, report: x } }",
            "claims.n.report",
            "is not allowed here",
        ),
        ("{ n: { kind: count, when: result.ok } }", "claims.n.when", "is not allowed here"),
        ("{ sha: { kind: commit, files: /paths } }", "claims.sha.files", "is not a field"),
        ("{ sha: { kind: commit, match: subset } }", "claims.sha.match", "is not allowed here"),
        (
            "{ files: { kind: files-added, files: /files } }",
            "claims.files.files",
            "is not allowed here",
        ),
        ("{ sha: { kind: artifact, contract: nothing } }", "claims.sha.contract", ""),
        ("{ ok: { kind: protected } }", "claims.ok.kind", "this claim is implied for every step"),
        (
            "{ tests/failed: { kind: count }, tests.failed: { kind: count } }",
            "claims.tests/failed",
            "both called `tests_failed`",
        ),
    ] {
        let error = with_claims(claims).expect_err(claims);
        assert!(
            error.contains("C0406") && error.contains(place) && error.contains(what),
            "{claims}: {error}"
        );
    }
}

fn refuted(
    field: &str,
    kind: ClaimKind,
    claimed: Value,
    observed: Value,
    reason: &str,
) -> ClaimReport {
    ClaimReport {
        claim: field.replace('/', "_"),
        field: field.to_owned(),
        kind,
        policy: ClaimPolicy::Require,
        verdict: Verdict::Refuted,
        claimed,
        observed,
        reason: reason.to_owned(),
        evidence: Vec::new(),
        tree: None,
    }
}

#[test]
fn an_agent_is_shown_what_differs() {
    let contract = with_claims("{}").unwrap();
    let mut files = refuted(
        "files",
        ClaimKind::FilesModified,
        json!(["src/a.rs", "src/b.rs"]),
        json!(["src/a.rs"]),
        "claimed 2 files modified, 1 of them did not change: src/b.rs",
    );
    files.evidence.push(Evidence::new("diff", "1 file changed since the step began: 1 modified"));
    let mut tests = refuted(
        "ok",
        ClaimKind::Command,
        json!(true),
        json!({"exit_code": 101, "failed": 1}),
        "claimed that it succeeds, and `cargo test` exited with 101",
    );
    tests.evidence.push(Evidence {
        exit_code: Some(101),
        output: "running 2 tests\n```\ntest a ... FAILED\n".to_owned(),
        ..Evidence::new("command", "`cargo test` exited with 101 after 1.2 s")
    });
    insta::assert_snapshot!(prompt::repair_claims(&contract, &[files, tests], Delivery::Text));
}

#[test]
fn a_prompt_stays_short() {
    let contract = with_claims("{}").unwrap();
    let names: Vec<String> = (0..5000).map(|n| format!("file-{n}")).collect();
    let mut report =
        refuted("files", ClaimKind::FilesChanged, json!(names), json!(names), "all of them");
    report.evidence =
        vec![Evidence { output: "ä\n".repeat(100_000), ..Evidence::new("command", "x") }; 50];
    let text = prompt::repair_claims(&contract, &vec![report; 50], Delivery::Text);
    assert!(text.len() < 40_000, "{}", text.len());
    assert!(text.contains("and 4980 more") && text.contains("And 30 more refuted claims."));
    assert!(
        prompt::repair_claims(&contract, &[], Delivery::Text).contains("nothing to send again")
    );
}

#[test]
fn a_block_is_asked_for_as_a_block() {
    let text = "contract: acme/block\nversion: 1\nframing: output-block\nfields: { ok: boolean }";
    let contract = Contract::from_yaml(text).unwrap();
    let report = refuted("ok", ClaimKind::Command, json!(true), Value::Null, "it fails");
    insta::assert_snapshot!(prompt::repair_claims(&contract, &[report], Delivery::Text));
}
