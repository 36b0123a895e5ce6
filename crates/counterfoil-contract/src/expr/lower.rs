//! Lowers a checked expression to the one that is evaluated. Lowering inserts the metering of loops
//! and applies what the type checker knows and `cel` cannot know.

use super::library::{MATCHES, MEMBER_OR_NULL, SUM_OF_NUMBERS};
use super::loops::appended_mut;
use super::meter::{METER_COLLECTED, METER_CONTAINER, METER_JOINED, METER_OPERAND, METER_RANGE};
use cel::Program;
use cel::common::ast::{CallExpr, EntryExpr, Expr as Ast, IdedExpr, LiteralValue, operators as op};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Facts from the type checker about parts of an expression, by their ids.
#[derive(Debug, Default)]
pub(super) struct LoweringHints {
    /// Calls of `sum` over doubles. For an empty list, the item type is known only to the checker.
    pub(super) sums_of_numbers: BTreeSet<u64>,
    /// Member accesses that yield null where the member is missing.
    pub(super) or_null: BTreeSet<u64>,
}

/// An expression ready to be evaluated.
#[derive(Clone, Debug)]
pub(crate) struct ExprCode {
    /// The expression as written and checked.
    program: Arc<Program>,
    /// The expression to evaluate, where it differs from `program`.
    lowered: Option<Arc<IdedExpr>>,
}

impl ExprCode {
    pub(super) fn new(program: Arc<Program>, notes: &LoweringHints) -> Self {
        let mut expr = program.expression().clone();
        let is_changed = lower(&mut expr, notes);
        Self { program, lowered: is_changed.then(|| Arc::new(expr)) }
    }

    /// The expression as it was written.
    pub(super) fn source_expr(&self) -> &IdedExpr {
        self.program.expression()
    }

    /// The expression to evaluate.
    pub(super) fn expr(&self) -> &IdedExpr {
        self.lowered.as_deref().unwrap_or_else(|| self.program.expression())
    }
}

/// Lowers an expression in place and returns whether anything changed. The recursion is bounded by
/// the depth limit of expressions.
fn lower(expr: &mut IdedExpr, notes: &LoweringHints) -> bool {
    let mut is_changed = false;
    match &mut expr.expr {
        Ast::Call(call) => {
            for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
                is_changed |= lower(part, notes);
            }
            if notes.sums_of_numbers.contains(&expr.id) {
                SUM_OF_NUMBERS.clone_into(&mut call.func_name);
                is_changed = true;
            }
            if call.func_name == "matches" {
                call.args.splice(0..0, call.target.take().map(|target| *target));
                MATCHES.clone_into(&mut call.func_name);
                is_changed = true;
            }
            is_changed |= meter_operands(call);
            if let (op::IN, [_, container]) = (call.func_name.as_str(), call.args.as_mut_slice())
                && !matches!(container.expr, Ast::List(_))
            {
                wrap(container, METER_CONTAINER);
                is_changed = true;
            }
        }
        Ast::Select(select) => is_changed |= lower(&mut select.operand, notes),
        Ast::List(list) => {
            for element in &mut list.elements {
                is_changed |= lower(element, notes);
            }
        }
        Ast::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    is_changed |= lower(&mut entry.value, notes);
                }
            }
        }
        Ast::Comprehension(comprehension) => {
            lower(&mut comprehension.iter_range, notes);
            lower(&mut comprehension.loop_step, notes);
            let parts = i64::try_from(count_parts(&comprehension.loop_step)).unwrap_or(i64::MAX);
            wrap(&mut comprehension.iter_range, METER_RANGE);
            if let Ast::Call(call) = &mut comprehension.iter_range.expr {
                let id = comprehension.iter_range.id;
                let parts = Ast::Literal(LiteralValue::Int(parts.into()));
                call.args.push(IdedExpr { id, expr: parts });
            }
            if let Some(value) = appended_mut(&mut comprehension.loop_step)
                && !matches!(&value.expr, Ast::Ident(name) if *name == comprehension.iter_var)
            {
                wrap(value, METER_COLLECTED);
            }
            is_changed = true;
        }
        Ast::Struct(_) | Ast::Ident(_) | Ast::Literal(_) | Ast::Unspecified => {}
    }
    if notes.or_null.contains(&expr.id) {
        make_nullable(expr);
        is_changed = true;
    }
    is_changed
}

/// Wraps the operands whose size decides what a call costs. Literals are as short as the expression.
fn meter_operands(call: &mut CallExpr) -> bool {
    let is_small = |part: &IdedExpr| match &part.expr {
        Ast::Literal(_) | Ast::List(_) | Ast::Map(_) => true,
        // The list that a loop collects is counted item by item.
        Ast::Ident(name) => name.starts_with('@'),
        _ => false,
    };
    let function = match call.func_name.as_str() {
        op::ADD => METER_JOINED,
        op::EQUALS | op::NOT_EQUALS if call.args.iter().any(is_small) => return false,
        op::EQUALS
        | op::NOT_EQUALS
        | op::LESS
        | op::LESS_EQUALS
        | op::GREATER
        | op::GREATER_EQUALS
        | "contains"
        | "endsWith"
        | "size"
        | "string"
        | "bytes" => METER_OPERAND,
        _ => return false,
    };
    let mut is_changed = false;
    for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
        if !is_small(part) {
            wrap(part, function);
            is_changed = true;
        }
    }
    is_changed
}

/// The number of parts of an expression. The bodies of loops inside of it are counted there.
fn count_parts(expr: &IdedExpr) -> usize {
    1 + match &expr.expr {
        Ast::Call(call) => {
            call.target.as_deref().into_iter().chain(&call.args).map(count_parts).sum()
        }
        Ast::Select(select) => count_parts(&select.operand),
        Ast::List(list) => list.elements.iter().map(count_parts).sum(),
        Ast::Map(map) => {
            let values = map.entries.iter().filter_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => Some(&entry.value),
                EntryExpr::StructField(_) => None,
            });
            values.map(count_parts).sum()
        }
        Ast::Comprehension(comprehension) => count_parts(&comprehension.iter_range),
        Ast::Struct(_) | Ast::Ident(_) | Ast::Literal(_) | Ast::Unspecified => 0,
    }
}

/// Wraps an expression in a call of a function with one argument.
fn wrap(expr: &mut IdedExpr, function: &str) {
    let inner = std::mem::take(expr);
    expr.id = inner.id;
    expr.expr = call_expr(function, vec![inner]);
}

/// Rewrites `object.name` and `object["name"]` to yield null where the member is missing.
fn make_nullable(expr: &mut IdedExpr) {
    let args = match std::mem::take(&mut expr.expr) {
        Ast::Select(select) => {
            let name = Ast::Literal(LiteralValue::String(select.field.into()));
            vec![*select.operand, IdedExpr { id: expr.id, expr: name }]
        }
        Ast::Call(index) if index.func_name == op::INDEX => index.args,
        other => {
            expr.expr = other;
            return;
        }
    };
    expr.expr = call_expr(MEMBER_OR_NULL, args);
}

fn call_expr(function: &str, args: Vec<IdedExpr>) -> Ast {
    Ast::Call(CallExpr { func_name: function.to_owned(), target: None, args })
}
