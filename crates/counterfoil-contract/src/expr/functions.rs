//! The functions there are, and the checks on their arguments.

use super::assign::with_article;
use super::calls::{is_number, is_text};
use super::check::{Checker, View, every, joined, shown};
use super::eval::is_pattern;
use super::library::LONGEST_RANGE;
use super::scope::Scope;
use super::types::Type;
use crate::suggest::did_you_mean;
use cel::common::ast::{CallExpr, Expr as Ast, IdedExpr, LiteralValue};

/// How a function is called.
enum Way {
    /// `function(…)`, with so many arguments.
    Function(usize),
    /// `value.function(…)`, with so many arguments besides the value.
    Method(usize),
    /// Either way, with so many arguments in all.
    Either(usize),
    /// As the parser expands it, which leaves only wrong calls to be looked at here.
    Expanded,
}

/// The functions there are, how each is called, and how that is written.
const FUNCTIONS: [(&str, Way, &str); 32] = [
    ("size", Way::Either(1), "size(value)"),
    ("contains", Way::Method(1), "text.contains(part)"),
    ("startsWith", Way::Method(1), "text.startsWith(part)"),
    ("endsWith", Way::Method(1), "text.endsWith(part)"),
    ("matches", Way::Either(2), "text.matches(pattern)"),
    ("indexOf", Way::Method(1), "text.indexOf(part)"),
    ("substring", Way::Method(2), "text.substring(from, to)"),
    ("split", Way::Method(1), "text.split(separator)"),
    ("lines", Way::Method(0), "text.lines()"),
    ("trim", Way::Method(0), "text.trim()"),
    ("lowerAscii", Way::Method(0), "text.lowerAscii()"),
    ("upperAscii", Way::Method(0), "text.upperAscii()"),
    ("replace", Way::Method(2), "text.replace(part, by)"),
    ("slug", Way::Method(0), "text.slug()"),
    ("join", Way::Method(1), "list.join(separator)"),
    ("flatten", Way::Method(0), "list.flatten()"),
    ("distinct", Way::Method(0), "list.distinct()"),
    ("slice", Way::Method(2), "list.slice(from, to)"),
    ("sum", Way::Method(0), "list.sum()"),
    ("put", Way::Method(2), "object.put(key, value)"),
    ("range", Way::Function(1), "range(count)"),
    ("json", Way::Function(1), "json(value)"),
    ("int", Way::Function(1), "int(value)"),
    ("double", Way::Function(1), "double(value)"),
    ("string", Way::Function(1), "string(value)"),
    ("bool", Way::Function(1), "bool(value)"),
    ("has", Way::Expanded, "has(object.field)"),
    ("all", Way::Expanded, "list.all(x, condition)"),
    ("exists", Way::Expanded, "list.exists(x, condition)"),
    ("exists_one", Way::Expanded, "list.exists_one(x, condition)"),
    ("map", Way::Expanded, "list.map(x, value)"),
    ("filter", Way::Expanded, "list.filter(x, condition)"),
];

impl Checker<'_> {
    pub(super) fn function(&mut self, id: u64, call: &CallExpr, scope: &Scope) -> View {
        let name = call.func_name.as_str();
        let Some((_, way, form)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let known = FUNCTIONS.iter().map(|(name, ..)| *name);
            let hint = did_you_mean(name, known.clone())
                .unwrap_or_else(|| format!("known: {}", known.collect::<Vec<_>>().join(", ")));
            self.report(id, format!("unknown function '{name}'"), hint);
            return View::of(Type::Any);
        };
        let args: Vec<&IdedExpr> =
            call.target.as_deref().into_iter().chain(call.args.iter()).collect();
        let fits = match *way {
            Way::Function(count) => call.target.is_none() && call.args.len() == count,
            Way::Method(count) => call.target.is_some() && call.args.len() == count,
            Way::Either(count) => args.len() == count,
            Way::Expanded => false,
        };
        if !fits {
            self.report(id, format!("'{name}' is written another way"), format!("write {form}"));
            return View::of(Type::Any);
        }
        if name == "json" {
            // Null is a value like any other there.
            for arg in args {
                self.expr(arg, scope);
            }
            return View::of(Type::text());
        }
        let types: Vec<Type> = args
            .iter()
            .map(|arg| {
                let ty = self.expr(arg, scope).ty;
                let ty = self.solid(arg, ty);
                // What is put is kept, and a literal fits where only some words do.
                if name == "put" { ty } else { shown(arg, ty) }
            })
            .collect();
        View::of(match (name, types.as_slice()) {
            ("size", _) => self.size(id, &types),
            ("matches", _) => self.pattern(id, &args, &types),
            ("contains" | "startsWith" | "endsWith", _) => {
                self.on_texts(id, name, &types, Type::Bool)
            }
            ("indexOf", _) => self.on_texts(id, name, &types, Type::Int),
            ("split" | "lines", _) => {
                self.on_texts(id, name, &types, Type::List(Type::text().into()))
            }
            ("trim" | "lowerAscii" | "upperAscii" | "replace" | "slug", _) => {
                self.on_texts(id, name, &types, Type::text())
            }
            ("substring", [text, places @ ..]) => {
                self.integers(id, name, places);
                self.on_texts(id, name, std::slice::from_ref(text), Type::text())
            }
            ("join", [list, separator]) => {
                self.joined_texts(id, list);
                self.on_texts(id, name, std::slice::from_ref(separator), Type::text())
            }
            ("distinct", [list]) => Type::List(self.items(id, name, list).into()),
            ("slice", [list, places @ ..]) => {
                self.integers(id, name, places);
                Type::List(self.items(id, name, list).into())
            }
            ("flatten", [list]) => self.flattened(id, list),
            ("sum", [list]) => self.sum(id, list),
            ("put", [object, key, value]) => self.put(id, object, key, value),
            ("range", _) => self.range(id, &args, &types),
            _ => self.converted(id, name, &types),
        })
    }

    fn size(&mut self, id: u64, types: &[Type]) -> Type {
        if let Some(bad) = types.iter().find(|ty| !every(ty, has_size)) {
            self.report(
                id,
                format!("{} has no size", with_article(bad)),
                "size() takes a string, list or object",
            );
        }
        Type::Int
    }

    fn pattern(&mut self, id: u64, args: &[&IdedExpr], types: &[Type]) -> Type {
        let ty = self.on_texts(id, "matches", types, Type::Bool);
        if let Some(Ast::Literal(LiteralValue::String(pattern))) = args.last().map(|arg| &arg.expr)
            && let Err(why) = is_pattern(pattern.inner())
        {
            self.report(id, why, "write a regular expression");
        }
        ty
    }

    fn converted(&mut self, id: u64, name: &str, types: &[Type]) -> Type {
        for ty in types {
            if !every(ty, |ty| converts(ty, name)) {
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

    /// A function all of whose arguments are texts.
    fn on_texts(&mut self, id: u64, name: &str, types: &[Type], gives: Type) -> Type {
        if let Some(bad) = types.iter().find(|ty| !every(ty, is_text)) {
            self.report(
                id,
                format!("'{name}' works on strings, not on {bad}"),
                "convert with string()",
            );
        }
        gives
    }

    /// Arguments that are places or counts.
    fn integers(&mut self, id: u64, name: &str, types: &[Type]) {
        if let Some(bad) = types.iter().find(|ty| !every(ty, |ty| *ty == Type::Int)) {
            self.report(
                id,
                format!("'{name}' takes integers, not {}", with_article(bad)),
                "convert with int()",
            );
        }
    }

    /// The items of a list that a function works on.
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
        joined(items)
    }

    /// The same where no item may be null.
    fn solid_items(&mut self, id: u64, name: &str, list: &Type) -> Type {
        let items = self.items(id, name, list);
        if !items.alternatives().contains(&Type::Null) {
            return items;
        }
        self.report(
            id,
            format!("'{name}' works on every item, and items may be null here"),
            "leave those out: list.filter(x, x != null)",
        );
        Type::Any
    }

    fn joined_texts(&mut self, id: u64, list: &Type) {
        if !every(&self.solid_items(id, "join", list), is_text) {
            self.report(
                id,
                format!("'join' works on lists of strings, not on {list}"),
                "make them strings first: list.map(x, string(x))",
            );
        }
    }

    fn flattened(&mut self, id: u64, list: &Type) -> Type {
        let items = self.solid_items(id, "flatten", list);
        let is_list = |ty: &Type| matches!(ty, Type::List(_));
        if !every(&items, is_list) {
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
        Type::List(joined(inner.collect()).into())
    }

    fn sum(&mut self, id: u64, list: &Type) -> Type {
        let items = self.solid_items(id, "sum", list);
        if !every(&items, is_number) {
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

    /// One more member: only where the keys are data, since those of other objects are known.
    fn put(&mut self, id: u64, object: &Type, key: &Type, value: &Type) -> Type {
        self.on_texts(id, "put", std::slice::from_ref(key), Type::text());
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
        Type::Map(joined(values).into())
    }

    fn range(&mut self, id: u64, args: &[&IdedExpr], types: &[Type]) -> Type {
        self.integers(id, "range", types);
        if let [IdedExpr { expr: Ast::Literal(LiteralValue::Int(count)), .. }] = args
            && *count.inner() > LONGEST_RANGE
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
