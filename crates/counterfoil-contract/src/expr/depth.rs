//! The nesting depth of an expression, computed without recursion. Code that walks the tree later
//! does recurse, so the depth is limited first.

use cel::common::ast::{EntryExpr, Expr as Ast, IdedExpr};

/// Whether an expression is nested deeper than a limit.
pub(super) fn is_deeper_than(limit: usize, expr: &IdedExpr) -> bool {
    let mut open = vec![(expr, 1)];
    while let Some((expr, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        open.extend(children(expr).into_iter().map(|child| (child, depth + 1)));
    }
    false
}

fn children(expr: &IdedExpr) -> Vec<&IdedExpr> {
    match &expr.expr {
        Ast::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Ast::Select(select) => vec![&select.operand],
        Ast::List(list) => list.elements.iter().collect(),
        Ast::Map(map) => map.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect(),
        Ast::Struct(object) => {
            object.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect()
        }
        Ast::Comprehension(comprehension) => {
            vec![&comprehension.iter_range, &comprehension.loop_step, &comprehension.result]
        }
        Ast::Ident(_) | Ast::Literal(_) | Ast::Unspecified => Vec::new(),
    }
}

fn entry_children(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}
