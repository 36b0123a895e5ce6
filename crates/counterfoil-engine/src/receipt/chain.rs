//! Digests that everybody can compute: of the events of a run, and of a receipt.

use crate::journal::StoredEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The label of the first link. It is part of the form of receipts.
const ORIGIN: &[u8] = b"counterfoil receipt 1";
/// The members of a receipt that its digest does not cover.
const UNCOVERED: [&str; 2] = ["sha256", "seal"];

/// The events of a run by their hashes. Each link covers the one before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventChain {
    /// The hash of the workflow with its contracts.
    pub bundle: String,
    /// The events, in order.
    pub links: Vec<Link>,
    /// The last link.
    pub head: String,
}

/// An event in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The sequence number in the run, from 1 without gaps.
    pub seq: u64,
    /// The time of the event, in milliseconds since 1970.
    pub at: i64,
    /// The kind of the event.
    pub kind: String,
    /// The SHA-256 hash of the event.
    pub sha256: String,
    /// The digest of this event and of the link before it.
    pub link: String,
}

/// How a chain is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// An event is missing or was inserted.
    #[error("event {found} stands where event {expected} should be")]
    Order {
        /// The sequence number that comes next.
        expected: u64,
        /// The sequence number that is there.
        found: u64,
    },
    /// An event was changed.
    #[error("the link of event {seq} does not match the event and the link before it")]
    Link {
        /// The sequence number of the event.
        seq: u64,
    },
    /// The chain ends elsewhere than it says.
    #[error("the head is not the last link")]
    Head,
    /// An event of the journal differs from the one in the chain.
    #[error("event {seq} is not the one in the journal")]
    OtherEvent {
        /// The sequence number of the event.
        seq: u64,
    },
    /// The journal has fewer events than the chain.
    #[error("the journal has no event {seq}")]
    NotInJournal {
        /// The sequence number of the first event that it does not have.
        seq: u64,
    },
}

impl EventChain {
    /// The chain of a run without events. It depends on the run and its bundle, so that events
    /// cannot be moved to another run.
    pub fn new(run: &str, bundle: &str) -> Self {
        Self { bundle: bundle.to_owned(), links: Vec::new(), head: origin(run, bundle) }
    }

    /// Adds the next event.
    pub fn add(&mut self, event: &StoredEvent) {
        let sha256 = hex::encode(Sha256::digest(&event.body));
        let link = link(&self.head, event.seq, event.at, &event.kind, &sha256);
        self.head.clone_from(&link);
        let (seq, at, kind) = (event.seq, event.at, event.kind.clone());
        self.links.push(Link { seq, at, kind, sha256, link });
    }

    /// Checks every link.
    ///
    /// # Errors
    ///
    /// The first link that is wrong.
    pub fn check(&self, run: &str) -> Result<(), ChainError> {
        let mut head = origin(run, &self.bundle);
        for (expected, found) in (1..).zip(&self.links) {
            if found.seq != expected {
                return Err(ChainError::Order { expected, found: found.seq });
            }
            head = link(&head, found.seq, found.at, &found.kind, &found.sha256);
            if head != found.link {
                return Err(ChainError::Link { seq: found.seq });
            }
        }
        if head == self.head { Ok(()) } else { Err(ChainError::Head) }
    }

    /// Compares the chain with that of the journal, which may have gone on since.
    ///
    /// # Errors
    ///
    /// The first event that differs.
    pub fn compare(&self, journal: &Self) -> Result<(), ChainError> {
        for (index, ours) in self.links.iter().enumerate() {
            match journal.links.get(index) {
                None => return Err(ChainError::NotInJournal { seq: ours.seq }),
                Some(theirs) if theirs != ours => {
                    return Err(ChainError::OtherEvent { seq: ours.seq });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

fn origin(run: &str, bundle: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(ORIGIN);
    sized(&mut hash, run.as_bytes());
    sized(&mut hash, bundle.as_bytes());
    hex::encode(hash.finalize())
}

fn link(previous: &str, seq: u64, at: i64, kind: &str, sha256: &str) -> String {
    let mut hash = Sha256::new();
    sized(&mut hash, previous.as_bytes());
    hash.update(seq.to_be_bytes());
    hash.update(at.to_be_bytes());
    sized(&mut hash, kind.as_bytes());
    sized(&mut hash, sha256.as_bytes());
    hex::encode(hash.finalize())
}

fn sized(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// The digest of a receipt: the SHA-256 hash of its compact JSON with sorted keys, without the
/// digest itself and the seal.
pub fn content_digest(receipt: &Value) -> String {
    let mut receipt = receipt.clone();
    if let Some(object) = receipt.as_object_mut() {
        for key in UNCOVERED {
            object.shift_remove(key);
        }
    }
    hex::encode(Sha256::digest(sorted(&receipt).to_string().as_bytes()))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let members: BTreeMap<&String, Value> =
                object.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(members.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chain() -> EventChain {
        let mut chain = EventChain::new("run", "bundle");
        for seq in 1..=3 {
            let body = format!("body {seq}").into_bytes();
            chain.add(&StoredEvent { seq, at: 10, kind: "kind".into(), body });
        }
        chain
    }

    #[test]
    fn a_chain_that_was_not_changed_is_whole() {
        assert_eq!(chain().check("run"), Ok(()));
        assert_eq!(chain().compare(&chain()), Ok(()));
    }

    #[test]
    fn every_change_breaks_a_chain() {
        let changed = |change: &dyn Fn(&mut EventChain)| {
            let mut chain = chain();
            change(&mut chain);
            chain.check("run").unwrap_err()
        };
        assert_eq!(chain().check("another run"), Err(ChainError::Link { seq: 1 }));
        assert_eq!(changed(&|chain| chain.bundle.push('x')), ChainError::Link { seq: 1 });
        assert_eq!(changed(&|chain| chain.links[1].at += 1), ChainError::Link { seq: 2 });
        assert_eq!(changed(&|chain| chain.links[1].kind.push('x')), ChainError::Link { seq: 2 });
        assert_eq!(
            changed(&|chain| chain.links[2].sha256 = "0".repeat(64)),
            ChainError::Link { seq: 3 }
        );
        let removed = changed(&|chain| drop(chain.links.remove(1)));
        assert_eq!(removed, ChainError::Order { expected: 2, found: 3 });
        assert_eq!(changed(&|chain| drop(chain.links.pop())), ChainError::Head);
    }

    #[test]
    fn a_chain_differs_from_a_journal_that_has_other_or_fewer_events() {
        let mut journal = chain();
        journal.add(&StoredEvent { seq: 4, at: 11, kind: "later".into(), body: vec![] });
        assert_eq!(chain().compare(&journal), Ok(()), "the run went on");
        assert_eq!(journal.compare(&chain()), Err(ChainError::NotInJournal { seq: 4 }));
        let mut other = EventChain::new("run", "bundle");
        other.add(&StoredEvent { seq: 1, at: 10, kind: "kind".into(), body: b"other".to_vec() });
        assert_eq!(other.compare(&journal), Err(ChainError::OtherEvent { seq: 1 }));
    }

    #[test]
    fn the_digest_of_a_receipt_covers_all_but_itself_and_the_seal() {
        let digest = content_digest(&json!({"a": 1, "b": [2, {"c": 3, "d": 4}]}));
        let same = json!({"seal": "x", "b": [2, {"d": 4, "c": 3}], "sha256": "y", "a": 1});
        assert_eq!(content_digest(&same), digest);
        assert_ne!(content_digest(&json!({"a": 1, "b": [2, {"c": 3, "d": 5}]})), digest);
    }
}
