//! The functions of the expression language and the type checks of their arguments.

use super::assign::with_article;
use super::calls::{is_number, is_text};
use super::check::{Checker, Inferred, all_alternatives, display_type, union_of};
use super::eval::validate_pattern;
use super::library::MAX_RANGE;
use super::scope::Scope;
use super::types::Type;
use crate::suggest::did_you_mean;
use cel::common::ast::{CallExpr, Expr as Ast, IdedExpr, LiteralValue};

/// The ways in which a function can be called.
enum CallStyle {
    /// `function(…)`, with this number of arguments.
    Function(usize),
    /// `value.function(…)`, with this number of arguments in the parentheses.
    Method(usize),
    /// As a function or as a method, with this number of arguments including the value.
    Either(usize),
    /// A macro. The parser expands correct calls, so a call that is left over is wrong.
    Expanded,
}

/// All functions: the name, how the function is called, and an example of a call.
const FUNCTIONS: [(&str, CallStyle, &str); 40] = [
    ("size", CallStyle::Either(1), "size(value)"),
    ("contains", CallStyle::Method(1), "text.contains(part)"),
    ("startsWith", CallStyle::Method(1), "text.startsWith(part)"),
    ("endsWith", CallStyle::Method(1), "text.endsWith(part)"),
    ("matches", CallStyle::Either(2), "text.matches(pattern)"),
    ("findAll", CallStyle::Method(1), "text.findAll(pattern)"),
    ("indexOf", CallStyle::Method(1), "text.indexOf(part)"),
    ("substring", CallStyle::Method(2), "text.substring(from, to)"),
    ("split", CallStyle::Method(1), "text.split(separator)"),
    ("lines", CallStyle::Method(0), "text.lines()"),
    ("openTasks", CallStyle::Method(0), "text.openTasks()"),
    ("tickedTasks", CallStyle::Method(0), "text.tickedTasks()"),
    ("trim", CallStyle::Method(0), "text.trim()"),
    ("lowerAscii", CallStyle::Method(0), "text.lowerAscii()"),
    ("upperAscii", CallStyle::Method(0), "text.upperAscii()"),
    ("replace", CallStyle::Method(2), "text.replace(part, by)"),
    ("slug", CallStyle::Method(0), "text.slug()"),
    ("join", CallStyle::Method(1), "list.join(separator)"),
    ("flatten", CallStyle::Method(0), "list.flatten()"),
    ("distinct", CallStyle::Method(0), "list.distinct()"),
    ("slice", CallStyle::Method(2), "list.slice(from, to)"),
    ("sum", CallStyle::Method(0), "list.sum()"),
    ("put", CallStyle::Method(2), "object.put(key, value)"),
    ("range", CallStyle::Function(1), "range(count)"),
    ("json", CallStyle::Function(1), "json(value)"),
    ("leavesOutSevere", CallStyle::Function(2), "leavesOutSevere(value, findings)"),
    ("reportsFailure", CallStyle::Function(1), "reportsFailure(value)"),
    ("reportsNothing", CallStyle::Function(1), "reportsNothing(value)"),
    ("reportsRejection", CallStyle::Function(1), "reportsRejection(value)"),
    ("reportsSevere", CallStyle::Function(1), "reportsSevere(value)"),
    ("int", CallStyle::Function(1), "int(value)"),
    ("double", CallStyle::Function(1), "double(value)"),
    ("string", CallStyle::Function(1), "string(value)"),
    ("bool", CallStyle::Function(1), "bool(value)"),
    ("has", CallStyle::Expanded, "has(object.field)"),
    ("all", CallStyle::Expanded, "list.all(x, condition)"),
    ("exists", CallStyle::Expanded, "list.exists(x, condition)"),
    ("exists_one", CallStyle::Expanded, "list.exists_one(x, condition)"),
    ("map", CallStyle::Expanded, "list.map(x, value)"),
    ("filter", CallStyle::Expanded, "list.filter(x, condition)"),
];

impl Checker<'_> {
    pub(super) fn function(&mut self, id: u64, call: &CallExpr, scope: &Scope) -> Inferred {
        let name = call.func_name.as_str();
        let Some((_, style, form)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let known = FUNCTIONS.iter().map(|(name, ..)| *name);
            let hint = did_you_mean(name, known.clone())
                .unwrap_or_else(|| format!("known: {}", known.collect::<Vec<_>>().join(", ")));
            self.report(id, format!("unknown function '{name}'"), hint);
            return Inferred::from_type(Type::Any);
        };
        let args: Vec<&IdedExpr> =
            call.target.as_deref().into_iter().chain(call.args.iter()).collect();
        let fits = match *style {
            CallStyle::Function(count) => call.target.is_none() && call.args.len() == count,
            CallStyle::Method(count) => call.target.is_some() && call.args.len() == count,
            CallStyle::Either(count) => args.len() == count,
            CallStyle::Expanded => false,
        };
        if !fits {
            self.report(
                id,
                format!("'{name}' cannot be called like this"),
                format!("write {form}"),
            );
            return Inferred::from_type(Type::Any);
        }
        // These take any value, null too.
        let of_any_value = match name {
            "json" => Some(Type::text()),
            "leavesOutSevere" | "reportsFailure" | "reportsNothing" | "reportsRejection"
            | "reportsSevere" => Some(Type::Bool),
            _ => None,
        };
        if let Some(ty) = of_any_value {
            for arg in args {
                self.expr(arg, scope);
            }
            return Inferred::from_type(ty);
        }
        let types: Vec<Type> = args
            .iter()
            .map(|arg| {
                let ty = self.expr(arg, scope).ty;
                let ty = self.require_non_null(arg, ty);
                // The map keeps the exact type of the value: a literal stays assignable to an enum.
                if name == "put" { ty } else { display_type(arg, ty) }
            })
            .collect();
        Inferred::from_type(match (name, types.as_slice()) {
            ("size", _) => self.size(id, &types),
            ("matches", _) => self.pattern(id, name, &args, &types, Type::Bool),
            ("findAll", _) => {
                self.pattern(id, name, &args, &types, Type::List(Type::text().into()))
            }
            ("contains" | "startsWith" | "endsWith", _) => {
                self.string_function(id, name, &types, Type::Bool)
            }
            ("indexOf", _) => self.string_function(id, name, &types, Type::Int),
            ("split" | "lines" | "openTasks" | "tickedTasks", _) => {
                self.string_function(id, name, &types, Type::List(Type::text().into()))
            }
            ("trim" | "lowerAscii" | "upperAscii" | "replace" | "slug", _) => {
                self.string_function(id, name, &types, Type::text())
            }
            ("substring", [text, positions @ ..]) => {
                self.require_integers(id, name, positions);
                self.string_function(id, name, std::slice::from_ref(text), Type::text())
            }
            ("join", [list, separator]) => {
                self.check_join(id, list);
                self.string_function(id, name, std::slice::from_ref(separator), Type::text())
            }
            ("distinct", [list]) => Type::List(self.items(id, name, list).into()),
            ("slice", [list, positions @ ..]) => {
                self.require_integers(id, name, positions);
                Type::List(self.items(id, name, list).into())
            }
            ("flatten", [list]) => self.flatten(id, list),
            ("sum", [list]) => self.sum(id, list),
            ("put", [object, key, value]) => self.put(id, object, key, value),
            ("range", _) => self.range(id, &args, &types),
            _ => self.conversion(id, name, &types),
        })
    }

    fn size(&mut self, id: u64, types: &[Type]) -> Type {
        if let Some(bad) = types.iter().find(|ty| !all_alternatives(ty, has_size)) {
            self.report(
                id,
                format!("{} has no size", with_article(bad)),
                "size() takes a string, list or object",
            );
        }
        Type::Int
    }

    /// Checks a function whose last argument is a regular expression.
    fn pattern(
        &mut self,
        id: u64,
        name: &str,
        args: &[&IdedExpr],
        types: &[Type],
        result: Type,
    ) -> Type {
        let ty = self.string_function(id, name, types, result);
        if let Some(Ast::Literal(LiteralValue::String(pattern))) = args.last().map(|arg| &arg.expr)
            && let Err(why) = validate_pattern(pattern.inner())
        {
            self.report(id, why, "write a regular expression");
        }
        ty
    }

    fn conversion(&mut self, id: u64, name: &str, types: &[Type]) -> Type {
        for ty in types {
            if !all_alternatives(ty, |ty| converts(ty, name)) {
                self.report(
                    id,
                    format!("{name}() cannot convert {ty}"),
                    "convert strings and numbers",
                );
            }
        }
        match name {
            "int" => Type::Int,
            "double" => Type::Double,
            "bool" => Type::Bool,
            _ => Type::text(),
        }
    }

    /// Checks a function whose arguments are all strings.
    fn string_function(&mut self, id: u64, name: &str, types: &[Type], result: Type) -> Type {
        if let Some(bad) = types.iter().find(|ty| !all_alternatives(ty, is_text)) {
            self.report(
                id,
                format!("'{name}' works on strings, not on {bad}"),
                "convert with string()",
            );
        }
        result
    }

    /// Checks arguments that are positions or counts.
    fn require_integers(&mut self, id: u64, name: &str, types: &[Type]) {
        if let Some(bad) = types.iter().find(|ty| !all_alternatives(ty, |ty| *ty == Type::Int)) {
            self.report(
                id,
                format!("'{name}' takes integers, not {}", with_article(bad)),
                "convert with int()",
            );
        }
    }

    /// The item type of a list argument.
    fn items(&mut self, id: u64, name: &str, list: &Type) -> Type {
        let mut items = Vec::new();
        for alternative in list.alternatives() {
            items.push(match alternative {
                Type::List(items) => items.as_ref().clone(),
                Type::Any => Type::Any,
                _ => {
                    self.report(
                        id,
                        format!("'{name}' works on lists, not on {list}"),
                        "use it on a list",
                    );
                    return Type::Any;
                }
            });
        }
        union_of(items)
    }

    /// The item type of a list argument whose items must not be null.
    fn non_null_items(&mut self, id: u64, name: &str, list: &Type) -> Type {
        let items = self.items(id, name, list);
        if !items.alternatives().contains(&Type::Null) {
            return items;
        }
        self.report(
            id,
            format!("'{name}' works on every item, and items may be null here"),
            "filter them out: list.filter(x, x != null)",
        );
        Type::Any
    }

    fn check_join(&mut self, id: u64, list: &Type) {
        if !all_alternatives(&self.non_null_items(id, "join", list), is_text) {
            self.report(
                id,
                format!("'join' works on lists of strings, not on {list}"),
                "make them strings first: list.map(x, string(x))",
            );
        }
    }

    fn flatten(&mut self, id: u64, list: &Type) -> Type {
        let items = self.non_null_items(id, "flatten", list);
        let is_list = |ty: &Type| matches!(ty, Type::List(_));
        if !all_alternatives(&items, is_list) {
            self.report(
                id,
                format!("'flatten' works on lists of lists, not on {list}"),
                "leave it out",
            );
            return Type::Any;
        }
        let inner = items.alternatives().iter().map(|ty| match ty {
            Type::List(inner) => inner.as_ref().clone(),
            _ => Type::Any,
        });
        Type::List(union_of(inner.collect()).into())
    }

    fn sum(&mut self, id: u64, list: &Type) -> Type {
        let items = self.non_null_items(id, "sum", list);
        if !all_alternatives(&items, is_number) {
            self.report(
                id,
                format!("'sum' works on lists of numbers, not on {list}"),
                "take numbers first: list.map(x, x.amount)",
            );
            return Type::Any;
        }
        match items.alternatives() {
            [Type::Int] | [] => Type::Int,
            [Type::Double] => {
                self.notes.sums_of_numbers.insert(id);
                Type::Double
            }
            alternatives if alternatives.contains(&Type::Any) => Type::Any,
            _ => {
                self.report(
                    id,
                    "integer and number do not mix".into(),
                    "make them one: list.map(x, double(x))",
                );
                Type::Any
            }
        }
    }

    /// Checks `put`, which works only on maps: the fields of other objects are fixed by their type.
    fn put(&mut self, id: u64, object: &Type, key: &Type, value: &Type) -> Type {
        self.string_function(id, "put", std::slice::from_ref(key), Type::text());
        let mut values = vec![value.clone()];
        for alternative in object.alternatives() {
            match alternative {
                Type::Map(known) => values.push(known.as_ref().clone()),
                Type::Any => values.push(Type::Any),
                _ => {
                    self.report(
                        id,
                        format!(
                            "'put' works on objects whose keys are data, not on {}",
                            with_article(object)
                        ),
                        "declare the type as { type: object, additionalProperties: … }",
                    );
                    return Type::Any;
                }
            }
        }
        Type::Map(union_of(values).into())
    }

    fn range(&mut self, id: u64, args: &[&IdedExpr], types: &[Type]) -> Type {
        self.require_integers(id, "range", types);
        if let [IdedExpr { expr: Ast::Literal(LiteralValue::Int(count)), .. }] = args
            && *count.inner() > MAX_RANGE
        {
            self.report(
                id,
                format!("range() gives at most 10,000 items, not {}", count.inner()),
                "loop over a list instead",
            );
        }
        Type::List(Type::Int.into())
    }
}

fn converts(ty: &Type, function: &str) -> bool {
    match ty {
        Type::String(_) => true,
        Type::Int | Type::Double => function != "bool",
        Type::Bool => matches!(function, "bool" | "string"),
        _ => false,
    }
}

fn has_size(ty: &Type) -> bool {
    matches!(ty, Type::String(_) | Type::List(_) | Type::Map(_) | Type::Object(_))
}
