//! How often an agent was sent back, and when that is enough. No I/O.

use serde::{Deserialize, Serialize};
use std::fmt;

/// So often the same text is sent back.
pub(crate) const MOST_ALIKE: usize = 3;
/// So often one turn is sent back, whatever it says. Claude Code itself ends the turn at more, with
/// no answer at all.
pub(crate) const MOST: usize = 6;

/// The blocks of one turn of one agent, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Chain {
    /// The prompt that the turn answers.
    prompt: Option<String>,
    /// What was sent back.
    blocks: Vec<Block>,
}

/// One block: digests of what the agent said, and of what it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    said: String,
    told: String,
}

/// Why an agent is not sent back once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    /// It says the same again and again, or makes the same mistake.
    Alike,
    /// It says something else each time, and none of it is good.
    Often,
}

impl fmt::Display for Enough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alike => write!(f, "it was sent back {MOST_ALIKE} times for the same"),
            Self::Often => write!(f, "it was sent back {MOST} times"),
        }
    }
}

impl Chain {
    /// What is remembered of the turn that a payload is of. A turn that goes on because of a block
    /// has what came before it; one that does not is a new one, unless it answers the same
    /// prompt: then a block was not told of.
    pub(crate) fn of_turn(self, active: Option<bool>, prompt: Option<&str>) -> Self {
        let same_prompt = match (self.prompt.as_deref(), prompt) {
            (Some(before), Some(now)) => Some(before == now),
            _ => None,
        };
        let goes_on = match active {
            Some(true) => true,
            Some(false) => same_prompt == Some(true),
            None => same_prompt != Some(false),
        };
        let blocks = if goes_on { self.blocks } else { Vec::new() };
        Self { prompt: prompt.map(str::to_owned), blocks }
    }

    /// The chain with one block more, if there may be one.
    pub(crate) fn block(mut self, said: &str, told: &str) -> Result<Self, Enough> {
        let block = Block { said: digest(said), told: digest(told) };
        let alike = |one: fn(&Block) -> &str| {
            self.blocks.iter().filter(|before| one(before) == one(&block)).count() >= MOST_ALIKE
        };
        if alike(|block| &block.said) || alike(|block| &block.told) {
            return Err(Enough::Alike);
        }
        if self.blocks.len() >= MOST {
            return Err(Enough::Often);
        }
        self.blocks.push(block);
        Ok(self)
    }

    /// How many blocks there were.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }
}

/// Tells texts apart; space around them does not matter.
fn digest(text: &str) -> String {
    crate::digest::of(text.trim().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays turns; gives how often each was sent back before it was enough.
    fn blocks(says: impl Fn(usize) -> (String, String)) -> (usize, Enough) {
        let mut chain = Chain::default();
        for n in 0..100 {
            let (said, told) = says(n);
            match chain.clone().of_turn(Some(n > 0), Some("p")).block(&said, &told) {
                Ok(longer) => chain = longer,
                Err(enough) => return (n, enough),
            }
        }
        panic!("it loops");
    }

    #[test]
    fn three_blocks_of_the_same_are_enough() {
        assert_eq!(blocks(|_| ("no".into(), "send it".into())), (3, Enough::Alike));
        let spaced = |n: usize| (format!("no{}", " ".repeat(n)), format!("send {n}"));
        assert_eq!(blocks(spaced), (3, Enough::Alike), "space makes no other text");
        assert_eq!(
            blocks(|n| (format!("no {n}"), "send it".into())),
            (3, Enough::Alike),
            "the same mistake"
        );
    }

    #[test]
    fn an_agent_that_says_something_else_each_time_has_more_tries_and_no_end_of_them() {
        assert_eq!(blocks(|n| (format!("no {n}"), format!("field {n}"))), (MOST, Enough::Often));
        let two = |n: usize| (format!("no {}", n % 2), format!("field {}", n % 2));
        assert_eq!(blocks(two), (MOST, Enough::Alike), "there and back again");
    }

    #[test]
    fn a_turn_is_new_unless_a_hook_blocked_its_end() {
        let before = Chain::default().of_turn(Some(false), Some("p1")).block("no", "send").unwrap();
        for (active, prompt, left) in [
            (Some(true), Some("p1"), 1),
            (Some(true), Some("p2"), 1),
            (Some(true), None, 1),
            (Some(false), Some("p2"), 0),
            (Some(false), None, 0),
            // A version that never says that a hook blocked must not loop.
            (Some(false), Some("p1"), 1),
            (None, Some("p1"), 1),
            (None, Some("p2"), 0),
            (None, None, 1),
        ] {
            assert_eq!(before.clone().of_turn(active, prompt).len(), left, "{active:?} {prompt:?}");
        }
    }
}
