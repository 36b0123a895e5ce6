//! From the expression that was checked to the one that is evaluated: what the checker found out
//! and `cel` cannot know, and the meters of its loops.

use super::library::{MEMBER, SUM_OF_NUMBERS};
use super::loops::appended_mut;
use super::meter::{AMONG, KEPT, OVER};
use cel::Program;
use cel::common::ast::{CallExpr, EntryExpr, Expr as Ast, IdedExpr, LiteralValue, operators as op};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the checker found out about parts of an expression, by their ids.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Sums of numbers that are not integers: of an empty list, `cel` would not know.
    pub(super) sums_of_numbers: BTreeSet<u64>,
    /// Members that are null where they are missing.
    pub(super) or_null: BTreeSet<u64>,
}

/// An expression ready to be evaluated.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// As it was written and checked.
    program: Arc<Program>,
    /// As it is evaluated, where that differs.
    lowered: Option<Arc<IdedExpr>>,
}

impl Code {
    pub(super) fn new(program: Arc<Program>, notes: &Notes) -> Self {
        let mut expr = program.expression().clone();
        let is_changed = lower(&mut expr, notes);
        Self { program, lowered: is_changed.then(|| Arc::new(expr)) }
    }

    /// The expression as it was written.
    pub(super) fn written(&self) -> &IdedExpr {
        self.program.expression()
    }

    /// The expression to evaluate.
    pub(super) fn expr(&self) -> &IdedExpr {
        self.lowered.as_deref().unwrap_or_else(|| self.program.expression())
    }
}

/// Lowers an expression in place; whether anything changed. As deep as the expression, which is
/// bounded.
fn lower(expr: &mut IdedExpr, notes: &Notes) -> bool {
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
            if let (op::IN, [_, container]) = (call.func_name.as_str(), call.args.as_mut_slice())
                && !matches!(container.expr, Ast::List(_))
            {
                wrap(container, AMONG);
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
            wrap(&mut comprehension.iter_range, OVER);
            if let Some(value) = appended_mut(&mut comprehension.loop_step)
                && !matches!(&value.expr, Ast::Ident(name) if *name == comprehension.iter_var)
            {
                wrap(value, KEPT);
            }
            is_changed = true;
        }
        Ast::Struct(_) | Ast::Ident(_) | Ast::Literal(_) | Ast::Unspecified => {}
    }
    if notes.or_null.contains(&expr.id) {
        soften(expr);
        is_changed = true;
    }
    is_changed
}

/// Puts a function of one argument around an expression.
fn wrap(expr: &mut IdedExpr, function: &str) {
    let inner = std::mem::take(expr);
    expr.id = inner.id;
    expr.expr = call(function, vec![inner]);
}

/// Turns `object.name` and `object["name"]` into what gives null where the member is missing.
fn soften(expr: &mut IdedExpr) {
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
    expr.expr = call(MEMBER, args);
}

fn call(function: &str, args: Vec<IdedExpr>) -> Ast {
    Ast::Call(CallExpr { func_name: function.to_owned(), target: None, args })
}
