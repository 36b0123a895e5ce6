//! Checks the rules of a step, which its result must satisfy in addition to its contract.

use super::Checker;
use super::machine::scope_from_types;
use crate::ast;
use crate::finding::Code;
use crate::workflow::StepRule;
use counterfoil_contract::expr::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl<'n> Checker<'n> {
    /// The rules of a step. They can read the variables of its prompt, and `result`.
    pub(super) fn rules(
        &mut self,
        decls: &[ast::Rule<'n>],
        types: &BTreeMap<String, Type>,
        with: &BTreeMap<String, Type>,
        result: &Type,
    ) -> Vec<StepRule> {
        let scope = scope_from_types(types).with("result", result.clone());
        let mut names = BTreeSet::new();
        let mut rules = Vec::new();
        for decl in decls {
            let check = decl.check.and_then(|node| self.guard(node, &scope));
            let message = decl.message.and_then(|name| {
                let template = self.template(name)?;
                self.check_template_types(name, &template, types);
                Some(template)
            });
            if let Some(id) = decl.id {
                self.check_name(id, "a rule");
                if !names.insert(id.text) {
                    let message = format!("two rules are named '{}'", id.text);
                    self.report(Code::BadName, id.node, message, "rename one of them");
                }
            }
            if let Some(at) = decl.at.filter(|at| !at.text.is_empty() && !at.text.starts_with('/'))
            {
                let message = format!("'{}' is not a JSON pointer", at.text);
                self.report(
                    Code::WrongForm,
                    at.node,
                    message,
                    "write a JSON pointer such as /outcomes",
                );
            }
            if let (Some(id), Some(check), Some(message)) = (decl.id, check, message) {
                let at = decl.at.map(|at| at.text.to_owned()).unwrap_or_default();
                let (id, check) = (id.text.to_owned(), Arc::new(check));
                rules.push(StepRule { id, check, message, at, with: with.clone() });
            }
        }
        rules
    }
}
