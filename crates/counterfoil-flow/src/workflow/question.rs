//! Questions for people, and the form of their answers.

use crate::template::Template;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question to a person.
#[derive(Debug)]
pub struct Question {
    /// The name, unique among questions that are asked together.
    pub name: String,
    /// The text of the question.
    pub text: Template,
    /// The form that an answer must have.
    pub form: Form,
    /// Whether it is cancelled when all other questions are answered.
    pub optional: bool,
}

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One of these texts.
    Choices(Vec<String>),
    /// A text that matches this regular expression.
    Pattern(String),
    /// Any text that is not blank.
    Text,
}

impl Form {
    /// The choice of an answer, and the words after it, as in `retry: with the other library`. None
    /// if there are no choices, or the answer is none of them.
    pub fn split_words<'a>(&'a self, answer: &'a str) -> Option<(&'a str, Option<&'a str>)> {
        let Self::Choices(choices) = self else { return None };
        if let Some(choice) = choices.iter().find(|choice| *choice == answer) {
            return Some((choice, None));
        }
        let with_words = |choice: &'a String| {
            let words = answer.strip_prefix(choice.as_str())?.strip_prefix(':')?.trim();
            Some((choice.as_str(), Some(words).filter(|words| !words.is_empty())))
        };
        choices.iter().filter_map(with_words).max_by_key(|(choice, _)| choice.len())
    }
}

/// The field of a result with the words that follow the choice of a question.
pub(crate) fn words_field(question: &str) -> String {
    match question {
        "answer" => "words".to_owned(),
        name => format!("{name}_words"),
    }
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn words_follow_a_choice() {
        let form = Form::Choices(["retry", "retry: later", "skip"].map(str::to_owned).to_vec());
        for (answer, expected) in [
            ("retry", Some(("retry", None))),
            ("retry: with care", Some(("retry", Some("with care")))),
            ("retry:\n  a\n  b: c\n", Some(("retry", Some("a\n  b: c")))),
            ("skip:", Some(("skip", None))),
            ("retry: later", Some(("retry: later", None))),
            ("retry: later: tonight", Some(("retry: later", Some("tonight")))),
            ("retrying: no", None),
            ("Retry", None),
            ("", None),
        ] {
            assert_eq!(form.split_words(answer), expected, "{answer}");
        }
    }
}
