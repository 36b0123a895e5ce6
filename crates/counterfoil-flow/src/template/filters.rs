//! Holds filters and tests to the values they are used on.

use counterfoil_contract::Type;
use minijinja::machinery::ast::{CallArg, Expr, Filter, Test};

use super::calls::pairs;
use super::check::{Checker, described};
use super::shape::{Kind, Shape};
use super::tree::{argument, is_soft_filter, is_soft_test, place};
use super::vocabulary::{constant, misused_filter, misused_test, passed};

/// No argument is passed at this place.
const NOWHERE: usize = usize::MAX;

impl Checker {
    pub(super) fn filter(&mut self, expr: &Expr<'_>, filter: &Filter<'_>) -> Shape {
        let input = match &filter.expr {
            Some(input) if is_soft_filter(filter.name) => self.soft(input),
            Some(input) => self.value(input),
            None => Shape::text(),
        };
        let start = expr.span().start_offset as usize;
        if let Some((message, hint)) = misused_filter(filter.name, &filter.args) {
            return self.refuse_at(start, start + filter.name.len(), message, hint);
        }
        let args: Vec<Shape> = filter.args.iter().map(|arg| self.there(argument(arg))).collect();
        let weight = input.weight + args.iter().map(|arg| arg.weight).sum::<usize>();
        let of = filter.expr.as_ref().unwrap_or(expr);
        let shape = self.filtered(of, input, filter.name, &filter.args, &args);
        // The text that a filter makes is bounded when it runs.
        if shape.is_text() && !is_soft_filter(filter.name) {
            shape
        } else {
            self.weighed(expr, shape, weight)
        }
    }

    /// What a filter makes of a value.
    fn filtered(
        &mut self,
        of: &Expr<'_>,
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
            "bool" => return Shape::of(&Type::Bool),
            "tojson" | "pprint" => return Shape::text(),
            _ => {}
        }
        let input = self.need(of, input);
        let plain = |ty: &Type| matches!(ty, Type::String(_) | Type::Int | Type::Double);
        let (fits, wanted) = match name {
            "lower" | "upper" | "title" | "capitalize" | "trim" | "replace" | "indent" | "safe"
            | "escape" | "e" | "string" => (input.all(plain), "a text"),
            "split" | "lines" | "format" => (input.is_text(), "a text"),
            "int" | "float" => {
                (input.all(|ty| plain(ty) || *ty == Type::Bool), "a text or a number")
            }
            "round" | "abs" => (input.is_number(), "a number"),
            "items" | "dictsort" => (input.is_mapping(), "an object"),
            "attr" => (input.is_mapping(), "an object"),
            "length" | "count" => {
                (input.items().is_some() || input.is_text(), "a list, an object or a text")
            }
            "first" | "last" | "reverse" => {
                (input.is_list() || input.is_text(), "a list or a text")
            }
            "list" => (input.items().is_some(), "a list or an object"),
            _ => (input.is_list(), "a list"),
        };
        if !fits {
            let message =
                format!("'{name}' takes {wanted}, and {} is {}", described(of), input.name());
            let hint = if wanted == "a text" { "write it as JSON: … | tojson" } else { "" };
            return self.refuse(of, message, hint);
        }
        let item = || input.items().unwrap_or_else(Shape::any);
        match name {
            "split" | "lines" => Shape::list(Shape::text()),
            "int" | "length" | "count" => Shape::of(&Type::Int),
            "float" | "round" => Shape::of(&Type::Double),
            "items" | "dictsort" => pairs(&input),
            "first" | "last" if input.is_any() => Shape::any(),
            "first" | "last" if input.is_text() => Shape::text().missing(),
            "first" | "last" => item().missing(),
            "min" | "max" => {
                self.attribute(of, &item(), passed(args, NOWHERE, "attribute"));
                item().missing()
            }
            "sort" | "unique" => {
                self.attribute(of, &item(), passed(args, NOWHERE, "attribute"));
                Shape::list(item())
            }
            "join" => {
                self.attribute(of, &item(), passed(args, NOWHERE, "attribute"));
                Shape::text()
            }
            "sum" => {
                let part = self.attribute(of, &item(), passed(args, 0, "attribute"));
                if !part.is_number() {
                    let message = format!("'sum' adds numbers, and here are {}", part.name());
                    return self.refuse(of, message, "name the field: sum(attribute='…')");
                }
                Shape::of(&Type::Double)
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
                self.attribute(of, &item(), passed(args, 0, ""));
                self.named_test(args, 1);
                Shape::list(item())
            }
            "groupby" => {
                let common = self.attribute(of, &item(), passed(args, 0, "attribute"));
                let common = match passed(args, NOWHERE, "default") {
                    Some(_) => Shape::any(),
                    None => common,
                };
                Shape::list(Shape::kind(Kind::Group(
                    Box::new(common),
                    Box::new(Shape::list(item())),
                )))
            }
            "map" => self.mapped(of, &item(), args, shapes),
            "chain" | "zip" => {
                let mut lists = vec![item()];
                for (arg, shape) in args.iter().zip(shapes) {
                    let shape = self.need(argument(arg), shape.clone());
                    lists.push(match shape.items() {
                        Some(item) if shape.is_list() => item,
                        _ => self.refuse(
                            argument(arg),
                            format!("'{name}' takes lists, not {}", shape.name()),
                            "",
                        ),
                    });
                }
                if name == "zip" {
                    Shape::list(Shape::kind(Kind::Tuple(lists)))
                } else {
                    Shape::list(lists.into_iter().fold(Shape::never(), Shape::or))
                }
            }
            "attr" => {
                match args
                    .first()
                    .map(argument)
                    .and_then(|arg| constant(arg).map(|name| (arg, name)))
                {
                    Some((arg, field)) => self.field(&described(of), &input, field, place(arg)),
                    None if input.all(|ty| matches!(ty, Type::Map(_))) => input.values(),
                    None => input.values().missing(),
                }
            }
            "reverse" | "abs" => input,
            _ => Shape::text(),
        }
    }

    /// The field of a list's items that a filter is told to look at; the item itself if it is told
    /// none.
    fn attribute(&mut self, of: &Expr<'_>, item: &Shape, named: Option<&Expr<'_>>) -> Shape {
        let Some(named) = named else { return item.clone() };
        let Some(path) = constant(named) else { return Shape::any() };
        let (start, end) = place(named);
        let mut what = format!("an item of {}", described(of));
        let mut shape = item.clone();
        for name in path.split(',').next().unwrap_or(path).trim().split('.') {
            if shape.is_absent() {
                let state = if shape.missing { "missing" } else { "null" };
                let hint = "choose the items that have it first: … | selectattr('…')";
                return self.refuse_at(start, end, format!("{what} may be {state} here"), hint);
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

    /// `map` takes a field of each item, or runs each through another filter.
    fn mapped(
        &mut self,
        of: &Expr<'_>,
        item: &Shape,
        args: &[CallArg<'_>],
        shapes: &[Shape],
    ) -> Shape {
        if let Some(attribute) = passed(args, NOWHERE, "attribute") {
            let field = self.attribute(of, item, Some(attribute));
            return Shape::list(match passed(args, NOWHERE, "default") {
                Some(_) => Shape { missing: false, ..field }.or(Shape::any()),
                None => field,
            });
        }
        let Some((first, name)) =
            args.first().map(argument).and_then(|first| constant(first).map(|name| (first, name)))
        else {
            self.refuse(
                of,
                "'map' needs the name of a field or of a filter",
                "map(attribute='…') or map('upper')",
            );
            return Shape::list(Shape::any());
        };
        let rest = args.get(1..).unwrap_or_default();
        if let Some((message, hint)) = misused_filter(name, rest) {
            return self.refuse(first, message, hint);
        }
        Shape::list(self.filtered(
            of,
            item.clone(),
            name,
            rest,
            shapes.get(1..).unwrap_or_default(),
        ))
    }

    /// The test that `select` and its kin run on each item.
    fn named_test(&mut self, args: &[CallArg<'_>], at: usize) {
        let Some(name) = args.get(at).map(argument) else { return };
        match constant(name) {
            Some(test) => {
                if let Some((message, hint)) =
                    misused_test(test, args.get(at + 1..).unwrap_or_default())
                {
                    self.refuse(name, message, hint);
                }
            }
            None => {
                self.refuse(
                    name,
                    "the name of the test has to stand in the template",
                    "select('defined')",
                );
            }
        }
    }

    pub(super) fn test(&mut self, expr: &Expr<'_>, test: &Test<'_>) -> Shape {
        let start = expr.span().start_offset as usize;
        if let Some((message, hint)) = misused_test(test.name, &test.args) {
            self.value(&test.expr);
            self.refuse_at(start, start + test.name.len(), message, hint);
            return Shape::of(&Type::Bool);
        }
        let input =
            if is_soft_test(test.name) { self.soft(&test.expr) } else { self.value(&test.expr) };
        let args: Vec<Shape> = test.args.iter().map(|arg| self.there(argument(arg))).collect();
        match test.name {
            "startingwith" | "endingwith" => {
                let input = self.need(&test.expr, input);
                if !input.is_text() || !args.iter().all(|arg| arg.is_text() && !arg.null) {
                    self.refuse(expr, format!("'{}' compares texts", test.name), "");
                }
            }
            "in" if args
                .iter()
                .any(|arg| arg.null || (arg.items().is_none() && !arg.is_text())) =>
            {
                self.refuse(expr, "'in' looks in a list, an object or a text", "");
            }
            "filter" | "test" => {
                let input = self.need(&test.expr, input);
                if !input.is_text() {
                    self.refuse(expr, format!("'{}' takes a name", test.name), "");
                }
            }
            // The others answer for any value, also for one that is absent.
            _ => {}
        }
        Shape::of(&Type::Bool)
    }
}
