//! Keeps the workflows of runs that were read last: to check one takes longer than most of what is
//! asked about a run.

use counterfoil_flow::Workflow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many workflows are kept.
const MAX_WORKFLOWS: usize = 16;

/// A workflow, and the hash of its bundle.
type Kept = (String, Arc<Workflow>);

/// The workflows that were used last. The clones of an engine share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Workflows(Arc<Mutex<VecDeque<Kept>>>);

impl Workflows {
    pub(super) fn get(&self, bundle: &str) -> Option<Arc<Workflow>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(hash, _)| hash == bundle)?;
        let found = kept.remove(place)?;
        let workflow = Arc::clone(&found.1);
        kept.push_front(found);
        Some(workflow)
    }

    pub(super) fn keep(&self, bundle: &str, workflow: &Arc<Workflow>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(hash, _)| hash != bundle);
        kept.push_front((bundle.to_owned(), Arc::clone(workflow)));
        kept.truncate(MAX_WORKFLOWS);
    }
}
