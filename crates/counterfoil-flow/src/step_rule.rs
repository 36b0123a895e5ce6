//! Rules of a step: conditions on its result beyond the contract, over the values of the run at the
//! start of the step.

use counterfoil_contract::expr::{Expression, Type};
use counterfoil_contract::{Code, Contract, Report, Violation};
use serde_json::Value;
use std::sync::Arc;

/// A rule with the values that it reads, except for the result.
#[derive(Clone, Debug)]
pub struct BoundRule {
    /// The id of the rule.
    pub id: String,
    /// The condition that must be true.
    pub check: Arc<Expression>,
    /// The message for a result that breaks the rule.
    pub message: String,
    /// The part of the result that the rule is about, as a JSON pointer.
    pub at: String,
    /// The values that the rule reads, with their types.
    pub known: Vec<(String, Value, Type)>,
}

/// Applies the rules of a step to a result that satisfies its contract. A result that breaks a rule
/// is rejected.
pub fn apply_rules(rules: &[BoundRule], contract: &Contract, report: &mut Report) {
    let Some(value) = &report.value else { return };
    let broken = rules.iter().filter_map(|rule| rule.violation(contract, value, report)).collect();
    report.refuse(broken);
}

impl BoundRule {
    fn violation(&self, contract: &Contract, value: &Value, report: &Report) -> Option<Violation> {
        let known = self.known.iter().map(|(name, value, ty)| (name.as_str(), value, ty));
        let variables: Vec<_> = known.chain([("result", value, contract.ty())]).collect();
        let message = match self.check.test(&variables) {
            Ok(true) => return None,
            Ok(false) => self.message.clone(),
            Err(why) => format!("{} (`{}`: {why})", self.message, self.check.source()),
        };
        let received = value.pointer(&self.at).map(crate::value::excerpt).unwrap_or_default();
        Some(Violation {
            code: Code::Contradiction,
            pointer: self.at.clone(),
            span: report.provenance.span,
            message,
            expected: self.check.source().to_owned(),
            received,
            hint: "correct the result so that this holds".to_owned(),
            rule: Some(self.id.clone()),
        })
    }
}
