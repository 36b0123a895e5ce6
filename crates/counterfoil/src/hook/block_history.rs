//! How often the turn of an agent was blocked, and the limit for it. No I/O.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most blocks of one turn with the same answer or the same feedback.
const MAX_IDENTICAL_BLOCKS: usize = 3;
/// The most blocks of one turn. Claude Code has a higher limit of its own, at which it ends the
/// turn without an answer.
const MAX_BLOCKS: usize = 6;

/// The blocks of one turn of one agent, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BlockHistory {
    /// The id of the prompt that the turn answers.
    #[serde(rename = "prompt")]
    prompt_id: Option<String>,
    /// The blocks so far.
    blocks: Vec<Block>,
}

/// One block, by digests of the agent's message and of the feedback it got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    #[serde(rename = "said")]
    message: String,
    #[serde(rename = "told")]
    feedback: String,
}

/// Why the turn is not blocked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// The agent repeats the same answer or the same mistake.
    Identical,
    /// The answers differ, and none of them is valid.
    Total,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identical => {
                write!(f, "it was sent back {MAX_IDENTICAL_BLOCKS} times for the same reason")
            }
            Self::Total => write!(f, "it was sent back {MAX_BLOCKS} times"),
        }
    }
}

impl BlockHistory {
    /// The history of the turn that a payload belongs to. A turn that continues because a hook
    /// blocked its end (`stop_hook_active`) keeps its history. Any other turn is new, unless it
    /// answers the same prompt: some versions do not report that a hook blocked.
    pub(crate) fn for_turn(self, stop_hook_active: Option<bool>, prompt_id: Option<&str>) -> Self {
        let same_prompt = match (self.prompt_id.as_deref(), prompt_id) {
            (Some(previous), Some(current)) => Some(previous == current),
            _ => None,
        };
        let continues = match stop_hook_active {
            Some(true) => true,
            Some(false) => same_prompt == Some(true),
            None => same_prompt != Some(false),
        };
        let blocks = if continues { self.blocks } else { Vec::new() };
        Self { prompt_id: prompt_id.map(str::to_owned), blocks }
    }

    /// The history with one more block, unless a limit is reached.
    pub(crate) fn add_block(mut self, message: &str, feedback: &str) -> Result<Self, LimitReached> {
        let block = Block { message: digest(message), feedback: digest(feedback) };
        let is_repeated = |field: fn(&Block) -> &str| {
            let identical = self.blocks.iter().filter(|other| field(other) == field(&block));
            identical.count() >= MAX_IDENTICAL_BLOCKS
        };
        if is_repeated(|block| &block.message) || is_repeated(|block| &block.feedback) {
            return Err(LimitReached::Identical);
        }
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(LimitReached::Total);
        }
        self.blocks.push(block);
        Ok(self)
    }

    /// The number of blocks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }
}

/// The digest of a text without surrounding white space.
fn digest(text: &str) -> String {
    crate::digest::sha256_hex(text.trim().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks one turn until a limit is reached. Returns the number of blocks and the limit.
    fn blocks(answer: impl Fn(usize) -> (String, String)) -> (usize, LimitReached) {
        let mut history = BlockHistory::default();
        for n in 0..100 {
            let (message, feedback) = answer(n);
            let turn = history.clone().for_turn(Some(n > 0), Some("p"));
            match turn.add_block(&message, &feedback) {
                Ok(longer) => history = longer,
                Err(limit) => return (n, limit),
            }
        }
        panic!("there is no limit");
    }

    #[test]
    fn identical_answers_reach_the_limit_after_three_blocks() {
        assert_eq!(blocks(|_| ("no".into(), "send it".into())), (3, LimitReached::Identical));
        let spaced = |n: usize| (format!("no{}", " ".repeat(n)), format!("send {n}"));
        assert_eq!(blocks(spaced), (3, LimitReached::Identical), "white space does not matter");
        assert_eq!(
            blocks(|n| (format!("no {n}"), "send it".into())),
            (3, LimitReached::Identical),
            "the same mistake"
        );
    }

    #[test]
    fn different_answers_reach_a_higher_limit() {
        assert_eq!(
            blocks(|n| (format!("no {n}"), format!("field {n}"))),
            (MAX_BLOCKS, LimitReached::Total)
        );
        let two = |n: usize| (format!("no {}", n % 2), format!("field {}", n % 2));
        assert_eq!(blocks(two), (MAX_BLOCKS, LimitReached::Identical), "alternating answers");
    }

    #[test]
    fn a_turn_keeps_its_history_only_if_a_hook_blocked_its_end() {
        let before = BlockHistory::default()
            .for_turn(Some(false), Some("p1"))
            .add_block("no", "send")
            .unwrap();
        for (active, prompt, left) in [
            (Some(true), Some("p1"), 1),
            (Some(true), Some("p2"), 1),
            (Some(true), None, 1),
            (Some(false), Some("p2"), 0),
            (Some(false), None, 0),
            // A version that never reports a block must not loop.
            (Some(false), Some("p1"), 1),
            (None, Some("p1"), 1),
            (None, Some("p2"), 0),
            (None, None, 1),
        ] {
            assert_eq!(
                before.clone().for_turn(active, prompt).len(),
                left,
                "{active:?} {prompt:?}"
            );
        }
    }
}
