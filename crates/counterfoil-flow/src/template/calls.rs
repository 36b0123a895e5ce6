//! Holds calls of functions and methods to what there is to call.

use counterfoil_contract::{Type, did_you_mean};
use minijinja::machinery::ast::{Call, Expr};
use std::sync::Arc;

use super::check::{Checker, described};
use super::shape::{Kind, Shape};
use super::tree::argument;
use super::vocabulary::{FUNCTIONS, METHODS, is_filter};

impl Checker {
    pub(super) fn call(&mut self, expr: &Expr<'_>, call: &Call<'_>) -> Shape {
        match &call.expr {
            Expr::Var(var) => {
                for arg in &call.args {
                    self.present(argument(arg));
                }
                if self.scope.get(var.id).is_some() {
                    let hint = if var.id == "loop" {
                        "a loop does not call itself"
                    } else {
                        "leave out the (…)"
                    };
                    return self.refuse(
                        &call.expr,
                        format!("'{}' is not a function", var.id),
                        hint,
                    );
                }
                match var.id {
                    "range" => Shape::list(Shape::of(&Type::Int)),
                    "dict" => Shape::of(&Type::Map(Arc::new(Type::Any))),
                    name => {
                        let hint = if is_filter(name) {
                            format!("it is a filter: … | {name}")
                        } else {
                            did_you_mean(name, FUNCTIONS).unwrap_or_else(|| {
                                format!("the functions are {}", FUNCTIONS.join(" and "))
                            })
                        };
                        self.refuse(&call.expr, format!("unknown function '{name}'"), hint)
                    }
                }
            }
            Expr::GetAttr(attr) => {
                let base = self.present(&attr.expr);
                let args: Vec<Shape> =
                    call.args.iter().map(|arg| self.there(argument(arg))).collect();
                self.method(call, &attr.expr, &base, attr.name, args)
            }
            _ => self.refuse(expr, "this value is not a function", "leave out the (…)"),
        }
    }

    fn method(
        &mut self,
        call: &Call<'_>,
        of: &Expr<'_>,
        base: &Shape,
        name: &str,
        args: Vec<Shape>,
    ) -> Shape {
        if matches!(base.kind, Kind::Loop) {
            match (name, args.len()) {
                ("cycle", 1..) => {
                    return args.into_iter().reduce(Shape::or).unwrap_or_else(Shape::any);
                }
                ("changed", _) => return Shape::of(&Type::Bool),
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
                .unwrap_or_else(|| "to change a value, use a filter: … | upper".to_owned())
        };
        let message = format!(
            "{} is {}: it has no method '{name}' with {} arguments",
            described(of),
            base.name(),
            args.len()
        );
        self.refuse(&call.expr, message, hint)
    }
}

/// The pairs of an object.
pub(super) fn pairs(object: &Shape) -> Shape {
    Shape::list(Shape::kind(Kind::Tuple(vec![Shape::text(), object.values()])))
}
