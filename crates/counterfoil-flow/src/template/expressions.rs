//! Holds expressions to the types of the values in them.

use counterfoil_contract::{Type, did_you_mean};
use minijinja::Value as Data;
use minijinja::machinery::ast::{BinOp, BinOpKind, Expr, GetItem, Map, Slice, UnaryOpKind};
use minijinja::value::ValueKind;
use std::sync::Arc;

use super::check::{Checker, described};
use super::scope::{When, facts, path};
use super::shape::{Kind, Shape};
use super::tree::place;
use super::vocabulary::{LOOP_FIELDS, constant, is_filter, is_function};

/// How many values may be strung together: doubling a text again and again has to end somewhere.
const HEAVIEST: usize = 64;

impl Checker {
    /// The shape of an expression's value, which may be absent.
    pub(super) fn value(&mut self, expr: &Expr<'_>) -> Shape {
        let shape = match expr {
            Expr::Var(var) => self.variable(expr, var.id),
            Expr::Const(constant) => literal(&constant.value),
            Expr::GetAttr(attr) => {
                let base = self.present(&attr.expr);
                let end = attr.span().end_offset as usize;
                self.field(
                    &described(&attr.expr),
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
                    Shape::of(&Type::Bool)
                }
                UnaryOpKind::Neg => self.number(&op.expr, "-"),
            },
            Expr::BinOp(op) => self.operation(expr, op),
            Expr::Compare(compare) => {
                for part in
                    std::iter::once(&compare.expr).chain(compare.ops.iter().map(|op| &op.expr))
                {
                    self.there(part);
                }
                Shape::of(&Type::Bool)
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
                let items: Vec<Shape> = list.items.iter().map(|item| self.there(item)).collect();
                let weight = items.iter().map(|item| item.weight).sum();
                let list = Shape::list(items.into_iter().fold(Shape::never(), Shape::or));
                self.weighed(expr, list, weight)
            }
            Expr::Tuple(tuple) => {
                let items: Vec<Shape> = tuple.items.iter().map(|item| self.there(item)).collect();
                let weight = items.iter().map(|item| item.weight).sum();
                self.weighed(expr, Shape::kind(Kind::Tuple(items)), weight)
            }
            Expr::Map(map) => self.map(expr, map),
        };
        match path(expr) {
            Some(path) => self.scope.refine(&path, shape),
            None => shape,
        }
    }

    /// A value at the end of a chain of fields of which any may be absent; the engine is handed
    /// such chains in a form that survives it.
    pub(super) fn soft(&mut self, expr: &Expr<'_>) -> Shape {
        let (base, name, at) = match expr {
            Expr::GetAttr(attr) => {
                let end = attr.span().end_offset as usize;
                (&attr.expr, attr.name, (end.saturating_sub(attr.name.len()), end))
            }
            Expr::GetItem(item) => match constant(&item.subscript_expr) {
                Some(name) => (&item.expr, name, place(&item.subscript_expr)),
                None => return self.value(expr),
            },
            _ => return self.value(expr),
        };
        let shape = self.soft(base);
        let absent = shape.is_absent();
        let field = self.field(&described(base), &shape.present(), name, at);
        let field = if absent { field.missing() } else { field };
        match path(expr) {
            Some(path) => self.scope.refine(&path, field),
            None => field,
        }
    }

    /// A value under a condition.
    fn value_where(&mut self, expr: &Expr<'_>, condition: &Expr<'_>, when: When) -> Shape {
        self.scope.enter(facts(condition, when));
        let shape = self.value(expr);
        self.scope.leave();
        shape
    }

    /// A value that is neither missing nor null.
    pub(super) fn present(&mut self, expr: &Expr<'_>) -> Shape {
        let shape = self.value(expr);
        self.need(expr, shape)
    }

    /// A value that may be null but not missing.
    pub(super) fn there(&mut self, expr: &Expr<'_>) -> Shape {
        let shape = self.value(expr);
        if shape.missing { self.need(expr, shape) } else { shape }
    }

    fn number(&mut self, expr: &Expr<'_>, sign: &str) -> Shape {
        let shape = self.present(expr);
        if shape.is_number() {
            return shape;
        }
        let message =
            format!("'{sign}' needs numbers, and {} is {}", described(expr), shape.name());
        self.refuse(expr, message, "write texts next to each other, or join them with ~")
    }

    fn variable(&mut self, expr: &Expr<'_>, name: &str) -> Shape {
        if let Some(shape) = self.scope.get(name) {
            return shape;
        }
        if is_function(name) {
            return self.refuse(
                expr,
                format!("'{name}' is a function"),
                format!("call it: {name}(…)"),
            );
        }
        if name == "loop" {
            let hint = "it is known inside of {% for … %}, not around it";
            return self.refuse(expr, "unknown variable 'loop'", hint);
        }
        if self.is_hopeless() {
            return Shape::any();
        }
        let names = self.scope.names();
        let hint = did_you_mean(name, names.iter().copied()).unwrap_or_else(|| {
            let names: Vec<&str> = names.iter().copied().take(12).collect();
            match names.as_slice() {
                [] => "there are no variables here".to_owned(),
                names => format!("the variables here are {}", names.join(", ")),
            }
        });
        self.refuse(expr, format!("unknown variable '{name}'"), hint)
    }

    /// A field of a value that is there; `at` is where its name stands.
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
                Some((_, ty)) => return Shape::of(ty),
                None => {
                    let hint = did_you_mean(name, LOOP_FIELDS.iter().map(|(field, _)| *field));
                    let message = format!("unknown field '{name}' of the loop");
                    return self.refuse_at(at.0, at.1, message, hint.unwrap_or_default());
                }
            },
            Kind::Tuple(_) | Kind::List(_) | Kind::Group(..) | Kind::Mixed => {
                let message = format!("{what} is {}: it has no field '{name}'", shape.name());
                return self.refuse_at(at.0, at.1, message, "loop over it, or take one: … | first");
            }
        };
        let ty_is_mixed = shape.all(|ty| !matches!(ty, Type::List(_))) && ty.object().is_some();
        let mut found = Shape::never();
        for ty in ty.alternatives() {
            let one = match ty {
                Type::Any => Shape::any(),
                Type::Map(values) => Shape::of(values),
                Type::Object(object) => match object.fields.get(name) {
                    Some(field) if field.is_present() => Shape::of(&field.ty),
                    Some(field) => Shape::of(&field.ty).missing(),
                    None if object.open => Shape::any(),
                    None => {
                        let names: Vec<&str> = object
                            .in_order()
                            .iter()
                            .map(|(name, _)| name.as_str())
                            .take(12)
                            .collect();
                        let hint = did_you_mean(name, object.fields.keys().map(String::as_str))
                            .unwrap_or_else(|| format!("its fields are {}", names.join(", ")));
                        let message = format!("unknown field '{name}' of {what}");
                        return self.refuse_at(at.0, at.1, message, hint);
                    }
                },
                _ => {
                    let message = format!("{what} is {}: it has no field '{name}'", shape.name());
                    let hint = match ty {
                        Type::List(_) => "loop over it, or take one: … | first".to_owned(),
                        _ if ty_is_mixed => {
                            format!(
                                "test it first: {{% if {} is mapping %}}",
                                what.trim_matches('\'')
                            )
                        }
                        _ if is_filter(name) => format!("use the filter: … | {name}"),
                        _ => "use it as it is".to_owned(),
                    };
                    return self.refuse_at(at.0, at.1, message, hint);
                }
            };
            found = found.or(one);
        }
        Shape { weight: shape.weight, ..found }
    }

    fn item(&mut self, item: &GetItem<'_>) -> Shape {
        let base = self.present(&item.expr);
        let key = self.present(&item.subscript_expr);
        if let Expr::Const(constant) = &item.subscript_expr
            && let Some(name) = constant.value.as_str()
        {
            return self.field(&described(&item.expr), &base, name, place(&item.subscript_expr));
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
                // The keys of a map are data; those of an object are known, and this one is not.
                if base.all(|ty| matches!(ty, Type::Map(_))) { values } else { values.missing() }
            }
            _ => {
                let message = format!(
                    "{} is {}: {} does not pick from it",
                    described(&item.expr),
                    base.name(),
                    key.name()
                );
                self.refuse(&item.subscript_expr, message, "lists take a number, objects a name")
            }
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> Shape {
        let base = self.present(&slice.expr);
        for bound in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
            let shape = self.present(bound);
            if !shape.all(|ty| matches!(ty, Type::Int)) {
                self.refuse(
                    bound,
                    format!("a slice takes integers, not {}", shape.name()),
                    "use | int",
                );
            }
        }
        if base.is_list() || base.is_text() {
            return base;
        }
        let message = format!("{} is {}: it cannot be sliced", described(&slice.expr), base.name());
        self.refuse(&slice.expr, message, "slice lists and texts")
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
                self.there(&op.left);
                self.there(&op.right);
                Shape::of(&Type::Bool)
            }
            BinOpKind::In => {
                let one = self.there(&op.left);
                let many = self.present(&op.right);
                let fits = many.is_any()
                    || many.items().is_some()
                    || (many.is_text() && one.is_text() && !one.null);
                if !fits {
                    let message = format!("{} is never in {}", one.name(), many.name());
                    self.refuse(
                        &op.right,
                        message,
                        "look in a list, an object, or for a text in a text",
                    );
                }
                Shape::of(&Type::Bool)
            }
            BinOpKind::Concat => {
                let mut weight = 0;
                for side in [&op.left, &op.right] {
                    let shape = self.present(side);
                    weight += shape.weight;
                    if !shape.all(|ty| matches!(ty, Type::String(_) | Type::Int | Type::Double)) {
                        let message =
                            format!("'~' joins texts, and {} is {}", described(side), shape.name());
                        self.refuse(side, message, "write it as JSON: … | tojson");
                    }
                }
                self.weighed(expr, Shape::text(), weight)
            }
            BinOpKind::Add => {
                let (left, right) = (self.present(&op.left), self.present(&op.right));
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
                    let message = format!("'+' does not add {} and {}", left.name(), right.name());
                    return self.refuse(expr, message, "add numbers or lists; join texts with ~");
                };
                self.weighed(expr, sum, weight)
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
                    BinOpKind::Div | BinOpKind::Pow => Shape::of(&Type::Double),
                    _ => arithmetic(&left, &right),
                }
            }
        }
    }

    pub(super) fn weighed(&mut self, expr: &Expr<'_>, shape: Shape, weight: usize) -> Shape {
        if weight > HEAVIEST {
            let message = format!("more than {HEAVIEST} values are strung together here");
            return self.refuse(
                expr,
                message,
                "write them out where they are needed, or join a list",
            );
        }
        Shape { weight, ..shape }
    }

    fn map(&mut self, expr: &Expr<'_>, map: &Map<'_>) -> Shape {
        let (mut fields, mut weight) = (Vec::new(), 0);
        let mut all_named = true;
        for (key, value) in map.keys.iter().zip(&map.values) {
            self.present(key);
            let value = self.there(value);
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
            Shape::of(&Type::Map(Arc::new(Type::Any)))
        };
        self.weighed(expr, map, weight)
    }
}

fn arithmetic(left: &Shape, right: &Shape) -> Shape {
    let whole = |shape: &Shape| shape.all(|ty| matches!(ty, Type::Int)) && !shape.is_any();
    Shape::of(if whole(left) && whole(right) { &Type::Int } else { &Type::Double })
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
        ValueKind::None => Shape::of(&Type::Null),
        ValueKind::Bool => Shape::of(&Type::Bool),
        ValueKind::Number if value.is_integer() => Shape::of(&Type::Int),
        ValueKind::Number => Shape::of(&Type::Double),
        ValueKind::String => Shape::text(),
        _ => Shape::any(),
    };
    Shape { weight: 0, ..shape }
}
