//! Artifacts: what they may read, when they are rendered, what they must satisfy.

use super::Checker;
use super::machine::scope_of;
use super::types::run_seen_by_artifacts;
use crate::draft::MachineDraft;
use crate::workflow::Artifact;
use counterfoil_contract::Type;
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// The artifacts of a machine, which see what its states see and more of the run.
    pub(super) fn artifacts(
        &mut self,
        draft: &MachineDraft<'n>,
        types: &BTreeMap<String, Type>,
    ) -> Vec<Artifact> {
        if draft.artifacts.is_empty() {
            return Vec::new();
        }
        let mut types = types.clone();
        types.insert("run".to_owned(), run_seen_by_artifacts());
        let scope = scope_of(&types);
        let mut artifacts = Vec::new();
        for artifact in &draft.artifacts {
            let path = self.template(artifact.path);
            let template = self.file_template(artifact.template);
            let contract = artifact.contract.and_then(|name| self.contract(name));
            if let Some(path) = &path {
                self.typed_template(artifact.path, path, &types);
            }
            if let Some(template) = &template {
                self.typed_template(artifact.template, template, &types);
            }
            let when = artifact.when.map(|node| self.guard(node, &scope));
            if let (Some(path), Some(template), None | Some(Some(_))) = (path, template, &when) {
                let when = when.flatten();
                artifacts.push(Artifact {
                    path,
                    template,
                    contract,
                    append: artifact.append,
                    when,
                });
            }
        }
        artifacts
    }
}
