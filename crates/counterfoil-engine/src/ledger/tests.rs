//! The ledger for hand-written events: a claim, what happens after it, and its current verdict.

mod figures;
mod names;
mod without_result;

use super::*;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, Evidence};
use counterfoil_flow::{Budget, Ended, Reply, Started, TransitionTaken, Usage};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn claim(name: &str, kind: ClaimKind, verdict: Verdict) -> ClaimReport {
    ClaimReport {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind,
        policy: ClaimPolicy::Require,
        verdict,
        claimed: json!(true),
        observed: Value::Null,
        reason: String::new(),
        evidence: Vec::new(),
        tree: None,
    }
}

fn verified(name: &str, kind: ClaimKind) -> ClaimReport {
    claim(name, kind, Verdict::Verified)
}

fn refuted(name: &str) -> ClaimReport {
    claim(name, ClaimKind::FilesChanged, Verdict::Refuted)
}

fn reply(status: &str, codes: &[&str]) -> Reply {
    let codes = codes.iter().map(|code| (*code).to_owned()).collect();
    Reply { status: status.to_owned(), codes, ..Reply::default() }
}

fn began(players: &[(&str, &str, Option<&str>)]) -> Event {
    let player = |spec: &str, model: Option<&str>| AssignedAgent {
        spec: spec.to_owned(),
        backs_off: false,
        retry: BTreeMap::new(),
        model: model.map(str::to_owned),
        version: None,
    };
    let agents =
        players.iter().map(|(name, spec, model)| ((*name).to_owned(), player(spec, *model)));
    Event::RunStarted(Box::new(Started {
        run: "r".to_owned(),
        workflow: "w".to_owned(),
        version: 1,
        bundle: String::new(),
        decide: 1,
        inputs: Map::new(),
        agents: agents.collect(),
        budget: Budget::default(),
        repo: String::new(),
        observed: String::new(),
        own: Vec::new(),
        base: None,
        config: None,
    }))
}

fn started(path: &str, n: u32) -> Event {
    Event::AttemptStarted {
        attempt: format!("{path}#{n}"),
        frame: String::new(),
        path: path.split('/').map(str::to_owned).collect(),
        agent: Some("worker".to_owned()),
        n,
        contract: Some("scene/step@1".to_owned()),
        builtin: None,
    }
}

fn asked(path: &str, n: u32, claims: Vec<ClaimReport>) -> Event {
    let status = if claims.is_empty() { "rejected" } else { "accepted" };
    let reply = reply(status, if claims.is_empty() { &["C0301"] } else { &[] });
    Event::RepairAsked { attempt: format!("{path}#{n}"), reply, usage: Usage::default(), claims }
}

fn ended(
    path: &str,
    n: u32,
    outcome: AttemptOutcome,
    claims: Vec<ClaimReport>,
    changed: &[&str],
) -> Event {
    let status = if outcome == AttemptOutcome::Contract { "rejected" } else { "accepted" };
    let modified: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
    Event::AttemptEnded(Box::new(Ended {
        claims,
        changed: Some(ChangedFiles {
            total: modified.len() as u64,
            modified,
            ..ChangedFiles::default()
        }),
        reply: Some(reply(status, &[])),
        ..Ended::new(format!("{path}#{n}"), outcome)
    }))
}

/// An attempt of one reply.
fn attempt(
    path: &str,
    n: u32,
    outcome: AttemptOutcome,
    claims: Vec<ClaimReport>,
    changed: &[&str],
) -> [Event; 2] {
    [started(path, n), ended(path, n, outcome, claims, changed)]
}

fn ledger_of(events: impl IntoIterator<Item = Event>) -> Ledger {
    let mut ledger = Ledger::new();
    for (at, event) in events.into_iter().enumerate() {
        ledger.on_event(&event, i64::try_from(at).unwrap());
    }
    ledger
}

/// Each entry as `path#n.reply claim standing`, with `corrected` and `superseded`.
fn summary_lines(ledger: &Ledger) -> Vec<String> {
    let one = |entry: &Entry| {
        let mut line = format!(
            "{}#{}.{} {} {}",
            entry.path.join("/"),
            entry.n,
            entry.reply,
            entry.claim.claim,
            entry.standing.name()
        );
        for (holds, word) in [(entry.corrected, " corrected"), (entry.superseded, " superseded")] {
            line += if holds { word } else { "" };
        }
        line
    };
    ledger.entries().iter().map(one).collect()
}

use AttemptOutcome::{Accepted, Claim as Lost, Contract, Transport};
use ClaimKind::{
    Artifact, Command, Commands, Commit, Count, FilesChanged, Fixed, Location, Protected, TestsKept,
};

#[test]
fn a_later_change_makes_stale_what_speaks_of_the_tree() {
    let mut by_report = verified("total", Count);
    by_report.evidence = vec![Evidence::new("report", "junit.xml: 12 tests")];
    let claims = vec![
        verified("files", FilesChanged),
        verified("tests", Command),
        verified("checks", Commands),
        by_report,
        verified("listed", Count),
        verified("sha", Commit),
        verified("places", Location),
        verified("fixed", Fixed),
        verified("protected", Protected),
        verified("tests_kept", TestsKept),
    ];
    let first = attempt("work", 1, Accepted, claims, &["a.rs"]);
    let before = ledger_of(first.clone());
    assert_eq!(
        before.totals(),
        Totals { made: 10, verified: 10, ..Totals::default() },
        "its own changes are no later ones"
    );

    let unchanged =
        ledger_of(first.clone().into_iter().chain(attempt("look", 1, Accepted, vec![], &[])));
    assert_eq!(unchanged.totals().stale, 0);

    let later = ledger_of(first.into_iter().chain(attempt(
        "polish",
        2,
        Contract,
        vec![],
        &["b.rs", "c.rs"],
    )));
    let stale: Vec<(String, String)> = later
        .entries()
        .into_iter()
        .filter(|entry| entry.standing == Verdict::Stale)
        .map(|entry| (entry.claim.claim, entry.since))
        .collect();
    let why = "polish changed 2 files since".to_owned();
    let expected = ["tests", "checks", "total"].map(|name| (name.to_owned(), why.clone()));
    assert_eq!(stale, expected);
    assert_eq!(later.totals(), Totals { made: 10, verified: 7, stale: 3, ..Totals::default() });
}

#[test]
fn an_artifact_is_stale_once_it_is_changed_itself() {
    let artifact = |claimed: Value| ClaimReport { claimed, ..verified("plan", Artifact) };
    for (claimed, changed, stale) in [
        (json!("docs/plan.md"), &["src/a.rs"][..], false),
        (json!("docs/plan.md"), &["src/a.rs", "docs/plan.md"], true),
        (json!("./docs/plan.md"), &["docs/plan.md"], true),
        (json!(["x", "docs/plan.md"]), &["docs/plan.md"], true),
        (json!({"path": "docs/plan.md"}), &["docs/plan.md"], true),
        (json!("/home/kim/repo/docs/plan.md"), &["docs/plan.md"], true),
        (json!("other/docs/plan.md"), &["docs/plan.md"], false),
        (json!(null), &["docs/plan.md"], false),
    ] {
        let first =
            attempt("plan", 1, Accepted, vec![artifact(claimed.clone())], &["docs/plan.md"]);
        let ledger =
            ledger_of(first.into_iter().chain(attempt("work", 1, Accepted, vec![], changed)));
        assert_eq!(ledger.totals().stale == 1, stale, "{claimed} {changed:?}");
    }
}

#[test]
fn an_artifact_is_stale_if_more_changed_than_is_listed() {
    let claimed = ClaimReport { claimed: json!("plan.md"), ..verified("plan", Artifact) };
    let mut events = Vec::from(attempt("plan", 1, Accepted, vec![claimed], &[]));
    events.extend(attempt("work", 1, Accepted, vec![], &["a.rs"]));
    let Some(Event::AttemptEnded(last)) = events.last_mut() else {
        panic!("the last event is an end")
    };
    last.changed.as_mut().unwrap().total = 5000;
    let entry = ledger_of(events).entries().remove(0);
    assert_eq!(entry.since, "work changed 5000 files since, and not all of them are listed");
}

#[test]
fn a_refuted_or_unverifiable_claim_does_not_go_stale() {
    for verdict in [Verdict::Refuted, Verdict::Unverifiable, Verdict::Stale] {
        let first = attempt("work", 1, Accepted, vec![claim("tests", Command, verdict)], &[]);
        let ledger =
            ledger_of(first.into_iter().chain(attempt("more", 1, Accepted, vec![], &["a"])));
        assert_eq!(ledger.entries()[0].standing, verdict);
        assert!(ledger.entries()[0].since.is_empty());
    }
}

#[test]
fn a_claim_that_a_repair_puts_right_is_corrected_and_kept() {
    let ledger = ledger_of([
        started("work", 1),
        asked("work", 1, vec![refuted("files"), refuted("extra"), verified("sha", Commit)]),
        asked("work", 1, vec![]),
        ended(
            "work",
            1,
            Accepted,
            vec![verified("files", FilesChanged), verified("sha", Commit)],
            &["a"],
        ),
    ]);
    assert_eq!(
        summary_lines(&ledger),
        [
            "work#1.1 files refuted corrected superseded",
            // What is not said any more is withdrawn.
            "work#1.1 extra refuted corrected superseded",
            "work#1.1 sha verified superseded",
            "work#1.3 files verified",
            "work#1.3 sha verified",
        ]
    );
    assert_eq!(ledger.totals(), Totals { made: 4, verified: 2, corrected: 2, ..Totals::default() });
}

#[test]
fn a_claim_that_is_refuted_to_the_end_is_not_corrected() {
    let again = [
        started("work", 1),
        asked("work", 1, vec![refuted("files")]),
        ended("work", 1, Lost, vec![refuted("files")], &[]),
    ];
    let ledger = ledger_of(again);
    assert_eq!(
        summary_lines(&ledger),
        ["work#1.1 files refuted superseded", "work#1.2 files refuted"]
    );
    assert_eq!(ledger.totals(), Totals { made: 1, refuted: 1, ..Totals::default() });
    // The last reply had no result at all: its claims were not verified, so the first reply counts.
    let rejected = [
        started("work", 1),
        asked("work", 1, vec![refuted("files")]),
        ended("work", 1, Contract, vec![], &[]),
    ];
    assert_eq!(summary_lines(&ledger_of(rejected)), ["work#1.1 files refuted"]);
}

#[test]
fn the_last_word_at_a_place_counts() {
    let events = [
        attempt("work", 1, Accepted, vec![refuted("files"), verified("tests", Command)], &["a"]),
        attempt("look", 1, Accepted, vec![verified("files", FilesChanged)], &[]),
        attempt("work", 2, Accepted, vec![verified("files", FilesChanged)], &["b"]),
        attempt("fan/x/work", 1, Accepted, vec![refuted("files")], &[]),
        attempt("fan/y/work", 1, Accepted, vec![verified("files", FilesChanged)], &[]),
    ];
    let ledger = ledger_of(events.into_iter().flatten());
    assert_eq!(
        summary_lines(&ledger),
        [
            "work#1.1 files refuted corrected superseded",
            // The second round says nothing of tests, and changed the tree they ran on.
            "work#1.1 tests stale",
            "look#1.1 files verified",
            "work#2.1 files verified",
            "fan/x/work#1.1 files refuted",
            "fan/y/work#1.1 files verified",
        ]
    );
    assert_eq!(
        ledger.totals(),
        Totals { made: 6, verified: 3, refuted: 1, stale: 1, corrected: 1, ..Totals::default() }
    );
}

/// The transition that begins another visit of a state.
fn visited_again(from: &str, to: &str) -> Event {
    let taken: TransitionTaken =
        serde_json::from_value(json!({"frame": "", "from": from, "to": to})).unwrap();
    Event::TransitionTaken(Box::new(taken))
}

#[test]
fn a_visit_for_another_task_does_not_replace_what_was_said_of_the_first() {
    let first = attempt("work", 1, Accepted, vec![refuted("files")], &["a"]);
    let second = attempt("work", 2, Accepted, vec![verified("files", FilesChanged)], &["b"]);
    let ledger = ledger_of(first.into_iter().chain([visited_again("work", "work")]).chain(second));
    assert_eq!(summary_lines(&ledger), ["work#1.1 files refuted", "work#2.1 files verified"]);
    assert_eq!(ledger.totals(), Totals { made: 2, verified: 1, refuted: 1, ..Totals::default() });
}

#[test]
fn a_later_visit_replaces_what_was_said_of_the_tree() {
    for (later, first, totals) in [
        (
            Verdict::Verified,
            "work#1.1 tests refuted corrected superseded",
            Totals { made: 2, verified: 1, corrected: 1, ..Totals::default() },
        ),
        (
            Verdict::Refuted,
            "work#1.1 tests refuted superseded",
            Totals { made: 1, refuted: 1, ..Totals::default() },
        ),
        (
            Verdict::Unverifiable,
            "work#1.1 tests refuted",
            Totals { made: 2, refuted: 1, unverifiable: 1, ..Totals::default() },
        ),
    ] {
        let lie = claim("tests", Command, Verdict::Refuted);
        let events = Vec::from(attempt("work", 1, Accepted, vec![lie], &["a"]));
        let again = attempt("work", 2, Accepted, vec![claim("tests", Command, later)], &["b"]);
        let ledger =
            ledger_of(events.into_iter().chain([visited_again("work", "work")]).chain(again));
        assert_eq!(summary_lines(&ledger)[0], first, "{later:?}");
        assert_eq!(ledger.totals(), totals, "{later:?}");
    }
}

#[test]
fn a_refuted_claim_is_not_corrected_by_one_that_cannot_be_checked() {
    let mut vague = claim("files", FilesChanged, Verdict::Unverifiable);
    vague.reason = "no list".to_owned();
    let ledger = ledger_of([
        started("work", 1),
        asked("work", 1, vec![refuted("files")]),
        ended("work", 1, Accepted, vec![vague], &["a"]),
    ]);
    assert_eq!(summary_lines(&ledger), ["work#1.1 files refuted", "work#1.2 files unverifiable"]);
    let totals = ledger.totals();
    assert_eq!((totals.made, totals.refuted, totals.unverifiable), (2, 1, 1));
    assert_eq!(totals.unverifiable_because, ["no list"]);
}

#[test]
fn what_was_not_accepted_does_not_count_once_a_later_attempt_was() {
    let lost = attempt("work", 1, Lost, vec![refuted("files")], &[]);
    let broken = attempt("work", 2, Transport, vec![], &[]);
    let good = attempt("work", 3, Accepted, vec![verified("sha", Commit)], &[]);
    let so_far = ledger_of(lost.clone().into_iter().chain(broken.clone()));
    assert_eq!(so_far.totals(), Totals { made: 1, refuted: 1, ..Totals::default() });
    let ledger = ledger_of(lost.into_iter().chain(broken).chain(good));
    assert_eq!(
        summary_lines(&ledger),
        ["work#1.1 files refuted corrected superseded", "work#3.1 sha verified"]
    );
}

#[test]
fn evidence_of_the_tree_that_an_attempt_left_is_not_outdated_by_that_attempt() {
    for (tree, standing) in [("t1", Verdict::Verified), ("t0", Verdict::Stale)] {
        let early = ClaimReport { tree: Some(tree.to_owned()), ..verified("tests", Command) };
        let mut last = ended("work", 1, Contract, vec![], &["a"]);
        let Event::AttemptEnded(end) = &mut last else { panic!("an end") };
        end.tree = Some("t1".to_owned());
        let ledger = ledger_of([started("work", 1), asked("work", 1, vec![early]), last]);
        assert_eq!(ledger.entries()[0].standing, standing, "{tree}");
    }
}

#[test]
fn entries_say_who_and_where() {
    let opened = Event::FrameOpened {
        frame: "build/a".to_owned(),
        parent: Some(String::new()),
        machine: String::new(),
        item: Some("a".to_owned()),
        state: "build".to_owned(),
        inputs: Map::new(),
        variables: Map::new(),
        counts: BTreeMap::new(),
        iteration: None,
    };
    let mut start = started("build/a", 1);
    if let Event::AttemptStarted { frame, .. } = &mut start {
        "build/a".clone_into(frame);
    }
    let end = ended("build/a", 1, Accepted, vec![refuted("files")], &[]);
    let entry = ledger_of([
        began(&[("worker", "command:/opt/bin/agent --fast", None)]),
        opened,
        start,
        end,
    ])
    .entries()
    .remove(0);
    assert_eq!((entry.item.as_deref(), entry.player.as_deref()), (Some("a"), Some("agent")));
    let json = serde_json::to_value(&entry).unwrap();
    for (key, value) in [
        ("path", json!(["build", "a"])),
        ("contract", json!("scene/step@1")),
        ("claim", json!("files")),
        ("kind", json!("files-changed")),
        ("verdict", json!("refuted")),
        ("standing", json!("refuted")),
        ("at", json!(3)),
        ("corrected", json!(false)),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
}

#[test]
fn events_of_attempts_that_nobody_heard_of_are_no_crash() {
    let ledger = ledger_of([
        asked("work", 1, vec![refuted("files")]),
        ended("work", 1, Accepted, vec![refuted("files")], &["a"]),
        Event::AttemptLost {
            attempt: "work#1".to_owned(),
            usage: Usage::default(),
            changed: Vec::new(),
        },
    ]);
    assert!(ledger.is_empty());
    assert_eq!(ledger.totals(), Totals::default());
}

#[test]
fn players_are_named_in_a_word() {
    for (spec, name) in [
        ("command:agent -p", "agent"),
        ("command:'/opt/my tools/agent' --fast", "agent"),
        ("command:./run/", "run"),
        ("command:'unclosed", "command:'unclosed"),
        ("command:/", "command"),
        ("script:/tmp/a/script.yaml", "script"),
        ("somebody", "somebody"),
        ("", ""),
    ] {
        assert_eq!(program_name(spec), name, "{spec}");
    }
}

/// A run of up to eight attempts at three places, with up to three replies each.
fn any_run() -> impl Strategy<Value = Vec<Event>> {
    let kind = prop::sample::select(vec![Command, FilesChanged, Artifact, Commit]);
    let report = (0..3_u8, kind, prop::sample::select(Verdict::ALL.to_vec()))
        .prop_map(|(name, kind, verdict)| claim(&format!("c{name}"), kind, verdict));
    let claims = || prop::collection::vec(report.clone(), 0..4);
    let outcome = prop::sample::select(vec![Accepted, Lost, Contract, Transport]);
    let one = (0..3_u8, prop::collection::vec(claims(), 0..3), claims(), outcome, any::<bool>());
    prop::collection::vec(one, 0..8).prop_map(|attempts| {
        let mut n = BTreeMap::new();
        let mut events = Vec::new();
        for (place, repairs, last, outcome, changes) in attempts {
            let n = n.entry(place).and_modify(|n| *n += 1).or_insert(1);
            let path = format!("p{place}");
            events.push(started(&path, *n));
            events.extend(repairs.into_iter().map(|claims| asked(&path, *n, claims)));
            events.push(ended(&path, *n, outcome, last, if changes { &["a"] } else { &[] }));
        }
        events
    })
}

proptest! {
    /// Nothing is lost, nothing counts twice, and only what was verified goes stale.
    #[test]
    fn laws(events in any_run()) {
        let made: usize = events.iter().map(|event| match event {
            Event::RepairAsked { claims, .. } => claims.len(),
            Event::AttemptEnded(ended) => ended.claims.len(),
            _ => 0,
        }).sum();
        let ledger = ledger_of(events);
        let entries = ledger.entries();
        prop_assert_eq!(entries.len(), made);
        let mut counted = BTreeSet::new();
        for entry in &entries {
            if !entry.superseded {
                // What was refuted counts beside what was said in its place and cannot be checked.
                let is_refuted = entry.standing == Verdict::Refuted;
                let key = (entry.path.clone(), entry.claim.claim.clone(), is_refuted);
                prop_assert!(counted.insert(key));
            }
            if entry.standing != entry.claim.verdict {
                prop_assert_eq!((entry.standing, entry.claim.verdict), (Verdict::Stale, Verdict::Verified));
                prop_assert!(!entry.since.is_empty());
            }
            if entry.corrected {
                prop_assert!(entry.superseded && entry.claim.verdict == Verdict::Refuted);
            }
        }
        let totals = ledger.totals();
        prop_assert_eq!(totals.made, counted.len() as u64 + totals.corrected);
    }
}
