//! One attempt: ask, read, hold to the contract, ask again for just the result. It knows neither
//! the journal's rows nor the workflow; what it needs comes with the request, and what comes of it
//! goes through the handle.

use counterfoil_agents::agent::{Agent, Answer, Beside, How, Later, Reach, Task};
use counterfoil_agents::echo::without;
use counterfoil_agents::ladder::{Offered, Weighed, weigh};
use counterfoil_agents::transcript::{Stored, TranscriptError, TranscriptSink};
use counterfoil_contract::claim::ClaimReport;
use counterfoil_contract::render::prompt;
use counterfoil_contract::{Contract, Report, Status, Violation};
use counterfoil_flow::{
    AgentWork, AttemptOutcome, Budget, ChangedFiles, Ended, Event, Reply, Usage,
};
use counterfoil_process::StopRequest;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// What to do.
pub struct AgentRequest {
    /// The attempt's id.
    pub attempt: String,
    /// Names it among the attempts of all runs.
    pub marker: String,
    /// The work.
    pub work: AgentWork,
    /// Where it is done.
    pub cwd: PathBuf,
    /// A folder for files that are nobody's work.
    pub scratch: PathBuf,
    /// What is left of the run's budget.
    pub left: Budget,
}

/// Holds what an attempt says against what happened.
pub trait Witness: Send {
    /// Looks at the workspace before anything happens in it.
    fn begin(&mut self) -> Later<'_, ()>;
    /// Holds a result against the world.
    fn examine<'a>(&'a mut self, value: &'a Value) -> Later<'a, Vec<ClaimReport>>;
    /// Looks at the workspace for the last time, whatever became of the result; if nothing happened
    /// since the last result was examined, what was seen then still holds.
    fn conclude(&mut self, examined: bool) -> Later<'_, Conclusion>;
}

/// What was seen at the end of an attempt.
#[derive(Clone, Debug, Default)]
pub struct Conclusion {
    /// What it changed.
    pub changed: Option<ChangedFiles>,
    /// The tree it left.
    pub tree: Option<String>,
    /// What the engine itself holds against it, for an attempt without a result.
    pub claims: Vec<ClaimReport>,
}

/// What an attempt reaches of the world outside of it.
pub trait Handle: Send + Sync {
    /// Whoever watches sees that it lives, and what it does.
    fn heartbeat(&self, activity: &str);
    /// Says when to stop.
    fn stop(&self) -> watch::Receiver<StopRequest>;
    /// A place for what is received.
    fn transcript(
        &self,
        name: &str,
        kept: Kept,
    ) -> Result<Box<dyn TranscriptSink>, TranscriptError>;
    /// Something that happened on the way.
    fn progress(&self, event: Event);
    /// What else has been writing in the folder of this attempt since a time, for an attempt in a
    /// folder that others may write in. Other attempts of the same worker are known without it.
    fn concurrent_writer(&self, since: SystemTime) -> Option<String>;
}

/// How what is received is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Each in a file of its own.
    InFiles,
    /// As lines of one file of the run.
    InLines,
}

/// How an attempt ended, and the budget it used up, if it did.
pub struct Completed {
    /// How it ended.
    pub ended: Ended,
    /// The budget that is used up.
    pub used_up: Option<String>,
    /// Why what it said could not be kept: that is no fault of the agent, and says nothing of how
    /// it ended.
    pub unkept: Option<TranscriptError>,
}

/// A session that does not come back this long after its time was up or it was told to stop is left
/// alone.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs one attempt to its end. A witness, if there is one, holds what it says against what
/// happened.
pub async fn attempt(
    request: AgentRequest,
    agent: Arc<dyn Agent>,
    handle: Arc<dyn Handle>,
    mut witness: Option<Box<dyn Witness>>,
) -> Completed {
    if let Some(witness) = &mut witness {
        witness.begin().await;
    }
    let mut done = converse(&request, agent, handle, &mut witness).await;
    if let Some(mut witness) = witness {
        let examined =
            matches!(done.ended.outcome, AttemptOutcome::Accepted | AttemptOutcome::Claim);
        let conclusion = witness.conclude(examined).await;
        done.ended.changed = conclusion.changed;
        done.ended.tree = conclusion.tree;
        if done.ended.claims.is_empty() {
            done.ended.claims = conclusion.claims;
        }
    }
    done
}

/// The conversation: the first reply and the repairs.
async fn converse(
    request: &AgentRequest,
    agent: Arc<dyn Agent>,
    handle: Arc<dyn Handle>,
    witness: &mut Option<Box<dyn Witness>>,
) -> Completed {
    let work = &request.work;
    let most = agent.timeout().unwrap_or(Duration::from_millis(work.bounds.timeout_ms));
    let mut deadline = Instant::now() + most;
    let mut session = agent.open(Task {
        agent: work.agent.clone(),
        marker: request.marker.clone(),
        cwd: request.cwd.clone(),
        scratch: request.scratch.clone(),
        access: work.access,
        contract: work.contract.clone(),
        startup: work.bounds.startup_ms.map(Duration::from_millis),
        idle: work.bounds.idle_ms.map(Duration::from_millis),
    });
    let mut spent = Usage::default();
    let mut asked = work.prompt.clone();
    let mut repairs = 0;
    let mut denied: Vec<String> = Vec::new();
    loop {
        let name = format!("{}.{}", request.attempt, repairs + 1);
        let kept = if agent.has_files() { Kept::InFiles } else { Kept::InLines };
        let transcript = match handle.transcript(&name, kept) {
            Ok(transcript) => transcript,
            Err(error) => return unkept(request, error),
        };
        // What was asked stands beside what was said, for whoever reads the run.
        let told = session.told(&asked);
        if let Err(error) = keep_prompt(&*handle, &format!("{name}.prompt"), kept, &told) {
            return unkept(request, error);
        }
        let beat = handle.clone();
        let mut reach = Reach {
            stop: handle.stop(),
            total: deadline.saturating_duration_since(Instant::now()),
            transcript,
            activity: Arc::new(move |line: &str| beat.heartbeat(line)),
        };
        let answer = one_reply(&mut *session, &asked, &mut reach).await;
        let stored = match keep(reach.transcript, &answer) {
            Ok(stored) => stored,
            Err(error) => return unkept(request, error),
        };
        spent += answer.usage;
        let mut reply = match keep_beside(&*handle, &name, kept, &answer) {
            Ok(beside) => Reply {
                transcript: stored.path,
                sha256: stored.sha256,
                played: answer.played,
                ..beside
            },
            Err(error) => return unkept(request, error),
        };
        if let How::Failed { outcome, reason, reset_at } = answer.how {
            outcome.name().clone_into(&mut reply.status);
            let ended = Ended { reason, reset_at, ..ended(request, outcome, reply, answer.usage) };
            return Completed { ended, used_up: None, unkept: None };
        }
        let said = without(&answer.text, &[&told, &asked, &prompt::suffix(&work.contract)]);
        let offered = Offered {
            text: &said,
            structured: answer.beside.structured.as_ref(),
            submissions: &answer.beside.submissions,
        };
        let Weighed { report, channel, notes } = weigh(&work.contract, &work.rules, offered);
        reply.channel = channel;
        reply.notes.extend(notes);
        denied.extend(reply.denied.iter().cloned());
        status(report.status).clone_into(&mut reply.status);
        reply.codes = report.codes().iter().map(ToString::to_string).collect();
        reply.why = report.violations.first().map(in_words).unwrap_or_default();
        let used_up = over(&work.bounds.budget, &spent, "this step")
            .or_else(|| over(&request.left, &spent, "the run"));
        let mut claims = Vec::new();
        let satisfied = report.value.is_some();
        if let (Some(value), Some(witness)) = (&report.value, witness.as_mut()) {
            // The time it takes to look is not the agent's.
            let looking = Instant::now();
            claims = witness.examine(value).await;
            deadline += looking.elapsed();
            if *handle.stop().borrow() != StopRequest::None {
                let reason = "stopped while its claims were held against the workspace".to_owned();
                let ended = Ended {
                    reason,
                    ..ended(request, AttemptOutcome::Cancelled, reply, answer.usage)
                };
                return Completed { ended, used_up: None, unkept: None };
            }
        }
        let refuted: Vec<ClaimReport> =
            claims.iter().filter(|claim| claim.blocks()).cloned().collect();
        match judge(&work.contract, report, &refuted, repairs, work.bounds.repairs) {
            Judged::Accepted(_) if answer.beside.denied_fails && !denied.is_empty() => {
                let ended = forbidden(
                    &denied,
                    ended(request, AttemptOutcome::Permission, reply, answer.usage),
                );
                return Completed { ended, used_up, unkept: None };
            }
            Judged::Accepted(value) => {
                let ended = Ended {
                    value: Some(value),
                    claims,
                    ..ended(request, AttemptOutcome::Accepted, reply, answer.usage)
                };
                return Completed { ended, used_up, unkept: None };
            }
            Judged::GiveUp(report) => {
                let mut ended = refused(request, *report, reply, answer.usage, repairs);
                // It is not that it did not know what to hand back: it could not do what it had to.
                if !denied.is_empty() {
                    ended =
                        forbidden(&denied, Ended { outcome: AttemptOutcome::Permission, ..ended });
                }
                return Completed { ended, used_up, unkept: None };
            }
            Judged::Refuted(value) => {
                "refuted".clone_into(&mut reply.status);
                let ended = Ended {
                    reason: contradicted(&refuted, repairs),
                    partial: Some(value),
                    claims,
                    ..ended(request, AttemptOutcome::Claim, reply, answer.usage)
                };
                return Completed { ended, used_up, unkept: None };
            }
            Judged::Repair(text) => {
                if let Some(what) = used_up {
                    let reason = format!("the result was not accepted, and {what}");
                    let ended = Ended {
                        reason,
                        claims,
                        ..ended(request, AttemptOutcome::Cancelled, reply, answer.usage)
                    };
                    return Completed { ended, used_up: Some(what), unkept: None };
                }
                if satisfied {
                    "refuted".clone_into(&mut reply.status);
                }
                repairs += 1;
                asked = text;
                handle.progress(Event::RepairAsked {
                    attempt: request.attempt.clone(),
                    reply,
                    usage: answer.usage,
                    claims,
                });
            }
        }
    }
}

/// Why a result was not taken although it satisfies its contract.
fn contradicted(refuted: &[ClaimReport], repairs: u32) -> String {
    let words: Vec<String> =
        refuted.iter().map(|one| format!("{}: {}", one.claim, one.reason)).collect();
    format!("refuted: {}{}", words.join("; "), after(repairs))
}

/// A reply, however the session behaves: one that neither answers nor stops is given up.
async fn one_reply(
    session: &mut dyn counterfoil_agents::agent::Session,
    prompt: &str,
    reach: &mut Reach,
) -> Answer {
    let mut stop = reach.stop.clone();
    let total = reach.total;
    let late = async {
        tokio::select! {
            () = tokio::time::sleep(total) => {
                tokio::time::sleep(PATIENCE).await;
                (AttemptOutcome::Timeout, "it took too long and did not stop")
            }
            () = async { drop(stop.wait_for(|stop| *stop != StopRequest::None).await) } => {
                tokio::time::sleep(PATIENCE).await;
                (AttemptOutcome::Cancelled, "it was told to stop and did not")
            }
        }
    };
    tokio::select! {
        answer = session.ask(prompt, reach) => answer,
        (outcome, reason) = late => Answer {
            text: Vec::new(),
            usage: Usage::default(),
            how: How::failed(outcome, reason),
            played: None,
            recorded: true,
            beside: Beside::default(),
        },
    }
}

fn keep_prompt(
    handle: &dyn Handle,
    name: &str,
    kept: Kept,
    prompt: &str,
) -> Result<(), TranscriptError> {
    let mut file = handle.transcript(name, kept)?;
    file.write(prompt.as_bytes())?;
    file.close();
    Ok(())
}

/// What was received, kept in a file. What streamed from a process is brought to the disk; a short
/// reply stands in the journal as well.
fn keep(
    mut transcript: Box<dyn TranscriptSink>,
    answer: &Answer,
) -> Result<Stored, TranscriptError> {
    if let Some(error) = transcript.error() {
        return Err(error.clone());
    }
    if answer.recorded {
        return transcript.finish();
    }
    transcript.write(&answer.text)?;
    Ok(transcript.close())
}

/// What came beside the text, in files of its own where it is long: the beginning of how the reply
/// is told of.
fn keep_beside(
    handle: &dyn Handle,
    name: &str,
    kept: Kept,
    answer: &Answer,
) -> Result<Reply, TranscriptError> {
    let beside = &answer.beside;
    let keep = |what: &str, bytes: &[u8]| -> Result<Option<String>, TranscriptError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut file = handle.transcript(&format!("{name}.{what}"), kept)?;
        file.write(bytes)?;
        Ok(Some(file.close().path))
    };
    let lines = |values: Vec<serde_json::Result<String>>| -> String {
        values.into_iter().flatten().map(|line| line + "\n").collect()
    };
    let submissions = lines(beside.submissions.iter().map(serde_json::to_string).collect());
    let structured = lines(beside.structured.iter().map(serde_json::to_string).collect());
    Ok(Reply {
        text: if beside.events { keep("text", &answer.text)? } else { None },
        errors: keep("stderr", &beside.errors)?,
        submissions: keep("submissions", submissions.as_bytes())?,
        structured: keep("structured", structured.as_bytes())?,
        conversation: beside.conversation.clone(),
        exit: beside.exit,
        denied: beside.denied.clone(),
        notes: beside.notes.clone(),
        ..Reply::default()
    })
}

/// The end of an attempt that was not allowed to do what it had to.
fn forbidden(denied: &[String], ended: Ended) -> Ended {
    let mut words: Vec<&str> = denied.iter().map(String::as_str).collect();
    words.dedup();
    let more = words.len().saturating_sub(3);
    words.truncate(3);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let why = if ended.reason.is_empty() { String::new() } else { format!("; {}", ended.reason) };
    Ended { reason: format!("it was not allowed to: {}{more}{why}", words.join(", ")), ..ended }
}

/// What to do with a reply.
enum Judged {
    Accepted(Value),
    Repair(String),
    GiveUp(Box<Report>),
    Refuted(Value),
}

fn judge(
    contract: &Contract,
    report: Report,
    refuted: &[ClaimReport],
    repairs: u32,
    most: u32,
) -> Judged {
    match report.value {
        Some(value) if refuted.is_empty() => Judged::Accepted(value),
        Some(_) if repairs < most => Judged::Repair(prompt::repair_claims(contract, refuted)),
        Some(value) => Judged::Refuted(value),
        None if repairs < most => Judged::Repair(prompt::repair(contract, &report)),
        None => Judged::GiveUp(Box::new(report)),
    }
}

fn over(budget: &Budget, spent: &Usage, whose: &str) -> Option<String> {
    let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
    if let Some(most) = budget.tokens.filter(|most| tokens > *most) {
        return Some(format!("{tokens} tokens are more than the {most} of {whose}"));
    }
    if let Some(most) = budget.cost_usd.filter(|most| spent.cost_usd > *most) {
        return Some(format!("{:.4} USD are more than the {most:.4} of {whose}", spent.cost_usd));
    }
    let most = budget.time_ms.filter(|most| spent.wall_ms > *most)?;
    Some(format!("{} ms are more than the {most} of {whose}", spent.wall_ms))
}

/// A violation for whoever watches: what is wrong, and where, unless it names its fields itself.
fn in_words(violation: &Violation) -> String {
    match violation.pointer.as_str() {
        pointer if !pointer.is_empty() && !violation.message.contains('`') => {
            format!("{pointer}: {}", violation.message)
        }
        _ => violation.message.clone(),
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Accepted => "accepted",
        Status::Rejected => "rejected",
        Status::Absent => "absent",
    }
}

fn ended(request: &AgentRequest, outcome: AttemptOutcome, reply: Reply, usage: Usage) -> Ended {
    Ended { reply: Some(reply), usage, ..bare(&request.attempt, outcome) }
}

/// The end of an attempt of which nothing more is known.
pub(crate) fn bare(attempt: &str, outcome: AttemptOutcome) -> Ended {
    Ended {
        attempt: attempt.to_owned(),
        outcome,
        value: None,
        partial: None,
        reason: String::new(),
        violations: Vec::new(),
        claims: Vec::new(),
        changed: None,
        reply: None,
        usage: Usage::default(),
        reset_at: None,
        tree: None,
    }
}

impl Completed {
    /// An attempt that failed before it could say anything.
    pub fn failed(attempt: &str, reason: String) -> Self {
        Self {
            ended: Ended { reason, ..bare(attempt, AttemptOutcome::Agent) },
            used_up: None,
            unkept: None,
        }
    }
}

fn refused(
    request: &AgentRequest,
    report: Report,
    reply: Reply,
    usage: Usage,
    repairs: u32,
) -> Ended {
    let what = match report.status {
        Status::Absent => "no result was found in the reply",
        _ => "the result does not satisfy the contract",
    };
    let first = report
        .violations
        .first()
        .map(|violation| format!(": {}", violation.message))
        .unwrap_or_default();
    let again = after(repairs);
    let violations = report
        .violations
        .iter()
        .filter_map(|violation| serde_json::to_value(violation).ok())
        .collect();
    Ended {
        reason: format!("{what}{first}{again}"),
        partial: report.partial,
        violations,
        ..ended(request, AttemptOutcome::Contract, reply, usage)
    }
}

fn after(repairs: u32) -> String {
    match repairs {
        0 => String::new(),
        1 => " (after 1 repair)".to_owned(),
        more => format!(" (after {more} repairs)"),
    }
}

fn unkept(request: &AgentRequest, error: TranscriptError) -> Completed {
    let ended = Ended {
        reason: error.to_string(),
        reply: None,
        ..ended(request, AttemptOutcome::Cancelled, Reply::default(), Usage::default())
    };
    Completed { ended, used_up: None, unkept: Some(error) }
}
