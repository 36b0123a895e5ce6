//! What people answered in a run.

use crate::event_text::decided_by;
use counterfoil_flow::Event;
use std::collections::BTreeMap;

/// An answer that was given to a question of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The question's id.
    pub id: String,
    /// The text of the question.
    pub question: String,
    /// The answer, as it was given.
    pub answer: String,
    /// Who gave it, and from where.
    pub by: String,
    /// The time, in milliseconds since 1970.
    pub at: i64,
}

/// Collects the answers of a run from its events.
#[derive(Debug, Default)]
pub(crate) struct GivenAnswers {
    /// The texts of the questions that are open, by id.
    open: BTreeMap<String, String>,
    given: Vec<GivenAnswer>,
}

impl GivenAnswers {
    /// Adds an event.
    pub(crate) fn on_event(&mut self, event: &Event, at: i64) {
        match event {
            Event::Asked { questions, .. } => {
                let texts =
                    questions.iter().map(|asked| (asked.id.clone(), asked.question.clone()));
                self.open.extend(texts);
            }
            Event::Answered { question, answer, by, from } => self.given.push(GivenAnswer {
                id: question.clone(),
                question: self.open.remove(question).unwrap_or_default(),
                answer: answer.clone(),
                by: decided_by(by, from.as_deref()),
                at,
            }),
            Event::QuestionsCancelled { questions, .. } => {
                for question in questions {
                    self.open.remove(question);
                }
            }
            _ => {}
        }
    }

    /// The answers, in the order in which they were given.
    pub(crate) fn given(&self) -> &[GivenAnswer] {
        &self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_flow::{AskedQuestion, Form};

    fn asked(id: &str, question: &str) -> Event {
        let question = AskedQuestion {
            id: id.to_owned(),
            name: "ok".to_owned(),
            question: question.to_owned(),
            form: Form::Text,
            optional: false,
        };
        Event::Asked { frame: String::new(), questions: vec![question] }
    }

    #[test]
    fn an_answer_is_kept_with_its_question() {
        let mut answers = GivenAnswers::default();
        answers.on_event(&asked("approve", "Release it?"), 1);
        assert!(answers.given().is_empty());
        let answer = Event::Answered {
            question: "approve".to_owned(),
            answer: "no: not on a Friday".to_owned(),
            by: "ada".to_owned(),
            from: None,
        };
        answers.on_event(&answer, 2);
        let expected = GivenAnswer {
            id: "approve".to_owned(),
            question: "Release it?".to_owned(),
            answer: "no: not on a Friday".to_owned(),
            by: "ada".to_owned(),
            at: 2,
        };
        assert_eq!(answers.given(), [expected]);
    }
}
