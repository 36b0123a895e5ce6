//! Figures over several runs.

use super::*;

#[test]
fn figures_over_runs_are_grouped_and_sorted() {
    let mut stats =
        Stats::new(&[Dimension::Contract, Dimension::Field, Dimension::Agent, Dimension::Model]);
    for model in ["small", "small", "large"] {
        stats.on_event(&began(&[("worker", "command:agent -p", Some(model))]), 0);
        let wrong = model == "small";
        let first = if wrong { vec![refuted("files"), verified("sha", Commit)] } else { vec![] };
        for event in [
            started("work", 1),
            asked("work", 1, first),
            ended("work", 1, Accepted, vec![verified("files", FilesChanged)], &[]),
            started("work", 2),
            ended(
                "work",
                2,
                if wrong { Lost } else { Transport },
                vec![claim("x", Command, Verdict::Unverifiable)],
                &[],
            ),
        ] {
            stats.on_event(&event, 0);
        }
    }
    let tally = stats.tally();
    assert_eq!(tally.runs, 3);
    let lines: Vec<String> = tally
        .groups
        .iter()
        .map(|group| {
            let (key, replies, claims) = (&group.key, &group.replies, &group.claims);
            format!(
                "{} {} {} {}: {} of {} refuted, {} corrected, {} unverifiable; {} attempts, {} lost, {}/{} violations, {:?} repairs",
                key.field.as_deref().unwrap(),
                key.agent.as_deref().unwrap(),
                key.player.as_deref().unwrap(),
                key.model.as_deref().unwrap(),
                claims.refuted,
                claims.claims,
                claims.corrected,
                claims.unverifiable,
                replies.attempts,
                replies.lost_to_claim,
                replies.violations,
                replies.replies,
                replies.repairs_per_accepted(),
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "files worker agent small: 2 of 4 refuted, 2 corrected, 0 unverifiable; 4 attempts, 2 lost, 0/6 violations, Some(1.0) repairs",
            "sha worker agent small: 0 of 2 refuted, 0 corrected, 0 unverifiable; 4 attempts, 2 lost, 0/6 violations, Some(1.0) repairs",
            "files worker agent large: 0 of 1 refuted, 0 corrected, 0 unverifiable; 2 attempts, 0 lost, 1/3 violations, Some(1.0) repairs",
            "x worker agent small: 0 of 2 refuted, 0 corrected, 2 unverifiable; 4 attempts, 2 lost, 0/6 violations, Some(1.0) repairs",
            "x worker agent large: 0 of 1 refuted, 0 corrected, 1 unverifiable; 2 attempts, 0 lost, 1/3 violations, Some(1.0) repairs",
        ]
    );
    assert_eq!(tally.groups[2].replies.top_codes(), [("C0301", 1)]);
    assert_eq!(tally.groups[0].claims.refutation_rate(), Some(0.5));
}

#[test]
fn what_was_said_before_a_run_was_recast_was_said_by_whoever_played_then() {
    let mut stats = Stats::new(&[Dimension::Player, Dimension::Model]);
    let mut ledger = Ledger::new();
    let player = AssignedAgent {
        spec: "command:other".to_owned(),
        backs_off: false,
        retry: BTreeMap::new(),
        model: Some("large".to_owned()),
        version: None,
    };
    let agents = BTreeMap::from([("worker".to_owned(), player)]);
    let resumed = Event::RunResumed(Box::new(counterfoil_flow::Resumed {
        by: "somebody".to_owned(),
        agents,
        ..counterfoil_flow::Resumed::default()
    }));
    let before = attempt("work", 1, Accepted, vec![refuted("files")], &[]);
    let after = attempt("work", 2, Accepted, vec![verified("files", FilesChanged)], &[]);
    let start = began(&[("worker", "command:agent", Some("small"))]);
    for event in [start].into_iter().chain(before).chain([resumed]).chain(after) {
        stats.on_event(&event, 0);
        ledger.on_event(&event, 0);
        assert!(Ledger::KINDS.contains(&event.kind()));
    }
    let players: Vec<_> =
        ledger.entries().into_iter().map(|entry| (entry.player, entry.model)).collect();
    let named = |player: &str, model: &str| (Some(player.to_owned()), Some(model.to_owned()));
    assert_eq!(players, [named("agent", "small"), named("other", "large")]);
    let groups = stats.tally().groups;
    let figures: Vec<_> = groups
        .iter()
        .map(|group| {
            (
                group.key.model.as_deref(),
                group.claims.refuted,
                group.claims.verified,
                group.replies.attempts,
            )
        })
        .collect();
    assert_eq!(figures, [(Some("small"), 1, 0, 1), (Some("large"), 0, 1, 1)]);
}

#[test]
fn attempts_without_claims_are_counted_and_commands_are_not() {
    let mut stats = Stats::new(&[Dimension::Field, Dimension::Player]);
    stats.on_event(&began(&[("worker", "script:x", None)]), 0);
    let mut command = started("build", 1);
    if let Event::AttemptStarted { agent, .. } = &mut command {
        *agent = None;
    }
    let end = ended("build", 1, Accepted, vec![], &[]);
    for event in attempt("work", 1, Accepted, vec![], &[]).into_iter().chain([command, end]) {
        stats.on_event(&event, 0);
    }
    let [group] = <[Group; 1]>::try_from(stats.tally().groups).unwrap();
    let key =
        Key { field: Some(String::new()), player: Some("script".to_owned()), ..Key::default() };
    assert_eq!((group.key, group.replies.attempts, group.claims.claims), (key, 1, 0));
}

#[test]
fn endless_names_do_not_make_endless_groups() {
    let mut stats = Stats::new(&[Dimension::Field]);
    stats.on_event(&began(&[]), 0);
    let claims: Vec<ClaimReport> = (0..12_000).map(|n| refuted(&format!("f{n}"))).collect();
    for event in attempt("work", 1, Accepted, claims, &[]) {
        stats.on_event(&event, 0);
    }
    let groups = stats.tally().groups;
    assert_eq!(groups.len(), 10_001);
    assert_eq!(groups[0].key.field.as_deref(), Some("(others)"));
    assert_eq!(groups.iter().map(|group| group.claims.refuted).sum::<u64>(), 12_000);
}

/// The figures of a run of a model with these attempts.
fn run_of(model: &str, attempts: impl IntoIterator<Item = Event>) -> CountedRun {
    let mut counter = RunCounter::default();
    for event in [began(&[("worker", "command:agent", Some(model))])].into_iter().chain(attempts) {
        assert!(Ledger::KINDS.contains(&event.kind()));
        counter.on_event(&event, 7);
    }
    counter.finish()
}

/// An event with a cost.
fn at_cost(mut event: Event, cost: f64) -> Event {
    let spent = Usage { cost_usd: cost, input_tokens: 10, output_tokens: 1, ..Usage::default() };
    match &mut event {
        Event::RepairAsked { usage, .. } | Event::AttemptLost { usage, .. } => *usage = spent,
        Event::AttemptEnded(ended) => ended.usage = spent,
        _ => {}
    }
    event
}

#[test]
fn figures_of_single_runs_add_up_to_those_of_all() {
    let runs = ["small", "large", "small"].map(|model| {
        let first = attempt("work", 1, Accepted, vec![refuted("files")], &[]);
        let second = attempt("work", 2, AttemptOutcome::Contract, vec![], &[]);
        let began = began(&[("worker", "command:agent", Some(model))]);
        [began].into_iter().chain(first).chain(second).collect::<Vec<_>>()
    });
    for by in [
        &[Dimension::Contract, Dimension::Field][..],
        &[Dimension::Agent],
        &[Dimension::Model, Dimension::Version],
        &[],
    ] {
        let (mut stats, mut sum) = (Stats::new(by), Figures::default());
        for events in &runs {
            let mut counter = RunCounter::default();
            for event in events {
                stats.on_event(event, 0);
                counter.on_event(event, 0);
            }
            sum.add(&Figures::of_run(&counter.finish()));
        }
        assert_eq!(sum.grouped(by).tally(by), stats.tally(), "{by:?}");
    }
}

#[test]
fn an_accepted_result_costs_what_all_attempts_cost() {
    let events = [
        started("work", 1),
        at_cost(asked("work", 1, vec![]), 0.25),
        at_cost(ended("work", 1, AttemptOutcome::Contract, vec![], &[]), 0.25),
        started("work", 2),
        at_cost(
            Event::AttemptLost {
                attempt: "work#2".to_owned(),
                usage: Usage::default(),
                changed: Vec::new(),
            },
            0.5,
        ),
        started("work", 3),
        at_cost(ended("work", 3, Accepted, vec![], &[]), 1.0),
        // What no number can hold is not counted.
        started("work", 4),
        at_cost(ended("work", 4, Accepted, vec![], &[]), f64::MAX),
        started("work", 5),
    ];
    let run = run_of("small", events);
    let kinds: Vec<_> = run
        .attempts
        .iter()
        .map(|attempt| (attempt.n, attempt.outcome, attempt.is_lost, attempt.repairs))
        .collect();
    assert_eq!(
        kinds,
        [
            (1, Some(AttemptOutcome::Contract), false, 1),
            (2, None, true, 0),
            (3, Some(Accepted), false, 0),
            (4, Some(Accepted), false, 0),
            (5, None, false, 0),
        ]
    );
    assert_eq!(run.attempts[0].codes, BTreeMap::from([("C0301".to_owned(), 1)]));
    let figures = Figures::of_run(&run).of(&Key::default());
    let replies = &figures.replies;
    assert_eq!((replies.attempts, replies.accepted, replies.tokens), (5, 2, 55));
    assert_eq!(replies.cost_per_accepted(), Some(1.0));
    assert_eq!(ReplyFigures::default().cost_per_accepted(), None);
}

#[test]
fn the_runs_behind_a_figure_can_be_told() {
    let events = attempt("work", 1, Accepted, vec![refuted("files")], &[]);
    let run = run_of("small", events);
    let figures = Figures::of_run(&run);
    let key = |field: &str, model: &str| Key {
        field: Some(field.to_owned()),
        model: Some(model.to_owned()),
        ..Key::default()
    };
    assert_eq!(figures.of(&key("files", "small")).claims.refuted, 1);
    assert_eq!(figures.of(&key("sha", "small")).claims.claims, 0);
    assert_eq!(figures.of(&key("files", "large")).replies.attempts, 0);
    let claims: Vec<&str> = run.claims_of(&run.attempts[0]).map(Entry::field).collect();
    assert_eq!(claims, ["files"]);
}

#[test]
fn weeks_begin_on_mondays_and_trends_have_those_without_runs() {
    let day = 24 * 60 * 60 * 1000;
    // 1970-01-01 was a Thursday.
    for (at, week) in [(0, -3), (3 * day, -3), (4 * day - 1, -3), (4 * day, 4), (-3 * day - 1, -10)]
    {
        assert_eq!(week_of(at), week * day, "{at}");
    }
    let figures = |model| {
        let events = attempt("work", 1, Accepted, vec![refuted("files")], &[]);
        std::sync::Arc::new(Figures::of_run(&run_of(model, events)))
    };
    let weeks = Weeks(BTreeMap::from([
        (week_of(0), figures("small")),
        (week_of(14 * day), figures("small")),
        (week_of(21 * day), figures("large")),
    ]));
    let by = [Dimension::Model];
    assert_eq!(weeks.tally(&by).runs, 3);
    let trends = weeks.trends(&by, 22 * day, 3);
    let lines: Vec<(Option<&str>, u64, Vec<u64>)> = trends
        .iter()
        .map(|trend| {
            let weeks = trend.weeks.iter().map(|week| week.group.claims.refuted);
            (trend.group.key.model.as_deref(), trend.group.claims.refuted, weeks.collect())
        })
        .collect();
    assert_eq!(lines, [(Some("small"), 2, vec![0, 1, 0]), (Some("large"), 1, vec![0, 0, 1])]);
    let report = trends[0].report(&by);
    assert_eq!((report.group.refuted, report.weeks.len()), (2, 3));
}
