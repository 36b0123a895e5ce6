//! Type checks of operators: every alternative of an operand's type must support the operation.

use super::assign::{has_no_items, with_article};
use super::check::{Checker, Inferred, all_alternatives, display_type, narrowed, union_of};
use super::members::Access;
use super::path::{Path, Step};
use super::scope::{Fact, Facts, Scope};
use super::types::Type;
use crate::suggest::did_you_mean;
use crate::text::list_values;
use cel::common::ast::{CallExpr, Expr as Ast, IdedExpr, LiteralValue, operators as op};

impl Checker<'_> {
    pub(super) fn call(&mut self, id: u64, call: &CallExpr, scope: &Scope) -> Inferred {
        if call.target.is_some() {
            return self.function(id, call, scope);
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND, [left, right]) => {
                let left = self.boolean(left, scope);
                let right = self.boolean(right, &scope.with_facts(&left.if_true));
                Inferred {
                    ty: Type::Bool,
                    if_true: left.if_true.union(&right.if_true),
                    if_false: left.if_false.intersection(&right.if_false),
                }
            }
            (op::LOGICAL_OR, [left, right]) => {
                let left = self.boolean(left, scope);
                let right = self.boolean(right, &scope.with_facts(&left.if_false));
                Inferred {
                    ty: Type::Bool,
                    if_true: left.if_true.intersection(&right.if_true),
                    if_false: left.if_false.union(&right.if_false),
                }
            }
            (op::LOGICAL_NOT, [inner]) => {
                let view = self.boolean(inner, scope);
                Inferred { ty: Type::Bool, if_true: view.if_false, if_false: view.if_true }
            }
            (op::CONDITIONAL, [condition, yes, no]) => {
                let condition = self.boolean(condition, scope);
                let yes = self.expr(yes, &scope.with_facts(&condition.if_true)).ty;
                let no = self.expr(no, &scope.with_facts(&condition.if_false)).ty;
                Inferred::from_type(union_of(vec![yes, no]))
            }
            (op::EQUALS, [left, right]) => self.equality(id, left, right, scope),
            (op::NOT_EQUALS, [left, right]) => {
                let view = self.equality(id, left, right, scope);
                Inferred { ty: view.ty, if_true: view.if_false, if_false: view.if_true }
            }
            (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
                let (a, b) = (self.operand(left, scope), self.operand(right, scope));
                let together = |wanted: fn(&Type) -> bool| {
                    all_alternatives(&a, wanted) && all_alternatives(&b, wanted)
                };
                if !together(is_number) && !together(is_text) {
                    self.report(
                        id,
                        format!("cannot order {a} and {b}"),
                        "order numbers with numbers",
                    );
                }
                Inferred::from_type(Type::Bool)
            }
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [left, right]) => {
                Inferred::from_type(self.arithmetic(id, &call.func_name, left, right, scope))
            }
            (op::NEGATE, [inner]) => {
                let ty = self.operand(inner, scope);
                if !all_alternatives(&ty, is_number) {
                    self.report(id, format!("cannot negate {ty}"), "calculate with numbers");
                }
                Inferred::from_type(ty)
            }
            (op::IN, [item, container]) => self.membership(id, item, container, scope),
            (op::INDEX, [target, index]) => match &index.expr {
                Ast::Literal(LiteralValue::String(key)) => {
                    self.member(id, target, key.inner(), Access::Read, scope)
                }
                _ => self.item(id, target, index, scope),
            },
            _ => self.function(id, call, scope),
        }
    }

    fn equality(&mut self, id: u64, left: &IdedExpr, right: &IdedExpr, scope: &Scope) -> Inferred {
        let (a, b) = (self.expr(left, scope).ty, self.expr(right, scope).ty);
        self.literal_among(left, &b, right);
        self.literal_among(right, &a, left);
        if !comparable(&a, &b) {
            let (a, b) = (display_type(left, a.clone()), display_type(right, b.clone()));
            self.report(
                id,
                format!("{} is never equal to {}", with_article(&a), with_article(&b)),
                "compare values of one type",
            );
        }
        let mut view = Inferred::from_type(Type::Bool);
        for (side, other, ty) in [(left, right, &b), (right, left, &a)] {
            if let Some(path) = Path::from_expr(side).filter(|_| cannot_fail(other)) {
                let fact = Facts::single(path, Fact::NotNull);
                if *ty == Type::Null {
                    view.if_false = view.if_false.union(&fact);
                } else if !ty.is_nullable() {
                    view.if_true = view.if_true.union(&fact);
                }
            }
        }
        view
    }

    /// Reports a literal that is compared with an enum but is not one of its values.
    fn literal_among(&mut self, literal: &IdedExpr, ty: &Type, other: &IdedExpr) {
        if let (Ast::Literal(LiteralValue::String(text)), Type::String(Some(values))) =
            (&literal.expr, &ty.non_null())
            && !matches!(other.expr, Ast::Literal(_))
            && !values.iter().any(|value| value == text.inner())
        {
            let hint = did_you_mean(text.inner(), values.iter().map(String::as_str))
                .unwrap_or_else(|| format!("allowed: {}", list_values(values)));
            self.report(
                literal.id,
                format!("\"{}\" is not one of the values this field can have", text.inner()),
                hint,
            );
        }
    }

    fn arithmetic(
        &mut self,
        id: u64,
        name: &str,
        left: &IdedExpr,
        right: &IdedExpr,
        scope: &Scope,
    ) -> Type {
        let (a, b) = (self.operand(left, scope), self.operand(right, scope));
        let mut types = Vec::new();
        for (x, y) in
            a.alternatives().iter().flat_map(|x| b.alternatives().iter().map(move |y| (x, y)))
        {
            types.push(match (x, y) {
                (Type::Any, _) | (_, Type::Any) => Type::Any,
                (Type::Int, Type::Int) => Type::Int,
                (Type::Double, Type::Double) if name != op::MODULO => Type::Double,
                (Type::Double, Type::Double) => {
                    self.report(id, "% works only on integers".into(), "convert both with int()");
                    return Type::Double;
                }
                (Type::Int, Type::Double) | (Type::Double, Type::Int) => {
                    self.report(
                        id,
                        format!("{a} and {b} do not mix"),
                        "convert one with int() or double()",
                    );
                    return a;
                }
                (Type::String(_), Type::String(_)) if name == op::ADD => Type::text(),
                (Type::List(x), Type::List(y)) if name == op::ADD => {
                    Type::List(union_of(vec![x.as_ref().clone(), y.as_ref().clone()]).into())
                }
                _ => {
                    self.report(
                        id,
                        format!("cannot calculate with {a} and {b}"),
                        "calculate with numbers",
                    );
                    return Type::Any;
                }
            });
        }
        union_of(types)
    }

    fn membership(
        &mut self,
        id: u64,
        item: &IdedExpr,
        container: &IdedExpr,
        scope: &Scope,
    ) -> Inferred {
        let mut ty = self.expr(item, scope).ty;
        let reads_before = self.paths.len();
        let container_type = self.expr(container, scope).ty;
        let container_type = self.require_non_null(container, container_type);
        let mut view = Inferred::from_type(Type::Bool);
        if let Ast::List(list) = &container.expr {
            for element in &list.elements {
                self.literal_among(element, &ty, item);
            }
        }
        let is_keyed = |ty: &Type| matches!(ty, Type::Object(_) | Type::Map(_));
        if container_type.alternatives().iter().any(is_keyed) {
            ty = self.require_non_null(item, ty);
            if !all_alternatives(&ty, is_text) {
                self.report(
                    id,
                    format!("{} is never a key of an object", with_article(&ty)),
                    "look for a string",
                );
            } else if let Ast::Literal(LiteralValue::String(key)) = &item.expr
                && container_type.alternatives().iter().all(is_keyed)
                && let Some(path) = Path::from_expr(container)
            {
                let member = self.member_of(
                    id,
                    &container_type,
                    container,
                    key.inner(),
                    Access::Test,
                    scope,
                );
                let path = path.child(Step::Field(key.inner().to_owned()));
                self.paths.truncate(reads_before);
                self.record_read(&path, scope);
                view.if_true = Facts::single(path, member.proves);
            }
        }
        for alternative in container_type.alternatives() {
            match alternative {
                Type::Any | Type::Object(_) | Type::Map(_) => {}
                Type::List(items) if comparable(&ty, items) => {}
                Type::List(_) => {
                    let ty = display_type(item, ty.clone());
                    self.report(
                        id,
                        format!(
                            "{} is never in {}",
                            with_article(&ty),
                            with_article(&container_type)
                        ),
                        "compare values of one type",
                    );
                }
                other => self.report(id, has_no_items(other), "use in on a list or an object"),
            }
        }
        if let (Some(path), Ast::List(list)) = (Path::from_expr(item), &container.expr)
            && container_type.items().is_some_and(|items| !items.is_nullable())
            && list.elements.iter().all(cannot_fail)
        {
            view.if_true = Facts::single(path, Fact::NotNull);
        }
        view
    }

    fn item(&mut self, id: u64, target: &IdedExpr, index: &IdedExpr, scope: &Scope) -> Inferred {
        let target_type = self.operand(target, scope);
        let index_type = self.operand(index, scope);
        let mut types = Vec::new();
        for alternative in target_type.alternatives() {
            match alternative {
                Type::Any => types.push(Type::Any),
                Type::List(items) if all_alternatives(&index_type, |ty| *ty == Type::Int) => {
                    types.push(items.as_ref().clone());
                }
                Type::List(_) => {
                    self.report(
                        index.id,
                        format!("a list has no item at a {index_type}"),
                        "index it by an integer",
                    );
                    types.push(Type::Any);
                }
                Type::Object(_) | Type::Map(_) => {
                    self.report(
                        index.id,
                        "the key of an object must be a string literal here".into(),
                        "to look something up, use a list and exists()",
                    );
                    types.push(Type::Any);
                }
                other => {
                    self.report(id, has_no_items(other), "index a list");
                    types.push(Type::Any);
                }
            }
        }
        let path = match &index.expr {
            Ast::Literal(LiteralValue::Int(at)) => {
                Path::from_expr(target).map(|path| path.child(Step::Item(*at.inner())))
            }
            _ => None,
        };
        Inferred::from_type(narrowed(&union_of(types), path.as_ref(), scope))
    }
}

/// Whether the evaluation of a checked expression can never fail.
fn cannot_fail(expr: &IdedExpr) -> bool {
    matches!(expr.expr, Ast::Literal(_))
        || Path::from_expr(expr).is_some_and(|path| path.fields().count() == path.steps.len())
}

pub(super) fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int | Type::Double)
}

pub(super) fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::String(_))
}

/// Whether values of the two types can be equal.
fn comparable(a: &Type, b: &Type) -> bool {
    a.alternatives().iter().any(|a| {
        b.alternatives().iter().any(|b| match (a, b) {
            (Type::Any, _) | (_, Type::Any) => true,
            (Type::String(_), Type::String(_))
            | (Type::List(_), Type::List(_))
            | (Type::Object(_) | Type::Map(_), Type::Object(_) | Type::Map(_))
            | (Type::Int | Type::Double, Type::Int | Type::Double) => true,
            (a, b) => a == b,
        })
    })
}
