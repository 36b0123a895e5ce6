//! The type checker over CEL's syntax tree: unknown fields, wrong enum values, values of different
//! types in one operation, and optional or null values used without a guard that proves they are
//! there.
//!
//! What a guard proves must hold wherever the guard is not false, also where evaluating it fails:
//! CEL goes on with the other side of `&&` and `||` then. So only tests that cannot fail prove
//! anything.

use super::assign::with_article;
use super::depth::is_deeper_than;
use super::eval::parsed;
use super::lower::{Code, Notes};
use super::members::Access;
use super::path::Path;
use super::scope::{Facts, Proof, Scope};
use super::types::Type;
use crate::suggest::did_you_mean;
use cel::Program;
use cel::common::ast::{Expr as Ast, IdedExpr, LiteralValue};
use std::sync::Arc;

/// The deepest nesting that is checked and evaluated: both recurse.
const DEEPEST: usize = 150;

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
    /// The places it reads: variables as a whole too, and not what only leads to a place.
    pub(super) paths: Vec<Path>,
    pub(super) if_true: Facts,
    pub(super) if_false: Facts,
    pub(super) code: Code,
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
    /// Whether it reads a variable as a whole, and not only some of its fields.
    pub(crate) fn reads_whole(&self, variable: &str) -> bool {
        self.paths.iter().any(|path| path.root == variable && path.fields().next().is_none())
    }

    pub(crate) fn into_code(self) -> Code {
        self.code
    }
}

/// Parses an expression and checks it against the types of its variables; all problems at once.
pub fn check(source: &str, scope: &Scope) -> Result<Checked, Vec<ExprProblem>> {
    let end = source.chars().count();
    if source.len() > 10_000 {
        return Err(vec![problem(
            "the expression is too long",
            "keep it under 10,000 bytes",
            0,
            end,
        )]);
    }
    let program = parsed(source).map_err(|errors| {
        // What comes after the first is mostly because of the first.
        errors
            .errors
            .iter()
            .take(1)
            .map(|error| syntax_problem(source, error.pos, &error.msg))
            .collect::<Vec<_>>()
    })?;
    if is_deeper_than(DEEPEST, program.expression()) {
        return Err(vec![problem(
            "the expression is nested too deeply",
            "split it into several",
            0,
            end,
        )]);
    }
    let mut checker = Checker {
        source: source.chars().collect(),
        program: &program,
        problems: Vec::new(),
        reads: Vec::new(),
        paths: Vec::new(),
        notes: Notes::default(),
    };
    let view = checker.expr(program.expression(), scope);
    let Checker { problems, reads, paths, notes, .. } = checker;
    if problems.is_empty() {
        let code = Code::new(program, &notes);
        Ok(Checked {
            ty: view.ty,
            reads,
            paths,
            if_true: view.if_true,
            if_false: view.if_false,
            code,
        })
    } else {
        Err(problems)
    }
}

/// What the parser said, in words, at its place: a line and a column from 1.
fn syntax_problem(source: &str, (line, column): (isize, isize), said: &str) -> ExprProblem {
    let (line, column) = (usize::try_from(line).unwrap_or(1), usize::try_from(column).unwrap_or(1));
    let before: usize =
        source.split('\n').take(line.saturating_sub(1)).map(|line| line.chars().count() + 1).sum();
    let end = source.chars().count();
    let start = (before + column.saturating_sub(1)).min(end);
    let said = said.strip_prefix("Syntax error: ").unwrap_or(said);
    let quoted = said
        .split_once('\'')
        .and_then(|(_, rest)| rest.split_once('\''))
        .map(|(word, _)| word.trim());
    let (message, hint) = match quoted {
        Some("<EOF>") => (
            "the expression ends too early".to_owned(),
            "something is missing behind the last sign",
        ),
        Some("=") => ("'=' has no meaning here".to_owned(), "two values are compared by =="),
        Some(word) if said.contains("input") || said.contains("recognition") => (
            format!("'{word}' is not expected here"),
            "an operator, a quote or a bracket may be missing before it",
        ),
        _ => (said.to_owned(), "see the CEL language definition"),
    };
    problem(&message, hint, start, (start + 1).min(end.max(1)))
}

fn problem(message: &str, hint: &str, start: usize, end: usize) -> ExprProblem {
    ExprProblem { message: message.to_owned(), hint: hint.to_owned(), start, end }
}

/// What is known of a subexpression.
pub(super) struct View {
    pub(super) ty: Type,
    pub(super) if_true: Facts,
    pub(super) if_false: Facts,
}

impl View {
    pub(super) fn of(ty: Type) -> Self {
        Self { ty, if_true: Facts::default(), if_false: Facts::default() }
    }
}

pub(super) struct Checker<'p> {
    source: Vec<char>,
    pub(super) program: &'p Program,
    pub(super) problems: Vec<ExprProblem>,
    pub(super) reads: Vec<String>,
    pub(super) paths: Vec<Path>,
    pub(super) notes: Notes,
}

impl Checker<'_> {
    pub(super) fn report(&mut self, at: u64, message: String, hint: impl Into<String>) {
        let (start, end) =
            self.program.source_info().offset_for(at).map_or((0, 1), |(start, stop)| {
                (self.characters(start as usize), self.characters(stop as usize + 1))
            });
        let (start, end) = self.field_at(start).unwrap_or((start, end.max(start + 1)));
        self.problems.push(ExprProblem { message, hint: hint.into(), start, end });
    }

    /// The parser counts bytes, and a place is given in characters.
    fn characters(&self, bytes: usize) -> usize {
        let mut left = bytes;
        self.source
            .iter()
            .take_while(|c| left.checked_sub(c.len_utf8()).map(|rest| left = rest).is_some())
            .count()
    }

    /// The name of a field where its dot stands, or the path inside `has(…)` where the bracket
    /// does: what the parser gives as their place is only that sign.
    fn field_at(&self, sign: usize) -> Option<(usize, usize)> {
        let is_dot = match self.source.get(sign)? {
            '.' => true,
            '(' if self.source[..sign].ends_with(&['h', 'a', 's']) => false,
            _ => return None,
        };
        let skipped = self.source[sign + 1..].iter().take_while(|c| c.is_whitespace()).count();
        let start = sign + 1 + skipped;
        let is_part = |c: &&char| c.is_alphanumeric() || **c == '_' || (!is_dot && **c == '.');
        let long = self.source[start..].iter().take_while(is_part).count();
        (long > 0).then_some((start, start + long))
    }

    pub(super) fn expr(&mut self, expr: &IdedExpr, scope: &Scope) -> View {
        match &expr.expr {
            Ast::Ident(name) => {
                let Some(ty) = scope.variables.get(name) else {
                    let names = scope.variables.keys().map(String::as_str);
                    let hint = did_you_mean(name, names.clone()).unwrap_or_else(|| {
                        format!("known: {}", names.collect::<Vec<_>>().join(", "))
                    });
                    self.report(expr.id, format!("unknown variable '{name}'"), hint);
                    return View::of(Type::Any);
                };
                let path = Path { root: name.clone(), steps: Vec::new() };
                self.reads(&path, scope);
                View::of(narrowed(ty, Some(&path), scope))
            }
            Ast::Literal(literal) => View::of(self.literal(expr.id, literal)),
            Ast::Select(select) => {
                let access = if select.test { Access::Test } else { Access::Read };
                self.member(expr.id, &select.operand, &select.field, access, scope)
            }
            Ast::Call(call) => self.call(expr.id, call, scope),
            Ast::List(list) => {
                if !list.optional_indices.is_empty() {
                    self.report(
                        expr.id,
                        "optional items have no meaning here".into(),
                        "write them without ?",
                    );
                }
                let items =
                    list.elements.iter().map(|element| self.expr(element, scope).ty).collect();
                View::of(Type::List(joined(items).into()))
            }
            Ast::Map(map) => View::of(self.object_literal(map, scope)),
            Ast::Comprehension(comprehension) => self.comprehension(expr.id, comprehension, scope),
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

    fn literal(&mut self, id: u64, literal: &LiteralValue) -> Type {
        match literal {
            LiteralValue::Boolean(_) => Type::Bool,
            LiteralValue::Int(_) => Type::Int,
            LiteralValue::Double(_) => Type::Double,
            LiteralValue::String(text) => {
                Type::String(Some(Arc::new(vec![text.inner().to_owned()])))
            }
            LiteralValue::Null => Type::Null,
            LiteralValue::UInt(number) => {
                self.report(
                    id,
                    "unsigned integers do not mix with integers".into(),
                    format!("write {}", number.inner()),
                );
                Type::Any
            }
            LiteralValue::Bytes(_) => {
                self.report(id, "results hold no bytes".into(), "write a string");
                Type::Any
            }
        }
    }

    /// Notes that a place is read.
    pub(super) fn reads(&mut self, path: &Path, scope: &Scope) {
        if scope.local.contains(&path.root) {
            return;
        }
        if !self.paths.contains(path) {
            self.paths.push(path.clone());
        }
        let fields: Vec<&str> = std::iter::once(path.root.as_str()).chain(path.fields()).collect();
        let read = fields.join(".");
        if fields.len() > 1 && !self.reads.contains(&read) {
            self.reads.push(read);
        }
    }

    /// The type of a value that an operation needs: null is a problem there.
    pub(super) fn solid(&mut self, expr: &IdedExpr, ty: Type) -> Type {
        if !ty.alternatives().contains(&Type::Null) {
            return ty;
        }
        match Path::of(expr) {
            Some(path) => self.report(
                expr.id,
                format!("'{path}' may be null here"),
                format!("guard it: {path} != null && …"),
            ),
            None => {
                self.report(
                    expr.id,
                    "this value may be null here".into(),
                    "give it a value in every case",
                );
            }
        }
        ty.non_null()
    }

    /// The operand of an operation that needs a value.
    pub(super) fn operand(&mut self, expr: &IdedExpr, scope: &Scope) -> Type {
        let ty = self.expr(expr, scope).ty;
        let ty = self.solid(expr, ty);
        shown(expr, ty)
    }

    pub(super) fn boolean(&mut self, expr: &IdedExpr, scope: &Scope) -> View {
        let mut view = self.expr(expr, scope);
        view.ty = self.solid(expr, view.ty);
        if !every(&view.ty, |ty| *ty == Type::Bool) {
            let ty = shown(expr, view.ty.clone());
            self.report(
                expr.id,
                format!("{} is not a condition", with_article(&ty)),
                "compare it with something",
            );
        }
        view
    }
}

/// The type of a place, given what is known of it.
pub(super) fn narrowed(ty: &Type, path: Option<&Path>, scope: &Scope) -> Type {
    if path.is_some_and(|path| scope.known.is_not_null(path)) { ty.non_null() } else { ty.clone() }
}

/// The type as messages name it: a literal is a string, not the one value it is.
pub(super) fn shown(expr: &IdedExpr, ty: Type) -> Type {
    match &expr.expr {
        Ast::Literal(LiteralValue::String(_)) => Type::text(),
        _ => ty,
    }
}

/// Whether every alternative is as wanted; where nothing is known, anything may be.
pub(super) fn every(ty: &Type, wanted: impl Fn(&Type) -> bool) -> bool {
    ty.alternatives().iter().all(|ty| *ty == Type::Any || wanted(ty))
}

/// The union of types of values: a string of any content takes in the others, and no types give a
/// type of no value.
pub(super) fn joined(mut types: Vec<Type>) -> Type {
    if types.iter().all(|ty| ty.alternatives().is_empty()) {
        return Type::nothing();
    }
    types.sort_by_key(|ty| !ty.alternatives().contains(&Type::text()));
    Type::union(types)
}
