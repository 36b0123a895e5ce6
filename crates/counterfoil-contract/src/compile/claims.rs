//! Checks the claims of a contract: their paths, and the keys that their kind allows.

#[cfg(feature = "rules")]
use super::rules::underline;
use crate::claim::{Claim, ClaimKind, ClaimMatch, Figure};
use crate::code::Code;
use crate::definition::{Definition, check_id};
use crate::expr::Type;
#[cfg(feature = "rules")]
use crate::expr::{self, Scope};
use crate::problem::Problem;
use crate::suggest::did_you_mean;
#[cfg(feature = "rules")]
use crate::text::article;
use std::collections::BTreeMap;

/// A condition on a claim.
type Fits = fn(&Claim) -> bool;

/// The keys that only some kinds of claim have: the key, whether it is set, whether the kind has it,
/// and the kinds that have it.
const KEYS: [(&str, Fits, Fits, &str); 10] = [
    (
        "run",
        |claim| claim.run.is_some(),
        runs,
        "a command claim, or a count with a figure of a test run",
    ),
    (
        "check",
        |claim| claim.check.is_some(),
        runs,
        "a command claim, or a count with a figure of a test run",
    ),
    ("of", |claim| claim.of.is_some(), is_count, "a count"),
    ("figure", |claim| claim.figure.is_some(), is_count, "a count"),
    (
        "report",
        |claim| claim.report.is_some(),
        runs,
        "a command claim, or a count with a figure of a test run",
    ),
    (
        "contract",
        |claim| claim.contract.is_some(),
        |claim| claim.kind == ClaimKind::Artifact,
        "an artifact",
    ),
    ("files", |claim| claim.files.is_some(), |claim| claim.kind == ClaimKind::Commit, "a commit"),
    (
        "when",
        |claim| claim.when.is_some(),
        |claim| matches!(claim.kind, ClaimKind::Command | ClaimKind::Complete),
        "a command claim, or a claim that work is complete",
    ),
    (
        "allow",
        |claim| !claim.allow.is_empty(),
        |claim| claim.kind == ClaimKind::Commands,
        "a claim on commands",
    ),
    ("match", |claim| claim.matching != ClaimMatch::Exact, is_files, "a claim on files"),
];

fn is_count(claim: &Claim) -> bool {
    claim.kind == ClaimKind::Count
}

fn is_files(claim: &Claim) -> bool {
    matches!(
        claim.kind,
        ClaimKind::FilesModified
            | ClaimKind::FilesAdded
            | ClaimKind::FilesDeleted
            | ClaimKind::FilesRenamed
            | ClaimKind::FilesChanged
    )
}

fn runs(claim: &Claim) -> bool {
    claim.kind == ClaimKind::Command || (is_count(claim) && is_test_run_figure(claim.figure))
}

fn is_test_run_figure(figure: Option<Figure>) -> bool {
    matches!(figure, Some(Figure::Total | Figure::Passed | Figure::Failed | Figure::Skipped))
}

/// Adds the problems of all claims of a contract.
pub(super) fn check(definition: &Definition, root: &Type, problems: &mut Vec<Problem>) {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for (field, claim) in &definition.claims {
        let mut wrong = |place: &str, what: String, hint: String| {
            problems.push(Problem::new(
                Code::BadClaim,
                &format!("claims.{field}{place}"),
                what,
                hint,
            ));
        };
        check_one(field, claim, root, &mut wrong);
        let name = Claim::name(field);
        if let Some(other) = names.insert(name.clone(), field) {
            let what = format!("'{other}' and '{field}' are both called `{name}` in guards");
            wrong("", what, "drop one of the two claims".to_owned());
        }
    }
}

fn check_one(field: &str, claim: &Claim, root: &Type, wrong: &mut dyn FnMut(&str, String, String)) {
    if matches!(claim.kind, ClaimKind::Protected | ClaimKind::TestsKept) {
        wrong(
            ".kind",
            "this claim is implied for every step".to_owned(),
            "remove it from the contract".to_owned(),
        );
    }
    if claim.kind == ClaimKind::Command && claim.run.is_none() == claim.check.is_none() {
        wrong(
            "",
            "a command claim names a command or a check, and not both".to_owned(),
            "add run: with a command line, or check: with the name of a check".to_owned(),
        );
    }
    if is_count(claim) && (claim.run.is_some() && claim.check.is_some()) {
        wrong(
            "",
            "a figure comes from a command or a check, not from both".to_owned(),
            "remove one of them".to_owned(),
        );
    }
    if claim.of.is_some() && claim.figure.is_some() {
        wrong(
            "",
            "a count is compared with a list or a figure, not both".to_owned(),
            "remove of: or figure:".to_owned(),
        );
    }
    if is_test_run_figure(claim.figure)
        && claim.report.is_none()
        && claim.run.is_none()
        && claim.check.is_none()
    {
        wrong(
            ".figure",
            "the figure of a test run needs a source".to_owned(),
            "add report: with a file, check: with the name of a check or run: with a command line"
                .to_owned(),
        );
    }
    for (key, is_set, fits, allowed_for) in KEYS {
        if is_set(claim) && !fits(claim) {
            wrong(
                &format!(".{key}"),
                format!("`{key}` is not allowed here: it is for {allowed_for}"),
                "remove it, or choose another kind".to_owned(),
            );
        }
    }
    if let Some(line) =
        claim.run.as_ref().filter(|line| line.trim().is_empty() || line.contains('\0'))
    {
        wrong(".run", format!("{line:?} is not a command"), "write a line for sh -c".to_owned());
    }
    if let Some(id) = &claim.contract {
        let bare = id.split_once('@').map_or(id.as_str(), |(id, _)| id);
        if let Err(message) = check_id(bare) {
            wrong(".contract", message, "write namespace/name, or namespace/name@1".to_owned());
        }
    }
    let names: Vec<&str> = root
        .object()
        .map(|object| object.fields.keys().map(String::as_str).collect())
        .unwrap_or_default();
    let paths =
        [("", Some(field)), (".of", claim.of.as_deref()), (".files", claim.files.as_deref())];
    for (place, path) in paths {
        if let Some(path) = path.filter(|path| !super::path_exists(path, root)) {
            wrong(
                place,
                format!("'{path}' is not a field of the schema"),
                did_you_mean(path, names.iter().copied())
                    .unwrap_or_else(|| "name a field of the schema".into()),
            );
        }
    }
    if let Some(when) = &claim.when {
        check_when(when, root, wrong);
    }
}

#[cfg(feature = "rules")]
fn check_when(when: &str, root: &Type, wrong: &mut dyn FnMut(&str, String, String)) {
    match expr::check(when, &Scope::for_variable("result", root.clone())) {
        Ok(checked) if checked.ty == Type::Bool || checked.ty == Type::Any => {}
        Ok(checked) => wrong(
            ".when",
            format!("`{when}` gives {}, not a boolean", article(&checked.ty.to_string())),
            "write a comparison, such as `x == 1`".to_owned(),
        ),
        Err(found) => {
            for problem in found {
                let what = format!("{}\n{}", problem.message, underline(when, &problem));
                wrong(".when", what, problem.hint);
            }
        }
    }
}

#[cfg(not(feature = "rules"))]
fn check_when(when: &str, _: &Type, wrong: &mut dyn FnMut(&str, String, String)) {
    wrong(
        ".when",
        format!("`{when}` cannot be evaluated: this build has no support for expressions"),
        "enable the feature `rules` of counterfoil-contract".to_owned(),
    );
}
