//! The spans of a run, by the conventions of OpenTelemetry for generative AI: one for each attempt,
//! and one for the whole run when it ends.

use counterfoil_agents::trace_context::TraceContext;
use counterfoil_contract::claim::Verdict;
use counterfoil_engine::ledger::program_name;
use counterfoil_flow::{Event, Outcome, RunState, Usage};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is known of the attempts that this process started and that have not ended.
#[derive(Debug)]
pub(super) struct RunSpans {
    /// The span in which this process was started.
    parent: Option<TraceContext>,
    attempts: HashMap<String, Attempt>,
}

#[derive(Debug)]
struct Attempt {
    began: i64,
    path: String,
    number: u32,
    agent: Option<String>,
    contract: Option<String>,
    conversation: Option<String>,
    repairs: u32,
    used: Usage,
}

impl RunSpans {
    pub(super) fn new(parent: Option<TraceContext>) -> Self {
        Self { parent, attempts: HashMap::new() }
    }

    /// Follows an event; returns the span that ends with it.
    pub(super) fn on_event(&mut self, event: &Event, at: i64, run: &RunState) -> Option<SpanData> {
        match event {
            Event::AttemptStarted { attempt, path, agent, n, contract, .. } => {
                let started = Attempt {
                    began: at,
                    path: path.join("/"),
                    number: *n,
                    agent: agent.clone(),
                    contract: contract.clone(),
                    conversation: None,
                    repairs: 0,
                    used: Usage::default(),
                };
                self.attempts.insert(attempt.clone(), started);
            }
            Event::ConversationOpened { attempt, conversation, .. } => {
                if let Some(attempt) = self.attempts.get_mut(attempt) {
                    attempt.conversation = Some(conversation.clone());
                }
            }
            Event::RepairAsked { attempt, usage, .. } => {
                if let Some(attempt) = self.attempts.get_mut(attempt) {
                    attempt.repairs += 1;
                    attempt.used += *usage;
                }
            }
            Event::AttemptEnded(ended) => {
                let mut attempt = self.attempts.remove(&ended.attempt)?;
                attempt.used += ended.usage;
                let claims = |verdict| {
                    let is = ended.claims.iter().filter(|claim| claim.verdict == verdict);
                    i64::try_from(is.count()).unwrap_or(i64::MAX)
                };
                let mut attributes = attempt.attributes(run);
                attributes.extend([
                    text("counterfoil.outcome", ended.outcome.name()),
                    number("counterfoil.claims.verified", claims(Verdict::Verified)),
                    number("counterfoil.claims.refuted", claims(Verdict::Refuted)),
                ]);
                let status = match ended.outcome.failure() {
                    Some(_) => failed(ended.outcome.name(), &mut attributes),
                    None => Status::Unset,
                };
                let context = self.context(run).of_attempt(&ended.attempt);
                let (name, kind) = attempt.name();
                let times = (attempt.began, at);
                return Some(span(
                    context,
                    self.context(run).span,
                    name,
                    kind,
                    times,
                    attributes,
                    status,
                ));
            }
            Event::AttemptLost { attempt, .. } => {
                self.attempts.remove(attempt);
            }
            Event::RunEnded { outcome, .. } => {
                let mut attributes = vec![
                    text("gen_ai.operation.name", "invoke_workflow"),
                    text("gen_ai.workflow.name", &run.workflow),
                    text("counterfoil.run", &run.run),
                    text("counterfoil.outcome", outcome.name()),
                ];
                attributes.extend(usage(run.usage));
                let status = match outcome {
                    Outcome::Done => Status::Ok,
                    Outcome::Cancelled => Status::Unset,
                    _ => failed(outcome.name(), &mut attributes),
                };
                let name = format!("invoke_workflow {}", run.workflow);
                let parent = self.parent.map_or([0; 8], |parent| parent.span);
                let times = (run.started_at, at);
                let context = self.context(run);
                return Some(span(
                    context,
                    parent,
                    name,
                    SpanKind::Internal,
                    times,
                    attributes,
                    status,
                ));
            }
            _ => {}
        }
        None
    }

    fn context(&self, run: &RunState) -> TraceContext {
        TraceContext::of_run(self.parent, &run.run)
    }
}

impl Attempt {
    fn name(&self) -> (String, SpanKind) {
        match &self.agent {
            Some(agent) => (format!("invoke_agent {agent}"), SpanKind::Client),
            None => (format!("step {}", self.path), SpanKind::Internal),
        }
    }

    fn attributes(&self, run: &RunState) -> Vec<KeyValue> {
        let mut attributes = vec![
            text("counterfoil.run", &run.run),
            text("counterfoil.workflow", &run.workflow),
            text("counterfoil.state", &self.path),
            number("counterfoil.attempt", i64::from(self.number)),
            number("counterfoil.repairs", i64::from(self.repairs)),
        ];
        if let Some(contract) = &self.contract {
            attributes.push(text("counterfoil.contract", contract));
        }
        let Some(agent) = &self.agent else { return attributes };
        attributes.push(text("gen_ai.operation.name", "invoke_agent"));
        attributes.push(text("gen_ai.agent.name", agent));
        if let Some(assigned) = run.agents.get(agent) {
            let program = program_name(&assigned.spec);
            attributes.push(text("gen_ai.provider.name", provider(&program)));
            attributes.push(text("counterfoil.program", &program));
            let known = [
                ("counterfoil.program.version", &assigned.version),
                ("gen_ai.request.model", &assigned.model),
            ];
            attributes
                .extend(known.iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
        }
        if let Some(conversation) = &self.conversation {
            attributes.push(text("gen_ai.conversation.id", conversation));
        }
        attributes.extend(usage(self.used));
        attributes
    }
}

/// The name that the conventions have for the provider of a program's model; the program
/// itself where that is not known.
fn provider(program: &str) -> &str {
    match program {
        "claude" | "claude-agent-acp" => "anthropic",
        "codex" | "codex-acp" => "openai",
        "gemini" => "gcp.gemini",
        other => other,
    }
}

fn usage(used: Usage) -> [KeyValue; 3] {
    let tokens = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    [
        number("gen_ai.usage.input_tokens", tokens(used.input_tokens)),
        number("gen_ai.usage.output_tokens", tokens(used.output_tokens)),
        KeyValue::new("counterfoil.cost_usd", used.cost_usd),
    ]
}

/// The status of what failed. The kind of error is an attribute of its own.
fn failed(kind: &'static str, attributes: &mut Vec<KeyValue>) -> Status {
    attributes.push(text("error.type", kind));
    Status::error(kind)
}

fn span(
    context: TraceContext,
    parent: [u8; 8],
    name: String,
    kind: SpanKind,
    (began, ended): (i64, i64),
    attributes: Vec<KeyValue>,
    status: Status,
) -> SpanData {
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(context.trace),
            SpanId::from_bytes(context.span),
            TraceFlags::new(context.flags),
            false,
            TraceState::default(),
        ),
        parent_span_id: SpanId::from_bytes(parent),
        parent_span_is_remote: false,
        span_kind: kind,
        name: name.into(),
        start_time: time(began),
        end_time: time(ended),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: InstrumentationScope::builder("counterfoil")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn time(milliseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

fn text(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, Value::String(value.to_owned().into()))
}

fn number(key: &'static str, value: i64) -> KeyValue {
    KeyValue::new(key, value)
}
