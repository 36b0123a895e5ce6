//! The tool calls of transcripts, for pages. A transcript is read on from where it was read last, and
//! only while somebody looks at a page that shows it.

use crate::folders::RunPlace;
use counterfoil_engine::{GrowingTranscript, TranscriptCalls, TranscriptError};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most calls of a transcript that are kept.
pub(crate) const MAX_CALLS: usize = 100;
/// The most transcripts whose calls are kept.
const MAX_TRANSCRIPTS: usize = 64;
/// The most attempts at work whose transcripts are watched.
const MAX_WATCHED: usize = 500;
/// How often it is looked whether a transcript has grown.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// An attempt: its state folder, its run and its id.
type Attempt = (PathBuf, String, String);
/// The calls of a transcript, which one thread at a time reads on.
type SharedCalls = Arc<Mutex<TranscriptCalls>>;

struct Watched {
    transcript: GrowingTranscript,
    /// The size when it was looked at last.
    size: u64,
    looked_at: Instant,
}

/// The transcripts that were read last, and those that grow.
#[derive(Default)]
pub(crate) struct ToolCallLogs {
    /// By state folder and reference, the last one in front.
    read: Mutex<VecDeque<((PathBuf, String), SharedCalls)>>,
    watched: Mutex<BTreeMap<Attempt, Watched>>,
}

impl ToolCallLogs {
    /// Reads a transcript on, and hands its calls to `look`.
    pub(crate) fn read<T>(
        &self,
        place: &RunPlace,
        reference: &str,
        look: impl FnOnce(&TranscriptCalls) -> T,
    ) -> Result<T, TranscriptError> {
        let calls = self.shared(place, reference);
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.read_on()?;
        Ok(look(&calls))
    }

    fn shared(&self, place: &RunPlace, reference: &str) -> SharedCalls {
        let state = place.engine.journal().folder();
        let key = (state.to_owned(), reference.to_owned());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let at = read.iter().position(|(known, _)| *known == key);
        let calls = at.and_then(|at| read.remove(at)).map_or_else(
            || Arc::new(Mutex::new(TranscriptCalls::new(state, reference, MAX_CALLS))),
            |(_, calls)| calls,
        );
        read.push_front((key, Arc::clone(&calls)));
        read.truncate(MAX_TRANSCRIPTS);
        calls
    }

    /// Watches the transcript of an attempt at work, of which `size` bytes were read. Without one, the
    /// attempt is not watched any more.
    pub(crate) fn watch(
        &self,
        place: &RunPlace,
        attempt: &str,
        transcript: Option<(GrowingTranscript, u64)>,
    ) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(place, attempt);
        let Some((transcript, size)) = transcript else {
            watched.remove(&key);
            return;
        };
        if watched.len() >= MAX_WATCHED && !watched.contains_key(&key) {
            // Those of runs that ended without a last look at them.
            watched.clear();
        }
        watched.insert(key, Watched { transcript, size, looked_at: Instant::now() });
    }

    /// The size of the transcript of an attempt at work, as of at most a second ago; 0 if it is not
    /// watched.
    pub(crate) fn size(&self, place: &RunPlace, attempt: &str) -> u64 {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = watched.get_mut(&key(place, attempt)) else { return 0 };
        if watched.looked_at.elapsed() >= LOOK_INTERVAL {
            watched.looked_at = Instant::now();
            watched.size = watched.transcript.find().map_or(0, |(_, size)| size);
        }
        watched.size
    }
}

fn key(place: &RunPlace, attempt: &str) -> Attempt {
    let state = place.engine.journal().folder().to_owned();
    (state, place.run.clone(), attempt.to_owned())
}
