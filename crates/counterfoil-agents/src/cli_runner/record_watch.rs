//! Watches what a program uses while it works, by its own record of the conversation.

use super::output::SharedProgress;
use super::{CliAgent, MAX_MODEL_CHARS};
use crate::adapters::common::truncate;
use crate::adapters::record::{RecordReader, RecordedTokens};
use counterfoil_flow::amount::dollars;
use counterfoil_flow::{Budget, Usage};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the record is read.
const INTERVAL: Duration = Duration::from_millis(300);

/// How often the record is read if nothing depends on it but what people see.
const SLOW_INTERVAL: Duration = Duration::from_secs(2);

/// How often further files of the record are looked for.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);

/// The record of the conversation that a prompt belongs to.
pub(super) struct RecordWatch {
    agent: CliAgent,
    scratch: PathBuf,
    /// The id of the conversation, once it is known.
    conversation: Arc<OnceLock<String>>,
    reader: RecordReader,
    /// What the conversation had used before the prompt, by model.
    before: BTreeMap<String, RecordedTokens>,
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
            before: BTreeMap::new(),
            files: Vec::new(),
            searched: None,
        };
        let _ = watch.used();
        watch.before = watch.reader.record().used_by_model();
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
        self.reader.read(self.files.iter().cloned());
        let used = self.by_model().into_values();
        let used = used.fold(RecordedTokens::default(), RecordedTokens::plus);
        (used, self.reader.record().calls_tools())
    }

    /// What the prompt has used by model, as of the last reading.
    fn by_model(&self) -> BTreeMap<String, RecordedTokens> {
        let mut used = self.reader.record().used_by_model();
        for (model, tokens) in &mut used {
            *tokens = tokens.since(self.before.get(model).copied().unwrap_or_default());
        }
        used
    }

    /// What the prompt has cost, as of the last reading, if the prices of its models are known.
    pub(super) fn cost_usd(&self) -> Option<f64> {
        let used = self.by_model();
        used.values().any(|tokens| tokens.all() > 0).then(|| self.agent.prices().cost(&used))?
    }

    /// The models that it has used and whose prices are not known.
    pub(super) fn unpriced(&self) -> Vec<String> {
        let used = self.by_model().into_iter().filter(|(_, tokens)| tokens.all() > 0);
        let models = used.map(|(model, _)| model);
        models.filter(|model| self.agent.prices().of(model).is_none()).collect()
    }

    /// Whether a tool call may have no result yet that the program's events do not tell of.
    pub(super) fn has_open_calls(&mut self) -> bool {
        let _ = self.used();
        self.reader.record().has_open_calls()
    }

    /// The model that the prompt has used most, as of the last reading.
    pub(super) fn model(&self) -> Option<String> {
        let used = self.by_model().into_iter().filter(|(_, tokens)| tokens.all() > 0);
        let (model, _) = used.max_by_key(|(_, tokens)| tokens.all())?;
        Some(truncate(&model, MAX_MODEL_CHARS)).filter(|model| !model.is_empty())
    }

    /// Says what the prompt has used if that is all it may and the program is about to use more. What
    /// was used so far goes to `progress`.
    pub(super) fn exhausted(&mut self, most: &Budget, progress: &SharedProgress) -> Option<String> {
        let (used, calls_tools) = self.used();
        let cost = self.cost_usd();
        let usage = Usage {
            input_tokens: used.input,
            output_tokens: used.output,
            cost_usd: cost.unwrap_or_default(),
            wall_ms: 0,
        };
        // What is told counts as a sign of life: only what is new.
        if progress.usage() != usage {
            let model = self.model();
            progress.update(|latest| {
                latest.usage = usage;
                if latest.model.is_none() {
                    latest.model = model;
                }
            });
        }
        if !calls_tools {
            return None;
        }
        if let Some(most) = most.tokens.filter(|most| used.all() >= *most) {
            return Some(format!("{} of {most} tokens were used", used.all()));
        }
        let (most, cost) = most.cost_usd.zip(cost).filter(|(most, cost)| cost >= most)?;
        Some(format!("{} of {} were spent", dollars(cost), dollars(most)))
    }
}

/// How often the record is read under these limits.
pub(super) fn interval(most: &Budget) -> Duration {
    let is_limited = most.tokens.is_some() || most.cost_usd.is_some();
    if is_limited { INTERVAL } else { SLOW_INTERVAL }
}
