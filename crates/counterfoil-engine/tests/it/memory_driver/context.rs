//! What an attempt needs from its driver, in memory.

use counterfoil_agents::transcript::{StoredTranscript, TranscriptError, TranscriptSink};
use counterfoil_flow::Event;
use counterfoil_process::StopRequest;
use counterfoil_worker::{AttemptContext, AttemptResult, TranscriptMode};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio::sync::{mpsc, watch};

/// The transcripts of a run, by name.
pub(crate) type Transcripts = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A message from an attempt to its driver.
pub(crate) enum Message {
    Progress(Box<Event>),
    Done(Box<AttemptResult>),
}

/// The context of one attempt.
pub(crate) struct MemoryContext {
    pub(crate) stop: watch::Receiver<StopRequest>,
    pub(crate) messages: mpsc::UnboundedSender<Message>,
    pub(crate) transcripts: Transcripts,
}

impl AttemptContext for MemoryContext {
    fn notice(&self, _: &str) {}

    fn heartbeat(&self, _: &str) {}

    fn stop(&self) -> watch::Receiver<StopRequest> {
        self.stop.clone()
    }

    fn transcript(
        &self,
        name: &str,
        _: TranscriptMode,
    ) -> Result<Box<dyn TranscriptSink>, TranscriptError> {
        let transcripts = self.transcripts.clone();
        Ok(Box::new(MemoryTranscript { name: name.to_owned(), bytes: Vec::new(), transcripts }))
    }

    fn progress(&self, event: Event) {
        self.messages.send(Message::Progress(Box::new(event))).unwrap();
    }

    fn concurrent_writer(&self, _: SystemTime) -> Option<String> {
        None
    }
}

/// A transcript that is stored when it is finished or closed.
struct MemoryTranscript {
    name: String,
    bytes: Vec<u8>,
    transcripts: Transcripts,
}

impl TranscriptSink for MemoryTranscript {
    fn write(&mut self, bytes: &[u8]) -> Result<(), TranscriptError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn error(&self) -> Option<&TranscriptError> {
        None
    }

    fn finish(self: Box<Self>) -> Result<StoredTranscript, TranscriptError> {
        Ok(self.close())
    }

    fn close(self: Box<Self>) -> StoredTranscript {
        let stored = StoredTranscript {
            path: self.name.clone(),
            sha256: hex::encode(Sha256::digest(&self.bytes)),
            bytes: self.bytes.len() as u64,
            truncated_at: None,
        };
        self.transcripts.lock().unwrap().insert(self.name, self.bytes);
        stored
    }
}
