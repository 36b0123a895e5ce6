//! Checks artifacts: their templates, conditions and contracts.

use super::Checker;
use super::machine::scope_from_types;
use crate::ast;
use crate::variable_types::artifact_run_type;
use crate::workflow::Artifact;
use counterfoil_contract::expr::Type;
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// The artifacts of a machine. Their templates can read the variables of the machine and more of
    /// `run` than its states can.
    pub(super) fn artifacts(
        &mut self,
        decl: &ast::Machine<'n>,
        types: &BTreeMap<String, Type>,
    ) -> Vec<Artifact> {
        if decl.artifacts.is_empty() {
            return Vec::new();
        }
        let mut types = types.clone();
        types.insert("run".to_owned(), artifact_run_type(&self.checks));
        let scope = scope_from_types(&types);
        let mut artifacts = Vec::new();
        for artifact in &decl.artifacts {
            let path = self.template(artifact.path);
            let template = self.file_template(artifact.template);
            let contract = artifact.contract.and_then(|name| self.contract(name));
            if let Some(path) = &path {
                self.check_template_types(artifact.path, path, &types);
            }
            if let Some(template) = &template {
                self.check_template_types(artifact.template, template, &types);
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
