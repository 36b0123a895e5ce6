//! Claims of a contract that have the name of a claim that the engine makes.

use super::*;

pub(super) fn of_engine(name: &str, kind: ClaimKind, verdict: Verdict) -> ClaimReport {
    ClaimReport { field: String::new(), claimed: Value::Null, ..claim(name, kind, verdict) }
}

#[test]
fn a_claim_of_the_engine_does_not_replace_a_field_of_its_name() {
    for (name, kind) in [("tests", TestsKept), ("protected", Protected)] {
        for (verdict, totals) in [
            (Verdict::Verified, Totals { made: 1, verified: 1, ..Totals::default() }),
            (Verdict::Refuted, Totals { made: 1, refuted: 1, ..Totals::default() }),
            (Verdict::Unverifiable, Totals { made: 1, unverifiable: 1, ..Totals::default() }),
        ] {
            let field = claim(name, Command, verdict);
            let own = of_engine(name, kind, Verdict::Verified);
            for claims in [vec![field.clone(), own.clone()], vec![own, field]] {
                let ledger = ledger_of(attempt("work", 1, Accepted, claims, &["a"]));
                let line = format!("work#1.1 {name} {}", verdict.name());
                assert_eq!(summary_lines(&ledger), [line]);
                assert_eq!(ledger.totals(), totals, "{name}");
            }
        }
        let refuted = of_engine(name, kind, Verdict::Refuted);
        let claims = vec![claim(name, Command, Verdict::Refuted), refuted];
        let ledger = ledger_of(attempt("work", 1, Accepted, claims, &["a"]));
        assert_eq!(ledger.totals().refuted, 2, "both are kept");
    }
}

#[test]
fn each_of_two_claims_with_one_name_is_corrected_by_its_own_repair() {
    let lie = claim("tests", Command, Verdict::Refuted);
    let removed = of_engine("tests", TestsKept, Verdict::Refuted);
    let kept = of_engine("tests", TestsKept, Verdict::Verified);
    let truth = claim("tests", Command, Verdict::Verified);
    let ledger_after = |last: Vec<ClaimReport>| {
        ledger_of([
            started("work", 1),
            asked("work", 1, vec![lie.clone(), removed.clone()]),
            ended("work", 1, Accepted, last, &["a"]),
        ])
    };
    let half = ledger_after(vec![lie.clone(), kept.clone()]);
    assert_eq!(
        summary_lines(&half),
        [
            "work#1.1 tests refuted superseded",
            "work#1.1 tests refuted corrected superseded",
            "work#1.2 tests refuted",
        ]
    );
    let whole = ledger_after(vec![truth, kept]);
    let corrected = Totals { made: 3, verified: 1, corrected: 2, ..Totals::default() };
    assert_eq!(whole.totals(), corrected);
}

#[test]
fn statistics_have_a_group_for_each() {
    let claims = vec![
        claim("tests", Command, Verdict::Refuted),
        of_engine("tests", TestsKept, Verdict::Verified),
        of_engine("protected", Protected, Verdict::Verified),
    ];
    let mut stats = Stats::new(&[Dimension::Field]);
    let start = began(&[("worker", "command:agent", None)]);
    let attempt = attempt("work", 1, Accepted, claims, &["a"]);
    for (at, event) in [start].into_iter().chain(attempt).enumerate() {
        stats.on_event(&event, i64::try_from(at).unwrap());
    }
    let tally = stats.tally();
    let groups: Vec<(Option<&str>, u64)> = tally
        .groups
        .iter()
        .map(|group| (group.key.field.as_deref(), group.claims.claims))
        .collect();
    assert_eq!(
        groups,
        [(Some("tests"), 1), (Some("(protected)"), 1), (Some("(tests)"), 1)],
        "{tally:?}"
    );
}
