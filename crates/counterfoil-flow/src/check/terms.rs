//! Expressions and the values they stand for.

use super::Checker;
use crate::draft::Name;
use crate::finding::Code;
use crate::tree::Node;
use crate::workflow::Term;
use counterfoil_contract::{Expression, Scope, Type, assignable};
use serde_json::Value;

impl<'n> Checker<'n> {
    /// An expression, its problems reported where they stand.
    pub(super) fn expression(&mut self, name: Name<'n>, scope: &Scope) -> Option<Expression> {
        match Expression::compile(name.text, scope) {
            Ok(expression) => Some(expression),
            Err(problems) => {
                for problem in problems {
                    let part = (problem.start, problem.end);
                    self.reader.report_inside(
                        Code::BadExpression,
                        name.node,
                        part,
                        &problem.message,
                        &problem.hint,
                    );
                }
                None
            }
        }
    }

    /// A value written down (anything but a text) or computed (a text), of a type.
    pub(super) fn term(&mut self, node: &'n Node, scope: &Scope, ty: &Type) -> Option<Term> {
        let Some(text) = node.text() else { return self.literal(node, ty).map(Term::Literal) };
        if let Some(read) = soft_read(text, scope, ty) {
            return Some(Term::Computed(read));
        }
        let is_meant_as_words =
            text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                && *ty != Type::Any
                && crate::value::fits(&Value::String(text.to_owned()), ty).is_ok();
        let words =
            || format!("a text is an expression here; for the words themselves write \"'{text}'\"");
        if is_meant_as_words && let Err(problems) = Expression::compile(text, scope) {
            let message =
                problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
            self.report(Code::BadExpression, node, message, words());
            return None;
        }
        let expression = self.expression(Name { text, node }, scope)?;
        // A type that says nothing takes everything.
        if *ty != Type::Any
            && let Err(why) = assignable(expression.ty(), ty)
        {
            let message = format!("expected {ty}: {why}");
            let hint =
                if is_meant_as_words { words() } else { "assign a value of that type".to_owned() };
            self.report(Code::WrongType, node, message, hint);
            return None;
        }
        Some(Term::Computed(expression))
    }
}

/// A field that may be missing, read as null where null will do: `fix_info: result.fix_info` needs
/// no guard if the variable is optional.
fn soft_read(text: &str, scope: &Scope, ty: &Type) -> Option<Expression> {
    let is_path = text.contains('.')
        && text.split('.').all(|part| {
            part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
    if !is_path || !ty.is_nullable() || Expression::compile(text, scope).is_ok() {
        return None;
    }
    let read = Expression::compile(&format!("has({text}) ? {text} : null"), scope).ok()?;
    (*ty == Type::Any || assignable(read.ty(), ty).is_ok()).then_some(read)
}
