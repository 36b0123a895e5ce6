//! Plays a run in memory: every attempt ends in some way its contract allows, every question is
//! answered some time.

use super::dice::Dice;
use super::expressions::Kind;
use counterfoil_contract::claim::{ClaimReport, EffectiveClaim, Verdict};
use counterfoil_contract::expr::Type;
use counterfoil_flow::{
    AttemptMessage, AttemptOutcome, AttemptRequest, AttemptWork, Bundle, CheckDefinition,
    CheckProgram, CheckReport, CheckStatus, DECIDE, Ended, Event, Form, PlannedChecks, RunState,
    Started, Term, Turn, Usage, Workflow, WorkspaceOp, WorkspaceOpKind, artifacts, turn,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A run that takes more turns than this does not end.
const MAX_TURNS: usize = 20_000;

/// How a run went.
pub(crate) struct Played {
    pub(crate) events: Vec<(Event, i64)>,
    pub(crate) run: RunState,
    /// The steps that failed on what the values were.
    pub(crate) faults: Vec<String>,
}

/// Something whose end is awaited.
enum Pending {
    Attempt { id: String, work: Box<AttemptWork> },
    FileCheck { frame: String, paths: usize, checks: Vec<String> },
    WorkspaceOp(WorkspaceOp),
}

/// Plays a workflow to its end; the error is a law that did not hold.
pub(crate) fn play(workflow: &Workflow, dice: &mut Dice) -> Result<Played, String> {
    let mut played = Played { events: Vec::new(), run: RunState::default(), faults: Vec::new() };
    let mut pending: Vec<Pending> = Vec::new();
    let mut facts = vec![started(workflow, dice)];
    let mut now = 1_700_000_000_000_i64;
    for _ in 0..MAX_TURNS {
        now += i64::try_from(dice.below(1000)).unwrap();
        let done = turn(workflow, &mut played.run, std::mem::take(&mut facts), now);
        holds_after(workflow, &played.run, &done)?;
        for (event, _) in &done.events {
            if let Event::StepFailed { frame, reason } = event {
                played.faults.push(format!("{frame}: {reason}"));
            }
        }
        let Turn { events, attempts, file_checks, workspace_ops, wake_at, .. } = done;
        played.events.extend(events);
        if played.run.ended.is_some() {
            return Ok(played);
        }
        for request in attempts {
            let request = sent_and_resolved(workflow, &request)?;
            pending.push(Pending::Attempt { id: request.attempt, work: Box::new(request.work) });
        }
        for look in file_checks {
            let known = pending.iter().any(
                |one| matches!(one, Pending::FileCheck { frame: known, .. } if *known == look.frame),
            );
            if !known {
                let (frame, paths) = (look.frame, look.paths.len());
                pending.push(Pending::FileCheck { frame, paths, checks: look.checks });
            }
        }
        for op in workspace_ops {
            if !pending.iter().any(|one| matches!(one, Pending::WorkspaceOp(known) if *known == op))
            {
                pending.push(Pending::WorkspaceOp(op));
            }
        }
        let questions: Vec<(String, Form)> =
            played.run.open_questions().map(|(id, open)| (id.clone(), open.form.clone())).collect();
        if !pending.is_empty() && (questions.is_empty() || dice.chance(70)) {
            let one = pending.swap_remove(dice.below(pending.len()));
            facts.push(fact(one, dice));
        } else if !questions.is_empty() {
            let (question, form) = dice.pick(&questions).clone();
            facts.push(Event::Answered {
                question,
                answer: answer(&form, dice),
                by: "somebody".to_owned(),
                from: None,
            });
        } else if let Some(time) = wake_at {
            now = now.max(time);
        } else {
            return Err("the run neither ends, nor works, nor waits for anybody".to_owned());
        }
    }
    Err(format!("the run does not end in {MAX_TURNS} turns"))
}

/// An attempt request survives the way to another process: what is resolved there is the same.
fn sent_and_resolved(
    workflow: &Workflow,
    request: &AttemptRequest,
) -> Result<AttemptRequest, String> {
    let sent = serde_json::to_string(request).map_err(|error| error.to_string())?;
    let message: AttemptMessage =
        serde_json::from_str(&sent).map_err(|error| format!("{error} in {sent}"))?;
    let resolved = message.clone().resolve(workflow).map_err(|error| error.to_string())?;
    if AttemptMessage::from(&resolved) != message
        || format!("{resolved:?}") != format!("{request:?}")
    {
        return Err(format!("an attempt request changed on its way: {sent}"));
    }
    Ok(resolved)
}

fn started(workflow: &Workflow, dice: &mut Dice) -> Event {
    let mut inputs = Map::new();
    for (name, input) in &workflow.main.inputs {
        let value = if name == "most" { json!(dice.below(4)) } else { value_of(&input.ty, dice) };
        inputs.insert(name.clone(), value);
    }
    let bytes = workflow.bundle.to_bytes().unwrap();
    Event::RunStarted(Box::new(Started {
        run: "r1".to_owned(),
        workflow: workflow.name.clone(),
        version: workflow.version,
        bundle: Bundle::hash(&bytes),
        decide: DECIDE,
        inputs,
        agents: BTreeMap::new(),
        budget: workflow.budget.clone(),
        repo: ".".to_owned(),
        observed: String::new(),
        own: Vec::new(),
        base: None,
        config: None,
    }))
}

/// What must hold after every turn.
fn holds_after(workflow: &Workflow, run: &RunState, done: &Turn) -> Result<(), String> {
    for frame in run.frames.values() {
        let machine = workflow.machine(&frame.machine).ok_or("a frame of no machine")?;
        if !machine.states.contains_key(&frame.state) {
            return Err(format!("a frame is in '{}', which is no state", frame.state));
        }
        for (counter, count) in &frame.counters {
            let (name, limit) = machine
                .limits
                .iter()
                .find(|(name, _)| *name == counter || counter.starts_with(&format!("{name}[")))
                .ok_or_else(|| format!("'{counter}' is the counter of no limit"))?;
            let max = match &limit.max {
                Term::Literal(value) => value.as_u64(),
                // Here a limit that is computed is an input; one below zero allows nothing.
                Term::Computed(input) => {
                    frame.inputs.get(input.source()).map(|max| max.as_u64().unwrap_or(0))
                }
            };
            if max.is_none_or(|max| *count > max) {
                return Err(format!("'{counter}' was counted {count} times of {max:?}"));
            }
            let all: u64 = match &limit.per {
                None => 0,
                Some(_) => {
                    let keyed = format!("{name}[");
                    frame
                        .counters
                        .iter()
                        .filter(|(one, _)| one.starts_with(&keyed))
                        .map(|(_, n)| n)
                        .sum()
                }
            };
            if all > limit.total {
                return Err(format!(
                    "'{name}' was counted {all} times over all keys of {}",
                    limit.total
                ));
            }
        }
        for (name, variable) in &machine.variables {
            // An item that runs an agent has no variables of its own.
            if let Some(value) = frame.variables.get(name) {
                counterfoil_flow::value::fits(value, &variable.ty)
                    .map_err(|why| format!("the variable '{name}' is not of its type: {why}"))?;
            }
        }
    }
    if done.renders_artifacts() {
        artifacts(workflow, run).map_err(|(path, why)| format!("the artifact {path}: {why}"))?;
    }
    Ok(())
}

fn answer(form: &Form, dice: &mut Dice) -> String {
    // Now and then nonsense, which must be dropped.
    match form {
        _ if dice.chance(5) => " ".to_owned(),
        Form::Choices(choices) => dice.pick(choices).clone(),
        // One of them fits each pattern here; the other is dropped.
        Form::Pattern(_) => ["abc", "1.2.3"][dice.below(2)].to_owned(),
        Form::Text => "because".to_owned(),
    }
}

fn fact(pending: Pending, dice: &mut Dice) -> Event {
    let (id, work) = match pending {
        Pending::FileCheck { frame, paths, checks } => {
            let missing = if dice.chance(15) {
                vec!["docs/missing.md".to_owned(); paths.min(1)]
            } else {
                Vec::new()
            };
            let checks = (!checks.is_empty()).then(|| planned(&checks, dice));
            return Event::ContextChecked { frame, missing, checks };
        }
        Pending::WorkspaceOp(op) => return workspace_fact(op, dice),
        Pending::Attempt { id, work } => (id, work),
    };
    if dice.chance(3) {
        return Event::AttemptLost { attempt: id, usage: Usage::default(), changed: Vec::new() };
    }
    let accepted = match work.as_ref() {
        AttemptWork::Checks(_) => Value::Null,
        AttemptWork::Agent(work) => value_of(work.contract.ty(), dice),
        AttemptWork::Command(work) => {
            let code = if dice.chance(60) { 0 } else { 1 + dice.below(3) };
            let mut value = json!({"ok": code == 0, "exit_code": code, "output": "some output"});
            if let Some(contract) = &work.output {
                value["value"] = value_of(contract.ty(), dice);
            }
            value
        }
        AttemptWork::Read(work) => match &work.contract {
            Some(contract) => value_of(contract.ty(), dice),
            None => json!({"text": "some text"}),
        },
        AttemptWork::Changes(_) => json!({
            "base": "abc",
            "files": [{"path": "a.rs", "old_path": "b.rs", "change": "renamed", "binary": false, "added": 1,
                "removed": 0, "lines": [{"from": 1, "to": 1}]}],
            "chunks": [{"number": 1, "files": ["a.rs"], "tokens": 1, "text": "+ a"}],
            "added": 1,
            "removed": 0,
        }),
        AttemptWork::Commit(_) => {
            let ok = dice.chance(60);
            json!({"ok": ok, "commit": if ok { "abc" } else { "" }, "files": ["a.rs"], "output": "said"})
        }
    };
    let outcome = match work.as_ref() {
        _ if dice.chance(85) => AttemptOutcome::Accepted,
        AttemptWork::Agent(_) => *dice.pick(&[
            AttemptOutcome::Contract,
            AttemptOutcome::Claim,
            AttemptOutcome::Agent,
            AttemptOutcome::Transport,
            AttemptOutcome::Limit,
            AttemptOutcome::Permission,
            AttemptOutcome::Timeout,
            AttemptOutcome::Cancelled,
        ]),
        AttemptWork::Command(work) if work.output.is_some() && dice.chance(50) => {
            AttemptOutcome::Contract
        }
        AttemptWork::Command(_) => AttemptOutcome::Timeout,
        AttemptWork::Read(work) if work.contract.is_some() && dice.chance(50) => {
            AttemptOutcome::Contract
        }
        AttemptWork::Checks(_) if dice.chance(80) => AttemptOutcome::Cancelled,
        AttemptWork::Checks(_) => AttemptOutcome::Agent,
        AttemptWork::Commit(_) if dice.chance(50) => AttemptOutcome::Timeout,
        AttemptWork::Read(_) | AttemptWork::Changes(_) | AttemptWork::Commit(_) => {
            AttemptOutcome::Blocked
        }
    };
    let is_accepted = outcome == AttemptOutcome::Accepted;
    let salvaged = !is_accepted && outcome == AttemptOutcome::Contract && dice.chance(50);
    Event::AttemptEnded(Box::new(Ended {
        value: (is_accepted && !accepted.is_null()).then(|| accepted.clone()),
        partial: salvaged.then_some(accepted),
        reason: if is_accepted { String::new() } else { "it did not work".to_owned() },
        violations: if outcome == AttemptOutcome::Contract {
            vec![json!({"code": "C0201", "pointer": format!("/f{}", dice.below(2))})]
        } else {
            Vec::new()
        },
        claims: claims(&work, dice),
        usage: Usage { input_tokens: 10, output_tokens: 5, cost_usd: 0.25, wall_ms: 3 },
        tree: dice.chance(60).then(|| format!("tree{}", dice.below(3))),
        checks: match work.as_ref() {
            AttemptWork::Checks(work) if is_accepted => reports(&work.names, dice),
            _ => BTreeMap::new(),
        },
        ..Ended::new(id, outcome)
    }))
}

/// How checks are configured: each of them or not at all.
fn planned(names: &[String], dice: &mut Dice) -> PlannedChecks {
    let definition = CheckDefinition {
        run: CheckProgram::Line("make check".to_owned()),
        timeout_ms: 1000,
        report: None,
    };
    let known = names.iter().filter(|_| dice.chance(60));
    let checks = known.map(|name| (name.clone(), definition.clone())).collect();
    PlannedChecks { checks, ..PlannedChecks::default() }
}

/// What came of checks.
fn reports(names: &[String], dice: &mut Dice) -> BTreeMap<String, CheckReport> {
    let mut report = |name: &String| {
        let status = *dice.pick(&CheckStatus::ALL);
        let report = CheckReport {
            status,
            exit_code: (status != CheckStatus::NotConfigured && dice.chance(80)).then_some(1),
            reason: "it did not pass".to_owned(),
            total: dice.chance(50).then_some(3),
            failed: dice.chance(50).then_some(1),
            output: "1 failed".to_owned(),
            ..CheckReport::default()
        };
        (name.clone(), report)
    };
    names.iter().map(&mut report).collect()
}

/// The result of a workspace operation.
fn workspace_fact(op: WorkspaceOp, dice: &mut Dice) -> Event {
    let WorkspaceOp { frame, workspace, kind, .. } = op;
    if dice.chance(5) {
        return Event::WorkspaceFailed { frame, workspace, reason: "no room".to_owned() };
    }
    match kind {
        WorkspaceOpKind::Open => Event::WorkspaceOpened { frame, workspace, notes: Vec::new() },
        WorkspaceOpKind::Merge => {
            let conflicts = if dice.chance(15) { vec!["src/a.rs".to_owned()] } else { Vec::new() };
            let kept = (!conflicts.is_empty()).then(|| "kept.patch".to_owned());
            Event::WorkspaceMerged {
                frame,
                workspace,
                changed: 1,
                conflicts,
                kept,
                notes: Vec::new(),
            }
        }
        WorkspaceOpKind::Drop => Event::WorkspaceDropped { frame, workspace, kept: None },
    }
}

/// What became of the claims of a step.
fn claims(work: &AttemptWork, dice: &mut Dice) -> Vec<ClaimReport> {
    let AttemptWork::Agent(work) = work else { return Vec::new() };
    let report = |held: &EffectiveClaim, dice: &mut Dice| ClaimReport {
        claim: held.name.clone(),
        field: held.field.clone(),
        kind: held.claim.kind,
        policy: held.claim.policy,
        verdict: *dice.pick(&Verdict::ALL),
        claimed: Value::Null,
        observed: Value::Null,
        reason: "claimed 3 files, 1 of them did not change: a.rs".to_owned(),
        evidence: Vec::new(),
        tree: None,
    };
    let mut reports: Vec<ClaimReport> = work.claims.iter().map(|held| report(held, dice)).collect();
    reports.retain(|_| dice.chance(80));
    reports
}

/// A value of a type.
fn value_of(ty: &Type, dice: &mut Dice) -> Value {
    match dice.pick(ty.alternatives()).clone() {
        Type::Any | Type::Null => Value::Null,
        Type::Bool => Kind::Flag.value(dice),
        Type::Int => Kind::Whole.value(dice),
        Type::Double => Kind::Number.value(dice),
        Type::String(None) => Kind::Text.value(dice),
        Type::String(Some(words)) => json!(dice.pick(&words)),
        Type::List(item) => match item.as_ref() {
            Type::Object(object) if object.fields.contains_key("after") => Kind::Things.value(dice),
            item => Value::Array((0..dice.below(4)).map(|_| value_of(item, dice)).collect()),
        },
        Type::Map(item) => json!({"a": value_of(&item, dice)}),
        Type::Object(object) => {
            let mut members = Map::new();
            for (name, field) in &object.fields {
                if field.required || dice.chance(50) {
                    members.insert(name.clone(), value_of(&field.ty, dice));
                } else if dice.chance(30) {
                    // Null is absence, and agents write it.
                    members.insert(name.clone(), Value::Null);
                }
            }
            Value::Object(members)
        }
        Type::Union(_) => Value::Null,
    }
}
