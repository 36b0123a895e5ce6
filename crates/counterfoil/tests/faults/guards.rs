//! Guards whose values only the run has: what the checker could not know ends the run in words.

use crate::house::{AGENT, House, work};

/// A run whose agent hands back this, and is then held against this guard.
fn guarded(guard: &str, result: &str) -> House {
    let house = House::new();
    house.file(
        "contracts/ok.yaml",
        "contract: acme/ok\nversion: 1\nfields: { n: integer, list: [string] }\nexamples: [{ n: 1, list: [] }]\n",
    );
    let next =
        format!("work: {{ agent: worker, next: [{{ when: '{guard}', go: end }}, {{ go: end }}] }}");
    house.file("flow.yaml", work("").replace("work: { agent: worker, go: end }", &next));
    house.file("agent.sh", format!("echo '{result}'\n"));
    house
}

#[test]
fn a_guard_that_divides_by_zero_says_so() {
    let house = guarded("10 / result.n > 1", r#"{"n": 0, "list": []}"#);
    let report = house.ends(AGENT, 1, "failed", None, &["10 / result.n > 1", "zero"]);
    assert_eq!(report["state"], "work");
    // The result itself was good, and is kept.
    assert_eq!(report["attempts"][0]["outcome"], "accepted");
}

#[test]
fn a_guard_that_looks_past_the_end_of_a_list_says_so() {
    let house = guarded("result.list[3] == \"x\"", r#"{"n": 1, "list": ["a"]}"#);
    let report = house.ends(AGENT, 1, "failed", None, &["result.list[3]"]);
    assert_eq!(report["attempts"][0]["outcome"], "accepted");
}
