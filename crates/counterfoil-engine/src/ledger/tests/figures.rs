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
