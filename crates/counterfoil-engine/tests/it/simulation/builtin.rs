//! States in which the engine does something itself.

use crate::dice::Dice;
use serde_json::{Value, json};

/// Such a state. Only the main machine is sure not to work in a worktree, where nothing is
/// committed.
pub(crate) fn builtin_state(dice: &mut Dice, in_main: bool, next: &str, failed: &str) -> Value {
    let mut state = match dice.below(if in_main { 3 } else { 2 }) {
        0 => json!({"read": "{{ topic }}.json", "contract": "sim/check", "next": [
            {"set": {"topic": "result.topic"}, "go": next},
        ]}),
        1 => json!({"changes": {"split": 100}, "next": [
            {"when": "size(result.files) > 0", "go": next},
            {"go": failed, "reason": "result.base"},
        ]}),
        _ => json!({"commit": {"message": "{{ topic }}"}, "next": [
            {"when": "result.ok", "go": next},
            {"go": failed, "reason": "result.output"},
        ]}),
    };
    if dice.percent(50) {
        state["on"] = json!({"blocked": failed});
    }
    state
}
