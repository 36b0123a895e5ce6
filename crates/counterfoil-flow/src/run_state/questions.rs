//! Open questions: validation of answers, and the result of a step from its answers.

use super::{Phase, RunState};
use crate::workflow::{Form, words_field};
use counterfoil_contract::text::list_values;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An open question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The frame that asked.
    pub frame: String,
    /// The name, unique among questions that are asked together.
    pub name: String,
    /// The text of the question.
    pub question: String,
    /// The form that an answer must have.
    pub form: Form,
    /// Whether it is cancelled when all other questions are answered.
    pub optional: bool,
    /// The answer, while other questions of the frame are open.
    pub answer: Option<String>,
    /// Its place among the questions in the order in which they were asked. Those that an earlier
    /// version recorded have none.
    #[serde(default)]
    pub position: u64,
}

impl RunState {
    /// The unanswered questions with their ids, in the order in which they were asked.
    pub fn open_questions(&self) -> impl Iterator<Item = (&String, &OpenQuestion)> {
        let all = self.questions.iter();
        let mut open: Vec<_> = all.filter(|(_, question)| question.answer.is_none()).collect();
        open.sort_by_key(|(_, question)| question.position);
        open.into_iter()
    }

    /// Validates an answer to a question.
    pub fn check_answer(&self, question: &str, answer: &str) -> Result<(), AnswerError> {
        let Some(open) = self.questions.get(question).filter(|question| question.answer.is_none())
        else {
            let open = self.open_questions().map(|(id, _)| id.clone()).collect();
            return Err(AnswerError::NotOpen { question: question.to_owned(), open });
        };
        let wrong =
            |expected: String| Err(AnswerError::Invalid { answer: answer.to_owned(), expected });
        match &open.form {
            form @ Form::Choices(_) if form.split_words(answer).is_some() => Ok(()),
            Form::Choices(choices) => {
                let near = counterfoil_contract::suggest::did_you_mean(
                    answer,
                    choices.iter().map(String::as_str),
                );
                let near = near.map(|near| format!("; {near}")).unwrap_or_default();
                wrong(format!("one of {}{near}", list_values(choices)))
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
            // Only optional questions are left: `decide` cancels them.
            self.ready.insert(frame.to_owned());
            return;
        }
        self.finish_questions(frame);
    }

    pub(super) fn cancelled(&mut self, frame: &str, cancelled: &[String]) {
        for id in cancelled {
            if let Some(question) = self.questions.get_mut(id) {
                question.answer = None;
            }
        }
        self.finish_questions(frame);
    }

    fn finish_questions(&mut self, frame: &str) {
        let (mine, rest): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.questions)
            .into_iter()
            .partition(|(_, question)| question.frame == frame);
        self.questions = rest;
        let mut answers = Map::new();
        for question in mine.into_values() {
            let split = question.answer.as_deref().and_then(|text| question.form.split_words(text));
            let (answer, words) = match split {
                Some((choice, words)) => (Some(choice.to_owned()), words.map(str::to_owned)),
                None => (question.answer.clone(), None),
            };
            if let Some(words) = words {
                answers.entry(words_field(&question.name)).or_insert(Value::String(words));
            }
            answers.insert(question.name, answer.map_or(Value::Null, Value::String));
        }
        self.phase(frame, Phase::Resulted(Value::Object(answers)));
    }
}

/// The reason why an answer is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The question is not open.
    #[error("question '{question}' is not open{}", open_list(open))]
    NotOpen {
        /// The question.
        question: String,
        /// The open questions.
        open: Vec<String>,
    },
    /// The name is a part of the ids of several open questions.
    #[error("'{question}' may be one of several questions: {}; write more of its id", matching.join(", "))]
    Ambiguous {
        /// The name.
        question: String,
        /// The questions that it may be.
        matching: Vec<String>,
    },
    /// The answer does not have the form of the question.
    #[error("'{answer}' is not a valid answer: expected {expected}")]
    Invalid {
        /// The answer.
        answer: String,
        /// The expected form.
        expected: String,
    },
}

fn open_list(open: &[String]) -> String {
    if open.is_empty() {
        "; no question is open".to_owned()
    } else {
        format!("; open: {}", open.join(", "))
    }
}
