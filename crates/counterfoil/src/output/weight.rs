//! What a verdict means for a job that asked: pure, so that all formats say the same.

use counterfoil_contract::{ClaimReport, HeldClaim, Verdict};
use serde::Serialize;
use serde_json::Value;

/// A claim, and whether the job fails by it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Weighed {
    #[serde(flatten)]
    pub(crate) claim: ClaimReport,
    /// Whether the job fails by it.
    pub(crate) counts: bool,
}

/// How loud a claim is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// It holds.
    Quiet,
    /// It cannot be told.
    Note,
    /// It does not hold, or may not any more, and nobody asked for it.
    Warning,
    /// The job fails by it.
    Error,
}

impl Weighed {
    pub(crate) fn level(&self) -> Level {
        match self.claim.verdict {
            _ if self.counts => Level::Error,
            Verdict::Verified => Level::Quiet,
            Verdict::Unverifiable => Level::Note,
            Verdict::Refuted | Verdict::Stale => Level::Warning,
        }
    }

    /// The kind, as contracts write it.
    pub(crate) fn kind(&self) -> String {
        match serde_json::to_value(self.claim.kind) {
            Ok(Value::String(kind)) => kind,
            _ => String::new(),
        }
    }
}

/// Without required claims, those that are refuted count. With them only they do, and each that is
/// not verified: one that was not made at all is added as unverifiable, so that its absence is
/// seen.
pub(crate) fn weigh(
    claims: Vec<ClaimReport>,
    held: &[HeldClaim],
    required: &[String],
) -> Vec<Weighed> {
    let is_made = |name: &str| claims.iter().any(|claim| claim.claim == name);
    let missing: Vec<ClaimReport> = held
        .iter()
        .filter(|held| required.contains(&held.name) && !is_made(&held.name))
        .map(|held| ClaimReport {
            claim: held.name.clone(),
            field: held.field.clone(),
            kind: held.claim.kind,
            policy: held.claim.policy,
            verdict: Verdict::Unverifiable,
            claimed: Value::Null,
            observed: Value::Null,
            reason: "it is required, and the result does not make it".to_owned(),
            evidence: Vec::new(),
            tree: None,
        })
        .collect();
    let weighed = |claim: ClaimReport| {
        let counts = match required {
            [] => claim.verdict == Verdict::Refuted,
            required => required.contains(&claim.claim) && claim.verdict != Verdict::Verified,
        };
        Weighed { claim, counts }
    };
    claims.into_iter().chain(missing).map(weighed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_contract::{Claim, ClaimKind, ClaimPolicy};

    fn held(name: &str) -> HeldClaim {
        let claim = Claim::new(ClaimKind::Command);
        HeldClaim { name: name.to_owned(), field: name.to_owned(), claim, findings: None }
    }

    fn report(name: &str, verdict: Verdict) -> ClaimReport {
        ClaimReport {
            claim: name.to_owned(),
            field: name.to_owned(),
            kind: ClaimKind::Command,
            policy: ClaimPolicy::Record,
            verdict,
            claimed: Value::Null,
            observed: Value::Null,
            reason: String::new(),
            evidence: Vec::new(),
            tree: None,
        }
    }

    #[test]
    fn what_counts_and_how_loud_it_is_told() {
        use Level::{Error, Note, Quiet, Warning};
        use Verdict::{Refuted, Stale, Unverifiable, Verified};
        for (verdict, alone, required, other_required) in [
            (Verified, Quiet, Quiet, Quiet),
            (Refuted, Error, Error, Warning),
            (Stale, Warning, Error, Warning),
            (Unverifiable, Note, Error, Note),
        ] {
            for (names, level) in
                [(&[][..], alone), (&["tests"], required), (&["files"], other_required)]
            {
                let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
                let claims = vec![report("tests", verdict), report("files", Verified)];
                let weighed = weigh(claims, &[held("tests"), held("files")], &names);
                assert_eq!(weighed[0].level(), level, "{verdict:?}, required {names:?}");
            }
        }
    }

    #[test]
    fn a_required_claim_that_is_not_made_is_seen() {
        let weighed = weigh(Vec::new(), &[held("tests"), held("files")], &["tests".to_owned()]);
        assert_eq!(weighed.len(), 1);
        assert!(weighed[0].counts && weighed[0].claim.verdict == Verdict::Unverifiable);
        assert!(weigh(Vec::new(), &[held("tests")], &[]).is_empty());
    }
}
