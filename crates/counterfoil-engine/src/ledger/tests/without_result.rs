//! An attempt that ends without a result after it was asked for a repair: what the reply before it
//! claimed stands, beside the claims of the engine that were verified again.

use super::names::of_engine;
use super::*;

fn tests_kept(verdict: Verdict) -> ClaimReport {
    of_engine("tests", TestsKept, verdict)
}

/// A reply that lies about a check, tells the truth about its files and removes a test.
fn lie() -> Vec<ClaimReport> {
    vec![
        verified("files", FilesChanged),
        claim("tests_pass", Command, Verdict::Refuted),
        of_engine("protected", Protected, Verdict::Verified),
        tests_kept(Verdict::Refuted),
    ]
}

/// An attempt whose first reply lies, and which then ends like this, with these claims.
fn died(outcome: AttemptOutcome, left: Vec<ClaimReport>) -> [Event; 3] {
    [started("work", 1), asked("work", 1, lie()), ended("work", 1, outcome, left, &["a"])]
}

#[test]
fn no_claim_is_corrected_by_an_attempt_that_ends_without_a_result() {
    use AttemptOutcome::{Agent, Cancelled, Timeout};
    for outcome in [Agent, Transport, Timeout, Contract, Cancelled] {
        let ledger = ledger_of(died(outcome, vec![tests_kept(Verdict::Refuted)]));
        assert_eq!(
            summary_lines(&ledger),
            [
                "work#1.1 files verified",
                "work#1.1 tests_pass refuted",
                "work#1.1 tests refuted superseded",
                "work#1.2 tests refuted",
            ],
            "{outcome:?}"
        );
        assert_eq!(
            ledger.totals(),
            Totals { made: 3, verified: 1, refuted: 2, ..Totals::default() },
            "{outcome:?}"
        );
    }
}

#[test]
fn only_the_same_claim_is_replaced_and_not_by_one_that_cannot_be_checked() {
    let changed = of_engine("protected", Protected, Verdict::Refuted);
    let other = ledger_of(died(Transport, vec![changed]));
    assert_eq!(
        summary_lines(&other),
        [
            "work#1.1 files verified",
            "work#1.1 tests_pass refuted",
            "work#1.1 tests refuted",
            "work#1.2 protected refuted",
        ]
    );
    let unknown = ledger_of(died(Transport, vec![tests_kept(Verdict::Unverifiable)]));
    assert_eq!(
        summary_lines(&unknown),
        [
            "work#1.1 files verified",
            "work#1.1 tests_pass refuted",
            "work#1.1 tests refuted",
            "work#1.2 tests unverifiable",
        ]
    );
}

#[test]
fn a_retry_corrects_what_an_attempt_without_a_result_left_refuted() {
    let first = died(Transport, vec![tests_kept(Verdict::Refuted)]);
    let broken = attempt("work", 2, Transport, vec![tests_kept(Verdict::Refuted)], &[]);
    let so_far = ledger_of(first.clone().into_iter().chain(broken.clone()));
    assert_eq!(
        summary_lines(&so_far),
        [
            "work#1.1 files verified",
            "work#1.1 tests_pass refuted",
            "work#1.1 tests refuted superseded",
            "work#1.2 tests refuted superseded",
            "work#2.1 tests refuted",
        ]
    );
    let truth = vec![
        verified("files", FilesChanged),
        verified("tests_pass", Command),
        tests_kept(Verdict::Verified),
    ];
    let good = attempt("work", 3, Accepted, truth, &[]);
    let ledger = ledger_of(first.into_iter().chain(broken).chain(good));
    let totals = ledger.totals();
    assert_eq!((totals.verified, totals.refuted), (2, 0), "{:?}", summary_lines(&ledger));
    let corrected = ledger.entries().into_iter().filter(|entry| entry.corrected);
    let corrected: BTreeSet<String> = corrected.map(|entry| entry.claim.claim).collect();
    assert_eq!(corrected, BTreeSet::from(["tests".to_owned(), "tests_pass".to_owned()]));
}

/// The budget is used up with a reply that makes claims: it is a reply like any other.
#[test]
fn claims_of_a_result_replace_those_before_it_however_the_attempt_ends() {
    let last = vec![refuted("files"), tests_kept(Verdict::Refuted)];
    let ledger = ledger_of(died(AttemptOutcome::Cancelled, last));
    assert_eq!(
        summary_lines(&ledger),
        [
            "work#1.1 files verified superseded",
            "work#1.1 tests_pass refuted corrected superseded",
            "work#1.1 tests refuted superseded",
            "work#1.2 files refuted",
            "work#1.2 tests refuted",
        ]
    );
}
