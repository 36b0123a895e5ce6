//! Validates replies again whose violations are not recorded. What that costs is bounded as for all
//! texts ([`crate::checking`]), and what came of it is kept: pages are made again and again.

use crate::checking::{Checks, MAX_TEXT, MAX_TIME};
use counterfoil_contract::{Contract, Violation, work};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most violations that are kept of a reply.
pub(crate) const MAX_VIOLATIONS: usize = 50;
/// The most replies that are kept.
const MAX_KEPT: usize = 64;
/// How long a page waits for other checks.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How often it is looked whether they have ended.
const WAIT_INTERVAL: Duration = Duration::from_millis(20);

/// A contract of a run, and what tells it from all others.
#[derive(Clone, Copy)]
pub(crate) struct RunContract<'c> {
    pub(crate) contract: &'c Contract,
    /// The hash of the bundle that has it.
    pub(crate) bundle: &'c str,
}

/// What is wrong with a reply.
#[derive(Debug, Default)]
pub(crate) struct Revalidated {
    /// The violations, or the first ones.
    pub(crate) violations: Vec<Violation>,
    /// The number of all violations.
    pub(crate) total: usize,
}

/// The contract, and the hash of the text.
type Key = (String, String, [u8; 32]);

/// The replies that were validated again, those that were shown last in front.
#[derive(Debug, Default)]
pub(crate) struct Revalidations(Mutex<VecDeque<(Key, Arc<Revalidated>)>>);

impl Revalidations {
    /// What is wrong with a text, or why it is not validated.
    pub(crate) fn of(
        &self,
        checks: &Checks,
        RunContract { contract, bundle }: RunContract<'_>,
        text: &[u8],
    ) -> Result<Arc<Revalidated>, &'static str> {
        if text.len() > MAX_TEXT {
            return Err("It is too large to be validated again here.");
        }
        let Ok(text) = std::str::from_utf8(text) else {
            return Err("It is not UTF-8, and is not validated again.");
        };
        let hash = Sha256::digest(text).into();
        let key = (bundle.to_owned(), contract.reference().to_owned(), hash);
        let until = Instant::now() + MAX_WAIT;
        let _permit = loop {
            if let Some(known) = self.find(&key) {
                return Ok(known);
            }
            match checks.try_permit() {
                Some(permit) => break permit,
                None if Instant::now() >= until => {
                    return Err("The server validates other texts at the moment. \
                                Load the page again to see what is wrong with this one.");
                }
                None => std::thread::sleep(WAIT_INTERVAL),
            }
        };
        let until = Instant::now() + MAX_TIME;
        let mut violations =
            work::interruptible(until, || false, || contract.check(text)).violations;
        let total = violations.len();
        violations.truncate(MAX_VIOLATIONS);
        let validated = Arc::new(Revalidated { violations, total });
        let mut kept = self.lock();
        kept.retain(|(known, _)| *known != key);
        kept.push_front((key, Arc::clone(&validated)));
        kept.truncate(MAX_KEPT);
        Ok(validated)
    }

    fn find(&self, key: &Key) -> Option<Arc<Revalidated>> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at)?;
        let validated = Arc::clone(&found.1);
        kept.push_front(found);
        Some(validated)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Arc<Revalidated>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> Contract {
        Contract::from_yaml("contract: a/b\nversion: 1\nfields: { ok: boolean }\n").unwrap()
    }

    #[test]
    fn what_came_of_a_text_is_kept_for_its_contract() {
        let (validated, checks, contract) =
            (Revalidations::default(), Checks::default(), contract());
        let of = |bundle, text: &str| {
            let contract = RunContract { contract: &contract, bundle };
            validated.of(&checks, contract, text.as_bytes()).unwrap()
        };
        let first = of("one", "{\"ok\": 1}");
        assert_eq!((first.violations.len(), first.total), (1, 1));
        assert!(Arc::ptr_eq(&first, &of("one", "{\"ok\": 1}")));
        assert!(!Arc::ptr_eq(&first, &of("one", "{\"ok\": 2}")));
        assert!(!Arc::ptr_eq(&first, &of("other", "{\"ok\": 1}")));
        for at in 0..MAX_KEPT {
            of("one", &at.to_string());
        }
        assert_eq!(validated.lock().len(), MAX_KEPT);
    }

    #[test]
    fn large_texts_and_more_checks_than_others_make_are_refused() {
        let (validated, checks, contract) =
            (Revalidations::default(), Checks::default(), contract());
        let of = |text: &[u8]| {
            validated.of(&checks, RunContract { contract: &contract, bundle: "" }, text)
        };
        assert!(of(&vec![b'x'; MAX_TEXT + 1]).unwrap_err().contains("too large"));
        assert!(of(b"\xff").unwrap_err().contains("UTF-8"));
        of(b"known").unwrap();
        let permits: Vec<_> = std::iter::from_fn(|| checks.try_permit()).collect();
        assert!(of(b"other").unwrap_err().contains("at the moment"));
        assert!(of(b"known").is_ok(), "that costs nothing");
        drop(permits);
        assert!(of(b"other").is_ok());
    }
}
