//! Type-checks expressions.

use counterfoil_contract::expr::Type;
use counterfoil_contract::suggest::did_you_mean;
use minijinja::Value as Data;
use minijinja::machinery::ast::{BinOp, BinOpKind, Expr, GetItem, Map, Slice, UnaryOpKind};
use minijinja::value::ValueKind;
use std::sync::Arc;

use super::check::{Checker, describe};
use super::scope::{When, expression_path, facts};
use super::shape::{Kind, Shape};
use super::signatures::{LOOP_FIELDS, is_filter, is_function, string_literal};
use super::traverse::byte_range;

/// The maximum number of values concatenated in one expression. It bounds repeated doubling of a text.
pub(super) const MAX_CONCATENATED: usize = 64;

impl Checker {
    /// The shape of an expression's value. The value may be absent.
    pub(super) fn value(&mut self, expr: &Expr<'_>) -> Shape {
        let shape = match expr {
            Expr::Var(var) => self.variable(expr, var.id),
            Expr::Const(constant) => literal(&constant.value),
            Expr::GetAttr(attr) => {
                let base = self.present_value(&attr.expr);
                let end = attr.span().end_offset as usize;
                self.field(
                    &describe(&attr.expr),
                    &base,
                    attr.name,
                    (end.saturating_sub(attr.name.len()), end),
                )
            }
            Expr::GetItem(item) => self.item(item),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(op) => match op.op {
                UnaryOpKind::Not => {
                    self.value(&op.expr);
                    Shape::from_type(&Type::Bool)
                }
                UnaryOpKind::Neg => self.number(&op.expr, "-"),
            },
            Expr::BinOp(op) => self.operation(expr, op),
            Expr::Compare(compare) => {
                for part in
                    std::iter::once(&compare.expr).chain(compare.ops.iter().map(|op| &op.expr))
                {
                    self.not_missing(part);
                }
                Shape::from_type(&Type::Bool)
            }
            Expr::IfExpr(choice) => {
                self.value(&choice.test_expr);
                let one = self.value_where(&choice.true_expr, &choice.test_expr, When::Holds);
                match &choice.false_expr {
                    Some(other) => one.or(self.value_where(other, &choice.test_expr, When::Fails)),
                    None => one.missing(),
                }
            }
            Expr::Filter(filter) => self.filter(expr, filter),
            Expr::Test(test) => self.test(expr, test),
            Expr::Call(call) => self.call(expr, call),
            Expr::List(list) => {
                let items: Vec<Shape> =
                    list.items.iter().map(|item| self.not_missing(item)).collect();
                let weight = items.iter().map(|item| item.weight).sum();
                let list = Shape::list(items.into_iter().fold(Shape::never(), Shape::or));
                self.with_weight(expr, list, weight)
            }
            Expr::Tuple(tuple) => {
                let items: Vec<Shape> =
                    tuple.items.iter().map(|item| self.not_missing(item)).collect();
                let weight = items.iter().map(|item| item.weight).sum();
                self.with_weight(expr, Shape::from_kind(Kind::Tuple(items)), weight)
            }
            Expr::Map(map) => self.map(expr, map),
        };
        match expression_path(expr) {
            Some(path) => self.scope.refine(&path, shape),
            None => shape,
        }
    }

    /// The value at the end of a chain of fields, each of which may be absent. Such chains are
    /// rewritten before they are rendered, see `with_lenient_chains`.
    pub(super) fn lenient_value(&mut self, expr: &Expr<'_>) -> Shape {
        let (base, name, at) = match expr {
            Expr::GetAttr(attr) => {
                let end = attr.span().end_offset as usize;
                (&attr.expr, attr.name, (end.saturating_sub(attr.name.len()), end))
            }
            Expr::GetItem(item) => match string_literal(&item.subscript_expr) {
                Some(name) => (&item.expr, name, byte_range(&item.subscript_expr)),
                None => return self.value(expr),
            },
            _ => return self.value(expr),
        };
        let shape = self.lenient_value(base);
        let absent = shape.is_absent();
        let field = self.field(&describe(base), &shape.present(), name, at);
        let field = if absent { field.missing() } else { field };
        match expression_path(expr) {
            Some(path) => self.scope.refine(&path, field),
            None => field,
        }
    }

    /// The shape of a value where a condition is true or false.
    fn value_where(&mut self, expr: &Expr<'_>, condition: &Expr<'_>, when: When) -> Shape {
        self.scope.enter(facts(condition, when));
        let shape = self.value(expr);
        self.scope.leave();
        shape
    }

    /// The shape of a value that must be neither missing nor null.
    pub(super) fn present_value(&mut self, expr: &Expr<'_>) -> Shape {
        let shape = self.value(expr);
        self.require_present(expr, shape)
    }

    /// The shape of a value that may be null but not missing.
    pub(super) fn not_missing(&mut self, expr: &Expr<'_>) -> Shape {
        let shape = self.value(expr);
        if shape.missing { self.require_present(expr, shape) } else { shape }
    }

    fn number(&mut self, expr: &Expr<'_>, sign: &str) -> Shape {
        let shape = self.present_value(expr);
        if shape.is_number() {
            return shape;
        }
        let message =
            format!("'{sign}' needs numbers, but {} is {}", describe(expr), shape.describe());
        self.report(expr, message, "to concatenate strings, use ~")
    }

    fn variable(&mut self, expr: &Expr<'_>, name: &str) -> Shape {
        if let Some(shape) = self.scope.get(name) {
            return shape;
        }
        if is_function(name) {
            return self.report(
                expr,
                format!("'{name}' is a function"),
                format!("call it: {name}(…)"),
            );
        }
        if name == "loop" {
            let hint = "it is defined only inside {% for … %}";
            return self.report(expr, "unknown variable 'loop'", hint);
        }
        if self.at_limit() {
            return Shape::any();
        }
        let names = self.scope.names();
        let hint = did_you_mean(name, names.iter().copied()).unwrap_or_else(|| {
            let names: Vec<&str> = names.iter().copied().take(12).collect();
            match names.as_slice() {
                [] => "no variables are defined here".to_owned(),
                names => format!("known variables: {}", names.join(", ")),
            }
        });
        self.report(expr, format!("unknown variable '{name}'"), hint)
    }

    /// The shape of a field of a value that is present; `at` is the range of the field's name.
    pub(super) fn field(
        &mut self,
        what: &str,
        shape: &Shape,
        name: &str,
        at: (usize, usize),
    ) -> Shape {
        let ty = match &shape.kind {
            Kind::Data(ty) => ty,
            Kind::Group(common, _) if name == "grouper" => return common.as_ref().clone(),
            Kind::Group(_, members) if name == "list" => return members.as_ref().clone(),
            Kind::Loop => match LOOP_FIELDS.iter().find(|(field, _)| *field == name) {
                Some((_, ty)) => return Shape::from_type(ty),
                None => {
                    let hint = did_you_mean(name, LOOP_FIELDS.iter().map(|(field, _)| *field));
                    let message = format!("unknown field '{name}' of the loop");
                    return self.report_at(at.0, at.1, message, hint.unwrap_or_default());
                }
            },
            Kind::Tuple(_) | Kind::List(_) | Kind::Group(..) | Kind::Mixed => {
                let message =
                    format!("{what} is {}, which has no field '{name}'", shape.describe());
                return self.report_at(
                    at.0,
                    at.1,
                    message,
                    "loop over it, or take an item: … | first",
                );
            }
        };
        let ty_is_mixed = shape.all(|ty| !matches!(ty, Type::List(_))) && ty.object().is_some();
        let mut found = Shape::never();
        for ty in ty.alternatives() {
            let one = match ty {
                Type::Any => Shape::any(),
                Type::Map(values) => Shape::from_type(values),
                Type::Object(object) => match object.fields.get(name) {
                    Some(field) if field.is_present() => Shape::from_type(&field.ty),
                    Some(field) => Shape::from_type(&field.ty).missing(),
                    None if object.open => Shape::any(),
                    None => {
                        let names: Vec<&str> = object
                            .in_order()
                            .iter()
                            .map(|(name, _)| name.as_str())
                            .take(12)
                            .collect();
                        let hint = did_you_mean(name, object.fields.keys().map(String::as_str))
                            .unwrap_or_else(|| format!("known fields: {}", names.join(", ")));
                        let message = format!("unknown field '{name}' of {what}");
                        return self.report_at(at.0, at.1, message, hint);
                    }
                },
                _ => {
                    let message =
                        format!("{what} is {}, which has no field '{name}'", shape.describe());
                    let hint = match ty {
                        Type::List(_) => "loop over it, or take an item: … | first".to_owned(),
                        _ if ty_is_mixed => {
                            format!(
                                "test it first: {{% if {} is mapping %}}",
                                what.trim_matches('\'')
                            )
                        }
                        _ if is_filter(name) => format!("use the filter: … | {name}"),
                        _ => "use the value itself".to_owned(),
                    };
                    return self.report_at(at.0, at.1, message, hint);
                }
            };
            found = found.or(one);
        }
        Shape { weight: shape.weight, ..found }
    }

    fn item(&mut self, item: &GetItem<'_>) -> Shape {
        let base = self.present_value(&item.expr);
        let key = self.present_value(&item.subscript_expr);
        if let Expr::Const(constant) = &item.subscript_expr
            && let Some(name) = constant.value.as_str()
        {
            return self.field(
                &describe(&item.expr),
                &base,
                name,
                byte_range(&item.subscript_expr),
            );
        }
        let by_number = key.is_number();
        match &base.kind {
            Kind::Tuple(parts) => {
                let index = match &item.subscript_expr {
                    Expr::Const(constant) => constant.value.as_usize(),
                    _ => None,
                };
                index
                    .and_then(|index| parts.get(index))
                    .cloned()
                    .unwrap_or_else(|| Shape::any().missing())
            }
            _ if base.is_any() => Shape::any(),
            _ if base.is_list() && by_number => base.items().unwrap_or_else(Shape::any).missing(),
            _ if base.is_text() && by_number => Shape::text().missing(),
            _ if base.is_mapping() && key.is_text() => {
                let values = base.values();
                // The keys of a map are data. An object has known fields, and this key may not be one.
                if base.all(|ty| matches!(ty, Type::Map(_))) { values } else { values.missing() }
            }
            _ => {
                let message = format!(
                    "{} is {}, which cannot be indexed with {}",
                    describe(&item.expr),
                    base.describe(),
                    key.describe()
                );
                self.report(
                    &item.subscript_expr,
                    message,
                    "index a list with a number, an object with a name",
                )
            }
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> Shape {
        let base = self.present_value(&slice.expr);
        for bound in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
            let shape = self.present_value(bound);
            if !shape.all(|ty| matches!(ty, Type::Int)) {
                self.report(
                    bound,
                    format!("a slice bound must be an integer, not {}", shape.describe()),
                    "convert it: … | int",
                );
            }
        }
        if base.is_list() || base.is_text() {
            return base;
        }
        let message =
            format!("{} is {}, which cannot be sliced", describe(&slice.expr), base.describe());
        self.report(&slice.expr, message, "only lists and strings can be sliced")
    }

    fn operation(&mut self, expr: &Expr<'_>, op: &BinOp<'_>) -> Shape {
        match op.op {
            BinOpKind::ScAnd => {
                let left = self.value(&op.left);
                left.or(self.value_where(&op.right, &op.left, When::Holds))
            }
            BinOpKind::ScOr => {
                let left = self.value(&op.left);
                left.present().or(self.value_where(&op.right, &op.left, When::Fails))
            }
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte => {
                self.not_missing(&op.left);
                self.not_missing(&op.right);
                Shape::from_type(&Type::Bool)
            }
            BinOpKind::In => {
                let one = self.not_missing(&op.left);
                let many = self.present_value(&op.right);
                let fits = many.is_any()
                    || many.items().is_some()
                    || (many.is_text() && one.is_text() && !one.null);
                if !fits {
                    let message = format!("{} is never in {}", one.describe(), many.describe());
                    self.report(
                        &op.right,
                        message,
                        "search a list, an object, or a string for a string",
                    );
                }
                Shape::from_type(&Type::Bool)
            }
            BinOpKind::Concat => {
                let mut weight = 0;
                for side in [&op.left, &op.right] {
                    let shape = self.present_value(side);
                    weight += shape.weight;
                    if !shape.all(|ty| matches!(ty, Type::String(_) | Type::Int | Type::Double)) {
                        let message = format!(
                            "'~' concatenates strings, but {} is {}",
                            describe(side),
                            shape.describe()
                        );
                        self.report(side, message, "convert it to JSON: … | tojson");
                    }
                }
                self.with_weight(expr, Shape::text(), weight)
            }
            BinOpKind::Add => {
                let (left, right) = (self.present_value(&op.left), self.present_value(&op.right));
                let weight = left.weight + right.weight;
                let sum = if left.is_any() || right.is_any() {
                    Shape::any()
                } else if left.is_number() && right.is_number() {
                    return arithmetic(&left, &right);
                } else if left.is_text() && right.is_text() {
                    Shape::text()
                } else if left.is_list() && right.is_list() {
                    let items = left.items().into_iter().chain(right.items());
                    Shape::list(items.fold(Shape::never(), Shape::or))
                } else {
                    let message =
                        format!("'+' cannot add {} and {}", left.describe(), right.describe());
                    return self.report(
                        expr,
                        message,
                        "add numbers or lists; concatenate strings with ~",
                    );
                };
                self.with_weight(expr, sum, weight)
            }
            BinOpKind::Sub
            | BinOpKind::Mul
            | BinOpKind::Div
            | BinOpKind::FloorDiv
            | BinOpKind::Rem
            | BinOpKind::Pow => {
                let (left, right) =
                    (self.number(&op.left, sign(op.op)), self.number(&op.right, sign(op.op)));
                match op.op {
                    BinOpKind::Div | BinOpKind::Pow => Shape::from_type(&Type::Double),
                    _ => arithmetic(&left, &right),
                }
            }
        }
    }

    /// Sets the number of concatenated values, and reports too many.
    pub(super) fn with_weight(&mut self, expr: &Expr<'_>, shape: Shape, weight: usize) -> Shape {
        if weight > MAX_CONCATENATED {
            let message = format!("more than {MAX_CONCATENATED} values are concatenated here");
            return self.report(expr, message, "print them separately, or join a list");
        }
        Shape { weight, ..shape }
    }

    fn map(&mut self, expr: &Expr<'_>, map: &Map<'_>) -> Shape {
        let (mut fields, mut weight) = (Vec::new(), 0);
        let mut all_named = true;
        for (key, value) in map.keys.iter().zip(&map.values) {
            self.present_value(key);
            let value = self.not_missing(value);
            weight += value.weight;
            match key {
                Expr::Const(key) if key.value.as_str().is_some() => {
                    fields.push((key.value.as_str().unwrap_or_default().to_owned(), value));
                }
                _ => all_named = false,
            }
        }
        let map = if all_named {
            Shape::object(fields)
        } else {
            Shape::from_type(&Type::Map(Arc::new(Type::Any)))
        };
        self.with_weight(expr, map, weight)
    }
}

fn arithmetic(left: &Shape, right: &Shape) -> Shape {
    let whole = |shape: &Shape| shape.all(|ty| matches!(ty, Type::Int)) && !shape.is_any();
    Shape::from_type(if whole(left) && whole(right) { &Type::Int } else { &Type::Double })
}

fn sign(op: BinOpKind) -> &'static str {
    match op {
        BinOpKind::Sub => "-",
        BinOpKind::Mul => "*",
        BinOpKind::Div => "/",
        BinOpKind::FloorDiv => "//",
        BinOpKind::Rem => "%",
        _ => "**",
    }
}

fn literal(value: &Data) -> Shape {
    let shape = match value.kind() {
        ValueKind::None => Shape::from_type(&Type::Null),
        ValueKind::Bool => Shape::from_type(&Type::Bool),
        ValueKind::Number if value.is_integer() => Shape::from_type(&Type::Int),
        ValueKind::Number => Shape::from_type(&Type::Double),
        ValueKind::String => Shape::text(),
        _ => Shape::any(),
    };
    Shape { weight: 0, ..shape }
}
