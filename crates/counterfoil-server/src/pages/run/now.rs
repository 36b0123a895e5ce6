//! What a run does now, how it ended, and what can be done.

use super::super::claims::element_of;
use super::super::inbox::{Form, forms};
use super::again::{LimitField, WorkflowLimits, limit_fields, part_name, workflow_limits};
use crate::activity::{growing, is_open};
use crate::commands;
use crate::folders::RunPlace;
use crate::format::{self, Mark};
use crate::pages::filters;
use crate::site::Site;
use askama::Template;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::trouble::{Trouble, trouble_among};
use counterfoil_engine::{
    Attempt, GivenAnswer, GrowingTranscript, Reopening, RunInterruption, RunReport, RunUndoing,
};
use counterfoil_flow::{RunState, Workflow};

/// The most troubles that the banner names. All of them are on the pages of the attempts.
const MAX_TROUBLES: usize = 8;
/// The most answers on the page. The events have all.
const MAX_ANSWERS: usize = 20;

/// The banner of a run.
#[derive(Template)]
#[template(path = "run-now.html")]
pub(super) struct Banner {
    run: String,
    address: String,
    /// The name of the state folder; empty if there is only one.
    folder: String,
    workflow: String,
    task: String,
    /// The task as it was given, if the title does not have all of it.
    whole_task: String,
    mark: Mark,
    cause: String,
    reason: String,
    state: String,
    iterations: u64,
    started: Moment,
    updated: Moment,
    took: String,
    /// From when on the script counts; empty if the run does not work.
    worked_since: String,
    budget: Vec<Budget>,
    at_work: Vec<AtWork>,
    verdicts: Vec<(Mark, u64)>,
    troubles: Vec<TroubleLine>,
    more_troubles: usize,
    questions: Vec<Form>,
    undone: Vec<UndoneLine>,
    reopened: Vec<ReopenedLine>,
    /// What people answered last, and the number of answers before.
    answers: Vec<Answered>,
    earlier_answers: usize,
    /// Why the run does not go on by itself; empty if it does, if it asks, or if it has ended.
    rests: &'static str,
    can_cancel: bool,
    can_resume: bool,
    can_reopen: bool,
    needs_more: &'static str,
    /// The limits that the run can be given to go on.
    limits: Vec<LimitField>,
    workflow_limits: WorkflowLimits,
    /// What to type to try it again where the script of the page does not work.
    reopen_command: String,
    /// What to type where the server does not do it: what it is for, and the command line.
    commands: Vec<(&'static str, String)>,
}

/// A point in time, for people and for the script that shows how long ago it is.
pub(crate) struct Moment {
    /// For the attribute `datetime`.
    pub(crate) machine: String,
    /// For people.
    pub(crate) text: String,
}

impl Moment {
    pub(crate) fn new(ms: i64) -> Self {
        Self { machine: format::machine_time(ms), text: format::time(ms) }
    }
}

/// That files which the run changed were put back to what they were.
struct UndoneLine {
    by: String,
    at: Moment,
    what: String,
}

/// A part of the budget and how much of it is used.
struct Budget {
    name: &'static str,
    used: String,
    limit: String,
    /// In percent, at most 100.
    share: u64,
}

/// An attempt at work.
struct AtWork {
    title: String,
    address: String,
    agent: String,
    since: Moment,
    /// When its agent wrote last, if it did.
    active: Option<Moment>,
}

/// Something that went wrong.
struct TroubleLine {
    mark: Mark,
    title: String,
    text: String,
    address: String,
}

/// That the run was tried again after it had ended.
struct ReopenedLine {
    by: String,
    at: Moment,
    outcome: &'static str,
    because: String,
}

/// A question with what a person answered.
pub(crate) struct Answered {
    pub(crate) question: String,
    pub(crate) answer: String,
    pub(crate) by: String,
    pub(crate) at: Moment,
}

pub(super) fn banner(
    (site, place, seq): (&Site, &RunPlace, u64),
    run_state: &RunState,
    (report, attempts, given): (&RunReport, &[Attempt], &[GivenAnswer]),
    claims: &[Entry],
    (folder, task, flow): (&str, &str, Option<&Workflow>),
) -> Banner {
    let address = format!("/runs/{}", format::encode(&place.run));
    let attempt_address = |path: &[String], n: u32| {
        format!("{address}/attempts/{}", format::encode(&format::attempt_id(path, n)))
    };
    let mut transcripts = Vec::new();
    let at_work = attempts.iter().filter(|attempt| is_at_work(attempt, report)).map(|attempt| {
        let transcript = is_open(attempt).then(|| growing(place, attempts, attempt));
        let active = transcript.as_ref().and_then(GrowingTranscript::changed_at);
        transcripts.extend(transcript);
        AtWork {
            title: format::cell(&attempt.path.join(" / ")),
            address: attempt_address(&attempt.path, attempt.n),
            agent: format::cell(attempt.agent.as_deref().unwrap_or("command")),
            since: Moment::new(attempt.started_at),
            active: active.map(Moment::new),
        }
    });
    let at_work: Vec<AtWork> = at_work.collect();
    // The page is made again when they write.
    site.activity.watch(place, seq, transcripts);
    let attempts: Vec<&Attempt> = attempts.iter().collect();
    let found = trouble_among(report, &attempts, claims);
    let more_troubles = found.len().saturating_sub(MAX_TROUBLES);
    let troubles = found.iter().take(MAX_TROUBLES).map(|trouble| match trouble {
        Trouble::Failed(attempt) | Trouble::Corrected(attempt) => TroubleLine {
            mark: attempt_mark(attempt, report),
            title: format::cell(&format!("{}{}", attempt.path.join(" / "), attempt.place())),
            text: format::cell(&attempt.why()),
            address: attempt_address(&attempt.path, attempt.n),
        },
        Trouble::Refuted(entry) | Trouble::Unverifiable(entry) => TroubleLine {
            mark: format::verdict(entry.standing),
            title: format::cell(&format!(
                "{}{}: {}",
                entry.path.join(" / "),
                entry.place(),
                entry.claim.claim
            )),
            text: format::cell(&entry.claim.reason),
            address: format!("{}#{}", attempt_address(&entry.path, entry.n), element_of(entry)),
        },
    });
    let totals = report.claims.clone().unwrap_or_default();
    let can = Can::of(report);
    let needs_more = part_name(report.used_up);
    Banner {
        run: place.run.clone(),
        folder: format::cell(folder),
        workflow: format::cell(&report.workflow),
        task: format::cell(task),
        whole_task: format::beyond_cell(task),
        mark: format::run_outcome(outcome_name(report)),
        cause: report.cause.map(|cause| cause.name().to_owned()).unwrap_or_default(),
        reason: format::text(&report.reason),
        state: format::cell(&report.state),
        iterations: report.iterations,
        started: Moment::new(report.started_at),
        updated: Moment::new(report.updated_at),
        took: format::duration(report.usage.wall_ms),
        worked_since: format::worked_since(
            report.outcome == "running",
            report.updated_at,
            report.usage.wall_ms,
        ),
        budget: budget(run_state),
        at_work,
        verdicts: format::verdicts(&totals),
        troubles: troubles.collect(),
        more_troubles,
        questions: forms(site, place, &report.questions),
        undone: report.undone.iter().map(undone_line).collect(),
        reopened: report.reopened.iter().map(reopened_line).collect(),
        earlier_answers: given.len().saturating_sub(MAX_ANSWERS),
        answers: given.iter().skip(given.len().saturating_sub(MAX_ANSWERS)).map(answered).collect(),
        rests: rests_of(report),
        can_cancel: can.cancel && site.may_change(),
        can_resume: can.resume && site.may_resume(),
        can_reopen: can.reopen && site.may_resume(),
        commands: can.commands(site, place, needs_more),
        needs_more,
        limits: limit_fields(report.used_up),
        workflow_limits: workflow_limits(place, flow),
        reopen_command: commands::reopen(place, needs_more),
        address,
    }
}

/// What people can do with a run, by whatever means.
struct Can {
    cancel: bool,
    resume: bool,
    reopen: bool,
}

impl Can {
    fn of(report: &RunReport) -> Self {
        let rests = !matches!(report.outcome.as_str(), "running" | "waiting");
        Self {
            cancel: report.resumable,
            resume: report.resumable && rests && report.undone.is_empty(),
            reopen: report.reopenable,
        }
    }

    /// The command lines for what the server does not do.
    fn commands(
        &self,
        site: &Site,
        place: &RunPlace,
        needs_more: &str,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if self.resume && !site.may_resume() {
            found.push(("Resume it", commands::resume(place)));
        }
        if self.reopen && !site.may_resume() {
            found.push(("Try it again", commands::reopen(place, needs_more)));
        }
        if self.cancel && !site.may_change() {
            found.push(("Cancel it", commands::cancel(place)));
        }
        found
    }
}

/// Why a run does not go on until it is resumed; empty if it does, or cannot be resumed.
pub(crate) fn rests_of(report: &RunReport) -> &'static str {
    if Can::of(report).resume { rests(outcome_name(report)) } else { "" }
}

/// Why a run with an outcome does not go on until it is resumed; empty for others.
pub(crate) fn rests(outcome: &str) -> &'static str {
    match outcome {
        "answered" => "It was answered, and waits to be resumed.",
        "interrupted" => "No process drives it: it waits to be resumed.",
        _ => "",
    }
}

fn undone_line(undone: &RunUndoing) -> UndoneLine {
    let files = pluralize(usize::try_from(undone.files).unwrap_or(usize::MAX), "file");
    UndoneLine {
        by: format::cell(&undone.by),
        at: Moment::new(undone.at),
        what: format::cell(&format!("{files} of {}", undone.steps.join(", "))),
    }
}

fn reopened_line(reopened: &Reopening) -> ReopenedLine {
    ReopenedLine {
        by: format::cell(&reopened.by),
        at: Moment::new(reopened.at),
        outcome: reopened.outcome.name(),
        because: format::text(&reopened.because),
    }
}

/// An answer as it is shown.
pub(crate) fn answered(given: &GivenAnswer) -> Answered {
    let question = if given.question.is_empty() { &given.id } else { &given.question };
    Answered {
        question: format::text(question),
        answer: format::text(&given.answer),
        by: format::cell(&given.by),
        at: Moment::new(given.at),
    }
}

/// The outcome of a run, as lists name it. Reports say `cancelled` of a run that was interrupted and
/// can be resumed.
pub(super) fn outcome_name(report: &RunReport) -> &str {
    if report.outcome == "cancelled" && report.resumable { "interrupted" } else { &report.outcome }
}

/// Whether an attempt is at work: it has not ended, and a process drives its run.
pub(crate) fn is_at_work(attempt: &Attempt, report: &RunReport) -> bool {
    attempt.outcome.is_none() && report.outcome == "running"
}

/// Whether the process of an attempt ended in the middle of it, whether or not another process took
/// the run up since.
fn is_interrupted(attempt: &Attempt, report: &RunReport) -> bool {
    attempt.is_lost || (attempt.outcome.is_none() && !is_at_work(attempt, report))
}

/// The mark of an attempt of a run.
pub(crate) fn attempt_mark(attempt: &Attempt, report: &RunReport) -> Mark {
    if is_interrupted(attempt, report) {
        return format::run_outcome("interrupted");
    }
    format::attempt(attempt)
}

/// Why an attempt ended as it did, or does not go on; empty if nothing is known or to be said.
pub(crate) fn attempt_reason(attempt: &Attempt, report: &RunReport) -> String {
    if is_interrupted(attempt, report) {
        return "its driver process exited".to_owned();
    }
    attempt.why()
}

/// When an attempt ended. Of one that has not ended, and of one whose process died, it is the time of
/// the last event of that process: nobody worked between that and the event which tells of it.
pub(crate) fn ended_at(attempt: &Attempt, report: &RunReport) -> i64 {
    let recorded = attempt.ended_at.unwrap_or(report.updated_at);
    let is_across = |interruption: &&RunInterruption| {
        attempt.started_at <= interruption.after && interruption.taken_up_at <= recorded
    };
    let interruption = report.interrupted.iter().find(is_across).filter(|_| attempt.is_lost);
    interruption.map_or(recorded, |interruption| interruption.after).max(attempt.started_at)
}

/// The limits of a run, and what was used of them. Cost is shown without a limit, too.
fn budget(run_state: &RunState) -> Vec<Budget> {
    let (limits, usage) = (&run_state.budget, &run_state.usage);
    let counted = |name, used: u64, limit: Option<u64>| {
        limit.map(|limit| Budget {
            name,
            used: used.to_string(),
            limit: limit.to_string(),
            share: (used.saturating_mul(100) / limit.max(1)).min(100),
        })
    };
    let cost = (limits.cost_usd.is_some() || usage.cost_usd != 0.0).then(|| Budget {
        name: "cost",
        used: format::cost_or_zero(usage.cost_usd),
        limit: limits.cost_usd.map(format::dollars).unwrap_or_default(),
        share: limits.cost_usd.map_or(0, |limit| format::percent(usage.cost_usd, limit)),
    });
    let time = limits.time_ms.map(|limit| Budget {
        name: "time",
        used: format::duration(usage.wall_ms),
        limit: format::duration(limit),
        share: (usage.wall_ms.saturating_mul(100) / limit.max(1)).min(100),
    });
    let tokens = usage.input_tokens + usage.output_tokens;
    let parts = [
        cost,
        time,
        counted("tokens", tokens, limits.tokens),
        counted("iterations", run_state.iterations, limits.iterations),
        counted("attempts", run_state.started, limits.attempts),
    ];
    parts.into_iter().flatten().collect()
}
