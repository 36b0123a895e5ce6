//! Templates: prompts, questions, command arguments, paths and artifacts. A template is checked
//! against the types of its variables before a run starts, so that an unknown name or field is an
//! error of the workflow.
//!
//! The language is the `minijinja` dialect of Jinja, without statements that refer to other
//! templates. A template treats a missing optional field and a null value alike, as absent.
//! `{% if x %}`, `x is defined`, `x is not none` and `x | default(…)` all guard against both.

mod calls;
mod check;
mod expressions;
mod filters;
mod runtime;
mod scope;
mod shape;
mod signatures;
mod syntax;
mod traverse;

use counterfoil_contract::expr::Type;
use minijinja::{Environment, Error, ErrorKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const NAME: &str = "template";
/// The maximum number of instructions that rendering may execute: enough for long lists, and done
/// within seconds.
const FUEL: u64 = 5_000_000;

/// The maximum length of the texts that a template concatenates with `~`: the texts that it reads,
/// as often as it concatenates.
const MAX_CONCATENATED_BYTES: usize = 512 << 20;

/// The length of the texts in a value.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + text_bytes(value)).sum()
        }
        _ => 0,
    }
}

/// A compiled template.
#[derive(Clone, Debug)]
pub struct Template {
    inner: Arc<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    source: String,
    environment: Environment<'static>,
    reads: Vec<String>,
    /// The most values that one text can be concatenated of.
    concatenated: usize,
}

/// A problem in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateProblem {
    /// The description of the problem.
    pub message: String,
    /// How to fix it; empty if the message is enough.
    pub hint: String,
    /// The first byte of its range in the source.
    pub start: usize,
    /// The end of the range, exclusive.
    pub end: usize,
}

impl TemplateProblem {
    fn new(message: impl Into<String>, hint: impl Into<String>, start: usize, end: usize) -> Self {
        Self { message: message.into(), hint: hint.into(), start, end: end.max(start) }
    }
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    ///
    /// Returns the syntax errors with their positions.
    pub fn compile(source: &str) -> Result<Self, Vec<TemplateProblem>> {
        let tree = syntax::parse_checked(source)?;
        let mut environment = runtime::environment();
        environment.set_fuel(Some(traverse::fuel(&tree, FUEL)));
        let lenient = traverse::with_lenient_chains(source, &tree);
        let sliced = traverse::sliced_names(&tree);
        let concatenated = traverse::concatenations(&tree) + 1;
        drop(tree);
        let compile_error = |error: Error| {
            let message = error.detail().unwrap_or("the template does not compile").to_owned();
            vec![TemplateProblem::new(message, "", 0, source.len())]
        };
        environment.add_template_owned(NAME, lenient).map_err(compile_error)?;
        let unknown =
            environment.get_template(NAME).map_err(compile_error)?.undeclared_variables(false);
        let mut reads: Vec<String> = unknown
            .into_iter()
            .chain(sliced)
            .filter(|name| !signatures::is_function(name) && name != "loop")
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let source = source.to_owned();
        Ok(Self { inner: Arc::new(Compiled { source, environment, reads, concatenated }) })
    }

    /// The problems with the names and fields that the template reads, given the types of the
    /// variables; at most a hundred.
    pub fn check(&self, variables: &BTreeMap<String, Type>) -> Vec<TemplateProblem> {
        // The source parsed when the template was compiled.
        syntax::tree(&self.inner.source)
            .map_or_else(Vec::new, |tree| check::check(&tree, variables))
    }

    /// Renders the template. The work and the length of the text are bounded.
    ///
    /// # Errors
    ///
    /// Returns the reason if a value is absent or of the wrong kind, or if a bound is exceeded.
    pub fn render(&self, variables: &BTreeMap<String, Value>) -> Result<String, RenderError> {
        let read = variables.iter().filter(|(name, _)| self.inner.reads.contains(name));
        let bytes: usize = read.map(|(_, value)| text_bytes(value)).sum();
        let concatenated = self.inner.concatenated.min(expressions::MAX_CONCATENATED);
        if concatenated > 1 && bytes.saturating_mul(concatenated) > MAX_CONCATENATED_BYTES {
            let most = MAX_CONCATENATED_BYTES >> 20;
            let detail = format!("what the template concatenates may be longer than {most} MiB");
            return Err(RenderError::ValueTooLong { detail, at: Line(None) });
        }
        let values: BTreeMap<&str, minijinja::Value> =
            variables.iter().map(|(name, value)| (name.as_str(), runtime::data(value))).collect();
        let environment = &self.inner.environment;
        let fuel = environment.fuel().unwrap_or(FUEL);
        let template =
            environment.get_template(NAME).map_err(|error| RenderError::new(&error, fuel))?;
        let mut output = runtime::BoundedOutput::default();
        let context = minijinja::Value::from(values);
        template
            .render_captured_to(context, &mut output)
            .map_err(|error| RenderError::new(&error, fuel))?;
        String::from_utf8(output.text).map_err(|error| RenderError::Failed(error.to_string()))
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// The names of the variables that the template reads, sorted.
    pub fn reads(&self) -> Vec<String> {
        self.inner.reads.clone()
    }
}

/// The reason why rendering failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Rendering took too many instructions.
    #[error("the template takes more than {fuel} steps{at}: loop over fewer items")]
    OutOfFuel {
        /// The maximum number of instructions.
        fuel: u64,
        /// The line, for the message.
        at: Line,
    },
    /// A value inside the template is too long.
    #[error("{detail}{at}: pass less into the template")]
    ValueTooLong {
        /// The value and its maximum length.
        detail: String,
        /// The line, for the message.
        at: Line,
    },
    /// The rendered text is too long.
    #[error("the template writes more than {} MiB: pass less into it", runtime::MAX_OUTPUT_BYTES >> 20)]
    OutputTooLong,
    /// The template reads an absent value.
    #[error(
        "the template reads a value that is absent{at}: guard it with {{% if … %}} or default(…)"
    )]
    AbsentValue {
        /// The line, for the message.
        at: Line,
    },
    /// Any other failure, such as an invalid argument of a filter.
    #[error("{0}")]
    Failed(String),
}

/// The line of the template in which rendering failed, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line(pub Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}

impl RenderError {
    fn new(error: &Error, fuel: u64) -> Self {
        let at = Line(error.line());
        match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => Self::OutOfFuel { fuel, at },
            (ErrorKind::WriteFailure, Some(detail)) if detail.ends_with(" MiB") => {
                Self::ValueTooLong { detail: detail.to_owned(), at }
            }
            (ErrorKind::WriteFailure, _) => Self::OutputTooLong,
            (ErrorKind::UndefinedError, _) => Self::AbsentValue { at },
            (kind, Some(detail)) => Self::Failed(format!("{kind}: {detail}{at}")),
            (kind, None) => Self::Failed(format!("{kind}{at}")),
        }
    }
}
