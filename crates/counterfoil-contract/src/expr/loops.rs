//! Type checks of `all`, `exists`, `exists_one`, `map` and `filter`. The parser expands these
//! macros to comprehensions of known shapes.

use super::assign::has_no_items;
use super::check::{Checker, Inferred, union_of};
use super::path::Path;
use super::scope::Scope;
use super::types::Type;
use cel::common::ast::{ComprehensionExpr, Expr as Ast, IdedExpr, LiteralValue, operators as op};

/// The macro that a comprehension was expanded from.
pub(super) enum Loop<'e> {
    /// `all`, `exists` or `exists_one`: tests a condition on each item.
    Test { name: &'static str, condition: &'e IdedExpr },
    /// `map` or `filter`: collects a value for each item that meets the condition.
    Collect { condition: Option<&'e IdedExpr>, value: &'e IdedExpr },
}

impl<'e> Loop<'e> {
    pub(super) fn from_comprehension(comprehension: &'e ComprehensionExpr) -> Option<Self> {
        let Ast::Call(step) = &comprehension.loop_step.expr else { return None };
        match (&comprehension.accu_init.expr, step.func_name.as_str(), step.args.as_slice()) {
            (Ast::Literal(LiteralValue::Boolean(_)), op::LOGICAL_AND, [_, condition]) => {
                Some(Self::Test { name: "all", condition })
            }
            (Ast::Literal(LiteralValue::Boolean(_)), op::LOGICAL_OR, [_, condition]) => {
                Some(Self::Test { name: "exists", condition })
            }
            (Ast::Literal(LiteralValue::Int(_)), op::CONDITIONAL, [condition, _, _]) => {
                Some(Self::Test { name: "exists_one", condition })
            }
            (Ast::List(_), op::CONDITIONAL, [condition, step, _]) => {
                Some(Self::Collect { condition: Some(condition), value: appended(step)? })
            }
            (Ast::List(_), op::ADD, _) => {
                Some(Self::Collect { condition: None, value: appended(&comprehension.loop_step)? })
            }
            _ => None,
        }
    }
}

/// The `value` in `@result + [value]`.
fn appended(step: &IdedExpr) -> Option<&IdedExpr> {
    let Ast::Call(call) = &step.expr else { return None };
    let Ast::List(list) = &call.args.get(1)?.expr else { return None };
    list.elements.first()
}

/// A mutable reference to the value that a step of `map` or `filter` appends.
pub(super) fn appended_mut(step: &mut IdedExpr) -> Option<&mut IdedExpr> {
    let Ast::Call(call) = &mut step.expr else { return None };
    let second = call.args.get_mut(1)?;
    match call.func_name.as_str() {
        op::ADD => match &mut second.expr {
            Ast::List(list) => list.elements.first_mut(),
            _ => None,
        },
        op::CONDITIONAL => appended_mut(second),
        _ => None,
    }
}

impl Checker<'_> {
    pub(super) fn comprehension(
        &mut self,
        id: u64,
        comprehension: &ComprehensionExpr,
        scope: &Scope,
    ) -> Inferred {
        let range = self.operand(&comprehension.iter_range, scope);
        let mut items = Vec::new();
        let mut is_keyed = false;
        for alternative in range.alternatives() {
            items.push(match alternative {
                Type::Any => Type::Any,
                Type::List(items) => items.as_ref().clone(),
                Type::Object(_) | Type::Map(_) => {
                    is_keyed = true;
                    Type::text()
                }
                other => {
                    self.report(
                        comprehension.iter_range.id,
                        has_no_items(other),
                        "use it on a list",
                    );
                    Type::Any
                }
            });
        }
        let inner = scope.with_local(
            &comprehension.iter_var,
            union_of(items),
            Path::from_expr(&comprehension.iter_range).as_ref(),
        );
        match Loop::from_comprehension(comprehension) {
            Some(Loop::Test { condition, .. }) => {
                self.boolean(condition, &inner);
                Inferred::from_type(Type::Bool)
            }
            Some(Loop::Collect { condition, value }) => {
                if is_keyed {
                    self.report(
                        id,
                        "the keys of an object have no order".into(),
                        "use exists() or all() on it, or use a list of entries",
                    );
                }
                let facts = condition.map(|condition| self.boolean(condition, &inner).if_true);
                let inner = facts.map_or_else(|| inner.clone(), |facts| inner.with_facts(&facts));
                let value = self.expr(value, &inner).ty;
                Inferred::from_type(Type::List(value.into()))
            }
            None => {
                self.report(
                    id,
                    "this syntax is not supported".into(),
                    "use all, exists, map or filter",
                );
                Inferred::from_type(Type::Any)
            }
        }
    }
}
