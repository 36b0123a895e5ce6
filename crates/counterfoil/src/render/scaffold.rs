//! The output of `counterfoil new`.

use super::text::shell_quote;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy};

/// Which files were written, what will be verified, whether the workflow ends as done whatever the
/// result says, and the commands that use them.
pub(crate) fn written(
    folder: &str,
    files: &[String],
    workflow: &str,
    contract: &Contract,
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
        verified(contract)
    )
}

/// What the claims of the contract are compared with.
fn verified(contract: &Contract) -> String {
    let claims = contract.effective_claims();
    let claims = claims.iter().filter(|claim| claim.claim.policy != ClaimPolicy::Ignore);
    let texts: Vec<String> = claims
        .map(|claim| match (claim.claim.kind, &claim.claim.check) {
            (ClaimKind::FilesChanged, _) => format!("{} (by the work tree)", claim.name),
            (ClaimKind::Commit, _) => format!("{} (by the repository)", claim.name),
            (_, Some(check)) => {
                format!("{} (by the check '{check}' in counterfoil.toml)", claim.name)
            }
            _ => claim.name.clone(),
        })
        .collect();
    if texts.is_empty() {
        return "note: no field is verified, only its form; a contract says what is with `claims`\n"
            .to_owned();
    }
    format!("note: verified after each reply: {}\n", texts.join(", "))
}
