//! The files that a run changed.

use counterfoil_engine::RunReport;
use std::collections::BTreeSet;

/// The files that a run changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFiles {
    /// Their names, in order.
    pub(crate) names: BTreeSet<String>,
    /// Whether there are more: an event lists only some of very many.
    pub(crate) more: bool,
}

/// The files that the attempts of a run changed, whether or not they were merged.
pub(crate) fn files(report: &RunReport) -> RunFiles {
    let mut files = RunFiles::default();
    let attempts = report.attempts.iter().chain(&report.commands);
    for changed in attempts.filter_map(|attempt| attempt.changed.as_ref()) {
        let renamed = changed.renamed.iter().flat_map(|(from, to)| [from, to]);
        let listed: BTreeSet<&String> = changed
            .added
            .iter()
            .chain(&changed.modified)
            .chain(&changed.deleted)
            .chain(renamed)
            .collect();
        files.more |= (listed.len() as u64) < changed.total;
        files.names.extend(listed.into_iter().cloned());
    }
    files
}
