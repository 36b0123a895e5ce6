//! The gate of `counterfoil verify`: what makes a job fail. All output formats use the same decision,
//! and so does the exit code: what fails the job is in each of them, with its reason.

use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, EffectiveClaim, Verdict};
use counterfoil_contract::text::{display_path, escape_control};
use counterfoil_engine::ledger::Totals;
use counterfoil_verify::unfinished::{Unfinished, UnfinishedWork};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a required claim that is not made fails the job.
const MISSING: &str = "the claim is required, but the result does not make it";
/// Why a claim that only the contract requires does not.
const NOT_STATED: &str = "the contract requires the claim of results that make it, and this one does \
                          not; where it must be made, require its field in the contract";
/// Why a file in another language was not examined for unfinished work.
const NO_LANGUAGE: &str = "it is in no language in which unfinished work is found";

/// A claim, and whether it makes the job fail.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct GatedClaim {
    #[serde(flatten)]
    pub(crate) claim: ClaimReport,
    /// Whether the claim makes the job fail.
    pub(crate) counts: bool,
}

/// The severity with which a claim is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The claim is verified; nothing is reported.
    Pass,
    /// The claim cannot be verified.
    Note,
    /// The claim is refuted or stale, but the job does not depend on it.
    Warning,
    /// The claim makes the job fail.
    Error,
}

impl GatedClaim {
    /// The severity of this claim.
    pub(crate) fn level(&self) -> Level {
        match self.claim.verdict {
            _ if self.counts => Level::Error,
            Verdict::Verified => Level::Pass,
            Verdict::Unverifiable => Level::Note,
            Verdict::Refuted | Verdict::Stale => Level::Warning,
        }
    }

    /// The kind as written in contracts.
    pub(crate) fn kind(&self) -> String {
        kind_name(self.claim.kind)
    }
}

fn kind_name(kind: ClaimKind) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(kind)) => kind,
        _ => String::new(),
    }
}

/// A claim that is required and that the result does not make. It has no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct NotMade {
    /// The name of the claim.
    pub(crate) claim: String,
    /// The field that would make the claim, as the contract writes it.
    pub(crate) field: String,
    /// The kind of the claim.
    pub(crate) kind: ClaimKind,
    /// Who requires it.
    pub(crate) reason: String,
    /// Whether it makes the job fail: the user requires it.
    pub(crate) counts: bool,
}

impl NotMade {
    /// What is said of it in place of a verdict.
    pub(crate) const NAME: &str = "required but not made";

    /// A declared claim that the result does not make; none if nobody requires it.
    fn of(declared: &EffectiveClaim, required: &[String]) -> Option<Self> {
        let claim = &declared.claim;
        let counts = required.contains(&declared.name);
        // No result makes a claim of these kinds.
        let is_implied = matches!(claim.kind, ClaimKind::Protected | ClaimKind::TestsKept);
        let of_contract = claim.policy == ClaimPolicy::Require && !is_implied;
        let reason = if counts { MISSING } else { NOT_STATED };
        (counts || of_contract).then(|| Self {
            claim: declared.name.clone(),
            field: declared.field.clone(),
            kind: claim.kind,
            reason: reason.to_owned(),
            counts,
        })
    }

    /// The severity of this claim.
    pub(crate) fn level(&self) -> Level {
        if self.counts { Level::Error } else { Level::Note }
    }

    /// The kind as written in contracts.
    pub(crate) fn kind(&self) -> String {
        kind_name(self.kind)
    }
}

/// The claims of a result, and which of them make the job fail.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GatedClaims {
    /// Those that the result makes.
    pub(crate) made: Vec<GatedClaim>,
    /// Those that are required and that it does not make.
    pub(crate) not_made: Vec<NotMade>,
}

impl GatedClaims {
    /// Whether a claim makes the job fail.
    pub(crate) fn fails(&self) -> bool {
        self.failing().next().is_some()
    }

    /// The names of the claims that make the job fail.
    pub(crate) fn failing(&self) -> impl Iterator<Item = &str> {
        let made = self.made.iter().filter(|gated| gated.counts);
        let not_made = self.not_made.iter().filter(|missing| missing.counts);
        made.map(|gated| gated.claim.claim.as_str())
            .chain(not_made.map(|missing| missing.claim.as_str()))
    }

    /// How many claims of the result have each verdict.
    pub(crate) fn totals(&self) -> Totals {
        Totals::from_claims(self.made.iter().map(|gated| &gated.claim))
    }
}

/// Decides which claims make the job fail.
///
/// A claim that its contract requires does unless it is verified. If the user requires claims, these
/// do as well. If the user requires none, every refuted claim does. A required claim that the result
/// does not make fails the job if the user requires it; a contract requires claims only of results
/// that make them.
pub(crate) fn gate(
    claims: Vec<ClaimReport>,
    declared: &[EffectiveClaim],
    required: &[String],
) -> GatedClaims {
    let is_made = |name: &str| claims.iter().any(|claim| claim.claim == name);
    let others = declared.iter().filter(|declared| !is_made(&declared.name));
    let not_made = others.filter_map(|declared| NotMade::of(declared, required)).collect();
    let decide = |claim: ClaimReport| {
        let is_required = claim.policy == ClaimPolicy::Require || required.contains(&claim.claim);
        let counts = match claim.verdict {
            Verdict::Verified => false,
            Verdict::Refuted => is_required || required.is_empty(),
            Verdict::Stale | Verdict::Unverifiable => is_required,
        };
        GatedClaim { claim, counts }
    };
    GatedClaims { made: claims.into_iter().map(decide).collect(), not_made }
}

/// What the changes leave unfinished, and what was not examined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GatedWork {
    /// The places. Each makes the job fail.
    pub(crate) places: Vec<Unfinished>,
    /// The changed files that were not examined.
    pub(crate) not_examined: Vec<UnexaminedFile>,
}

/// A changed file that was not examined for unfinished work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnexaminedFile {
    /// The file, relative to the folder; none if the reason is not about one file.
    pub(crate) file: Option<PathBuf>,
    /// Why it was not examined.
    pub(crate) reason: String,
    /// Whether it makes the job fail: it was to be examined, and could not be. A file in another
    /// language never can, so it is only named.
    pub(crate) counts: bool,
}

impl fmt::Display for UnexaminedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = escape_control(&self.reason);
        match &self.file {
            Some(file) => write!(f, "{}: {reason}", display_path(file)),
            None => write!(f, "{reason}"),
        }
    }
}

impl From<UnfinishedWork> for GatedWork {
    fn from(work: UnfinishedWork) -> Self {
        let unread = work.unread.into_iter().map(|unread| UnexaminedFile {
            file: unread.file,
            reason: unread.reason,
            counts: true,
        });
        let unknown = work.unknown.into_iter().map(|file| UnexaminedFile {
            file: Some(file),
            reason: NO_LANGUAGE.to_owned(),
            counts: false,
        });
        Self { places: work.places, not_examined: unread.chain(unknown).collect() }
    }
}

impl GatedWork {
    /// The same with other paths of the files.
    pub(crate) fn with_paths(&self, path_of: impl Fn(&Path) -> PathBuf) -> Self {
        let mut work = self.clone();
        for place in &mut work.places {
            place.file = path_of(&place.file);
        }
        for file in work.not_examined.iter_mut().filter_map(|unexamined| unexamined.file.as_mut()) {
            *file = path_of(file);
        }
        work
    }

    /// Whether it makes the job fail.
    pub(crate) fn fails(&self) -> bool {
        !self.places.is_empty() || self.not_examined.iter().any(|file| file.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_contract::claim::Claim;
    use counterfoil_verify::unfinished::Unread;

    fn declared(name: &str) -> EffectiveClaim {
        let claim = Claim::new(ClaimKind::Command);
        EffectiveClaim { name: name.to_owned(), field: name.to_owned(), claim, findings: None }
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
    fn the_level_depends_on_verdict_and_requirements() {
        use Level::{Error, Note, Pass, Warning};
        use Verdict::{Refuted, Stale, Unverifiable, Verified};
        for (verdict, alone, required, other_required) in [
            (Verified, Pass, Pass, Pass),
            (Refuted, Error, Error, Warning),
            (Stale, Warning, Error, Warning),
            (Unverifiable, Note, Error, Note),
        ] {
            for (names, level) in
                [(&[][..], alone), (&["tests"], required), (&["files"], other_required)]
            {
                let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
                let claims = vec![report("tests", verdict), report("files", Verified)];
                let gated = gate(claims, &[declared("tests"), declared("files")], &names);
                assert_eq!(gated.made[0].level(), level, "{verdict:?}, required {names:?}");
            }
        }
    }

    #[test]
    fn what_the_contract_requires_must_be_verified_whatever_the_user_requires() {
        for (verdict, counts) in [
            (Verdict::Verified, false),
            (Verdict::Refuted, true),
            (Verdict::Stale, true),
            (Verdict::Unverifiable, true),
        ] {
            for names in [&[][..], &["files".to_owned()]] {
                let claim =
                    ClaimReport { policy: ClaimPolicy::Require, ..report("tests", verdict) };
                let gated = gate(vec![claim], &[declared("tests")], names);
                assert_eq!(gated.made[0].counts, counts, "{verdict:?}, required {names:?}");
            }
        }
    }

    #[test]
    fn a_file_in_another_language_is_named_and_does_not_fail() {
        let unread = || Unread { file: Some("big.py".into()), reason: "too long".to_owned() };
        let unknown =
            UnfinishedWork { unknown: vec!["Makefile".into()], ..UnfinishedWork::default() };
        let both = UnfinishedWork { unread: vec![unread()], ..unknown.clone() };
        for (work, fails, named) in [
            (UnfinishedWork::default(), false, &[][..]),
            (unknown, false, &[NO_LANGUAGE]),
            (both, true, &["too long", NO_LANGUAGE]),
        ] {
            let gated = GatedWork::from(work);
            assert_eq!(gated.fails(), fails, "{gated:?}");
            let reasons: Vec<&str> =
                gated.not_examined.iter().map(|file| file.reason.as_str()).collect();
            assert_eq!(reasons, named);
        }
    }

    #[test]
    fn a_required_claim_that_is_not_made_has_no_verdict() {
        let of_contract = |name: &str| {
            let mut declared = declared(name);
            declared.claim.policy = ClaimPolicy::Require;
            declared
        };
        let all = [declared("tests"), declared("files"), of_contract("commit")];
        for (required, named) in [
            (&[][..], &[("commit", false)][..]),
            (&["tests"], &[("tests", true), ("commit", false)]),
            (&["commit"], &[("commit", true)]),
        ] {
            let required: Vec<String> = required.iter().map(|name| (*name).to_owned()).collect();
            let gated = gate(Vec::new(), &all, &required);
            let found: Vec<(&str, bool)> = gated
                .not_made
                .iter()
                .map(|missing| (missing.claim.as_str(), missing.counts))
                .collect();
            assert_eq!(found, named, "required {required:?}");
            assert_eq!(gated.fails(), !required.is_empty());
            assert_eq!(gated.totals(), Totals::default());
        }
        let made = gate(vec![report("commit", Verdict::Verified)], &all, &[]);
        assert!(made.not_made.is_empty() && !made.fails(), "{made:?}");
    }
}
