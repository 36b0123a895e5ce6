//! The output of `counterfoil new`.

use super::text::shell_quote;

/// Which files were written, and the commands that use them.
pub(crate) fn written(folder: &str, files: &[String], workflow: &str) -> String {
    let path = |file: &str| match folder {
        "" => file.to_owned(),
        folder => format!("{}/{file}", folder.trim_end_matches('/')),
    };
    let lines: String = files.iter().map(|file| format!("wrote {}\n", path(file))).collect();
    let main = shell_quote(&path(&format!("{workflow}.yaml")));
    let script = shell_quote(&format!("script:{}", path(&format!("{workflow}.script.yaml"))));
    format!(
        "{lines}check: counterfoil workflow check {main}\n\
         try:   counterfoil run {main} --task \"Try it\" --agent {script}\n\
         run:   counterfoil run {main} --task TEXT --agent SPEC\n"
    )
}
