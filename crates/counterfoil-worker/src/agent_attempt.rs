//! An agent's attempt: send the prompt, extract and validate the result, ask for repairs. What it
//! needs comes with the input; what happens goes to the context.

mod budget;
mod outcome;
mod storage;

use budget::{Limit, Owner, exceeded_budget, left_of};
use outcome::{
    Failure, NextStep, blocking_reason, ended, first_line, next_step, permission_denied, rejected,
    status_name, violation_text,
};
use storage::{store_details, store_prompt, store_reply};

use crate::attempt::{AttemptContext, AttemptResult, TranscriptMode};
use crate::rejected_items::RejectedItems;
use crate::slow_look::announce_if_slow;
use counterfoil_agents::agent::{
    Agent, AgentReply, BoxFuture, Message, Prompt, PromptContext, ReplyDetails, ReplyStatus,
    Session, Task,
};
use counterfoil_agents::check_service::CheckService;
use counterfoil_agents::result_selection::{ResultCandidates, ResultSelector, SelectedResult};
use counterfoil_contract::claim::ClaimReport;
use counterfoil_contract::policy::READER_VERSION;
use counterfoil_contract::{Context, Status};
use counterfoil_flow::{
    AgentWork, AttemptOutcome, Budget, ChangedFiles, Ended, Event, Reply, Usage,
};
use counterfoil_process::StopRequest;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

/// How long a result may be read that came just before the end of the agent's time.
const MIN_READING_TIME: Duration = Duration::from_secs(10);

/// An agent's attempt to perform.
pub(crate) struct AttemptInput {
    /// The attempt's id.
    pub(crate) attempt: String,
    /// Identifies the attempt among the attempts of all runs.
    pub(crate) marker: String,
    /// What the agent has to do.
    pub(crate) work: AgentWork,
    /// The folder in which the agent works.
    pub(crate) cwd: PathBuf,
    /// A folder for temporary files that are not part of the work.
    pub(crate) scratch: PathBuf,
    /// The remaining budget of the run.
    pub(crate) budget_left: Budget,
    /// The checks that the agent can have run.
    pub(crate) checks: Option<CheckService>,
    /// What is known of the attempt before it begins.
    pub(crate) known: Context,
}

impl AttemptInput {
    /// What is known of the attempt when it begins.
    fn context(&self) -> Context {
        let workspace = counterfoil_workspace::folder_names(&self.cwd);
        let started = Some(jiff::Timestamp::now().to_string());
        Context { workspace, started, ..self.known.clone() }
    }

    /// Describes the part of the budget of the step or of the run that is used up, if one is.
    fn exceeded_budget(&self, spent: &Usage, limit: Limit) -> Option<String> {
        exceeded_budget(&self.work.bounds.budget, spent, Owner::Step, limit)
            .or_else(|| exceeded_budget(&self.budget_left, spent, Owner::Run, limit))
    }
}

/// Verifies the claims of an attempt against its workspace.
pub(crate) trait Verifier: Send {
    /// Observes the workspace before the agent starts.
    fn begin(&mut self) -> BoxFuture<'_, ()>;
    /// Verifies the claims of a result.
    fn verify<'a>(&'a mut self, value: &'a Value) -> BoxFuture<'a, Vec<ClaimReport>>;
    /// Observes the workspace for the last time.
    fn finish(&mut self, outcome: AttemptOutcome) -> BoxFuture<'_, FinalObservation>;
}

/// What was observed at the end of an attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct FinalObservation {
    /// The files that the attempt changed.
    pub(crate) changed: Option<ChangedFiles>,
    /// The fingerprint of the work tree.
    pub(crate) tree: Option<String>,
    /// The engine's own claims that failed, for an attempt without a result.
    pub(crate) claims: Vec<ClaimReport>,
}

/// A session that still does not return this long after its timeout or a stop request is abandoned.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Performs an agent's attempt to its end.
pub(crate) async fn run(
    input: AttemptInput,
    agent: Arc<dyn Agent>,
    context: Arc<dyn AttemptContext>,
    mut verifier: Option<Box<dyn Verifier>>,
) -> AttemptResult {
    if let Some(verifier) = &mut verifier {
        let notice = |line: &str| context.notice(line);
        announce_if_slow(verifier.begin(), &input.cwd, &notice).await;
    }
    let mut result = converse(&input, agent, context, &mut verifier).await;
    if let Some(mut verifier) = verifier {
        let last = verifier.finish(result.ended.outcome).await;
        result.ended.changed = last.changed;
        result.ended.tree = last.tree;
        if result.ended.claims.is_empty() {
            result.ended.claims = last.claims;
        }
    }
    result
}

/// What is known of an attempt whose reply is complete.
fn at_end(at_start: &Context, began: Instant) -> Context {
    let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Context {
        ended: Some(jiff::Timestamp::now().to_string()),
        duration_ms: Some(duration),
        ..at_start.clone()
    }
}

/// The conversation: the first reply and the repairs.
async fn converse(
    input: &AttemptInput,
    agent: Arc<dyn Agent>,
    context: Arc<dyn AttemptContext>,
    verifier: &mut Option<Box<dyn Verifier>>,
) -> AttemptResult {
    let work = &input.work;
    let id = &input.attempt;
    let timeout = agent.timeout().unwrap_or(Duration::from_millis(work.bounds.timeout_ms));
    let mut deadline = Instant::now() + timeout;
    let at_start = input.context();
    let began = Instant::now();
    let mut session = agent.open(Task {
        agent: work.agent.clone(),
        marker: input.marker.clone(),
        cwd: input.cwd.clone(),
        scratch: input.scratch.clone(),
        access: work.access,
        contract: work.contract.clone(),
        context: at_start.clone(),
        startup: work.bounds.startup_ms.map(Duration::from_millis),
        idle: work.bounds.idle_ms.map(Duration::from_millis),
        checks: input.checks.clone(),
        earlier: work.earlier.clone(),
    });
    let mut spent = Usage::default();
    let message = Message::Task { task: work.prompt.clone(), earlier: work.earlier.clone() };
    let mut prompt = Prompt { contract: work.contract.clone(), message };
    let mut repairs = 0;
    let mut denied: Vec<String> = Vec::new();
    let mut unread = RejectedItems::default();
    // It knows the first prompt only: later ones quote the agent's own replies.
    let mut selector: Option<ResultSelector<'_>> = None;
    loop {
        let name = format!("{id}.{}", repairs + 1);
        let mode = if agent.has_files() { TranscriptMode::OwnFile } else { TranscriptMode::RunLog };
        let transcript = match context.transcript(&name, mode) {
            Ok(transcript) => transcript,
            Err(error) => return AttemptResult::transcript_failed(id, error),
        };
        // The full prompt is stored beside the reply.
        let mut sent = session.full_prompt(&prompt);
        if let Err(error) = store_prompt(&*context, &format!("{name}.prompt"), mode, &sent) {
            return AttemptResult::transcript_failed(id, error);
        }
        let activity_context = context.clone();
        let conversation_context = context.clone();
        let progress_context = context.clone();
        let (attempt, agent_name) = (id.clone(), work.agent.clone());
        let mut reach = PromptContext {
            stop: context.stop(),
            total: deadline.saturating_duration_since(Instant::now()),
            budget: left_of(&work.bounds.budget, &input.budget_left, &spent),
            transcript,
            conversation: Arc::new(move |conversation: &str| {
                conversation_context.progress(Event::ConversationOpened {
                    attempt: attempt.clone(),
                    agent: agent_name.clone(),
                    conversation: conversation.to_owned(),
                });
            }),
            activity: Arc::new(move |line: &str| activity_context.heartbeat(line)),
            progress: Arc::new(move |progress: &_| progress_context.agent_progress(progress)),
        };
        let mut answer = ask(&mut *session, &prompt, &mut reach).await;
        if let Some(instead) = answer.details.sent_instead.take() {
            if let Err(error) = store_prompt(&*context, &format!("{name}.prompt"), mode, &instead) {
                return AttemptResult::transcript_failed(id, error);
            }
            sent = instead;
        }
        let stored = match store_reply(reach.transcript, &answer) {
            Ok(stored) => stored,
            Err(error) => return AttemptResult::transcript_failed(id, error),
        };
        spent += answer.usage;
        let mut reply = match store_details(&*context, &name, mode, &answer) {
            Ok(details) => Reply {
                transcript: stored.path,
                sha256: stored.sha256,
                played: answer.played,
                ..details
            },
            Err(error) => return AttemptResult::transcript_failed(id, error),
        };
        let failure = Failure::of(&answer);
        let fail = |failure: Failure, mut reply: Reply, unread: RejectedItems| {
            failure.outcome.name().clone_into(&mut reply.status);
            let ended = ended(input, failure.outcome, reply, answer.usage);
            let rejected = unread.into_parts();
            // It may have been stopped right at its limit.
            let budget_exceeded = input.exceeded_budget(&spent, Limit::Reached);
            let Failure { reason, reset_at, .. } = failure;
            let ended = Ended { reason, reset_at, rejected, ..ended };
            AttemptResult { budget_exceeded, ..AttemptResult::new(ended) }
        };
        let failure = match failure {
            Some(failure) if !failure.follows_result => return fail(failure, reply, unread),
            failure => failure,
        };
        let known = Arc::new(at_end(&at_start, began));
        let selector = selector.get_or_insert_with(|| {
            ResultSelector::new(&work.contract, &work.rules, &sent, &work.quotes)
        });
        let offered = ResultCandidates {
            text: &answer.text,
            messages: answer.details.messages.as_deref(),
            structured: answer.details.structured.as_ref(),
            submissions: &answer.details.submissions,
            context: Some(&known),
        };
        let read = read_without_blocking(deadline, context.stop(), || selector.select(offered));
        if *context.stop().borrow() != StopRequest::None {
            let reason = "stopped while its result was being read".to_owned();
            let ended = ended(input, AttemptOutcome::Cancelled, reply, answer.usage);
            return AttemptResult::new(Ended { reason, ..ended });
        }
        let SelectedResult { report, channel, notes, items, read_earlier } = read;
        if let Some(failure) = failure {
            if !report.is_accepted() {
                return fail(failure, reply, unread);
            }
            let reason = failure.reason;
            reply.notes.push(format!("it failed after its result was accepted: {reason}"));
        }
        reply.channel = channel;
        if work.contract.fills_fields() || !report.provenance.coercions.is_empty() {
            reply.context = Some(Box::new((*known).clone()));
        }
        reply.notes.extend(notes);
        denied.extend(reply.denied.iter().cloned());
        status_name(report.status).clone_into(&mut reply.status);
        reply.reader = READER_VERSION;
        reply.codes = report.codes().iter().map(ToString::to_string).collect();
        if report.status == Status::Absent {
            reply.said = first_line(&answer.text);
        }
        reply.why = report.violations.first().map(violation_text).unwrap_or_default();
        let budget_exceeded = input.exceeded_budget(&spent, Limit::Exceeded);
        let read = answer.details.messages.as_ref().filter(|_| read_earlier);
        let text = String::from_utf8_lossy(read.unwrap_or(&answer.text));
        unread.next_reply(&report, work.contract.salvage_report(&report), items, &text);
        let mut claims = Vec::new();
        let satisfied = report.value.is_some();
        if let (Some(value), Some(verifier)) = (&report.value, verifier.as_mut()) {
            // Verification does not count against the agent's timeout.
            let started = Instant::now();
            claims = verifier.verify(value).await;
            deadline += started.elapsed();
            if *context.stop().borrow() != StopRequest::None {
                let reason = "stopped while its claims were being verified".to_owned();
                let ended = ended(input, AttemptOutcome::Cancelled, reply, answer.usage);
                return AttemptResult::new(Ended { reason, ..ended });
            }
        }
        let blocking: Vec<ClaimReport> =
            claims.iter().filter(|claim| claim.blocks()).cloned().collect();
        let next = next_step(report, &blocking, repairs, work.bounds.repairs);
        let ended = match next {
            NextStep::Accept(_) if answer.details.denied_fails && !denied.is_empty() => {
                let ended = ended(input, AttemptOutcome::Permission, reply, answer.usage);
                permission_denied(&denied, ended)
            }
            NextStep::Accept(value) => Ended {
                value: Some(value),
                claims,
                ..ended(input, AttemptOutcome::Accepted, reply, answer.usage)
            },
            NextStep::GiveUp(report) => {
                let ended = rejected(input, *report, reply, answer.usage, repairs);
                // A denied permission explains the missing result better than the contract.
                if denied.is_empty() {
                    ended
                } else {
                    let ended = Ended { outcome: AttemptOutcome::Permission, ..ended };
                    permission_denied(&denied, ended)
                }
            }
            NextStep::Refute(value) => {
                "refuted".clone_into(&mut reply.status);
                Ended {
                    reason: blocking_reason(&blocking, repairs),
                    partial: Some(value),
                    claims,
                    ..ended(input, AttemptOutcome::Claim, reply, answer.usage)
                }
            }
            NextStep::Repair(message) => {
                if let Some(what) = budget_exceeded {
                    let reason = format!("the result was not accepted, and {what}");
                    let ended = Ended {
                        reason,
                        claims,
                        ..ended(input, AttemptOutcome::Cancelled, reply, answer.usage)
                    };
                    return AttemptResult {
                        budget_exceeded: Some(what),
                        ..AttemptResult::new(ended)
                    };
                }
                if satisfied {
                    "refuted".clone_into(&mut reply.status);
                }
                repairs += 1;
                prompt.message = message;
                context.progress(Event::RepairAsked {
                    attempt: id.clone(),
                    reply,
                    usage: answer.usage,
                    claims,
                });
                continue;
            }
        };
        let ended = Ended { rejected: unread.into_parts(), ..ended };
        return AttemptResult { budget_exceeded, ..AttemptResult::new(ended) };
    }
}

/// Reads a result, which may take seconds: other tasks go on meanwhile, and reading ends early if the
/// attempt is stopped or its time is over. A result that came in time has some time to be read.
fn read_without_blocking<T>(
    deadline: Instant,
    stop: watch::Receiver<StopRequest>,
    read: impl FnOnce() -> T,
) -> T {
    let until = deadline.max(Instant::now() + MIN_READING_TIME);
    let is_stopped = move || *stop.borrow() != StopRequest::None;
    let read = || counterfoil_contract::work::interruptible(until, is_stopped, read);
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => read(),
        _ => tokio::task::block_in_place(read),
    }
}

/// Asks the session for a reply. A session that neither replies nor stops is abandoned.
async fn ask(session: &mut dyn Session, prompt: &Prompt, reach: &mut PromptContext) -> AgentReply {
    let mut stop = reach.stop.clone();
    let total = reach.total;
    let abandoned = async {
        tokio::select! {
            () = tokio::time::sleep(total) => {
                tokio::time::sleep(STOP_GRACE).await;
                (AttemptOutcome::Timeout, "it reached its timeout and did not stop")
            }
            () = async { drop(stop.wait_for(|stop| *stop != StopRequest::None).await) } => {
                tokio::time::sleep(STOP_GRACE).await;
                (AttemptOutcome::Cancelled, "it was asked to stop and did not")
            }
        }
    };
    tokio::select! {
        answer = session.ask(prompt, reach) => answer,
        (outcome, reason) = abandoned => AgentReply {
            text: Vec::new(),
            usage: Usage::default(),
            status: ReplyStatus::failed(outcome, reason),
            played: None,
            recorded: true,
            details: ReplyDetails::default(),
        },
    }
}
