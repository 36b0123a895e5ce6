//! The events of Claude Code, as far as they are used. Every field may be missing or have an
//! unexpected type.

use crate::adapters::common::Field;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The type and subtype of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventType {
    #[serde(rename = "type")]
    pub(super) kind: Field<String>,
    pub(super) subtype: Field<String>,
}

/// `system` / `init`: the first event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Init {
    pub(super) session_id: Field<String>,
    pub(super) model: Field<String>,
    pub(super) claude_code_version: Field<String>,
    pub(super) mcp_servers: Field<Vec<McpServer>>,
}

/// The state of an MCP server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServer {
    pub(super) name: Field<String>,
    pub(super) status: Field<String>,
}

/// `system` / `permission_denied`: a tool call was denied.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeniedEvent {
    pub(super) tool_name: Field<String>,
    pub(super) tool_use_id: Field<String>,
    pub(super) message: Field<String>,
}

/// `system` / `api_retry`: a request to the API failed and is repeated.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RetryEvent {
    pub(super) attempt: Field<u64>,
    pub(super) max_retries: Field<u64>,
    pub(super) retry_delay_ms: Field<f64>,
    pub(super) error_status: Field<u16>,
    pub(super) error: Field<String>,
}

/// `rate_limit_event`: the state of the account's limits.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitEvent {
    pub(super) rate_limit_info: Field<RateLimitInfo>,
}

/// Whether a limit of the account is reached, and when it is lifted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitInfo {
    pub(super) status: Field<String>,
    /// In seconds since 1970.
    #[serde(rename = "resetsAt")]
    pub(super) resets_at: Field<i64>,
}

/// `assistant` and `user`: a message, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageEvent {
    pub(super) message: Field<Message>,
    /// For a message of a subagent, the tool call that started it.
    pub(super) parent_tool_use_id: Field<String>,
    pub(super) timestamp: Field<String>,
}

/// The message of an `assistant` or `user` event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Field<String>,
    pub(super) model: Field<String>,
    pub(super) content: Field<Vec<Field<Block>>>,
}

/// A content block of a message.
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

/// `result`: the final event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultEvent {
    pub(super) subtype: Field<String>,
    pub(super) is_error: Field<bool>,
    pub(super) result: Field<String>,
    pub(super) structured_output: Option<Value>,
    pub(super) session_id: Field<String>,
    pub(super) errors: Field<Vec<String>>,
    pub(super) api_error_status: Field<u16>,
    pub(super) api_error: Field<String>,
    pub(super) api_error_params: Field<ApiErrorParams>,
    pub(super) permission_denials: Field<Vec<DeniedCall>>,
    pub(super) total_cost_usd: Field<f64>,
    pub(super) usage: Field<Usage>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Field<Models>,
    pub(super) model_usage_since_last_result: Field<Models>,
}

impl ResultEvent {
    /// The important fields that have an unexpected type, with the errors.
    pub(super) fn mismatches(&self) -> Vec<(&'static str, String)> {
        [
            ("subtype", self.subtype.mismatch()),
            ("is_error", self.is_error.mismatch()),
            ("result", self.result.mismatch()),
            ("session_id", self.session_id.mismatch()),
            ("errors", self.errors.mismatch()),
            ("api_error_status", self.api_error_status.mismatch()),
            ("permission_denials", self.permission_denials.mismatch()),
            ("total_cost_usd", self.total_cost_usd.mismatch()),
            ("usage", self.usage.mismatch()),
            ("modelUsage", self.model_usage.mismatch()),
        ]
        .into_iter()
        .filter_map(|(name, why)| Some((name, why?.to_owned())))
        .collect()
    }
}

/// Parameters of an API error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiErrorParams {
    pub(super) rate_limit_info: Field<RateLimitInfo>,
}

/// A denied tool call in the final event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeniedCall {
    pub(super) tool_name: Field<String>,
    pub(super) tool_use_id: Field<String>,
    pub(super) tool_input: Value,
}

/// Usage by model.
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

/// The usage of one model, including subagents.
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
