//! Pieces of text: numbers, values and safe strings.

use counterfoil_contract::text::{escape_control, pluralize};
use counterfoil_flow::Usage;
use counterfoil_flow::amount::{dollars, duration};
use serde_json::Value;
use std::fmt::Write;

/// The longest JSON value that [`abbreviate`] prints in full.
const MAX_ABBREVIATED: usize = 60;
/// The longest JSON value that [`truncate_json`] prints in full.
const MAX_JSON: usize = 120;
/// The longest line that [`one_line`] prints in full.
const MAX_LINE: usize = 300;

/// Tokens, cost and time, each preceded by a comma. Empty if nothing was used.
pub fn usage_suffix(usage: &Usage) -> String {
    let mut text = String::new();
    let tokens = usage.input_tokens + usage.output_tokens;
    if tokens > 0 {
        let _ = write!(text, ", {tokens} tokens");
    }
    if usage.cost_usd > 0.0 {
        let _ = write!(text, ", {}", dollars(usage.cost_usd));
    }
    if usage.wall_ms >= 100 {
        let _ = write!(text, ", {}", duration(usage.wall_ms));
    }
    text
}

/// A JSON value inside a sentence. Long lists and objects are replaced by their size.
pub fn abbreviate(value: &Value) -> String {
    let text = value.to_string();
    match value {
        Value::Array(items) if text.len() > MAX_ABBREVIATED => {
            format!("[{}]", pluralize(items.len(), "item"))
        }
        Value::Object(fields) if text.len() > MAX_ABBREVIATED => {
            format!("{{{}}}", pluralize(fields.len(), "field"))
        }
        _ => truncate(&text, MAX_ABBREVIATED),
    }
}

/// A JSON value on a line of its own.
pub fn truncate_json(value: &Value) -> String {
    truncate(&value.to_string(), MAX_JSON)
}

/// A text with its white space as single spaces and other unsafe characters escaped, of limited
/// length.
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate(&escape_control(&line), MAX_LINE)
}

/// A text of at most `max` characters; an ellipsis replaces what is cut off.
fn truncate(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max - 1).chain(['…']).collect()
}
