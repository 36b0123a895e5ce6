//! What every kind of attempt has in common: the context that a driver provides, and the result.

use counterfoil_agents::agent::AgentProgress;
use counterfoil_agents::transcript::{TranscriptError, TranscriptSink};
use counterfoil_flow::{AttemptOutcome, Ended, Event};
use counterfoil_process::StopRequest;
use std::time::SystemTime;
use tokio::sync::watch;

/// What an attempt needs from its driver.
pub trait AttemptContext: Send + Sync {
    /// Reports that the attempt is alive, and what it is doing.
    fn heartbeat(&self, activity: &str);
    /// Reports how far an agent is.
    fn agent_progress(&self, progress: &AgentProgress) {
        let _ = progress;
    }
    /// Tells the person who watches the run something that is no event of it.
    fn notice(&self, line: &str);
    /// The signal that tells the attempt to stop.
    fn stop(&self) -> watch::Receiver<StopRequest>;
    /// Opens a transcript.
    ///
    /// # Errors
    ///
    /// The transcript cannot be created.
    fn transcript(
        &self,
        name: &str,
        mode: TranscriptMode,
    ) -> Result<Box<dyn TranscriptSink>, TranscriptError>;
    /// Reports an event that happened during the attempt.
    fn progress(&self, event: Event);
    /// Describes who else has written in the attempt's folder since a time, if anybody did. It is
    /// asked only for folders that others may write in. The worker itself knows about the other
    /// attempts of its own context.
    fn concurrent_writer(&self, since: SystemTime) -> Option<String>;
}

/// Where a transcript is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptMode {
    /// In a file of its own.
    OwnFile,
    /// As one line of a log that all transcripts of the run share.
    RunLog,
}

/// The result of an attempt.
pub struct AttemptResult {
    /// How the attempt ended.
    pub ended: Ended,
    /// A description of the budget that the attempt exceeded, if it exceeded one.
    pub budget_exceeded: Option<String>,
    /// Why the transcript could not be written. This is not the agent's fault: the attempt does not
    /// count and has to be repeated.
    pub transcript_error: Option<TranscriptError>,
}

impl AttemptResult {
    /// The result of an attempt that exceeded no budget and whose transcript was written.
    pub(crate) fn new(ended: Ended) -> Self {
        Self { ended, budget_exceeded: None, transcript_error: None }
    }

    /// The result of an attempt that failed before it produced any output.
    pub fn failed(attempt: &str, reason: String) -> Self {
        Self::new(Ended { reason, ..Ended::new(attempt, AttemptOutcome::Agent) })
    }

    /// The result of an attempt whose transcript could not be written.
    pub(crate) fn transcript_failed(attempt: &str, error: TranscriptError) -> Self {
        let reason = error.to_string();
        let ended = Ended { reason, ..Ended::new(attempt, AttemptOutcome::Cancelled) };
        Self { ended, budget_exceeded: None, transcript_error: Some(error) }
    }
}
