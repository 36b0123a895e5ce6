//! The command lines that do what a server does not do. People paste them into a terminal.

use crate::folders::RunPlace;
use counterfoil_contract::text::escape_control;

/// The most choices that have a command line each.
const MAX_CHOICES: usize = 8;

/// Resumes a run.
pub(crate) fn resume(place: &RunPlace) -> String {
    command(place, &["resume", place.run.as_str()])
}

/// Tries a run again that has ended. `needs_more` is the part of its budget that is used up; empty
/// if none is.
pub(crate) fn reopen(place: &RunPlace, needs_more: &str) -> String {
    let limit = format!("--max-{needs_more}=LIMIT");
    let mut words = vec!["resume", place.run.as_str(), "--because", "REASON"];
    if !needs_more.is_empty() {
        words.push(limit.as_str());
    }
    command(place, &words)
}

/// Tries a run again that has ended, with a higher maximum of a limit of its workflow.
pub(crate) fn reopen_with_limit(place: &RunPlace, limit: &str) -> String {
    let limit = format!("{limit}=N");
    command(place, &["resume", place.run.as_str(), "--because", "REASON", "--limit", &limit])
}

/// Cancels a run.
pub(crate) fn cancel(place: &RunPlace) -> String {
    command(place, &["cancel", place.run.as_str()])
}

/// Answers a question of a run: a command line for each choice, or one if there are none or many.
pub(crate) fn answers(place: &RunPlace, question: &str, choices: &[String]) -> Vec<String> {
    let answer = |answer: &str| command(place, &["answer", place.run.as_str(), question, answer]);
    if choices.is_empty() || choices.len() > MAX_CHOICES {
        return vec![answer("ANSWER")];
    }
    choices.iter().map(|choice| answer(choice)).collect()
}

/// A command line for the state folder of a run, wherever it is typed.
fn command(place: &RunPlace, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|text| word(text)).collect();
    let state = place.engine.journal().folder().to_string_lossy();
    format!("counterfoil {} --state {}", words.join(" "), word(&state))
}

/// A word of a command line, in quotes if a shell would read it in another way.
fn word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:=@%+,".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", escape_control(text).replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_word_for_a_shell() {
        for (text, expected) in [
            ("0198-ab", "0198-ab"),
            ("/srv/a.b/state", "/srv/a.b/state"),
            ("", "''"),
            ("my runs", "'my runs'"),
            ("ok#1", "'ok#1'"),
            ("it's $HOME", "'it'\\''s $HOME'"),
            ("~/x", "'~/x'"),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
