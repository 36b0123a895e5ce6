//! Loads contracts: those of the workflow itself and those of the registry.

use super::Checker;
use crate::ast::SpannedStr;
use crate::finding::Code;
use crate::yaml_tree::{self, Kind, Node};
use counterfoil_contract::policy::UnknownFields;
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::join_limited;
use counterfoil_contract::{Contract, ResolveError};
use std::sync::Arc;

/// The hint for a contract file with errors.
const LINT_CONTRACT: &str = "lint the contract to see every problem in it";
/// The most skipped files that a hint names.
const MAX_SKIPPED: usize = 5;

/// Whether a text is meant as a contract: it cannot be parsed, or it has an id and a version.
fn is_contract(text: &str) -> bool {
    let Ok(root) = yaml_tree::parse(text, "") else { return true };
    let entries = root.entries().unwrap_or_default();
    let has = |name: &str, fits: fn(&Node) -> bool| {
        entries.iter().any(|(key, value)| key.text() == Some(name) && fits(value))
    };
    has("contract", |value| value.text().is_some())
        && has("version", |value| matches!(value.kind, Kind::Number(_)))
}

impl<'n> Checker<'n> {
    /// Adds the contracts listed under `contracts:` to the registry.
    pub(super) fn own_contracts(&mut self, paths: &[SpannedStr<'n>]) {
        let mut added_from = Vec::new();
        for path in paths {
            let files = match self.files.list(path.text) {
                Ok(files) => files,
                Err(why) => {
                    let message = format!("cannot read contracts from {}: {why}", path.text);
                    self.report(
                        Code::MissingFile,
                        path.node,
                        message,
                        "paths are relative to the workflow file",
                    );
                    continue;
                }
            };
            for file in files {
                let text = self.files.read(&file);
                // A folder may hold other things. A file that is named is meant.
                if file != path.text && text.as_deref().is_ok_and(|text| !is_contract(text)) {
                    self.skipped.push(file);
                    continue;
                }
                let added = text.and_then(|text| {
                    let definition = counterfoil_contract::Definition::from_yaml(&text, &file);
                    let definition = definition.map_err(|error| error.to_string())?;
                    let id = definition.contract.clone();
                    self.registry.add(definition).map_err(|error| error.to_string())?;
                    Ok(id)
                });
                match added {
                    Ok(id) => added_from.push((id, file, path.node)),
                    Err(why) => {
                        let message = format!("{file}: {why}");
                        self.report(Code::MissingFile, path.node, message, LINT_CONTRACT);
                    }
                }
            }
        }
        // Compile every contract, so that problems in unused ones are found too.
        for (id, file, node) in added_from {
            if let Err(ResolveError::Load(error)) = self.registry.get(&id) {
                let message = format!("{file}: {error}");
                self.report(Code::MissingFile, node, message, LINT_CONTRACT);
                self.broken.insert(id);
            }
        }
    }

    /// The contract with this id; reports an unknown one.
    pub(super) fn contract(&mut self, name: SpannedStr<'n>) -> Option<Arc<Contract>> {
        match self.registry.get(name.text) {
            Ok(contract) => {
                self.contracts.insert(contract.reference().to_owned(), contract.clone());
                Some(contract)
            }
            Err(ResolveError::NotFound(error)) => {
                let hint = error.hint.clone().unwrap_or_else(|| self.unknown_contract());
                self.report(Code::UnknownContract, name.node, error.message, hint);
                None
            }
            Err(ResolveError::Load(_)) if self.broken.contains(name.text) => None,
            Err(ResolveError::Load(error)) => {
                let message = format!("contract '{}' does not load: {error}", name.text);
                self.report(Code::UnknownContract, name.node, message, LINT_CONTRACT);
                None
            }
        }
    }

    /// The way out if a contract is unknown.
    fn unknown_contract(&self) -> String {
        match self.skipped.as_slice() {
            [] => "correct the id, or list the contract's file under `contracts:`".to_owned(),
            // One of them may be meant.
            skipped => format!(
                "correct the id, or list the contract's file under `contracts:`; these files in its \
                 folders were skipped, because they have no id in `contract` or no number in `version`: \
                 {}",
                join_limited(skipped, MAX_SKIPPED)
            ),
        }
    }

    /// The contract as it reads the results of an agent that has this setting for unknown fields.
    pub(super) fn read_by(
        &mut self,
        contract: Arc<Contract>,
        setting: Option<SpannedStr<'n>>,
    ) -> Arc<Contract> {
        let setting = match setting {
            Some(name) if name.text == "refuse" => name,
            Some(name) if name.text != "keep" => {
                let hint = did_you_mean(name.text, ["keep", "refuse"])
                    .unwrap_or_else(|| "write keep or refuse".into());
                let message =
                    format!("'{}' does not say what to do with unknown fields", name.text);
                self.report(Code::WrongForm, name.node, message, hint);
                return contract;
            }
            _ => return contract,
        };
        if let Some(known) = self.refusing.get(contract.reference()) {
            return known.clone();
        }
        match contract.with_unknown_fields(UnknownFields::Refuse) {
            Ok(refusing) => {
                let refusing = Arc::new(refusing);
                self.refusing.insert(contract.reference().to_owned(), refusing.clone());
                refusing
            }
            Err(error) => {
                let message = format!(
                    "unknown fields cannot be refused, because {} has them itself: {error}",
                    contract.reference()
                );
                self.report(Code::WrongForm, setting.node, message, LINT_CONTRACT);
                contract
            }
        }
    }

    /// Collects the contracts that claims of an agent's contract validate files against, so that
    /// they are stored with the run.
    pub(super) fn artifact_contracts(&mut self, name: SpannedStr<'n>, contract: &Contract) {
        for (field, claim) in &contract.definition().claims {
            let Some(id) = &claim.contract else { continue };
            match self.registry.get(id) {
                Ok(found) => {
                    self.contracts.insert(found.reference().to_owned(), found);
                }
                Err(error) => {
                    let reference = contract.reference();
                    let message = format!(
                        "the claim `{field}` of {reference} refers to contract '{id}': {error}"
                    );
                    let hint = "list that contract under `contracts:`, or correct the claim";
                    self.report(Code::UnknownContract, name.node, message, hint);
                }
            }
        }
    }
}
