//! Requests that are repeated with the same `Idempotency-Key` are done once: a client that lost the
//! answer can ask again.

use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The header.
const HEADER: &str = "idempotency-key";
/// The longest key.
const MAX_KEY: usize = 200;
/// The number of answers that are kept. They are in memory only.
const MAX_KEPT: usize = 1000;

/// What came of a request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// What happened, as text.
    pub(crate) message: String,
}

/// The result of a request. The lock is held while the request is performed, so that one that is
/// repeated meanwhile waits for its result.
type Slot = Arc<Mutex<Option<Result<Done, Problem>>>>;

/// The requests that had a key.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    kept: Mutex<VecDeque<(String, [u8; 32], Slot)>>,
}

impl Repeats {
    /// Performs a request, unless one with the same key was performed.
    pub(crate) fn once(
        &self,
        headers: &HeaderMap,
        path: &str,
        body: &[u8],
        perform: impl FnOnce() -> Result<Done, Problem>,
    ) -> Result<Done, Problem> {
        let Some(key) = headers.get(HEADER) else { return perform() };
        let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= MAX_KEY);
        let key = key.ok_or_else(|| {
            Problem::bad_request("`Idempotency-Key` must be 1 to 200 characters of ASCII")
        })?;
        let mut hash = Sha256::new();
        // What an answer is for is a part of the request.
        let condition = headers.get(header::IF_MATCH).map_or(&b""[..], HeaderValue::as_bytes);
        for part in [path.as_bytes(), condition, body] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let slot = self.slot(key, hash.finalize().into())?;
        let mut result = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = &*result {
            return earlier.clone();
        }
        let made = perform();
        // After a failure of the server it is worth trying again.
        if made.as_ref().map_or_else(|problem| !problem.status().is_server_error(), |_| true) {
            *result = Some(made.clone());
        }
        made
    }

    fn slot(&self, key: &str, request: [u8; 32]) -> Result<Slot, Problem> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known, slot)) = kept.iter().find(|(known, ..)| known == key) {
            if *known == request {
                return Ok(Arc::clone(slot));
            }
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency-key",
                "the key was used for another request",
            ));
        }
        let slot = Slot::default();
        kept.push_back((key.to_owned(), request, Arc::clone(&slot)));
        if kept.len() > MAX_KEPT {
            kept.pop_front();
        }
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(
        repeats: &Repeats,
        key: Option<&'static str>,
        body: &str,
        count: &mut u32,
    ) -> Result<Done, Problem> {
        let headers = key.map(|key| (HEADER.parse().unwrap(), HeaderValue::from_static(key)));
        let headers: HeaderMap = headers.into_iter().collect();
        repeats.once(&headers, "/runs", body.as_bytes(), || {
            *count += 1;
            if body == "broken" {
                return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "x", "x"));
            }
            Ok(Done { message: count.to_string() })
        })
    }

    #[test]
    fn a_repeated_request_is_performed_once() {
        let (repeats, mut count) = (Repeats::default(), 0);
        let message = |done: Result<Done, Problem>| done.unwrap().message;
        assert_eq!(message(ask(&repeats, Some("a"), "x", &mut count)), "1");
        assert_eq!(message(ask(&repeats, Some("a"), "x", &mut count)), "1");
        assert_eq!(message(ask(&repeats, Some("b"), "x", &mut count)), "2");
        assert_eq!(message(ask(&repeats, None, "x", &mut count)), "3");
        let other = ask(&repeats, Some("a"), "y", &mut count).unwrap_err();
        assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(count, 3);
    }

    #[test]
    fn a_request_that_the_server_failed_is_tried_again() {
        let (repeats, mut count) = (Repeats::default(), 0);
        for _ in 0..2 {
            ask(&repeats, Some("a"), "broken", &mut count).unwrap_err();
        }
        assert_eq!(count, 2);
        assert!(ask(&repeats, Some(""), "x", &mut count).is_err());
    }
}
