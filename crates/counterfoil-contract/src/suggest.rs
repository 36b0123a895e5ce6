//! Suggestions for misspelled names: "did you mean …?".

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_typos_are_near() {
        assert_eq!(nearest("APPROVED", ["approved", "rejected"]), Some("approved"));
        assert_eq!(nearest("fix_inf", ["fix_info", "checks"]), Some("fix_info"));
        assert_eq!(nearest("qa", ["execution-loop/qa", "x/y"]), Some("execution-loop/qa"));
        assert_eq!(nearest("zzz", ["approved"]), None);
    }
}
