//! Which checks of the project a workflow relies on, and which of them the project does not have.

use super::{Workflow, complete_claim};
use crate::finding::{Code, Finding};
use counterfoil_contract::Span;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy};
use counterfoil_contract::suggest::how_to_add_check;
use std::collections::BTreeSet;

/// A place of a workflow that relies on a check of the project.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckUse {
    /// The name of the check.
    pub check: String,
    /// The sub-workflow; empty for the workflow itself.
    pub machine: String,
    /// The state.
    pub state: String,
    /// The claim that the check verifies; none if the state itself runs the check.
    pub claim: Option<ClaimUse>,
    /// The position in the workflow file.
    pub span: Span,
}

/// A claim that a check verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// The name of the claim, as guards write it.
    pub name: String,
    /// Its policy in the state.
    pub policy: ClaimPolicy,
}

/// A check that a workflow relies on and that the project does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingCheck {
    /// The name of the check.
    pub check: String,
    /// The check of the project that was probably meant: its name differs in a letter or two.
    pub meant: Option<String>,
    /// The places that rely on it, in the order of the file.
    pub uses: Vec<CheckUse>,
}

impl MissingCheck {
    /// Whether a claim that has to be verified relies on the check: the state cannot succeed.
    pub fn is_required(&self) -> bool {
        self.required_claims().next().is_some()
    }

    /// The claims that have to be verified and rely on the check, each with its state.
    pub fn required_claims(&self) -> impl Iterator<Item = (&CheckUse, &ClaimUse)> {
        let claims = self.uses.iter().filter_map(|found| Some((found, found.claim.as_ref()?)));
        claims.filter(|(_, claim)| claim.policy == ClaimPolicy::Require)
    }

    /// The findings for a name that is probably misspelt, one for each place.
    pub fn findings(&self, file: &str) -> Vec<Finding> {
        let Some(meant) = &self.meant else { return Vec::new() };
        let mut spans = BTreeSet::new();
        let places = self.uses.iter().filter(|found| spans.insert(found.span.start));
        let finding = |found: &CheckUse| {
            let message = format!("the project has no check '{}'", self.check);
            let otherwise = how_to_add_check(&self.check, None, "counterfoil.toml");
            let hint = format!("did you mean '{meant}'? Otherwise {otherwise}");
            Finding::new(Code::UnknownCheck, file, message, hint).at(found.span)
        };
        places.map(finding).collect()
    }
}

impl Workflow {
    /// The checks that the workflow relies on and that are not among those of the project, in the
    /// order of the file.
    pub fn missing_checks<'c>(
        &self,
        configured: impl IntoIterator<Item = &'c str>,
    ) -> Vec<MissingCheck> {
        let configured: BTreeSet<&str> = configured.into_iter().collect();
        let mut missing: Vec<MissingCheck> = Vec::new();
        for found in self.check_uses.iter().filter(|one| !configured.contains(one.check.as_str())) {
            match missing.iter_mut().find(|one| one.check == found.check) {
                Some(one) => one.uses.push(found.clone()),
                None => missing.push(MissingCheck {
                    check: found.check.clone(),
                    meant: configured
                        .iter()
                        .find(|known| is_misspelt(&found.check, known))
                        .map(|known| (*known).to_owned()),
                    uses: vec![found.clone()],
                }),
            }
        }
        missing
    }

    /// Lets no claim pass that is not verified: those that would only be recorded are required, and
    /// every step has to leave nothing unfinished. What the workflow ignores is still ignored.
    pub fn require_claims(&mut self) {
        let require = |policy: &mut ClaimPolicy| {
            if *policy == ClaimPolicy::Record {
                *policy = ClaimPolicy::Require;
            }
        };
        self.bundle.require_claims = true;
        require(&mut self.paths.protection);
        require(&mut self.paths.tests);
        for machine in std::iter::once(&mut self.main).chain(self.machines.values_mut()) {
            for state in machine.states.values_mut() {
                let Some(dispatch) = state.kind.dispatch_mut() else { continue };
                let policies = &mut dispatch.claims.policies;
                require(&mut policies.protected);
                require(&mut policies.tests);
                if !policies.claims.iter().any(|claim| claim.claim.kind == ClaimKind::Complete) {
                    policies.claims.push(complete_claim(ClaimPolicy::Require));
                }
                for claim in &mut policies.claims {
                    require(&mut claim.claim.policy);
                }
            }
        }
        for found in &mut self.check_uses {
            let Some(claim) = &mut found.claim else { continue };
            require(&mut claim.policy);
        }
    }
}

/// Whether a name is another one with a letter or two changed, or with other separators.
fn is_misspelt(name: &str, known: &str) -> bool {
    let plain = |name: &str| {
        name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
    };
    let (name, known) = (plain(name), plain(known));
    let shorter = name.chars().count().min(known.chars().count());
    let allowed = if shorter >= 6 { 2 } else { 1 };
    shorter >= 3 && strsim::osa_distance(&name, &known) <= allowed
}

#[cfg(test)]
mod tests {
    use super::is_misspelt;

    #[test]
    fn a_misspelt_name_differs_in_a_letter_or_two() {
        for (name, known) in [
            ("tset", "test"),
            ("test", "tests"),
            ("type-check", "typecheck"),
            ("type_check", "type-check"),
            ("covrage", "coverage"),
            ("Lint", "lint"),
        ] {
            assert!(is_misspelt(name, known), "{name} {known}");
        }
        for (name, known) in [
            ("test", "lint"),
            ("test-slow", "test"),
            ("format", "fmt"),
            ("e2e", "test"),
            ("a", "b"),
        ] {
            assert!(!is_misspelt(name, known), "{name} {known}");
        }
    }
}
