//! Watches what a program uses while it works, by its own record of the conversation.

use super::CliAgent;
use crate::adapters::record::{RecordReader, RecordedTokens};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the record is read.
const INTERVAL: Duration = Duration::from_millis(300);

/// How often further files of the record are looked for.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);

/// The record of the conversation that a prompt belongs to.
pub(super) struct RecordWatch {
    agent: CliAgent,
    scratch: PathBuf,
    /// The id of the conversation, once it is known.
    conversation: Arc<OnceLock<String>>,
    reader: RecordReader,
    /// What the conversation had used before the prompt.
    before: RecordedTokens,
    files: Vec<PathBuf>,
    searched: Option<Instant>,
}

impl RecordWatch {
    /// The record of an existing conversation, or of the one that the program begins and whose id is
    /// set as soon as the program tells it.
    pub(super) fn new(
        agent: CliAgent,
        scratch: PathBuf,
        conversation: Arc<OnceLock<String>>,
    ) -> Self {
        let reader = RecordReader::new(agent.adapter.record_parser());
        let mut watch = Self {
            agent,
            scratch,
            conversation,
            reader,
            before: RecordedTokens::default(),
            files: Vec::new(),
            searched: None,
        };
        watch.before = watch.used().0;
        watch
    }

    /// What the prompt has used so far, and whether the model will be asked again because it calls
    /// tools.
    pub(super) fn used(&mut self) -> (RecordedTokens, bool) {
        let Some(id) = self.conversation.get() else {
            return (RecordedTokens::default(), false);
        };
        let is_due = self.searched.is_none_or(|at| at.elapsed() >= SEARCH_INTERVAL);
        if self.files.is_empty() || is_due {
            self.files = self.agent.record_files(id, &self.scratch);
            self.searched = Some(Instant::now());
        }
        let record = self.reader.read(self.files.iter().cloned());
        (record.used().since(self.before), record.calls_tools())
    }

    /// Waits until the prompt has used so many tokens and the program is about to use more. Never
    /// ends without a limit.
    pub(super) async fn until_used(&mut self, most: Option<u64>) -> RecordedTokens {
        let Some(most) = most else { return std::future::pending().await };
        loop {
            tokio::time::sleep(INTERVAL).await;
            let (used, calls_tools) = self.used();
            if calls_tools && used.all() >= most {
                return used;
            }
        }
    }
}
