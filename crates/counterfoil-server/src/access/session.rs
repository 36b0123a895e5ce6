//! The sessions of browsers. A browser gets one for a code that works once.

use super::secret::{random_secret, same_secret};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a code can be used.
const CODE_LIFETIME: Duration = Duration::from_mins(10);
/// The maximum number of codes and of sessions. The oldest one goes first.
const MAX_KEPT: usize = 100;

/// The codes that were not used yet, and the sessions. Both are in memory only: they end with the
/// server.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    codes: Vec<(String, Instant)>,
    sessions: Vec<String>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} codes, {} sessions", self.codes.len(), self.sessions.len())
    }
}

impl Sessions {
    /// A new code, which works once within [`CODE_LIFETIME`].
    pub(crate) fn new_code(&self, now: Instant) -> Result<String, getrandom::Error> {
        let code = random_secret()?;
        let mut kept = self.kept();
        kept.codes.push((code.clone(), now));
        let surplus = kept.codes.len().saturating_sub(MAX_KEPT);
        kept.codes.drain(..surplus);
        Ok(code)
    }

    /// The id of a new session for a code, if the code is valid. It is not valid again.
    pub(crate) fn open(
        &self,
        code: &str,
        now: Instant,
    ) -> Result<Option<String>, getrandom::Error> {
        let session = random_secret()?;
        let mut kept = self.kept();
        let is_valid = |made: &Instant| now.saturating_duration_since(*made) < CODE_LIFETIME;
        let found = kept.codes.iter().position(|(known, _)| same_secret(known, code));
        let Some(found) = found else { return Ok(None) };
        let (_, made) = kept.codes.remove(found);
        if !is_valid(&made) {
            return Ok(None);
        }
        kept.sessions.push(session.clone());
        let surplus = kept.sessions.len().saturating_sub(MAX_KEPT);
        kept.sessions.drain(..surplus);
        Ok(Some(session))
    }

    /// Whether there is a session with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.kept().sessions.iter().any(|known| same_secret(known, id))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_not_for_ever() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let code = sessions.new_code(now).unwrap();
        assert_eq!(sessions.open("", now).unwrap(), None);
        let session = sessions.open(&code, now).unwrap().unwrap();
        assert!(sessions.has(&session));
        assert!(!sessions.has(&code));
        assert_eq!(sessions.open(&code, now).unwrap(), None, "it was used");
        let late = sessions.new_code(now).unwrap();
        assert_eq!(sessions.open(&late, now + CODE_LIFETIME).unwrap(), None);
        let shown = format!("{sessions:?}");
        assert!(!shown.contains(&session), "{shown}");
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let open = || {
            let code = sessions.new_code(now).unwrap();
            sessions.open(&code, now).unwrap().unwrap()
        };
        let first = open();
        let others: Vec<String> = (0..MAX_KEPT).map(|_| open()).collect();
        assert!(!sessions.has(&first));
        assert!(others.iter().all(|session| sessions.has(session)));
    }
}
