//! The simulated world: how attempts go, when their results arrive, and whether they arrive at all.

use crate::dice::Dice;
use crate::simulation::checks::reports;
use counterfoil_contract::claim::{ClaimPolicy, ClaimReport, EffectiveClaim, Verdict};
use counterfoil_flow::{
    AttemptOutcome, AttemptRequest, AttemptWork, Ended, Event, Reply, Usage, WorkspaceOp,
    WorkspaceOpKind,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A fact that will arrive at a driver.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) due: i64,
    pub(crate) fact: Event,
}

/// What the attempts of all drivers did.
#[derive(Default)]
pub(crate) struct World {
    /// How often each attempt was started.
    started: BTreeMap<String, u32>,
    /// How often each attempt completed its work.
    completed: BTreeMap<String, u32>,
    /// The result of each workspace operation. A repetition has the same result.
    workspace_ops: BTreeMap<WorkspaceOp, Event>,
}

impl World {
    /// Starts an attempt. No attempt may start twice.
    pub(crate) fn start(&mut self, attempt: &str) -> Result<(), String> {
        let times = self.started.entry(attempt.to_owned()).or_default();
        *times += 1;
        if *times > 1 { Err(format!("attempt {attempt} was started twice")) } else { Ok(()) }
    }

    /// Completes an attempt. No attempt may complete twice.
    pub(crate) fn complete(&mut self, attempt: &str) -> Result<(), String> {
        let times = self.completed.entry(attempt.to_owned()).or_default();
        *times += 1;
        if *times > 1 { Err(format!("attempt {attempt} did its work twice")) } else { Ok(()) }
    }

    /// Performs a workspace operation.
    pub(crate) fn workspace_op(&mut self, dice: &mut Dice, op: &WorkspaceOp) -> Event {
        if let Some(known) = self.workspace_ops.get(op) {
            return known.clone();
        }
        let (frame, workspace) = (op.frame.clone(), op.workspace.clone());
        let kept = dice.percent(50).then(|| format!("kept/{workspace}.patch"));
        let fact = match op.kind {
            _ if dice.percent(4) => {
                Event::WorkspaceFailed { frame, workspace, reason: "no room".to_owned() }
            }
            WorkspaceOpKind::Open => Event::WorkspaceOpened { frame, workspace, notes: Vec::new() },
            WorkspaceOpKind::Merge if dice.percent(15) => Event::WorkspaceMerged {
                frame,
                workspace,
                changed: 0,
                conflicts: vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()],
                kept,
                notes: Vec::new(),
            },
            WorkspaceOpKind::Merge => Event::WorkspaceMerged {
                frame,
                workspace,
                changed: dice.below(9),
                conflicts: Vec::new(),
                kept: None,
                notes: Vec::new(),
            },
            WorkspaceOpKind::Drop => Event::WorkspaceDropped { frame, workspace, kept },
        };
        self.workspace_ops.insert(op.clone(), fact.clone());
        fact
    }

    pub(crate) fn completions(&self) -> usize {
        self.completed.len()
    }
}

/// How many attempts fail.
#[derive(Clone, Copy)]
pub(crate) enum Weather {
    /// Most attempts succeed, so that runs go far.
    Calm,
    /// One in four fails.
    Rough,
}

/// The facts of an attempt.
pub(crate) struct Course {
    /// The facts in order; empty if the attempt never ends.
    pub(crate) deliveries: Vec<Delivery>,
    /// A duplicate of the last fact.
    pub(crate) duplicate: Option<Delivery>,
}

/// Determines at random how an attempt goes.
pub(crate) fn course(
    dice: &mut Dice,
    weather: Weather,
    start: &AttemptRequest,
    now: i64,
) -> Course {
    let mut due = now;
    let mut deliveries = Vec::new();
    let well = matches!(weather, Weather::Calm) && dice.percent(85);
    let outcome =
        match &start.work {
            _ if well => Some(AttemptOutcome::Accepted),
            AttemptWork::Agent(work) => {
                for _ in 0..dice.weigh(&[(8, 0), (1, 1), (1, 2)]).min(work.bounds.repairs) {
                    due += later(dice);
                    let reply = Reply { status: "rejected".to_owned(), ..Reply::default() };
                    let fact = Event::RepairAsked {
                        attempt: start.attempt.clone(),
                        reply,
                        usage: usage(dice),
                        claims: if dice.percent(50) {
                            claims(dice, &start.work, AttemptOutcome::Claim)
                        } else {
                            Vec::new()
                        },
                    };
                    deliveries.push(Delivery { due, fact });
                }
                dice.weigh(&[
                    (140, Some(AttemptOutcome::Accepted)),
                    (8, Some(AttemptOutcome::Contract)),
                    (12, Some(AttemptOutcome::Transport)),
                    (8, Some(AttemptOutcome::Timeout)),
                    (8, Some(AttemptOutcome::Limit)),
                    (3, Some(AttemptOutcome::Permission)),
                    (4, Some(AttemptOutcome::Agent)),
                    (3, Some(AttemptOutcome::Claim)),
                    (3, None),
                ])
            }
            AttemptWork::Command(work) if work.output.is_some() => dice.weigh(&[
                (10, Some(AttemptOutcome::Accepted)),
                (1, Some(AttemptOutcome::Contract)),
                (1, Some(AttemptOutcome::Timeout)),
            ]),
            AttemptWork::Checks(_) => dice.weigh(&[
                (20, Some(AttemptOutcome::Accepted)),
                (1, Some(AttemptOutcome::Agent)),
                (1, None),
            ]),
            AttemptWork::Command(_) => dice
                .weigh(&[(10, Some(AttemptOutcome::Accepted)), (1, Some(AttemptOutcome::Timeout))]),
            AttemptWork::Read(work) if work.contract.is_some() => dice.weigh(&[
                (10, Some(AttemptOutcome::Accepted)),
                (1, Some(AttemptOutcome::Contract)),
                (1, Some(AttemptOutcome::Blocked)),
            ]),
            AttemptWork::Read(_) | AttemptWork::Changes(_) => dice
                .weigh(&[(10, Some(AttemptOutcome::Accepted)), (1, Some(AttemptOutcome::Blocked))]),
            AttemptWork::Commit(_) => dice.weigh(&[
                (10, Some(AttemptOutcome::Accepted)),
                (1, Some(AttemptOutcome::Blocked)),
                (1, Some(AttemptOutcome::Timeout)),
            ]),
        };
    let Some(outcome) = outcome else { return Course { deliveries: Vec::new(), duplicate: None } };
    due += later(dice);
    let fact = ended(dice, start, outcome, due);
    let duplicate = dice.percent(15).then(|| Delivery {
        due: due + i64::try_from(dice.below(50_000)).unwrap_or(0),
        fact: fact.clone(),
    });
    deliveries.push(Delivery { due, fact });
    Course { deliveries, duplicate }
}

/// An attempt that was told to stop and did.
pub(crate) fn cancelled(attempt: &str, due: i64) -> Delivery {
    let fact = Event::AttemptEnded(Box::new(Ended {
        reason: "stopped".to_owned(),
        ..Ended::new(attempt, AttemptOutcome::Cancelled)
    }));
    Delivery { due, fact }
}

fn later(dice: &mut Dice) -> i64 {
    let most = dice.weigh(&[(2, 1), (5, 5_000), (5, 120_000), (1, 3_000_000)]);
    i64::try_from(dice.below(most)).unwrap_or(0)
}

fn usage(dice: &mut Dice) -> Usage {
    // Thirds, so that a sum that is not kept to the last digit is found.
    let cost_usd = f64::from(u32::try_from(dice.below(300)).unwrap_or(0)) / 3000.0;
    Usage {
        input_tokens: dice.below(400),
        output_tokens: dice.below(200),
        cost_usd,
        wall_ms: dice.below(9_000),
    }
}

fn ended(dice: &mut Dice, start: &AttemptRequest, outcome: AttemptOutcome, due: i64) -> Event {
    let accepted = outcome == AttemptOutcome::Accepted;
    let checks = match &start.work {
        AttemptWork::Checks(work) if accepted => reports(dice, &work.names),
        _ => BTreeMap::new(),
    };
    let has_value = accepted && !matches!(start.work, AttemptWork::Checks(_));
    let value = has_value.then(|| value(dice, &start.work));
    let reason = if accepted {
        String::new()
    } else {
        format!("the {} of {}", outcome.name(), start.attempt)
    };
    let wrong =
        json!({"code": "C0301", "pointer": dice.pick(&["/passed", "/topic"]), "message": "wrong"});
    let reset_at = (outcome == AttemptOutcome::Limit && dice.percent(50))
        .then(|| due + i64::try_from(dice.below(7_200_000)).unwrap_or(0) - 600_000);
    Event::AttemptEnded(Box::new(Ended {
        value,
        reason,
        violations: if outcome == AttemptOutcome::Contract { vec![wrong] } else { Vec::new() },
        claims: claims(dice, &start.work, outcome),
        reply: Some(Reply { status: outcome.name().to_owned(), ..Reply::default() }),
        usage: usage(dice),
        reset_at,
        tree: dice.percent(50).then(|| format!("tree-{}", dice.below(3))),
        checks,
        ..Ended::new(start.attempt.clone(), outcome)
    }))
}

/// What became of the claims of a step; one that had to hold was refuted if that is how it ended.
fn claims(dice: &mut Dice, work: &AttemptWork, outcome: AttemptOutcome) -> Vec<ClaimReport> {
    let AttemptWork::Agent(work) = work else { return Vec::new() };
    if !matches!(outcome, AttemptOutcome::Accepted | AttemptOutcome::Claim) {
        return Vec::new();
    }
    let blocks = outcome == AttemptOutcome::Claim;
    let report = |held: &EffectiveClaim| ClaimReport {
        claim: held.name.clone(),
        field: held.field.clone(),
        kind: held.claim.kind,
        policy: if blocks { ClaimPolicy::Require } else { held.claim.policy },
        verdict: if blocks { Verdict::Refuted } else { *dice.pick(&Verdict::ALL) },
        claimed: Value::Null,
        observed: Value::Null,
        reason: "claimed 2 files, 1 of them did not change: a.rs".to_owned(),
        evidence: Vec::new(),
        tree: None,
    };
    work.claims.iter().map(report).collect()
}

/// A result that satisfies the contract: one of its examples.
fn value(dice: &mut Dice, work: &AttemptWork) -> Value {
    let one = |dice: &mut Dice, contract: &counterfoil_contract::Contract| {
        dice.pick(&contract.definition().examples).clone()
    };
    match work {
        AttemptWork::Checks(_) => Value::Null,
        AttemptWork::Agent(work) => one(dice, &work.contract),
        AttemptWork::Read(work) => match &work.contract {
            Some(contract) => one(dice, contract),
            None => json!({"text": "what it says"}),
        },
        AttemptWork::Changes(_) => json!({
            "base": "abc",
            "files": [{"path": "a.rs", "change": "added", "binary": false, "added": 1, "removed": 0,
                "lines": [{"from": 1, "to": 1}]}],
            "chunks": [{"number": 1, "files": ["a.rs"], "tokens": 1, "text": "+ a"}],
            "added": 1,
            "removed": 0,
        }),
        AttemptWork::Commit(_) => {
            let ok = dice.percent(65);
            json!({"ok": ok, "commit": if ok { "abc" } else { "" }, "files": [], "output": "the tail"})
        }
        AttemptWork::Command(work) => {
            let code = i32::from(dice.percent(35));
            let mut value = json!({"ok": code == 0, "exit_code": code, "output": "the tail"});
            if let Some(contract) = &work.output {
                value["value"] = one(dice, contract);
            }
            value
        }
    }
}
