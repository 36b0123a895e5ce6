//! Checks calls of functions and methods.

use counterfoil_contract::expr::Type;
use counterfoil_contract::suggest::did_you_mean;
use minijinja::machinery::ast::{Call, Expr};
use std::sync::Arc;

use super::check::{Checker, describe};
use super::shape::{Kind, Shape};
use super::signatures::{FUNCTIONS, METHODS, is_filter};
use super::traverse::argument;

impl Checker {
    pub(super) fn call(&mut self, expr: &Expr<'_>, call: &Call<'_>) -> Shape {
        match &call.expr {
            Expr::Var(var) => {
                for arg in &call.args {
                    self.present_value(argument(arg));
                }
                if self.scope.get(var.id).is_some() {
                    let hint = if var.id == "loop" {
                        "recursive loops are not supported"
                    } else {
                        "remove the (…)"
                    };
                    return self.report(
                        &call.expr,
                        format!("'{}' is not a function", var.id),
                        hint,
                    );
                }
                match var.id {
                    "range" => Shape::list(Shape::from_type(&Type::Int)),
                    "dict" => Shape::from_type(&Type::Map(Arc::new(Type::Any))),
                    name => {
                        let hint = if is_filter(name) {
                            format!("use it as a filter: … | {name}")
                        } else {
                            did_you_mean(name, FUNCTIONS).unwrap_or_else(|| {
                                format!("known functions: {}", FUNCTIONS.join(", "))
                            })
                        };
                        self.report(&call.expr, format!("unknown function '{name}'"), hint)
                    }
                }
            }
            Expr::GetAttr(attr) => {
                let base = self.present_value(&attr.expr);
                let args: Vec<Shape> =
                    call.args.iter().map(|arg| self.not_missing(argument(arg))).collect();
                self.method(call, &attr.expr, &base, attr.name, args)
            }
            _ => self.report(expr, "this value is not a function", "remove the (…)"),
        }
    }

    fn method(
        &mut self,
        call: &Call<'_>,
        receiver: &Expr<'_>,
        base: &Shape,
        name: &str,
        args: Vec<Shape>,
    ) -> Shape {
        if matches!(base.kind, Kind::Loop) {
            match (name, args.len()) {
                ("cycle", 1..) => {
                    return args.into_iter().reduce(Shape::or).unwrap_or_else(Shape::any);
                }
                ("changed", _) => return Shape::from_type(&Type::Bool),
                _ => {}
            }
        } else if base.is_mapping() {
            match (name, args.len()) {
                ("items", 0) => return pairs(base),
                ("keys", 0) => return Shape::list(Shape::text()),
                ("values", 0) => return Shape::list(base.values()),
                ("get", 1) => return Shape { null: true, ..base.values() },
                ("get", 2) => return args.into_iter().skip(1).fold(base.values(), Shape::or),
                _ => {}
            }
        }
        let hint = if is_filter(name) {
            format!("use the filter: … | {name}")
        } else {
            did_you_mean(name, METHODS)
                .unwrap_or_else(|| "use a filter to change a value: … | upper".to_owned())
        };
        let message = format!(
            "{} is {}, which has no method '{name}' with {} arguments",
            describe(receiver),
            base.describe(),
            args.len()
        );
        self.report(&call.expr, message, hint)
    }
}

/// The list of an object's pairs of name and value.
pub(super) fn pairs(object: &Shape) -> Shape {
    Shape::list(Shape::from_kind(Kind::Tuple(vec![Shape::text(), object.values()])))
}
