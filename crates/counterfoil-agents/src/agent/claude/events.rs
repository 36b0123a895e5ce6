//! The events of Claude Code, as far as they are read. Everything may be missing, and every field
//! may have another shape.

use crate::agent::adapter::common::Field;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What an event is called.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Kind {
    #[serde(rename = "type")]
    pub(super) kind: Field<String>,
    pub(super) subtype: Field<String>,
}

/// `system` / `init`: the beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Init {
    pub(super) session_id: Field<String>,
    pub(super) model: Field<String>,
    pub(super) claude_code_version: Field<String>,
    pub(super) mcp_servers: Field<Vec<Server>>,
}

/// A server that was started.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Server {
    pub(super) name: Field<String>,
    pub(super) status: Field<String>,
}

/// `system` / `permission_denied`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Denied {
    pub(super) tool_name: Field<String>,
    pub(super) tool_use_id: Field<String>,
    pub(super) message: Field<String>,
}

/// `system` / `api_retry`: its server did not answer, and is asked again.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Retry {
    pub(super) attempt: Field<u64>,
    pub(super) max_retries: Field<u64>,
    pub(super) retry_delay_ms: Field<f64>,
    pub(super) error_status: Field<u16>,
    pub(super) error: Field<String>,
}

/// `rate_limit_event`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rate {
    pub(super) rate_limit_info: Field<RateInfo>,
}

/// How much of a subscription is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateInfo {
    pub(super) status: Field<String>,
    /// In seconds since 1970.
    #[serde(rename = "resetsAt")]
    pub(super) resets_at: Field<i64>,
}

/// `assistant` and `user`: a message, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Turn {
    pub(super) message: Field<Message>,
    /// The call of the subagent whose message it is.
    pub(super) parent_tool_use_id: Field<String>,
}

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Field<String>,
    pub(super) model: Field<String>,
    pub(super) content: Field<Vec<Field<Block>>>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: Field<String>,
    pub(super) text: Field<String>,
    pub(super) id: Field<String>,
    pub(super) name: Field<String>,
    pub(super) input: Value,
    pub(super) tool_use_id: Field<String>,
    pub(super) is_error: Field<bool>,
    pub(super) content: Value,
}

/// `result`: the end of a reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Last {
    pub(super) subtype: Field<String>,
    pub(super) is_error: Field<bool>,
    pub(super) result: Field<String>,
    pub(super) structured_output: Option<Value>,
    pub(super) session_id: Field<String>,
    pub(super) errors: Field<Vec<String>>,
    pub(super) api_error_status: Field<u16>,
    pub(super) api_error: Field<String>,
    pub(super) api_error_params: Field<Params>,
    pub(super) permission_denials: Field<Vec<Refused>>,
    pub(super) total_cost_usd: Field<f64>,
    pub(super) usage: Field<Usage>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Field<Models>,
    pub(super) model_usage_since_last_result: Field<Models>,
}

impl Last {
    /// The fields that matter and cannot be read, and why.
    pub(super) fn odd(&self) -> Vec<(&'static str, String)> {
        [
            ("subtype", self.subtype.odd()),
            ("is_error", self.is_error.odd()),
            ("result", self.result.odd()),
            ("session_id", self.session_id.odd()),
            ("errors", self.errors.odd()),
            ("api_error_status", self.api_error_status.odd()),
            ("permission_denials", self.permission_denials.odd()),
            ("total_cost_usd", self.total_cost_usd.odd()),
            ("usage", self.usage.odd()),
            ("modelUsage", self.model_usage.odd()),
        ]
        .into_iter()
        .filter_map(|(name, why)| Some((name, why?.to_owned())))
        .collect()
    }
}

/// More about a failure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    pub(super) rate_limit_info: Field<RateInfo>,
}

/// A call that was denied.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refused {
    pub(super) tool_name: Field<String>,
    pub(super) tool_use_id: Field<String>,
    pub(super) tool_input: Value,
}

/// What each model was used for.
pub(super) type Models = BTreeMap<String, ModelUsage>;

/// The tokens of one prompt, without those of subagents.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: Field<u64>,
    pub(super) cache_creation_input_tokens: Field<u64>,
    pub(super) cache_read_input_tokens: Field<u64>,
    pub(super) output_tokens: Field<u64>,
}

/// What a model was used for, with what subagents used.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    pub(super) input_tokens: Field<u64>,
    pub(super) cache_creation_input_tokens: Field<u64>,
    pub(super) cache_read_input_tokens: Field<u64>,
    pub(super) output_tokens: Field<u64>,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Field<f64>,
}
