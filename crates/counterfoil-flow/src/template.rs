//! The texts of a workflow with values in them: prompts, questions, arguments, paths. A template is
//! checked against the types of its variables before anything runs, so that a name or a field that
//! does not exist is found then.
//!
//! The language is Jinja's, as `minijinja` reads it, without anything that reaches outside of the
//! one text. What is optional and missing and what is null are one thing to a template: absent. `{%
//! if x %}`, `x is defined`, `x is not none` and `x | default(…)` all guard against both.

mod calls;
mod check;
mod expressions;
mod filters;
mod scope;
mod shape;
mod syntax;
mod tree;
mod values;
mod vocabulary;

use counterfoil_contract::Type;
use minijinja::{Environment, Error, ErrorKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "template";
/// The steps a template may take: enough for long lists, too few to keep anybody waiting.
const FUEL: u64 = 5_000_000;

/// A text with typed variables in it, compiled.
#[derive(Clone, Debug)]
pub struct Template {
    inner: Arc<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    source: String,
    environment: Environment<'static>,
    reads: Vec<String>,
}

/// One thing wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateProblem {
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty if the message says it all.
    pub hint: String,
    /// The first byte of the place in the source.
    pub start: usize,
    /// One behind the last byte.
    pub end: usize,
}

impl TemplateProblem {
    fn new(message: impl Into<String>, hint: impl Into<String>, start: usize, end: usize) -> Self {
        Self { message: message.into(), hint: hint.into(), start, end: end.max(start) }
    }
}

impl Template {
    /// Reads a template; what is wrong with its syntax comes back with the place.
    pub fn compile(source: &str) -> Result<Self, Vec<TemplateProblem>> {
        let tree = syntax::read(source)?;
        let mut environment = values::environment();
        environment.set_fuel(Some(tree::fuel(&tree, FUEL)));
        let runs = tree::softened(source, &tree);
        drop(tree);
        let refused = |error: Error| {
            let message = error.detail().unwrap_or("the template does not compile").to_owned();
            vec![TemplateProblem::new(message, "", 0, source.len())]
        };
        environment.add_template_owned(NAME, runs).map_err(refused)?;
        let unknown = environment.get_template(NAME).map_err(refused)?.undeclared_variables(false);
        let mut reads: Vec<String> = unknown
            .into_iter()
            .filter(|name| !vocabulary::is_function(name) && name != "loop")
            .collect();
        reads.sort_unstable();
        Ok(Self { inner: Arc::new(Compiled { source: source.to_owned(), environment, reads }) })
    }

    /// Everything wrong with the names and fields it reads, given the types of the variables; of
    /// very much, the first hundred.
    pub fn check(&self, variables: &BTreeMap<String, Type>) -> Vec<TemplateProblem> {
        // It parsed when it was compiled.
        syntax::tree(&self.inner.source)
            .map_or_else(Vec::new, |tree| check::check(&tree, variables))
    }

    /// Fills in values. The work and the text are bounded; an error says in words what went wrong.
    pub fn render(&self, variables: &BTreeMap<String, Value>) -> Result<String, String> {
        let values: BTreeMap<&str, minijinja::Value> =
            variables.iter().map(|(name, value)| (name.as_str(), values::data(value))).collect();
        let environment = &self.inner.environment;
        let in_words = |error: Error| in_words(&error, environment.fuel().unwrap_or(FUEL));
        let template = environment.get_template(NAME).map_err(in_words)?;
        let mut page = values::Page::default();
        let context = minijinja::Value::from(values);
        template.render_captured_to(context, &mut page).map_err(in_words)?;
        String::from_utf8(page.text).map_err(|error| error.to_string())
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// The variables it reads from outside, sorted.
    pub fn reads(&self) -> Vec<String> {
        self.inner.reads.clone()
    }
}

fn in_words(error: &Error, fuel: u64) -> String {
    let line = error.line().map_or_else(String::new, |line| format!(" (line {line})"));
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => {
            format!("the template takes more than {fuel} steps{line}: loop over fewer items")
        }
        (ErrorKind::WriteFailure, Some(detail)) if detail.ends_with(" MiB") => {
            format!("{detail}{line}: pass less into the template")
        }
        (ErrorKind::WriteFailure, _) => {
            format!(
                "the template writes more than {} MiB: pass less into it",
                values::LONGEST >> 20
            )
        }
        (ErrorKind::UndefinedError, _) => {
            format!(
                "the template reads a value that is not there{line}: guard it with {{% if … %}} or default(…)"
            )
        }
        (kind, Some(detail)) => format!("{kind}: {detail}{line}"),
        (kind, None) => format!("{kind}{line}"),
    }
}
