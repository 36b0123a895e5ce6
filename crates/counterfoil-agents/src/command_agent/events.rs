//! Reads the events of a `command:` agent: by the JSON pointers of its settings, and by the parser of
//! Claude Code where it speaks that dialect.

use crate::adapters::common::{
    ApiError, Line, StreamAnomalies, activity_line, classify, find_http_status, parse_event,
    truncate,
};
use crate::adapters::{
    Adapter, Failure, ParsedReply, StreamEnd, StreamParser, UsageMeter, Verdict, adapter,
};
use crate::config::{
    CommandSettings, ErrorSource, OutputDialect, Pointer, TextSource, TextTake, UsageSource,
    UsageTake,
};
use crate::termination;
use counterfoil_contract::text::pluralize;
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::Exit;
use serde_json::Value;

/// How a person logs a program in that we do not know.
const LOGIN: &str =
    "log in to the program, or pass its key on with `pass` in its table in counterfoil.toml";

/// The longest id of a conversation that is accepted.
const MAX_ID_BYTES: usize = 256;

/// The parser of one reply.
pub(super) struct EventParser {
    /// The parser of the dialect, unless pointers say everything.
    dialect: Option<Box<dyn StreamParser>>,
    settings: CommandSettings,
    /// The most bytes of text that are kept.
    max_text: usize,
    anomalies: StreamAnomalies,
    /// How many events there were.
    events: usize,
    /// The text so far, and the message that it is from.
    text: String,
    message: Option<String>,
    has_text: bool,
    conversation: Option<String>,
    tokens: Option<(Counter, Counter, Counter)>,
    cost: Option<Counter>,
    done: bool,
    /// The last error, unless the reply went on after it.
    error: Option<(String, Option<u16>)>,
}

impl EventParser {
    /// Creates a parser. None if the output is the text itself.
    pub(super) fn new(settings: &CommandSettings, max_text: usize) -> Option<Self> {
        let dialect = match settings.dialect() {
            OutputDialect::Text => return None,
            OutputDialect::ClaudeStreamJson => adapter("claude").map(Adapter::parser),
            OutputDialect::Jsonl => None,
        };
        let usage = settings.usage.as_ref();
        let counter = |name, pointers: &[Pointer], take| Counter::new(name, pointers, take);
        Some(Self {
            dialect,
            max_text,
            anomalies: StreamAnomalies::default(),
            events: 0,
            text: String::new(),
            message: None,
            has_text: false,
            conversation: None,
            tokens: usage.filter(|usage| usage.has_tokens()).map(|usage| {
                (
                    counter("usage.input", &usage.input, usage.take),
                    counter("usage.cached", &usage.cached, usage.take),
                    counter("usage.output", &usage.output, usage.take),
                )
            }),
            cost: usage
                .filter(|usage| !usage.cost.is_empty())
                .map(|usage| counter("usage.cost", &usage.cost, usage.take)),
            done: false,
            error: None,
            settings: settings.clone(),
        })
    }

    /// What the events say of the usage so far.
    pub(super) fn meter(&self) -> UsageMeter {
        let cumulative =
            self.settings.usage.as_ref().is_some_and(|usage| usage.take == UsageTake::Conversation);
        self.overlay(UsageMeter::default(), cumulative)
    }

    /// A reading, with what the pointers found in its place.
    fn overlay(&self, mut meter: UsageMeter, cumulative: bool) -> UsageMeter {
        if let Some((input, cached, output)) = &self.tokens {
            meter.input_tokens = whole(input.total() + cached.total());
            meter.output_tokens = whole(output.total());
            meter.tokens_are_cumulative = cumulative;
        }
        if let Some(cost) = &self.cost {
            meter.cost_usd = cost.total();
            meter.cost_is_cumulative = cumulative;
        }
        meter
    }

    /// Whether pointers are to be followed at all.
    fn points(&self) -> bool {
        let CommandSettings { conversation, text, usage, done, error, .. } = &self.settings;
        self.dialect.is_none()
            || conversation.is_some()
            || text.is_some()
            || usage.is_some()
            || done.is_some()
            || error.is_some()
    }

    /// Reads the fields of an event, and returns a line of activity.
    fn on_event(&mut self, event: &Value) -> Option<String> {
        self.events += 1;
        let conversation = self.settings.conversation.clone();
        if let Some(pointer) = &conversation
            && let Some(value) = pointer.find(event)
        {
            self.set_conversation(pointer, value);
        }
        let usage = self.settings.usage.as_ref();
        if usage.is_some_and(|usage| usage.when.holds(event)) {
            let tokens = self.tokens.iter_mut().flat_map(|(a, b, c)| [a, b, c]);
            for counter in tokens.chain(self.cost.as_mut()) {
                counter.add(event, &mut self.anomalies);
            }
        }
        if let Some(error) = self.settings.error.as_ref().and_then(|source| source.read(event)) {
            self.error = Some(error);
        }
        if self.settings.done.as_ref().is_some_and(|done| done.holds(event)) {
            self.done = true;
            self.error = None;
        }
        let source = self.settings.text.clone()?;
        self.read_text(&source, event)
    }

    fn read_text(&mut self, source: &TextSource, event: &Value) -> Option<String> {
        if !source.when.holds(event) {
            return None;
        }
        let value = source.at.find(event)?;
        let Some(text) = value.as_str() else {
            self.anomalies.unexpected_shape(
                "text",
                &format!("the value at {} is not a text but {}", source.at, kind(value)),
            );
            return None;
        };
        let id = source
            .message
            .as_ref()
            .and_then(|pointer| pointer.find(event))
            .map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
        let continues = source.take == TextTake::All || (id.is_some() && id == self.message);
        if !continues {
            self.text.clear();
        }
        let room = self.max_text.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        self.message = id;
        self.has_text = true;
        self.error = None;
        activity_line(text)
    }

    fn set_conversation(&mut self, pointer: &Pointer, value: &Value) {
        let id = match value {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            other => {
                let why = format!("the value at {pointer} is {}", kind(other));
                self.anomalies.unexpected_shape("conversation", &why);
                return;
            }
        };
        if is_usable_id(&id) {
            self.conversation = Some(id);
        } else {
            self.anomalies.note(format!(
                "the value at {pointer} is not used as the id of the conversation: {}",
                truncate(&id, 60)
            ));
        }
    }

    /// What the end of the program means, by the pointers alone.
    fn verdict(&mut self, end: &StreamEnd<'_>) -> Verdict {
        if let Some(failure) = self.failure(end) {
            return Verdict::Failed(failure);
        }
        match (&self.settings.done, end.exit) {
            (Some(_), _) if self.done => Verdict::Complete,
            (Some(done), _) => {
                if self.events > 0 {
                    self.anomalies.note(format!("no event has {done} (`done`)"));
                }
                Verdict::Missing
            }
            (None, Exit::Code(0)) => Verdict::Complete,
            (None, exit) => Verdict::Failed(Failure::new(
                AttemptOutcome::Agent,
                super::ended(exit) + &termination::stderr_suffix(end.errors.as_bytes(), 400),
            )),
        }
    }

    fn failure(&self, end: &StreamEnd<'_>) -> Option<Failure> {
        let (message, status) = self.error.as_ref()?;
        let status = status.or_else(|| find_http_status(message));
        Some(ApiError { status, message, at: end.at, login: LOGIN }.to_failure())
    }

    /// Notes on pointers that found nothing.
    fn note_what_is_missing(&mut self) {
        if self.events == 0 {
            if self.settings.dialect() == OutputDialect::Jsonl {
                self.anomalies.note("its output has no event: no line is a JSON object");
            }
            return;
        }
        let events = pluralize(self.events, "event");
        let missing = |name: &str, pointer: &Pointer| {
            format!("nothing was found at {pointer} (`{name}`) in its {events}")
        };
        let mut notes = Vec::new();
        if let Some(source) = self.settings.text.as_ref().filter(|_| !self.has_text) {
            notes.push(missing("text.at", &source.at));
        }
        if let Some(pointer) =
            self.settings.conversation.as_ref().filter(|_| self.conversation.is_none())
        {
            notes.push(missing("conversation", pointer));
        }
        let tokens = self.tokens.iter().flat_map(|(a, b, c)| [a, b, c]);
        for counter in tokens.chain(self.cost.as_ref()) {
            let unfound = counter.fields.iter().filter(|field| field.last.is_none());
            notes.extend(unfound.map(|field| missing(counter.name, &field.pointer)));
        }
        for note in notes {
            self.anomalies.note(note);
        }
    }
}

impl StreamParser for EventParser {
    fn on_line(&mut self, line: &[u8]) -> Option<String> {
        let activity = self.dialect.as_mut().and_then(|dialect| dialect.on_line(line));
        if !self.points() {
            return activity;
        }
        let event = match classify(line) {
            Line::Blank => return activity,
            Line::Object(object) => parse_event::<Value>(object),
            Line::Other(_) => parse_event::<Value>(b""),
        };
        match event {
            Ok(event) => self.on_event(&event).or(activity),
            Err(_) => {
                // The parser of a dialect notes it itself.
                if self.dialect.is_none() {
                    self.anomalies.non_event(line.trim_ascii());
                }
                activity
            }
        }
    }

    fn finished(&self) -> bool {
        self.dialect.as_ref().map_or(self.done, |dialect| dialect.finished())
    }

    fn conversation(&self) -> Option<&str> {
        let told = || self.dialect.as_ref()?.conversation().filter(|id| is_usable_id(id));
        self.conversation.as_deref().or_else(told)
    }

    fn finish(mut self: Box<Self>, end: &StreamEnd<'_>) -> ParsedReply {
        self.note_what_is_missing();
        let conversation = self.conversation().map(str::to_owned);
        let cumulative =
            self.settings.usage.as_ref().is_some_and(|usage| usage.take == UsageTake::Conversation);
        let mut reply = match self.dialect.take() {
            Some(dialect) => {
                let mut reply = dialect.finish(end);
                if let (Verdict::Failed(_), Some(failure)) = (&reply.verdict, self.failure(end)) {
                    reply.verdict = Verdict::Failed(failure);
                }
                reply
            }
            None => {
                let verdict = self.verdict(end);
                let text = std::mem::take(&mut self.text);
                ParsedReply { verdict, text, ..ParsedReply::default() }
            }
        };
        reply.conversation = conversation;
        reply.meter = self.overlay(reply.meter, cumulative);
        reply.anomalies.extend(self.anomalies.into_notes());
        reply
    }
}

impl ErrorSource {
    /// The message and the HTTP status of an event that is an error.
    fn read(&self, event: &Value) -> Option<(String, Option<u16>)> {
        if !self.when.holds(event) {
            return None;
        }
        let message = self.at.find(event)?;
        let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        let status = self.status.as_ref().and_then(|pointer| pointer.find(event));
        let status = status.and_then(|status| match status {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64().and_then(|status| u16::try_from(status).ok()),
        });
        Some((message, status))
    }
}

impl UsageSource {
    fn has_tokens(&self) -> bool {
        [&self.input, &self.cached, &self.output].iter().any(|list| !list.is_empty())
    }
}

/// Adds up the numbers at some pointers.
struct Counter {
    name: &'static str,
    fields: Vec<Count>,
    take: UsageTake,
}

struct Count {
    pointer: Pointer,
    /// The sum, or the last number; none before the first.
    last: Option<f64>,
}

impl Counter {
    fn new(name: &'static str, pointers: &[Pointer], take: UsageTake) -> Self {
        let fields = pointers.iter().map(|pointer| Count { pointer: pointer.clone(), last: None });
        Self { name, fields: fields.collect(), take }
    }

    fn add(&mut self, event: &Value, anomalies: &mut StreamAnomalies) {
        for field in &mut self.fields {
            let Some(value) = field.pointer.find(event) else { continue };
            let Some(number) = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
            else {
                let why = format!("the value at {} is {}", field.pointer, kind(value));
                anomalies.unexpected_shape(self.name, &why);
                continue;
            };
            let before = field.last.filter(|_| self.take == UsageTake::Sum).unwrap_or_default();
            field.last = Some(before + number);
        }
    }

    fn total(&self) -> f64 {
        self.fields.iter().filter_map(|field| field.last).sum()
    }
}

/// A number of tokens.
fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and what is too large becomes the largest number"
    )]
    let number = number.round() as u64;
    number
}

/// Whether an id can stand in a command line: no option, nothing invisible, of bounded length.
fn is_usable_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && !id.starts_with('-')
        && !id.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// The kind of a value, for notes.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("the text {:?}", truncate(text, 40)),
        Value::Bool(_) | Value::Number(_) => format!("the value {value}"),
    }
}
