//! Rules of a step: what a result must satisfy beside its contract, over what the run knows.

use super::Checker;
use super::machine::scope_of;
use crate::draft::RuleDraft;
use crate::finding::Code;
use crate::workflow::StepRule;
use counterfoil_contract::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl<'n> Checker<'n> {
    /// The rules of a step; they see what its prompt sees, and the result.
    pub(super) fn rules(
        &mut self,
        drafts: &[RuleDraft<'n>],
        types: &BTreeMap<String, Type>,
        with: &BTreeMap<String, Type>,
        result: &Type,
    ) -> Vec<StepRule> {
        let scope = scope_of(types).with("result", result.clone());
        let mut names = BTreeSet::new();
        let mut rules = Vec::new();
        for draft in drafts {
            let check = draft.check.and_then(|node| self.guard(node, &scope));
            let message = draft.message.and_then(|name| {
                let template = self.template(name)?;
                self.typed_template(name, &template, types);
                Some(template)
            });
            if let Some(id) = draft.id {
                self.plain_name(id, "a rule");
                if !names.insert(id.text) {
                    let message = format!("two rules are named '{}'", id.text);
                    self.report(Code::BadName, id.node, message, "give each a name of its own");
                }
            }
            if let Some(at) = draft.at.filter(|at| !at.text.is_empty() && !at.text.starts_with('/'))
            {
                let message = format!("'{}' is no place in a result", at.text);
                self.report(Code::WrongForm, at.node, message, "write a JSON pointer: /outcomes");
            }
            if let (Some(id), Some(check), Some(message)) = (draft.id, check, message) {
                let at = draft.at.map(|at| at.text.to_owned()).unwrap_or_default();
                let (id, check) = (id.text.to_owned(), Arc::new(check));
                rules.push(StepRule { id, check, message, at, with: with.clone() });
            }
        }
        rules
    }
}
