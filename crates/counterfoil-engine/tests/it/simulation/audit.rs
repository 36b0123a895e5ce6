//! Checks the invariants of a run while its journal grows. It keeps records of its own and does not
//! rely on the run state, except to compare it with these records.

use crate::simulation::checks::{self, CheckAudit};
use crate::simulation::fan_out::FanOutAudit;
use crate::simulation::journal::{self, Journal};
use crate::simulation::limits::Limits;
use crate::simulation::workspaces::WorkspaceAudit;
use counterfoil_contract::claim::ClaimReport;
use counterfoil_flow::{
    AttemptOutcome, AttemptRequest, Body, Budget, Dispatch, Event, FailureKind, Frame, Phase,
    Reopened, RunState, Step, Usage, Workflow, WorkspaceStage,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One visit of a state by a frame.
#[derive(Default)]
struct Visit {
    accepted: bool,
    retries: BTreeMap<FailureKind, u32>,
    not_before: Option<i64>,
}

impl Visit {
    /// The visit of a frame that continues after the run was reopened.
    fn continued(frame: &Frame) -> Self {
        let accepted = matches!(frame.phase, Phase::Resulted(_));
        Self { accepted, retries: frame.tries.clone(), not_before: None }
    }
}

pub(crate) struct Audit<'w> {
    workflow: &'w Workflow,
    /// The state from all events of the journal.
    pub(crate) run_state: RunState,
    /// The state from the latest snapshot and the events after it.
    tail: Option<RunState>,
    snapshot: u64,
    read: usize,
    last_at: i64,
    budget: Budget,
    usage: Usage,
    attempts: u64,
    /// The recorded attempts, with the epoch of the driver that recorded them.
    recorded: BTreeMap<String, u64>,
    /// The attempts in flight, with their frames.
    open: BTreeMap<String, String>,
    /// The frame of every attempt.
    recorded_frames: BTreeMap<String, String>,
    /// The claims of the last result that each attempt was asked to repair.
    repaired: BTreeMap<String, BTreeSet<String>>,
    paths: BTreeMap<Vec<String>, u32>,
    visits: BTreeMap<String, Visit>,
    parents: BTreeMap<String, Option<String>>,
    asked: BTreeSet<String>,
    answered: BTreeSet<String>,
    limits: Limits,
    fan_out: FanOutAudit,
    workspaces: WorkspaceAudit,
    checks: CheckAudit,
    /// The frames of items that continue when they are opened.
    parked: BTreeMap<String, Frame>,
    ended: bool,
    /// The number of events of each kind.
    pub(crate) kinds: BTreeMap<&'static str, u64>,
}

impl<'w> Audit<'w> {
    pub(crate) fn new(workflow: &'w Workflow) -> Self {
        Self {
            workflow,
            run_state: RunState::default(),
            tail: None,
            snapshot: 0,
            read: 0,
            last_at: i64::MIN,
            budget: Budget::default(),
            usage: Usage::default(),
            attempts: 0,
            recorded: BTreeMap::new(),
            open: BTreeMap::new(),
            recorded_frames: BTreeMap::new(),
            repaired: BTreeMap::new(),
            paths: BTreeMap::new(),
            visits: BTreeMap::new(),
            parents: BTreeMap::new(),
            asked: BTreeSet::new(),
            answered: BTreeSet::new(),
            limits: Limits::default(),
            fan_out: FanOutAudit::default(),
            workspaces: WorkspaceAudit::default(),
            checks: CheckAudit::default(),
            parked: BTreeMap::new(),
            ended: false,
            kinds: BTreeMap::new(),
        }
    }

    /// A driver may start only attempts that it recorded itself, in a workspace that is open.
    pub(crate) fn may_start(&self, start: &AttemptRequest, epoch: u64) -> Result<(), String> {
        let attempt = &start.attempt;
        if let Some(workspace) = start.work.workspace() {
            self.workspaces.may_work_in(workspace)?;
        }
        match self.recorded.get(attempt) {
            Some(by) if *by == epoch => Ok(()),
            Some(by) => {
                Err(format!("driver {epoch} started {attempt}, which driver {by} recorded"))
            }
            None => Err(format!("driver {epoch} started {attempt}, which is not recorded")),
        }
    }

    /// Reads the appended events, and compares the driver's state with them.
    pub(crate) fn appended(
        &mut self,
        journal: &Journal,
        epoch: u64,
        written: &[(Event, i64)],
        live: &RunState,
    ) -> Result<(), String> {
        let rows = &journal.rows[self.read..];
        if rows.len() != written.len() {
            return Err(format!(
                "{} events were appended and {} stand in the journal",
                written.len(),
                rows.len()
            ));
        }
        for (row, (event, at)) in rows.iter().zip(written) {
            self.read += 1;
            if row.seq != self.read as u64 || row.at != *at {
                return Err(format!(
                    "event {} has the place {} and the time {}",
                    self.read, row.seq, row.at
                ));
            }
            if row.at < self.last_at {
                return Err(format!(
                    "the time of event {} is before that of the one before",
                    row.seq
                ));
            }
            self.last_at = row.at;
            let read = journal::read(&row.body)
                .map_err(|why| format!("a {} cannot be read back: {why}", event.kind()))?;
            if read != *event {
                return Err(format!(
                    "a {} reads back otherwise: {event:?} became {read:?}",
                    event.kind()
                ));
            }
            *self.kinds.entry(read.kind()).or_default() += 1;
            self.examine(&read, row.at, epoch)
                .map_err(|why| format!("event {}: {why}", row.seq))?;
            self.run_state.apply(&read, row.at);
            self.claims(&read).map_err(|why| format!("event {}: {why}", row.seq))?;
            self.fan_out
                .after(&read, &self.run_state)
                .map_err(|why| format!("event {}: {why}", row.seq))?;
            if let Some(tail) = &mut self.tail {
                tail.apply(&read, row.at);
            }
        }
        let whole = json(&self.run_state);
        same(&whole, &json(live), "the driver's run_state and the replay")?;
        if let Some((seq, body)) = &journal.snapshot
            && *seq != self.snapshot
        {
            self.snapshot = *seq;
            let restored = serde_json::from_slice(body);
            self.tail =
                Some(restored.map_err(|why| format!("the snapshot cannot be read: {why}"))?);
        }
        if let Some(tail) = &self.tail {
            same(&whole, &json(tail), "the replay and the snapshot with its tail")?;
        }
        // Fields that are not serialised do not show in the bytes.
        if *live != self.run_state || self.tail.as_ref().is_some_and(|tail| *tail != self.run_state)
        {
            return Err("the states are serialised alike but differ".to_owned());
        }
        Ok(())
    }

    /// Reads the whole journal again, as a driver that resumes the run does.
    pub(crate) fn reread(&self, journal: &Journal) -> Result<(), String> {
        let whole = json(&self.run_state);
        same(&whole, &json(&journal.replay()), "the sum of the events and a replay of all")?;
        same(&whole, &json(&journal.load()), "the sum of the events and what a new driver loads")
    }

    fn examine(&mut self, event: &Event, at: i64, epoch: u64) -> Result<(), String> {
        if let Event::RunReopened(reopened) = event {
            self.checks.before(event, &self.run_state, self.workflow)?;
            return self.reopened(reopened);
        }
        if self.ended {
            return Err(format!("a {} follows the end of the run", event.kind()));
        }
        self.limits.before(event, &self.run_state, self.workflow)?;
        self.fan_out.before(event)?;
        self.checks.before(event, &self.run_state, self.workflow)?;
        self.workspaces.before(event, &self.open)?;
        match event {
            Event::RunStarted(started) => self.budget = started.budget.clone(),
            Event::AttemptStarted { attempt, frame, path, n, builtin, .. } => {
                let runs_checks = checks::kind(builtin.as_ref()).is_some();
                self.attempt_started(attempt, frame, path, (*n, at), runs_checks)?;
                self.recorded.insert(attempt.clone(), epoch);
                self.recorded_frames.insert(attempt.clone(), frame.clone());
            }
            Event::RepairAsked { attempt, usage, .. } => {
                if !self.open.contains_key(attempt) {
                    return Err(format!("{attempt} is not in flight and was asked to repair"));
                }
                self.usage += *usage;
            }
            Event::AttemptEnded(ended) => {
                let Some(frame) = self.open.remove(&ended.attempt) else {
                    return Err(format!("{} is not in flight and ended", ended.attempt));
                };
                self.usage += ended.usage;
                if self.checks.runs_checks(&ended.attempt) {
                    return Ok(());
                }
                let visit = self.visits.entry(frame).or_default();
                visit.accepted |= ended.outcome == AttemptOutcome::Accepted;
                visit.not_before = None;
            }
            Event::AttemptLost { attempt, .. } => {
                let known = self.open.remove(attempt);
                let frame =
                    known.ok_or_else(|| format!("{attempt} is not in flight and was lost"))?;
                // The result of the step is not lost, so its workspace is kept.
                if !self.checks.runs_checks(attempt) {
                    self.workspaces.lost(&frame);
                }
            }
            Event::RetryPlanned { frame, failure, retry, not_before, .. } => {
                let most = self.retries(frame, *failure);
                let visit = self.visits.entry(frame.clone()).or_default();
                let times = visit.retries.entry(*failure).or_default();
                *times += 1;
                if *times != *retry || *times > most {
                    return Err(format!(
                        "retry {retry} for {} is number {times} of {most}",
                        failure.name()
                    ));
                }
                visit.not_before = Some(*not_before);
            }
            Event::Asked { questions, .. } => {
                for asked in questions {
                    if !self.asked.insert(asked.id.clone()) {
                        return Err(format!("two questions have the id {}", asked.id));
                    }
                }
            }
            Event::Answered { question, .. } => {
                let first = self.answered.insert(question.clone());
                if !first || !self.asked.contains(question) {
                    return Err(format!("question {question} was answered and is not open"));
                }
            }
            Event::FrameOpened { frame, parent, .. } => {
                if self.parents.insert(frame.clone(), parent.clone()).is_some() {
                    return Err(format!("frame '{frame}' was opened twice"));
                }
                let visit = self.parked.get(frame).map(Visit::continued).unwrap_or_default();
                self.visits.insert(frame.clone(), visit);
            }
            Event::TransitionTaken(moved) => {
                if self.open.values().any(|frame| *frame == moved.frame) {
                    return Err(format!("frame '{}' moved with an attempt in flight", moved.frame));
                }
                self.visits.insert(moved.frame.clone(), Visit::default());
            }
            Event::FrameEnded { frame, .. } => {
                if self.parents.values().any(|parent| parent.as_ref() == Some(frame)) {
                    return Err(format!("frame '{frame}' ended before a frame inside it"));
                }
                if self.open.values().any(|open| open == frame) {
                    return Err(format!("frame '{frame}' ended with an attempt in flight"));
                }
                self.parents.remove(frame);
            }
            Event::WorkspaceFailed { frame, workspace, .. } => {
                // What is inside a frame cannot go on without the frame's work.
                let own = self.run_state.frames.get(frame).and_then(|at| at.workspace.as_ref());
                let is_lost = own.is_some_and(|own| {
                    own.id == *workspace
                        && own.stage == WorkspaceStage::Planned
                        && own.restore.is_some()
                });
                if is_lost {
                    let inside = format!("{frame}/");
                    self.parents.retain(|id, _| !id.starts_with(&inside));
                }
            }
            Event::RunEnded { .. } => {
                if let Some(attempt) = self.open.keys().next() {
                    return Err(format!("the run ended with {attempt} in flight"));
                }
                self.ended = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// A run that ended continues with these frames. What they finished stays finished.
    fn reopened(&mut self, reopened: &Reopened) -> Result<(), String> {
        if !std::mem::take(&mut self.ended) {
            return Err("a run was reopened that had not ended".to_owned());
        }
        let read = |frames: &Map<String, Value>| -> Result<BTreeMap<String, Frame>, String> {
            serde_json::from_value(Value::Object(frames.clone())).map_err(|why| why.to_string())
        };
        let frames = read(&reopened.frames)?;
        self.parked = read(&reopened.parked)?;
        for (parked, frame) in &self.parked {
            if frame.item.is_some() && self.fan_out.was_done(frame) {
                return Err(format!("item '{parked}' was done and starts again"));
            }
        }
        self.budget = self.budget.with(&reopened.changes.budget);
        self.parents = frames.iter().map(|(id, at)| (id.clone(), at.parent.clone())).collect();
        self.visits = frames.iter().map(|(id, at)| (id.clone(), Visit::continued(at))).collect();
        self.limits.reopened(&reopened.changes, &frames, &self.parked);
        self.workspaces.reopened(&frames, &self.parked)?;
        let all = frames.into_iter().chain(self.parked.clone()).collect();
        self.fan_out.reopened(&all)
    }

    /// The state has the verdicts on the last result, also if its attempt ends or is lost without
    /// another one.
    fn claims(&mut self, event: &Event) -> Result<(), String> {
        let names = |reports: &[ClaimReport]| -> BTreeSet<String> {
            reports.iter().map(|report| report.claim.clone()).collect()
        };
        let (attempt, told) = match event {
            Event::RepairAsked { attempt, claims, .. } if !claims.is_empty() => {
                self.repaired.insert(attempt.clone(), names(claims));
                (attempt, Some(names(claims)))
            }
            Event::AttemptEnded(ended) => {
                (&ended.attempt, ended.verifies_result().then(|| names(&ended.claims)))
            }
            Event::AttemptLost { attempt, .. } => (attempt, None),
            _ => return Ok(()),
        };
        if self.checks.runs_checks(attempt) {
            return Ok(());
        }
        let frame = self.recorded_frames.get(attempt);
        let Some(frame) = frame.and_then(|frame| self.run_state.frames.get(frame)) else {
            return Ok(());
        };
        let known: BTreeSet<String> = frame.verdicts().into_keys().map(str::to_owned).collect();
        let is_kept = match (&told, self.repaired.get(attempt)) {
            (Some(told), _) => known == *told,
            (None, Some(repaired)) => known.is_superset(repaired),
            (None, None) => true,
        };
        if is_kept {
            Ok(())
        } else {
            Err(format!("{attempt}: {told:?} were told, and {known:?} are known"))
        }
    }

    fn attempt_started(
        &mut self,
        attempt: &str,
        frame: &str,
        path: &[String],
        (n, at): (u32, i64),
        runs_checks: bool,
    ) -> Result<(), String> {
        let before = self.paths.insert(path.to_vec(), n).unwrap_or(0);
        if n != before + 1 || self.recorded.contains_key(attempt) {
            return Err(format!("{attempt} is attempt {n} behind {before}"));
        }
        if let Some(other) = self.open.iter().find(|(_, open)| *open == frame) {
            return Err(format!("{attempt} started while {} is in flight", other.0));
        }
        if runs_checks {
            self.open.insert(attempt.to_owned(), frame.to_owned());
            return Ok(());
        }
        let visit = self.visits.entry(frame.to_owned()).or_default();
        if visit.accepted {
            return Err(format!("{attempt} started, and the step has its result"));
        }
        if visit.not_before.is_some_and(|time| at < time) {
            return Err(format!("{attempt} started before its time"));
        }
        self.open.insert(attempt.to_owned(), frame.to_owned());
        self.attempts += 1;
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        let budget = &self.budget;
        let over = budget.tokens.is_some_and(|most| tokens >= most)
            || budget.cost_usd.is_some_and(|most| self.usage.cost_usd >= most)
            || budget.attempts.is_some_and(|most| self.attempts > most)
            || budget.iterations.is_some_and(|most| self.run_state.iterations > most)
            || budget.time_ms.is_some_and(|most| self.run_state.usage.wall_ms >= most);
        if over {
            return Err(format!(
                "{attempt} started with a budget used up: {budget:?}, {:?}",
                self.usage
            ));
        }
        Ok(())
    }

    /// How often a failure of this kind is retried in the current state of a frame.
    fn retries(&self, frame: &str, failure: FailureKind) -> u32 {
        let dispatch =
            self.run_state.frames.get(frame).and_then(|frame| dispatch(self.workflow, frame));
        dispatch.and_then(|dispatch| dispatch.bounds.retries.get(&failure).copied()).unwrap_or(0)
    }
}

fn dispatch<'w>(workflow: &'w Workflow, frame: &Frame) -> Option<&'w Dispatch> {
    match &workflow.machine(&frame.machine)?.states.get(&frame.state)?.kind {
        Step::Agent(dispatch) => Some(dispatch),
        Step::Each(each) => match &each.body {
            Body::Agent(dispatch) => Some(dispatch),
            Body::Machine { .. } => None,
        },
        _ => None,
    }
}

/// Whether a run only waits for an answer.
pub(crate) fn waits_for_somebody(run_state: &RunState) -> bool {
    let asking =
        |frame: &str| run_state.frames.get(frame).is_some_and(|frame| frame.phase == Phase::Asking);
    run_state.open_questions().any(|(_, question)| !question.optional && asking(&question.frame))
}

fn json(run_state: &RunState) -> String {
    serde_json::to_string(run_state).expect("the run_state can be written")
}

fn same(left: &str, right: &str, what: &str) -> Result<(), String> {
    if left == right {
        return Ok(());
    }
    let at = left.bytes().zip(right.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| {
        let part = text.as_bytes().get(at.saturating_sub(80)..).unwrap_or_default();
        String::from_utf8_lossy(&part[..part.len().min(200)]).into_owned()
    };
    Err(format!("{what} differ at byte {at}:\n  {}\n  {}", around(left), around(right)))
}
