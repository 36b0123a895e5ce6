//! When the agents of runs wrote last. Between the beginning and the end of an attempt nothing is
//! recorded, so only its growing transcript tells that its agent works.

use crate::folders::{Folders, RunPlace};
use crate::format;
use counterfoil_engine::{Attempt, GrowingTranscript};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked whether the agents of a run wrote something.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// The most runs that are watched.
const MAX_RUNS: usize = 500;

/// A run: its state folder and its id.
type RunKey = (PathBuf, String);

/// The agents at work.
#[derive(Debug, Default)]
pub(crate) struct Activity(Mutex<HashMap<RunKey, Watched>>);

#[derive(Debug)]
struct Watched {
    /// The number of the last event when it was found out who works.
    seq: u64,
    transcripts: Vec<GrowingTranscript>,
    newest: Option<i64>,
    looked_at: Instant,
}

impl Activity {
    /// Watches the agents of a run after an event, and tells when one of them wrote last.
    pub(crate) fn watch(
        &self,
        place: &RunPlace,
        seq: u64,
        transcripts: Vec<GrowingTranscript>,
    ) -> Option<i64> {
        let mut watched = self.lock();
        if transcripts.is_empty() {
            watched.remove(&key(place));
            return None;
        }
        if watched.len() >= MAX_RUNS {
            // Those of runs that ended without a last look at them.
            watched.clear();
        }
        let newest = newest(&transcripts);
        let looked_at = Instant::now();
        watched.insert(key(place), Watched { seq, transcripts, newest, looked_at });
        newest
    }

    /// When an agent of a run wrote last, as of some seconds ago; none if it is not watched.
    pub(crate) fn last(&self, place: &RunPlace) -> Option<i64> {
        self.lock().get_mut(&key(place)).and_then(Watched::look)
    }

    /// When an agent of a driven run wrote last. It is watched from now on.
    pub(crate) fn of_run(&self, folders: &Folders, run: &str, seq: u64) -> Option<i64> {
        let place = folders.find(run).ok()?;
        if let Some(watched) = self.lock().get_mut(&key(&place))
            && watched.seq == seq
        {
            return watched.look();
        }
        let view = folders.view(&place).ok()?;
        let transcripts = {
            let view = view.lock().unwrap_or_else(PoisonError::into_inner);
            let attempts = view.attempts();
            let at_work = attempts.iter().filter(|attempt| is_open(attempt));
            at_work.map(|attempt| growing(&place, attempts, attempt)).collect()
        };
        self.watch(&place, seq, transcripts)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunKey, Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn look(&mut self) -> Option<i64> {
        if self.looked_at.elapsed() >= LOOK_INTERVAL {
            self.newest = newest(&self.transcripts);
            self.looked_at = Instant::now();
        }
        self.newest
    }
}

fn newest(transcripts: &[GrowingTranscript]) -> Option<i64> {
    transcripts.iter().filter_map(GrowingTranscript::changed_at).max()
}

fn key(place: &RunPlace) -> RunKey {
    (place.engine.journal().folder().to_owned(), place.run.clone())
}

/// Whether an agent is at work in an attempt of a driven run.
pub(crate) fn is_open(attempt: &Attempt) -> bool {
    attempt.outcome.is_none() && !attempt.is_lost && attempt.agent.is_some()
}

/// The transcript of the reply that an attempt at work is writing, among all attempts of its run.
pub(crate) fn growing<'a>(
    place: &RunPlace,
    attempts: impl IntoIterator<Item = &'a Attempt>,
    attempt: &Attempt,
) -> GrowingTranscript {
    let id = format::attempt_id(&attempt.path, attempt.n);
    let replies = attempts.into_iter().flat_map(|attempt| &attempt.replies);
    let finished = replies.map(|reply| reply.transcript.as_str());
    let reply = (id.as_str(), attempt.replies.len() + 1);
    GrowingTranscript::new(place.engine.journal().folder(), &place.run, reply, finished)
}
