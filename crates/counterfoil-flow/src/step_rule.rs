//! Rules of a step: what its result must satisfy beside its contract, over what the run knows when
//! the step starts.

use counterfoil_contract::{Code, Contract, Expression, Report, Type, Violation};
use serde_json::Value;
use std::sync::Arc;

/// A rule with everything it reads, except for the result.
#[derive(Clone, Debug)]
pub struct BoundRule {
    /// Its name.
    pub id: String,
    /// What must hold.
    pub check: Arc<Expression>,
    /// What is wrong if it does not, in a sentence.
    pub message: String,
    /// The part of the result that it is about, as a JSON pointer.
    pub at: String,
    /// The values it reads, with their types.
    pub known: Vec<(String, Value, Type)>,
}

/// Holds a result that its contract accepts to the rules of its step. One that breaks a rule is no
/// result.
pub fn apply_rules(rules: &[BoundRule], contract: &Contract, report: &mut Report) {
    let Some(value) = &report.value else { return };
    let broken = rules.iter().filter_map(|rule| rule.broken(contract, value, report)).collect();
    report.refuse(broken);
}

impl BoundRule {
    fn broken(&self, contract: &Contract, value: &Value, report: &Report) -> Option<Violation> {
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
