//! Checks filters and tests against the values they are applied to.

use counterfoil_contract::expr::Type;
use minijinja::machinery::ast::{CallArg, Expr, Filter, Test};

use super::calls::pairs;
use super::check::{Checker, describe};
use super::shape::{Kind, Shape};
use super::signatures::{argument_at, filter_call_error, string_literal, test_call_error};
use super::traverse::{argument, byte_range, filter_accepts_absent, test_accepts_absent};

/// For an argument that can only be passed by name.
const NO_POSITION: usize = usize::MAX;

impl Checker {
    pub(super) fn filter(&mut self, expr: &Expr<'_>, filter: &Filter<'_>) -> Shape {
        let input = match &filter.expr {
            Some(input) if filter_accepts_absent(filter.name) => self.lenient_value(input),
            Some(input) => self.value(input),
            None => Shape::text(),
        };
        let start = expr.span().start_offset as usize;
        if let Some((message, hint)) = filter_call_error(filter.name, &filter.args) {
            return self.report_at(start, start + filter.name.len(), message, hint);
        }
        let args: Vec<Shape> =
            filter.args.iter().map(|arg| self.not_missing(argument(arg))).collect();
        let weight = input.weight + args.iter().map(|arg| arg.weight).sum::<usize>();
        let operand = filter.expr.as_ref().unwrap_or(expr);
        let shape = self.filter_result(operand, input, filter.name, &filter.args, &args);
        // The length of a string that a filter returns is bounded at run time.
        if shape.is_text() && !filter_accepts_absent(filter.name) {
            shape
        } else {
            self.with_weight(expr, shape, weight)
        }
    }

    /// The shape of a filter's result.
    fn filter_result(
        &mut self,
        operand: &Expr<'_>,
        input: Shape,
        name: &str,
        args: &[CallArg<'_>],
        shapes: &[Shape],
    ) -> Shape {
        match name {
            "default" | "d" => {
                let other = shapes.first().cloned().unwrap_or_else(Shape::text);
                let absent = other.null;
                let shape = input.present().or(other.present());
                return if absent { shape.or(Shape::text()) } else { shape };
            }
            "bool" => return Shape::from_type(&Type::Bool),
            "tojson" | "pprint" => return Shape::text(),
            _ => {}
        }
        let input = self.require_present(operand, input);
        let plain = |ty: &Type| matches!(ty, Type::String(_) | Type::Int | Type::Double);
        let (fits, expected) = match name {
            "lower" | "upper" | "title" | "capitalize" | "trim" | "replace" | "indent" | "safe"
            | "escape" | "e" | "string" => (input.all(plain), "a string"),
            "split" | "lines" | "format" => (input.is_text(), "a string"),
            "int" | "float" => {
                (input.all(|ty| plain(ty) || *ty == Type::Bool), "a string or a number")
            }
            "round" | "abs" => (input.is_number(), "a number"),
            "items" | "dictsort" => (input.is_mapping(), "an object"),
            "attr" => (input.is_mapping(), "an object"),
            "length" | "count" => {
                (input.items().is_some() || input.is_text(), "a list, an object or a string")
            }
            "first" | "last" | "reverse" => {
                (input.is_list() || input.is_text(), "a list or a string")
            }
            "list" => (input.items().is_some(), "a list or an object"),
            _ => (input.is_list(), "a list"),
        };
        if !fits {
            let message = format!(
                "'{name}' needs {expected}, but {} is {}",
                describe(operand),
                input.describe()
            );
            let hint = if expected == "a string" { "convert it to JSON: … | tojson" } else { "" };
            return self.report(operand, message, hint);
        }
        let item = || input.items().unwrap_or_else(Shape::any);
        match name {
            "split" | "lines" => Shape::list(Shape::text()),
            "int" | "length" | "count" => Shape::from_type(&Type::Int),
            "float" | "round" => Shape::from_type(&Type::Double),
            "items" | "dictsort" => pairs(&input),
            "first" | "last" if input.is_any() => Shape::any(),
            "first" | "last" if input.is_text() => Shape::text().missing(),
            "first" | "last" => item().missing(),
            "min" | "max" => {
                self.attribute(operand, &item(), argument_at(args, NO_POSITION, "attribute"));
                item().missing()
            }
            "sort" | "unique" => {
                self.attribute(operand, &item(), argument_at(args, NO_POSITION, "attribute"));
                Shape::list(item())
            }
            "join" => {
                self.attribute(operand, &item(), argument_at(args, NO_POSITION, "attribute"));
                Shape::text()
            }
            "sum" => {
                let part = self.attribute(operand, &item(), argument_at(args, 0, "attribute"));
                if !part.is_number() {
                    let message =
                        format!("'sum' needs numbers, but the items are {}", part.describe());
                    return self.report(
                        operand,
                        message,
                        "give the name of the field: sum(attribute='…')",
                    );
                }
                Shape::from_type(&Type::Double)
            }
            "list" => Shape::list(item()),
            "batch" | "slice" => Shape::list(Shape::list(
                shapes.get(1).cloned().map_or_else(item, |fill| item().or(fill)),
            )),
            "select" | "reject" => {
                self.named_test(args, 0);
                Shape::list(item())
            }
            "selectattr" | "rejectattr" => {
                self.attribute(operand, &item(), argument_at(args, 0, ""));
                self.named_test(args, 1);
                Shape::list(item())
            }
            "groupby" => {
                let common = self.attribute(operand, &item(), argument_at(args, 0, "attribute"));
                let common = match argument_at(args, NO_POSITION, "default") {
                    Some(_) => Shape::any(),
                    None => common,
                };
                Shape::list(Shape::from_kind(Kind::Group(
                    Box::new(common),
                    Box::new(Shape::list(item())),
                )))
            }
            "map" => self.map_filter(operand, &item(), args, shapes),
            "chain" | "zip" => {
                let mut lists = vec![item()];
                for (arg, shape) in args.iter().zip(shapes) {
                    let shape = self.require_present(argument(arg), shape.clone());
                    lists.push(match shape.items() {
                        Some(item) if shape.is_list() => item,
                        _ => self.report(
                            argument(arg),
                            format!("'{name}' needs lists, not {}", shape.describe()),
                            "",
                        ),
                    });
                }
                if name == "zip" {
                    Shape::list(Shape::from_kind(Kind::Tuple(lists)))
                } else {
                    Shape::list(lists.into_iter().fold(Shape::never(), Shape::or))
                }
            }
            "attr" => {
                match args
                    .first()
                    .map(argument)
                    .and_then(|arg| string_literal(arg).map(|name| (arg, name)))
                {
                    Some((arg, field)) => {
                        self.field(&describe(operand), &input, field, byte_range(arg))
                    }
                    None if input.all(|ty| matches!(ty, Type::Map(_))) => input.values(),
                    None => input.values().missing(),
                }
            }
            "reverse" | "abs" => input,
            _ => Shape::text(),
        }
    }

    /// The shape of the field that the argument `attribute` names, or of the item itself without one.
    fn attribute(&mut self, operand: &Expr<'_>, item: &Shape, named: Option<&Expr<'_>>) -> Shape {
        let Some(named) = named else { return item.clone() };
        let Some(path) = string_literal(named) else { return Shape::any() };
        let (start, end) = byte_range(named);
        let mut what = format!("an item of {}", describe(operand));
        let mut shape = item.clone();
        for name in path.split(',').next().unwrap_or(path).trim().split('.') {
            if shape.is_absent() {
                let state = if shape.missing { "missing" } else { "null" };
                let hint = "first select the items that have it: … | selectattr('…')";
                return self.report_at(start, end, format!("{what} may be {state} here"), hint);
            }
            shape = if name.parse::<usize>().is_ok() {
                Shape::any()
            } else {
                self.field(&what, &shape, name, (start, end))
            };
            what = format!("'{name}' of {what}");
        }
        shape
    }

    /// The shape of the result of `map`, which returns a field of each item or applies a filter to it.
    fn map_filter(
        &mut self,
        operand: &Expr<'_>,
        item: &Shape,
        args: &[CallArg<'_>],
        shapes: &[Shape],
    ) -> Shape {
        if let Some(attribute) = argument_at(args, NO_POSITION, "attribute") {
            let field = self.attribute(operand, item, Some(attribute));
            return Shape::list(match argument_at(args, NO_POSITION, "default") {
                Some(_) => Shape { missing: false, ..field }.or(Shape::any()),
                None => field,
            });
        }
        let Some((first, name)) = args
            .first()
            .map(argument)
            .and_then(|first| string_literal(first).map(|name| (first, name)))
        else {
            self.report(
                operand,
                "'map' needs the name of a field or of a filter",
                "map(attribute='…') or map('upper')",
            );
            return Shape::list(Shape::any());
        };
        let rest = args.get(1..).unwrap_or_default();
        if let Some((message, hint)) = filter_call_error(name, rest) {
            return self.report(first, message, hint);
        }
        Shape::list(self.filter_result(
            operand,
            item.clone(),
            name,
            rest,
            shapes.get(1..).unwrap_or_default(),
        ))
    }

    /// Checks the test that `select` and similar filters apply to each item.
    fn named_test(&mut self, args: &[CallArg<'_>], at: usize) {
        let Some(name) = args.get(at).map(argument) else { return };
        match string_literal(name) {
            Some(test) => {
                if let Some((message, hint)) =
                    test_call_error(test, args.get(at + 1..).unwrap_or_default())
                {
                    self.report(name, message, hint);
                }
            }
            None => {
                self.report(name, "the name of the test must be a literal", "select('defined')");
            }
        }
    }

    pub(super) fn test(&mut self, expr: &Expr<'_>, test: &Test<'_>) -> Shape {
        let start = expr.span().start_offset as usize;
        if let Some((message, hint)) = test_call_error(test.name, &test.args) {
            self.value(&test.expr);
            self.report_at(start, start + test.name.len(), message, hint);
            return Shape::from_type(&Type::Bool);
        }
        let input = if test_accepts_absent(test.name) {
            self.lenient_value(&test.expr)
        } else {
            self.value(&test.expr)
        };
        let args: Vec<Shape> =
            test.args.iter().map(|arg| self.not_missing(argument(arg))).collect();
        match test.name {
            "startingwith" | "endingwith" => {
                let input = self.require_present(&test.expr, input);
                if !input.is_text() || !args.iter().all(|arg| arg.is_text() && !arg.null) {
                    self.report(expr, format!("'{}' compares strings", test.name), "");
                }
            }
            "in" if args
                .iter()
                .any(|arg| arg.null || (arg.items().is_none() && !arg.is_text())) =>
            {
                self.report(expr, "'in' needs a list, an object or a string", "");
            }
            "filter" | "test" => {
                let input = self.require_present(&test.expr, input);
                if !input.is_text() {
                    self.report(expr, format!("'{}' needs a name", test.name), "");
                }
            }
            // The other tests accept every value, including an absent one.
            _ => {}
        }
        Shape::from_type(&Type::Bool)
    }
}
