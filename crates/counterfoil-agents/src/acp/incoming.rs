//! The messages that a program sends. Everything in them is untrusted: fields of another type count as
//! absent, unknown ones are skipped without being kept, and unknown messages are tolerated.
//!
//! The schema types of the protocol are not used here: they read numbers through buffers that do not
//! work with numbers of arbitrary precision, and keep what we skip.

use agent_client_protocol_schema::v1::{PermissionOptionKind, RequestId, StopReason, ToolKind};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The longest id of a request.
const MAX_ID_BYTES: usize = 1 << 10;
/// The longest value of unknown form that is read.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// A message.
#[derive(Debug)]
pub(super) enum Message<'l> {
    /// An answer to one of our requests. The id is none of ours if it is no number.
    Answer { id: Option<i64>, answer: Result<&'l RawValue, RpcError> },
    /// A request.
    Request { id: RequestId, method: String, params: Option<&'l RawValue> },
    /// A notification.
    Notification { method: String, params: Option<&'l RawValue> },
}

#[derive(serde::Deserialize)]
struct Envelope<'l> {
    #[serde(borrow, default)]
    id: Option<&'l RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'l RawValue>,
    #[serde(borrow, default)]
    result: Option<&'l RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    error: Option<RpcError>,
}

/// The error of an answer.
#[derive(Clone, Debug, Default, serde::Deserialize)]
pub(super) struct RpcError {
    /// The code: one of JSON-RPC, of the protocol, or an HTTP status.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) code: Option<i64>,
    /// The message.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<String>,
    /// What else the program tells.
    #[serde(default, deserialize_with = "small_value")]
    pub(super) data: Value,
}

impl<'l> Message<'l> {
    /// Reads a line with an object. None if it is no message.
    pub(super) fn parse(line: &'l str) -> Option<Self> {
        let Envelope { id, method, params, result, error } = serde_json::from_str(line).ok()?;
        match (method, id, result, error) {
            (Some(method), None, None, None) => Some(Self::Notification { method, params }),
            (Some(method), Some(id), None, None) if id.get().len() <= MAX_ID_BYTES => {
                let id = request_id(id.get())?;
                Some(Self::Request { id, method, params })
            }
            (None, id, _, Some(error)) => Some(Self::Answer { id: number(id), answer: Err(error) }),
            (None, Some(id), Some(result), None) => {
                Some(Self::Answer { id: number(Some(id)), answer: Ok(result) })
            }
            // An answer without a value, as some programs send it for nothing.
            (None, Some(id), None, None) => {
                Some(Self::Answer { id: number(Some(id)), answer: Ok(RawValue::NULL) })
            }
            _ => None,
        }
    }
}

fn number(id: Option<&RawValue>) -> Option<i64> {
    id.and_then(|id| id.get().parse().ok())
}

fn request_id(raw: &str) -> Option<RequestId> {
    match raw.parse() {
        Ok(number) => Some(RequestId::Number(number)),
        Err(_) => serde_json::from_str(raw).ok().map(RequestId::Str),
    }
}

/// Reads a value, of which any part may be missing.
pub(super) fn read<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// A field that is absent if it has another type.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// Any value, unless it is long.
fn small_value<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    let short = (raw.get().len() <= MAX_VALUE_BYTES).then(|| serde_json::from_str(raw.get()).ok());
    Ok(short.flatten().unwrap_or_default())
}

/// The answer to `initialize`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialized {
    #[serde(deserialize_with = "lenient")]
    pub(super) protocol_version: Option<u16>,
    #[serde(deserialize_with = "lenient")]
    pub(super) auth_methods: Option<Vec<AuthMethod>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) agent_info: Option<AgentInfo>,
}

/// A way to log in.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct AuthMethod {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
}

/// The program, as it calls itself.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct AgentInfo {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) version: Option<String>,
}

/// The answer to `session/new`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NewSession {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) modes: Option<Modes>,
}

/// The modes of a program.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    /// The one that it is in.
    #[serde(deserialize_with = "lenient")]
    pub(super) current_mode_id: Option<String>,
    /// Those that it has.
    #[serde(deserialize_with = "lenient")]
    pub(super) available_modes: Option<Vec<Mode>>,
}

/// A mode of a program.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Mode {
    /// Its id.
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
}

/// The answer to `session/prompt`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Prompted {
    #[serde(deserialize_with = "lenient")]
    pub(super) stop_reason: Option<Known<StopReason>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<TokenCount>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: Option<PromptMeta>,
}

/// What Gemini CLI and others tell beside the answer.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct PromptMeta {
    #[serde(deserialize_with = "lenient")]
    pub(super) quota: Option<Quota>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Quota {
    #[serde(deserialize_with = "lenient")]
    pub(super) token_count: Option<TokenCount>,
}

/// The tokens of a prompt, in the forms in which programs tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenCount {
    #[serde(alias = "total_tokens", deserialize_with = "lenient")]
    pub(super) total_tokens: Option<u64>,
    #[serde(alias = "input_tokens", deserialize_with = "lenient")]
    pub(super) input_tokens: Option<u64>,
    #[serde(alias = "output_tokens", deserialize_with = "lenient")]
    pub(super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cached_read_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cached_write_tokens: Option<u64>,
}

/// A word of the protocol, or one that is unknown to us.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum Known<T> {
    /// A known word.
    Word(T),
    /// Another one.
    Other(String),
}

/// The parameters of `session/update`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionUpdate<'l> {
    #[serde(default, deserialize_with = "lenient")]
    session_id: Option<String>,
    #[serde(borrow)]
    update: &'l RawValue,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpdateKind {
    #[serde(deserialize_with = "lenient")]
    session_update: Option<String>,
    #[serde(rename = "_meta", deserialize_with = "small_value")]
    meta: Value,
}

/// An update of a session.
#[derive(Debug)]
pub(super) enum Update {
    /// A part of a message of the agent.
    Message(Chunk),
    /// A part of what it thinks.
    Thought,
    /// A tool call that begins, or what is new about one.
    Call(ToolCall),
    /// Its plan.
    Plan(Plan),
    /// What the conversation costs.
    Usage(Usage),
    /// A message of the program itself.
    Notice(Notice),
    /// Something else.
    Other,
}

/// The session of an update, by the parameters of `session/update`.
pub(super) fn session_of(params: Option<&RawValue>) -> Option<String> {
    serde_json::from_str::<SessionUpdate<'_>>(params?.get()).ok()?.session_id
}

impl Update {
    /// Reads the parameters of `session/update`, with the `_meta` of the update. What is told of
    /// another session than `own`, such as that of a subagent, counts as something else.
    pub(super) fn parse(params: Option<&RawValue>, own: Option<&str>) -> Option<(Self, Value)> {
        let SessionUpdate { session_id, update } = serde_json::from_str(params?.get()).ok()?;
        if session_id.is_some() && session_id.as_deref() != own {
            return Some((Self::Other, Value::Null));
        }
        let kind: UpdateKind = read(Some(update))?;
        let known = match kind.session_update.as_deref()? {
            "agent_message_chunk" => Self::Message(read(Some(update))?),
            "agent_thought_chunk" => Self::Thought,
            "tool_call" | "tool_call_update" => Self::Call(read(Some(update))?),
            "plan" => Self::Plan(read(Some(update))?),
            "usage_update" => Self::Usage(read(Some(update))?),
            "notice" => Self::Notice(read(Some(update))?),
            _ => Self::Other,
        };
        Some((known, kind.meta))
    }
}

/// A part of a message.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Chunk {
    /// The message that it is part of.
    #[serde(deserialize_with = "lenient")]
    pub(super) message_id: Option<String>,
    /// The content.
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<Content>,
}

/// A content. Only texts are read.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Content {
    /// The text.
    #[serde(deserialize_with = "lenient")]
    pub(super) text: Option<String>,
}

/// What is told of a tool call.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ToolCall {
    /// The id of the call.
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_call_id: Option<String>,
    /// The call in words. Some programs show the whole command here.
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    /// The name of the tool.
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    /// What kind of tool it is.
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: Option<ToolKind>,
    /// Whether it is done.
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    /// The files that it concerns.
    #[serde(deserialize_with = "lenient")]
    pub(super) locations: Option<Vec<Place>>,
    /// What it shows: for edits, the files.
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<Vec<Place>>,
    /// The arguments.
    #[serde(deserialize_with = "lenient")]
    pub(super) raw_input: Option<RawInput>,
}

impl ToolCall {
    /// Adds what an update tells.
    pub(super) fn update(&mut self, newer: Self) {
        fn put<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        put(&mut self.title, newer.title);
        put(&mut self.name, newer.name);
        put(&mut self.kind, newer.kind);
        put(&mut self.status, newer.status);
        put(&mut self.locations, newer.locations);
        put(&mut self.content, newer.content);
        put(&mut self.raw_input, newer.raw_input);
    }
}

/// Something with a path.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Place {
    /// The path.
    #[serde(deserialize_with = "lenient")]
    pub(super) path: Option<String>,
}

/// The arguments of a tool call that we know from some programs.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawInput {
    /// The server of the tool.
    #[serde(deserialize_with = "lenient")]
    pub(super) server: Option<String>,
    /// The tool of that server.
    #[serde(deserialize_with = "lenient")]
    pub(super) tool: Option<String>,
    /// The file that is edited.
    #[serde(alias = "filePath", alias = "path", deserialize_with = "lenient")]
    pub(super) file_path: Option<String>,
}

/// A plan.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Plan {
    /// Its entries.
    #[serde(deserialize_with = "lenient")]
    pub(super) entries: Option<Vec<PlanEntry>>,
}

/// An entry of a plan.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct PlanEntry {
    /// What is to be done.
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<String>,
    /// Whether it is done.
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
}

/// What a conversation costs. The tokens in it are those of the context, not those that were used.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    /// The cost of the whole conversation.
    #[serde(deserialize_with = "lenient")]
    pub(super) cost: Option<Cost>,
}

/// An amount of money.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    /// The amount.
    #[serde(deserialize_with = "lenient")]
    pub(super) amount: Option<f64>,
    /// The currency.
    #[serde(deserialize_with = "lenient")]
    pub(super) currency: Option<String>,
}

/// A message of the program itself.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Notice {
    /// How bad it is.
    #[serde(deserialize_with = "lenient")]
    pub(super) severity: Option<String>,
    /// The message.
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    /// More about it.
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionRequest {
    /// The call that asks for it.
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_call: Option<ToolCall>,
    /// The possible answers.
    #[serde(deserialize_with = "lenient")]
    pub(super) options: Option<Vec<PermissionOption>>,
}

/// A possible answer to a request for a permission.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionOption {
    /// Its id.
    #[serde(deserialize_with = "lenient")]
    pub(super) option_id: Option<String>,
    /// What it means.
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: Option<PermissionOptionKind>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_their_fields() {
        let kind = |line: &str| match Message::parse(line) {
            None => "none".to_owned(),
            Some(Message::Answer { id, answer }) => format!("answer {id:?} {}", answer.is_ok()),
            Some(Message::Request { id, method, .. }) => format!("request {id} {method}"),
            Some(Message::Notification { method, .. }) => format!("notification {method}"),
        };
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "answer Some(3) true"),
            (r#"{"id":3,"result":null}"#, "answer Some(3) true"),
            (r#"{"id":"3","result":1}"#, "answer None true"),
            (r#"{"id":3,"error":{"code":500}}"#, "answer Some(3) false"),
            (r#"{"id":null,"error":{"code":-32700,"message":"x"}}"#, "answer None false"),
            (r#"{"id":0,"method":"fs/read","params":{}}"#, "request 0 fs/read"),
            (r#"{"id":"a","method":"m"}"#, "request a m"),
            (r#"{"id":[1],"method":"m"}"#, "none"),
            (r#"{"method":"session/update"}"#, "notification session/update"),
            (r#"{"method":7}"#, "none"),
            (r#"{"a":1}"#, "none"),
            ("{", "none"),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
        let long = format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(2000));
        assert_eq!(kind(&long), "none");
    }

    #[test]
    fn fields_of_another_type_count_as_absent() {
        let raw = r#"{"update":{"sessionUpdate":"tool_call","title":5,"kind":"strange",
            "locations":[{"path":"/a"},{"path":1}],"status":"pending","rawInput":"text"}}"#;
        let raw: &RawValue = serde_json::from_str(raw).unwrap();
        let Some((Update::Call(call), _)) = Update::parse(Some(raw), None) else {
            panic!("no call")
        };
        assert_eq!((call.title, call.kind), (None, Some(ToolKind::Other)));
        let paths: Vec<_> = call.locations.unwrap().into_iter().map(|place| place.path).collect();
        assert_eq!(paths, [Some("/a".to_owned()), None]);
        assert!(call.raw_input.is_none());
    }

    #[test]
    fn numbers_are_read_in_every_form() {
        let read = |text: &str| serde_json::from_str::<TokenCount>(text).unwrap();
        assert_eq!(read(r#"{"input_tokens":10,"output_tokens":5}"#).input_tokens, Some(10));
        assert_eq!(read(r#"{"inputTokens":10,"totalTokens":15}"#).total_tokens, Some(15));
        assert_eq!(read(r#"{"inputTokens":-1,"outputTokens":1e99}"#), TokenCount::default());
        let usage: Usage =
            serde_json::from_str(r#"{"cost":{"amount":0.25,"currency":"USD"}}"#).unwrap();
        assert_eq!(usage.cost.unwrap().amount, Some(0.25));
    }
}
