//! The output of `counterfoil new`.

use super::text::shell_quote;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy};
use std::collections::BTreeSet;

/// Which files were written, what will be verified, whether the workflow ends as done whatever the
/// result says, and the commands that use them.
pub(crate) fn written(
    folder: &str,
    files: &[String],
    workflow: &str,
    contract: &Contract,
    checks: Option<&BTreeSet<&str>>,
    always_done: bool,
) -> String {
    let path = |file: &str| match folder {
        "" => file.to_owned(),
        folder => format!("{}/{file}", folder.trim_end_matches('/')),
    };
    let lines: String = files.iter().map(|file| format!("wrote {}\n", path(file))).collect();
    let main = shell_quote(&path(&format!("{workflow}.yaml")));
    let script = shell_quote(&format!("script:{}", path(&format!("{workflow}.script.yaml"))));
    let always_done = if always_done {
        "note: the workflow ends as done whatever the result says: add guards with `when`\n"
    } else {
        ""
    };
    format!(
        "{lines}{}{always_done}check: counterfoil workflow check {main}\n\
         try:   counterfoil run {main} --task \"Try it\" --agent {script}\n\
         run:   counterfoil run {main} --task TEXT --agent SPEC\n",
        verified(contract, checks)
    )
}

/// What the claims of the contract are compared with, and the checks that this needs and that the
/// project does not have.
fn verified(contract: &Contract, checks: Option<&BTreeSet<&str>>) -> String {
    let claims = contract.effective_claims();
    let claims = claims.iter().filter(|claim| claim.claim.policy != ClaimPolicy::Ignore);
    let (mut texts, mut missing) = (Vec::new(), Vec::new());
    for claim in claims {
        match (claim.claim.kind, &claim.claim.check) {
            (ClaimKind::FilesChanged, _) => {
                texts.push(format!("{} (by the work tree)", claim.name));
            }
            (ClaimKind::Commit, _) => texts.push(format!("{} (by the repository)", claim.name)),
            (_, Some(check)) if checks.is_some_and(|known| !known.contains(check.as_str())) => {
                missing.push(format!("{} (by the check '{check}')", claim.name));
            }
            (_, Some(check)) => {
                texts.push(format!("{} (by the check '{check}' in counterfoil.toml)", claim.name));
            }
            _ => texts.push(claim.name.clone()),
        }
    }
    let mut notes = String::new();
    if !texts.is_empty() {
        notes += &format!("note: verified after each reply: {}\n", texts.join(", "));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        notes += &format!("note: verified once counterfoil.toml has the check: {missing}\n");
    }
    if notes.is_empty() {
        notes +=
            "note: no field is verified, only its form; a contract says what is with `claims`\n";
    }
    notes
}
