//! Suggestions: "did you mean …?" for a misspelled name, and what to add for a check that is missing.

/// A hint that names the known word most similar to `word`, if one is similar enough.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean '{near}'?"))
}

/// The known word most similar to `word`, if one is similar enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| {
            let other = candidate.to_lowercase();
            let tail = other.rsplit('/').next().unwrap_or(&other);
            let near = strsim::jaro_winkler(&lower, &other).max(strsim::jaro_winkler(&lower, tail));
            (near, candidate)
        })
        .filter(|(near, _)| *near > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// What to add to the configuration in `file` for a check that it does not have: a line of the table of
/// checks. Without a command, an ellipsis stands for it.
pub fn how_to_add_check(name: &str, command: Option<&str>, file: &str) -> String {
    format!("add `{}` to [checks] in {file}", check_line(name, command))
}

/// The line of the table of checks that configures a check: `test = "cargo test"`.
pub fn check_line(name: &str, command: Option<&str>) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // A string of JSON is one of TOML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let key =
        if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) };
    format!("{key} = {}", quoted(command.unwrap_or("…")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_a_check_is_in_the_syntax_of_the_file() {
        for (name, command, line) in [
            ("test", None, "test = \"…\""),
            ("type-check", Some("mypy ."), "type-check = \"mypy .\""),
            ("my test", Some("sh -c \"a\\b\""), r#""my test" = "sh -c \"a\\b\"""#),
        ] {
            assert_eq!(check_line(name, command), line);
        }
    }

    #[test]
    fn case_and_typos_are_near() {
        assert_eq!(nearest("APPROVED", ["approved", "rejected"]), Some("approved"));
        assert_eq!(nearest("fix_inf", ["fix_info", "checks"]), Some("fix_info"));
        assert_eq!(nearest("qa", ["execution-loop/qa", "x/y"]), Some("execution-loop/qa"));
        assert_eq!(nearest("zzz", ["approved"]), None);
    }
}
