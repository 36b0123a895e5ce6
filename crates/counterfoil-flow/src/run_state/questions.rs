//! Questions: which are open, what they take for an answer, and what the answers come to.

use super::{Phase, RunState};
use crate::workflow::Form;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The frame that asked.
    pub frame: String,
    /// Its name among those asked together.
    pub name: String,
    /// The words.
    pub question: String,
    /// What an answer must be.
    pub form: Form,
    /// Whether it is cancelled once all others are answered.
    pub optional: bool,
    /// The answer, while others are open.
    pub answer: Option<String>,
}

impl RunState {
    /// The questions that wait for an answer, by id.
    pub fn open_questions(&self) -> impl Iterator<Item = (&String, &OpenQuestion)> {
        self.questions.iter().filter(|(_, question)| question.answer.is_none())
    }

    /// Whether an answer can be taken; the error says why not.
    pub fn check_answer(&self, question: &str, answer: &str) -> Result<(), AnswerError> {
        let Some(open) = self.questions.get(question).filter(|question| question.answer.is_none())
        else {
            let open = self.open_questions().map(|(id, _)| id.clone()).collect();
            return Err(AnswerError::NotOpen { question: question.to_owned(), open });
        };
        let wrong =
            |expected: String| Err(AnswerError::Invalid { answer: answer.to_owned(), expected });
        match &open.form {
            Form::Choices(choices) if choices.iter().any(|choice| choice == answer) => Ok(()),
            Form::Choices(choices) => {
                let near =
                    counterfoil_contract::did_you_mean(answer, choices.iter().map(String::as_str));
                let near = near.map(|near| format!("; {near}")).unwrap_or_default();
                wrong(format!("one of {}{near}", choices.join(", ")))
            }
            Form::Pattern(pattern) => match regex::Regex::new(&format!("^(?:{pattern})$")) {
                Ok(regex) if regex.is_match(answer) => Ok(()),
                _ => wrong(format!("a text of the form {pattern}")),
            },
            Form::Text if answer.trim().is_empty() => wrong("a text".to_owned()),
            Form::Text => Ok(()),
        }
    }

    pub(super) fn answered(&mut self, frame: &str) {
        let mut mine = self.questions.values().filter(|question| question.frame == frame);
        if mine.clone().any(|question| question.answer.is_none() && !question.optional) {
            return;
        }
        if mine.any(|question| question.answer.is_none()) {
            // Only optional ones are left: deciding cancels them.
            self.ready.insert(frame.to_owned());
            return;
        }
        self.resulted_by_answers(frame);
    }

    pub(super) fn cancelled(&mut self, frame: &str, cancelled: &[String]) {
        for id in cancelled {
            if let Some(question) = self.questions.get_mut(id) {
                question.answer = None;
            }
        }
        self.resulted_by_answers(frame);
    }

    fn resulted_by_answers(&mut self, frame: &str) {
        let (mine, rest): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.questions)
            .into_iter()
            .partition(|(_, question)| question.frame == frame);
        self.questions = rest;
        let answers = mine
            .into_values()
            .map(|question| (question.name, question.answer.map_or(Value::Null, Value::String)))
            .collect();
        self.phase(frame, Phase::Resulted(Value::Object(answers)));
    }
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The question is not open.
    #[error("question '{question}' is not open{}", listed(open))]
    NotOpen {
        /// The question.
        question: String,
        /// Those that are.
        open: Vec<String>,
    },
    /// The answer is not one it can take.
    #[error("'{answer}' is not an answer to it: expected {expected}")]
    Invalid {
        /// The answer.
        answer: String,
        /// What it must be.
        expected: String,
    },
}

fn listed(open: &[String]) -> String {
    if open.is_empty() { "; none is".to_owned() } else { format!("; open: {}", open.join(", ")) }
}
