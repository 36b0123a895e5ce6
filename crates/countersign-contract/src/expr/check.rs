//! The type checker over CEL's syntax tree: unknown fields, wrong enum values, comparisons of different types, and
//! optional fields read without a guard that proves they are there.

use super::eval::ENV;
use super::path::{Path, Step};
use super::scope::{Fact, Facts, Proof, Scope};
use super::types::Type;
use crate::suggest::did_you_mean;
use cel::Program;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr as Ast, IdedExpr, LiteralValue, SelectExpr, operators as op,
};

/// Something wrong in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprProblem {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// The characters concerned, as a range of the source.
    pub start: usize,
    /// One behind the last.
    pub end: usize,
}

/// An expression that holds together.
#[derive(Debug)]
pub struct Checked {
    /// Its type.
    pub ty: Type,
    /// The field paths it reads, such as `result.checks`, in the order they stand.
    pub reads: Vec<String>,
    /// The same with variables read as a whole, and without what only leads to a place.
    pub(super) paths: Vec<Path>,
    pub(super) if_true: Facts,
    pub(super) if_false: Facts,
    pub(super) program: Program,
}

impl Proof for Checked {
    fn when_true(&self) -> &Facts {
        &self.if_true
    }

    fn when_false(&self) -> &Facts {
        &self.if_false
    }
}

impl Checked {
    pub(crate) fn into_program(self) -> Program {
        self.program
    }
}

/// Parses an expression and checks it against the types of its variables; all problems at once.
pub fn check(source: &str, scope: &Scope) -> Result<Checked, Vec<ExprProblem>> {
    let end = source.chars().count();
    if source.len() > 10_000 {
        return Err(vec![problem("the expression is too long", "keep it under 10,000 bytes", 0, end)]);
    }
    let program = ENV.compile(source).map_err(|errors| {
        errors
            .errors
            .iter()
            .map(|error| {
                let column = usize::try_from(error.pos.1).unwrap_or(1).saturating_sub(1).min(end);
                problem(&error.msg, "see the CEL language definition", column, (column + 1).min(end.max(1)))
            })
            .collect::<Vec<_>>()
    })?;
    let mut checker =
        Checker { program: &program, problems: Vec::new(), reads: Vec::new(), paths: Vec::new() };
    let view = checker.expr(program.expression(), scope);
    let (problems, reads, paths) = (checker.problems, checker.reads, checker.paths);
    if problems.is_empty() {
        Ok(Checked { ty: view.ty, reads, paths, if_true: view.if_true, if_false: view.if_false, program })
    } else {
        Err(problems)
    }
}

fn problem(message: &str, hint: &str, start: usize, end: usize) -> ExprProblem {
    ExprProblem { message: message.to_owned(), hint: hint.to_owned(), start, end }
}

/// What is known of a subexpression.
struct View {
    ty: Type,
    if_true: Facts,
    if_false: Facts,
}

impl View {
    fn of(ty: Type) -> Self {
        Self { ty, if_true: Facts::default(), if_false: Facts::default() }
    }
}

struct Checker<'p> {
    program: &'p Program,
    problems: Vec<ExprProblem>,
    reads: Vec<String>,
    paths: Vec<Path>,
}

impl Checker<'_> {
    fn report(&mut self, at: u64, message: String, hint: impl Into<String>) {
        let (start, end) = self
            .program
            .source_info()
            .offset_for(at)
            .map_or((0, 1), |(start, stop)| (start as usize, stop as usize + 1));
        self.problems.push(ExprProblem { message, hint: hint.into(), start, end: end.max(start + 1) });
    }

    fn reads_path(&mut self, path: &Path, scope: &Scope) {
        if scope.local.contains(&path.root) {
            return;
        }
        if !self.paths.contains(path) {
            self.paths.push(path.clone());
        }
        let legacy: Vec<&str> = std::iter::once(path.root.as_str()).chain(path.fields()).collect();
        let legacy = legacy.join(".");
        if !path.steps.is_empty() && !self.reads.contains(&legacy) {
            self.reads.push(legacy);
        }
    }

    fn expr(&mut self, expr: &IdedExpr, scope: &Scope) -> View {
        match &expr.expr {
            Ast::Ident(name) => match scope.variables.get(name) {
                Some(ty) => {
                    self.reads_path(&Path { root: name.clone(), steps: Vec::new() }, scope);
                    View::of(ty.clone())
                }
                None => {
                    let names = scope.variables.keys().map(String::as_str);
                    let hint = did_you_mean(name, names.clone())
                        .unwrap_or_else(|| format!("known: {}", names.collect::<Vec<_>>().join(", ")));
                    self.report(expr.id, format!("unknown variable '{name}'"), hint);
                    View::of(Type::Any)
                }
            },
            Ast::Literal(literal) => View::of(literal_type(literal)),
            Ast::Select(select) => self.select(expr.id, select, scope),
            Ast::Call(call) => self.call(expr.id, call, scope),
            Ast::List(list) => {
                let items = list.elements.iter().map(|element| self.expr(element, scope).ty).collect();
                View::of(Type::List(Type::union(items).into()))
            }
            Ast::Map(_) => View::of(Type::Map(Type::Any.into())),
            Ast::Comprehension(comprehension) => self.comprehension(comprehension, scope),
            Ast::Struct(_) | Ast::Unspecified => {
                self.report(
                    expr.id,
                    "this form has no meaning here".into(),
                    "use fields, comparisons and && || !",
                );
                View::of(Type::Any)
            }
        }
    }

    fn select(&mut self, id: u64, select: &SelectExpr, scope: &Scope) -> View {
        let before = self.paths.len();
        let operand = self.expr(&select.operand, scope).ty;
        let path = Path::of(&select.operand).map(|path| path.then(Step::Field(select.field.clone())));
        let ty = self.field(id, &operand, select, path.as_ref(), scope);
        if let Some(path) = &path {
            self.paths.truncate(before);
            self.reads_path(path, scope);
        }
        if select.test {
            let mut view = View::of(Type::Bool);
            if let Some(path) = path {
                view.if_true = Facts::one(path, Fact::Present);
            }
            return view;
        }
        View::of(ty)
    }

    fn field(
        &mut self,
        id: u64,
        operand: &Type,
        select: &SelectExpr,
        path: Option<&Path>,
        scope: &Scope,
    ) -> Type {
        let name = select.field.as_str();
        let objects = operand.alternatives();
        if let Some(object) = operand.object() {
            let Some(field) = object.fields.get(name) else {
                if object.open {
                    return Type::Any;
                }
                let names = object.fields.keys().map(String::as_str);
                let hint = did_you_mean(name, names.clone())
                    .unwrap_or_else(|| format!("known fields: {}", names.collect::<Vec<_>>().join(", ")));
                self.report(id, format!("unknown field '{name}'"), hint);
                return Type::Any;
            };
            let shown = path.map_or_else(|| name.to_owned(), Path::to_string);
            let shown = shown.as_str();
            if operand.is_nullable()
                && !select.test
                && !path.is_some_and(|path| scope.known.is_not_null(&parent(path)))
            {
                self.report(
                    id,
                    format!(
                        "'{}' may be null here",
                        shown.rsplit_once('.').map_or(shown, |(parent, _)| parent)
                    ),
                    format!(
                        "guard it: {} != null && …",
                        shown.rsplit_once('.').map_or(shown, |(parent, _)| parent)
                    ),
                );
            }
            let proven = path.is_some_and(|path| scope.known.is_present(path));
            if !select.test && !field.is_present() && !proven {
                self.report(
                    id,
                    format!("'{shown}' is optional and may be missing here"),
                    format!("guard it: has({shown}) && …"),
                );
            }
            // Where an optional field is present it is not null: null is absence there.
            return if field.required { field.ty.clone() } else { field.ty.non_null() };
        }
        if objects.iter().any(|ty| matches!(ty, Type::Any)) {
            return Type::Any;
        }
        if let Some(Type::Map(values)) = objects.iter().find(|ty| matches!(ty, Type::Map(_))) {
            if !select.test && !path.is_some_and(|path| scope.known.is_present(path)) && **values != Type::Any
            {
                let shown = path.map_or_else(|| name.to_owned(), Path::to_string);
                self.report(
                    id,
                    format!("'{shown}' may be missing here"),
                    format!("guard it: has({shown}) && …"),
                );
            }
            return values.as_ref().clone();
        }
        self.report(id, format!("a {operand} has no field '{name}'"), "only objects have fields");
        Type::Any
    }

    fn call(&mut self, id: u64, call: &CallExpr, scope: &Scope) -> View {
        let args: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(call.args.iter()).collect();
        match (call.func_name.as_str(), args.as_slice()) {
            (op::LOGICAL_AND, [left, right]) => {
                let left = self.boolean(left, scope);
                let right = self.boolean(right, &scope.and(&left.if_true));
                View {
                    ty: Type::Bool,
                    if_true: left.if_true.and(&right.if_true),
                    if_false: left.if_false.common(&right.if_false),
                }
            }
            (op::LOGICAL_OR, [left, right]) => {
                let left = self.boolean(left, scope);
                let right = self.boolean(right, &scope.and(&left.if_false));
                View {
                    ty: Type::Bool,
                    if_true: left.if_true.common(&right.if_true),
                    if_false: left.if_false.and(&right.if_false),
                }
            }
            (op::LOGICAL_NOT, [inner]) => {
                let view = self.boolean(inner, scope);
                View { ty: Type::Bool, if_true: view.if_false, if_false: view.if_true }
            }
            (op::NOT_STRICTLY_FALSE, [inner]) => self.expr(inner, scope),
            (op::CONDITIONAL, [condition, yes, no]) => {
                let condition = self.boolean(condition, scope);
                let yes = self.expr(yes, &scope.and(&condition.if_true)).ty;
                let no = self.expr(no, &scope.and(&condition.if_false)).ty;
                View::of(Type::union(vec![yes, no]))
            }
            (op::EQUALS | op::NOT_EQUALS, [left, right]) => {
                self.equality(id, left, right, call.func_name == op::NOT_EQUALS, scope)
            }
            (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
                let (left, right) = (self.expr(left, scope).ty, self.expr(right, scope).ty);
                let ordered = |ty: &Type| is_number(ty) || is_text(ty) || *ty == Type::Any;
                if !ordered(&left) || !ordered(&right) || !comparable(&left, &right) {
                    self.report(id, format!("cannot order {left} and {right}"), "order numbers with numbers");
                }
                View::of(Type::Bool)
            }
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [left, right]) => {
                View::of(self.arithmetic(id, &call.func_name, left, right, scope))
            }
            (op::NEGATE, [inner]) => View::of(self.expr(inner, scope).ty),
            (op::IN, [item, list]) => {
                let item = self.expr(item, scope).ty;
                let list = self.expr(list, scope).ty;
                if let Some(items) = list.items()
                    && !comparable(&item, items)
                {
                    self.report(id, format!("a {item} is never in a {list}"), "compare values of one type");
                }
                View::of(Type::Bool)
            }
            (op::INDEX, [target, index]) => {
                let target = self.expr(target, scope).ty;
                self.expr(index, scope);
                View::of(target.items().cloned().unwrap_or(Type::Any))
            }
            _ => self.function(id, call, &args, scope),
        }
    }

    fn function(&mut self, id: u64, call: &CallExpr, args: &[&IdedExpr], scope: &Scope) -> View {
        let types: Vec<Type> = args.iter().map(|arg| self.expr(arg, scope).ty).collect();
        let wants_text = |checker: &mut Self| {
            if let Some(bad) = types.iter().find(|ty| !is_text(ty) && **ty != Type::Any) {
                checker.report(
                    id,
                    format!("'{}' works on strings, not on {bad}", call.func_name),
                    "convert with string()",
                );
            }
        };
        match call.func_name.as_str() {
            "size" => {
                if let Some(bad) = types.first().filter(|ty| !has_size(ty)) {
                    self.report(id, format!("a {bad} has no size"), "size() takes a string, list or object");
                }
                View::of(Type::Int)
            }
            "contains" | "startsWith" | "endsWith" | "matches" => {
                wants_text(self);
                View::of(Type::Bool)
            }
            "int" => View::of(Type::Int),
            "double" => View::of(Type::Double),
            "string" => View::of(Type::text()),
            "bool" => View::of(Type::Bool),
            name => {
                let known = [
                    "size",
                    "contains",
                    "startsWith",
                    "endsWith",
                    "matches",
                    "int",
                    "double",
                    "string",
                    "bool",
                    "has",
                    "all",
                    "exists",
                    "exists_one",
                    "map",
                    "filter",
                ];
                let hint = did_you_mean(name, known.iter().copied())
                    .unwrap_or_else(|| format!("known: {}", known.join(", ")));
                self.report(id, format!("unknown function '{name}'"), hint);
                View::of(Type::Any)
            }
        }
    }

    fn boolean(&mut self, expr: &IdedExpr, scope: &Scope) -> View {
        let view = self.expr(expr, scope);
        if view.ty != Type::Bool && view.ty != Type::Any {
            self.report(expr.id, format!("a {} is not a condition", view.ty), "compare it with something");
        }
        view
    }

    fn equality(&mut self, id: u64, left: &IdedExpr, right: &IdedExpr, negated: bool, scope: &Scope) -> View {
        let (a, b) = (self.expr(left, scope).ty, self.expr(right, scope).ty);
        for (ty, other) in [(&a, right), (&b, left)] {
            if let (Type::String(Some(values)), Ast::Literal(LiteralValue::String(text))) =
                (&ty.non_null(), &other.expr)
                && !values.iter().any(|value| value == text.inner())
            {
                let hint = did_you_mean(text.inner(), values.iter().map(String::as_str))
                    .unwrap_or_else(|| format!("allowed: {}", values.join(", ")));
                self.report(
                    other.id,
                    format!("\"{}\" is not one of the values this field can have", text.inner()),
                    hint,
                );
            }
        }
        if !comparable(&a, &b) {
            self.report(id, format!("a {a} is never equal to a {b}"), "compare values of one type");
        }
        let mut view = View::of(Type::Bool);
        for (ty, path) in [(&b, Path::of(left)), (&a, Path::of(right))] {
            if *ty == Type::Null
                && let Some(path) = path
            {
                let facts = Facts::one(path, Fact::NotNull);
                if negated { view.if_true = facts } else { view.if_false = facts }
            }
        }
        view
    }

    fn arithmetic(&mut self, id: u64, name: &str, left: &IdedExpr, right: &IdedExpr, scope: &Scope) -> Type {
        let (a, b) = (self.expr(left, scope).ty, self.expr(right, scope).ty);
        if a == Type::Any || b == Type::Any {
            return Type::Any;
        }
        if is_number(&a) && is_number(&b) {
            if a != b {
                self.report(id, format!("{a} and {b} do not mix"), "convert one with int() or double()");
            }
            return a;
        }
        let joins =
            name == op::ADD && ((is_text(&a) && is_text(&b)) || (a.items().is_some() && b.items().is_some()));
        if !joins {
            self.report(id, format!("cannot calculate with {a} and {b}"), "calculate with numbers");
        }
        match (a.items(), b.items()) {
            (Some(x), Some(y)) => Type::List(Type::union(vec![x.clone(), y.clone()]).into()),
            _ => a,
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr, scope: &Scope) -> View {
        let range = self.expr(&comprehension.iter_range, scope).ty;
        let item = match range.items() {
            Some(items) => items.clone(),
            None if range.object().is_some() || matches!(range, Type::Map(_)) => Type::text(),
            None => {
                if range != Type::Any {
                    self.report(
                        comprehension.iter_range.id,
                        format!("a {range} has no items"),
                        "use it on a list",
                    );
                }
                Type::Any
            }
        };
        let accumulator = self.expr(&comprehension.accu_init, scope).ty;
        let mut inner = scope.with_local(&comprehension.iter_var, item);
        if let Some(second) = &comprehension.iter_var2 {
            inner = inner.with_local(second, Type::Any);
        }
        let accumulator =
            if accumulator.items().is_some() { Type::List(Type::Any.into()) } else { accumulator };
        inner = inner.with_local(&comprehension.accu_var, accumulator);
        self.expr(&comprehension.loop_cond, &inner);
        let step = self.expr(&comprehension.loop_step, &inner).ty;
        let last = inner.with_local(&comprehension.accu_var, step);
        View::of(self.expr(&comprehension.result, &last).ty)
    }
}

fn parent(path: &Path) -> Path {
    let mut path = path.clone();
    path.steps.pop();
    path
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Int(_) | LiteralValue::UInt(_) => Type::Int,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::String(_) => Type::text(),
        LiteralValue::Null => Type::Null,
        LiteralValue::Bytes(_) => Type::Any,
    }
}

fn is_number(ty: &Type) -> bool {
    ty.alternatives().iter().all(|ty| matches!(ty, Type::Int | Type::Double))
}

fn is_text(ty: &Type) -> bool {
    ty.alternatives().iter().all(|ty| matches!(ty, Type::String(_)))
}

fn has_size(ty: &Type) -> bool {
    ty.alternatives()
        .iter()
        .any(|ty| matches!(ty, Type::Any | Type::String(_) | Type::List(_) | Type::Map(_) | Type::Object(_)))
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
