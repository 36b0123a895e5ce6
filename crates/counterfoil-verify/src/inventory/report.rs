//! The claim report about the tests of a step.

use super::changes::TestDelta;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_contract::text::{escape_control, join_limited, pluralize};
use serde_json::{Map, Value};

/// The maximum number of tests that are listed for each kind of change.
const MAX_LISTED: usize = 20;

/// The maximum number of notes.
const MAX_NOTES: usize = 20;

/// The report on the claim that no test was removed, skipped, emptied or switched off.
pub fn report(delta: &TestDelta, policy: ClaimPolicy) -> ClaimReport {
    let lost = [
        (&delta.removed, "was removed", "were removed"),
        (&delta.skipped, "is skipped now", "are skipped now"),
        (&delta.emptied, "is empty now", "are empty now"),
    ];
    let mut reasons = Vec::new();
    for (tests, one, many) in lost {
        if !tests.is_empty() {
            let became = if tests.len() == 1 { one } else { many };
            let names = join_limited(tests.iter().map(ToString::to_string), 5);
            reasons.push(format!("{} {became}: {names}", pluralize(tests.len(), "test")));
        }
    }
    if !delta.ineffective.is_empty() {
        let names = join_limited(delta.ineffective.iter().map(ToString::to_string), 5);
        let count = pluralize(delta.ineffective.len(), "test");
        let check =
            if delta.ineffective.len() == 1 { "checks what it did" } else { "check what they did" };
        reasons.push(format!("{count} no longer {check}: {names}"));
    }
    if !delta.selection.is_empty() {
        let changes = join_limited(delta.selection.iter().map(ToString::to_string), 5);
        reasons.push(format!("the selection of tests changed: {changes}"));
    }
    let verdict = match () {
        () if !reasons.is_empty() => Verdict::Refuted,
        () if delta.is_incomplete => {
            reasons.extend(delta.notes.first().map(|note| escape_control(note)));
            Verdict::Unverifiable
        }
        () => Verdict::Verified,
    };
    ClaimReport {
        claim: "tests".to_owned(),
        field: String::new(),
        kind: ClaimKind::TestsKept,
        policy,
        verdict,
        claimed: Value::Null,
        observed: observed(delta),
        reason: reasons.join("; "),
        evidence: evidence(delta),
        tree: None,
    }
}

/// The counts of the changes, and the names of the tests that were removed, skipped or emptied.
fn observed(delta: &TestDelta) -> Value {
    let mut observed = Map::new();
    for (name, tests) in
        [("removed", &delta.removed), ("skipped", &delta.skipped), ("emptied", &delta.emptied)]
    {
        if !tests.is_empty() {
            observed.insert(name.to_owned(), names(tests));
        }
    }
    if !delta.ineffective.is_empty() {
        observed.insert("ineffective".to_owned(), names(&delta.ineffective));
    }
    if !delta.selection.is_empty() {
        observed.insert("selection".to_owned(), names(&delta.selection));
    }
    for (name, count) in [
        ("added", delta.added.len()),
        ("moved", delta.moved.len()),
        ("renamed", delta.renamed.len()),
        ("weakened", delta.weakened.len()),
    ] {
        if count > 0 {
            observed.insert(name.to_owned(), count.into());
        }
    }
    if observed.is_empty() { Value::Null } else { observed.into() }
}

fn names(tests: &[impl ToString]) -> Value {
    let mut list: Vec<Value> =
        tests.iter().take(MAX_LISTED).map(|test| test.to_string().into()).collect();
    if tests.len() > MAX_LISTED {
        list.push(format!("and {} more", tests.len() - MAX_LISTED).into());
    }
    list.into()
}

fn evidence(delta: &TestDelta) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::new("diff", summary(delta))];
    for (what, pairs) in [("moved", &delta.moved), ("renamed", &delta.renamed)] {
        let lines = pairs
            .iter()
            .take(MAX_LISTED)
            .map(|pair| format!("{what}: {} to {}", pair.from, pair.to));
        evidence.extend(lines.map(|line| Evidence::new("diff", line)));
    }
    for weak in delta.weakened.iter().take(MAX_LISTED) {
        let was =
            format!("{} before, {} now", pluralize(weak.before as usize, weak.what), weak.after);
        evidence.push(Evidence::new("diff", format!("{}: {was}", weak.test)));
    }
    evidence.extend(
        delta.notes.iter().take(MAX_NOTES).map(|note| Evidence::new("note", escape_control(note))),
    );
    if let Some(more @ 1..) = delta.notes.len().checked_sub(MAX_NOTES) {
        evidence.push(Evidence::new("note", format!("and {}", pluralize(more, "more note"))));
    }
    evidence
}

/// A summary such as `2 tests added, none removed`.
fn summary(delta: &TestDelta) -> String {
    let counts = [
        ("removed", delta.removed.len()),
        ("skipped", delta.skipped.len()),
        ("emptied", delta.emptied.len()),
        ("without effect", delta.ineffective.len()),
        ("moved", delta.moved.len()),
        ("renamed", delta.renamed.len()),
    ];
    let mut line = match delta.added.len() {
        0 if counts.iter().all(|(_, count)| *count == 0) => {
            return "no test added, none removed".to_owned();
        }
        0 => "no test added".to_owned(),
        added => format!("{} added", pluralize(added, "test")),
    };
    for (what, count) in counts {
        match count {
            0 if what == "removed" => line.push_str(", none removed"),
            0 => {}
            _ => line.push_str(&format!(", {count} {what}")),
        }
    }
    line
}
