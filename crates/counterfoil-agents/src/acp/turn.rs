//! One prompt and its reply in the protocol: what each message means, and what is answered. Pure: lines
//! come in, and lines to send come out.

mod calls;
mod message_text;
mod wording;

use super::conversation::Conversation;
use super::failure;
use super::incoming::{
    Initialized, Known, Message, NewSession, Notice, PermissionRequest, Prompted, RpcError,
    ToolCall, Update, read,
};
use super::{outgoing, permission, usage};
use crate::adapters::common::{
    Line, StreamAnomalies, activity_line, classify, push_note, truncate,
};
use crate::adapters::{Failure, UsageMeter, Verdict};
use crate::agent::AgentProgress;
use agent_client_protocol_schema::v1::{CLIENT_METHOD_NAMES, RequestId, StopReason};
use calls::Calls;
use counterfoil_flow::AttemptOutcome;
use message_text::MessageText;
use serde_json::Value;
use serde_json::value::RawValue;
use wording::{plan_line, thread_status, title};

/// How many lines that are no messages a program may write before it answers for the first time.
const MAX_LINES_BEFORE_ANSWER: usize = 1000;
/// How often a turn is continued that the program ended because something was denied.
const MAX_CONTINUATIONS: usize = 8;
/// The version of the protocol that we speak.
const VERSION: u16 = 1;

/// The request that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Initialize(i64),
    NewSession(i64),
    SetMode(i64),
    Prompt(i64),
    /// For nothing: the turn is over.
    Nothing,
}

/// One prompt and its reply.
pub(super) struct Turn<'c> {
    conversation: &'c mut Conversation,
    prompt: String,
    waiting: Waiting,
    /// The most that the prompt may cost, in US dollars.
    max_cost_usd: Option<f64>,
    cost_before: f64,
    text: MessageText,
    calls: Calls,
    /// Whether the program itself said that its turn failed.
    failed_turn: bool,
    last_error: Option<String>,
    denied: Vec<String>,
    /// What was denied since the last prompt.
    just_denied: Option<String>,
    continuations: usize,
    tokens: Option<(u64, u64)>,
    verdict: Verdict,
    anomalies: StreamAnomalies,
    lines_before_answer: usize,
    is_answering: bool,
    is_over_limit: bool,
    is_broken: bool,
}

/// What follows from a line.
#[derive(Debug, Default)]
pub(super) struct Reaction {
    /// The line to send.
    pub(super) send: Option<Vec<u8>>,
    /// A line for progress displays.
    pub(super) activity: Option<String>,
}

impl Reaction {
    fn send(line: Vec<u8>) -> Self {
        Self { send: Some(line), activity: None }
    }

    fn activity(activity: Option<String>) -> Self {
        Self { send: None, activity }
    }
}

/// What came of a turn.
pub(super) struct TurnResult {
    /// The program's own verdict.
    pub(super) verdict: Verdict,
    /// The text of the reply.
    pub(super) text: String,
    /// The failure that the text is, if it is nothing but an error.
    pub(super) error_in_text: Option<Failure>,
    /// What it used.
    pub(super) meter: UsageMeter,
    /// Whether it told its tokens.
    pub(super) tokens_known: bool,
    /// The denied actions.
    pub(super) denied: Vec<String>,
    /// Notes on what was unexpected.
    pub(super) notes: Vec<String>,
    /// The request that was not answered.
    pub(super) unanswered: Option<&'static str>,
    /// Whether it was stopped at its limit of money, and what it had cost.
    pub(super) over_limit: Option<f64>,
}

impl<'c> Turn<'c> {
    /// Begins a turn. Returns the first line to send.
    pub(super) fn begin(
        conversation: &'c mut Conversation,
        prompt: String,
        max_text: usize,
        max_cost_usd: Option<f64>,
    ) -> (Self, Vec<u8>) {
        let id = conversation.next_id();
        let (waiting, line) = match &conversation.session {
            None => (Waiting::Initialize(id), outgoing::initialize(id)),
            Some(session) => (Waiting::Prompt(id), outgoing::prompt(id, session, &prompt)),
        };
        let cost_before = conversation.cost_usd;
        let turn = Self {
            is_answering: conversation.session.is_some(),
            conversation,
            prompt,
            waiting,
            max_cost_usd,
            cost_before,
            text: MessageText::new(max_text),
            calls: Calls::default(),
            failed_turn: false,
            last_error: None,
            denied: Vec::new(),
            just_denied: None,
            continuations: 0,
            tokens: None,
            verdict: Verdict::Missing,
            anomalies: StreamAnomalies::default(),
            lines_before_answer: 0,
            is_over_limit: false,
            is_broken: false,
        };
        (turn, line)
    }

    /// How far the agent is, for progress displays.
    pub(super) fn progress(&self) -> AgentProgress {
        let (calls, open) = self.calls.progress();
        AgentProgress { calls, open_call: open.map(title), ..AgentProgress::default() }
    }

    /// Whether the turn is over.
    pub(super) fn is_over(&self) -> bool {
        self.waiting == Waiting::Nothing
    }

    /// Whether the program has to be ended: it does not speak the protocol, or its limit is reached.
    pub(super) fn must_end(&self) -> bool {
        self.is_broken || self.is_over_limit
    }

    /// The id of the conversation, while its prompt is not answered.
    pub(super) fn cancellable(&self) -> Option<&str> {
        matches!(self.waiting, Waiting::Prompt(_)).then_some(())?;
        self.conversation.session.as_deref()
    }

    /// Takes a line.
    pub(super) fn on_line(&mut self, line: &[u8], at: i64) -> Reaction {
        let object = match classify(line) {
            Line::Blank => return Reaction::default(),
            Line::Object(object) => object,
            Line::Other(other) => {
                self.not_a_message(other);
                return Reaction::default();
            }
        };
        let text = String::from_utf8_lossy(object);
        match Message::parse(&text) {
            None => {
                self.not_a_message(object);
                Reaction::default()
            }
            Some(Message::Answer { id, answer }) => self.answer(id, answer, at),
            Some(Message::Request { id, method, params }) => self.request(id, &method, params),
            Some(Message::Notification { method, params }) => {
                if method != CLIENT_METHOD_NAMES.session_update {
                    return Reaction::default();
                }
                let own = self.conversation.session.as_deref();
                let Some((update, meta)) = Update::parse(params, own) else {
                    self.anomalies.unexpected_shape("session/update", &"it cannot be read");
                    return Reaction::default();
                };
                Reaction::activity(self.update(update, &meta))
            }
        }
    }

    fn not_a_message(&mut self, line: &[u8]) {
        self.anomalies.non_event(line);
        if self.is_answering {
            return;
        }
        self.lines_before_answer += 1;
        if self.lines_before_answer > MAX_LINES_BEFORE_ANSWER {
            let shown = truncate(&String::from_utf8_lossy(&line[..line.len().min(400)]), 80);
            self.breaks(&format!(
                "it does not speak the Agent Client Protocol: it wrote {MAX_LINES_BEFORE_ANSWER} lines that \
                 are no messages, the last one: {shown}"
            ));
        }
    }

    /// The program cannot be used.
    fn breaks(&mut self, why: &str) {
        self.is_broken = true;
        self.fails(failure::of_protocol(why));
    }

    fn fails(&mut self, failure: Failure) {
        self.verdict = Verdict::Failed(failure);
        self.waiting = Waiting::Nothing;
    }

    fn answer(
        &mut self,
        id: Option<i64>,
        answer: Result<&RawValue, RpcError>,
        at: i64,
    ) -> Reaction {
        let (expected, what) = match self.waiting {
            Waiting::Initialize(id) => (id, "initialize"),
            Waiting::NewSession(id) => (id, "session/new"),
            Waiting::SetMode(id) => (id, "session/set_mode"),
            Waiting::Prompt(id) => (id, "session/prompt"),
            Waiting::Nothing => return Reaction::default(),
        };
        // An error without an id is an answer to a request that could not be read: we wait for one.
        if id != Some(expected) && !(id.is_none() && answer.is_err()) {
            self.anomalies.note("it answered a request that it was not sent");
            return Reaction::default();
        }
        self.is_answering = true;
        let raw = match answer {
            Ok(raw) => raw,
            Err(error) if matches!(self.waiting, Waiting::SetMode(_)) => {
                let why = failure::from_rpc(&error, &self.conversation.login, at).reason;
                self.anomalies.note(format!("it stays in its own mode: {why}"));
                return self.send_prompt();
            }
            Err(error) => {
                let mut failure = failure::from_rpc(&error, &self.conversation.login, at);
                if !matches!(self.waiting, Waiting::Prompt(_)) {
                    failure.reason =
                        format!("it answered `{what}` with an error: {}", failure.reason);
                }
                self.fails(failure);
                return Reaction::default();
            }
        };
        match self.waiting {
            Waiting::Initialize(_) => self.initialized(raw),
            Waiting::NewSession(_) => self.session_opened(raw),
            Waiting::SetMode(_) => self.send_prompt(),
            Waiting::Prompt(_) | Waiting::Nothing => self.prompted(raw, at),
        }
    }

    fn initialized(&mut self, raw: &RawValue) -> Reaction {
        let answer: Initialized = read(Some(raw)).unwrap_or_default();
        match answer.protocol_version {
            Some(VERSION) => {}
            Some(other) => {
                self.breaks(&format!(
                    "it speaks version {other} of the Agent Client Protocol, and we speak version {VERSION}; \
                     install a version of it that does, too"
                ));
                return Reaction::default();
            }
            None => {
                self.breaks(
                    "its answer to `initialize` has no version of the Agent Client Protocol",
                );
                return Reaction::default();
            }
        }
        let methods = answer.auth_methods.unwrap_or_default();
        self.conversation.login = failure::login_advice(&self.conversation.program, &methods);
        let info = answer.agent_info.unwrap_or_default();
        let id = self.conversation.next_id();
        self.waiting = Waiting::NewSession(id);
        let line =
            outgoing::new_session(id, &self.conversation.cwd, self.conversation.server.as_ref());
        let known = [info.name, info.version].into_iter().flatten();
        let known: Vec<String> = known.map(|word| truncate(&word, 60)).collect();
        Reaction { send: Some(line), activity: activity_line(&known.join(" ")) }
    }

    fn session_opened(&mut self, raw: &RawValue) -> Reaction {
        const MAX_SESSION_BYTES: usize = 256;
        let answer: NewSession = read(Some(raw)).unwrap_or_default();
        let is_usable = |id: &String| !id.is_empty() && id.len() <= MAX_SESSION_BYTES;
        let Some(session) = answer.session_id.filter(is_usable) else {
            self.breaks("its answer to `session/new` has no usable id of a session");
            return Reaction::default();
        };
        let access = self.conversation.access;
        let mode = answer.modes.as_ref().and_then(|modes| permission::mode(modes, access));
        let set_mode = mode.map(|mode| {
            let id = self.conversation.next_id();
            self.waiting = Waiting::SetMode(id);
            outgoing::set_mode(id, &session, mode)
        });
        self.conversation.session = Some(session);
        set_mode.map_or_else(|| self.send_prompt(), Reaction::send)
    }

    fn send_prompt(&mut self) -> Reaction {
        let id = self.conversation.next_id();
        self.waiting = Waiting::Prompt(id);
        self.just_denied = None;
        let session = self.conversation.session.as_deref().unwrap_or_default();
        Reaction::send(outgoing::prompt(id, session, &self.prompt))
    }

    fn prompted(&mut self, raw: &RawValue, at: i64) -> Reaction {
        let answer: Prompted = read(Some(raw)).unwrap_or_default();
        if let Some((input, output)) = usage::tokens(&answer) {
            let (before_input, before_output) = self.tokens.unwrap_or_default();
            self.tokens =
                Some((before_input.saturating_add(input), before_output.saturating_add(output)));
        }
        // Some programs end their turn when something is denied, and wait to be told what to do instead.
        if let Some(Known::Word(StopReason::Cancelled)) = answer.stop_reason
            && let Some(denied) = self.just_denied.take()
        {
            if self.continuations == MAX_CONTINUATIONS {
                let reason = "it ended its turn each time that something was denied";
                self.fails(Failure::new(AttemptOutcome::Permission, reason));
                return Reaction::default();
            }
            self.continuations += 1;
            self.prompt = format!(
                "This was denied: {denied}. It will not be allowed. Go on with your task without it."
            );
            return self.send_prompt();
        }
        self.waiting = Waiting::Nothing;
        let failure = match answer.stop_reason {
            Some(Known::Word(stop)) => failure::of_stop(stop),
            Some(Known::Other(other)) => Some(failure::of_unknown_stop(&other)),
            None => Some(failure::of_protocol("its answer to `session/prompt` has no stop reason")),
        };
        let failure = failure.or_else(|| {
            self.failed_turn.then(|| {
                let text = self.text.get();
                let said = if text.trim().is_empty() { self.last_error.as_deref() } else { None };
                failure::of_failed_turn(said.unwrap_or(text), &self.conversation.login, at)
            })
        });
        self.verdict = failure.map_or(Verdict::Complete, Verdict::Failed);
        Reaction::default()
    }

    fn request(&mut self, id: RequestId, method: &str, params: Option<&RawValue>) -> Reaction {
        if method != CLIENT_METHOD_NAMES.session_request_permission {
            self.anomalies.note(format!(
                "it asked for `{}`, which was not offered to it",
                truncate(method, 60)
            ));
            return Reaction::send(outgoing::not_offered(id));
        }
        let request: Option<PermissionRequest> = read(params);
        let Some(PermissionRequest { tool_call: Some(call), options }) = request else {
            self.anomalies.unexpected_shape(method, &"it cannot be read");
            return Reaction::send(outgoing::invalid_params(id));
        };
        let call = self.note_call(call);
        let denial = permission::denial(&call, self.conversation.access, &self.conversation.cwd);
        let options = options.unwrap_or_default();
        let option = permission::choose(&options, denial.is_none());
        let title = title(&call);
        let mut activity = None;
        if let Some(why) = denial {
            activity = Some(truncate(&format!("denied: {title}"), 160));
            let denied = format!("{title}: {why}");
            self.just_denied = Some(denied.clone());
            push_note(&mut self.denied, denied);
        } else if option.is_none() {
            self.anomalies.note(format!("`{title}` could not be allowed: it offered no way to"));
        }
        Reaction { send: Some(outgoing::permission(id, option)), activity }
    }

    fn update(&mut self, update: Update, meta: &Value) -> Option<String> {
        match thread_status(meta) {
            Some("systemError") => self.failed_turn = true,
            Some("active") => self.failed_turn = false,
            _ => {}
        }
        match update {
            // After the end of a turn only its cost is still told.
            Update::Usage(_) => {}
            _ if self.is_over() => return None,
            _ => {}
        }
        match update {
            Update::Message(chunk) => {
                let text = chunk.content?.text?;
                self.text.push(&text, chunk.message_id.as_deref())
            }
            Update::Thought => Some("thinking".to_owned()),
            Update::Call(call) => {
                let is_new = self.calls.names(&call);
                let call = self.note_call(call);
                let failed = call.status.as_deref() == Some("failed");
                (is_new || failed).then(|| {
                    let title = title(&call);
                    if failed { truncate(&format!("failed: {title}"), 160) } else { title }
                })
            }
            Update::Plan(plan) => plan_line(&plan),
            Update::Usage(used) => {
                let cost = used.cost?;
                match usage::dollars(&cost) {
                    Some(amount) => self.costs(amount),
                    None => {
                        self.anomalies.note("it told its cost in another currency than US dollars");
                    }
                }
                None
            }
            Update::Notice(notice) => self.notice(notice),
            Update::Other => None,
        }
    }

    /// The conversation has cost so much.
    fn costs(&mut self, amount: f64) {
        // It only grows: an update without the whole cost is none.
        self.conversation.cost_usd = self.conversation.cost_usd.max(amount);
        let cost = self.conversation.cost_usd - self.cost_before;
        if self.max_cost_usd.is_some_and(|most| cost > 0.0 && cost >= most) {
            self.is_over_limit = true;
        }
    }

    fn notice(&mut self, notice: Notice) -> Option<String> {
        let title = notice.title?;
        let text = match notice.description {
            Some(more) => format!("{title}: {more}"),
            None => title,
        };
        if notice.severity.as_deref() == Some("error") {
            self.anomalies.note(format!("it said: {}", truncate(&text, 300)));
            self.last_error = Some(text.clone());
        }
        activity_line(&text)
    }

    /// Notes what is told of a call, and returns all that is known of it.
    fn note_call(&mut self, newer: ToolCall) -> ToolCall {
        let (call, outdates) = self.calls.update(newer);
        self.text.break_message();
        if outdates {
            self.text.clear();
        }
        call
    }

    /// The result, after the turn or after the end of the program.
    pub(super) fn finish(self, at: i64) -> TurnResult {
        let Self { conversation, text, tokens, verdict, anomalies, denied, .. } = self;
        let (input_tokens, output_tokens) = tokens.unwrap_or_default();
        let text = text.into_text();
        let error_in_text = (verdict == Verdict::Complete)
            .then(|| failure::in_reply(&text, &conversation.login, at))
            .flatten();
        TurnResult {
            verdict,
            error_in_text,
            text,
            meter: UsageMeter {
                input_tokens,
                output_tokens,
                cost_usd: conversation.cost_usd,
                tokens_are_cumulative: false,
                cost_is_cumulative: true,
            },
            tokens_known: tokens.is_some(),
            denied,
            notes: anomalies.into_notes(),
            unanswered: match self.waiting {
                Waiting::Initialize(_) => Some("initialize"),
                Waiting::NewSession(_) => Some("session/new"),
                Waiting::SetMode(_) => Some("session/set_mode"),
                Waiting::Prompt(_) => Some("session/prompt"),
                Waiting::Nothing => None,
            },
            over_limit: self.is_over_limit.then_some(conversation.cost_usd - self.cost_before),
        }
    }
}

/// A turn that was stopped at its limit of money.
pub(super) fn limit_reached(cost: f64, most: f64) -> Failure {
    let reason = format!(
        "stopped at its limit: {} of {} were used",
        counterfoil_flow::amount::dollars(cost),
        counterfoil_flow::amount::dollars(most)
    );
    Failure::new(AttemptOutcome::Cancelled, reason)
}
