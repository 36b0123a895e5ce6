//! Attempts that were interrupted: their conversation and what they left behind, from which the next
//! attempt of the step goes on.

use super::{Interruption, PastConversation, RunState};
use crate::event::{AttemptOutcome, Ended, Usage};

/// The most changed files that are kept of an interrupted attempt.
const MAX_CHANGED: usize = 50;

/// Why an attempt was lost.
const LOST: &str = "the process that ran it ended";

impl RunState {
    /// The program of an attempt told the id of its conversation.
    pub(super) fn conversation_opened(&mut self, attempt: &str, agent: &str, id: &str) {
        let Some(spec) = self.agents.get(agent).map(|assigned| assigned.spec.clone()) else {
            return;
        };
        let frame = self.attempts.get(attempt).and_then(|frame| self.frames.get_mut(frame));
        let Some(frame) = frame else { return };
        let is_known = |known: &PastConversation| known.id == id && known.spec == spec;
        if !frame.conversation.as_ref().is_some_and(is_known) {
            let usage = Usage::default();
            frame.conversation = Some(PastConversation { id: id.to_owned(), spec, usage });
        }
    }

    /// Counts what an attempt used in its conversation.
    pub(super) fn used_in_conversation(&mut self, attempt: &str, usage: Usage) {
        let frame = self.attempts.get(attempt).and_then(|frame| self.frames.get_mut(frame));
        if let Some(conversation) = frame.and_then(|frame| frame.conversation.as_mut()) {
            conversation.usage += usage;
        }
    }

    /// Keeps from where the next attempt goes on after one that was lost.
    pub(super) fn attempt_lost(&mut self, frame: &str, changed: &[String]) {
        let changed = changed.iter().take(MAX_CHANGED).cloned().collect();
        self.interrupt(frame, LOST, changed, false);
    }

    /// Keeps from where the next attempt goes on, if this one was interrupted.
    pub(super) fn note_interruption(&mut self, frame: &str, ended: &Ended) {
        let is_interrupted = matches!(
            ended.outcome,
            AttemptOutcome::Transport
                | AttemptOutcome::Limit
                | AttemptOutcome::Timeout
                | AttemptOutcome::Cancelled
        );
        if is_interrupted {
            let changed = ended.changed.iter().flat_map(|changed| {
                let lists = changed.added.iter().chain(&changed.modified).chain(&changed.deleted);
                lists.chain(changed.renamed.iter().map(|(_, to)| to))
            });
            let changed = changed.take(MAX_CHANGED).cloned().collect();
            let seen = ended.changed.as_ref();
            let left_nothing = seen.is_none_or(|all| all.total == 0 && all.notes.is_empty());
            self.interrupt(frame, &ended.reason, changed, left_nothing);
        } else if let Some(frame) = self.frames.get_mut(frame) {
            (frame.interruption, frame.conversation) = (None, None);
        }
    }

    fn interrupt(&mut self, id: &str, reason: &str, changed: Vec<String>, left_nothing: bool) {
        let workspace = self.frames.get(id).and_then(|frame| self.workspace_of(frame));
        let workspace = workspace.map(str::to_owned);
        if let Some(frame) = self.frames.get_mut(id) {
            let reason = reason.to_owned();
            frame.interruption = Some(Interruption { reason, changed, left_nothing, workspace });
        }
    }
}
