//! Pages of the list of runs: together they are the whole list, whatever is added meanwhile.

use super::*;
use counterfoil_engine::journal::{RunCursor, RunFilter, RunGroup, RunInfo, RunOrder, RunSort};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What a run of a test is made of.
#[derive(Clone, Debug)]
struct Sample {
    at: i64,
    updated: i64,
    workflow: &'static str,
    outcome: Option<&'static str>,
    reason: &'static str,
    cost: f64,
    wall_ms: u64,
    questions: u64,
    driven: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            at: 5,
            updated: 5,
            workflow: "demo",
            outcome: None,
            reason: "",
            cost: 0.0,
            wall_ms: 0,
            questions: 0,
            driven: false,
        }
    }
}

/// Few values, so that many runs are equal.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let outcomes = [
        None,
        None,
        Some("done"),
        Some("failed"),
        Some("blocked"),
        Some("cancelled"),
        Some("waiting"),
        Some("answered"),
        Some("interrupted"),
    ];
    let costs = [0.0, 0.1, 0.3, 1e300, f64::INFINITY, f64::NAN, f64::NAN];
    let sample = (
        (0..5_i64, 0..8_i64, 0..3_u64, 0..3_u64, any::<bool>()),
        prop::sample::select(vec!["demo", "Deploy"]),
        prop::sample::select(outcomes.to_vec()),
        prop::sample::select(vec!["", "100%", "a_b", "Größe", "two\nlines"]),
        prop::sample::select(costs.to_vec()),
    );
    let sample = sample.prop_map(
        |((at, updated, wall_ms, questions, driven), workflow, outcome, reason, cost)| Sample {
            at,
            updated,
            workflow,
            outcome,
            reason,
            cost,
            wall_ms,
            questions,
            driven,
        },
    );
    prop::collection::vec(sample, 0..25)
}

/// Creates a run. Its lease is returned if it is driven.
fn add(journal: &Journal, id: &str, sample: &Sample) -> Option<Lease> {
    let summary = Summary {
        outcome: sample.outcome.map(str::to_owned),
        state: "Working".to_owned(),
        reason: sample.reason.to_owned(),
        cost_usd: sample.cost,
        wall_ms: sample.wall_ms,
        questions: sample.questions,
        ..Summary::default()
    };
    let events = vec![NewEvent { at: sample.updated, ..event("note", "") }];
    let batch = Batch { events, summary: Some(summary), ..Batch::default() };
    let new = NewRun { workflow: sample.workflow, at: sample.at, ..new_run(id) };
    let lease = journal.create(new, batch).unwrap();
    if sample.driven {
        return Some(lease);
    }
    lease.release().unwrap();
    None
}

fn orders() -> impl Iterator<Item = RunOrder> {
    let both = |by| [false, true].map(|ascending| RunOrder { by, ascending });
    RunSort::EACH.into_iter().flat_map(both)
}

/// The order of two runs, in other words than the journal's.
fn compare(one: &RunInfo, other: &RunInfo, order: RunOrder) -> Ordering {
    let directed = |found: Ordering| if order.ascending { found } else { found.reverse() };
    let key = match order.by {
        RunSort::Newest => directed(one.created_at.cmp(&other.created_at)),
        RunSort::Updated => directed(one.updated_at.cmp(&other.updated_at)),
        RunSort::Duration => directed(one.summary.wall_ms.cmp(&other.summary.wall_ms)),
        RunSort::Cost => {
            let (one, other) = (one.summary.cost_usd, other.summary.cost_usd);
            one.partial_cmp(&other).map_or_else(|| one.is_nan().cmp(&other.is_nan()), directed)
        }
    };
    key.then_with(|| directed(one.id.cmp(&other.id)))
}

/// Whether a run is to be listed, in other words than the journal's.
fn admits(filter: &RunFilter, run: &RunInfo) -> bool {
    let live = run.driver.as_ref().is_some_and(|driver| driver.live);
    let outcome = run.outcome();
    let ended = ["done", "failed", "blocked", "cancelled"].contains(&outcome);
    let waiting = outcome == "waiting";
    let needs_answer = waiting || (outcome != "answered" && run.summary.questions > 0);
    let in_group = match filter.group {
        RunGroup::All => true,
        RunGroup::NeedsAnswer => !ended && needs_answer,
        RunGroup::NeedsPerson => !ended && (!live || needs_answer),
        RunGroup::Running => !ended && live,
        RunGroup::Interrupted => !ended && !live && !waiting,
        RunGroup::Failed => ["failed", "blocked"].contains(&outcome),
    };
    let has = |text: &String| {
        let text = text.to_ascii_lowercase();
        [&run.id, &run.workflow, &run.summary.state, &run.summary.reason]
            .iter()
            .any(|part| part.to_ascii_lowercase().contains(&text))
    };
    in_group
        && (filter.outcomes.is_empty() || filter.outcomes.iter().any(|wanted| wanted == outcome))
        && filter.workflow.as_ref().is_none_or(|wanted| *wanted == run.workflow)
        && filter.text.as_ref().is_none_or(has)
        && (!filter.questions || run.summary.questions > 0)
        && filter.created_from.is_none_or(|from| run.created_at >= from)
        && filter.created_before.is_none_or(|before| run.created_at < before)
}

fn filters() -> Vec<RunFilter> {
    let text = |text: &str| RunFilter { text: Some(text.to_owned()), ..RunFilter::default() };
    let outcomes = |outcomes: &[&str]| RunFilter {
        outcomes: outcomes.iter().map(|&outcome| outcome.to_owned()).collect(),
        ..RunFilter::default()
    };
    let mut filters: Vec<RunFilter> =
        RunGroup::EACH.map(|group| RunFilter { group, ..RunFilter::default() }).into();
    filters.extend(["", "%", "_", "DEPLOY", "working", "RUN-1", "größe", "\n", "'"].map(text));
    let named: [&[&str]; 7] = [
        &["running"],
        &["interrupted"],
        &["altered"],
        &["done"],
        &["failed", "running"],
        &["interrupted", "waiting", "running", "running"],
        &["unknown"],
    ];
    filters.extend(named.map(outcomes));
    filters.extend([
        RunFilter { workflow: Some("Deploy".to_owned()), ..RunFilter::default() },
        RunFilter { questions: true, ..RunFilter::default() },
        RunFilter { created_from: Some(1), created_before: Some(4), ..RunFilter::default() },
        RunFilter {
            group: RunGroup::Running,
            outcomes: vec!["waiting".to_owned(), "running".to_owned()],
            workflow: Some("demo".to_owned()),
            text: Some("work".to_owned()),
            questions: true,
            created_from: Some(1),
            created_before: Some(4),
        },
    ]);
    filters
}

/// The ids on all pages. `between` is called after each page. Places are carried as text.
fn pages(
    journal: &Journal,
    filter: &RunFilter,
    order: RunOrder,
    limit: usize,
    mut between: impl FnMut(),
) -> Vec<String> {
    let mut ids = Vec::new();
    let mut after: Option<RunCursor> = None;
    loop {
        let page = journal.runs_page(filter, order, after.as_ref(), limit).unwrap();
        assert!(page.runs.len() <= limit);
        ids.extend(page.runs.into_iter().map(|run| run.id));
        let Some(next) = page.next else { return ids };
        let text = next.to_string();
        assert!(text.chars().all(|char| char.is_ascii_alphanumeric()), "{text}");
        let parsed = text.parse().unwrap();
        assert_eq!(parsed, next);
        after = Some(parsed);
        between();
    }
}

/// The ids of the whole list.
fn whole(journal: &Journal, filter: &RunFilter, order: RunOrder) -> Vec<String> {
    let mut runs = journal.runs(None).unwrap();
    runs.retain(|run| admits(filter, run));
    runs.sort_by(|one, other| compare(one, other, order));
    runs.into_iter().map(|run| run.id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn all_pages_together_are_the_list(samples in samples(), limit in 1..6_usize) {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let _leases: Vec<Option<Lease>> = (0_usize..)
            .zip(&samples)
            .map(|(n, sample)| add(&journal, &format!("run-{n}"), sample))
            .collect();
        for filter in filters() {
            for order in orders() {
                let expected = whole(&journal, &filter, order);
                let found = pages(&journal, &filter, order, limit, || {});
                prop_assert_eq!(found, expected, "{:?} {:?}", filter, order);
            }
        }
        let counts = journal.run_counts().unwrap();
        for group in RunGroup::EACH {
            let filter = RunFilter { group, ..RunFilter::default() };
            let listed = whole(&journal, &filter, RunOrder::default()).len();
            prop_assert_eq!(counts.of(group), listed as u64, "{:?}", group);
        }
    }

    #[test]
    fn runs_that_are_added_between_pages_shift_nothing(
        samples in samples(),
        added in samples(),
        limit in 1..6_usize,
    ) {
        let folder = TempDir::new().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let mut leases: Vec<Option<Lease>> = (0_usize..)
            .zip(&samples)
            .map(|(n, sample)| add(&journal, &format!("run-{n}"), sample))
            .collect();
        let filter = RunFilter::default();
        let mut numbers = 0_usize..;
        let mut added = added.iter();
        for order in orders() {
            let before = whole(&journal, &filter, order);
            let found = pages(&journal, &filter, order, limit, || {
                if let (Some(n), Some(sample)) = (numbers.next(), added.next()) {
                    // Before and after the other ids.
                    let id = if n % 2 == 0 { format!("added-{n}") } else { format!("xadded-{n}") };
                    leases.push(add(&journal, &id, sample));
                }
            });
            let known: BTreeSet<&String> = before.iter().collect();
            let again: Vec<&String> = found.iter().filter(|id| known.contains(id)).collect();
            prop_assert!(again.into_iter().eq(&before), "{order:?}: {found:?}");
            let seen: BTreeSet<&String> = found.iter().collect();
            prop_assert_eq!(seen.len(), found.len(), "{:?}: {:?}", order, found);
            let mut after = whole(&journal, &filter, order);
            after.retain(|id| seen.contains(id));
            prop_assert_eq!(&found, &after, "{:?}", order);
        }
    }
}

#[test]
fn a_text_is_found_in_the_inputs_of_a_run() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let bodies = [
        r#"{"run-started":{"inputs":{"n":3,"task":"Mend the \"LOGIN\"\npage","names":["deep"]},"repo":"/far"}}"#,
        r#"{"run-started":{"inputs":{"spec":"Write größe"}}}"#,
        r#"{"run-started":{"inputs":[]}}"#,
        r#"{"run-started":7}"#,
        r#"{"run-started":"#,
        "",
    ];
    for (n, body) in (1_usize..).zip(bodies) {
        let events = vec![event("run-started", body), event("note", r#"{"inputs":{"a":"later"}}"#)];
        let id = format!("run-{n}");
        let lease = journal.create(new_run(&id), Batch { events, ..Batch::default() }).unwrap();
        lease.release().unwrap();
    }
    let order = RunOrder { ascending: true, ..RunOrder::default() };
    for (text, expected) in [
        ("login", &["run-1"][..]),
        ("the \"login\"\npage", &["run-1"]),
        ("GRöSSE", &[]),
        ("GRößE", &["run-2"]),
        ("deep", &[]),
        ("far", &[]),
        ("task", &[]),
        ("later", &[]),
        ("run-6", &["run-6"]),
    ] {
        let filter = RunFilter { text: Some(text.to_owned()), ..RunFilter::default() };
        assert_eq!(pages(&journal, &filter, order, 2, || {}), expected, "{text}");
    }
}

#[test]
fn no_character_of_a_text_is_a_wildcard() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let reasons = ["100% sure", "100 Sure", "a_b", "axb", r"c\d", r"c\\d", "it's", "ends"];
    for (n, reason) in (1_usize..).zip(reasons) {
        add(&journal, &format!("run-{n}"), &Sample { reason, ..Sample::default() });
    }
    let found = |text: &str| {
        let filter = RunFilter { text: Some(text.to_owned()), ..RunFilter::default() };
        let order = RunOrder { ascending: true, ..RunOrder::default() };
        pages(&journal, &filter, order, 100, || {})
    };
    assert_eq!(found("100%"), ["run-1"]);
    assert_eq!(found("%"), ["run-1"]);
    assert_eq!(found("A_B"), ["run-3"]);
    assert_eq!(found("_"), ["run-3"]);
    assert_eq!(found(r"c\d"), ["run-5"]);
    assert_eq!(found(r"\"), ["run-5", "run-6"]);
    assert_eq!(found("SURE"), ["run-1", "run-2"]);
    assert_eq!(found("it's"), ["run-7"]);
    assert_eq!(found("run-8"), ["run-8"], "the id");
    assert_eq!(found("DEMO").len(), reasons.len(), "the workflow");
    assert_eq!(found("working").len(), reasons.len(), "the state");
    assert!(found("ends\0").is_empty());
    assert!(found(&"x".repeat(100_000)).is_empty(), "a long text is no error");
}

#[test]
fn runs_of_unknown_cost_are_last_in_both_directions() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    for (n, cost) in (1_usize..).zip([f64::NAN, 2.0, 0.0, f64::NAN, 1.0, f64::NAN]) {
        add(&journal, &format!("run-{n}"), &Sample { cost, ..Sample::default() });
    }
    let found = |ascending| {
        let order = RunOrder { by: RunSort::Cost, ascending };
        pages(&journal, &RunFilter::default(), order, 1, || {})
    };
    assert_eq!(found(true), ["run-3", "run-5", "run-2", "run-1", "run-4", "run-6"]);
    assert_eq!(found(false), ["run-2", "run-5", "run-3", "run-6", "run-4", "run-1"]);
}

#[test]
fn a_place_that_is_none_is_an_error() {
    let inside = [
        "",
        "newest",
        "newest~desc~1",
        "newest~desc~1~",
        "newest~down~1~run-1",
        "oldest~desc~1~run-1",
        "newest~desc~x~run-1",
        "newest~desc~unknown~run-1",
        "newest~desc~9223372036854775808~run-1",
        "cost~desc~1.5~run-1",
        "cost~desc~7ff8000000000000~run-1",
    ];
    let outside = ["x", "run-1", "newest~desc~1~run-1", "0", "ff"];
    let texts = inside.iter().map(hex::encode).chain(outside.map(str::to_owned));
    for text in texts {
        let error = text.parse::<RunCursor>().unwrap_err();
        assert!(matches!(error, Error::Cursor { .. }), "{text}: {error}");
        assert_eq!(
            error.to_string(),
            "the place in the list of runs does not come from a page of the list; begin with the first page"
        );
    }
}

#[test]
fn a_place_belongs_to_one_order() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    for id in ["run-1", "run-2"] {
        add(&journal, id, &Sample::default());
    }
    let filter = RunFilter::default();
    for order in orders() {
        let next = journal.runs_page(&filter, order, None, 1).unwrap().next.unwrap();
        assert_eq!(next.order(), order);
        for other in orders() {
            let page = journal.runs_page(&filter, other, Some(&next), 1);
            match page {
                Ok(page) => assert!(other == order && page.next.is_none()),
                Err(error) => assert!(other != order && matches!(error, Error::Cursor { .. })),
            }
        }
    }
}

#[test]
fn a_page_has_at_least_one_run() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let (filter, order) = (RunFilter::default(), RunOrder::default());
    let page = journal.runs_page(&filter, order, None, 0).unwrap();
    assert!(page.runs.is_empty() && page.next.is_none());
    add(&journal, "run-1", &Sample::default());
    let page = journal.runs_page(&filter, order, None, 0).unwrap();
    assert!(page.runs.len() == 1 && page.next.is_none());
    let page = journal.runs_page(&filter, order, None, usize::MAX).unwrap();
    assert!(page.runs.len() == 1 && page.next.is_none());
}

#[test]
fn names_of_groups_and_orders_are_read_back() {
    for group in RunGroup::EACH {
        assert_eq!(RunGroup::named(group.name()), Some(group));
    }
    for sort in RunSort::EACH {
        assert_eq!(RunSort::named(sort.name()), Some(sort));
    }
    assert_eq!((RunGroup::named("mine"), RunSort::named("")), (None, None));
}

#[test]
fn one_call_examines_a_limited_number_of_runs() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let driven = Sample { at: 1, driven: true, ..Sample::default() };
    let _lease = add(&journal, "driven", &driven);
    // Processes that are gone drove the others.
    let sql = "WITH RECURSIVE numbers (n) AS \
                   (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500) \
               INSERT INTO runs (id, workflow, version, bundle, created_at, updated_at, digest, \
                   holder, pid, started, boot, namespace, since, heartbeat) \
               SELECT 'lost-' || n, 'demo', 1, (SELECT hash FROM bundles), 10 + n, 10 + n, \
                   zeroblob(16), 'gone', 1, 1, '', '', 0, 0 FROM numbers";
    raw(folder.path()).execute_batch(sql).unwrap();
    let filter = RunFilter { group: RunGroup::Running, ..RunFilter::default() };
    let mut calls = 1;
    assert_eq!(pages(&journal, &filter, RunOrder::default(), 10, || calls += 1), ["driven"]);
    assert_eq!(calls, 3);
    let counts = journal.run_counts().unwrap();
    assert_eq!((counts.all, counts.running, counts.interrupted), (2501, 1, 2500));

    // Where all examined runs are on the page, the page has as many as are asked for.
    let page = journal.runs_page(&RunFilter::default(), RunOrder::default(), None, 2000).unwrap();
    assert_eq!((page.runs.len(), page.next.is_some()), (2000, true));
}
