//! The type checker for CEL's syntax tree. It reports unknown fields, wrong enum values, operations
//! on incompatible types, and optional or nullable values that are used without a guard.
//!
//! The facts that a guard establishes must hold wherever the guard is not false, including where
//! its evaluation fails, because CEL then continues with the other side of `&&` and `||`. Therefore
//! only tests that cannot fail establish facts.

use super::assign::with_article;
use super::depth::is_deeper_than;
use super::eval::parse_cached;
use super::lower::{ExprCode, LoweringHints};
use super::members::Access;
use super::path::Path;
use super::scope::{Facts, Proof, Scope};
use super::types::Type;
use crate::suggest::did_you_mean;
use cel::Program;
use cel::common::ast::{Expr as Ast, IdedExpr, LiteralValue};
use std::sync::Arc;

/// The maximum nesting depth. Checking and evaluation both recurse.
const MAX_DEPTH: usize = 150;

/// A problem in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprProblem {
    /// The message that describes the problem.
    pub message: String,
    /// A hint how to fix it.
    pub hint: String,
    /// The start of the affected range of the source, in characters.
    pub start: usize,
    /// The end of the range, exclusive.
    pub end: usize,
}

/// An expression that passed the type check.
#[derive(Debug)]
pub struct Checked {
    /// The type of its value.
    pub ty: Type,
    /// The field paths it reads, such as `result.checks`, in source order.
    pub reads: Vec<String>,
    /// The paths it reads, including whole variables but not the prefixes of longer paths.
    pub(super) paths: Vec<Path>,
    pub(super) if_true: Facts,
    pub(super) if_false: Facts,
    pub(super) code: ExprCode,
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

    pub(crate) fn into_code(self) -> ExprCode {
        self.code
    }
}

/// Parses an expression and checks it against the types of its variables.
///
/// # Errors
///
/// All problems that were found, with their positions in the source.
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
    let program = parse_cached(source).map_err(|errors| {
        // Later syntax errors are mostly consequences of the first.
        errors
            .errors
            .iter()
            .take(1)
            .map(|error| syntax_problem(source, error.pos, &error.msg))
            .collect::<Vec<_>>()
    })?;
    if is_deeper_than(MAX_DEPTH, program.expression()) {
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
        notes: LoweringHints::default(),
    };
    let view = checker.expr(program.expression(), scope);
    let Checker { problems, reads, paths, notes, .. } = checker;
    if problems.is_empty() {
        let code = ExprCode::new(program, &notes);
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

/// Converts a parser error to a problem. Line and column count from 1.
fn syntax_problem(
    source: &str,
    (line, column): (isize, isize),
    parser_message: &str,
) -> ExprProblem {
    let (line, column) = (usize::try_from(line).unwrap_or(1), usize::try_from(column).unwrap_or(1));
    let before: usize =
        source.split('\n').take(line.saturating_sub(1)).map(|line| line.chars().count() + 1).sum();
    let end = source.chars().count();
    let start = (before + column.saturating_sub(1)).min(end);
    let parser_message = parser_message.strip_prefix("Syntax error: ").unwrap_or(parser_message);
    let quoted = parser_message
        .split_once('\'')
        .and_then(|(_, rest)| rest.split_once('\''))
        .map(|(word, _)| word.trim());
    let (message, hint) = match quoted {
        Some("<EOF>") => (
            "the expression ends too early".to_owned(),
            "an operand or a bracket is missing at the end",
        ),
        Some("=") => ("'=' is not an operator".to_owned(), "compare two values with =="),
        Some(word)
            if parser_message.contains("input") || parser_message.contains("recognition") =>
        {
            (
                format!("'{word}' is not expected here"),
                "an operator, a quote or a bracket may be missing before it",
            )
        }
        _ => (parser_message.to_owned(), "see the CEL language definition"),
    };
    problem(&message, hint, start, (start + 1).min(end.max(1)))
}

fn problem(message: &str, hint: &str, start: usize, end: usize) -> ExprProblem {
    ExprProblem { message: message.to_owned(), hint: hint.to_owned(), start, end }
}

/// The inferred type of a subexpression and the facts that its outcome establishes.
pub(super) struct Inferred {
    pub(super) ty: Type,
    pub(super) if_true: Facts,
    pub(super) if_false: Facts,
}

impl Inferred {
    pub(super) fn from_type(ty: Type) -> Self {
        Self { ty, if_true: Facts::default(), if_false: Facts::default() }
    }
}

pub(super) struct Checker<'p> {
    source: Vec<char>,
    pub(super) program: &'p Program,
    pub(super) problems: Vec<ExprProblem>,
    pub(super) reads: Vec<String>,
    pub(super) paths: Vec<Path>,
    pub(super) notes: LoweringHints,
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

    /// Converts a byte offset of the parser to a character offset.
    fn characters(&self, bytes: usize) -> usize {
        let mut left = bytes;
        self.source
            .iter()
            .take_while(|c| left.checked_sub(c.len_utf8()).map(|rest| left = rest).is_some())
            .count()
    }

    /// The range of a field name after its dot, or of the path inside `has(…)`. The parser reports
    /// only the position of the dot or the parenthesis.
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

    pub(super) fn expr(&mut self, expr: &IdedExpr, scope: &Scope) -> Inferred {
        match &expr.expr {
            Ast::Ident(name) => {
                let Some(ty) = scope.variables.get(name) else {
                    let names = scope.variables.keys().map(String::as_str);
                    let hint = did_you_mean(name, names.clone()).unwrap_or_else(|| {
                        format!("known: {}", names.collect::<Vec<_>>().join(", "))
                    });
                    self.report(expr.id, format!("unknown variable '{name}'"), hint);
                    return Inferred::from_type(Type::Any);
                };
                let path = Path { root: name.clone(), steps: Vec::new() };
                self.record_read(&path, scope);
                Inferred::from_type(narrowed(ty, Some(&path), scope))
            }
            Ast::Literal(literal) => Inferred::from_type(self.literal(expr.id, literal)),
            Ast::Select(select) => {
                let access = if select.test { Access::Test } else { Access::Read };
                self.member(expr.id, &select.operand, &select.field, access, scope)
            }
            Ast::Call(call) => self.call(expr.id, call, scope),
            Ast::List(list) => {
                if !list.optional_indices.is_empty() {
                    self.report(
                        expr.id,
                        "optional items are not supported".into(),
                        "write them without ?",
                    );
                }
                let items =
                    list.elements.iter().map(|element| self.expr(element, scope).ty).collect();
                Inferred::from_type(Type::List(union_of(items).into()))
            }
            Ast::Map(map) => Inferred::from_type(self.object_literal(map, scope)),
            Ast::Comprehension(comprehension) => self.comprehension(expr.id, comprehension, scope),
            Ast::Struct(_) | Ast::Unspecified => {
                self.report(
                    expr.id,
                    "this syntax is not supported".into(),
                    "use fields, comparisons and && || !",
                );
                Inferred::from_type(Type::Any)
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
                self.report(id, "byte literals are not supported".into(), "write a string");
                Type::Any
            }
        }
    }

    /// Records that a path is read.
    pub(super) fn record_read(&mut self, path: &Path, scope: &Scope) {
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

    /// The type of a value without null. Reports a problem if the value may be null.
    pub(super) fn require_non_null(&mut self, expr: &IdedExpr, ty: Type) -> Type {
        if !ty.alternatives().contains(&Type::Null) {
            return ty;
        }
        match Path::from_expr(expr) {
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

    /// The type of an operand that must not be null.
    pub(super) fn operand(&mut self, expr: &IdedExpr, scope: &Scope) -> Type {
        let ty = self.expr(expr, scope).ty;
        let ty = self.require_non_null(expr, ty);
        display_type(expr, ty)
    }

    pub(super) fn boolean(&mut self, expr: &IdedExpr, scope: &Scope) -> Inferred {
        let mut view = self.expr(expr, scope);
        view.ty = self.require_non_null(expr, view.ty);
        if !all_alternatives(&view.ty, |ty| *ty == Type::Bool) {
            let ty = display_type(expr, view.ty.clone());
            self.report(
                expr.id,
                format!("{} is not a condition", with_article(&ty)),
                "write a comparison, such as `x == 1`",
            );
        }
        view
    }
}

/// The type of the value at a path, narrowed by the known facts.
pub(super) fn narrowed(ty: &Type, path: Option<&Path>, scope: &Scope) -> Type {
    if path.is_some_and(|path| scope.known.is_not_null(path)) { ty.non_null() } else { ty.clone() }
}

/// The type to show in messages: `string` for a string literal, not its value.
pub(super) fn display_type(expr: &IdedExpr, ty: Type) -> Type {
    match &expr.expr {
        Ast::Literal(LiteralValue::String(_)) => Type::text(),
        _ => ty,
    }
}

/// Whether every alternative of a type satisfies a predicate; `Any` always does.
pub(super) fn all_alternatives(ty: &Type, wanted: impl Fn(&Type) -> bool) -> bool {
    ty.alternatives().iter().all(|ty| *ty == Type::Any || wanted(ty))
}

/// The union of types. A string of any content absorbs enums, and the union of no types is the type
/// without values.
pub(super) fn union_of(mut types: Vec<Type>) -> Type {
    if types.iter().all(|ty| ty.alternatives().is_empty()) {
        return Type::nothing();
    }
    types.sort_by_key(|ty| !ty.alternatives().contains(&Type::text()));
    Type::union(types)
}
