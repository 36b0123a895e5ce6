//! Checks expressions and terms (literal or computed values).

use super::Checker;
use crate::ast::SpannedStr;
use crate::finding::Code;
use crate::workflow::Term;
use crate::yaml_tree::Node;
use counterfoil_contract::expr::{Expression, Scope, Type, assignable};
use serde_json::Value;

impl<'n> Checker<'n> {
    /// Compiles an expression, and reports its problems with their positions.
    pub(super) fn expression(&mut self, name: SpannedStr<'n>, scope: &Scope) -> Option<Expression> {
        match Expression::compile(name.text, scope) {
            Ok(expression) => Some(expression),
            Err(problems) => {
                for problem in problems {
                    let part = (problem.start, problem.end);
                    self.reader.report_part(
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

    /// A term of a type: a string is an expression, any other value is a literal.
    pub(super) fn term(&mut self, node: &'n Node, scope: &Scope, ty: &Type) -> Option<Term> {
        let Some(text) = node.text() else { return self.literal(node, ty).map(Term::Literal) };
        if let Some(read) = nullable_read(text, scope, ty) {
            return Some(Term::Computed(read));
        }
        let looks_like_literal =
            text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                && *ty != Type::Any
                && crate::value::fits(&Value::String(text.to_owned()), ty).is_ok();
        let quote_hint =
            || format!("a string is an expression here; for the literal text write \"'{text}'\"");
        if looks_like_literal && let Err(problems) = Expression::compile(text, scope) {
            let message =
                problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
            self.report(Code::BadExpression, node, message, quote_hint());
            return None;
        }
        let expression = self.expression(SpannedStr { text, node }, scope)?;
        // `Any` accepts every value.
        if *ty != Type::Any
            && let Err(why) = assignable(expression.ty(), ty)
        {
            let message = format!("expected {ty}: {why}");
            let hint = if looks_like_literal {
                quote_hint()
            } else {
                "use a value of that type".to_owned()
            };
            self.report(Code::WrongType, node, message, hint);
            return None;
        }
        Some(Term::Computed(expression))
    }
}

/// Reads a field that may be missing as null, if the type accepts null: `fix_info: result.fix_info`
/// needs no guard if the variable is optional.
fn nullable_read(text: &str, scope: &Scope, ty: &Type) -> Option<Expression> {
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
